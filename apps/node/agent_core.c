/* agent_core.c - the agent's lcore 0: commands, submits, completions.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of sw_alloc is freed in steps.  First lcore 0 checks that no
 * collective uses it.  The process may still hold frames that were
 * retransmitted from it, so each lcore then waits until its ports have released
 * everything sent before.  Finally the control thread unmaps the memory.
 */
#include "apps/node/agent_core.h"

#include <stdio.h>
#include <string.h>

#include "apps/node/agent_lane.h"
#include "engine/base/error.h"

enum {
	SUBMITS = 32,   /* most submits taken at once from a client's ring */
	TURN_MAX = 256, /* most submits of a client in one turn */
	BURST = 512,    /* most declarations checked in one turn */
	/* without progress, before a wait is reported */
	WAIT_NS = 200000000,
	CLASH = 32, /* most clashes handled in one turn */
	RATE_MIN = 1000000,
};
#define RATE_MAX UINT64_C(10000000000000)

/* --- tuning --- */

static int set_rate(
	struct agent_core *core, uint64_t bit_s, char *why, size_t size)
{
	if (bit_s && (bit_s < RATE_MIN || bit_s > RATE_MAX)) {
		snprintf(why, size,
			"rate %llu: 1 Mb/s to 10 Tb/s, given in bits per "
			"second (10 Gb/s is 10000000000)",
			(unsigned long long)bit_s);
		return SW_EINVAL;
	}
	core->tuning.rate_bit_s = bit_s;
	sw_daemon_set_rate(&core->shared->daemon, bit_s);
	return 0;
}

/* Set the partition or the credit, and keep the other value. */
static int set_own(struct agent_core *core, bool is_part, uint64_t bytes,
	char *why, size_t size)
{
	const struct sw_job_tuning now = sw_worker_tuning(&core->worker);
	const char *fault = sw_sched_check(
		now.policy, is_part ? bytes : 0, is_part ? 0 : bytes);

	if (fault) {
		snprintf(why, size, "%s %llu: %s",
			is_part ? "partition" : "credit",
			(unsigned long long)bytes, fault);
		return SW_EINVAL;
	}
	return sw_worker_set_tuning(&core->worker,
		is_part ? bytes : now.part_bytes,
		is_part ? now.credit_bytes : bytes);
}

static int set_all(struct agent_core *core, const struct sw_edge_tune *t,
	char *why, size_t size)
{
	const struct sw_policy *policy = sw_policy_find(t->policy);
	const char *fault = sw_sched_check(policy, t->value[0], t->value[1]);

	if (fault) {
		snprintf(why, size,
			"policy %s, partition %llu, credit %llu: %s", t->policy,
			(unsigned long long)t->value[0],
			(unsigned long long)t->value[1], fault);
		return SW_EINVAL;
	}
	return sw_worker_tune(&core->worker, policy, t->value[0], t->value[1]);
}

static int set_tuning(struct agent_core *core, const struct sw_edge_tune *t,
	char *why, size_t size)
{
	switch (t->what) {
	case SW_EDGE_PARTITION:
	case SW_EDGE_CREDIT:
		return set_own(core, t->what == SW_EDGE_PARTITION, t->value[0],
			why, size);
	case SW_EDGE_RATE:
		return set_rate(core, t->value[0], why, size);
	default:
		return set_all(core, t, why, size);
	}
}

static void show_tuning(struct agent_core *core)
{
	struct sw_host_tuning *k = &core->tuning;
	struct sw_job_tuning now;

	if (!core->has_worker ||
		(core->are_tuning_shown &&
			k->round == sw_worker_view(&core->worker).round))
		return; /* partition and credit change only with the round */
	core->are_tuning_shown = true;
	now = sw_worker_tuning(&core->worker);
	*k = (struct sw_host_tuning){.partition_bytes = now.part_bytes,
		.credit_bytes = now.credit_bytes,
		.rate_bit_s = k->rate_bit_s,
		.number = now.number,
		.round = sw_worker_view(&core->worker).round,
		.policy = now.policy->name};
	atomic_store(&core->shared->partition_bytes, k->partition_bytes);
	atomic_store(&core->shared->credit_bytes, k->credit_bytes);
	atomic_store(&core->shared->tuning_number, k->number);
	for (uint32_t i = 0; i < sw_agent_n_local(core->shared); i++)
		if (core->clients[i])
			sw_host_show_tuning(core->clients[i], k);
}

