/* walk.c - compare one kernel with the reference: lengths, places, aliasing.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test/sum/walk.h"

/* Two places per case: the destination's and the first source's. The other
 * sources follow the first one 7 bytes apart. */
static const struct {
	int dst, src;
} places[] = {
	{0, 0},
	{1, 0},
	{0, 1},
	{3, 2},
	{8, 4},
	{63, 33},
	{32, 61},
	{AT_START, AT_START},
	{AT_END, AT_END},
	{AT_END, 5},
	{6, AT_END},
};

enum { N_PLACES = sizeof(places) / sizeof(places[0]) };

static const double factors[N_VARIANTS] = {
	1, 1.0 / 3, -0.0, -2.5, 0x1p-140, 1e30, INFINITY, NAN};

static const uint32_t divisors[N_VARIANTS] = {
	1, 2, 3, 7, 64, 127, 1000, UINT16_MAX};

/* One call to check. */
struct spot {
	const struct sw_sum_ops *ops;
	enum sw_kernel op;
	struct sw_sum_shape shape;
	uint32_t variant, at; /* first element's index in the pools */
	size_t n;
	int dst_place, src_place;
	bool is_aliased; /* dst is also the first source */
};

int walk_open(struct walk *w)
{
	memset(w, 0, sizeof(*w));
	if (arena_open(&w->dst))
		return -1;
	for (uint32_t k = 0; k < SW_KERNEL_MAX_SRC; k++)
		if (arena_open(&w->src[k]))
			return -1; /* no cleanup: the process exits */
	return 0;
}

void walk_close(struct walk *w)
{
	arena_close(&w->dst);
	for (uint32_t k = 0; k < SW_KERNEL_MAX_SRC; k++)
		arena_close(&w->src[k]);
}

static uint32_t n_sources(const struct spot *s)
{
	return s->op == SW_KERNEL_SUM ? s->variant + 1 : 1;
}

static uint32_t n_variants(enum sw_kernel op)
{
	return op == SW_KERNEL_SUM || op == SW_KERNEL_SCALE ||
			       op == SW_KERNEL_ROUND_SCALE ||
			       op == SW_KERNEL_DIVIDE
		       ? N_VARIANTS
		       : 1;
}

/* Return the type in a buffer of @bytes per element: @dtype or its
 * accumulator. */
static enum sw_dtype type_of(enum sw_dtype dtype, uint32_t bytes)
{
	return bytes == sw_dtype_bytes(dtype) ? dtype : SW_F32;
}

/* Compute the expected result. An aliased call starts from the first source,
 * another call from the destination's own pool. */
static void expect(struct walk *w, const struct spot *s)
{
	const struct sw_sum_call call = {.dst = w->expected[s->variant],
		.src = {w->src_pool[0], w->src_pool[1], w->src_pool[2],
			w->src_pool[3], w->src_pool[4], w->src_pool[5],
			w->src_pool[6], w->src_pool[7]},
		.n_src = n_sources(s),
		.factor = factors[s->variant],
		.by = divisors[s->variant],
		.n = POOL};

	memcpy(w->expected[s->variant],
		s->is_aliased ? w->src_pool[0] : w->dst_pool,
		sizeof(w->dst_pool));
	sw_kernel_run(s->ops, s->op, &call);
}

/* Damage the result after the call, as a wrong kernel would. */
static void plant(
	const struct walk *w, const struct spot *s, uint8_t *dst, uint8_t *src)
{
	size_t bytes = s->n * s->shape.dst_bytes;

	if (s->n != 129)
		return;
	if (w->plant == PLANT_BIT)
		dst[77 * s->shape.dst_bytes] ^= 1;
	if (w->plant == PLANT_BEYOND && s->dst_place != AT_END)
		dst[bytes] ^= 1;
	if (w->plant == PLANT_BEFORE && s->dst_place != AT_START)
		dst[-1] ^= 1;
	if (w->plant == PLANT_SOURCE && !s->is_aliased)
		src[s->shape.src_bytes] ^= 1;
}

