/* unit_shard_result.c - the results of sums, and queries for them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/shard_rig.h"

/* --- results --- */

static void take__most_urgent_first(void **state)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit(x, 0, SW_I32, 2 * FULL, 9);
	admit(x, 1, SW_I32, FULL, 0);
	for (uint32_t m = 0; m < 2; m++) {
		push_n(x, m, 0, 1, 1, FULL, 1);
		push_n(x, m, 0, 1, 0, FULL, 2);
		push_n(x, m, 1, 1, 0, FULL, 3);
	}
	assert_int_equal(class_for(x, 0), 0);
	assert_int_equal(take(x, 0), 6);
	assert_int_equal(class_for(x, 0), sw_class_of(9));
	assert_int_equal(take(x, 0), 4);
	assert_int_equal(take(x, 0), 2);
	assert_int_equal(class_for(x, 0), SW_N_CLASSES);
	assert_int_equal(class_for(x, 1), 0);
	close_shard(x);
}

/* A run ends after the last result, after the requested number, or at the end
 * of a word of marks. */
static void take__runs(void **state)
{
	enum { N = 70 };
	struct fixture *x = open_shard(1, 0, 1);
	struct sw_tx_frame out[N];
	uint32_t cells[N], order, next = 0;
	const uint32_t wanted[] = {5, 59, 6};

	admit(x, 0, SW_I32, N * FULL, 0);
	for (uint32_t i = 0; i < N; i++)
		push(x, 0, 1, i, (int32_t)i);
	order = sw_bitmap_first(&x->sh.ready[0]);
	for (uint32_t r = 0; r < 3; r++) {
		uint32_t n =
			sw_shard_take(&x->sh, 0, order, out, cells, r ? N : 5);

		assert_int_equal(n, wanted[r]);
		for (uint32_t i = 0; i < n; i++, next++) {
			assert_int_equal(out[i].header.chunk, next);
			assert_int_equal(cells[i], next);
			assert_true(out[i].is_stable);
			assert_int_equal(*(int32_t *)out[i].payload, next);
		}
	}
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

/* Marked results keep their marks when a more urgent tensor is admitted. */
static void admit__while_results_wait(void **state)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit(x, 0, SW_I32, FULL, 9);
	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 1);
	for (uint32_t key = 1; key < 100; key++)
		admit(x, key, SW_I32, FULL, key % 20);
	assert_int_equal(class_for(x, 0), sw_class_of(9));
	assert_int_equal(take(x, 0), 2);
	assert_int_equal(x->h.key, 0);
	assert_int_equal(take(x, 0), -1);
	assert_int_equal(take(x, 1), 2);
	close_shard(x);
}

/* The same with random priorities and results at any moment: in the end each
 * result is marked once, and they leave in order. */
static void admit__anywhere_while_results_wait(void **state)
{
	enum { N = 300 };
	struct fixture *x = open_shard(2, 0, 1);
	uint64_t rng = 9;
	uint32_t n = 0, n_taken = 0, last = 0;

	for (uint32_t key = 0; key < N; key++) {
		uint32_t k;

		admit(x, key, SW_I32, FULL, test_random(&rng) % 50);
		k = (uint32_t)(test_random(&rng) % (key + 1));
		if (push_n(x, 0, k, 1, 0, FULL, 1) == SW_PUSH_FOLD &&
			push_n(x, 1, k, 1, 0, FULL, 1) == SW_PUSH_COMPLETE)
			n++;
	}
	while (take(x, 1) == 2) {
		uint32_t order = sw_orders_number(&x->sh.orders, x->h.key);

		assert_true(!n_taken || order > last);
		assert_int_equal(x->sh.orders.by_order[order], x->h.key);
		last = order;
		n_taken++;
	}
	assert_int_equal(n_taken, n);
	for (uint32_t i = 1; i < N; i++) {
		const struct sw_stensor *a =
			&x->sh.tensors[x->sh.orders.by_order[i - 1]];
		const struct sw_stensor *b =
			&x->sh.tensors[x->sh.orders.by_order[i]];

		assert_true(a->priority < b->priority ||
			    (a->priority == b->priority && a->key < b->key));
	}
	close_shard(x);
}

static void fate__lost_is_sent_again(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 2);
	assert_int_equal(take(x, 0), 3);
	fate(x, 0, true);
	assert_int_equal(x->stats.retransmissions, 1);
	assert_int_equal(take(x, 0), 3);
	fate(x, 0, false);
	fate(x, 0, true); /* the first copy's fate, too late */
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

/* A2: a queued or lost result of v must not go out as v + 1 or v + 2. */
static void fate__lost_after_recycle(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 2);
	take(x, 0);
	take(x, 1);
	push(x, 0, 2, 0, 1);
	push(x, 1, 2, 0, 2);
	take(x, 0);
	take(x, 1);
	push(x, 0, 3, 0, 70); /* recycles the cell of round 1 */
	fate_of(x, 1, 0, 1, true);
	assert_int_equal(take(x, 1), -1);
	fate_of(x, 0, 0, 1, true);
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

/* A push of v + 1 shows that the member holds v, so the mark of v is
 * removed. */
static void push__clears_the_mark_of_the_round_before(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 2);
	push(x, 0, 2, 0, 5);
	assert_int_equal(take(x, 0), -1);
	assert_int_equal(take(x, 1), 3);
	assert_int_equal(x->h.round, 1);
	close_shard(x);
}

/* --- query --- */

static void query__four_answers(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_query p = {0, 1, 0};
	struct sw_answer a;

	assert_int_equal(query(x, 0, 1), 'N');
	push(x, 0, 1, 0, 1);
	assert_true(sw_shard_query(&x->sh, 0, &p, &a));
	assert_int_equal(a.kind, SW_ANSWER_WAIT);
	assert_int_equal(a.missing, 2);
	assert_int_equal(query(x, 1, 1), 'N');
	push(x, 1, 1, 0, 1);
	take(x, 0);
	assert_int_equal(query(x, 0, 1), 'r');
	assert_int_equal(take(x, 0), -1); /* in flight */
	fate(x, 0, false);
	assert_int_equal(query(x, 0, 1), 'r');
	assert_int_equal(take(x, 0), 2);
	push(x, 0, 2, 0, 1);
	assert_int_equal(query(x, 0, 1), 'G');
	assert_int_equal(x->stats.query_need, 2);
	assert_int_equal(x->stats.query_wait, 1);
	assert_int_equal(x->stats.query_gone, 1);
	close_shard(x);
}

static void query__unknown(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_query p = {9, 1, 0};
	struct sw_answer a;

	assert_false(sw_shard_query(&x->sh, 0, &p, &a));
	p = (struct sw_query){0, 1, 1};
	assert_false(sw_shard_query(&x->sh, 0, &p, &a));
	assert_int_equal(x->stats.rx_key, 1);
	assert_int_equal(x->stats.rx_chunk, 1);
	close_shard(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__most_urgent_first),
		cmocka_unit_test(take__runs),
		cmocka_unit_test(admit__while_results_wait),
		cmocka_unit_test(admit__anywhere_while_results_wait),
		cmocka_unit_test(fate__lost_is_sent_again),
		cmocka_unit_test(fate__lost_after_recycle),
		cmocka_unit_test(push__clears_the_mark_of_the_round_before),
		cmocka_unit_test(query__four_answers),
		cmocka_unit_test(query__unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