static void tune(struct agent_core *core, const struct agent_command *o)
{
	struct agent_report report = {.kind = AGENT_ANSWER, .local = o->local};

	report.err =
		set_tuning(core, &o->tune, report.text, sizeof(report.text));
	core->are_tuning_shown = false;
	if (report.err && !report.text[0])
		snprintf(report.text, sizeof(report.text), "%s",
			sw_error_text(report.err));
	show_tuning(core);
	sw_agent_tell(core, &report);
}

/* --- the end of a group --- */

/* Close or abort a group.  Its open collectives may end after the answer. */
static void end_group(struct agent_core *core, const struct agent_command *o)
{
	struct agent_report report = {.kind = AGENT_ANSWER, .local = o->local};
	const struct sw_edge_end *m = &o->end;

	if (m->what == SW_EDGE_CLOSE_GROUP)
		sw_worker_close_group(&core->worker, m->stream, o->local);
	else
		sw_worker_abort(
			&core->worker, m->stream, o->local, m->err, m->why);
	sw_agent_tell(core, &report);
}

/* --- memory --- */

static void free_item(struct agent_core *core, const struct agent_command *o)
{
	struct sw_host_client *client = core->clients[o->local];

	core->freed.local = o->local;
	core->freed.item = o->n;
	core->freed.at = 0;
	if (!client || !sw_host_forget(client, o->n, &core->freed.base,
			       &core->freed.bytes))
		return;
	if (core->freed.base)
		core->freed.client = client;
	else /* no port refers to a stream's record */
		sw_agent_tell(core, &(struct agent_report){.kind = AGENT_ANSWER,
					    .local = o->local});
}

void sw_agent_find_use(struct agent_core *core)
{
	struct sw_host_client *client = core->freed.client;
	uint32_t local = core->freed.local;

	if (sw_worker_uses(&core->worker, local, core->freed.base,
		    core->freed.bytes, &core->freed.at))
		sw_host_evict(client,
			"freed memory of an open collective, number",
			core->freed.item);
	else if (core->freed.at < SW_TENSORS)
		return;
	else {
		core->n_freeing += !core->is_freeing[local];
		core->is_freeing[local] = true;
		core->freed_at[local] =
			atomic_fetch_add(&core->shared->n_freed, 1) + 1;
	}
	core->freed.client = NULL;
}

static bool are_lanes_done(struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++) {
		struct agent_lane *l = &shared->others[i];

		if (atomic_load(&l->stage) == AGENT_LANE_OPEN &&
			atomic_load(&l->n_freed) !=
				atomic_load(&shared->n_freed))
			return false;
	}
	return true;
}

void sw_agent_work_free(struct agent_core *core)
{
	struct agent_shared *shared = core->shared;

	if (!core->n_freeing ||
		(!core->freeing.is_begun && !are_lanes_done(shared)))
		return;
	if (!core->freeing.is_begun) {
		core->n_marked = atomic_load(&shared->n_freed);
		/* Frames that the lanes have handed over precede the mark of
		 * lcore 0. */
		for (uint32_t i = 0; i < shared->n_others; i++)
			sw_handoff_release(&shared->daemon.handoff, i + 1);
	}
	if (!sw_daemon_release(&shared->daemon, 0, &core->freeing))
		return;
	for (uint32_t i = 0; i < sw_agent_n_local(shared); i++) {
		if (!core->is_freeing[i] ||
			(int32_t)(core->freed_at[i] - core->n_marked) > 0)
			continue;
		core->is_freeing[i] = false;
		core->n_freeing--;
		sw_agent_tell(core, &(struct agent_report){
					    .kind = AGENT_ANSWER, .local = i});
	}
}

/* --- the other lcores' lanes of the worker --- */

static bool end_lanes(struct agent_core *core)
{
	struct agent_shared *shared = core->shared;
	bool all = true;

	for (uint32_t i = 0; i < shared->n_others; i++) {
		int open = AGENT_LANE_OPEN;

		atomic_compare_exchange_strong(
			&shared->others[i].stage, &open, AGENT_LANE_CLOSING);
		if (atomic_load(&shared->others[i].stage) == AGENT_LANE_CLOSED)
			sw_handoff_release(&shared->daemon.handoff, i + 1);
		else
			all = false;
	}
	return all && sw_daemon_release(&shared->daemon, 0, &core->leaving);
}

