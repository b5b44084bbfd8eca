/* unit_allreduce.c - schedule another library's all-reduce by the same core.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The library here is of the usual kind. A collective runs when all ranks have
 * called it, and the n-th calls of all ranks match, so ranks that call in
 * different orders mix up tensors. Gradients become ready in a different order
 * at each rank. So one master's scheduler decides: it tells the others which
 * part it starts. Each other rank makes a task of that part, which is ready
 * when it is next in the master's order and the rank's own gradient is there.
 * The policy `fifo` keeps that order.
 */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/error.h"
#include "engine/sched/sched.h"

enum { RANKS = 4, TENSORS = 12, ELEMS = 1000, CALLS = 4096 };

/* One collective call of a rank. */
struct call {
	uint32_t tensor, from, n; /* in elements */
};

struct rank {
	struct sw_sched s;
	struct sw_task tasks[CALLS]; /* master: by tensor; others: by call */
	uint32_t index;
	uint32_t n_tasks;
	bool has_gradient[TENSORS];
	int32_t data[TENSORS][ELEMS];
	struct call calls[CALLS]; /* calls made to the library */
	uint32_t n_calls;
};

static struct {
	struct rank ranks[RANKS];
	struct call order[CALLS]; /* the master's calls */
	uint32_t n_order, n_done, limit;
	/* bytes that the master has called and that are not reduced yet */
	uint64_t on_way;
} x;

static struct rank *rank_of(const struct sw_task *t)
{
	for (uint32_t r = 0; r < RANKS; r++)
		if (t >= x.ranks[r].tasks && t < x.ranks[r].tasks + CALLS)
			return &x.ranks[r];
	fail();
	return NULL;
}

static uint64_t cut(const struct sw_task *t, uint64_t from, uint64_t unit)
{
	return t->bytes - from < unit ? t->bytes - from : unit;
}

/* Call a part of the master's tensor, and tell the other ranks. */
static void start_at_master(struct sw_task *t, uint64_t from, uint64_t bytes)
{
	struct rank *k = rank_of(t);
	struct call c = {.tensor = (uint32_t)(t - k->tasks),
		.from = (uint32_t)from / 4,
		.n = (uint32_t)bytes / 4};

	k->calls[k->n_calls++] = c;
	x.order[x.n_order++] = c;
	x.on_way += bytes;
}

static void start_at_follower(struct sw_task *t, uint64_t from, uint64_t bytes)
{
	struct rank *k = rank_of(t);

	assert_int_equal(from, 0);
	assert_int_equal(bytes, t->bytes);
	k->calls[k->n_calls++] = x.order[t - k->tasks];
}

static const struct sw_task_ops master_ops = {
	.partition = cut, .start = start_at_master};
static const struct sw_task_ops follower_ops = {
	.partition = cut, .start = start_at_follower};

static void gradient_is_ready(struct rank *k, uint32_t tensor)
{
	k->has_gradient[tensor] = true;
	for (uint32_t i = 0; i < ELEMS; i++)
		k->data[tensor][i] = (int32_t)(1u << 2 * k->index);
	if (k->index)
		return;
	k->tasks[tensor] = (struct sw_task){
		.ops = &master_ops, .bytes = 4 * ELEMS, .priority = tensor};
	assert_int_equal(sw_task_ready(&k->s, &k->tasks[tensor]), 0);
}

/* Make the next parts of the master's order ready if their gradient is
 * there. */
static void follow(struct rank *k)
{
	while (k->n_tasks < x.n_order &&
		k->has_gradient[x.order[k->n_tasks].tensor]) {
		struct sw_task *t = &k->tasks[k->n_tasks];

		*t = (struct sw_task){.ops = &follower_ops,
			.bytes = 4 * x.order[k->n_tasks++].n};
		assert_int_equal(sw_task_ready(&k->s, t), 0);
	}
	sw_sched_run(&k->s);
}

