/* agent_mail.c - commands from the control thread to lcore 0, and reports back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/agent_mail.h"

#include <stdlib.h>
#include <string.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

static size_t in_lines(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static void open_ring(struct sw_spsc *in, struct sw_spsc *out, void *ring,
	uint32_t n, uint32_t entry_bytes)
{
	sw_spsc_init(in, ring, n, entry_bytes);
	sw_spsc_init(out, ring, n, entry_bytes);
}

int sw_agent_open_rings(struct agent *a)
{
	uint32_t n = sw_agent_ring_size(sw_agent_n_local(&a->shared));
	size_t commands =
		in_lines(SW_SPSC_BYTES(n, sizeof(struct agent_command)));
	size_t bytes = sizeof(struct agent_rings) + commands +
		       in_lines(SW_SPSC_BYTES(n, sizeof(struct agent_report)));
	struct agent_rings *r = aligned_alloc(64, bytes);

	if (!r)
		return SW_ENOMEM;
	a->control.shared = a->core.shared = &a->shared;
	a->shared.rings = memset(r, 0, bytes);
	open_ring(&a->control.commands, &a->core.commands, r->rings, n,
		sizeof(struct agent_command));
	open_ring(&a->core.reports, &a->control.reports, r->rings + commands, n,
		sizeof(struct agent_report));
	return 0;
}

/* Put @entry, unless the ring already holds it.  Returns whether it was put. */
static bool put_once(
	struct sw_spsc *ring, atomic_bool *is_there, const void *entry)
{
	if (atomic_exchange(is_there, true))
		return false;
	sw_spsc_put(ring, entry, 1);
	return true;
}

/* --- commands --- */

static uint32_t place_of_command(const struct agent_command *o)
{
	switch (o->kind) {
	case AGENT_SERVE:
		return o->local;
	case AGENT_GONE:
		return AGENT_LOCAL_MAX + o->local;
	case AGENT_TUNE:
	case AGENT_END:
	case AGENT_FREE:
		return 2 * AGENT_LOCAL_MAX + o->local;
	case AGENT_DECLARE:
		return 3 * AGENT_LOCAL_MAX;
	default:
		return AGENT_COMMANDS - 4 + 2 * (o->kind == AGENT_LEAVE) +
		       o->group % 2;
	}
}

void sw_agent_command(
	struct agent_control *c, const struct agent_command *command)
{
	struct agent_command o = *command;

	c->n_joined += o.kind == AGENT_JOIN;
	o.group = c->n_joined;
	put_once(&c->commands,
		&c->shared->rings->has_command[place_of_command(&o)], &o);
	sw_bell_ring(&c->shared->daemon.pollers[0].bell);
}

bool sw_agent_take_command(
	struct agent_core *core, struct agent_command *command)
{
	if (sw_spsc_take(&core->commands, command, 1) != 1)
		return false;
	atomic_store(
		&core->shared->rings->has_command[place_of_command(command)],
		false);
	return true;
}

/* --- reports --- */

static uint32_t place_of_report(const struct agent_report *r)
{
	switch (r->kind) {
	case AGENT_ANSWER:
		return r->local;
	case AGENT_RUNNING:
		return AGENT_LOCAL_MAX;
	case AGENT_DECLARED:
		return AGENT_LOCAL_MAX + 1;
	case AGENT_LEFT:
		return AGENT_LOCAL_MAX + 2;
	default:
		return AGENT_LOCAL_MAX + 3;
	}
}

void sw_agent_tell(struct agent_core *core, const struct agent_report *report)
{
	struct agent_report counted = *report;
	atomic_bool any = false;
	bool is_line = report->kind == AGENT_STATUS;
	/* Most other reports that the ring may hold at once. */
	uint32_t n_reports = sw_agent_n_local(core->shared) + AGENT_REPORTS -
			     AGENT_LOCAL_MAX;

	if (is_line && sw_spsc_room(&core->reports) <= n_reports) {
		core->n_lost++;
		return;
	}
	counted.n_lost = core->n_lost;
	if (!put_once(&core->reports,
		    is_line ? &any
			    : &core->shared->rings
				       ->has_report[place_of_report(report)],
		    &counted))
		return;
	core->n_lost = 0;
	sw_host_kick(core->shared->host);
}

bool sw_agent_take_report(struct agent_control *c, struct agent_report *report)
{
	if (sw_spsc_take(&c->reports, report, 1) != 1)
		return false;
	if (report->kind != AGENT_STATUS)
		atomic_store(
			&c->shared->rings->has_report[place_of_report(report)],
			false);
	return true;
}
