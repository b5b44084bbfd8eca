/* unit_tensors.c - the worker's tensors: declare, order, submit, end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdio.h>
#include <stdlib.h>

static struct worker_rig *open_rig(uint32_t n_servers)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, n_servers);
	wrig_run(&r);
	return &r;
}

static struct sw_worker_tensor tensor(const char *name, uint64_t n_elems)
{
	return (struct sw_worker_tensor){
		.name = name, .n_elems = n_elems, .dtype = SW_I32};
}

/* --- declare --- */

static void declare__too_many(void **state)
{
	static struct sw_worker_tensor rows[SW_TENSORS + 1];
	static char names[SW_TENSORS + 1][8];
	struct worker_rig *r = open_rig(1);

	for (uint32_t i = 0; i <= SW_TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		rows[i] = tensor(names[i], 1);
	}
	assert_int_equal(
		sw_worker_declare(&r->w, rows, SW_TENSORS + 1), SW_EBUSY);
	assert_int_equal(r->w.n_tensors, 0);
	wrig_close(r);
}

static void declare__malformed(void **state)
{
	struct worker_rig *r = open_rig(1);
	char name[200];
	struct sw_worker_tensor rows[6];

	memset(name, 'x', sizeof(name));
	name[SW_NAME_MAX] = 0; /* 128 bytes, one too many */
	rows[0] = tensor("", 10);
	rows[1] = tensor(name, 10);
	rows[2] = tensor("a", 0);
	rows[3] = tensor("a", UINT64_MAX);
	rows[4] = tensor("a", (16ULL << 30) + 1);
	rows[5] = tensor("a", 10);
	rows[5].dtype = 7;
	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++)
		assert_int_equal(
			sw_worker_declare(&r->w, &rows[i], 1), SW_EINVAL);
	assert_int_equal(sw_worker_declare(&r->w, rows, 0), SW_EINVAL);
	assert_int_equal(r->w.n_tensors, 0);
	assert_string_equal(wrig_tx(r), "");
	name[SW_NAME_MAX - 1] = 0;
	rows[1].n_elems = 1;
	assert_int_equal(sw_worker_declare(&r->w, &rows[1], 1), 0);
	wrig_close(r);
}

/* A tensor may have more chunks than a set of chunks can hold. */
static void declare__more_chunks_than_can_be_counted(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor t = tensor("huge", 64ULL << 30);

	t.dtype = SW_U8;
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), SW_EINVAL);
	wrig_close(r);
}

/* If one tensor of the list is invalid, none is declared. */
static void declare__all_or_none(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor list[] = {
		tensor("a", 10), tensor("b", 0), tensor("c", 10)};

	assert_int_equal(sw_worker_declare(&r->w, list, 3), SW_EINVAL);
	assert_int_equal(r->w.n_tensors, 0);
	list[1].n_elems = 10;
	assert_int_equal(sw_worker_declare(&r->w, list, 3), 0);
	assert_string_equal(wrig_tx(r), "s0 DECLARE a b c");
	wrig_close(r);
}

/* The control thread prepares the memory, and nothing is declared until it is
 * ready. Memory that is not fetched is not kept. */
static void declare__waits_for_memory(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor t = tensor("a", 10000000);

	r->env.is_preparing = true;
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), SW_EAGAIN);
	assert_int_equal(r->w.n_tensors, 0);
	assert_string_equal(wrig_tx(r), "");
	r->env.is_preparing = false;
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), 0);
	assert_string_equal(wrig_tx(r), "s0 DECLARE a");
	peer_declared(&r->s[0]);
	r->env.is_preparing = true;
	t.name = "b";
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), SW_EAGAIN);
	assert_true(r->env.prepared[0] > 0);
	wrig_close(r);
}

/* Two tensors with one name are one tensor at the server, so the job ends with
 * an error that has the name. */
static void declare__name_twice(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor list[] = {tensor("a", 10), tensor("a", 10)};
	struct {
		struct sw_declared head;
		uint32_t keys[2], firsts[2];
	} d = {.head = {.n = 2}};

	assert_int_equal(sw_worker_declare(&r->w, list, 2), 0);
	wrig_tx(r);
	peer_say(&r->s[0], SW_DECLARED, &d, sizeof(d));
	assert_string_equal(wrig_events(r),
		"failed SW_EPROTO server first: key 0 for tensor a");
	wrig_close(r);
}

