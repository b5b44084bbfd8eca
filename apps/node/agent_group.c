/* agent_group.c - the agent's control thread: local ranks attach, join, leave.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes of one job form a group, with one process per local rank.  When
 * the group is complete, the control thread orders lcore 0 to join.  If a
 * process ends without closing, all of its groups end, or the whole job if no
 * other process is left.  Once the first process of a group has ended, new
 * processes attach to the next group, which may gather while the current group
 * ends.
 */
#include "apps/node/agent_group.h"

#include <stdarg.h>
#include <stdio.h>

#include "apps/node/agent_job.h"
#include "engine/base/bits.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

#define TELL_FIRST_NS SW_S /* local ranks attach at about the same time */
#define TELL_AGAIN_NS (5 * SW_S)
#define STOP_TEXT     "the agent stops"

/* --- a group gathers --- */

static struct agent_rank *rank_of(struct agent_group *g, uint32_t id)
{
	for (uint32_t i = 0; i < AGENT_LOCAL_MAX; i++)
		if (g->ranks[i].is_here && g->ranks[i].id == id)
			return &g->ranks[i];
	return NULL;
}

static void refuse(struct agent_control *c, uint32_t id, int err,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void refuse(
	struct agent_control *c, uint32_t id, int err, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sw_host_refuse(c->shared->host, id, err, text);
}

/* Find the place of a process in @g.  Returns NULL after refusing the
 * process. */
static struct agent_rank *place_for(struct agent_control *c,
	struct agent_group *g, uint32_t id, uint32_t wanted)
{
	uint32_t i = wanted & ~SW_EDGE_IF_FREE;
	bool is_free;

	/* A launcher counts the ranks of all agents of a machine. */
	if (wanted & SW_EDGE_IF_FREE && wanted != UINT32_MAX)
		i %= sw_agent_n_local(c->shared);
	is_free = i < sw_agent_n_local(c->shared) && !g->ranks[i].is_here;
	if (wanted & SW_EDGE_IF_FREE && !is_free)
		for (i = 0; i + 1 < sw_agent_n_local(c->shared) &&
			    g->ranks[i].is_here;)
			i++;
	if (i >= sw_agent_n_local(c->shared))
		refuse(c, id, SW_EINVAL,
			"local rank %u is out of range: [agent] local_ranks = "
			"%u allows 0 to %u",
			i, sw_agent_n_local(c->shared),
			sw_agent_n_local(c->shared) - 1);
	else if (!g->ranks[i].is_here)
		return &g->ranks[i];
	else if (sw_agent_n_local(c->shared) == 1)
		refuse(c, id, SW_EBUSY,
			"rank %u is already taken by process %u",
			c->shared->daemon.conf.job.agent, g->ranks[i].pid);
	else
		refuse(c, id, SW_EBUSY,
			"local rank %u of %u is already taken by process %u", i,
			sw_agent_n_local(c->shared), g->ranks[i].pid);
	return NULL;
}

static bool is_in(const struct agent_rank *r)
{
	return r->is_here && !r->is_gone;
}

static void tell_group(
	struct agent_control *c, const struct agent_group *g, const char *text)
{
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (is_in(&g->ranks[i]))
			sw_host_status(c->shared->host, g->ranks[i].id, text);
}

/* Tell the attached processes which local ranks are missing. */
static void tell_missing(struct agent_control *c, const struct agent_group *g)
{
	uint64_t missing[SW_LOCAL_WORDS] = {0};
	char text[160], list[64];
	uint32_t n;

	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (!g->ranks[i].is_here)
			sw_bits_add(missing, i);
	n = sw_text_runs(
		list, sizeof(list), missing, sw_agent_n_local(c->shared));
	snprintf(text, sizeof(text),
		"waiting for %u of %u local ranks at node %.32s: %s", n,
		sw_agent_n_local(c->shared), c->shared->daemon.conf.node.name,
		list);
	tell_group(c, g, text);
}

/* Tell the next group, which is complete, which processes it waits for. */
static void tell_who_stays(struct agent_control *c)
{
	enum { EACH = 40 };
	char text[160];
	size_t n = (size_t)snprintf(text, sizeof(text),
		"waiting for the previous job at node %.32s to end:",
		c->shared->daemon.conf.node.name);

	for (uint32_t i = 0;
		i < sw_agent_n_local(c->shared) && n + EACH < sizeof(text); i++)
		if (is_in(&c->group.ranks[i]))
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				" local rank %u (process %u)", i,
				c->group.ranks[i].pid);
	tell_group(c, &c->next, text);
}

static void begin_if_complete(struct agent_control *c)
{
	struct agent_command command = {.kind = AGENT_JOIN};

	if (c->group.n_here < sw_agent_n_local(c->shared))
		return;
	c->is_begun = true;
	c->is_admitted = c->is_ended = false;
	c->n_built = c->n_places = 0;
	c->n_freed = c->n_reused = 0;
	command.err = sw_agent_open_worker(c->shared);
	sw_agent_command(c, &command);
}

/* Return whether the job has ended for one of its processes.  Such a job admits
 * no further process. */
