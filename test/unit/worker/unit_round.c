/* unit_round.c - push_pull under the scheduler: parts, credit, order.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/faults.h"
#include "engine/worker/tuning.h"
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdio.h>

#include "engine/base/error.h"

static struct worker_rig *open_rig(const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	assert_int_equal(
		sw_sched_set(&r.w.sched, policy, part_bytes, credit_bytes), 0);
	wrig_run(&r);
	return &r;
}

/* Parts are whole chunks, and credit returns as chunks are folded. */
static void push__no_more_than_the_credit(void **state)
{
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER],
		2 * PEER_PAYLOAD + 5, PEER_PAYLOAD);

	wrig_declare(r, "a", 5 * PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(
		wrig_tx(r), "s0 PUSH k0 r1 c0 +1344; s0 PUSH k0 r1 c1 +1344");
	assert_int_equal(r->w.sched.credit, -PEER_PAYLOAD);
	peer_ack(&r->s[0], 0, 1);
	assert_string_equal(wrig_tx(r), "");
	peer_result(&r->s[0], 0, 1, 1, 7); /* a result also counts as folded */
	assert_string_equal(
		wrig_tx(r), "s0 PUSH k0 r1 c2 +1344; s0 PUSH k0 r1 c3 +1344");
	peer_ack(&r->s[0], 0, 4);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c4 +1344");
	peer_ack(&r->s[0], 0, 5);
	assert_int_equal(r->w.sched.credit, PEER_PAYLOAD);
	wrig_close(r);
}

/* A retransmitted chunk takes and returns credit only once. */
static void push__again_is_not_charged(void **state)
{
	struct worker_rig *r =
		open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER], 1024, 1 << 20);

	wrig_declare(r, "a", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344");
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "PUSH k0 r1 c0 +1344");
	assert_int_equal(r->w.sched.credit, (1 << 20) - 1344);
	peer_ack(&r->s[0], 0, 2);
	assert_int_equal(r->w.sched.credit, 1 << 20);
	peer_result(&r->s[0], 0, 1, 0, 7);
	assert_int_equal(r->w.sched.credit, 1 << 20);
	assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w2");
	wrig_close(r);
}

/* An urgent tensor also overtakes a part that was started and not sent. */
static void push__the_urgent_overtakes(void **state)
{
	struct worker_rig *r =
		open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER], 0, 0);

	wrig_declare(r, "late", 3 * PEER_CHUNK, 9);
	wrig_declare(r, "urgent", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c0 +1344");
	sw_worker_push(&r->w, 1, 1, 0);
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k1 r1 c0 +1344");
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c1 +1344");
	wrig_close(r);
}

/* Within a class a lost chunk goes before new ones of any urgency. A more
 * urgent class goes before both. */
static void push__what_was_lost_goes_first(void **state)
{
	struct worker_rig *r =
		open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER], 0, 0);

	wrig_declare(r, "late", 3 * PEER_CHUNK, 300);
	wrig_declare(r, "sooner", PEER_CHUNK, 200);
	wrig_declare(r, "urgent", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c0 +1344");
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c1 +1344");
	wrig_tick(r, SW_S);
	wrig_tick(r, SW_S); /* one retransmission after the other */
	sw_worker_push(&r->w, 1, 1, 0);
	sw_worker_push(&r->w, 2, 1, 0);
	assert_contains(wrig_tx(r),
		"s0 PUSH k2 r1 c0 +1344; s0 PUSH k0 r1 c0 +1344 again; "
		"s0 PUSH k0 r1 c1 +1344 again; s0 PUSH k1 r1 c0 +1344; "
		"s0 PUSH k0 r1 c2 +1344");
	assert_true(sw_bitmap_is_empty(&r->w.links[0].sets[SW_AGAIN]));
	wrig_close(r);
}

/* When the credit is used up, a started part that is not sent returns its
 * credit, except for one chunk. */
