/* unit_copies.c - copies of a simulated device whose time is a variable.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "pmd/cuda/pipeline.h"

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	COPIES = 1024,
	/* fixed pieces to compare with, each copied in two halves */
	FIXED = 4 * MIB,
	SIZES = 12, /* 4 KiB, 8 KiB … */
};

/* Each direction copies one piece after another: latency, then bytes. */
struct sw_back {
	uint64_t now_ns, latency_ns[SW_BACK_WAYS], free_ns[SW_BACK_WAYS];
	uint64_t bytes_us;    /* bytes per microsecond */
	uint32_t n_of[SIZES]; /* number of copies of each size */
	bool does_copy, is_lost;
};

struct scene {
	struct sw_back b;
	struct sw_pipeline l;
	struct sw_pipeline_copy copies[COPIES];
	uint32_t n, n_left, n_ended;
	int err;
	uint64_t number;
};

static int event_open(struct sw_back *b, void **event, char *why)
{
	(void)b;
	(void)why;
	*event = calloc(1, sizeof(uint64_t));
	return *event ? 0 : SW_ENOMEM;
}

static void event_close(struct sw_back *b, void *event)
{
	(void)b;
	free(event);
}

/* An address for copies that move no bytes. */
static char nothing[1];

static int copy(struct sw_back *b, enum sw_back_way way,
	const struct sw_rows *r, void *event, char *why)
{
	uint64_t bytes = r->n * r->bytes;
	uint32_t i = 0;

	(void)why;
	if (b->is_lost)
		return SW_EDEVICE;
	if (b->does_copy)
		sw_rows_copy(r);
	if (b->free_ns[way] < b->now_ns)
		b->free_ns[way] = b->now_ns;
	b->free_ns[way] += b->latency_ns[way] + 1000 * bytes / b->bytes_us;
	*(uint64_t *)event = b->free_ns[way];
	while (i < SIZES - 1 && bytes >= (uint64_t)8 * KIB << i)
		i++;
	b->n_of[i]++;
	return 0;
}

static int poll(struct sw_back *b, void *event, char *why)
{
	(void)why;
	return b->now_ns < *(uint64_t *)event ? SW_EAGAIN : 0;
}

static const struct sw_back_ops ops = {.event_open = event_open,
	.event_close = event_close,
	.copy = copy,
	.poll = poll};

/* Open a device with 10 GB/s, as PCIe 3 has. */
static struct scene *scene_new(uint64_t latency_us, uint64_t piece_bytes)
{
	struct scene *s = calloc(1, sizeof(*s));
	char why[SW_BACK_WHY];

	s->b.bytes_us = 10000;
	s->l.p.ops = &ops;
	s->l.p.back = &s->b;
	s->l.p.piece_bytes = piece_bytes;
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++) {
		s->b.latency_ns[i] = 1000 * latency_us;
		assert_int_equal(sw_pipeline_lane_open(&s->l, i, why), 0);
	}
	return s;
}

static void scene_free(struct scene *s)
{
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		sw_pipeline_lane_close(&s->l, i);
	free(s);
}

static void end(struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	struct scene *s =
		(struct scene *)((char *)l - offsetof(struct scene, l));

	(void)c;
	s->n_ended++;
	s->err = err;
	s->n_left--;
}

static struct sw_pipeline_copy *put_rows(
	struct scene *s, enum sw_back_way way, const struct sw_rows *rows)
{
	struct sw_pipeline_copy *c = &s->copies[s->n];

	*c = (struct sw_pipeline_copy){.rows = *rows,
		.way = way,
		.priority = 1,
		.number = s->number,
		.at = s->n++,
		.end = end};
	s->n_left++;
	sw_pipeline_lane_put(&s->l, c);
	return c;
}

/* Queue a tensor in copies of 256 KiB to 4 MiB, as its sums may arrive. */
static void put(struct scene *s, enum sw_back_way way, uint64_t bytes)
{
	uint64_t piece = 256 * KIB;

	while (piece < 4 * MIB && bytes / piece >= 8)
		piece *= 2;
	s->number++;
	for (uint64_t at = 0; at < bytes; at += piece)
		put_rows(s, way,
			&(struct sw_rows){.to = nothing,
				.from = nothing,
				.n = 1,
				.bytes = bytes - at < piece ? bytes - at
							    : piece});
}

/* Start all copies that can start, then advance the time to the end of the
 * oldest slice. */
static void step(struct scene *s, enum sw_back_way way)
{
	const struct sw_pipeline_lane *lane = &s->l.lanes[way];
	char why[SW_BACK_WHY];

	assert_in_range(
		sw_pipeline_lane_move(&s->l, way, s->b.now_ns, why), 0, 1);
	if (lane->n)
		s->b.now_ns = *(uint64_t *)lane->slots[lane->first].event;
}

static void run(struct scene *s, enum sw_back_way way)
{
	while (s->n_left)
		step(s, way);
	s->n = s->n_ended = 0;
}