static bool is_closed(const struct agent_control *c)
{
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (c->group.ranks[i].is_gone)
			return true;
	return c->is_ended;
}

void sw_agent_on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t wanted)
{
	struct agent_control *c = ctx;
	bool is_next = c->is_begun && is_closed(c);
	struct agent_group *g = is_next ? &c->next : &c->group;
	struct agent_rank *r;

	if (c->is_stopping) {
		refuse(c, id, SW_ECLOSED, STOP_TEXT);
		return;
	}
	r = place_for(c, g, id, wanted);
	if (!r)
		return;
	*r = (struct agent_rank){.id = id, .pid = pid, .is_here = true};
	g->n_here++;
	if (g->n_here == 1) {
		/* a new job: forget errors of earlier ones */
		g->since_ns = sw_now_ns();
		sw_log_sink_forget(&c->shared->daemon.log_sink);
	}
	g->tell_at_ns = sw_now_ns() + TELL_FIRST_NS;
	sw_log(&c->shared->daemon.log, SW_LOG_INFO,
		"process %u (user %u) attached as local rank %u of %u", pid,
		uid, (uint32_t)(r - g->ranks), sw_agent_n_local(c->shared));
	if (!is_next)
		begin_if_complete(c);
}

static bool is_anyone_in(const struct agent_control *c)
{
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (is_in(&c->group.ranks[i]))
			return true;
	return false;
}

static void tell_if_due(
	struct agent_control *c, struct agent_group *g, uint64_t now_ns)
{
	if (!g->n_here || now_ns < g->tell_at_ns)
		return;
	if (g->n_here < sw_agent_n_local(c->shared))
		tell_missing(c, g);
	else if (g == &c->next && is_anyone_in(c))
		tell_who_stays(c);
	g->tell_at_ns = now_ns + TELL_AGAIN_NS;
}

void sw_agent_tell_waiting(struct agent_control *c)
{
	uint64_t now_ns = sw_now_ns();

	tell_if_due(c, &c->group, now_ns);
	tell_if_due(c, &c->next, now_ns);
}

/* --- a group runs and ends --- */

/* Hang up on all remaining processes with @err. */
static void end_others(struct agent_control *c, int err, const char *text)
{
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++) {
		struct agent_rank *r = &c->group.ranks[i];

		if (!is_in(r))
			continue;
		r->is_gone = true;
		sw_host_end(c->shared->host, r->id, err, text);
	}
}

/* End the job at this node.  The remaining processes learn it (AGENT_ENDED)
 * once no lcore uses their tensors, so that they may write them. */
static void end_group(struct agent_control *c, const struct sw_fault *why)
{
	struct agent_command command = {.kind = AGENT_LEAVE, .why = *why};
	char text[SW_TEXT_MAX];

	c->is_ended = true;
	c->end_err = why->err ? why->err : SW_ECLOSED;
	snprintf(c->end_text, sizeof(c->end_text), "%s",
		sw_fault_text(why, false, NULL, text));
	sw_agent_command(c, &command);
}

/* Refuse the processes of a group that has not begun. */
static void refuse_group(struct agent_control *c, struct agent_group *g)
{
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (g->ranks[i].is_here)
			refuse(c, g->ranks[i].id, SW_ECLOSED, STOP_TEXT);
	*g = (struct agent_group){0};
}

void sw_agent_stop_gathering(struct agent_control *c)
{
	c->is_stopping = true;
	if (!c->is_begun)
		refuse_group(c, &c->group);
	refuse_group(c, &c->next);
}

void sw_agent_stop(struct agent_control *c)
{
	const struct sw_fault why = sw_fault_said(0, STOP_TEXT);

	if (c->is_begun && !c->is_ended)
		end_group(c, &why);
}

/* Handle the end of a process whose group has joined. */
static void drop_rank(struct agent_control *c, struct agent_rank *r,
	enum sw_host_why why, const char *what)
{
	struct agent_command gone = {
		.kind = AGENT_GONE, .local = (uint32_t)(r - c->group.ranks)};
	bool is_clean =
		why == SW_HOST_CLOSED && (c->is_admitted || !is_anyone_in(c));

	r->is_gone = true;
	if (c->is_ended)
		return;
	gone.why = sw_fault_said(is_clean ? 0 : SW_EPEER, is_clean ? "" : what);
	if (!is_clean) {
		gone.why.kind = SW_FAULT_DIED;
		gone.why.one.rank = (uint16_t)(c->first + gone.local);
		gone.why.one.number = r->pid;
		if (sw_agent_n_local(c->shared) > 1)
			gone.why.one.step = (uint16_t)(1 + gone.local);
		sw_fault_at(&gone.why, c->shared->daemon.conf.node.name);
	}
	if (c->is_admitted && is_anyone_in(c))
		sw_agent_command(c, &gone);
	else
		end_group(c, &gone.why);
}

