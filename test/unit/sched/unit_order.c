/* unit_order.c - the numbers that order tensors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>

#include "engine/sched/order.h"

enum { N = 128, WORDS = 64 };

static struct {
	struct sw_orders o;
	uint32_t mem[SW_ORDERS_WORDS * N], priority[N], n;
	struct sw_bitmap set;
	uint64_t words[WORDS];
	bool is_here[N]; /* admitted */
	bool is_in[N];   /* a member of the set */
} x;

static void open_orders(void)
{
	memset(&x, 0, sizeof(x));
	sw_orders_open(&x.o, N, x.mem);
	sw_bitmap_init(&x.set, N, x.words);
}

static void admit_at(uint32_t i, uint32_t priority)
{
	uint32_t at = sw_orders_admit(&x.o, i, priority);

	x.priority[i] = priority;
	x.is_here[i] = true;
	sw_orders_shift(&x.o, &x.set, at);
}

static void admit(uint32_t priority)
{
	admit_at(x.n++, priority);
}

static void go(uint32_t i)
{
	uint32_t at = sw_orders_remove(&x.o, i);

	x.is_here[i] = false;
	sw_orders_shift_down(&x.o, &x.set, at);
}

static void enter(uint32_t i)
{
	sw_bitmap_add(&x.set, sw_orders_update(&x.o, i));
	x.is_in[i] = true;
}

static void leave(uint32_t i)
{
	sw_bitmap_remove(&x.set, sw_orders_update(&x.o, i));
	x.is_in[i] = false;
}

static bool is_before(uint32_t a, uint32_t b)
{
	return x.priority[a] != x.priority[b] ? x.priority[a] < x.priority[b]
					      : a < b;
}

/* Check that the set has its members once each, in order. */
static void check_set(void)
{
	uint32_t last = N, n = 0, number = 0;

	for (; (number = sw_bitmap_next(&x.set, number)) != SW_BITMAP_NONE;
		number++, n++) {
		uint32_t i = sw_orders_at(&x.o, number);

		assert_true(x.is_in[i]);
		assert_int_equal(sw_orders_number(&x.o, i), number);
		assert_true(last == N || is_before(last, i));
		last = i;
	}
	for (uint32_t i = 0; i < N; i++)
		n -= x.is_in[i];
	assert_int_equal(n, 0);
}

/* Tensors are admitted, in batches or one by one, and freed, and others reuse
 * their indices, while members enter and leave the set. */
static void orders__as_a_plain_sort(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		open_orders();
		srand(seed);
		for (uint32_t step = 0; step < 5000; step++) {
			uint32_t i = x.n ? (uint32_t)rand() % x.n : 0;

			if (x.n < N && rand() % 16 == 0)
				admit((uint32_t)rand() % 9);
			else if (x.n && !x.is_here[i])
				admit_at(i, (uint32_t)rand() % 9);
			else if (x.n && !x.is_in[i] && rand() % 8 == 0)
				go(i);
			else if (x.n && x.is_in[i])
				leave(i);
			else if (x.n)
				enter(i);
			if (step % 8 == 0)
				check_set();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders__as_a_plain_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
