/* unit_spsc.c - the ring of one producer and one consumer, also hostile ones.
 * SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "engine/base/spsc.h"

enum { SIZE = 8, GUARD = 64 };

struct entry {
	uint64_t a;
	uint32_t b;
};

/* A ring between two guards, and both of its ends. */
struct ring {
	unsigned char *memory;
	struct sw_spsc put, take;
};

static size_t ring_bytes(void)
{
	return SW_SPSC_BYTES(SIZE, sizeof(struct entry));
}

static void ring_open(struct ring *r)
{
	size_t bytes = (ring_bytes() + 2 * GUARD + 63) / 64 * 64;

	r->memory = aligned_alloc(64, bytes);
	assert_non_null(r->memory);
	memset(r->memory, 0xa5, bytes);
	memset(r->memory + GUARD, 0, ring_bytes());
	sw_spsc_init(&r->put, r->memory + GUARD, SIZE, sizeof(struct entry));
	sw_spsc_init(&r->take, r->memory + GUARD, SIZE, sizeof(struct entry));
}

static void ring_close(struct ring *r)
{
	for (size_t i = 0; i < GUARD; i++) {
		assert_int_equal(r->memory[i], 0xa5);
		assert_int_equal(r->memory[GUARD + ring_bytes() + i], 0xa5);
	}
	free(r->memory);
}

static void put_n(struct ring *r, uint32_t from, uint32_t n, int expected)
{
	struct entry e[2 * SIZE];

	for (uint32_t i = 0; i < n; i++)
		e[i] = (struct entry){from + i, ~(from + i)};
	assert_int_equal(sw_spsc_put(&r->put, e, n), expected);
}

static void take_n(struct ring *r, uint32_t from, uint32_t n, int expected)
{
	struct entry e[2 * SIZE];

	assert_int_equal(sw_spsc_take(&r->take, e, n), expected);
	for (int i = 0; i < expected; i++) {
		assert_int_equal(e[i].a, from + (uint32_t)i);
		assert_int_equal(e[i].b, ~(from + (uint32_t)i));
	}
}

static void put__fills_and_refuses(void **state)
{
	struct ring r;

	ring_open(&r);
	assert_true(sw_spsc_is_empty(&r.take));
	take_n(&r, 0, 4, 0);
	put_n(&r, 0, 2 * SIZE, SIZE);
	put_n(&r, 8, 1, 0);
	assert_false(sw_spsc_is_empty(&r.take));
	take_n(&r, 0, 3, 3);
	put_n(&r, 8, 5, 3);
	take_n(&r, 3, 2 * SIZE, SIZE);
	assert_true(sw_spsc_is_empty(&r.take));
	put_n(&r, 11, 0, 0);
	ring_close(&r);
}

static void room__counts_what_fits(void **state)
{
	struct ring r;

	ring_open(&r);
	assert_int_equal(sw_spsc_room(&r.put), SIZE);
	put_n(&r, 0, SIZE, SIZE);
	assert_int_equal(sw_spsc_room(&r.put), 0);
	take_n(&r, 0, 3, 3);
	assert_int_equal(sw_spsc_room(&r.put), 3);
	put_n(&r, SIZE, 2, 2);
	assert_int_equal(sw_spsc_room(&r.put), 1);
	atomic_store(&r.put.shared->n_taken, r.put.own + 1);
	assert_int_equal(sw_spsc_room(&r.put), 0);
	ring_close(&r);
}

static void take__wraps_at_every_offset(void **state)
{
	struct ring r;
	uint32_t at = 0;

	ring_open(&r);
	for (uint32_t n = 1; n <= SIZE; n++)
		for (uint32_t i = 0; i < SIZE; i++, at += n) {
			put_n(&r, at, n, (int)n);
			take_n(&r, at, n, (int)n);
		}
	ring_close(&r);
}

