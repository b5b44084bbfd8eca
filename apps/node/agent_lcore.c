/* agent_lcore.c - the agent's polling lcore: commands, submits, completions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

enum { SUBMITS = 32 }; /* taken in one turn */

static struct sw_loop *loop_of(struct agent *a)
{
	return &a->daemon.pollers[0].loop;
}

/* --- the end of a job --- */

/* The worker has ended; what is told first is @report. */
static void end(struct agent *a, const struct agent_report *report)
{
	if (!a->core.is_ending)
		a->core.ending = *report;
	a->core.is_ending = true;
}

/* Before a turn, so that no frame is borrowed whose bytes are still lent.  The
 * clients are told when all lcores have released their tensors: a result of
 * another lane may be half written. */
static void tell_if_ended(struct agent *a)
{
	if (!a->core.is_ending)
		return;
	sw_agent_copy_lent(a, 0);
	if (!sw_agent_are_kept(a))
		return;
	a->core.is_ending = false;
	sw_agent_tell(a, &a->core.ending);
}

/* --- what the engine says --- */

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct agent *a = ctx;
	struct agent_report report = {.kind = AGENT_STATUS, .err = err};

	snprintf(report.text, sizeof(report.text), "%s", text);
	if (state == SW_WORKER_LEFT)
		return; /* sw_agent_work sees it */
	if (state == SW_WORKER_FAILED) {
		report.kind = AGENT_FAILED;
		end(a, &report);
		return;
	}
	if (!*text)
		report.kind = AGENT_RUNNING;
	report.size = sw_worker_view(&a->core.worker).size;
	report.first = sw_worker_view(&a->core.worker).first;
	sw_agent_tell(a, &report);
}

/* The batch is admitted; one of it may be dead. */
static void on_declared(void *ctx)
{
	struct agent *a = ctx;
	struct agent_report report = {.kind = AGENT_DECLARED,
		.first = sw_worker_view(&a->core.worker).n_tensors -
			 a->core.n_batch};
	const char *why = NULL;

	for (uint32_t i = 0; i < a->core.n_in_batch && !why; i++)
		why = sw_worker_why(&a->core.worker,
			sw_worker_view(&a->core.worker).n_local == 1
				? report.first + i
				: a->core.batch_tensors[i].node_i);
	if (why) {
		report.err = SW_EMISMATCH;
		snprintf(report.text, sizeof(report.text), "%s", why);
	}
	sw_agent_tell(a, &report);
}

static void complete(struct agent *a, uint32_t local, uint32_t tensor,
	const struct sw_completion *c)
{
	const char *why = sw_worker_why(&a->core.worker, tensor);

	if (c->status == SW_EMISMATCH && why)
		sw_host_explain(a->core.clients[local], c->handle, why);
	a->core.has_woken |= sw_host_complete(a->core.clients[local], c);
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct agent *a = ctx;
	struct sw_completion c = {.handle = cookie, .status = err};

	(void)weight;
	/* A failed job ends its handles by the hang-up that AGENT_FAILED
	 * causes: that carries the sentence which names who failed. */
	if (a->core.clients[local] &&
		sw_worker_view(&a->core.worker).state != SW_WORKER_FAILED)
		complete(a, local, tensor, &c);
}

/* Nothing is begun or answered any more: each process will be told so by a
 * hang-up, with the sentence that says why. */
static bool is_over(const struct agent *a)
{
	return !a->core.has_worker || a->core.is_leaving ||
	       sw_worker_end_of(&a->core.worker);
}

/* --- the control thread's commands --- */

static void fail_join(struct agent *a, int err)
{
	struct agent_report report = {.kind = AGENT_FAILED, .err = err};

	snprintf(report.text, sizeof(report.text), "the agent cannot join: %s",
		sw_error_text(err));
	sw_log(&a->daemon.log, SW_LOG_ERROR, "%s", report.text);
	sw_agent_tell(a, &report);
	sw_agent_tell(a, &(struct agent_report){.kind = AGENT_LEFT});
}

static void join(struct agent *a, uint64_t now_ns)
{
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX];
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4];
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = a};
	struct sw_worker_job job;
	int err;

	sw_agent_job(a, &job, servers, names);
	sw_agent_lane_env(a, 0, &a->core.env);
	err = sw_worker_open(&a->core.worker, &a->daemon.params, &a->core.env,
		&events, &job, sw_handoff_ports(&a->daemon.handoff, 0),
		a->daemon.n_ports, now_ns);
	if (err) {
		fail_join(a, err);
		return;
	}
	sw_agent_start_lanes(a);
	a->core.has_worker = true;
	a->core.is_leaving = false;
	sw_loop_set(loop_of(a), sw_daemon_endpoint(&a->daemon, 0),
		sw_worker_node(&a->core.worker));
}

