/* stream.c - the calls of a simulated worker in its groups.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"
#include "test/sim/job.h"

uint32_t sim_groups_declare(struct sim_worker *w, struct sw_worker_tensor *out,
	char names[][SW_NAME_MAX], uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < w->job->n_groups; i++) {
		struct sim_group *g = &w->job->groups[i];
		uint32_t n_ranks = 0;

		if (!(g->members >> w->rank & 1))
			continue;
		for (uint64_t m = g->members; m; m &= m - 1)
			g->ranks[n_ranks++] = (uint16_t)__builtin_ctzll(m);
		w->of_group[i].index = w->engine.n_tensors + n + k;
		snprintf(names[k], SW_NAME_MAX, "group%u", i);
		out[k] = (struct sw_worker_tensor){.name = names[k],
			.priority = g->priority,
			.window_log2 = g->window_log2,
			.ranks = g->ranks,
			.n_ranks = n_ranks};
		k++;
	}
	return k;
}

/* All servers have it, and nobody pushed yet. */
static void start_servers(struct sim_job *job, uint32_t group, uint32_t key)
{
	for (uint32_t e = 0; e < job->n_servers * job->n_lcores; e++)
		for (uint32_t j = 0; j < SW_MAX_JOBS && job->servers[e]; j++) {
			struct sw_job *sj = &job->servers[e]->jobs[j];
			struct sw_stensor *t =
				sj->n_sessions
					? sw_shard_tensor(&sj->shard, key)
					: NULL;

			if (t)
				t->base = job->groups[group].start;
		}
}

static void start_lane_at(
	const struct sw_worker *lane, uint32_t stream, uint32_t start)
{
	struct sw_stream *s = lane->tensors[stream].stream;

	for (uint32_t l = 0; l < lane->n_links; l++)
		s->links[l].base = s->links[l].next = start;
	s->head = s->tail = start;
}

static void start_at(const struct sim_worker *w, uint32_t group)
{
	uint32_t stream = w->of_group[group].index;
	uint32_t start = w->job->groups[group].start;

	start_lane_at(&w->engine, stream, start);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		start_lane_at(&w->others[i - 1], stream, start);
}

void sim_groups_declared(struct sim_worker *w)
{
	struct sim_job *job = w->job;

	for (uint32_t i = 0; i < job->n_groups; i++) {
		uint32_t key;

		if (!(job->groups[i].members >> w->rank & 1) ||
			w->of_group[i].n_submitted)
			continue;
		key = w->engine.tensors[w->of_group[i].index].key;
		if (key == SW_KEY_NONE)
			continue; /* it was dead before this one came */
		if (job->groups[i].start && !job->group_keys[i])
			start_servers(job, i, key);
		if (job->groups[i].start)
			start_at(w, i);
		job->group_keys[i] = key + 1;
	}
}

/* --- collectives --- */

/* Is it this member that ends the group, how @how says? */
static bool ends_it(
	const struct sim_worker *w, uint32_t group, enum sim_clash_how how)
{
	const struct sim_clash *k = &w->job->clash;

	return k->how == how && k->by == w->rank && k->group == group;
}

/* How many this worker calls. */
static uint32_t n_colls(const struct sim_worker *w, uint32_t group)
{
	uint32_t n = w->job->groups[group].n_colls;

	if (ends_it(w, group, SIM_ABORTS))
		return w->job->clash.coll + 1;
	if (ends_it(w, group, SIM_CLOSES))
		return w->job->clash.coll;
	return w->rank == w->job->odd_one && w->job->odd_rounds ? n / 2 : n;
}

/* The process writes it. */
static void give_back(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	uint8_t *fate = &w->of_group[group].fates[coll];

	if (*fate == SIM_ENDED_BADLY)
		*fate = SIM_GIVEN_BACK;
	sim_coll_spoil(w, group, coll);
}

static void note_end(
	struct sim_worker *w, uint32_t group, uint32_t coll, int err)
{
	struct sim_of_group *of = &w->of_group[group];

	of->n_done++;
	of->fates[coll] = err ? SIM_ENDED_BADLY : SIM_ENDED_WELL;
	if (err && !of->err)
		of->err = err;
	/* Ports may still gather from it: without CRC nobody would see.  What
	 * ends with the job is given back later. */
	if (!err || (w->job->params.has_crc && !sw_worker_end_of(&w->engine)))
		give_back(w, group, coll);
}

void sim_groups_give_back(struct sim_worker *w)
{
	const struct sim_job *job = w->job;

	for (uint32_t i = 0; i < job->n_groups; i++)
		for (uint32_t c = 0; c < w->of_group[i].n_submitted; c++)
			if (w->of_group[i].fates[c] == SIM_ENDED_BADLY)
				give_back(w, i, c);
}

static void say(struct sim_worker *w, uint32_t group, uint32_t coll, int err,
	uint64_t wrong, uint32_t weight)
{
	struct sim_job *job = w->job;

	if (!job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"rank %u: %llu wrong elements of %s %u in group %u, "
			"weight %u, error %d, %u of %u ended",
			w->rank, (unsigned long long)wrong,
			sw_coll_name(sim_coll_of(w, group, coll).kind), coll,
			group, weight, err, w->of_group[group].n_done,
			w->of_group[group].n_submitted);
}