static void index__wraps_at_2_to_32(void **state)
{
	struct ring r;
	uint32_t start = UINT32_MAX - 2;

	ring_open(&r);
	r.put.own = r.put.peer = r.take.own = r.take.peer = start;
	atomic_store(&r.put.shared->n_put, start);
	atomic_store(&r.put.shared->n_taken, start);
	put_n(&r, 0, 6, 6);
	take_n(&r, 0, 2 * SIZE, 6);
	put_n(&r, 6, 2 * SIZE, SIZE);
	take_n(&r, 6, SIZE, SIZE);
	assert_int_equal(r.take.own, start + 14);
	ring_close(&r);
}

static void take__reports_an_impossible_producer(void **state)
{
	static const uint32_t beyond[] = {SIZE + 3, 1000, UINT32_MAX, 0, 1};
	struct ring r;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		ring_open(&r);
		put_n(&r, 0, 2, 2);
		take_n(&r, 0, 2, 2);
		atomic_store(&r.take.shared->n_put, beyond[i]);
		assert_false(sw_spsc_is_empty(&r.take));
		take_n(&r, 0, 4, SW_EPROTO);
		ring_close(&r);
	}
}

static void put__reports_an_impossible_consumer(void **state)
{
	static const uint32_t beyond[] = {SIZE + 1, 9999, UINT32_MAX, 1u << 31};
	struct ring r;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		ring_open(&r);
		put_n(&r, 0, SIZE, SIZE);
		atomic_store(&r.put.shared->n_taken, beyond[i]);
		put_n(&r, 8, 1, SW_EPROTO);
		ring_close(&r);
	}
}

/* For any indices all accesses stay inside the ring, and every copy has a whole
 * number of entries. */
static void random_indices__stay_inside(void **state)
{
	struct ring r;
	struct entry e[2 * SIZE] = {0};

	ring_open(&r);
	srandom(1);
	for (int i = 0; i < 200000; i++) {
		uint32_t wild = (uint32_t)random() << (random() % 3 * 8);
		uint32_t near = (uint32_t)random() % (2 * SIZE);
		uint32_t n = (uint32_t)random() % (2 * SIZE);
		int done;

		atomic_store(&r.put.shared->n_taken,
			random() % 2 ? wild : r.put.own - near);
		done = sw_spsc_put(&r.put, e, n);
		assert_true(done == SW_EPROTO || (done >= 0 && done <= SIZE));
		atomic_store(&r.put.shared->n_put,
			random() % 2 ? wild : r.take.own + near);
		done = sw_spsc_take(&r.take, e, n);
		assert_true(done == SW_EPROTO || (done >= 0 && done <= SIZE));
	}
	ring_close(&r);
}

enum { N_RACED = 300000 };

static void *produce(void *arg)
{
	struct sw_spsc *s = arg;
	struct entry e[5];
	uint32_t n = 0;

	while (n < N_RACED) {
		uint32_t burst = 1 + n % 5;
		int done;

		if (burst > N_RACED - n)
			burst = N_RACED - n;

		for (uint32_t i = 0; i < burst; i++)
			e[i] = (struct entry){n + i, ~(n + i)};
		done = sw_spsc_put(s, e, burst);
		if (!done)
			sched_yield();
		n += (uint32_t)done;
	}
	return NULL;
}

static void two_threads__lose_nothing(void **state)
{
	struct ring r;
	struct entry e[7];
	pthread_t thread;
	uint32_t n = 0, n_wrong = 0;

	ring_open(&r);
	pthread_create(&thread, NULL, produce, &r.put);
	while (n < N_RACED) {
		int got = sw_spsc_take(&r.take, e, 7);

		if (!got)
			sched_yield();
		for (int i = 0; i < got; i++, n++)
			n_wrong += e[i].a != n || e[i].b != ~n;
	}
	pthread_join(thread, NULL);
	assert_int_equal(n_wrong, 0);
	assert_true(sw_spsc_is_empty(&r.take));
	ring_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__fills_and_refuses),
		cmocka_unit_test(room__counts_what_fits),
		cmocka_unit_test(take__wraps_at_every_offset),
		cmocka_unit_test(index__wraps_at_2_to_32),
		cmocka_unit_test(take__reports_an_impossible_producer),
		cmocka_unit_test(put__reports_an_impossible_consumer),
		cmocka_unit_test(random_indices__stay_inside),
		cmocka_unit_test(two_threads__lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
