/* agent_group.c - the agent's control thread: local ranks come, join and go.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes of one job are a group: one per local rank.  When all are
 * there the lcore is ordered to join; when one goes in any other way than by
 * closing, all the others are told who it was, and the job ends.  Once one has
 * gone, in whichever way, who comes is of the next group, which may gather
 * while others are still in the one before, and the servers learn that it is
 * gone.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

#define TELL_FIRST_NS SW_S /* local ranks come at about the same time */
#define TELL_AGAIN_NS (5 * SW_S)

static uint32_t n_local(const struct agent *a)
{
	return a->daemon.conf.agent.local_ranks;
}

/* --- a group gathers --- */

static struct agent_rank *rank_of(struct agent_group *g, uint32_t id)
{
	for (uint32_t i = 0; i < AGENT_LOCAL_MAX; i++)
		if (g->ranks[i].is_here && g->ranks[i].id == id)
			return &g->ranks[i];
	return NULL;
}

static void refuse(struct agent *a, uint32_t id, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void refuse(struct agent *a, uint32_t id, int err, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sw_host_refuse(a->host, id, err, text);
}

/* The place for a process in @g, or NULL: it was refused. */
static struct agent_rank *place_for(
	struct agent *a, struct agent_group *g, uint32_t id, uint32_t wanted)
{
	uint32_t i = wanted & ~SW_EDGE_IF_FREE;
	bool is_free;

	/* A launcher counts over all agents of a machine. */
	if (wanted & SW_EDGE_IF_FREE && wanted != UINT32_MAX)
		i %= n_local(a);
	is_free = i < n_local(a) && !g->ranks[i].is_here;
	if (wanted & SW_EDGE_IF_FREE && !is_free)
		for (i = 0; i + 1 < n_local(a) && g->ranks[i].is_here;)
			i++;
	if (i >= n_local(a))
		refuse(a, id, SW_EINVAL,
			"there is no local rank %u: this agent has 0 to %u "
			"([agent] local_ranks = %u)",
			i, n_local(a) - 1, n_local(a));
	else if (!g->ranks[i].is_here)
		return &g->ranks[i];
	else if (n_local(a) == 1)
		refuse(a, id, SW_EBUSY, "rank %u is used by process %u already",
			a->daemon.conf.job.rank, g->ranks[i].pid);
	else
		refuse(a, id, SW_EBUSY,
			"local rank %u of %u is used by process %u already", i,
			n_local(a), g->ranks[i].pid);
	return NULL;
}

static bool is_in(const struct agent_rank *r)
{
	return r->is_here && !r->is_gone;
}

static void tell_group(
	struct agent *a, const struct agent_group *g, const char *text)
{
	for (uint32_t i = 0; i < n_local(a); i++)
		if (is_in(&g->ranks[i]))
			sw_host_status(a->host, g->ranks[i].id, text);
}

/* Tell those that are there who is not. */
static void tell_missing(struct agent *a, const struct agent_group *g)
{
	char text[160];
	size_t n = (size_t)snprintf(text, sizeof(text),
		"waiting for %u of %u local ranks at node %.32s:",
		n_local(a) - g->n_here, n_local(a), a->daemon.conf.node.name);

	for (uint32_t i = 0; i < n_local(a) && n + 8 < sizeof(text); i++)
		if (!g->ranks[i].is_here)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, " %u", i);
	tell_group(a, g, text);
}

/* Tell the next group, which is complete, who keeps it waiting. */
static void tell_who_stays(struct agent *a)
{
	enum { EACH = 40 };
	char text[160];
	size_t n = (size_t)snprintf(text, sizeof(text),
		"waiting for the last job at node %.32s to end:",
		a->daemon.conf.node.name);

	for (uint32_t i = 0; i < n_local(a) && n + EACH < sizeof(text); i++)
		if (is_in(&a->control.group.ranks[i]))
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				" local rank %u (process %u)", i,
				a->control.group.ranks[i].pid);
	tell_group(a, &a->control.next, text);
}

static void begin_if_complete(struct agent *a)
{
	if (a->control.group.n_here < n_local(a))
		return;
	a->control.is_begun = true;
	a->control.is_admitted = a->control.is_ended = false;
	sw_agent_command(a, &(struct agent_command){.kind = AGENT_JOIN});
}

