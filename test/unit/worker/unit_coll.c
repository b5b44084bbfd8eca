/* unit_coll.c - collectives at a worker: submit, window, results, the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdio.h>

#include "engine/worker/worker_int.h"
#include "engine/worker/stream.h"

enum { LOG2 = SW_WINDOW_MIN_LOG2, W = 1 << LOG2, ALL = 7, CREDIT = 1 << 20 };

static const struct sw_worker_tensor a_stream = {
	.name = "s", .window_log2 = LOG2, .members = ALL};

/* Rank 0 of 3 members, one server; "s" is declared, not admitted. */
static struct worker_rig *open_declared(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 3, 1);
	r.s[0].grant = 1 << 15;
	assert_int_equal(sw_sched_set(&r.w.sched, &sw_policy_bytescheduler,
				 PEER_PAYLOAD, CREDIT),
		0);
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &a_stream, 1), 0);
	return &r;
}

static struct worker_rig *open_stream(void)
{
	struct worker_rig *r = open_declared();

	wrig_tx(r);
	peer_declared(&r->s[0]);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "declared");
	return r;
}

/* In place, where that is the same for all kinds. */
static struct sw_worker_coll ask_of(
	struct worker_rig *r, enum sw_coll_kind kind, uint64_t n_elems)
{
	return (struct sw_worker_coll){.kind = kind,
		.dtype = SW_I32,
		.n_elems = n_elems,
		.from = r->data[0],
		.to = r->data[0]};
}

static int submit(struct worker_rig *r, enum sw_coll_kind kind,
	uint64_t n_elems, uint64_t cookie)
{
	struct sw_worker_coll ask = ask_of(r, kind, n_elems);

	ask.cookie = cookie;
	return sw_worker_coll(&r->w, &ask);
}

/* So many all_reduce of one element. */
static void submit_n(struct worker_rig *r, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		assert_int_equal(submit(r, SW_ALL_REDUCE, 1, i), 0);
}

static struct sw_header result_of(
	enum sw_coll_kind kind, uint32_t j, uint32_t number, uint32_t base)
{
	struct sw_header h = peer_result_header(0, j, number, 1);

	h.op = sw_coll_op(kind, SW_OPERATION_SUM);
	h.aux = (uint16_t)base;
	h.weight = 3;
	return h;
}

static void sum(struct worker_rig *r, uint32_t j, uint32_t base)
{
	peer_fill(&r->s[0], result_of(SW_ALL_REDUCE, j, j, base), 7);
}

static void say_base(struct worker_rig *r, uint32_t base)
{
	peer_answer(&r->s[0], SW_ANSWER_BASE, 0, 0, base, 0);
}

static uint32_t base_of(const struct worker_rig *r)
{
	return r->w.tensors[0].stream->links[0].base;
}

/* PUSHes in what the worker sends now. */
static uint32_t n_pushes(struct worker_rig *r)
{
	const char *p = wrig_tx(r);
	uint32_t n = 0;

	while ((p = strstr(p, "PUSH"))) {
		n++;
		p++;
	}
	return n;
}

/* --- what is refused --- */

static void declare__bad_streams(void **state)
{
	static struct worker_rig r;
	struct sw_worker_tensor t = a_stream;

	wrig_open(&r, 0, 3, 1);
	wrig_run(&r);
	t.window_log2 = SW_WINDOW_MIN_LOG2 - 1;
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	t.window_log2 = SW_WINDOW_MAX_LOG2 + 1;
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	t = a_stream;
	t.members = 0;
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	t.members = 6; /* not this one */
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	t.members = 9; /* one that there is not */
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	t = a_stream;
	t.name = "";
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	wrig_close(&r);
}

static void declare__several_local_ranks(void **state)
{
	static struct worker_rig r;

	wrig_open_local(&r, 0, 3, 1, 2);
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &a_stream, 1), SW_EINVAL);
	wrig_close(&r);
}

static void refused(struct worker_rig *r, struct sw_worker_coll ask)
{
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EINVAL);
	assert_int_equal(r->w.n_open, 0);
}