/* Copy tensors of @bytes, four of which are queued at once. Return the time per
 * tensor. */
static uint64_t run_many(
	struct scene *s, enum sw_back_way way, uint64_t bytes, uint32_t times)
{
	uint64_t from_ns = s->b.now_ns;

	for (uint32_t i = 0; i < times; i++) {
		for (uint32_t k = 0; k < 4; k++)
			put(s, way, bytes);
		run(s, way);
	}
	return (s->b.now_ns - from_ns) / (4 * times);
}

/* Return the size that most slices of a tensor have after tuning. */
static uint64_t usual(struct scene *s, enum sw_back_way way, uint64_t bytes)
{
	uint32_t most = 0;

	memset(s->b.n_of, 0, sizeof(s->b.n_of));
	run_many(s, way, bytes, 4);
	for (uint32_t i = 0; i < SIZES; i++)
		if (s->b.n_of[i] > s->b.n_of[most])
			most = i;
	return (uint64_t)4 * KIB << most;
}

static uint64_t usual_of(uint64_t latency_us, uint64_t bytes)
{
	struct scene *s = scene_new(latency_us, 0);
	uint64_t most;

	run_many(s, SW_BACK_OUT, bytes, 40);
	most = usual(s, SW_BACK_OUT, bytes);
	scene_free(s);
	return most;
}

/* A slice is as small as possible with a latency of at most a 20th of its time:
 * 128 KiB take 13 us. */
static void grain__by_latency(void **state)
{
	static const struct {
		uint64_t latency_us, kib;
	} rows[] = {{0, 128}, {1, 256}, {2, 512}, {5, 1024}, {20, 2048},
		{1000, 2048}};

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(usual_of(rows[i].latency_us, 64 * MIB),
			rows[i].kib * KIB);
}

/* Pieces smaller than a slice are copied whole. */
static void grain__by_size(void **state)
{
	(void)state;
	assert_int_equal(usual_of(1000, 8 * MIB), 2 * MIB);
	assert_int_equal(usual_of(1000, 4 * MIB), MIB);
	assert_int_equal(usual_of(1000, MIB), 256 * KIB);
	assert_int_equal(usual_of(0, MIB), 128 * KIB);
	assert_int_equal(usual_of(0, 2 * MIB), 128 * KIB);
	assert_int_equal(usual_of(1000, 8 * KIB), 8 * KIB);
}

/* Each direction has its own slice size. */
static void grain__by_way(void **state)
{
	struct scene *s = scene_new(0, 0);

	(void)state;
	s->b.latency_ns[SW_BACK_IN] = 1000000;
	run_many(s, SW_BACK_OUT, 64 * MIB, 4);
	run_many(s, SW_BACK_IN, 64 * MIB, 4);
	assert_int_equal(usual(s, SW_BACK_OUT, 64 * MIB), 128 * KIB);
	assert_int_equal(usual(s, SW_BACK_IN, 64 * MIB), 2 * MIB);
	scene_free(s);
}

/* Old measurements are forgotten. */
static void grain__follows_the_device(void **state)
{
	struct scene *s = scene_new(0, 0);

	(void)state;
	run_many(s, SW_BACK_OUT, 64 * MIB, 4);
	assert_int_equal(usual(s, SW_BACK_OUT, 64 * MIB), 128 * KIB);
	s->b.latency_ns[SW_BACK_OUT] = 1000000;
	run_many(s, SW_BACK_OUT, 64 * MIB, 40);
	assert_int_equal(usual(s, SW_BACK_OUT, 64 * MIB), 2 * MIB);
	s->b.latency_ns[SW_BACK_OUT] = 0;
	run_many(s, SW_BACK_OUT, 64 * MIB, 400);
	assert_int_equal(usual(s, SW_BACK_OUT, 64 * MIB), 128 * KIB);
	scene_free(s);
}

/* Compared with fixed slices of 2 MiB, tuned slices are never much slower,
 * trials included. */
static void slices__are_as_fast_as_fixed_ones(void **state)
{
	static const uint64_t latencies_us[] = {0, 1, 2, 5, 10, 20, 100, 1000};
	static const uint64_t sizes[] = {100 * KIB, MIB, 2 * MIB, 3 * MIB + 8,
		8 * MIB, 30 * MIB, 64 * MIB};

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t k = 0; k < 7; k++) {
			struct scene *tuned = scene_new(latencies_us[i], 0);
			struct scene *fixed = scene_new(latencies_us[i], FIXED);
			uint64_t a = run_many(tuned, 0, sizes[k], 100);
			uint64_t b = run_many(fixed, 0, sizes[k], 100);

			assert_true(100 * a <= 110 * b);
			scene_free(tuned);
			scene_free(fixed);
		}
}

/* Return the mean time of an urgent copy of 64 KiB that starts while 64 MiB are
 * in flight. */