/* Has its job ended, for one of it at least?  Then it takes nobody in. */
static bool is_closed(const struct agent *a)
{
	for (uint32_t i = 0; i < n_local(a); i++)
		if (a->control.group.ranks[i].is_gone)
			return true;
	return a->control.is_ended;
}

void sw_agent_on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t wanted)
{
	struct agent *a = ctx;
	bool is_next = a->control.is_begun && is_closed(a);
	struct agent_group *g = is_next ? &a->control.next : &a->control.group;
	struct agent_rank *r;

	if (a->control.is_stopping) {
		sw_host_refuse(a->host, id, SW_ECLOSED, "the agent stops");
		return;
	}
	r = place_for(a, g, id, wanted);
	if (!r)
		return;
	*r = (struct agent_rank){.id = id, .pid = pid, .is_here = true};
	g->n_here++;
	g->tell_at_ns = sw_now_ns() + TELL_FIRST_NS;
	sw_log(&a->daemon.log, SW_LOG_INFO,
		"process %u (user %u) attached as local rank %u of %u", pid,
		uid, (uint32_t)(r - g->ranks), n_local(a));
	if (!is_next)
		begin_if_complete(a);
}

static bool is_anyone_in(const struct agent *a)
{
	for (uint32_t i = 0; i < n_local(a); i++)
		if (is_in(&a->control.group.ranks[i]))
			return true;
	return false;
}

static void tell_if_due(struct agent *a, struct agent_group *g, uint64_t now_ns)
{
	if (!g->n_here || now_ns < g->tell_at_ns)
		return;
	if (g->n_here < n_local(a))
		tell_missing(a, g);
	else if (g == &a->control.next && is_anyone_in(a))
		tell_who_stays(a);
	g->tell_at_ns = now_ns + TELL_AGAIN_NS;
}

void sw_agent_tell_waiting(struct agent *a)
{
	uint64_t now_ns = sw_now_ns();

	tell_if_due(a, &a->control.group, now_ns);
	tell_if_due(a, &a->control.next, now_ns);
}

/* --- a group runs and ends --- */

/* All that are left end with @err. */
static void end_others(struct agent *a, int err, const char *text)
{
	for (uint32_t i = 0; i < n_local(a); i++) {
		struct agent_rank *r = &a->control.group.ranks[i];

		if (!is_in(r))
			continue;
		r->is_gone = true;
		sw_host_end(a->host, r->id, err, text);
	}
}

/* The job is over for this node.  Those that are left are told when no lcore
 * uses their tensors any more (AGENT_ENDED): they may write them then. */
static void end_group(struct agent *a, int err, const char *text)
{
	struct agent_command order = {.kind = AGENT_LEAVE, .err = err};

	a->control.is_ended = true;
	a->control.end_err = err ? err : SW_ECLOSED;
	snprintf(a->control.end_text, sizeof(a->control.end_text), "%s", text);
	if (err)
		snprintf(order.text, sizeof(order.text), "%.*s",
			(int)sizeof(order.text) - 1, text);
	sw_agent_command(a, &order);
}

void sw_agent_stop(struct agent *a)
{
	a->control.is_stopping = true;
	if (a->control.is_begun && !a->control.is_ended)
		end_group(a, 0, "the agent stops");
}

/* One of a group that has joined is gone. */
static void lose(struct agent *a, struct agent_rank *r, enum sw_host_why why,
	const char *what)
{
	uint32_t local = (uint32_t)(r - a->control.group.ranks);
	char text[2 * SW_TEXT_MAX], which[32] = "";

	r->is_gone = true;
	if (a->control.is_ended)
		return;
	if (why == SW_HOST_CLOSED && !is_anyone_in(a)) {
		end_group(a, 0, "");
		return;
	}
	if (why == SW_HOST_CLOSED && a->control.is_admitted) {
		sw_agent_command(a, &(struct agent_command){.kind = AGENT_GONE,
					    .local = local});
		return;
	}
	if (n_local(a) > 1)
		snprintf(which, sizeof(which), ", local rank %u", local);
	snprintf(text, sizeof(text),
		"rank %u (node %.40s)%s: training process %u: %.80s",
		a->control.first + local, a->daemon.conf.node.name, which,
		r->pid, what);
	end_group(a, SW_EPEER, text);
}