static void declare__one_batch_at_a_time(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor a = tensor("a", 10), b = tensor("b", 10);

	assert_int_equal(sw_worker_declare(&r->w, &a, 1), 0);
	assert_int_equal(sw_worker_declare(&r->w, &b, 1), SW_EBUSY);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	assert_int_equal(sw_worker_declare(&r->w, &b, 1), 0);
	assert_string_equal(wrig_tx(r), "s0 DECLARE b");
	wrig_close(r);
}

/* Tensors that were declared before the job runs are sent as soon as it
 * runs. */
static void declare__while_joining(void **state)
{
	static struct worker_rig r;
	struct sw_worker_tensor a = tensor("a", 10);

	wrig_open(&r, 0, 2, 1);
	assert_int_equal(sw_worker_declare(&r.w, &a, 1), 0);
	assert_string_equal(wrig_tx(&r), "s0 HELLO");
	peer_cookie(&r.s[0]);
	wrig_tx(&r);
	peer_accept(&r.s[0]);
	peer_status(&r.s[0], SW_JOB_RUNNING, 0, 2, "");
	assert_contains(wrig_tx(&r), "s0 DECLARE a");
	wrig_close(&r);
}

static void declare__after_the_end(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor a = tensor("a", 10);

	sw_worker_leave(&r->w, NULL);
	assert_int_equal(sw_worker_declare(&r->w, &a, 1), SW_ECLOSED);
	peer_left(&r->s[0], true);
	assert_int_equal(sw_worker_declare(&r->w, &a, 1), SW_ECLOSED);
	wrig_close(r);
	r = open_rig(1);
	peer_status(&r->s[0], SW_JOB_FAILED, SW_EPEER, 0, "gone");
	assert_int_equal(sw_worker_declare(&r->w, &a, 1), SW_EPEER);
	wrig_close(r);
}

/* Hundreds of tensors are declared in as many frames as they need. */
static void declare__many(void **state)
{
	static char names[300][40];
	struct sw_worker_tensor list[300];
	struct worker_rig *r = open_rig(2);

	for (uint32_t i = 0; i < 300; i++) {
		snprintf(names[i], sizeof(names[i]), "layer.%u.weight", i);
		list[i] = tensor(names[i], 1);
	}
	assert_int_equal(sw_worker_declare(&r->w, list, 300), 0);
	while (r->w.links[0].n_declared < 300 || r->w.links[1].n_declared < 300)
		for (uint32_t s = 0; s < 2; s++) {
			r->s[s].n_items = 0;
			wrig_tick(r, SW_S);
			wrig_tx(r);
			r->s[s].next_key = r->w.links[s].n_declared;
			peer_declared(&r->s[s]);
			assert_true(r->last[SW_DECLARE].h.payload_len <=
				    PEER_PAYLOAD);
		}
	assert_string_equal(wrig_events(r), "declared");
	wrig_close(r);
}

/* --- push --- */

static void push__wrong(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor b = tensor("b", 10);

	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), SW_EINVAL);
	wrig_declare(r, "a", 10, 0);
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 0), SW_EINVAL);
	assert_int_equal(sw_worker_push(&r->w, UINT32_MAX, 1, 0), SW_EINVAL);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), 0);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), SW_EBUSY);
	sw_worker_declare(&r->w, &b, 1);
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 0), SW_EAGAIN);
	wrig_close(r);
}

/* An asynchronous tensor takes deltas only after its first value. */
static void push__asynchronous(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_round copy = {.op = SW_ROUND_COPY};

	wrig_declare(r, "a", 10, 0);
	r->w.tensors[0].mode = SW_MODE_ASYNC;
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), SW_EINVAL);
	assert_int_equal(sw_worker_begin(&r->w, &copy), 0);
	wrig_close(r);
}

