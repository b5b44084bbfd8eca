/* worker.c - the training loop of a simulated worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/link.h"
#include "test/sim/job.h"

/* Copy the payloads that the lcore's loopback has borrowed, as an agent's
 * lcores do between two turns. Return the node's server at this lcore, or
 * NULL. */
static struct sw_server *copy_sent(struct sim_worker *w, uint32_t lane)
{
	struct sim_job *job = w->job;
	uint32_t first = w->node->index * job->n_lcores;

	if (!job->n_colocated || job->is_careless)
		return NULL;
	sw_loopback_copy_lent(w->lcores[lane]->loopback);
	return lane < job->n_lcores ? job->servers[first + lane] : NULL;
}

static bool on_keep(void *ctx, uint32_t key)
{
	struct sim_worker *w = ctx;
	struct sw_server *srv = copy_sent(w, w->hearing);

	return !srv || sw_server_keep_stream(srv, key);
}

static bool copy_lent(struct sim_worker *w, uint32_t lane)
{
	struct sw_server *srv = copy_sent(w, lane);

	return !srv || sw_server_copy_lent(srv);
}

/* When all lanes have ended, overwrite the buffers, as the process may after
 * the end of its job. */
static void copy_if_ended(struct sim_worker *w, uint32_t lane)
{
	const struct sw_worker *engine =
		lane ? &w->others[lane - 1] : &w->engine;
	struct sim_job *job = w->job;

	if (w->kept >> lane & 1 || !sw_worker_end_of(engine))
		return;
	if (!copy_lent(w, lane)) {
		sw_loop_look(
			&w->lcores[lane]->loop); /* continue in the next turn */
		return;
	}
	w->kept |= 1u << lane;
	if (w->kept + 1 != 1u << w->n_lanes || !job->params.has_crc)
		return;
	sim_groups_give_back(w);
	for (uint32_t t = 0; t < job->n_tensors; t++)
		memset(w->data[t], 0x5a, job->n_elems[t] * job->elem_bytes);
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct sim_worker *w = ctx;

	if (state == SW_WORKER_RUNNING && !w->is_running)
		sim_mtus_check(w);
	w->is_running |= state == SW_WORKER_RUNNING;
	w->has_left |= state == SW_WORKER_LEFT;
	if (state != SW_WORKER_FAILED) {
		if (text[0])
			snprintf(w->told, sizeof(w->told), "%s", text);
		return;
	}
	w->has_failed = true;
	w->failed_ns = w->job->net.now_ns;
	w->err = err;
	snprintf(w->text, sizeof(w->text), "%s", text);
}

static void on_declared(void *ctx)
{
	struct sim_worker *w = ctx;
	struct sim_job *job = w->job;

	w->n_admitted = w->n_declared;
	for (uint32_t t = 0; t < w->n_admitted; t++) {
		uint32_t key = w->engine.tensors[w->index[t]].key;

		if (key != SW_KEY_NONE) /* SW_KEY_NONE: refused */
			job->by_key[sim_job_of(job, w->rank)][key] = t;
		for (uint32_t l = 0; l < w->n_local; l++)
			sw_worker_source(
				&w->engine, w->index[t], l, w->from[l][t]);
	}
	sim_groups_declared(w);
}

/* The call failed: overwrite the buffer, as its process may. */
static void die(struct sim_worker *w, uint32_t t)
{
	struct sim_job *job = w->job;

	w->dead_in[t] = 1 + w->round[t];
	for (uint32_t l = 0; l < w->n_local && job->params.has_crc; l++)
		memset(w->from[l][t], 0x5a, job->n_elems[t] * job->elem_bytes);
}

/* Does the error concern only a tensor? */
static bool is_of_dead(const struct sim_worker *w, int err)
{
	return err == SW_EMISMATCH ||
	       (err == SW_EPEER && !sw_worker_end_of(&w->engine));
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct sim_worker *w = ctx;
	uint32_t t = (uint32_t)cookie;

	(void)tensor;
	if (cookie & SIM_COOKIE_COLL) {
		sim_groups_done(w, cookie, err, weight);
		return;
	}
	w->asked[t] &= ~(1u << local);
	w->done_ns[t] = w->job->net.now_ns;
	if (err) {
		w->n_errors++;
		w->last_err = err;
		if (is_of_dead(w, err))
			die(w, t);
		return;
	}
	if (w->asked[t])
		return; /* the other local ranks complete next */
	if (!w->job->is_edited)
		sim_oracle_check(w, t, weight);
	w->round[t]++;
	sim_grow_check(w, t);
	if (sim_chance(&w->job->rng, 200000))
		w->pause_until_ns = w->job->net.now_ns +
				    sim_below(&w->job->rng, w->job->pause_ns);
}

