/* unit_sched.c - the scheduler core: algorithm 1, policies, wrong calls.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/sched/sched.h"

enum { N = 64, KB = 1000 };

/* A method that only records its calls. */
struct fixture {
	struct sw_sched s;
	uint64_t here[N]; /* bytes that have not left yet */
	struct sw_task tasks[N];
	char log[4096];
};

static struct fixture x;

/* As much as @unit. */
static uint64_t cut_row(const struct sw_task *t, uint64_t from, uint64_t unit)
{
	return sw_min64(t->bytes - from, unit);
}

/* One part. */
static uint64_t cut(const struct sw_task *t, uint64_t from, uint64_t unit)
{
	return cut_row(t, from, sw_min64(unit, x.s.part_bytes));
}

static void begin(struct sw_task *t, uint64_t from, uint64_t bytes)
{
	size_t n = strlen(x.log);

	snprintf(x.log + n, sizeof(x.log) - n, "%st%d+%llu", n ? " " : "",
		(int)(t - x.tasks), (unsigned long long)bytes);
	(void)from;
}

static const struct sw_task_ops ops = {.partition = cut, .start = begin};

/* Take bytes back, for a method that can return them. */
static uint64_t back(struct sw_task *t, uint64_t bytes)
{
	uint64_t *here = &x.here[t - x.tasks];
	uint64_t n = bytes < *here ? bytes : *here;

	*here -= n;
	return n;
}

static const struct sw_task_ops ops_back = {
	.partition = cut, .start = begin, .take_back = back};

static void open_sched(const struct sw_policy *policy)
{
	memset(&x, 0, sizeof(x));
	assert_int_equal(sw_sched_open(&x.s, policy, N), 0);
	for (uint32_t i = 0; i < N; i++)
		x.tasks[i] = (struct sw_task){
			.ops = &ops, .bytes = 100 * KB, .priority = i};
}

static void ready(uint32_t i)
{
	assert_int_equal(sw_task_ready(&x.s, &x.tasks[i]), 0);
}

static void finish(uint32_t i, uint64_t bytes)
{
	assert_int_equal(sw_task_finish(&x.s, &x.tasks[i], bytes), 0);
}

static const char *run(void)
{
	x.log[0] = 0;
	sw_sched_run(&x.s);
	return x.log;
}

static void run__the_most_urgent_while_credit_is_left(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 40 * KB, 100 * KB);
	ready(3);
	ready(1);
	/* The third part exceeds the credit. */
	assert_string_equal(run(), "t1+40000 t1+40000 t1+20000");
	assert_int_equal(x.s.credit, 0);
	ready(0);
	assert_string_equal(run(), "");
	finish(1, 10 * KB);
	assert_string_equal(run(), "t0+40000");
	assert_int_equal(x.s.credit, -30 * KB);
	finish(1, 30 * KB);
	assert_string_equal(run(), ""); /* credit 0 does not suffice */
	finish(1, 1);
	assert_string_equal(run(), "t0+40000");
	sw_sched_close(&x.s);
}

/* A part larger than the whole credit still starts. */
static void run__a_large_part_overdraws(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 1 << 20, 1 << 10);
	x.tasks[0].bytes = 5000 * KB;
	ready(0);
	assert_string_equal(run(), "t0+1048576");
	finish(0, 1048576);
	assert_string_equal(run(), "t0+1048576");
	sw_sched_close(&x.s);
}

static void run__equal_priorities_by_readiness(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 100 * KB, 1 << 30);
	for (uint32_t i = 0; i < 3; i++)
		x.tasks[i].priority = 7;
	ready(2);
	ready(0);
	ready(1);
	assert_string_equal(run(), "t2+100000 t0+100000 t1+100000");
	sw_sched_close(&x.s);
}

/* Cut whole pieces of 3 KB. */
static uint64_t cut_pieces(
	const struct sw_task *t, uint64_t from, uint64_t unit)
{
	return cut_row(
		t, from, unit < 3 * KB ? 3 * KB : unit / (3 * KB) * 3 * KB);
}

