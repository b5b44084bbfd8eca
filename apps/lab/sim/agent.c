/* agent.c - a training process in virtual time: it computes, pushes, waits.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/lanes.h"
#include "apps/lab/sim/record.h"
#include "apps/lab/sim/sim.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

static void fail(struct sw_sim *s, const char *what, const char *why)
{
	if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "%s: %s", what, why);
	s->net.is_over = true;
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct sw_sim_agent *a = ctx;

	(void)err;
	if (state == SW_WORKER_RUNNING)
		a->is_running = true;
	if (state == SW_WORKER_LEFT && a->job->change.is_on)
		a->job->change.on_left(a->job);
	if (state == SW_WORKER_FAILED) {
		a->is_failed = true;
		if (!a->job->change.is_on)
			fail(a->job->sim, a->node->name, text);
	}
}

static void on_declared(void *ctx)
{
	struct sw_sim_agent *a = ctx;

	a->is_admitted = true;
	for (uint32_t t = 0; t < a->job->n_tensors && !a->colls; t++)
		for (uint32_t l = 0; l < a->n_local; l++)
			sw_worker_source(
				a->worker, t, l, a->from[t * a->n_local + l]);
}

/* --- rounds --- */

static void end_round(struct sw_sim_job *j)
{
	struct sw_sim *s = j->sim;

	j->n_done = 0;
	j->round_ends[j->n_rounds++] = s->net.now_ns;
	if (j->n_rounds < j->desc->n_rounds) {
		if (j->change.is_on)
			j->change.on_round(j);
		return;
	}
	j->is_done = true;
	s->net.is_over = ++s->n_done == s->n_jobs;
	for (uint32_t i = 0; i < j->n_agents && !s->net.is_over && !j->plain;
		i++) {
		sw_worker_leave(j->agents[i].worker, NULL);
		sw_loop_look(j->agents[i].node->loop);
		sw_sim_node_poke(j->agents[i].node);
	}
}

static void check(struct sw_sim_agent *a, uint32_t tensor, uint32_t round)
{
	struct sw_sim_job *j = a->job;
	uint64_t wrong;
	char what[128];

	if (j->sim->net.is_bare)
		return;
	if (j->high)
		wrong = sw_sim_truth_outside(a->low[tensor], j->high[tensor],
			a->to[tensor], j->n_elems[tensor]);
	else if (a->colls)
		wrong = sw_sim_colls_wrong(a, tensor, round);
	else
		wrong = sw_sim_truth_wrong(&j->truth, SW_SIM_ALL_RANKS, tensor,
			round, 0, a->to[tensor], j->n_elems[tensor]);
	j->n_wrong += wrong;
	if (!wrong)
		return;
	snprintf(what, sizeof(what),
		"%llu of %llu elements of tensor %u are wrong in round %u",
		(unsigned long long)wrong,
		(unsigned long long)j->n_elems[tensor], tensor, round);
	fail(j->sim, a->node->name, what);
}