static struct sw_worker_tensor declaration(
	struct sim_worker *w, uint32_t t, char *name)
{
	struct sim_job *job = w->job;
	struct sw_worker_tensor d = {.name = sim_job_name(job, t, name),
		.n_elems = job->n_elems[t],
		.dtype = job->dtype,
		.priority = t * (job->priority_step ? job->priority_step : 1),
		.base = w->data[t],
		.granules = sim_grow_granules(w, t),
		.is_async = sim_job_is_async(job, t)};

	if (job->is_by_use)
		d.priority = SW_PRIORITY_BY_USE;
	if (t == 0 && w->rank == job->odd_one) {
		d.n_elems += job->odd_elems;
		d.priority += job->odd_priority;
		d.dtype = job->has_odd_dtype ? SW_F32 : d.dtype;
	}
	if (job->mismatch == SIM_OTHER_SIZE && sim_mismatch_is_of(w, t, 0))
		d.n_elems++;
	return d;
}

/* Declare in an order of this worker's own, sometimes in two batches. */
static void declare(struct sim_worker *w)
{
	struct sim_job *job = w->job;
	uint32_t first = w->n_declared;
	uint32_t n = (first ? job->n_tensors : job->n_first) - first;
	uint32_t from = (uint32_t)sim_below(&job->rng, n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t t = first + (from + i) % n;

		w->index[t] = w->engine.n_tensors + i;
		w->batch[i] = declaration(w, t, w->names[i]);
	}
	w->n_declared += n;
	if (!first)
		n += sim_groups_declare(w, &w->batch[n], &w->names[n], n);
	w->n_batch = n;
	w->built = 0;
}

/* Give the control thread a turn, or none: it builds the batch for another
 * lane, in any order. */
static void control_step(struct sim_worker *w)
{
	uint64_t *rng = &w->job->rng;
	uint32_t lane = (uint32_t)sim_below(rng, w->n_lanes);
	struct sw_worker *engine = lane ? &w->others[lane - 1] : &w->engine;
	int err;

	if (!w->n_batch || w->built >> lane & 1 || sim_chance(rng, 300000))
		return;
	err = sw_worker_build(engine, w->batch, w->n_batch);
	if (err == SW_EAGAIN)
		return; /* the memory is not ready */
	if (err)
		abort();
	w->built |= 1u << lane;
}

/* All lanes have the batch: send the command to lane 0. */
static void declare_built(struct sim_worker *w)
{
	w->node->loop.tick_at_ns = 0; /* try again soon */
	if (w->built + 1 != 1u << w->n_lanes)
		return;
	if (sw_worker_add(&w->engine))
		abort();
	w->n_batch = 0;
}

void sim_worker_submit(struct sim_worker *w, uint32_t t, uint32_t local)
{
	struct sim_job *job = w->job;
	uint32_t odd = w->rank == job->odd_one ? job->odd_step : 0;
	uint32_t i = sim_job_of(job, w->rank);
	uint32_t root = sim_oracle_root(job, i, t, w->round[t]);
	struct sw_worker_round round = {.tensor = w->index[t],
		.step = w->round[t] + odd,
		.local = local,
		.cookie = t};
	int err;

	if (root < SIM_WORKERS) {
		round.op = SW_ROUND_COPY;
		for (uint32_t r = i; r < root; r += job->n_jobs)
			round.root += job->n_local[r];
		round.root += t % job->n_local[root];
	}
	if (sim_mismatch_is_of(w, t, local))
		sim_mismatch_apply(w, &round);
	sim_oracle_fill(w, t, local);
	round.lacks = sim_grow_hold_back(w, t, local);
	w->asked[t] |= 1u << local;
	w->node->wake_ns = sw_min64(w->node->wake_ns,
		sw_max64(w->job->net.now_ns, w->node->gap_until_ns));
	err = sw_worker_begin(&w->engine, &round);
	if (is_of_dead(w, err)) {
		w->asked[t] &= ~(1u << local);
		die(w, t);
	} else if (err) {
		abort();
	}
	w->node->loop.tick_at_ns = 0;
}

static uint32_t rounds_of(const struct sim_worker *w)
{
	const struct sim_job *job = w->job;

	return w->rank == job->odd_one && job->odd_rounds ? job->odd_rounds
							  : job->n_rounds;
}

bool sim_worker_has_completed(const struct sim_worker *w)
{
	for (uint32_t t = 0; t < w->job->n_tensors; t++)
		if (w->round[t] < rounds_of(w) && !w->dead_in[t])
			return false;
	return sim_groups_have_completed(w);
}