static const struct sw_task_ops ops_rows = {
	.partition = cut_pieces, .start = begin};

/* Consecutive parts start as one: as many as would have started one by one, up
 * to another task's turn and to the end of the credit. */
static void run__parts_in_a_row_start_as_one(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 10 * KB, 1 << 30);
	x.tasks[1].ops = x.tasks[2].ops = &ops_rows;
	x.tasks[1].bytes = 400 * KB;
	ready(2);
	ready(1);
	assert_string_equal(run(), "t1+309000 t2+9000 t1+91000 t2+91000");
	assert_int_equal(x.s.n_starts, 31 + 1 + 10 + 10);
	sw_sched_set(&x.s, x.s.policy, 10 * KB, 25 * KB + 1);
	finish(1, 400 * KB);
	finish(2, 100 * KB);
	ready(1);
	assert_string_equal(run(), "t1+30000");
	assert_int_equal(x.s.credit, 1 - 5 * KB);
	sw_sched_close(&x.s);
}

/* One call starts a bounded number of bytes, whatever the credit. */
static void run__a_call_ends(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, SW_PART_MAX, SW_CREDIT_TOP);
	x.tasks[0].bytes = SW_SCHED_RUN_BYTES + 100 * KB;
	ready(0);
	ready(1);
	assert_string_equal(run(), "t0+4194304");
	assert_string_equal(run(), "t0+100000 t1+100000");
	assert_string_equal(run(), "");
	sw_sched_close(&x.s);
}

static void run__fifo_goes_by_readiness(void **state)
{
	const uint64_t mib = 1 << 20;

	open_sched(&sw_policies[SW_POLICY_FIFO]);
	x.tasks[9].bytes = 17 * mib;
	ready(9);
	ready(0);
	for (uint32_t i = 0; i < 4; i++)
		assert_string_equal(
			run(), "t9+1048576 t9+1048576 t9+1048576 t9+1048576");
	assert_string_equal(run(), ""); /* that much is in flight */
	finish(9, mib + 1);
	assert_string_equal(run(), "t9+1048576 t0+100000");
	sw_sched_close(&x.s);
}

static void open_full(const struct sw_policy *policy, uint64_t here)
{
	open_sched(policy);
	for (uint32_t i = 0; i < N; i++)
		x.tasks[i].ops = &ops_back;
	sw_sched_set(&x.s, policy, 10 * KB, 0);
	x.s.credit = x.s.limit = 100 * KB;
	ready(9);
	run();
	assert_int_equal(x.s.credit, 0);
	assert_int_equal(x.tasks[9].state, SW_TASK_STARTED);
	x.here[9] = here;
}

/* A more urgent task takes back what it needs of the bytes that have not left,
 * plus one part for a task whose turn may come. */
static void run__takes_back_for_the_urgent(void **state)
{
	open_full(&sw_policies[SW_POLICY_BYTESCHEDULER], 70 * KB);
	x.tasks[3].bytes = 25 * KB;
	ready(3);
	assert_string_equal(run(), "t3+10000 t3+10000 t3+5000 t9+10000");
	assert_int_equal(x.tasks[9].state, SW_TASK_READY);
	assert_int_equal(x.tasks[9].started, 75 * KB);
	assert_int_equal(x.s.credit, 0);
	finish(3, 25 * KB);
	assert_string_equal(run(), "t9+10000 t9+10000 t9+5000");
	assert_int_equal(x.tasks[9].state, SW_TASK_STARTED);
	finish(9, 100 * KB);
	assert_int_equal(x.s.credit, 100 * KB);
	sw_sched_close(&x.s);
}