void sw_agent_on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text)
{
	struct agent_control *c = ctx;
	struct agent_group *g = &c->group;
	struct agent_rank *r = rank_of(g, id);

	if (!r) {
		g = &c->next;
		r = rank_of(g, id);
	}
	if (!r)
		return;
	if (g == &c->group && c->is_begun) {
		drop_rank(c, r, why, text);
		return;
	}
	*r = (struct agent_rank){0};
	g->n_here--;
	sw_host_release(c->shared->host, id);
}

/* --- requests of its processes --- */

void sw_agent_on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	struct agent_control *c = ctx;
	struct agent_rank *r = rank_of(&c->group, id);

	if (!r)
		return;
	c->declarer = id;
	c->batch = batch;
	c->building = (struct agent_command){.kind = AGENT_DECLARE,
		.local = (uint32_t)(r - c->group.ranks),
		.tensors = tensors,
		.n = n};
}

void sw_agent_on_tune(void *ctx, uint32_t id, const struct sw_edge_tune *tune)
{
	struct agent_control *c = ctx;
	struct agent_rank *r = rank_of(&c->group, id);

	if (r)
		sw_agent_command(
			c, &(struct agent_command){.kind = AGENT_TUNE,
				   .local = (uint32_t)(r - c->group.ranks),
				   .tune = *tune});
}

void sw_agent_on_end(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct agent_control *c = ctx;
	struct agent_rank *r = rank_of(&c->group, id);

	if (r)
		sw_agent_command(
			c, &(struct agent_command){.kind = AGENT_END,
				   .local = (uint32_t)(r - c->group.ranks),
				   .end = *end});
}

void sw_agent_on_free(void *ctx, uint32_t id, uint32_t item)
{
	struct agent_control *c = ctx;
	struct agent_rank *r = rank_of(&c->group, id);

	if (r)
		sw_agent_command(
			c, &(struct agent_command){.kind = AGENT_FREE,
				   .local = (uint32_t)(r - c->group.ranks),
				   .n = item});
}

/* --- reports from the lcore --- */

static void on_running(
	struct agent_control *c, const struct agent_report *report)
{
	struct agent_command command = {.kind = AGENT_SERVE};
	struct sw_fault why;
	int err = 0;

	c->first = report->first;
	c->size = report->size;
	if (c->is_ended)
		return;
	c->is_admitted = true;
	sw_host_job(c->shared->host, c->shared->daemon.conf.job.name,
		report->epoch, c->shared->daemon.params.mode == SW_MODE_ASYNC);
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared) && !err; i++) {
		struct agent_rank *r = &c->group.ranks[i];

		command.local = i;
		err = sw_host_attached(c->shared->host, r->id, c->first + i,
			report->size, i, sw_agent_n_local(c->shared),
			&command.client);
		if (err)
			r->is_gone = true; /* the host has refused it */
		else
			sw_agent_command(c, &command);
	}
	if (err) {
		why = sw_fault_said(err,
			"the agent has no memory or descriptors left for all "
			"of its local ranks");
		end_group(c, &why);
	}
}

static void on_left(struct agent_control *c)
{
	sw_agent_close_worker(c->shared);
	sw_agent_take_gone(c, true);
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (c->group.ranks[i].is_here)
			sw_host_release(c->shared->host, c->group.ranks[i].id);
	/* the batch belonged to the old group */
	c->building.n = c->n_lanes_built = 0;
	c->group = c->next;
	c->next = (struct agent_group){0};
	c->is_begun = c->is_ended = c->is_admitted = false;
	begin_if_complete(c);
}

static void on_declared(
	struct agent_control *c, const struct agent_report *report)
{
	if (c->is_ended)
		return;
	if (report->err && !report->is_dead)
		sw_host_declare_failed(c->shared->host, c->declarer, c->batch,
			report->err, report->text);
	else
		sw_host_declared(c->shared->host, c->declarer, c->batch,
			report->first, report->err, report->text);
}

void sw_agent_take_reports(struct agent_control *c)
{
	struct agent_report report;

	while (sw_agent_take_report(c, &report)) {
		if (report.n_lost)
			sw_log(&c->shared->daemon.log, SW_LOG_WARN,
				"%u log lines were dropped: the control thread "
				"did not read them in time",
				report.n_lost);
		switch (report.kind) {
		case AGENT_STATUS:
			sw_log(&c->shared->daemon.log,
				report.is_warning ? SW_LOG_WARN : SW_LOG_INFO,
				"%s", report.text);
			tell_group(c, &c->group, report.text);
			break;
		case AGENT_RUNNING:
			on_running(c, &report);
			break;
		case AGENT_DECLARED:
			on_declared(c, &report);
			break;
		case AGENT_ANSWER:
			sw_host_answer(c->shared->host,
				c->group.ranks[report.local].id, report.err,
				report.text);
			break;
		case AGENT_FAILED:
			/* Lcore 0 leaves by itself. */
			c->is_ended = true;
			end_others(c, report.err, report.text);
			break;
		case AGENT_ENDED:
			end_others(c, c->end_err, c->end_text);
			break;
		case AGENT_LEFT:
			on_left(c);
			break;
		}
	}
	sw_agent_take_gone(c, false);
	if (atomic_exchange(&c->shared->has_failed, false))
		sw_host_wake_watches(c->shared->host);
}
