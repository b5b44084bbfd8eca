/* stream_buffers.c - what members of a group give and get, byte by byte.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A buffer has all parts of its collective, whether this one uses them or not,
 * and a guard on both sides: what is not to be written stays as it was made.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

enum { GUARD = 64, FROM = 0xa5, TO = 0x5a, GONE = 0xdd };

uint32_t sim_coll_n_parts(const struct sim_group *g, const struct sim_coll *c)
{
	return c->kind == SW_REDUCE_SCATTER || c->kind == SW_ALL_GATHER
		       ? (uint32_t)__builtin_popcountll(g->members)
		       : 1;
}

/* --- elements --- */

static uint32_t digit(
	const struct sim_job *job, uint32_t group, uint32_t coll, uint64_t elem)
{
	uint64_t x = job->seed ^ 0x636f6c6cULL << 32 ^ (uint64_t)group << 56 ^
		     (uint64_t)coll << 40 ^ elem;

	return 1 + (uint32_t)(test_random(&x) % 3);
}

int64_t sim_coll_given(const struct sim_job *job, uint32_t group, uint32_t coll,
	uint32_t m, uint64_t elem)
{
	return (int64_t)digit(job, group, coll, elem) << 2 * m;
}

/* Member number @i. */
static uint32_t member_at(uint64_t members, uint64_t i)
{
	while (i-- > 0)
		members &= members - 1;
	return (uint32_t)__builtin_ctzll(members);
}

static int64_t fold(enum sw_op op, int64_t a, int64_t b)
{
	switch (op) {
	case SW_MIN:
		return a < b ? a : b;
	case SW_MAX:
		return a > b ? a : b;
	case SW_PROD:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case SW_BAND:
		return a & b;
	default: /* digits do not overlap: all the same */
		return a | b;
	}
}

/* As it is in its type: the highest digit of four members is the sign of i8. */
static int64_t in_type(const struct sim_coll *c, int64_t v)
{
	return c->dtype == SW_I8 ? (int8_t)v : v;
}

int64_t sim_coll_sum(
	const struct sim_job *job, uint32_t group, uint32_t coll, uint64_t elem)
{
	const struct sim_group *g = &job->groups[group];
	const struct sim_coll *c = &g->colls[coll];
	uint64_t left = g->members;
	int64_t all = 0, one;

	if (c->kind == SW_ALL_GATHER)
		return sim_coll_given(job, group, coll,
			member_at(g->members, elem / c->n_elems), elem);
	if (c->kind == SW_BCAST)
		return sim_coll_given(job, group, coll, c->root, elem);
	for (; left; left &= left - 1) {
		one = in_type(
			c, sim_coll_given(job, group, coll,
				   (uint32_t)__builtin_ctzll(left), elem));
		all = left == g->members ? one : fold(c->op, all, one);
	}
	return c->op == SW_AVG ? all / __builtin_popcountll(g->members) : all;
}

/* --- where they lie --- */

/* Elements of a buffer: @n of them from @at on are element @first and so on of
 * all parts. */
struct range {
	uint64_t at, first, n;
};

/* One member's buffers of a collective. */
struct view {
	const struct sim_worker *w;
	uint32_t group, coll;
	struct sim_coll c;
	uint32_t elem_bytes;
	uint64_t bytes;           /* of a buffer, without guards */
	struct range gives, gets; /* from the beginning of a buffer */
	uint8_t *from, *to;       /* where those begin */
};

static struct view view_of(
	const struct sim_worker *w, uint32_t group, uint32_t coll)
{
	const struct sim_group *g = &w->job->groups[group];
	struct view v = {.w = w,
		.group = group,
		.coll = coll,
		.c = sim_coll_of(w, group, coll)};
	uint64_t n = v.c.n_elems, all = n * sim_coll_n_parts(g, &v.c);
	uint64_t mine = n * (uint64_t)__builtin_popcountll(
				    g->members & ((1ULL << w->rank) - 1));
	bool is_root = v.c.root == w->rank;

	v.elem_bytes = sw_dtype_bytes(v.c.dtype);
	v.bytes = all * v.elem_bytes;
	v.gives = v.gets = (struct range){0, 0, all};
	if (v.c.kind == SW_ALL_GATHER)
		v.gives = (struct range){v.c.is_in_place ? mine : 0, mine, n};
	else if (v.c.kind == SW_REDUCE_SCATTER)
		v.gets = (struct range){v.c.is_in_place ? mine : 0, mine, n};
	else if (v.c.kind == SW_BCAST && !is_root)
		v.gives.n = 0;
	else if (v.c.kind == SW_REDUCE && !is_root)
		v.gets.n = 0;
	v.from = w->of_group[group].from[coll];
	v.to = w->of_group[group].to[coll];
	return v;
}

