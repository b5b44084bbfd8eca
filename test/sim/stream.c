/* stream.c - collectives that a simulated worker calls in its groups.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/sim/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"
#include "engine/worker/link.h"
#include "test/sim/job.h"

/* --- ranks --- */

uint32_t sim_rank_worker(const struct sim_job *job, uint32_t rank)
{
	uint32_t w = 0;

	for (; rank >= job->n_local[w]; w++)
		rank -= job->n_local[w];
	return w;
}

uint32_t sim_seat_rank(const struct sim_worker *w, uint32_t seat)
{
	uint32_t rank = seat / SIM_GROUPS;

	for (uint32_t i = 0; i < w->rank; i++)
		rank += w->job->n_local[i];
	return rank;
}

bool sim_seat_is_taken(const struct sim_worker *w, uint32_t seat)
{
	const struct sim_group *g = &w->job->groups[seat % SIM_GROUPS];

	return g->here[w->rank] >> seat / SIM_GROUPS & 1;
}

static void list_ranks(struct sim_job *job, struct sim_group *g)
{
	uint32_t rank = 0;

	g->n_ranks = 0;
	for (uint32_t w = 0; w < job->n_workers; rank += job->n_local[w++]) {
		uint32_t all = (1u << job->n_local[w]) - 1;

		g->here[w] &= all;
		if (!(g->members >> w & 1))
			g->here[w] = 0;
		else if (!g->here[w])
			g->here[w] = (uint8_t)all;
		for (uint32_t l = 0; l < job->n_local[w]; l++)
			if (g->here[w] >> l & 1)
				g->ranks[g->n_ranks++] = (uint16_t)(rank + l);
	}
}

void sim_groups_list(struct sim_job *job)
{
	for (uint32_t i = 0; i < job->n_groups; i++)
		list_ranks(job, &job->groups[i]);
}

uint32_t sim_groups_declare(struct sim_worker *w, struct sw_worker_tensor *out,
	char names[][SW_NAME_MAX], uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < w->job->n_groups; i++) {
		const struct sim_group *g = &w->job->groups[i];

		if (!(g->members >> w->rank & 1))
			continue;
		for (uint32_t l = 0; l < SIM_LOCAL; l++)
			w->of_group[i + SIM_GROUPS * l].index =
				w->engine.n_tensors + n + k;
		snprintf(names[k], SW_NAME_MAX, "group%u", i);
		out[k] = (struct sw_worker_tensor){.name = names[k],
			.priority = g->priority,
			.window_log2 = g->window_log2,
			.ranks = g->ranks,
			.n_ranks = g->n_ranks};
		k++;
	}
	return k;
}

/* Set the first chunk number at all servers: all have the stream, and no member
 * has pushed. */
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

static bool has_begun(const struct sim_worker *w, uint32_t group)
{
	uint32_t n = 0;

	for (uint32_t i = group; i < SIM_SEATS; i += SIM_GROUPS)
		n += w->of_group[i].n_submitted;
	return n > 0;
}

void sim_groups_declared(struct sim_worker *w)
{
	struct sim_job *job = w->job;

	for (uint32_t i = 0; i < job->n_groups; i++) {
		const struct sw_wtensor *t =
			sw_wtensor_at(&w->engine, w->of_group[i].index);

		if (!(job->groups[i].members >> w->rank & 1) || has_begun(w, i))
			continue;
		if (!t || t->key == SW_KEY_NONE)
			continue; /* the group is already closed or dead */
		if (job->groups[i].start && !job->group_keys[i])
			start_servers(job, i, t->key);
		if (job->groups[i].start)
			start_at(w, i);
		job->group_keys[i] = t->key + 1;
	}
}

/* --- collectives --- */

/* Does this member end the group, in the way @how? */
static bool ends_it(
	const struct sim_worker *w, uint32_t seat, enum sim_clash_how how)
{
	const struct sim_clash *k = &w->job->clash;

	return k->how == how && k->by == w->rank &&
	       k->group == seat % SIM_GROUPS;
}

/* Return the number of collectives that this rank calls. */
static uint32_t n_colls(const struct sim_worker *w, uint32_t seat)
{
	uint32_t n = w->job->groups[seat % SIM_GROUPS].n_colls;

	if (ends_it(w, seat, SIM_ABORTS))
		return w->job->clash.coll + 1;
	if (ends_it(w, seat, SIM_CLOSES))
		return w->job->clash.coll;
	return w->rank == w->job->odd_one && w->job->odd_rounds ? n / 2 : n;
}