static bool are_kept(const struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++)
		if (atomic_load(&shared->others[i].stage) == AGENT_LANE_OPEN &&
			!atomic_load_explicit(&shared->others[i].is_kept,
				memory_order_acquire))
			return false;
	return true; /* a closing lane has copied its lent memory */
}

/* --- the end of a job --- */

/* Note that the job has ended.  Only the first report counts. */
static void end_job(struct agent_core *core, const struct agent_report *report)
{
	if (!core->is_ending)
		core->ending = *report;
	core->is_ending = true;
}

/* Report the end of the job, once all lcores have released the clients'
 * tensors: another lane may have written half of a result.  Called before the
 * loop's turn, so that the loop borrows no frame whose bytes are still lent.
 * Returns whether there was work. */
static uint32_t tell_if_ended(struct agent_core *core)
{
	if (!core->is_ending)
		return 0;
	if (!sw_agent_copy_lent(core->shared, 0))
		return 1;
	if (!are_kept(core->shared))
		return 0;
	core->is_ending = false;
	sw_agent_tell(core, &core->ending);
	return 1;
}

/* --- declarations --- */

/* Report that the batch is admitted.  One of its tensors may be dead. */
void sw_agent_on_declared(void *ctx)
{
	struct agent_core *core = ctx;
	const struct agent_command *b = &core->batch;
	struct agent_report report = {
		.kind = AGENT_DECLARED, .first = b->first};
	uint32_t tensor;

	for (uint32_t i = 0;
		sw_worker_has_dead(&core->worker) && i < b->n && !report.err;
		i++) {
		tensor = sw_worker_view(&core->worker).n_local == 1
				 ? report.first + i
				 : b->tensors[i].node_id;
		report.err = sw_worker_death(&core->worker, tensor);
	}
	report.is_dead = report.err != 0;
	if (report.err)
		(void)!sw_worker_why(&core->worker, tensor, report.text);
	sw_agent_tell(core, &report);
}

/* Report that the local rank's declaration differs from an earlier one. */
static void clash(struct agent_core *core, const struct sw_host_tensor *t)
{
	struct sw_worker_tensor d;

	sw_agent_tensor(core->shared, t, 0, &d);
	sw_worker_clash(&core->worker, t->node_id, core->batch.local, &d);
}

static void declare(struct agent_core *core)
{
	const struct agent_command *b = &core->batch;
	uint32_t n_local = sw_worker_view(&core->worker).n_local, n = 0;

	if (sw_agent_is_over(core)) {
		core->is_declaring = false;
		return;
	}
	for (; n < BURST && core->n_looked < b->n && n_local > 1; n++)
		if (!b->tensors[core->n_looked++].result) {
			clash(core, &b->tensors[core->n_looked - 1]);
			n += BURST / CLASH;
		}
	if (n_local > 1 && core->n_looked < b->n)
		return;
	core->is_declaring = false;
	if (!b->n_new)
		sw_agent_on_declared(core);
	else
		/* fails only if the job is over */
		(void)!sw_worker_add(&core->worker);
	/* it may have set timers */
	sw_loop_look(sw_agent_loop(core->shared));
}

/* --- the engine's events --- */

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct agent_core *core = ctx;
	struct agent_report report = {.kind = AGENT_STATUS,
		.err = err,
		.is_warning = state == SW_WORKER_RUNNING};

	snprintf(report.text, sizeof(report.text), "%s", text);
	if (state == SW_WORKER_LEFT)
		return; /* finish_leaving handles it */
	if (state == SW_WORKER_FAILED) {
		report.kind = AGENT_FAILED;
		end_job(core, &report);
		return;
	}
	if (!*text)
		report.kind = AGENT_RUNNING;
	report.size = sw_worker_view(&core->worker).size;
	report.first = sw_worker_view(&core->worker).first;
	report.epoch = sw_worker_view(&core->worker).epoch;
	sw_agent_tell(core, &report);
}

/* Record the begin of a rank's call, or with @end its end, if lcore 0 is
 * traced. */
static void trace_call(struct agent_core *core, uint32_t local, uint32_t tensor,
	uint64_t cookie, const struct sw_completion *end)
{
	struct sw_tracer *tracer = core->shared->daemon.pollers[0].tracer;
	struct sw_trace_call call = {.local = local,
		.cookie = (uint32_t)cookie,
		.is_done = end,
		.has_failed = end && end->status};

	if (tracer &&
		sw_worker_call(&core->worker, tensor, &call.key, &call.number))
		sw_trace_call(tracer, &call);
}