static void submit__bad_arguments(void **state)
{
	struct worker_rig *r = open_stream();
	const struct sw_worker_coll good = ask_of(r, SW_REDUCE, 1);
	struct sw_worker_coll ask = good;

	wrig_declare(r, "a tensor", 1, 0);
	ask.stream = 1;
	refused(r, ask);
	ask.stream = 2;
	refused(r, ask);
	ask.stream = UINT32_MAX;
	refused(r, ask);
	ask = good;
	ask.kind = SW_COLL_NONE;
	refused(r, ask);
	ask.kind = SW_N_COLL_KINDS;
	refused(r, ask);
	ask.kind = (enum sw_coll_kind)UINT32_MAX;
	refused(r, ask);
	ask = good;
	ask.dtype = 200;
	refused(r, ask);
	ask = good;
	ask.n_elems = 0;
	refused(r, ask);
	ask.n_elems = (64ULL << 30) / 4 + 1;
	refused(r, ask);
	ask.n_elems = UINT64_MAX;
	refused(r, ask);
	ask = good;
	ask.root = 3;
	refused(r, ask);
	ask.root = UINT16_MAX;
	refused(r, ask);
	ask.kind = SW_BCAST;
	refused(r, ask);
	ask.kind = SW_ALL_REDUCE; /* which has none */
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	wrig_close(r);
}

static void submit__before_it_is_admitted(void **state)
{
	struct worker_rig *r = open_declared();

	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EAGAIN);
	wrig_close(r);
}

static void submit__too_many(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, SW_COLLS);
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EAGAIN);
	wrig_tx(r);
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), 0);
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EAGAIN);
	wrig_close(r);
}

static void submit__after_leave(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2);
	sw_worker_leave(&r->w, 0, NULL);
	assert_contains(wrig_events(r), "done t0 #1 SW_ECLOSED");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_ECLOSED);
	wrig_close(r);
}

/* --- what is pushed --- */

static void push__what_it_says(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_BCAST, PEER_CHUNK + 1);
	const struct sw_header *h = &r->last[SW_PUSH].h;

	ask.root = 2;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 2);
	assert_int_equal(h->round, 2);
	assert_int_equal(h->chunk, 1);
	assert_int_equal(h->payload_len, 0);
	assert_int_equal(h->weight, 0);
	assert_int_equal(h->aux, 2);
	assert_int_equal(h->op, sw_coll_op(SW_BCAST, SW_OPERATION_SUM));
	assert_int_equal(submit(r, SW_ALL_REDUCE, PEER_CHUNK + 1, 0), 0);
	assert_int_equal(n_pushes(r), 2);
	assert_int_equal(h->round, 4);
	assert_int_equal(h->chunk, 2);
	assert_int_equal(h->payload_len, 4);
	assert_int_equal(h->weight, 1);
	assert_int_equal(h->aux, 0);
	wrig_close(r);
}

/* Other counts have other tags, though a chunk has the same bytes. */
static void push__tag_of_the_count(void **state)
{
	struct worker_rig *r = open_stream();
	uint16_t tag;

	submit(r, SW_ALL_REDUCE, PEER_CHUNK, 0);
	wrig_tx(r);
	tag = r->last[SW_PUSH].h.step;
	submit(r, SW_ALL_REDUCE, 2 * PEER_CHUNK, 0);
	wrig_tx(r);
	assert_int_not_equal(r->last[SW_PUSH].h.step, tag);
	submit(r, SW_ALL_REDUCE, PEER_CHUNK, 0);
	wrig_tx(r);
	assert_int_equal(r->last[SW_PUSH].h.step, tag);
	wrig_close(r);
}

/* Credit is taken by what may go, and comes back when it is folded; what gives
 * nothing takes a little. */
static void push__credit_comes_back(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_BCAST, 1);

	ask.root = 1;
	submit(r, SW_ALL_REDUCE, 1, 1);
	submit(r, SW_ALL_REDUCE, 1, 2);
	sw_worker_coll(&r->w, &ask);
	assert_int_equal(n_pushes(r), 3);
	assert_int_equal(r->w.sched.credit, CREDIT - 8 - SW_EMPTY_COST);
	peer_ack_one(&r->s[0], 0, 1);
	assert_int_equal(r->w.sched.credit, CREDIT - 4 - SW_EMPTY_COST);
	sum(r, 1, 1); /* once */
	assert_int_equal(r->w.sched.credit, CREDIT - 4 - SW_EMPTY_COST);
	sum(r, 2, 1); /* before its acknowledgement */
	assert_int_equal(r->w.sched.credit, CREDIT - SW_EMPTY_COST);
	peer_ack(&r->s[0], 0, 3);
	assert_int_equal(r->w.sched.credit, CREDIT);
	wrig_close(r);
}