static void run__takes_back_nothing_that_has_left(void **state)
{
	open_full(&sw_policies[SW_POLICY_BYTESCHEDULER], 0);
	ready(3);
	assert_string_equal(run(), "");
	x.here[9] = 1; /* less than it needs */
	assert_string_equal(run(), "t3+10000");
	assert_string_equal(run(), "");
	finish(9, 10 * KB);
	assert_string_equal(run(), "t3+10000");
	sw_sched_close(&x.s);
}

/* Credit is not taken back for a task of the same urgency, nor from more urgent
 * or finished ones. */
static void run__takes_back_from_the_less_urgent_alone(void **state)
{
	open_full(&sw_policies[SW_POLICY_BYTESCHEDULER], 100 * KB);
	x.tasks[8].priority = 9;
	ready(8);
	ready(10);
	assert_string_equal(run(), "");
	sw_task_cancel(&x.s, &x.tasks[9]);
	assert_string_equal(run(),
		"t8+10000 t8+10000 t8+10000 t8+10000 t8+10000 t8+10000 "
		"t8+10000 t8+10000 t8+10000 t8+10000");
	finish(8, 100 * KB);
	assert_null(x.s.last);
	sw_sched_close(&x.s);
}

static void run__a_full_queue_takes_nothing_back(void **state)
{
	open_full(&sw_policies[SW_POLICY_BYTESCHEDULER], 100 * KB);
	for (uint32_t i = 0; i < N; i++)
		x.tasks[i].priority += i == 9 ? 2 * N : 0;
	for (uint32_t i = 0; i < N; i++)
		if (i != 9)
			ready(i);
	x.s.size = x.s.n_heap;
	assert_string_equal(run(), "");
	sw_sched_close(&x.s);
}

static void run__p3_stops_and_waits(void **state)
{
	open_sched(&sw_policies[SW_POLICY_P3]);
	x.tasks[4].bytes = 400 * KB;
	ready(4);
	assert_string_equal(run(), "t4+160000");
	finish(4, 159999);
	ready(2);
	assert_string_equal(run(), "");
	finish(4, 1);
	assert_string_equal(run(), "t2+100000");
	finish(2, 100 * KB);
	assert_string_equal(run(), "t4+160000");
	sw_sched_close(&x.s);
}

/* Compare with a plain search, with random priorities, sizes and
 * cancellations. */
static void run__as_a_plain_search(void **state)
{
	uint32_t seed = 7;

	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 1 << 30, 1024);
	for (uint32_t n = 0; n < 20000; n++) {
		uint32_t i = (seed = seed * 1103515245 + 12345) >> 16 & (N - 1);
		struct sw_task *t = &x.tasks[i], *best = NULL;

		if (t->state == SW_TASK_IDLE) {
			t->priority = seed >> 8 & 7;
			ready(i);
		} else if (t->state == SW_TASK_READY && !(seed >> 28)) {
			sw_task_cancel(&x.s, t);
			t->state = SW_TASK_IDLE;
		}
		for (uint32_t k = 0; k < N; k++) {
			t = &x.tasks[k];
			if (t->state == SW_TASK_READY &&
				(!best || t->priority < best->priority ||
					(t->priority == best->priority &&
						t->sequence < best->sequence)))
				best = t;
		}
		if (!best || x.s.n_starts % SW_SCHED_TURN == SW_SCHED_TURN - 1)
			x.s.n_starts++; /* another test covers the turn */
		if (seed >> 20 & 1 && best) {
			run();
			assert_int_equal(best->state, SW_TASK_STARTED);
			finish((uint32_t)(best - x.tasks), best->bytes);
		}
	}
	sw_sched_close(&x.s);
}

/* The least urgent task gets its turn although more urgent ones never end. */
static void run__starvation_is_bounded(void **state)
{
	uint32_t n = 0;

	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 100 * KB, 1024);
	ready(9);
	for (; x.tasks[9].state == SW_TASK_READY; n++) {
		uint32_t urgent = n % 2;

		assert_true(n < 2 * SW_SCHED_TURN);
		ready(urgent);
		run();
		if (x.tasks[urgent].state == SW_TASK_STARTED)
			finish(urgent, 100 * KB);
		else
			break;
	}
	assert_int_equal(x.tasks[9].state, SW_TASK_STARTED);
	assert_int_equal(n, SW_SCHED_TURN - 1);
	sw_sched_close(&x.s);
}

