/* stream.c - groups and their collectives in a simulated job.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

/* --- drawn from the seed --- */

static struct sim_coll draw_coll(
	const struct sim_job *job, const struct sim_group *g, uint64_t *x)
{
	static const uint32_t dtypes[] = {SW_I32, SW_I32, SW_F32, SW_I64};
	uint64_t most = job->params.payload / 4 * 2ULL << g->window_log2;
	uint64_t at = sim_below(x, __builtin_popcountll(g->members));
	uint64_t m = g->members;
	struct sim_coll c = {.kind = (enum sw_coll_kind)(
				     1 + sim_below(x, SW_N_COLL_KINDS - 1)),
		.dtype = dtypes[sim_below(x, SW_ARRAY_SIZE(dtypes))],
		.is_in_place = sim_below(x, 2)};

	if (job->n_workers <= 3 && !sim_below(x, 3))
		c.dtype = SW_BF16;
	while (at-- > 0)
		m &= m - 1;
	c.root = (uint16_t)__builtin_ctzll(m);
	switch (sim_below(x, 4)) {
	case 0:
		c.n_elems = 1;
		break;
	case 1: /* beyond the window */
		c.n_elems = 1 + sim_below(x, most);
		break;
	default:
		c.n_elems = 1 + sim_below(x, 2000);
	}
	return c;
}

void sim_groups_draw(struct sim_job *job)
{
	uint64_t x = job->seed ^ 0x67726f7570;
	uint64_t all = ~0ULL >> (64 - job->n_workers);

	job->n_groups = 1 + (uint32_t)sim_below(&x, SIM_GROUPS);
	for (uint32_t i = 0; i < job->n_groups; i++) {
		struct sim_group *g = &job->groups[i];

		g->members = sim_below(&x, 2) ? all : test_random(&x) & all;
		if (!g->members)
			g->members = all;
		g->window_log2 = (uint8_t)(4 + sim_below(&x, 3));
		g->priority = (uint32_t)sim_below(&x, 300);
		g->depth = 1 + (uint32_t)sim_below(&x, 8);
		g->n_colls = 1 + (uint32_t)sim_below(&x, SIM_COLLS);
		for (uint32_t c = 0; c < g->n_colls; c++)
			g->colls[c] = draw_coll(job, g, &x);
	}
}

/* --- what members give, and get --- */

static uint32_t n_parts(const struct sim_group *g, const struct sim_coll *c)
{
	return c->kind == SW_REDUCE_SCATTER || c->kind == SW_ALL_GATHER
		       ? (uint32_t)__builtin_popcountll(g->members)
		       : 1;
}

static uint32_t digit(
	const struct sim_job *job, uint32_t group, uint32_t coll, uint64_t elem)
{
	uint64_t x = job->seed ^ 0x636f6c6cULL << 32 ^ (uint64_t)group << 56 ^
		     (uint64_t)coll << 40 ^ elem;

	return 1 + (uint32_t)(test_random(&x) % 3);
}

/* What member @m gives to an element; all parts counted through. */
static int64_t given(const struct sim_job *job, uint32_t group, uint32_t coll,
	uint32_t m, uint64_t elem)
{
	return (int64_t)digit(job, group, coll, elem) << 2 * m;
}

static uint32_t member_at(uint64_t members, uint64_t i)
{
	while (i-- > 0)
		members &= members - 1;
	return (uint32_t)__builtin_ctzll(members);
}

/* What an element of the result is. */
static int64_t expected(
	const struct sim_job *job, uint32_t group, uint32_t coll, uint64_t elem)
{
	const struct sim_group *g = &job->groups[group];
	const struct sim_coll *c = &g->colls[coll];
	int64_t sum = 0;

	if (c->kind == SW_ALL_GATHER)
		return given(job, group, coll,
			member_at(g->members, elem / c->n_elems), elem);
	if (c->kind == SW_BCAST)
		return given(job, group, coll, c->root, elem);
	for (uint64_t m = g->members; m; m &= m - 1)
		sum += given(
			job, group, coll, (uint32_t)__builtin_ctzll(m), elem);
	return sum;
}