static struct sw_worker_tensor tensor_of(
	const struct sw_host_tensor *t, bool is_alone)
{
	return (struct sw_worker_tensor){.name = t->name,
		.n_elems = t->n_elems,
		.dtype = t->dtype,
		.priority = t->priority,
		.base = is_alone ? t->base : t->result,
		.is_async = t->is_async};
}

/* Those tensors of a batch that no local rank has declared before. */
static uint32_t list_new(struct agent *a, const struct agent_command *o,
	struct sw_worker_tensor *list)
{
	bool is_alone = sw_worker_view(&a->core.worker).n_local == 1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		const struct sw_host_tensor *t = &o->tensors[i];

		if (!is_alone &&
			t->node_i < sw_worker_view(&a->core.worker).n_tensors)
			continue;
		list[n++] = tensor_of(t, is_alone);
	}
	return n;
}

/* Where a local rank has its contributions; or it declares something else than
 * those before it. */
static void take_source(
	struct agent *a, const struct sw_host_tensor *t, uint32_t local)
{
	struct sw_worker_tensor d = tensor_of(t, false);

	if (t->result)
		sw_worker_source(&a->core.worker, t->node_i, local, t->base);
	else
		sw_worker_clash(&a->core.worker, t->node_i, local, &d);
}

/* In the turn of its order, and again until there is memory for it. */
static void declare(struct agent *a)
{
	struct sw_worker_tensor list[SW_TENSORS];
	struct agent_report report = {.kind = AGENT_DECLARED};
	const struct agent_command *o = &a->core.declaring;

	if (is_over(a)) {
		a->core.declaring.n = 0;
		return;
	}
	a->core.batch_tensors = o->tensors;
	a->core.n_in_batch = o->n;
	a->core.n_batch = list_new(a, o, list);
	if (a->core.n_batch)
		report.err = sw_worker_declare(
			&a->core.worker, list, a->core.n_batch);
	if (report.err == SW_EAGAIN)
		return;
	sw_loop_look(loop_of(a)); /* timers may have been set */
	for (uint32_t i = 0; i < o->n && !report.err &&
			     sw_worker_view(&a->core.worker).n_local > 1;
		i++)
		take_source(a, &o->tensors[i], o->local);
	a->core.declaring.n = 0;
	if (!a->core.n_batch)
		on_declared(a);
	if (!report.err)
		return; /* the servers are asked */
	snprintf(report.text, sizeof(report.text), "%s",
		sw_error_text(report.err));
	sw_agent_tell(a, &report);
}

static void leave(struct agent *a, const struct agent_command *o)
{
	memset(a->core.clients, 0, sizeof(a->core.clients));
	if (!a->core.has_worker)
		return; /* LEFT was told: this order crossed it */
	a->core.is_leaving = true;
	sw_worker_leave(&a->core.worker, o->err, o->text);
	end(a, &(struct agent_report){.kind = AGENT_ENDED});
}

static uint32_t take_commands(struct agent *a, uint64_t now_ns)
{
	struct agent_command o;

	if (sw_spsc_take(&a->core.commands, &o, 1) != 1)
		return 0;
	switch (o.kind) {
	case AGENT_JOIN:
		join(a, now_ns);
		break;
	case AGENT_SERVE:
		if (a->core.has_worker && !a->core.is_leaving)
			a->core.clients[o.local] = o.client;
		a->core.are_tuning_shown = false;
		break;
	case AGENT_GONE:
		a->core.clients[o.local] = NULL;
		if (a->core.has_worker && !a->core.is_leaving)
			sw_worker_local_left(&a->core.worker, o.local);
		break;
	case AGENT_DECLARE:
		a->core.declaring = o;
		break;
	case AGENT_TUNE:
		if (!is_over(a))
			sw_agent_tune(a, &o);
		break;
	case AGENT_LEAVE:
		leave(a, &o);
		break;
	}
	sw_loop_look(loop_of(a)); /* timers may have been set */
	return 1;
}