/* --- tuning --- */

static void set__the_partition_between_two_parts(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 10 * KB, 10 * KB);
	ready(0);
	assert_string_equal(run(), "t0+10000");
	x.s.part_bytes = 70 * KB;
	finish(0, 10 * KB);
	assert_string_equal(run(), "t0+70000");
	x.s.part_bytes = 1024;
	finish(0, 70 * KB);
	sw_sched_set(&x.s, x.s.policy, 15 * KB, 1 << 20);
	assert_string_equal(run(), "t0+15000 t0+5000");
	sw_sched_close(&x.s);
}

static void set__credit_and_policy_while_parts_are_on_their_way(void **state)
{
	open_sched(&sw_policies[SW_POLICY_FIFO]);
	ready(5);
	ready(3);
	run();
	ready(4);
	ready(2);
	assert_int_equal(
		sw_sched_set(&x.s, &sw_policies[SW_POLICY_P3], 0, 0), 0);
	assert_string_equal(run(), "");
	finish(5, 100 * KB);
	finish(3, 100 * KB);
	assert_int_equal(x.s.credit, 1);
	assert_string_equal(run(), "t2+100000");
	finish(2, 100 * KB);
	assert_string_equal(run(), "t4+100000");
	sw_sched_close(&x.s);
}

static void set__refused_with_the_reason(void **state)
{
	static const struct {
		const struct sw_policy *policy;
		uint64_t part, credit;
		const char *why;
	} rows[] = {
		{NULL, 0, 0, "unknown policy"},
		{&sw_policies[SW_POLICY_FIFO], 65536, 0, "fixed"},
		{&sw_policies[SW_POLICY_P3], 0, 65536, "fixed"},
		{&sw_policies[SW_POLICY_BYTESCHEDULER], 64, 0,
			"1 KiB to 64 GiB"},
		{&sw_policies[SW_POLICY_BYTESCHEDULER], 1ULL << 37, 0,
			"1 KiB to 64 GiB"},
		{&sw_policies[SW_POLICY_BYTESCHEDULER], 0, 4, "1 KiB to 1 TiB"},
		{&sw_policies[SW_POLICY_BYTESCHEDULER], 0, UINT64_MAX,
			"1 KiB to 1 TiB"},
	};

	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		assert_int_equal(sw_sched_set(&x.s, rows[i].policy,
					 rows[i].part, rows[i].credit),
			SW_EINVAL);
		assert_contains(sw_sched_check(rows[i].policy, rows[i].part,
					rows[i].credit),
			rows[i].why);
		assert_ptr_equal(
			x.s.policy, &sw_policies[SW_POLICY_BYTESCHEDULER]);
		assert_int_equal(x.s.limit, 4 << 20);
	}
	sw_sched_close(&x.s);
}

/* --- mistakes --- */

static void ready__twice(void **state)
{
	open_sched(&sw_policies[SW_POLICY_FIFO]);
	ready(0);
	assert_int_equal(sw_task_ready(&x.s, &x.tasks[0]), SW_EBUSY);
	run();
	assert_int_equal(sw_task_ready(&x.s, &x.tasks[0]), SW_EBUSY);
	finish(0, 100 * KB);
	ready(0);
	sw_sched_close(&x.s);
}

static void ready__wrong(void **state)
{
	open_sched(&sw_policies[SW_POLICY_FIFO]);
	x.tasks[0].bytes = 0;
	assert_int_equal(sw_task_ready(&x.s, &x.tasks[0]), SW_EINVAL);
	sw_sched_close(&x.s);
	open_sched(&sw_policies[SW_POLICY_FIFO]);
	x.s.size = 1;
	ready(0);
	assert_int_equal(sw_task_ready(&x.s, &x.tasks[1]), SW_ENOMEM);
	sw_sched_close(&x.s);
	assert_int_equal(sw_sched_open(&x.s, &sw_policies[SW_POLICY_FIFO], 0),
		SW_EINVAL);
}