/* Overwrite the buffers, as a process does after the end of the call. */
static void give_back(struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	uint8_t *fate = &w->of_group[seat].fates[coll];

	if (*fate == SIM_ENDED_BADLY)
		*fate = SIM_GIVEN_BACK;
	sim_coll_spoil(w, seat, coll);
}

static void note_end(
	struct sim_worker *w, uint32_t seat, uint32_t coll, int err)
{
	struct sim_of_group *of = &w->of_group[seat];

	of->n_done++;
	of->fates[coll] = err ? SIM_ENDED_BADLY : SIM_ENDED_WELL;
	if (err && !of->err) {
		char text[SW_TEXT_MAX];
		const char *why = sw_worker_why(&w->engine, of->index, text);

		of->err = err;
		snprintf(of->why, sizeof(of->why), "%s", why ? why : "");
	}
	/* Ports may still gather from the buffer; without CRC no server would
	 * notice the overwrite. Memory whose call ended with the job is given
	 * back later. */
	if (!err || (w->job->params.has_crc && !sw_worker_end_of(&w->engine)))
		give_back(w, seat, coll);
}

void sim_groups_give_back(struct sim_worker *w)
{
	for (uint32_t i = 0; i < SIM_SEATS; i++)
		for (uint32_t c = 0; c < w->of_group[i].n_submitted; c++)
			if (w->of_group[i].fates[c] == SIM_ENDED_BADLY)
				give_back(w, i, c);
}

static void say(struct sim_worker *w, uint32_t seat, uint32_t coll, int err,
	uint64_t wrong, uint32_t weight)
{
	struct sim_job *job = w->job;

	if (!job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"rank %u: %llu wrong elements of %s %u in group %u, "
			"weight %u, error %d, %u of %u ended",
			sim_seat_rank(w, seat), (unsigned long long)wrong,
			sw_coll_name(sim_coll_of(w, seat, coll).kind), coll,
			seat % SIM_GROUPS, weight, err,
			w->of_group[seat].n_done,
			w->of_group[seat].n_submitted);
}

/* Does this rank call the collective differently from the others? */
static bool differs(const struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	const struct sim_clash *k = &w->job->clash;

	return sim_clash_is_of(w, seat) &&
	       (coll == k->coll ||
		       (k->how == SIM_SWAPPED && coll == k->coll + 1));
}

/* May this rank's collective end with @err? A rank that only gives may not
 * learn in time that the others failed. */
static bool may_end(
	const struct sim_worker *w, uint32_t seat, uint32_t coll, int err)
{
	const struct sim_clash *k = &w->job->clash;
	const struct sim_coll c = sim_coll_of(w, seat, coll);
	bool has_root = sim_rank_worker(w->job, c.root) == w->rank;
	bool only_gives = (c.kind == SW_BCAST && has_root) ||
			  (c.kind == SW_REDUCE && !has_root);

	if (!err && differs(w, seat, coll))
		return only_gives && k->local == SIM_LOCAL;
	if (err && err == sw_worker_end_of(&w->engine))
		return true; /* the check at the job's end decides */
	if (err == SW_EPEER)
		return sim_doom_is_in(w, seat % SIM_GROUPS);
	return !err || (k->how && seat % SIM_GROUPS == k->group &&
			       err == (k->how < SIM_ABORTS ? SW_EMISMATCH
							   : SW_EABORTED));
}

/* A sum counts each rank once. */
static uint32_t weight_of(
	const struct sim_worker *w, uint32_t seat, uint32_t coll, uint32_t got)
{
	const struct sim_coll c = sim_coll_of(w, seat, coll);
	bool gets = c.kind != SW_REDUCE ||
		    sim_rank_worker(w->job, c.root) == w->rank;

	return sw_coll_is_sum(c.kind) && gets
		       ? w->job->groups[seat % SIM_GROUPS].n_ranks
		       : got;
}

void sim_groups_done(
	struct sim_worker *w, uint64_t cookie, int err, uint32_t weight)
{
	uint32_t seat = cookie >> 16 & 0xff, coll = cookie & 0xffff;
	uint64_t wrong = 0;

	if (w->job->is_edited) {
		w->of_group[seat].n_done++;
		return;
	}
	if (w->of_group[seat].fates[coll] != SIM_OPEN ||
		!may_end(w, seat, coll, err)) {
		w->n_wrong++;
		say(w, seat, coll, err, 0, weight);
		return;
	}
	if (!err && !differs(w, seat, coll))
		wrong = sim_coll_count_wrong(w, seat, coll) +
			(weight != weight_of(w, seat, coll, weight));
	w->n_wrong += wrong;
	if (wrong)
		say(w, seat, coll, err, wrong, weight);
	note_end(w, seat, coll, err);
}