/* After the end submitted calls end, and later ones are refused. */
static void push__after_the_end(void **state)
{
	struct worker_rig *r = open_rig(1);

	wrig_declare(r, "a", 10, 0);
	wrig_declare(r, "b", 10, 0);
	sw_worker_push(&r->w, 0, 1, 55);
	sw_worker_leave(&r->w, NULL);
	assert_string_equal(wrig_events(r), "done t0 #55 SW_ECLOSED w0");
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), SW_ECLOSED);
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 0), SW_ECLOSED);
	wrig_tx(r);
	peer_left(&r->s[0], true);
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 0), SW_ECLOSED);
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

static void push__after_a_failure(void **state)
{
	struct worker_rig *r = open_rig(1);

	wrig_declare(r, "a", 10, 0);
	wrig_declare(r, "b", 10, 0);
	sw_worker_push(&r->w, 1, 1, 56);
	peer_status(&r->s[0], SW_JOB_FAILED, SW_EPEER, 0, "gone");
	assert_string_equal(wrig_events(r),
		"done t1 #56 SW_EPEER w0; failed SW_EPEER gone");
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), SW_EPEER);
	wrig_close(r);
}

/* The caller may submit again from within the callback. */
static void push_again(struct worker_rig *r, uint32_t t)
{
	sw_worker_push(&r->w, t, 2, 99);
}

static void push__from_done(void **state)
{
	struct worker_rig *r = open_rig(1);

	wrig_declare(r, "a", PEER_CHUNK, 0);
	r->on_done = push_again;
	sw_worker_push(&r->w, 0, 1, 1);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344");
	peer_result(&r->s[0], 0, 1, 0, 5);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w2");
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r2 c0 +1344");
	/* While everything ends, such calls are refused, so the turn ends. */
	sw_worker_leave(&r->w, NULL);
	assert_string_equal(wrig_events(r), "done t0 #99 SW_ECLOSED w0");
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

/* More urgent tensors go first, in any order of declaration and submission. */
static void push__by_priority(void **state)
{
	struct worker_rig *r = open_rig(1);

	wrig_declare(r, "late", 2 * PEER_CHUNK, 40);
	wrig_declare(r, "early", PEER_CHUNK, 3);
	wrig_declare(r, "middle", PEER_CHUNK, 9);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c0 +1344");
	sw_worker_push(&r->w, 2, 1, 0);
	sw_worker_push(&r->w, 1, 1, 0);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k1 r1 c0 +1344; "
					"s0 PUSH k2 r1 c0 +1344; "
					"s0 PUSH k0 r1 c1 +1344");
	wrig_close(r);
}

/* Tensors without a priority go by key, in the order in which the coordinator
 * first saw them. */
static void push__by_first_use(void **state)
{
	struct worker_rig *r = open_rig(1);

	r->s[0].next_key = 5;
	wrig_declare(r, "later", PEER_CHUNK, SW_PRIORITY_BY_USE);
	wrig_declare(r, "given", PEER_CHUNK, 4);
	r->s[0].next_key = 2;
	wrig_declare(r, "first", PEER_CHUNK, SW_PRIORITY_BY_USE);
	for (uint32_t t = 0; t < 3; t++)
		sw_worker_push(&r->w, t, 1, 0);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k2 r1 c0 +1344; "
					"s0 PUSH k6 r1 c0 +1344; "
					"s0 PUSH k5 r1 c0 +1344");
	assert_int_equal(r->w.tensors[0].class, sw_class_of(5));
	wrig_close(r);
}

/* Open calls keep their place when an urgent tensor is declared. */
static void declare__while_pushing(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_worker_tensor b = tensor("b", 10);

	wrig_declare(r, "a", 3 * PEER_CHUNK, 5);
	sw_worker_push(&r->w, 0, 1, 0);
	assert_string_equal(wrig_tx_one(r), "s0 PUSH k0 r1 c0 +1344");
	peer_ack(&r->s[0], sw_class_of(5), 1);
	b.priority = 1;
	b.base = r->data[1];
	sw_worker_declare(&r->w, &b, 1);
	assert_string_equal(wrig_tx(r), "s0 DECLARE b; "
					"s0 PUSH k0 r1 c1 +1344; "
					"s0 PUSH k0 r1 c2 +1344");
	peer_declared(&r->s[0]);
	wrig_tick(r, 10 * SW_MS);
	wrig_tick(r, 10 * SW_MS);
	assert_contains(wrig_tx(r), "QUERY k0r1c0");
	wrig_close(r);
}