static void complete(struct agent_core *core, uint32_t local, uint32_t tensor,
	const struct sw_completion *c)
{
	const struct sw_fault *f =
		c->status ? sw_worker_fault(&core->worker, tensor) : NULL;
	struct sw_edge_why why;

	trace_call(core, local, tensor, c->handle, c);
	if (f && f->err == c->status) {
		why = (struct sw_edge_why){.conflict = sw_fault_conflict(f),
			.rank = f->one.rank,
			.other = f->other.rank,
			.number = f->other.number};
		(void)!sw_worker_why(&core->worker, tensor, why.text);
		sw_host_explain(core->clients[local], c->handle, &why);
	}
	if (sw_host_complete(core->clients[local], c))
		core->shared->daemon.pollers[0].has_woken = true;
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct agent_core *core = ctx;
	struct sw_completion c = {.handle = cookie, .status = err};

	(void)weight;
	/* If the job has failed, the hang-up that AGENT_FAILED causes ends its
	 * handles: only the hang-up carries the text that names the failed
	 * rank. */
	if (core->clients[local] &&
		sw_worker_view(&core->worker).state != SW_WORKER_FAILED)
		complete(core, local, tensor, &c);
}

static void on_summed(void *ctx)
{
	struct agent_core *core = ctx;

	for (uint32_t i = 0; i < sw_agent_n_local(core->shared); i++)
		if (core->clients[i] && sw_host_note_summed(core->clients[i]))
			core->shared->daemon.pollers[0].has_woken = true;
}

static bool on_keep(void *ctx, uint32_t key)
{
	struct agent_core *core = ctx;

	return sw_agent_keep_stream(core->shared, 0, key);
}

/* Report a closed stream: set its bit before has_gone, which the control thread
 * reads first. */
static void on_gone(void *ctx, uint32_t tensor)
{
	struct agent_core *core = ctx;
	uint32_t i = sw_id_index(tensor);

	core->shared->gone_ids[i] = tensor;
	atomic_fetch_or(&core->shared->gone[i / 64], UINT64_C(1) << i % 64);
	if (!atomic_exchange(&core->shared->has_gone, true))
		sw_host_kick(core->shared->host);
}

static void on_failed(void *ctx)
{
	struct agent_core *core = ctx;

	for (uint32_t i = 0; i < sw_agent_n_local(core->shared); i++)
		if (core->clients[i])
			sw_host_note_failed(core->clients[i]);
	if (!atomic_exchange(&core->shared->has_failed, true))
		sw_host_kick(core->shared->host);
}

struct sw_worker_events sw_agent_events(struct agent_core *core)
{
	return (struct sw_worker_events){.state = on_state,
		.declared = sw_agent_on_declared,
		.done = on_done,
		.keep = on_keep,
		.gone = on_gone,
		.summed = on_summed,
		.failed = on_failed,
		.ctx = core};
}

/* --- the control thread's commands --- */

static void fail_join(struct agent_core *core, int err)
{
	struct agent_report report = {.kind = AGENT_FAILED, .err = err};

	snprintf(report.text, sizeof(report.text), "the agent cannot join: %s",
		sw_error_text(err));
	sw_log(core->shared->parts[0].env.log, SW_LOG_ERROR, "%s", report.text);
	sw_agent_tell(core, &report);
	sw_agent_tell(core, &(struct agent_report){.kind = AGENT_LEFT});
}

/* Begin to drive the worker, once this lcore's clock has reached the time at
 * which the control thread opened the worker. */
static uint32_t join(struct agent_core *core, uint64_t now_ns)
{
	if (now_ns < sw_worker_view(&core->worker).now_ns)
		return 0;
	core->is_joining = core->is_leaving = false;
	core->has_worker = true;
	for (uint32_t i = 0; i < core->shared->n_others; i++)
		atomic_store(&core->shared->others[i].stage, AGENT_LANE_OPEN);
	sw_poller_set(&core->shared->daemon.pollers[0],
		sw_daemon_endpoint(&core->shared->daemon, 0),
		sw_worker_engine(&core->worker));
	sw_loop_look(sw_agent_loop(core->shared));
	return 1;
}