static const char *spot_run(struct walk *w, const struct spot *s)
{
	size_t d_bytes = s->n * s->shape.dst_bytes;
	size_t s_bytes = s->n * s->shape.src_bytes;
	size_t d_at = s->at * s->shape.dst_bytes;
	size_t s_at = s->at * s->shape.src_bytes;
	struct sw_sum_call call = {.n_src = n_sources(s),
		.factor = factors[s->variant],
		.by = divisors[s->variant],
		.n = s->n};
	const struct arena *out = s->is_aliased ? &w->src[0] : &w->dst;
	uint8_t *src[SW_KERNEL_MAX_SRC];
	const char *why = NULL;

	for (uint32_t k = 0; k < call.n_src; k++) {
		int place = s->src_place < 0 ? s->src_place
					     : (s->src_place + 7 * (int)k) % 64;

		src[k] = arena_place(
			&w->src[k], place, w->src_pool[k] + s_at, s_bytes);
		call.src[k] = src[k];
	}
	call.dst = s->is_aliased ? src[0]
				 : arena_place(&w->dst, s->dst_place,
					   w->dst_pool + d_at, d_bytes);
	sw_kernel_run(s->ops, s->op, &call);
	plant(w, s, call.dst, src[0]);

	if (memcmp(call.dst, w->expected[s->variant] + d_at, d_bytes))
		why = "differs from the reference";
	else if (!arena_is_clean(
			 out, call.dst, s->is_aliased ? s_bytes : d_bytes))
		why = "writes outside its elements";
	for (uint32_t k = s->is_aliased; k < call.n_src; k++)
		if (memcmp(src[k], w->src_pool[k] + s_at, s_bytes) ||
			!arena_is_clean(&w->src[k], src[k], s_bytes))
			why = "writes to a source";
	arena_wipe(&w->dst);
	for (uint32_t k = 0; k < call.n_src; k++)
		arena_wipe(&w->src[k]);
	return why;
}

static bool is_length_due(const struct walk *w, size_t n)
{
	return !w->is_quick || n <= 17 || n % 64 == 63 || n == 129 || n >= 256;
}

/* Run one variant at all lengths and places, with a moving start in the
 * pools. */
static bool walk_variant(
	struct walk *w, struct spot *s, uint32_t seed, char why[WHY_BYTES])
{
	for (s->n = 0; s->n <= 257; s->n++) {
		for (uint32_t c = 0; is_length_due(w, s->n) && c < N_PLACES;
			c++) {
			const char *what;

			s->dst_place = places[c].dst;
			s->src_place = places[c].src;
			s->at = (seed = seed * 1664525 + 1013904223) %
				(POOL - 257);
			what = spot_run(w, s);
			if (!what)
				continue;
			snprintf(why, WHY_BYTES,
				"%s: n %zu, dst at %d, src at %d, variant %u%s",
				what, s->n, s->dst_place, s->src_place,
				s->variant, s->is_aliased ? ", aliased" : "");
			return false;
		}
	}
	return true;
}

/* Run over the whole pools, so that every pair of specials occurs. */
static bool walk_whole(
	struct walk *w, const struct spot *s, char why[WHY_BYTES])
{
	static const size_t shifts[] = {0, 1};
	uint8_t got[POOL * 8];

	for (size_t i = 0; i < 2; i++) {
		size_t d_at = shifts[i] * s->shape.dst_bytes;
		size_t n = POOL - shifts[i];
		struct sw_sum_call call = {.dst = got + d_at,
			.n_src = n_sources(s),
			.factor = factors[s->variant],
			.by = divisors[s->variant],
			.n = n};

		for (uint32_t k = 0; k < SW_KERNEL_MAX_SRC; k++)
			call.src[k] =
				w->src_pool[k] + shifts[i] * s->shape.src_bytes;
		memcpy(got, w->dst_pool, sizeof(got));
		sw_kernel_run(s->ops, s->op, &call);
		if (!memcmp(call.dst, w->expected[s->variant] + d_at,
			    n * s->shape.dst_bytes))
			continue;
		snprintf(why, WHY_BYTES,
			"differs from the reference: whole pool, variant %u",
			s->variant);
		return false;
	}
	return true;
}

bool walk_run(struct walk *w, const struct sw_sum *sum, enum sw_dtype dtype,
	enum sw_kernel op, char why[WHY_BYTES])
{
	const struct sw_sum_ops *reference =
		&sw_sum_best(SW_SUM_SCALAR)->ops[dtype];
	struct spot s = {.op = op};

	sw_kernel_shape(&sum->ops[dtype], op, &s.shape);
	for (uint32_t k = 0; k < SW_KERNEL_MAX_SRC; k++)
		pool_fill(w->src_pool[k], type_of(dtype, s.shape.src_bytes),
			k + 1);
	pool_fill(w->dst_pool, type_of(dtype, s.shape.dst_bytes), 0);
	for (uint32_t aliased = 0; aliased <= s.shape.may_alias; aliased++) {
		s.is_aliased = aliased;
		for (s.variant = 0; s.variant < n_variants(op); s.variant++) {
			s.ops = reference;
			expect(w, &s);
			s.ops = &sum->ops[dtype];
			if (!aliased && !walk_whole(w, &s, why))
				return false;
			if (!walk_variant(w, &s, s.variant, why))
				return false;
		}
	}
	return true;
}