/* What the window does not allow takes no credit. */
static void push__a_closed_window_holds_no_credit(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 3 * W);
	assert_int_equal(r->w.sched.credit, CREDIT - 4 * W);
	wrig_close(r);
}

/* Who gets nothing is through when all it gave is folded. */
static void ack__ends_what_only_gives(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_REDUCE, 2 * PEER_CHUNK);

	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	wrig_tx(r);
	peer_ack_one(&r->s[0], 0, 2);
	assert_string_equal(wrig_events(r), "");
	peer_ack_one(&r->s[0], 0, 1);
	assert_contains(wrig_events(r), "done t0 #0 SW_OK");
	wrig_close(r);
}

/* Its own part never comes from a server. */
static void ack__copies_the_own_part(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_ALL_GATHER, 2);

	r->data[0][0] = 5;
	r->data[0][1] = 6;
	ask.to = r->data[1];
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 3);
	peer_ack_one(&r->s[0], 0, 1);
	assert_int_equal(r->data[1][0], 5);
	assert_int_equal(r->data[1][1], 6);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* A buffer that was changed between two pushes of a chunk. */
static void push__of_a_changed_buffer(void **state)
{
	struct worker_rig *r = open_stream();

	submit(r, SW_ALL_REDUCE, 1, 1);
	submit(r, SW_ALL_REDUCE, 1, 2);
	wrig_tx(r);
	r->data[0][0]++;
	wrig_tick(r, SW_S); /* lost, both of them */
	assert_contains(wrig_tx(r), "PUSH");
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_ECORRUPT w3");
	wrig_close(r);
}

/* --- the window --- */

static void window__opens_by_a_result(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2 * W);
	assert_int_equal(n_pushes(r), W);
	for (uint32_t j = 1; j <= 3; j++)
		sum(r, j, 1);
	assert_int_equal(n_pushes(r), 0);
	sum(r, 4, 3); /* all below 3 are done */
	assert_int_equal(base_of(r), 3);
	assert_int_equal(n_pushes(r), 2);
	assert_int_equal(r->last[SW_PUSH].h.round, W + 2);
	wrig_close(r);
}

static void window__opens_by_an_answer(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2 * W);
	assert_int_equal(n_pushes(r), W);
	for (uint32_t j = 1; j <= 8; j++)
		sum(r, j, 1);
	say_base(r, 9);
	assert_int_equal(base_of(r), 9);
	assert_int_equal(n_pushes(r), 8);
	say_base(r, 5); /* late */
	assert_int_equal(base_of(r), 9);
	assert_int_equal(n_pushes(r), 0);
	wrig_close(r);
}

/* Base says that what was given is folded, whose acknowledgement was lost. */
static void window__base_ends_what_only_gives(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_REDUCE, 1);

	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	say_base(r, 2);
	assert_contains(wrig_events(r), "done t0 #0 SW_OK");
	assert_int_equal(r->w.sched.credit, CREDIT);
	peer_ack(&r->s[0], 0, 1);
	wrig_tick(r, SW_S);
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

/* Chunks that nobody pushed, or whose result is not here, cannot be done. */
static void window__implausible_base(void **state)
{
	static const uint32_t bases[] = {4, 1000, 1u << 30, 0x7fffffff,
		0x80000000, 0x80000001, UINT32_MAX, 0};
	struct worker_rig *r = open_stream();

	submit_n(r, 2);
	wrig_tx(r);
	for (size_t i = 0; i < SW_ARRAY_SIZE(bases); i++) {
		say_base(r, bases[i]);
		assert_int_equal(base_of(r), 1);
	}
	assert_string_equal(wrig_events(r), "");
	sum(r, 1, 1);
	sum(r, 2, 1);
	say_base(r, 1000);
	assert_int_equal(base_of(r), 3); /* as far as it can be */
	assert_int_equal(r->w.tensors[0].stream->links[0].next, 3);
	wrig_close(r);
}