static void push__the_urgent_takes_credit_back(void **state)
{
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER],
		PEER_PAYLOAD, 4 * PEER_PAYLOAD);
	const struct sw_task *late = &r->w.tensors[0].task;

	wrig_declare(r, "late", 9 * PEER_CHUNK, 9);
	wrig_declare(r, "urgent", 3 * PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c0 +1344");
	assert_int_equal(r->w.sched.credit, 0);
	assert_int_equal(late->started, 4 * PEER_PAYLOAD);
	sw_worker_push(&r->w, 1, 1, 0);
	assert_int_equal(late->started, 2 * PEER_PAYLOAD);
	assert_int_equal(r->w.sched.credit, 0);
	assert_string_equal(wrig_tx(r),
		"s0 PUSH k1 r1 c0 +1344; s0 PUSH k1 r1 c1 +1344; "
		"s0 PUSH k0 r1 c1 +1344");
	peer_result(&r->s[0], 0, 1, 0, 1);
	assert_string_equal(wrig_tx(r), "s0 PUSH k1 r1 c2 +1344");
	for (uint32_t c = 0; c < 3; c++)
		peer_result(&r->s[0], 1, 1, c, 1);
	assert_string_equal(wrig_events(r), "done t1 #0 SW_OK w2");
	assert_string_equal(wrig_tx(r),
		"s0 PUSH k0 r1 c2 +1344; s0 PUSH k0 r1 c3 +1344; "
		"s0 PUSH k0 r1 c4 +1344");
	wrig_close(r);
}

static void push__fifo_overtakes_nothing(void **state)
{
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_FIFO], 0, 0);
	const char *name = "a";

	wrig_declare(r, "late", 2 * PEER_CHUNK, 9);
	wrig_declare(r, "urgent", PEER_CHUNK, 0);
	for (uint32_t round = 1; round < 3; round++) {
		sw_worker_push(&r->w, 0, round, 0);
		sw_worker_push(&r->w, 1, round, 0);
		for (uint32_t n = 0; n < 3; n++) {
			assert_contains(wrig_tx_one(r), n < 2 ? "k0" : "k1");
			assert_int_equal(r->last[SW_PUSH].h.class, 7);
		}
		if (round == 1) /* while the calls are open */
			wrig_declare(r, name, PEER_CHUNK, 5);
		for (uint32_t c = 0; c < 2; c++)
			peer_result(&r->s[0], 0, round, c, 1);
		peer_result(&r->s[0], 1, round, 0, 1);
		wrig_events(r);
	}
	wrig_close(r);
}

/* A tensor stays open while another one is pushed more often than there are
 * places in the order. Its lost chunks are still sent first. */
static void push__fifo_for_a_long_time(void **state)
{
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_FIFO], 0, 0);

	wrig_declare(r, "stays", 2 * PEER_CHUNK, 9);
	wrig_declare(r, "comes and goes", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	wrig_tx(r);
	peer_ack(&r->s[0], 7, 2); /* both chunks are overdue */
	for (uint32_t round = 1; round < 2 * SW_TENSORS; round++) {
		r->s[0].grant += 8 * PEER_QUANTA;
		sw_worker_push(&r->w, 1, round, 0);
		assert_contains(wrig_tx_one(r), "PUSH k1");
		assert_null(r->w.links[0].oldest);
		peer_result(&r->s[0], 1, round, 0, 1);
		assert_string_equal(wrig_events(r), "done t1 #0 SW_OK w2");
		wrig_tx(r);
	}
	assert_int_equal(r->w.links[0].n_folded, 2);
	peer_result(&r->s[0], 0, 1, 0, 1);
	peer_result(&r->s[0], 0, 1, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w2");
	assert_int_equal(r->w.links[0].n_folded, 0);
	wrig_close(r);
}

/* Dead tensors leave the order, at any position. */
static void push__fifo_without_the_dead(void **state)
{
	const struct sw_fault why = {.err = SW_EMISMATCH};
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_FIFO], 0, 0);
	char name[2] = "a";

	for (; name[0] < 'e'; name[0]++)
		wrig_declare(r, name, PEER_CHUNK, (uint32_t)('e' - name[0]));
	for (uint32_t t = 4; t--;)
		sw_worker_push(&r->w, t, 1, 0);
	sw_tensor_kill(&r->w, &r->w.tensors[1], 1, &why);
	sw_tensor_kill(&r->w, &r->w.tensors[3], 1, &why);
	wrig_events(r);
	while (strstr(wrig_tx_one(r), "END"))
		;
	assert_int_equal(r->last[SW_PUSH].h.key, 2);
	assert_contains(wrig_tx_one(r), "PUSH k0");
	assert_null(r->w.links[0].oldest);
	assert_null(r->w.links[0].newest);
	wrig_close(r);
}

/* When the policy changes in either direction, chunks that were started before
 * leave first, in their order. */