void sim_groups_submit(struct sim_worker *w, uint32_t seat)
{
	struct sim_of_group *of = &w->of_group[seat];
	uint32_t coll = of->n_submitted++;
	const struct sim_coll c = sim_coll_of(w, seat, coll);
	struct sw_worker_coll ask = {.stream = of->index,
		.local = seat / SIM_GROUPS,
		.kind = c.kind,
		.dtype = c.dtype,
		.op = c.op,
		.n_elems = c.n_elems,
		.root = c.root,
		.cookie = SIM_COOKIE_COLL | seat << 16 | coll};
	const uint8_t *from;
	uint64_t first;
	uint8_t *to;
	int err;

	sim_coll_make(w, seat, coll);
	sim_coll_pointers(w, seat, coll, &from, &to, &first);
	ask.from = from;
	ask.to = to;
	ask.from_bytes = ask.to_bytes = UINT64_MAX; /* sim_coll_pointers */
	err = sw_worker_coll(&w->engine, &ask);
	if (err && may_end(w, seat, coll, err))
		note_end(w, seat, coll, err);
	else if (err)
		abort();
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

void sim_groups_end(struct sim_worker *w, uint32_t seat)
{
	struct sim_of_group *of = &w->of_group[seat];
	char why[40];

	snprintf(why, sizeof(why), "rank %u aborts group%u",
		sim_seat_rank(w, 0), seat % SIM_GROUPS);
	of->has_ended_it = true;
	if (w->job->clash.how == SIM_CLOSES)
		sw_worker_close_group(&w->engine, of->index, seat / SIM_GROUPS);
	else
		sw_worker_abort(&w->engine, of->index, seat / SIM_GROUPS,
			SW_EABORTED, why);
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

static bool has_died(const struct sim_worker *w, uint32_t seat)
{
	return w->has_lost_rank && seat / SIM_GROUPS + 1 == w->n_local;
}

static bool is_through(const struct sim_worker *w, uint32_t seat)
{
	return !sim_seat_is_taken(w, seat) || has_died(w, seat) ||
	       w->of_group[seat].n_submitted == n_colls(w, seat);
}

/* Should the worker end the group now? All its ranks must have made their
 * calls. */
static bool is_to_end(const struct sim_worker *w, uint32_t seat)
{
	bool all = true;

	for (uint32_t i = seat % SIM_GROUPS; i < SIM_SEATS; i += SIM_GROUPS)
		all = all && is_through(w, i);
	return all && sim_seat_is_taken(w, seat) &&
	       !w->of_group[seat].has_ended_it &&
	       (ends_it(w, seat, SIM_ABORTS) || ends_it(w, seat, SIM_CLOSES));
}

static void step_seat(struct sim_worker *w, uint32_t seat)
{
	const struct sim_group *g = &w->job->groups[seat % SIM_GROUPS];
	const struct sim_of_group *of = &w->of_group[seat];

	if (is_to_end(w, seat) && sim_chance(&w->job->rng, 300000))
		sim_groups_end(w, seat);
	if (!is_through(w, seat) && of->n_submitted - of->n_done < g->depth &&
		sim_chance(&w->job->rng, 700000))
		sim_groups_submit(w, seat);
}

void sim_groups_step(struct sim_worker *w)
{
	for (uint32_t i = 0; i < SIM_SEATS; i++)
		if (sim_seat_is_taken(w, i))
			step_seat(w, i);
}

bool sim_groups_have_completed(const struct sim_worker *w)
{
	for (uint32_t i = 0; i < SIM_SEATS; i++)
		if (sim_seat_is_taken(w, i) && !has_died(w, i) &&
			(w->of_group[i].n_done < n_colls(w, i) ||
				is_to_end(w, i)))
			return false;
	return true;
}

bool sim_groups_have_ended(const struct sim_worker *w)
{
	for (uint32_t i = 0; i < SIM_SEATS; i++)
		if (!has_died(w, i) &&
			w->of_group[i].n_done < w->of_group[i].n_submitted)
			return false;
	return true;
}

void sim_groups_close(struct sim_worker *w)
{
	for (uint32_t i = 0; i < SIM_SEATS; i++)
		for (uint32_t c = 0; c < SIM_COLLS; c++)
			if (w->of_group[i].to[c])
				sim_coll_free(w, i, c);
}