static void finish__twice(void **state)
{
	int64_t credit;

	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	assert_int_equal(sw_task_finish(&x.s, &x.tasks[0], 1), SW_EPROTO);
	ready(0);
	run();
	finish(0, 60 * KB);
	credit = x.s.credit;
	assert_int_equal(sw_task_finish(&x.s, &x.tasks[0], 60 * KB), SW_EPROTO);
	assert_int_equal(x.s.credit, credit);
	finish(0, 40 * KB);
	assert_int_equal(sw_task_finish(&x.s, &x.tasks[0], 1), SW_EPROTO);
	sw_sched_close(&x.s);
}

static void cancel__then_anything(void **state)
{
	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_set(&x.s, x.s.policy, 40 * KB, 40 * KB);
	ready(0);
	run();
	ready(1);
	sw_task_cancel(&x.s, &x.tasks[0]);
	assert_int_equal(x.s.credit, 40 * KB);
	assert_string_equal(run(), "t1+40000");
	assert_int_equal(sw_task_finish(&x.s, &x.tasks[0], 40 * KB), SW_EPROTO);
	sw_task_cancel(&x.s, &x.tasks[0]); /* a second time */
	assert_int_equal(x.s.credit, 0);
	sw_sched_close(&x.s);
}

static void watch__counts_waits_for_credit(void **state)
{
	struct sw_stats st = {0};
	uint64_t now_ns = 10;

	open_sched(&sw_policies[SW_POLICY_BYTESCHEDULER]);
	sw_sched_watch(&x.s, &now_ns, &st);
	assert_int_equal(sw_sched_set(&x.s, x.s.policy, 0, 150 * KB), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(sw_task_ready(&x.s, &x.tasks[i]), 0);
	sw_sched_run(&x.s);
	now_ns = 20;
	sw_sched_run(&x.s);
	assert_int_equal(st.stalls_credit, 1);
	assert_int_equal(st.stalled_credit_ns, 0);
	assert_int_equal(sw_task_finish(&x.s, &x.tasks[0], 100 * KB), 0);
	now_ns = 35;
	sw_sched_run(&x.s);
	assert_int_equal(st.stalls_credit, 1);
	assert_int_equal(st.stalled_credit_ns, 25);
	sw_sched_close(&x.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__the_most_urgent_while_credit_is_left),
		cmocka_unit_test(run__a_large_part_overdraws),
		cmocka_unit_test(run__equal_priorities_by_readiness),
		cmocka_unit_test(run__parts_in_a_row_start_as_one),
		cmocka_unit_test(run__a_call_ends),
		cmocka_unit_test(watch__counts_waits_for_credit),
		cmocka_unit_test(run__fifo_goes_by_readiness),
		cmocka_unit_test(run__takes_back_for_the_urgent),
		cmocka_unit_test(run__takes_back_nothing_that_has_left),
		cmocka_unit_test(run__takes_back_from_the_less_urgent_alone),
		cmocka_unit_test(run__a_full_queue_takes_nothing_back),
		cmocka_unit_test(run__p3_stops_and_waits),
		cmocka_unit_test(run__as_a_plain_search),
		cmocka_unit_test(run__starvation_is_bounded),
		cmocka_unit_test(set__the_partition_between_two_parts),
		cmocka_unit_test(
			set__credit_and_policy_while_parts_are_on_their_way),
		cmocka_unit_test(set__refused_with_the_reason),
		cmocka_unit_test(ready__twice),
		cmocka_unit_test(ready__wrong),
		cmocka_unit_test(finish__twice),
		cmocka_unit_test(cancel__then_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