static uint64_t urgent_ns(uint64_t latency_us, uint64_t piece_bytes)
{
	struct scene *s = scene_new(latency_us, piece_bytes);
	uint64_t all_ns = 0;

	run_many(s, SW_BACK_OUT, 64 * MIB, 10);
	for (uint32_t i = 0; i < 40; i++) {
		struct sw_rows rows = {.to = nothing,
			.from = nothing,
			.bytes = 64 * KIB,
			.n = 1};
		struct sw_pipeline_copy *c;
		uint64_t from_ns;

		put(s, SW_BACK_OUT, 64 * MIB);
		for (uint32_t k = 0; k < 3 + i % 20; k++)
			step(s, SW_BACK_OUT);
		from_ns = s->b.now_ns;
		s->number = 0; /* more urgent than all others of its priority */
		c = put_rows(s, SW_BACK_OUT, &rows);
		while (c->is_open)
			step(s, SW_BACK_OUT);
		all_ns += s->b.now_ns - from_ns;
		run(s, SW_BACK_OUT);
	}
	scene_free(s);
	return all_ns / 40;
}

static void slices__let_others_pass(void **state)
{
	(void)state;
	assert_true(4 * urgent_ns(0, 0) < urgent_ns(0, FIXED));
	assert_true(2 * urgent_ns(2, 0) < urgent_ns(2, FIXED));
	assert_true(10 * urgent_ns(1000, 0) <= 11 * urgent_ns(1000, FIXED));
}

/* Slices of rows larger or smaller than the slice size have whole rows. */
static void grain__of_rows(void **state)
{
	const struct sw_rows rows = {
		.to = nothing, .from = nothing, .bytes = MIB / 3, .n = 4};

	(void)state;
	for (uint32_t is_slow = 0; is_slow < 2; is_slow++) {
		struct scene *s = scene_new(is_slow ? 1000 : 1, 0);

		for (uint32_t i = 0; i < 400; i++) {
			if (i == 360) /* the slice size is tuned by now */
				memset(s->b.n_of, 0, sizeof(s->b.n_of));
			put_rows(s, 0, &rows);
			run(s, 0);
		}
		/* three rows per slice, less than 1 MiB; or 256 KiB */
		assert_int_equal(s->b.n_of[7] > 30, is_slow);
		assert_int_equal(s->b.n_of[6] > 100, !is_slow);
		scene_free(s);
	}
}

/* Rows stay correct while the slice size changes. */
static void slices__of_rows(void **state)
{
	enum { ROWS = 7, BYTES = 200 * KIB + 5, STRIDE = 201 * KIB };
	struct scene *s = scene_new(0, 0);
	char *from = malloc(ROWS * STRIDE), *to = malloc(ROWS * STRIDE);

	(void)state;
	s->b.does_copy = true;
	for (uint32_t i = 0; i < ROWS * STRIDE; i++)
		from[i] = (char)(i * 7 + i / 4099);
	for (uint32_t i = 0; i < 200; i++) {
		memset(to, 0, ROWS * STRIDE);
		s->b.latency_ns[0] = i < 100 ? 0 : 1000000;
		put_rows(s, 0,
			&(struct sw_rows){.to = to,
				.from = from,
				.bytes = BYTES,
				.n = ROWS,
				.to_stride = BYTES,
				.from_stride = STRIDE});
		run(s, 0);
		for (uint32_t k = 0; k < ROWS; k++)
			assert_memory_equal(
				to + k * BYTES, from + k * STRIDE, BYTES);
		assert_int_equal(to[ROWS * BYTES], 0);
	}
	free(from);
	free(to);
	scene_free(s);
}

/* If the device fails, each copy ends exactly once. */
static void lane__ends(void **state)
{
	struct scene *s = scene_new(1000, 0);
	char why[SW_BACK_WHY];

	(void)state;
	run_many(s, SW_BACK_OUT, 64 * MIB, 4);
	put(s, SW_BACK_OUT, 2 * MIB);
	put(s, SW_BACK_OUT, 64 * MIB);
	sw_pipeline_lane_move(&s->l, SW_BACK_OUT, s->b.now_ns, why);
	s->b.is_lost = true;
	s->b.now_ns += UINT64_C(1000000000);
	assert_int_equal(
		sw_pipeline_lane_move(&s->l, SW_BACK_OUT, s->b.now_ns, why),
		SW_EDEVICE);
	sw_pipeline_lane_end(&s->l, SW_BACK_OUT, SW_EDEVICE);
	assert_int_equal(s->n_left, 0);
	assert_int_equal(s->n_ended, s->n);
	assert_int_equal(s->err, SW_EDEVICE);
	assert_int_equal(s->l.lanes[SW_BACK_OUT].n, 0);
	scene_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grain__by_latency),
		cmocka_unit_test(grain__by_size),
		cmocka_unit_test(grain__by_way),
		cmocka_unit_test(grain__of_rows),
		cmocka_unit_test(grain__follows_the_device),
		cmocka_unit_test(slices__are_as_fast_as_fixed_ones),
		cmocka_unit_test(slices__let_others_pass),
		cmocka_unit_test(slices__of_rows),
		cmocka_unit_test(lane__ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