static void leave(struct agent_core *core, const struct agent_command *o)
{
	memset(core->clients, 0, sizeof(core->clients));
	memset(core->is_freeing, 0, sizeof(core->is_freeing));
	core->n_freeing = 0;
	if (!core->has_worker)
		return; /* LEFT and this command have crossed */
	core->is_leaving = true;
	sw_worker_leave(&core->worker, o->why.err ? &o->why : NULL);
	end_job(core, &(struct agent_report){.kind = AGENT_ENDED});
}

static uint32_t take_commands(struct agent_core *core, uint64_t now_ns)
{
	struct agent_command o;

	if (core->freed.client) { /* the last free is unfinished */
		sw_agent_find_use(core);
		return 1;
	}
	if (core->is_joining)
		return join(core, now_ns);
	if (!sw_agent_take_command(core, &o))
		return 0;
	switch (o.kind) {
	case AGENT_JOIN:
		core->is_joining = !o.err;
		if (o.err)
			fail_join(core, o.err);
		break;
	case AGENT_SERVE:
		if (core->has_worker && !core->is_leaving)
			core->clients[o.local] = o.client;
		core->are_tuning_shown = false;
		break;
	case AGENT_GONE:
		core->clients[o.local] = NULL;
		core->n_freeing -= core->is_freeing[o.local];
		core->is_freeing[o.local] = false;
		if (core->has_worker && !core->is_leaving && o.why.err)
			sw_worker_local_died(&core->worker, o.local, &o.why);
		else if (core->has_worker && !core->is_leaving)
			sw_worker_local_left(&core->worker, o.local);
		break;
	case AGENT_DECLARE:
		core->batch = o;
		core->is_declaring = true;
		core->n_looked = 0;
		break;
	case AGENT_TUNE:
		if (!sw_agent_is_over(core))
			tune(core, &o);
		break;
	case AGENT_END:
		if (!sw_agent_is_over(core))
			end_group(core, &o);
		break;
	case AGENT_FREE:
		free_item(core, &o);
		break;
	case AGENT_LEAVE:
		leave(core, &o);
		break;
	}
	sw_loop_look(
		/* the command may have set timers */
		sw_agent_loop(core->shared));
	return 1;
}

/* Release everything, once each server has acknowledged the leave or has not
 * answered in time. */
static void finish_leaving(struct agent_core *core)
{
	if (!core->has_worker ||
		sw_worker_view(&core->worker).state != SW_WORKER_LEFT ||
		core->is_ending)
		return;
	if (!end_lanes(core))
		return;
	sw_poller_set(&core->shared->daemon.pollers[0],
		sw_daemon_endpoint(&core->shared->daemon, 0), NULL);
	core->has_worker = false;
	memset(core->clients, 0, sizeof(core->clients));
	core->freed.client = NULL;
	sw_agent_tell(core, &(struct agent_report){.kind = AGENT_LEFT});
}

/* --- submits of training processes --- */

static uint32_t take_submits(struct agent_core *core, uint32_t local)
{
	struct sw_host_client *client = core->clients[local];
	struct sw_host_submit list[SUBMITS];
	uint32_t n = sw_host_take(client, list, SUBMITS);

	for (uint32_t i = 0; i < n; i++) {
		struct sw_worker_round round = {.tensor = list[i].tensor,
			.step = list[i].step,
			.local = local,
			.cookie = list[i].handle,
			.lacks = list[i].lacks};
		int err;

		if (list[i].root) {
			round.op = SW_ROUND_COPY;
			round.root = (uint16_t)(list[i].root - 1);
		}
		trace_call(core, local, list[i].tensor, list[i].handle, NULL);
		err = sw_worker_begin(&core->worker, &round);
		struct sw_completion c = {
			.handle = list[i].handle, .status = err};

		if (err == SW_EBUSY)
			sw_host_evict(client, "pushed a tensor twice, tensor",
				list[i].tensor);
		else if (err == SW_EINVAL && round.lacks)
			sw_host_evict(client,
				"pushed a tensor with an invalid root or size "
				"of missing bytes, tensor",
				list[i].tensor);
		else if (err)
			complete(core, local, list[i].tensor, &c);
	}
	return n;
}

/* Take the grown parts of tensors, even while no new push_pull is taken. */
static uint32_t take_grown(struct agent_core *core, uint32_t local)
{
	struct sw_host_client *client = core->clients[local];
	uint32_t n = 0, tensor;
	uint64_t lacks;

	while (n < SUBMITS && sw_host_take_grown(client, &tensor, &lacks)) {
		if (sw_worker_grow(&core->worker, tensor, local, lacks))
			sw_host_evict(client,
				"grew a tensor backwards, beyond its size or "
				"by no whole elements, tensor",
				tensor);
		n++;
	}
	return n;
}