void sw_agent_on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text)
{
	struct agent *a = ctx;
	struct agent_group *g = &a->control.group;
	struct agent_rank *r = rank_of(g, id);

	if (!r) {
		g = &a->control.next;
		r = rank_of(g, id);
	}
	if (!r)
		return;
	if (g == &a->control.group && a->control.is_begun) {
		lose(a, r, why, text);
		return;
	}
	*r = (struct agent_rank){0};
	g->n_here--;
	sw_host_release(a->host, id);
}

void sw_agent_on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	struct agent *a = ctx;
	struct agent_rank *r = rank_of(&a->control.group, id);

	if (!r)
		return;
	a->control.declarer = id;
	a->control.batch = batch;
	sw_agent_command(
		a, &(struct agent_command){.kind = AGENT_DECLARE,
			   .local = (uint32_t)(r - a->control.group.ranks),
			   .tensors = tensors,
			   .n = n});
}

void sw_agent_on_tune(void *ctx, uint32_t id, const struct sw_edge_tune *tune)
{
	struct agent *a = ctx;
	struct agent_rank *r = rank_of(&a->control.group, id);

	if (r)
		sw_agent_command(a,
			&(struct agent_command){.kind = AGENT_TUNE,
				.local = (uint32_t)(r - a->control.group.ranks),
				.tune = *tune});
}

/* --- reports from the lcore --- */

static void on_running(struct agent *a, const struct agent_report *report)
{
	struct agent_command order = {.kind = AGENT_SERVE};
	int err = 0;

	a->control.first = report->first;
	if (a->control.is_ended)
		return;
	a->control.is_admitted = true;
	for (uint32_t i = 0; i < n_local(a) && !err; i++) {
		struct agent_rank *r = &a->control.group.ranks[i];

		order.local = i;
		err = sw_host_attached(a->host, r->id, a->control.first + i,
			report->size, i, n_local(a), &order.client);
		if (err)
			r->is_gone = true; /* it was refused */
		else
			sw_agent_command(a, &order);
	}
	if (err)
		end_group(a, err,
			"the agent has no memory or descriptors left for all "
			"of its local ranks");
}

static void on_left(struct agent *a)
{
	for (uint32_t i = 0; i < n_local(a); i++)
		if (a->control.group.ranks[i].is_here)
			sw_host_release(a->host, a->control.group.ranks[i].id);
	a->control.group = a->control.next;
	a->control.next = (struct agent_group){0};
	a->control.is_begun = a->control.is_ended = a->control.is_admitted =
		false;
	begin_if_complete(a);
}

static void on_declared(struct agent *a, const struct agent_report *report)
{
	if (a->control.is_ended)
		return;
	if (report->err && report->err != SW_EMISMATCH)
		sw_host_declare_failed(a->host, a->control.declarer,
			a->control.batch, report->err, report->text);
	else
		sw_host_declared(a->host, a->control.declarer, a->control.batch,
			report->first, report->err ? report->text : NULL);
}

static void on_status(struct agent *a, const struct agent_report *report)
{
	sw_log(&a->daemon.log, SW_LOG_INFO, "%s", report->text);
	tell_group(a, &a->control.group, report->text);
}

void sw_agent_take_reports(struct agent *a)
{
	struct agent_report report;

	while (sw_spsc_take(&a->control.reports, &report, 1) == 1) {
		if (report.n_lost)
			sw_log(&a->daemon.log, SW_LOG_WARN,
				"%u log lines were dropped: the control thread "
				"did not read them in time",
				report.n_lost);
		switch (report.kind) {
		case AGENT_STATUS:
			on_status(a, &report);
			break;
		case AGENT_RUNNING:
			on_running(a, &report);
			break;
		case AGENT_DECLARED:
			on_declared(a, &report);
			break;
		case AGENT_TUNED:
			sw_host_tuned(a->host,
				a->control.group.ranks[report.local].id,
				report.err, report.text);
			break;
		case AGENT_FAILED:
			/* It leaves by itself. */
			a->control.is_ended = true;
			end_others(a, report.err, report.text);
			break;
		case AGENT_ENDED:
			end_others(a, a->control.end_err, a->control.end_text);
			break;
		case AGENT_LEFT:
			on_left(a);
			break;
		}
	}
}