/* Play the library: the n-th calls of all ranks are one all-reduce. */
static bool reduce(void)
{
	struct call c = x.ranks[0].calls[x.n_done];
	int32_t sum;

	for (uint32_t r = 0; r < RANKS; r++) {
		if (x.ranks[r].n_calls <= x.n_done)
			return false;
		assert_memory_equal(&x.ranks[r].calls[x.n_done], &c, sizeof(c));
	}
	for (uint32_t i = c.from; i < c.from + c.n; i++) {
		sum = 0;
		for (uint32_t r = 0; r < RANKS; r++)
			sum += x.ranks[r].data[c.tensor][i];
		for (uint32_t r = 0; r < RANKS; r++)
			x.ranks[r].data[c.tensor][i] = sum;
	}
	for (uint32_t r = 0; r < RANKS; r++)
		assert_int_equal(
			sw_task_finish(&x.ranks[r].s,
				&x.ranks[r].tasks[r ? x.n_done : c.tensor],
				4 * c.n),
			0);
	x.on_way -= 4 * c.n;
	x.n_done++;
	return true;
}

static void open_ranks(uint64_t part, uint64_t credit)
{
	memset(&x, 0, sizeof(x));
	for (uint32_t r = 0; r < RANKS; r++) {
		struct rank *k = &x.ranks[r];

		k->index = r;
		assert_int_equal(
			sw_sched_open(&k->s,
				r ? &sw_policies[SW_POLICY_FIFO]
				  : &sw_policies[SW_POLICY_BYTESCHEDULER],
				CALLS),
			0);
	}
	assert_int_equal(
		sw_sched_set(&x.ranks[0].s,
			&sw_policies[SW_POLICY_BYTESCHEDULER], part, credit),
		0);
}

static void close_ranks(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		sw_sched_close(&x.ranks[r].s);
}

/* Gradients become ready backwards at the master and in any order at other
 * ranks, at random times. */
static void all_ranks_issue_alike(void **state)
{
	for (uint32_t seed = 1; seed <= 50; seed++) {
		uint32_t rng = seed, left = RANKS * TENSORS;
		uint64_t part = 1024 + seed * 64;

		open_ranks(part, 4096);
		while (left || x.n_done < x.n_order) {
			uint32_t r = (rng = rng * 1103515245 + 12345) >> 16 & 3;
			uint32_t t = (rng >> 18) % TENSORS;

			if (r == 0)
				for (t = TENSORS - 1;
					t && x.ranks[0].has_gradient[t];)
					t--;
			if (!x.ranks[r].has_gradient[t]) {
				gradient_is_ready(&x.ranks[r], t);
				left--;
			}
			sw_sched_run(&x.ranks[0].s);
			for (uint32_t i = 1; i < RANKS; i++)
				follow(&x.ranks[i]);
			assert_true(x.on_way < 4096 + part);
			if (rng >> 30)
				reduce();
		}
		for (uint32_t r = 0; r < RANKS; r++)
			for (uint32_t t = 0; t < TENSORS; t++)
				for (uint32_t i = 0; i < ELEMS; i++)
					assert_int_equal(
						x.ranks[r].data[t][i], 0x55);
		close_ranks();
	}
}

/* The first layer's gradient comes last, but is reduced before all waiting
 * ones. */
static void the_urgent_overtakes(void **state)
{
	open_ranks(1024, 1024);
	for (uint32_t t = TENSORS; t-- > 0;) {
		for (uint32_t r = 0; r < RANKS; r++)
			gradient_is_ready(&x.ranks[r], t);
		sw_sched_run(&x.ranks[0].s);
	}
	do {
		sw_sched_run(&x.ranks[0].s);
		for (uint32_t i = 1; i < RANKS; i++)
			follow(&x.ranks[i]);
	} while (reduce());
	/* already in flight */
	assert_int_equal(x.order[0].tensor, TENSORS - 1);
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(x.order[i].tensor, 0);
	assert_int_equal(x.order[5].tensor, 1);
	close_ranks();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_issue_alike),
		cmocka_unit_test(the_urgent_overtakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