/* It has entered, but waits for credit: nobody else can have folded it. */
static void window__base_of_what_was_not_pushed(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_REDUCE, 4 * PEER_CHUNK);

	sw_sched_set(&r->w.sched, &sw_policy_bytescheduler, PEER_PAYLOAD,
		PEER_PAYLOAD);
	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	say_base(r, 5);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(base_of(r), 2);
	for (uint64_t psn = 1; psn <= 4; psn++) {
		peer_ack_one(&r->s[0], 0, psn);
		wrig_tx(r);
	}
	assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w0");
	assert_int_equal(r->w.sched.credit, PEER_PAYLOAD);
	wrig_close(r);
}

/* Numbers go on beyond 2^32. */
static void window__wraps_around(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_stream_link *l = r->w.tensors[0].stream->links;
	uint32_t j = UINT32_MAX - 2;

	l->base = l->next = j;
	submit_n(r, 2 * W);
	assert_int_equal(n_pushes(r), W);
	for (uint32_t n = 1; n <= W; n++, j++)
		peer_fill(&r->s[0],
			result_of(SW_ALL_REDUCE, j, n, UINT32_MAX - 2), 7);
	assert_int_equal(r->w.tensors[0].stream->n_open, W);
	say_base(r, j);
	assert_int_equal(base_of(r), W - 3);
	assert_int_equal(n_pushes(r), W);
	assert_int_equal(r->w.tensors[0].stream->links[0].next, 2 * W - 3);
	wrig_close(r);
}

/* --- PULL --- */

static void pull__asks_for_base_when_blocked(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, W + 1);
	assert_int_equal(n_pushes(r), W);
	peer_ack(&r->s[0], 0, W);
	for (uint32_t j = 1; j <= W; j++)
		sum(r, j, 1);
	wrig_tick(r, 0);
	wrig_tx(r);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "PULL k0r0");
	say_base(r, W + 1);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(r->w.links[0].n_blocked, 0);
	wrig_close(r);
}

static void pull__asks_for_what_is_late(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 3);
	wrig_tx(r);
	peer_ack(&r->s[0], 0, 3);
	sum(r, 1, 1);
	sum(r, 3, 1);
	wrig_tick(r, 0);
	wrig_tx(r);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "PULL k0r2");
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 2, 2, 6);
	assert_true(r->w.tensors[0].missing == 6);
	assert_int_equal(n_pushes(r), 0);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, 2, 0); /* late */
	assert_int_equal(n_pushes(r), 0);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 2, 2, 0);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(r->last[SW_PUSH].h.round, 2);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 2, 2, 0);
	assert_contains(wrig_events(r), "no longer has the result");
	wrig_close(r);
}

/* --- RESULT --- */

/* Is the last frame of the server acknowledged? */
static bool is_acknowledged(struct worker_rig *r)
{
	struct sw_sack k;

	r->last[SW_ACK].h.payload_len = 0;
	wrig_tick(r, SW_MS);
	wrig_tx(r);
	if (!r->last[SW_ACK].h.payload_len)
		return false;
	frame_get(&r->last[SW_ACK], &k, sizeof(k));
	return k.largest == r->s[0].psn[0];
}

static void result__twice(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2);
	wrig_tx(r);
	sum(r, 1, 1);
	assert_true(is_acknowledged(r));
	assert_int_equal(r->data[0][0], 7);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	r->data[0][0] = 0;
	sum(r, 1, 1);
	assert_true(is_acknowledged(r));
	assert_int_equal(r->data[0][0], 0);
	assert_int_equal(r->w.stats.result_again, 1);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* Of what was not submitted, or not pushed: nothing is written. */
static void result__of_what_nobody_waits_for(void **state)
{
	struct worker_rig *r = open_stream();

	sum(r, 1, 1);
	submit_n(r, 1);
	sum(r, 1, 1); /* it has not left */
	wrig_tx(r);
	sum(r, 2, 1);
	sum(r, 1 + W, 1);
	assert_int_equal(r->data[0][0], 0);
	assert_int_equal(r->w.stats.results, 0);
	assert_string_equal(wrig_events(r), "");
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	wrig_close(r);
}