static uint32_t layer_of(const struct sw_sim_job *j, uint32_t tensor)
{
	uint32_t low = 0, high = j->n_layers - 1;

	while (low < high) {
		uint32_t middle = (low + high + 1) / 2;

		if (j->layers[middle].first <= tensor)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void take_done(struct sw_sim_agent *a, uint32_t tensor, uint64_t round)
{
	struct sw_sim_job *j = a->job;

	a->n_open[layer_of(j, tensor)]--;
	if (a->graph)
		sw_sim_graph_done(a->graph, tensor);
	if (!tensor && round >= j->desc->n_warm &&
		j->n_urgent < (uint64_t)j->desc->n_rounds * j->n_agents)
		j->urgent[j->n_urgent++] =
			j->sim->net.now_ns - a->pushed_ns[tensor];
	if (j->sim->record)
		sw_sim_record_tensor(j->sim->record, a, tensor);
	if (j->sim->trace.to)
		sw_sim_perfetto_tensor(
			&j->sim->trace, a, tensor, round, a->pushed_ns[tensor]);
	if (++a->n_done < j->n_tensors)
		return;
	a->n_done = 0;
	if (++j->n_done == j->n_agents)
		end_round(j);
}

/* Handle a completion.  The cookie counts the local ranks down: the last one
 * completes the tensor. */
static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct sw_sim_agent *a = ctx;
	struct sw_sim_job *j = a->job;
	char why[SW_TEXT_MAX];

	(void)weight;
	if (err) {
		if (!j->is_done && !j->change.is_on)
			fail(j->sim, a->node->name,
				sw_worker_why(a->worker, tensor, why)
					? why
					: sw_error_text(err));
		return;
	}
	if (a->colls) {
		tensor = sw_sim_colls_done(a, cookie);
		cookie >>= 32;
		if (tensor == UINT32_MAX)
			return;
	} else if (local + 1 < a->n_local) {
		return;
	}
	check(a, tensor, (uint32_t)cookie);
	take_done(a, tensor, cookie);
}

void sw_sim_agent_done(struct sw_sim_agent *a, uint32_t tensor)
{
	take_done(a, tensor, a->job->n_rounds);
}

/* --- computing --- */

/* Return whether the round is an asynchronous job's first one, in which rank 0
 * broadcasts its values. */
static bool is_first_value(const struct sw_sim_agent *a)
{
	return a->job->params.mode == SW_MODE_ASYNC && !a->round;
}

static void note_pushed(struct sw_sim_agent *a, uint32_t tensor)
{
	struct sw_sim_job *j = a->job;
	bool is_first = is_first_value(a);
	uint32_t n = is_first ? 1 : a->n_local;

	for (uint32_t l = 0; l < n; l++) {
		uint32_t rank = is_first ? 0 : a->rank * a->n_local + l;

		sw_sim_truth_add(&j->truth, rank, tensor, a->round,
			a->low[tensor], j->n_elems[tensor]);
		if (!is_first || !a->rank)
			sw_sim_truth_add(&j->truth, rank, tensor, a->round,
				j->high[tensor], j->n_elems[tensor]);
	}
}

static void push(struct sw_sim_agent *a, uint32_t tensor)
{
	struct sw_sim_job *j = a->job;
	enum sw_round_kind op =
		is_first_value(a) ? SW_ROUND_COPY : SW_ROUND_SUM;
	int err = 0;

	a->pushed_ns[tensor] = j->sim->net.now_ns;
	if (j->plain) {
		j->push(a, tensor);
		return;
	}
	for (uint32_t l = 0; l < a->n_local && !j->sim->net.is_bare; l++)
		sw_sim_truth_fill(&j->truth, a->rank * a->n_local + l, tensor,
			a->round, a->from[tensor * a->n_local + l],
			j->n_elems[tensor]);
	if (j->high)
		note_pushed(a, tensor);
	if (a->colls)
		sw_sim_colls_call(a, tensor);
	for (uint32_t l = 0; l < a->n_local && !err && !a->colls; l++)
		err = sw_worker_begin(
			a->worker, &(struct sw_worker_round){.tensor = tensor,
					   .step = a->round,
					   .op = op,
					   .local = l,
					   .cookie = a->round});
	if (err)
		fail(j->sim, a->node->name, sw_error_text(err));
	sw_loop_look(a->node->loop);
}

static void push_layer(struct sw_sim_agent *a, uint32_t i)
{
	const struct sw_sim_layer *l = &a->job->layers[i];

	a->n_open[i] = l->n;
	for (uint32_t t = l->first + l->n; t > l->first; t--)
		push(a, t - 1);
}

static uint64_t late_of(struct sw_sim_agent *a)
{
	const struct sw_sim_desc_job *d = a->job->desc;

	return *d->straggler_time && sw_sim_chance(&a->rng, d->straggler)
		       ? sw_sim_straggler_draw(&a->job->straggler, &a->rng)
		       : 0;
}

static uint64_t time_of(struct sw_sim_agent *a)
{
	const struct sw_sim_job *j = a->job;
	uint32_t n = j->n_layers;

	if (a->stage < n)
		return j->layers[a->stage].forward_ns;
	return j->layers[2 * n - 1 - a->stage].backward_ns +
	       (a->stage == n ? late_of(a) : 0);
}

static void end_stage(struct sw_sim_agent *a)
{
	uint32_t n = a->job->n_layers;

	a->is_computing = false;
	if (a->job->sim->trace.to && a->stage_end_ns > a->stage_begin_ns)
		sw_sim_perfetto_stage(&a->job->sim->trace, a,
			a->stage < n ? "forward" : "backward",
			a->stage < n ? a->stage : 2 * n - 1 - a->stage);
	if (a->stage >= n)
		push_layer(a, 2 * n - 1 - a->stage);
	if (++a->stage < 2 * n)
		return;
	a->stage = 0;
	a->round++;
}

uint64_t sw_sim_agent_compute(struct sw_sim_agent *a, uint64_t now_ns)
{
	struct sw_sim_job *j = a->job;
	bool has_pushed = false;

	if (a->graph)
		return sw_sim_graph_compute(a, now_ns, push, late_of);
	for (;;) {
		if (a->is_computing && a->stage_end_ns > now_ns)
			return has_pushed ? now_ns : a->stage_end_ns;
		if (a->is_computing) {
			has_pushed |= a->stage >= j->n_layers;
			end_stage(a);
		}
		if (a->round == j->stop_round ||
			(a->stage < j->n_layers && a->n_open[a->stage]))
			return has_pushed ? now_ns : UINT64_MAX;
		a->is_computing = true;
		a->stage_begin_ns = now_ns;
		a->stage_end_ns = now_ns + time_of(a);
	}
}

/* --- the control thread's part --- */

static int declare_tensors(struct sw_sim_agent *a)
{
	const struct sw_sim_job *j = a->job;
	struct sw_worker_tensor *all = sw_lab_array(j->n_tensors, sizeof(*all));
	char(*names)[16] = sw_lab_array(j->n_tensors, sizeof(*names));
	int err;

	for (uint32_t t = 0; t < j->n_tensors; t++) {
		snprintf(names[t], sizeof(names[t]), "t%u", t);
		all[t] = (struct sw_worker_tensor){.name = names[t],
			.n_elems = j->n_elems[t],
			.dtype = SW_F32,
			.priority = t,
			.is_async = j->params.mode == SW_MODE_ASYNC,
			.base = a->to[t]};
	}
	err = sw_sim_lanes_declare(a, all, j->n_tensors);
	free(all);
	free(names);
	return err;
}

static void declare(struct sw_sim_agent *a)
{
	int err = a->colls ? sw_sim_colls_declare(a) : declare_tensors(a);

	a->is_declared = err != SW_EAGAIN;
	if (err && a->is_declared)
		fail(a->job->sim, a->node->name, sw_error_text(err));
	sw_loop_look(a->node->loop);
}

static void submit(struct sw_sim_agent *a)
{
	int err = sw_sim_colls_submit(a);

	if (err)
		fail(a->job->sim, a->node->name, sw_error_text(err));
	sw_loop_look(a->node->loop);
}

static uint64_t go_on(struct sw_sim_agent *a, uint64_t now_ns)
{
	uint64_t at;

	if (!a->is_running || sw_worker_end_of(a->worker))
		return UINT64_MAX;
	if (!a->is_declared)
		declare(a);
	if (!a->is_admitted)
		return UINT64_MAX;
	at = sw_sim_agent_compute(a, now_ns);
	if (a->colls)
		submit(a);
	return at;
}

static uint64_t step(void *ctx, uint64_t now_ns)
{
	struct sw_sim_agent *a = ctx;
	uint64_t at;

	if (sw_worker_take(a->worker))
		sw_loop_look(a->node->loop);
	at = go_on(a, now_ns);
	sw_sim_lanes_poke(a);
	return at;
}

/* --- the start of an agent --- */

static bool on_keep(void *ctx, uint32_t key)
{
	(void)ctx;
	(void)key;
	return true; /* the simulation has no streams */
}

/* Return core @i of the job's servers.  Cores of one server are consecutive. */
static struct sw_worker_server server_of(
	const struct sw_sim_agent *a, uint32_t i)
{
	struct sw_sim *s = a->job->sim;
	uint32_t n_lcores = a->job->desc->job.server_lcores;
	struct sw_sim_node *n = &s->net.nodes[a->job->servers[i / n_lcores]];

	return (struct sw_worker_server){.name = n->name,
		.path = n == a->node
				? (struct sw_path){.ip = sw_ip_v4(0x7f000001),
					  .udp = 0,
					  .port_i = SW_SIM_LOOPBACK}
				: (struct sw_path){
					  .ip = sw_ip_v4(sw_sim_ip(n->index)),
					  .udp = (uint16_t)(SW_SIM_UDP +
							    i % n_lcores)}};
}

void sw_sim_agent_open(struct sw_sim_agent *a)
{
	struct sw_sim_job *j = a->job;
	struct sw_worker_server servers[SW_MAX_SERVERS];
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.keep = on_keep,
		.ctx = a};
	struct sw_worker_job wj = {.job = j->desc->label,
		.node = a->node->name,
		.member = (uint16_t)a->rank,
		.n_members = (uint16_t)j->n_agents,
		.n_local = (uint16_t)a->n_local,
		.servers = servers,
		.n_servers = j->n_servers * j->desc->job.server_lcores,
		.n_lcores = (uint8_t)j->desc->job.server_lcores,
		.n_colocated = (uint16_t)j->n_colocated,
		.secret = sw_sim_guests_secret(
			&j->sim->guests, (uint32_t)(j - j->sim->jobs))};
	int err;

	if (a->is_open)
		sw_sim_lanes_close(a);
	else
		a->endpoint = a->node->n_endpoints;
	a->is_running = a->is_declared = a->is_admitted = a->is_failed = false;
	for (uint32_t i = 0; i < wj.n_servers; i++)
		servers[i] = server_of(a, i);
	err = sw_sim_lanes_open(a, &events, &wj);
	if (err) {
		fail(j->sim, a->node->name, sw_error_text(err));
		return;
	}
	if (!a->is_open)
		a->node->n_endpoints += a->n_lanes;
	a->is_open = true;
	a->node->step = step;
	a->node->ctx = a;
}
