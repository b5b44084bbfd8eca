/* stream_buffers.c - contents of a group's buffers, byte by byte.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A buffer has all parts of its collective, whether the call uses them or not,
 * and a guard on both sides. Bytes that the call must not write keep their
 * initial value.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

enum { GUARD = 64, FROM = 0xa5, TO = 0x5a, GONE = 0xdd };

uint32_t sim_coll_n_parts(const struct sim_group *g, const struct sim_coll *c)
{
	return c->kind == SW_REDUCE_SCATTER || c->kind == SW_ALL_GATHER
		       ? g->n_ranks
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

static int64_t fold(enum sw_reduce_op op, int64_t a, int64_t b)
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
	default: /* digits do not overlap, so OR is also the sum */
		return a | b;
	}
}

/* Convert to the type: the highest digit of four members is the sign of i8. */
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
			sim_rank_worker(job, g->ranks[elem / c->n_elems]),
			elem);
	if (c->kind == SW_BCAST)
		return sim_coll_given(
			job, group, coll, sim_rank_worker(job, c->root), elem);
	for (; left; left &= left - 1) {
		one = in_type(
			c, sim_coll_given(job, group, coll,
				   (uint32_t)__builtin_ctzll(left), elem));
		all = left == g->members ? one : fold(c->op, all, one);
	}
	return c->op == SW_AVG ? all / (int64_t)g->n_ranks : all;
}

/* --- layout --- */

/* Part of a buffer: the @n elements at index @at are elements @first and
 * following, counted through all parts. */
struct range {
	uint64_t at, first, n;
};

/* One rank's buffers of a collective. */
struct view {
	const struct sim_worker *w;
	uint32_t seat, coll;
	struct sim_coll c;
	uint32_t elem_bytes;
	uint64_t bytes;           /* size of a buffer, without guards */
	struct range gives, gets; /* indices in a buffer */
	uint8_t *from, *to;       /* start of the buffers */
};

/* Return the rank's place among the ranks of the group. */
static uint64_t place_of(const struct sim_group *g, uint32_t rank)
{
	uint64_t i = 0;

	while (g->ranks[i] != rank)
		i++;
	return i;
}

static struct view view_of(
	const struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	const struct sim_group *g = &w->job->groups[seat % SIM_GROUPS];
	struct view v = {.w = w,
		.seat = seat,
		.coll = coll,
		.c = sim_coll_of(w, seat, coll)};
	uint32_t rank = sim_seat_rank(w, seat);
	uint64_t n = v.c.n_elems, all = n * sim_coll_n_parts(g, &v.c);
	uint64_t mine = n * place_of(g, rank);
	bool is_root = v.c.root == rank;

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
	v.from = w->of_group[seat].from[coll];
	v.to = w->of_group[seat].to[coll];
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

/* Does this local rank give the element? In a sum exactly one does. */
static bool has_share(const struct view *v, uint64_t elem)
{
	uint32_t group = v->seat % SIM_GROUPS, local = v->seat / SIM_GROUPS;
	uint32_t here = v->w->job->groups[group].here[v->w->rank];
	uint32_t n = (uint32_t)__builtin_popcount(here);
	uint32_t at = (uint32_t)__builtin_popcount(here & ((1u << local) - 1));

	return !sw_coll_is_sum(v->c.kind) || (elem + v->coll) % n == at;
}

/* Return the neutral value that the worker's other ranks give, so that the
 * result is still @given. */
static int64_t nothing(const struct view *v, int64_t given)
{
	bool is_small = v->elem_bytes == 1;
	bool is_float = v->c.dtype == SW_F32 || v->c.dtype == SW_F64 ||
			v->c.dtype == SW_F16 || v->c.dtype == SW_BF16;

	switch (v->c.op) {
	case SW_PROD:
		return 1;
	case SW_BAND:
		return -1;
	case SW_MIN:
		return is_small ? given : is_float ? 2 * given : given + 1;
	case SW_MAX:
		return is_small ? given : given / 2;
	default:
		return 0;
	}
}

/* Return the bits of an element in the result (@is_result), or as this rank
 * gives it. */
static uint64_t bits_of(const struct view *v, bool is_result, uint64_t elem)
{
	const struct sim_job *job = v->w->job;
	uint32_t group = v->seat % SIM_GROUPS;
	int64_t x;

	if (is_result) {
		x = sim_coll_sum(job, group, v->coll, elem);
	} else {
		x = sim_coll_given(job, group, v->coll, v->w->rank, elem);
		x = has_share(v, elem) ? x : nothing(v, x);
	}
	return sim_oracle_encode(v->c.dtype, x);
}

void sim_coll_make(struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	struct sim_of_group *of = &w->of_group[seat];
	struct view v = view_of(w, seat, coll);

	of->from[coll] = buffer(v.bytes, FROM);
	of->to[coll] = v.c.is_in_place ? of->from[coll] : buffer(v.bytes, TO);
	for (uint64_t i = 0; i < v.gives.n; i++) {
		uint64_t bits = bits_of(&v, false, v.gives.first + i);

		memcpy(of->from[coll] + (v.gives.at + i) * v.elem_bytes, &bits,
			v.elem_bytes);
	}
}

void sim_coll_pointers(const struct sim_worker *w, uint32_t seat, uint32_t coll,
	const uint8_t **from, uint8_t **to, uint64_t *first)
{
	struct view v = view_of(w, seat, coll);

	*from = v.from + v.gives.at * v.elem_bytes;
	*to = v.to + v.gets.at * v.elem_bytes;
	*first = v.gives.first;
}

bool sim_coll_find(const struct sim_worker *w, uint32_t seat, uint32_t coll,
	const uint8_t *p, uint64_t *elem)
{
	struct view v = view_of(w, seat, coll);
	const uint8_t *from = v.from + v.gives.at * v.elem_bytes;

	if (!v.from || p < from || p >= from + v.gives.n * v.elem_bytes)
		return false;
	*elem = v.gives.first + (uint64_t)(p - from) / v.elem_bytes;
	return true;
}

void sim_coll_free(struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	struct sim_of_group *of = &w->of_group[seat];
	struct view v = view_of(w, seat, coll);

	memset(v.from, GONE, v.bytes); /* exposes a late reader */
	free(v.from - GUARD);
	if (v.to != v.from) {
		memset(v.to, GONE, v.bytes);
		free(v.to - GUARD);
	}
	of->from[coll] = of->to[coll] = NULL;
}

void sim_coll_spoil(struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	struct view v = view_of(w, seat, coll);

	memset(v.from, GONE, v.bytes);
	memset(v.to, GONE, v.bytes);
}

/* --- contents --- */

static uint64_t count_other(const uint8_t *p, uint64_t n, uint8_t with)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++)
		wrong += p[i] != with;
	return wrong;
}

/* Count the errors in a buffer: elements in @gets must be the result, other
 * elements in @gives the contribution, and all other bytes @with. */
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
		wrong += !sim_elem_is(e, bits, v->elem_bytes);
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
	const struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	struct view v = view_of(w, seat, coll);

	if (v.c.is_in_place)
		return count_guards(&v) +
		       count_in(&v, v.from, FROM, &v.gets, &v.gives);
	return count_guards(&v) + count_in(&v, v.from, FROM, NULL, &v.gives) +
	       count_in(&v, v.to, TO, &v.gets, NULL);
}

bool sim_coll_is_written(
	const struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	struct view v = view_of(w, seat, coll);

	return count_guards(&v) || count_other(v.from, v.bytes, GONE) ||
	       count_other(v.to, v.bytes, GONE);
}