static void not_taken(struct worker_rig *r, struct sw_header h)
{
	peer_fill(&r->s[0], h, 9);
	assert_false(is_acknowledged(r));
	assert_int_equal(r->data[0][0], 0);
	assert_string_equal(wrig_events(r), "");
}

static void result__not_of_this_collective(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_header good = result_of(SW_ALL_REDUCE, 1, 1, 1), h = good;

	submit_n(r, 1);
	wrig_tx(r);
	h.payload_len = 8;
	not_taken(r, h);
	h.payload_len = 0;
	not_taken(r, h);
	h = good;
	h.payload_crc = 1;
	not_taken(r, h);
	h = good;
	h.chunk = 2;
	not_taken(r, h);
	h = good;
	h.op = sw_coll_op(SW_REDUCE, SW_OPERATION_SUM);
	not_taken(r, h);
	h = good;
	h.dtype = SW_F32;
	not_taken(r, h);
	h = good;
	h.weight = 0;
	not_taken(r, h);
	peer_fill(&r->s[0], good, 7);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	wrig_close(r);
}

/* --- members differ --- */

static void say_mismatch(struct worker_rig *r, uint32_t key, const char *text)
{
	struct sw_fault fault = {.err = SW_EMISMATCH, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->s[0],
		(struct sw_header){.type = SW_MISMATCH,
			.round = 1,
			.payload_len = sizeof(fault)},
		&fault);
}

/* All that is open ends, in the window and behind it; the job goes on. */
static void mismatch__ends_all_that_is_open(void **state)
{
	struct worker_rig *r = open_stream();

	wrig_declare(r, "a", 1, 0);
	submit_n(r, W + 2);
	wrig_tx(r);
	say_mismatch(r, 0, "they differ");
	wrig_tx(r);
	for (uint32_t i = 1; i <= W + 2; i++) {
		char text[64];

		snprintf(text, sizeof(text), "done t0 #%u SW_EMISMATCH", i);
		assert_contains(r->events, text);
	}
	assert_int_equal(r->w.n_open, 0);
	assert_int_equal(r->w.sched.credit, CREDIT);
	assert_int_equal(r->w.links[0].n_blocked, 0);
	assert_string_equal(sw_worker_why(&r->w, 0), "they differ");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EMISMATCH);
	wrig_events(r);
	sum(r, 1, 1); /* late ones */
	say_base(r, 9);
	peer_ack(&r->s[0], 0, W);
	wrig_tick(r, SW_S);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 0), 0);
	assert_contains(wrig_tx(r), "PUSH k1 r1");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__bad_streams),
		cmocka_unit_test(declare__several_local_ranks),
		cmocka_unit_test(submit__bad_arguments),
		cmocka_unit_test(submit__before_it_is_admitted),
		cmocka_unit_test(submit__too_many),
		cmocka_unit_test(submit__after_leave),
		cmocka_unit_test(push__what_it_says),
		cmocka_unit_test(push__tag_of_the_count),
		cmocka_unit_test(push__credit_comes_back),
		cmocka_unit_test(push__a_closed_window_holds_no_credit),
		cmocka_unit_test(ack__ends_what_only_gives),
		cmocka_unit_test(ack__copies_the_own_part),
		cmocka_unit_test(push__of_a_changed_buffer),
		cmocka_unit_test(window__opens_by_a_result),
		cmocka_unit_test(window__opens_by_an_answer),
		cmocka_unit_test(window__base_ends_what_only_gives),
		cmocka_unit_test(window__implausible_base),
		cmocka_unit_test(window__base_of_what_was_not_pushed),
		cmocka_unit_test(window__wraps_around),
		cmocka_unit_test(pull__asks_for_base_when_blocked),
		cmocka_unit_test(pull__asks_for_what_is_late),
		cmocka_unit_test(result__twice),
		cmocka_unit_test(result__of_what_nobody_waits_for),
		cmocka_unit_test(result__not_of_this_collective),
		cmocka_unit_test(mismatch__ends_all_that_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