/* Submit some of the possible calls, in an order of this worker's own. */
static void submit_some(struct sim_worker *w)
{
	struct sim_job *job = w->job;
	uint32_t n = w->n_admitted;
	uint32_t from = 0;

	if (!job->is_in_order)
		from = (uint32_t)sim_below(&job->rng, n);
	for (uint32_t i = 0; i < n * (w->n_local - w->has_lost_rank); i++) {
		uint32_t t = (from + i) % n, local = i / n;

		if (job->is_reversed && w->rank % 2)
			t = n - 1 - t;
		if (!(w->asked[t] >> local & 1) && !w->dead_in[t] &&
			w->round[t] < rounds_of(w) &&
			(job->is_in_order || sim_chance(&job->rng, 700000)))
			sim_worker_submit(w, t, local);
	}
}

void sim_worker_tune(struct sim_worker *w)
{
	uint64_t *rng = &w->job->rng;
	const struct sw_policy *policy =
		sw_policy_at((uint32_t)sim_below(rng, SW_N_POLICIES));
	uint64_t part = 0, credit = 0;

	if (policy->is_tunable) {
		part = SW_PART_MIN << sim_below(rng, 8);
		credit = SW_CREDIT_MIN << sim_below(rng, 12);
	}
	if (sw_worker_tune(&w->engine, policy, part, credit))
		abort();
	w->node->loop.tick_at_ns = 0;
}

void sim_worker_leave(struct sim_worker *w, int err, const char *text)
{
	const struct sw_fault why = sw_fault_said(err, text ? text : "");

	sw_worker_leave(&w->engine, err ? &why : NULL);
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

/* --- lanes: each reads the others' messages after its turn --- */

static void hear(struct sw_worker *engine, struct sim_node *node)
{
	struct sim_worker *w = engine->events.ctx;

	w->hearing = engine->lane_i;
	if (sw_worker_take(engine))
		node->loop.tick_at_ns = 0;
}

static void hear_others(struct sim_worker *w)
{
	hear(&w->engine, w->node);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		if (sw_lane_has_commands(&w->lanes[i - 1]))
			sim_node_poke(w->lcores[i]);
}

void sim_lane_step(void *ctx, uint64_t now_ns)
{
	struct sw_worker *engine = ctx;
	struct sim_worker *w = engine->events.ctx;

	(void)now_ns;
	control_step(w);
	hear(engine, w->lcores[engine->lane_i]);
	copy_if_ended(w, engine->lane_i);
	if (sw_lane_has_reports(engine->lanes))
		sim_node_poke(w->node);
}

struct sw_stats sim_worker_stats(const struct sim_worker *w)
{
	struct sw_stats sum = w->engine.stats;

	for (uint32_t i = 1; i < w->n_lanes; i++)
		sw_stats_add(&sum, &w->others[i - 1].stats);
	return sum;
}

void sim_worker_step(void *ctx, uint64_t now_ns)
{
	struct sim_worker *w = ctx;
	struct sim_job *job = w->job;

	control_step(w);
	hear_others(w);
	copy_if_ended(w, 0);
	if (!w->is_running || sw_worker_end_of(&w->engine))
		return;
	if (!w->n_declared || (w->n_declared < job->n_tensors &&
				      (w->round[0] > 0 || w->dead_in[0])))
		declare(w);
	if (w->n_batch)
		declare_built(w);
	/* While a batch waits for admission, push nothing new; earlier pushes
	 * continue. */
	sim_grow_some(w);
	if (w->n_admitted != w->n_declared || now_ns < w->pause_until_ns)
		return;
	submit_some(w);
	sim_groups_step(w);
	if (job->tunes && !sim_worker_has_completed(w) &&
		sim_chance(&job->rng, job->tunes))
		sim_worker_tune(w);
	if (job->leaves && sim_worker_has_completed(w))
		sim_worker_leave(w, 0, NULL);
	hear_others(w);
}

/* Count the closed stream and free its memory in all lanes, as the control
 * thread does. */
static void on_gone(void *ctx, uint32_t tensor)
{
	struct sim_worker *w = ctx;

	w->n_gone++;
	sw_worker_free(&w->engine, tensor);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		sw_worker_free(&w->others[i - 1], tensor);
}

struct sw_worker_events sim_worker_events(struct sim_worker *w)
{
	return (struct sw_worker_events){.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.keep = on_keep,
		.gone = on_gone,
		.summed = sim_grow_summed,
		.ctx = w};
}