/* Begin a collective.  Returns true if it has begun or ended with an error;
 * false if it has to wait. */
static bool begin_coll(
	struct agent_core *core, uint32_t local, const struct sw_host_coll *m)
{
	struct sw_worker_coll coll = {.stream = m->stream,
		.local = local,
		.kind = (enum sw_coll_kind)m->kind,
		.dtype = m->dtype,
		.op = (enum sw_reduce_op)m->op,
		.scale = m->scale,
		.call = m->call,
		.n_elems = m->count,
		.whole = m->whole,
		.stride = m->stride,
		.root = m->root,
		.from = m->from,
		.to = m->to,
		.from_bytes = m->from_bytes,
		.to_bytes = m->to_bytes,
		.cookie = m->handle};
	struct sw_completion c = {.handle = m->handle,
		.status = sw_worker_coll(&core->worker, &coll)};

	if (c.status == SW_EAGAIN)
		return false;
	trace_call(core, local, m->stream, m->handle, NULL);
	if (c.status)
		complete(core, local, m->stream, &c);
	return true;
}

static uint32_t take_colls(struct agent_core *core, uint32_t local)
{
	struct sw_host_client *client = core->clients[local];
	struct sw_host_coll m;
	uint32_t n_left = SUBMITS;

	while (sw_host_take_coll(client, &m, &n_left))
		if (!begin_coll(core, local, &m))
			sw_host_put_back(client, &m);
	if (n_left < SUBMITS)
		sw_loop_look(sw_agent_loop(core->shared));
	return SUBMITS - n_left;
}

/* Serve the clients in turn, so that one with many submits delays no other. */
static uint32_t take_clients(struct agent_core *core)
{
	uint32_t n_local = sw_agent_n_local(core->shared), n = 0;
	bool is_draining = atomic_load_explicit(
		&core->shared->is_draining, memory_order_relaxed);

	for (uint32_t i = 0; i < n_local && n < TURN_MAX; i++) {
		uint32_t local = core->next_client;

		core->next_client = (local + 1) % n_local;
		if (core->clients[local] && !is_draining)
			n += take_submits(core, local) +
			     take_colls(core, local);
		if (core->clients[local])
			n += take_grown(core, local);
	}
	return n;
}

/* --- the poller's functions --- */

/* Describe the waits and this lcore's sessions, if the control thread has
 * asked. */
static void show_waits(struct agent_core *core)
{
	struct agent_shared *s = core->shared;
	bool has_worker = core->has_worker && !sw_agent_is_over(core);

	if (!sw_agent_is_asked(s, 0))
		return;
	if (has_worker &&
		!sw_worker_describe(&core->worker, WAIT_NS, &s->waits))
		return; /* the next turn continues */
	sw_agent_describe(s, 0, has_worker ? &core->worker : NULL);
}

uint32_t sw_agent_work(void *ctx, uint64_t now_ns)
{
	struct agent_core *core = ctx;
	uint32_t n = take_commands(core, now_ns), n_taken = 0;

	if (core->has_worker)
		n_taken = sw_worker_take(&core->worker);
	if (n_taken)
		sw_loop_look(sw_agent_loop(core->shared));
	n += n_taken;
	if (core->is_declaring)
		declare(core);
	sw_agent_work_free(core);
	if (core->has_worker &&
		sw_worker_view(&core->worker).state == SW_WORKER_RUNNING)
		n += take_clients(core);
	show_tuning(core);
	n += tell_if_ended(core);
	show_waits(core);
	finish_leaving(core);
	atomic_store_explicit(&core->shared->n_open,
		core->has_worker ? sw_worker_view(&core->worker).n_open : 0,
		memory_order_relaxed);
	return n;
}

static uint32_t list_clients(const struct agent_core *core,
	struct sw_host_client *clients[AGENT_LOCAL_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sw_agent_n_local(core->shared); i++)
		if (core->clients[i])
			clients[n++] = core->clients[i];
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

bool sw_agent_are_computing(void *ctx)
{
	struct sw_host_client *clients[AGENT_LOCAL_MAX];
	uint32_t n = list_clients(ctx, clients);

	return sw_host_are_computing(clients, n);
}
