/* agent_rings.c - between the agent's two threads: commands one way, reports
 * back. SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

int sw_agent_open_rings(struct agent *a)
{
	void *commands = aligned_alloc(64, sizeof(struct agent_rings));

	if (!commands)
		return SW_ENOMEM;
	a->control.shared = a->core.shared = &a->shared;
	a->shared.rings = memset(commands, 0, sizeof(struct agent_rings));
	sw_spsc_init(&a->control.commands, a->shared.rings->commands,
		AGENT_RING, sizeof(struct agent_command));
	sw_spsc_init(&a->core.commands, a->shared.rings->commands, AGENT_RING,
		sizeof(struct agent_command));
	sw_spsc_init(&a->core.reports, a->shared.rings->reports, AGENT_RING,
		sizeof(struct agent_report));
	sw_spsc_init(&a->control.reports, a->shared.rings->reports, AGENT_RING,
		sizeof(struct agent_report));
	return 0;
}

void sw_agent_command(
	struct agent_control *c, const struct agent_command *order)
{
	if (sw_spsc_put(&c->commands, order, 1) != 1)
		sw_log(&c->shared->daemon.log, SW_LOG_ERROR,
			"the command ring to lcore 0 is full");
}

void sw_agent_tell(struct agent_core *core, const struct agent_report *report)
{
	struct agent_report counted = *report;
	int n;

	if (report->kind == AGENT_STATUS &&
		sw_spsc_room(&core->reports) <= AGENT_REPORTS_MAX) {
		core->n_lost++;
		return;
	}
	counted.n_lost = core->n_lost;
	core->n_lost = 0;
	n = sw_spsc_put(&core->reports, &counted, 1);
	assert(n == 1);
	(void)n;
	sw_host_kick(core->shared->host);
}