/* All servers know that we left, or do not answer: release everything. */
static void finish_leaving(struct agent *a)
{
	if (!a->core.has_worker ||
		sw_worker_view(&a->core.worker).state != SW_WORKER_LEFT ||
		a->core.is_ending)
		return;
	if (!sw_agent_end_lanes(a))
		return;
	sw_loop_set(loop_of(a), sw_daemon_endpoint(&a->daemon, 0), NULL);
	sw_worker_close(&a->core.worker);
	a->core.has_worker = false;
	memset(a->core.clients, 0, sizeof(a->core.clients));
	sw_agent_tell(a, &(struct agent_report){.kind = AGENT_LEFT});
}

/* --- what the training process submits --- */

static uint32_t take_submits(struct agent *a, uint32_t local)
{
	struct sw_host_client *client = a->core.clients[local];
	struct sw_submit list[SUBMITS];
	uint32_t n = sw_host_take(client, list, SUBMITS);

	for (uint32_t i = 0; i < n; i++) {
		struct sw_worker_round round = {.tensor = list[i].tensor,
			.step = list[i].step,
			.local = local,
			.cookie = list[i].handle};
		int err;

		if (list[i].root) {
			round.op = SW_OPERATION_COPY;
			round.root = (uint16_t)(list[i].root - 1);
		}
		err = sw_worker_begin(&a->core.worker, &round);
		struct sw_completion c = {
			.handle = list[i].handle, .status = err};

		if (err == SW_EBUSY)
			sw_host_evict(client, "pushed a tensor twice, tensor",
				list[i].tensor);
		else if (err)
			complete(a, local, list[i].tensor, &c);
	}
	return n;
}

static uint32_t take_lanes(struct agent *a)
{
	uint32_t n = a->core.has_worker ? sw_worker_take(&a->core.worker) : 0;

	if (n)
		sw_loop_look(loop_of(a));
	return n;
}

/* Whom we woke may share our core, and has waited long enough: it would get the
 * core when its slice comes, which may be milliseconds. */
static void step_aside(struct agent *a)
{
	if (!a->core.has_woken)
		return;
	a->core.has_woken = false;
	sched_yield();
}

uint32_t sw_agent_work(void *ctx, uint64_t now_ns)
{
	struct agent *a = ctx;
	uint32_t n = take_commands(a, now_ns);

	n += take_lanes(a);
	sw_agent_lane_turn(a, 0);
	if (a->core.declaring.n)
		declare(a);
	if (sw_worker_view(&a->core.worker).state == SW_WORKER_RUNNING &&
		!atomic_load_explicit(
			&a->shared.is_draining, memory_order_relaxed))
		for (uint32_t i = 0; i < AGENT_LOCAL_MAX; i++)
			n += a->core.clients[i] ? take_submits(a, i) : 0;
	sw_agent_show_tuning(a);
	tell_if_ended(a);
	finish_leaving(a);
	step_aside(a);
	atomic_store_explicit(&a->shared.n_open,
		a->core.has_worker ? sw_worker_view(&a->core.worker).n_open : 0,
		memory_order_relaxed);
	return n;
}

static uint32_t list_clients(
	const struct agent *a, struct sw_host_client *clients[AGENT_LOCAL_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < AGENT_LOCAL_MAX; i++)
		if (a->core.clients[i])
			clients[n++] = a->core.clients[i];
	return n;
}

void sw_agent_rest(void *ctx, const int *fds, uint32_t n_fds, uint64_t max_ns)
{
	struct sw_host_client *clients[AGENT_LOCAL_MAX];
	uint32_t n = list_clients(ctx, clients);

	sw_host_idle_wait(
		clients, n, fds, n_fds, (uint32_t)(max_ns / 1000 + 1));
}

void sw_agent_nap(void *ctx, uint64_t max_ns)
{
	struct sw_host_client *clients[AGENT_LOCAL_MAX];
	uint32_t n = list_clients(ctx, clients);

	sw_host_nap(clients, n, (uint32_t)(max_ns / 1000 + 1));
}

bool sw_agent_is_awaited(void *ctx)
{
	struct sw_host_client *clients[AGENT_LOCAL_MAX];
	uint32_t n = list_clients(ctx, clients);

	return sw_host_are_awaited(clients, n);
}

void sw_agent_close(struct agent *a)
{
	for (uint32_t i = 0; i < a->n_others; i++)
		if (a->others[i].is_open)
			sw_worker_close(&a->others[i].worker);
	if (a->core.has_worker)
		sw_worker_close(&a->core.worker);
	a->core.has_worker = false;
}
