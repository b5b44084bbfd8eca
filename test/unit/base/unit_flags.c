/* unit_flags.c - a set of flags that one thread raises and another takes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/flags.h"

static struct sw_flags flags;

static void take__each_once_and_in_order(void **state)
{
	static const uint32_t some[] = {4095, 0, 63, 64, 64, 2000, 0};

	memset(&flags, 0, sizeof(flags));
	assert_true(sw_flags_are_down(&flags));
	assert_int_equal(sw_flags_take(&flags), SW_FLAGS);
	for (uint32_t i = 0; i < 7; i++)
		sw_flags_raise(&flags, some[i]);
	assert_false(sw_flags_are_down(&flags));
	assert_int_equal(sw_flags_take(&flags), 0);
	assert_int_equal(sw_flags_take(&flags), 63);
	sw_flags_raise(&flags, 1);
	assert_int_equal(sw_flags_take(&flags), 1);
	assert_int_equal(sw_flags_take(&flags), 64);
	assert_int_equal(sw_flags_take(&flags), 2000);
	assert_int_equal(sw_flags_take(&flags), 4095);
	assert_int_equal(sw_flags_take(&flags), SW_FLAGS);
	assert_true(sw_flags_are_down(&flags));
}

/* A hostile peer may write any bits into the shared words. */
static void take__of_a_hostile_peer(void **state)
{
	memset(&flags, 0, sizeof(flags));
	/* every word is marked, but no flag is set */
	atomic_store(&flags.words, UINT64_MAX);
	assert_int_equal(sw_flags_take(&flags), SW_FLAGS);
	assert_true(sw_flags_are_down(&flags));
	memset(&flags, 0xff, sizeof(flags));
	for (uint32_t i = 0; i < SW_FLAGS; i++)
		assert_int_equal(sw_flags_take(&flags), i);
	assert_int_equal(sw_flags_take(&flags), SW_FLAGS);
}

enum { ROUNDS = 20000, N = 100 };
static _Atomic uint32_t now[N];

static void *raise_all(void *arg)
{
	for (uint32_t k = 1; k <= ROUNDS; k++) {
		uint32_t i = k * 37 % N;

		atomic_store_explicit(&now[i], k, memory_order_relaxed);
		sw_flags_raise(&flags, i * 40);
	}
	return arg;
}

/* A thread that takes a word's last flag also sees the writes before that flag
 * was raised. */
static void take__sees_what_was_written(void **state)
{
	uint32_t seen[N] = {0}, i;
	pthread_t thread;
	bool is_over = false;

	memset(&flags, 0, sizeof(flags));
	pthread_create(&thread, NULL, raise_all, NULL);
	while (!is_over) {
		i = sw_flags_take(&flags);
		if (i != SW_FLAGS)
			seen[i / 40] = atomic_load_explicit(
				&now[i / 40], memory_order_relaxed);
		else
			sched_yield();
		is_over = true;
		for (uint32_t k = 0; k < N && is_over; k++)
			is_over = seen[k] > ROUNDS - N;
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__each_once_and_in_order),
		cmocka_unit_test(take__of_a_hostile_peer),
		cmocka_unit_test(take__sees_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