static void push__fifo_from_now_on(void **state)
{
	struct worker_rig *r =
		open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER], 0, 0);

	wrig_declare(r, "late", PEER_CHUNK, 500);
	wrig_declare(r, "urgent", PEER_CHUNK, 1);
	wrig_declare(r, "more urgent", PEER_CHUNK, 0);
	wrig_declare(r, "most urgent", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	sw_worker_push(&r->w, 1, 1, 0);
	sw_tuning_use(&r->w, &sw_policies[SW_POLICY_FIFO], 0, 0);
	sw_worker_push(&r->w, 2, 1, 0);
	assert_contains(wrig_tx_one(r), "k1");
	assert_contains(wrig_tx_one(r), "k0");
	sw_tuning_use(&r->w, &sw_policies[SW_POLICY_BYTESCHEDULER], 0, 0);
	sw_worker_push(&r->w, 3, 1, 0);
	assert_contains(wrig_tx_one(r), "k2");
	assert_contains(wrig_tx_one(r), "k3");
	wrig_close(r);
}

/* Every 32nd frame belongs to the next tensor in turn, for any priority. */
static void push__nobody_starves(void **state)
{
	struct worker_rig *r =
		open_rig(&sw_policies[SW_POLICY_BYTESCHEDULER], 0, 0);
	uint32_t at[2], n = 0;

	wrig_declare(r, "urgent", 150 * PEER_CHUNK, 0);
	wrig_declare(r, "late", 2 * PEER_CHUNK, 500);
	sw_worker_push(&r->w, 0, 1, 0);
	sw_worker_push(&r->w, 1, 1, 0);
	for (uint32_t i = 0; n < 2; i++) {
		assert_true(i < 150);
		wrig_tx_one(r);
		if (r->last[SW_PUSH].h.key == 1)
			at[n++] = i;
	}
	assert_true(at[0] < 2 * SW_DUE_TURN);
	assert_int_equal(at[1] - at[0], 2 * SW_DUE_TURN);
	wrig_close(r);
}

/* A job that ends gives up all started parts. */
static void push__the_job_ends(void **state)
{
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_P3], 0, 0);

	wrig_declare(r, "a", PEER_CHUNK, 0);
	wrig_declare(r, "b", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	sw_worker_push(&r->w, 1, 1, 0);
	sw_worker_leave(&r->w, NULL);
	assert_int_equal(r->w.sched.n_heap, 0);
	assert_int_equal(r->w.sched.credit, 1);
	wrig_close(r);
}

static void declare_all(struct worker_rig *r)
{
	static struct sw_worker_tensor list[SW_TENSORS];
	static char names[SW_TENSORS][16];

	for (uint32_t i = 0; i < SW_TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.n_elems = 1,
			.dtype = SW_I32,
			.base = &r->data[0][i]};
	}
	assert_int_equal(sw_worker_declare(&r->w, list, SW_TENSORS), 0);
	while (r->w.n_admitted < SW_TENSORS) {
		wrig_tx(r);
		peer_declared(&r->s[0]);
	}
}

/* The maximum number of tensors is open; one ends and becomes ready again, and
 * its old position does not count. */
static void push__readiness_of_all_tensors(void **state)
{
	struct worker_rig *r = open_rig(&sw_policies[SW_POLICY_FIFO], 0, 0);
	struct sw_header h = peer_result_header(0, 1, 0, 1);
	int32_t sum = 7;

	declare_all(r);
	/* acknowledges DECLARED */
	assert_string_equal(wrig_tx_one(r), "s0 KEEPALIVE");
	for (uint32_t i = 0; i < SW_TENSORS; i++)
		assert_int_equal(sw_worker_push(&r->w, i, 1, 0), 0);
	assert_contains(wrig_tx_one(r), "PUSH k0 r1 c0");
	peer_send(&r->s[0], h, &sum);
	assert_contains(wrig_events(r), "done t0");
	assert_int_equal(sw_worker_push(&r->w, 0, 2, 0), 0);
	assert_ptr_equal(r->w.links[0].newest, &r->w.tensors[0]);
	assert_contains(wrig_tx_one(r), "PUSH k1 r1 c0");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push__no_more_than_the_credit),
		cmocka_unit_test(push__again_is_not_charged),
		cmocka_unit_test(push__the_urgent_overtakes),
		cmocka_unit_test(push__what_was_lost_goes_first),
		cmocka_unit_test(push__the_urgent_takes_credit_back),
		cmocka_unit_test(push__fifo_overtakes_nothing),
		cmocka_unit_test(push__fifo_for_a_long_time),
		cmocka_unit_test(push__fifo_without_the_dead),
		cmocka_unit_test(push__fifo_from_now_on),
		cmocka_unit_test(push__nobody_starves),
		cmocka_unit_test(push__the_job_ends),
		cmocka_unit_test(push__readiness_of_all_tensors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