static uint8_t *buffer(uint64_t bytes, uint8_t with)
{
	uint8_t *p = malloc(bytes + 2 * GUARD);

	if (!p)
		abort();
	memset(p, with, bytes + 2 * GUARD);
	return p + GUARD;
}

/* An element as it is when @is_result, or as this member gives it. */
static uint64_t bits_of(const struct view *v, bool is_result, uint64_t elem)
{
	const struct sim_job *job = v->w->job;

	return sim_oracle_encode(v->c.dtype,
		is_result ? sim_coll_sum(job, v->group, v->coll, elem)
			  : sim_coll_given(
				    job, v->group, v->coll, v->w->rank, elem));
}

void sim_coll_make(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	struct sim_of_group *of = &w->of_group[group];
	struct view v = view_of(w, group, coll);

	of->from[coll] = buffer(v.bytes, FROM);
	of->to[coll] = v.c.is_in_place ? of->from[coll] : buffer(v.bytes, TO);
	for (uint64_t i = 0; i < v.gives.n; i++) {
		uint64_t bits = bits_of(&v, false, v.gives.first + i);

		memcpy(of->from[coll] + (v.gives.at + i) * v.elem_bytes, &bits,
			v.elem_bytes);
	}
}

void sim_coll_pointers(const struct sim_worker *w, uint32_t group,
	uint32_t coll, const uint8_t **from, uint8_t **to, uint64_t *first)
{
	struct view v = view_of(w, group, coll);

	*from = v.from + v.gives.at * v.elem_bytes;
	*to = v.to + v.gets.at * v.elem_bytes;
	*first = v.gives.first;
}

void sim_coll_free(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	struct sim_of_group *of = &w->of_group[group];
	struct view v = view_of(w, group, coll);

	memset(v.from, GONE, v.bytes); /* whoever still reads it */
	free(v.from - GUARD);
	if (v.to != v.from) {
		memset(v.to, GONE, v.bytes);
		free(v.to - GUARD);
	}
	of->from[coll] = of->to[coll] = NULL;
}

void sim_coll_spoil(struct sim_worker *w, uint32_t group, uint32_t coll)
{
	struct view v = view_of(w, group, coll);

	memset(v.from, GONE, v.bytes);
	memset(v.to, GONE, v.bytes);
}

/* --- what is in them --- */

static uint64_t count_other(const uint8_t *p, uint64_t n, uint8_t with)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++)
		wrong += p[i] != with;
	return wrong;
}

/* Bytes of a buffer that are neither in @a nor in @b as they must be, nor,
 * where both are not, @with.  The first that has an element says what it is. */
static uint64_t count_in(const struct view *v, const uint8_t *p, uint8_t with,
	const struct range *gets, const struct range *gives)
{
	uint64_t n = v->bytes / v->elem_bytes, bits, wrong = 0;

	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *e = p + i * v->elem_bytes;
		bool is_result = gets && i - gets->at < gets->n;

		if (!is_result && !(gives && i - gives->at < gives->n)) {
			wrong += count_other(e, v->elem_bytes, with);
			continue;
		}
		bits = bits_of(v, is_result,
			is_result ? gets->first + i - gets->at
				  : gives->first + i - gives->at);
		wrong += memcmp(e, &bits, v->elem_bytes) != 0;
	}
	return wrong;
}

static uint64_t count_guards(const struct view *v)
{
	uint8_t with = v->to == v->from ? FROM : TO;

	return count_other(v->from - GUARD, GUARD, FROM) +
	       count_other(v->from + v->bytes, GUARD, FROM) +
	       count_other(v->to - GUARD, GUARD, with) +
	       count_other(v->to + v->bytes, GUARD, with);
}

uint64_t sim_coll_count_wrong(
	const struct sim_worker *w, uint32_t group, uint32_t coll)
{
	struct view v = view_of(w, group, coll);

	if (v.c.is_in_place)
		return count_guards(&v) +
		       count_in(&v, v.from, FROM, &v.gets, &v.gives);
	return count_guards(&v) + count_in(&v, v.from, FROM, NULL, &v.gives) +
	       count_in(&v, v.to, TO, &v.gets, NULL);
}

bool sim_coll_is_written(
	const struct sim_worker *w, uint32_t group, uint32_t coll)
{
	struct view v = view_of(w, group, coll);

	return count_guards(&v) || count_other(v.from, v.bytes, GONE) ||
	       count_other(v.to, v.bytes, GONE);
}