/* Is it this member that calls it differently? */
static bool differs(const struct sim_worker *w, uint32_t group, uint32_t coll)
{
	const struct sim_clash *k = &w->job->clash;

	return k->how && k->how < SIM_ABORTS && k->by == w->rank &&
	       k->group == group &&
	       (coll == k->coll ||
		       (k->how == SIM_SWAPPED && coll == k->coll + 1));
}

/* May this member's collective end with @err?  Who only gives may not hear in
 * time that it did so in vain. */
static bool may_end(
	const struct sim_worker *w, uint32_t group, uint32_t coll, int err)
{
	const struct sim_clash *k = &w->job->clash;
	const struct sim_coll c = sim_coll_of(w, group, coll);
	bool only_gives = (c.kind == SW_BCAST && c.root == w->rank) ||
			  (c.kind == SW_REDUCE && c.root != w->rank);

	if (!err && differs(w, group, coll))
		return only_gives;
	if (err && err == sw_worker_end_of(&w->engine))
		return true; /* who looks at its end sees whether it may */
	return !err || (k->how && group == k->group &&
			       err == (k->how < SIM_ABORTS ? SW_EMISMATCH
							   : SW_EABORTED));
}

/* Of a sum each member counts once. */
static uint32_t weight_of(
	const struct sim_worker *w, uint32_t group, uint32_t coll, uint32_t got)
{
	const struct sim_coll c = sim_coll_of(w, group, coll);
	bool gets = c.kind != SW_REDUCE || c.root == w->rank;

	return sw_coll_is_sum(c.kind) && gets
		       ? (uint32_t)__builtin_popcountll(
				 w->job->groups[group].members)
		       : got;
}

void sim_groups_done(
	struct sim_worker *w, uint64_t cookie, int err, uint32_t weight)
{
	uint32_t group = cookie >> 16 & 0xff, coll = cookie & 0xffff;
	uint64_t wrong = 0;

	if (w->job->is_edited) {
		w->of_group[group].n_done++;
		return;
	}
	if (w->of_group[group].fates[coll] != SIM_OPEN ||
		!may_end(w, group, coll, err)) {
		w->n_wrong++;
		say(w, group, coll, err, 0, weight);
		return;
	}
	if (!err && !differs(w, group, coll))
		wrong = sim_coll_count_wrong(w, group, coll) +
			(weight != weight_of(w, group, coll, weight));
	w->n_wrong += wrong;
	if (wrong)
		say(w, group, coll, err, wrong, weight);
	note_end(w, group, coll, err);
}

void sim_groups_submit(struct sim_worker *w, uint32_t group)
{
	struct sim_of_group *of = &w->of_group[group];
	uint32_t coll = of->n_submitted++;
	const struct sim_coll c = sim_coll_of(w, group, coll);
	struct sw_worker_coll ask = {.stream = of->index,
		.kind = c.kind,
		.dtype = c.dtype,
		.op = c.op,
		.n_elems = c.n_elems,
		.root = c.root,
		.cookie = SIM_COOKIE_COLL | group << 16 | coll};
	const uint8_t *from;
	uint64_t first;
	uint8_t *to;
	int err;

	sim_coll_make(w, group, coll);
	sim_coll_pointers(w, group, coll, &from, &to, &first);
	ask.from = from;
	ask.to = to;
	err = sw_worker_coll(&w->engine, &ask);
	if (err && may_end(w, group, coll, err))
		note_end(w, group, coll, err);
	else if (err)
		abort();
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

void sim_groups_end(struct sim_worker *w, uint32_t group)
{
	struct sim_of_group *of = &w->of_group[group];
	char why[40];

	snprintf(why, sizeof(why), "rank %u aborts group%u", w->rank, group);
	of->has_ended_it = true;
	if (w->job->clash.how == SIM_CLOSES)
		sw_worker_close_group(&w->engine, of->index, 0);
	else
		sw_worker_abort(&w->engine, of->index, why, false);
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

void sim_groups_step(struct sim_worker *w)
{
	for (uint32_t i = 0; i < w->job->n_groups; i++) {
		const struct sim_group *g = &w->job->groups[i];
		struct sim_of_group *of = &w->of_group[i];

		if ((ends_it(w, i, SIM_ABORTS) || ends_it(w, i, SIM_CLOSES)) &&
			of->n_submitted == n_colls(w, i) && !of->has_ended_it &&
			sim_chance(&w->job->rng, 300000))
			sim_groups_end(w, i);

		if (g->members >> w->rank & 1 &&
			of->n_submitted < n_colls(w, i) &&
			of->n_submitted - of->n_done < g->depth &&
			sim_chance(&w->job->rng, 700000))
			sim_groups_submit(w, i);
	}
}

bool sim_groups_have_completed(const struct sim_worker *w)
{
	for (uint32_t i = 0; i < w->job->n_groups; i++)
		if (w->job->groups[i].members >> w->rank & 1 &&
			(w->of_group[i].n_done < n_colls(w, i) ||
				((ends_it(w, i, SIM_ABORTS) ||
					 ends_it(w, i, SIM_CLOSES)) &&
					!w->of_group[i].has_ended_it)))
			return false;
	return true;
}

void sim_groups_close(struct sim_worker *w)
{
	for (uint32_t i = 0; i < w->job->n_groups; i++)
		for (uint32_t c = 0; c < w->job->groups[i].n_colls; c++)
			if (w->of_group[i].to[c])
				sim_coll_free(w, i, c);
}