static void put(uint8_t *p, uint32_t dtype, uint64_t i, int64_t v)
{
	uint32_t n = sw_dtype_bytes(dtype);
	uint64_t bits = sim_oracle_encode(dtype, v);

	memcpy(p + i * n, &bits, n);
}

/* The elements that this member gives, as they are counted through all parts:
 * from *first, *n of them; 0: none. */
static void own(const struct sim_worker *w, const struct sim_group *g,
	const struct sim_coll *c, uint64_t *first, uint64_t *n)
{
	*first = 0;
	*n = n_parts(g, c) * c->n_elems;
	if (c->kind == SW_ALL_GATHER) {
		*first = c->n_elems *
			 (uint64_t)__builtin_popcountll(
				 g->members & ((1ULL << w->rank) - 1));
		*n = c->n_elems;
	}
	if (c->kind == SW_BCAST && c->root != w->rank)
		*n = 0;
}

static void make_buffers(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	const struct sim_group *g = &w->job->groups[group];
	const struct sim_coll *c = &g->colls[coll];
	struct sim_of_group *of = &w->of_group[group];
	uint32_t elem = sw_dtype_bytes(c->dtype);
	uint64_t n, first, bytes = n_parts(g, c) * c->n_elems * elem;
	uint8_t *from = malloc(bytes), *to = malloc(bytes);

	if (!from || !to)
		abort();
	memset(from, 0xa5, bytes);
	memset(to, 0x5a, bytes);
	own(w, g, c, &first, &n);
	for (uint64_t i = 0; i < n; i++)
		put(from, c->dtype, i,
			given(w->job, group, coll, w->rank, first + i));
	of->from[coll] = from;
	of->to[coll] = to;
	if (!c->is_in_place)
		return;
	if (c->kind == SW_ALL_GATHER) { /* its part of the whole */
		memcpy(to + first * elem, from, n * elem);
		free(from);
		of->from[coll] = to + first * elem;
	} else if (c->kind != SW_REDUCE_SCATTER) {
		free(to);
		of->to[coll] = from;
	}
}

static void free_buffers(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	const struct sim_group *g = &w->job->groups[group];
	const struct sim_coll *c = &g->colls[coll];
	struct sim_of_group *of = &w->of_group[group];
	uint64_t bytes = n_parts(g, c) * c->n_elems * sw_dtype_bytes(c->dtype);

	memset(of->to[coll], 0xdd, bytes); /* whoever still reads it */
	if (!c->is_in_place || c->kind == SW_REDUCE_SCATTER) {
		memset(of->from[coll], 0xdd, bytes);
		free(of->from[coll]);
	}
	free(of->to[coll]);
	of->from[coll] = of->to[coll] = NULL;
}

/* It has ended: the process writes its buffers, which a port may still gather
 * from for a PUSH that was sent again. */
static void spoil(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	const struct sim_group *g = &w->job->groups[group];
	const struct sim_coll *c = &g->colls[coll];
	uint64_t bytes = n_parts(g, c) * c->n_elems * sw_dtype_bytes(c->dtype);

	memset(w->of_group[group].to[coll], 0x5a, bytes);
}

/* --- a worker's calls --- */

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