/* Each chunk goes to the server that owns it. */
static void push__by_place(void **state)
{
	struct worker_rig *r = open_rig(2);

	wrig_declare(r, "a", 65 * PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 0);
	wrig_tick(r, 0);
	for (uint32_t n = 0; n < 65; n++) {
		wrig_tx_one(r);
		assert_int_equal((uint32_t)r->last[SW_PUSH].peer.ip.low & 0xff,
			sw_place_owner(&r->w.map, 0, r->last[SW_PUSH].h.chunk));
	}
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

/* --- stalls --- */

static void tick__names_who_is_missing(void **state)
{
	struct worker_rig *r = open_rig(1);

	r->w.params.dead_after = 10000 * SW_S;
	wrig_declare(r, "fc1.weight", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 7);
	wrig_tx(r);
	peer_ack(&r->s[0], 0, 1);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 1, 0, 0x2);
	wrig_tick(r, r->params.stall_warn - 1);
	assert_string_equal(wrig_events(r), "");
	wrig_tick(r, 200 * SW_MS);
	assert_string_equal(wrig_events(r),
		"running waiting 30 s for rank 1 of "
		"2, tensor fc1.weight");
	wrig_tick(r, SW_S);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* The log has one line for all stalled tensors, whenever each began to wait. */
static void tick__one_line_for_all(void **state)
{
	struct worker_rig *r = open_rig(1);

	r->w.params.dead_after = 10000 * SW_S;
	wrig_declare(r, "a", PEER_CHUNK, 0);
	wrig_declare(r, "b", PEER_CHUNK, 0);
	wrig_declare(r, "c", PEER_CHUNK, 0);
	for (uint32_t s = 1; s < 60; s++) {
		if (s < 4)
			sw_worker_push(&r->w, 3 - s, 1, s);
		wrig_tick(r, SW_S);
		assert_string_equal(wrig_events(r),
			s == 30 ? "running waiting 30 s for a server, tensor c"
				: "");
	}
	wrig_tick(r, SW_S);
	assert_string_equal(wrig_events(r),
		"running waiting 60 s for a server, tensor c; 2 more tensors "
		"wait");
	wrig_close(r);
}

static void tick__stall_limit(void **state)
{
	struct worker_rig *r = open_rig(1);

	r->w.params.dead_after = 10000 * SW_S;
	r->w.params.stall_limit = 60 * SW_S;
	wrig_declare(r, "a", PEER_CHUNK, 0);
	wrig_declare(r, "b", PEER_CHUNK, 0);
	sw_worker_push(&r->w, 0, 1, 7);
	sw_worker_push(&r->w, 1, 1, 8);
	wrig_tick(r, 31 * SW_S);
	assert_contains(wrig_events(r), "waiting 31 s for a server, tensor a");
	wrig_tick(r, 31 * SW_S);
	assert_string_equal(wrig_events(r),
		"done t0 #7 SW_ESTALL w0; done t1 #8 SW_ESTALL w0; failed "
		"SW_ESTALL waited 62 s for a server, tensor a");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__too_many),
		cmocka_unit_test(declare__malformed),
		cmocka_unit_test(declare__more_chunks_than_can_be_counted),
		cmocka_unit_test(declare__all_or_none),
		cmocka_unit_test(declare__waits_for_memory),
		cmocka_unit_test(declare__name_twice),
		cmocka_unit_test(declare__one_batch_at_a_time),
		cmocka_unit_test(declare__while_joining),
		cmocka_unit_test(declare__after_the_end),
		cmocka_unit_test(declare__many),
		cmocka_unit_test(push__wrong),
		cmocka_unit_test(push__asynchronous),
		cmocka_unit_test(push__after_the_end),
		cmocka_unit_test(push__after_a_failure),
		cmocka_unit_test(push__from_done),
		cmocka_unit_test(push__by_priority),
		cmocka_unit_test(push__by_first_use),
		cmocka_unit_test(declare__while_pushing),
		cmocka_unit_test(push__by_place),
		cmocka_unit_test(tick__names_who_is_missing),
		cmocka_unit_test(tick__one_line_for_all),
		cmocka_unit_test(tick__stall_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