void sim_groups_submit(struct sim_worker *w, uint32_t group)
{
	struct sim_of_group *of = &w->of_group[group];
	uint32_t coll = of->n_submitted;
	const struct sim_coll *c = &w->job->groups[group].colls[coll];
	struct sw_worker_coll ask = {.stream = of->index,
		.kind = c->kind,
		.dtype = c->dtype,
		.n_elems = c->n_elems,
		.root = c->root,
		.cookie = SIM_COOKIE_COLL | group << 16 | coll};

	make_buffers(w, group, coll);
	ask.from = of->from[coll];
	ask.to = of->to[coll];
	of->n_submitted++;
	if (sw_worker_coll(&w->engine, &ask))
		abort();
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

void sim_groups_step(struct sim_worker *w)
{
	for (uint32_t i = 0; i < w->job->n_groups; i++) {
		const struct sim_group *g = &w->job->groups[i];
		struct sim_of_group *of = &w->of_group[i];

		if (g->members >> w->rank & 1 && of->n_submitted < g->n_colls &&
			of->n_submitted - of->n_done < g->depth &&
			sim_chance(&w->job->rng, 700000))
			sim_groups_submit(w, i);
	}
}

static bool has_result(const struct sim_worker *w, const struct sim_coll *c)
{
	return c->kind != SW_REDUCE || c->root == w->rank;
}

static uint64_t count_wrong(
	const struct sim_worker *w, uint32_t group, uint32_t coll)
{
	const struct sim_job *job = w->job;
	const struct sim_group *g = &job->groups[group];
	const struct sim_coll *c = &g->colls[coll];
	uint32_t elem = sw_dtype_bytes(c->dtype);
	uint64_t n = n_parts(g, c) * c->n_elems, first = 0, wrong = 0;
	uint8_t want[8];

	if (c->kind == SW_REDUCE_SCATTER) {
		n = c->n_elems;
		first = n * (uint64_t)__builtin_popcountll(
				    g->members & ((1ULL << w->rank) - 1));
	}
	for (uint64_t i = 0; i < n; i++) {
		put(want, c->dtype, 0, expected(job, group, coll, first + i));
		wrong += memcmp(want, w->of_group[group].to[coll] + i * elem,
				 elem) != 0;
	}
	return wrong;
}

void sim_groups_done(
	struct sim_worker *w, uint64_t cookie, int err, uint32_t weight)
{
	uint32_t group = cookie >> 16 & 0xff, coll = cookie & 0xffff;
	struct sim_of_group *of = &w->of_group[group];
	const struct sim_coll *c = &w->job->groups[group].colls[coll];
	uint64_t wrong =
		err || !has_result(w, c) ? 0 : count_wrong(w, group, coll);

	of->n_done++;
	if (err && !of->err)
		of->err = err;
	w->n_wrong += wrong;
	if ((wrong || err) && !w->job->oracle[0])
		snprintf(w->job->oracle, sizeof(w->job->oracle),
			"rank %u: %llu wrong elements of %s %u in group %u, "
			"error %d",
			w->rank, (unsigned long long)wrong,
			sw_coll_name(c->kind), coll, group, err);
	spoil(w, group, coll);
}

bool sim_groups_have_completed(const struct sim_worker *w)
{
	for (uint32_t i = 0; i < w->job->n_groups; i++)
		if (w->job->groups[i].members >> w->rank & 1 &&
			w->of_group[i].n_done < w->job->groups[i].n_colls)
			return false;
	return true;
}

void sim_groups_count(
	const struct sim_job *job, uint64_t *n_chunks, uint64_t *n_pushes)
{
	*n_chunks = *n_pushes = 0;
	for (uint32_t i = 0; i < job->n_groups; i++) {
		const struct sim_group *g = &job->groups[i];

		if (!(g->members & (g->members - 1)))
			continue; /* of one worker: no server hears of it */
		for (uint32_t k = 0; k < g->n_colls; k++) {
			const struct sim_coll *c = &g->colls[k];
			uint64_t per =
				job->params.payload / sw_dtype_bytes(c->dtype);
			uint64_t n =
				((c->n_elems - 1) / per + 1) * n_parts(g, c);

			*n_chunks += n;
			*n_pushes +=
				n * (uint64_t)__builtin_popcountll(g->members);
		}
	}
}

const char *sim_groups_wrong(struct sim_job *job)
{
	for (uint32_t i = 0; i < job->n_servers * job->n_lcores; i++)
		for (uint32_t j = 0; j < SW_MAX_JOBS; j++) {
			const struct sw_job *sj = &job->servers[i]->jobs[j];

			if (sj->n_sessions && sj->shard.n_open)
				return "a server still waits for a chunk";
		}
	return NULL;
}

void sim_groups_close(struct sim_worker *w)
{
	for (uint32_t i = 0; i < w->job->n_groups; i++)
		for (uint32_t c = 0; c < w->job->groups[i].n_colls; c++)
			if (w->of_group[i].to[c])
				free_buffers(w, i, c);
}
