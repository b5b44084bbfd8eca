/* unit_mismatch.c - if members call a tensor differently, only it fails.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "test/support/server_rig.h"
#include "test/support/worker_rig.h"

#define WHY "tensor k0: rank 1 pushes step 2, rank 0 pushes step 1"

/* --- server --- */

static struct server_rig *open_server(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, UINT64_MAX);
	rig_run(&r, 2 * PEER_CHUNK);
	return &r;
}

static void push(struct server_rig *r, uint32_t i, uint32_t round,
	uint32_t chunk, uint16_t step)
{
	struct sw_header h = peer_push_header(0, round, chunk);
	int32_t elems[PEER_CHUNK] = {0};

	h.step = step;
	peer_send(&r->w[i], h, elems);
}

/* The server tells every member once, and sends nothing of the round. */
static void server__kills_the_tensor(void **state)
{
	struct server_rig *r = open_server(3);
	const struct sw_shard *sh = &r->srv->jobs[0].shard;

	push(r, 0, 1, 0, 1);
	push(r, 0, 1, 1, 1);
	assert_int_equal(sh->n_open, 2);
	push(r, 1, 1, 0, 2);
	assert_string_equal(rig_tx(r), "w0 END k0 r1 " WHY "; w1 END k0 r1 " WHY
				       "; w2 END k0 r1 " WHY);
	assert_int_equal(sh->n_open, 0);
	push(r, 2, 1, 0, 1);
	peer_query(&r->w[0], 0, 1, 1);
	assert_string_equal(rig_tx(r), "");
	push(r, 1, 1, 1, 1);
	rig_tick(r, SW_MS); /* the push is acknowledged like any other */
	assert_contains(rig_tx(r), "w1 ACK");
	assert_int_equal(r->srv->stats.chunks_done, 0);
	assert_int_equal(r->srv->stats.results, 0);
	assert_int_equal(r->srv->jobs[0].status.state, SW_JOB_RUNNING);
	server_rig_close(r);
}

/* A member that lacks the previous round still gets its result. */
static void server__the_round_before_is_sent(void **state)
{
	struct server_rig *r = open_server(3);

	for (uint32_t i = 0; i < 3; i++)
		push(r, i, 1, 0, 1);
	rig_tx(r);
	push(r, 0, 2, 0, 1);
	push(r, 1, 2, 0, 2);
	assert_contains(rig_tx(r), "w2 END k0 r2 " WHY);
	rig_tick(r, 100 * SW_MS); /* the RESULT was lost */
	assert_contains(rig_tx(r), "w2 RESULT k0 r1 c0");
	peer_ack(&r->w[2], 0, 2);
	peer_query(&r->w[2], 0, 1, 0);
	assert_contains(rig_tx(r), "w2 RESULT k0 r1 c0");
	server_rig_close(r);
}

static void say(struct server_rig *r, uint32_t i, uint32_t key, uint32_t round,
	const char *text)
{
	struct sw_fault fault = {.err = SW_EMISMATCH, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->w[i],
		(struct sw_header){.type = SW_END,
			.round = round,
			.payload_len = sizeof(fault)},
		&fault);
}

/* A worker reports END because its local ranks differ, or because another
 * server sent it. Every member gets the first reason. */
static void server__is_told_by_a_worker(void **state)
{
	struct server_rig *r = open_server(2);

	push(r, 0, 1, 0, 1);
	say(r, 1, 0, 1, "tensor a: so\x1bit is");
	assert_string_equal(rig_tx(r), "w0 END k0 r1 tensor a: so?it is; "
				       "w1 END k0 r1 tensor a: so?it is");
	assert_int_equal(r->srv->jobs[0].shard.n_open, 0);
	say(r, 1, 0, 1, "another");
	assert_string_equal(rig_tx(r), "w1 KEEPALIVE");
	say(r, 1, 1, 1, "no such tensor");
	say(r, 1, SW_KEY_NONE, 1, "no such tensor");
	assert_string_equal(rig_tx(r), "w1 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_key, 2);
	say(r, 1, 0, 1, "");
	assert_int_equal(r->srv->stats.rx_state, 1);
	assert_string_equal(rig_tx(r), "w1 KEEPALIVE");
	server_rig_close(r);
}

/* A member may send wrong rounds: the server counts an aborted chunk only
 * once. */
static void server__rounds_that_are_no_ones(void **state)
{
	struct server_rig *r = open_server(2);
	const struct sw_shard *sh = &r->srv->jobs[0].shard;

	push(r, 0, 1, 0, 1);
	push(r, 1, 1, 0, 1); /* chunk 0 is one round ahead */
	push(r, 0, 2, 0, 1);
	push(r, 0, 1, 1, 1);
	assert_int_equal(sh->n_open, 2);
	say(r, 0, 0, 7, "seven"); /* no member has reached round 7 */
	assert_int_equal(sh->n_open, 2);
	push(r, 1, 1, 1, 1);
	assert_int_equal(sh->n_open, 1);
	say(r, 0, 0, 0, "from the first on");
	assert_int_equal(sh->n_open, 0);
	push(r, 1, 2, 0, 1);
	push(r, 1, 1, 1, 1);
	assert_int_equal(sh->n_open, 0);
	server_rig_close(r);
}

/* --- worker: rank 0 of 2 --- */

static struct worker_rig *open_worker(uint32_t n_servers)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, n_servers);
	wrig_run(&r);
	wrig_declare(&r, "a", WRIG_ELEMS, 0);
	wrig_declare(&r, "b", PEER_CHUNK, 1);
	return &r;
}

static void tell(struct worker_rig *r, uint32_t i, uint32_t key, uint32_t round,
	const char *text)
{
	struct sw_fault fault = {.err = SW_EMISMATCH, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->s[i],
		(struct sw_header){.type = SW_END,
			.round = round,
			.payload_len = sizeof(fault)},
		&fault);
}

/* The open round ends and returns its credit. Late results are not written, and
 * the other tensor continues. */
static void worker__ends_the_round(void **state)
{
	struct worker_rig *r = open_worker(1);
	int64_t credit = r->w.sched.credit;

	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 8), 0);
	wrig_tx(r);
	tell(r, 0, 0, 1, WHY);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_EMISMATCH w0");
	assert_string_equal(
		sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}), WHY);
	assert_null(sw_worker_why(&r->w, 1, (char[SW_TEXT_MAX]){0}));
	peer_result(&r->s[0], 0, 1, 0, 99);
	assert_int_equal(r->data[0][0], 0);
	assert_null(strstr(wrig_tx(r), "PUSH k0"));
	assert_int_equal(sw_worker_push(&r->w, 0, 2, 9), SW_EMISMATCH);
	peer_result(&r->s[0], 1, 1, 0, 5);
	assert_string_equal(wrig_events(r), "done t1 #8 SW_OK w2");
	assert_true(r->w.sched.credit == credit);
	assert_int_equal(r->w.n_open, 0);
	for (int i = 0; i < 40; i++) { /* no stall is logged */
		peer_keepalive(&r->s[0]);
		wrig_tick(r, SW_S);
	}
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* A fault in a future round does not affect the open round. */
static void worker__the_round_before_goes_on(void **state)
{
	struct worker_rig *r = open_worker(1);

	assert_int_equal(sw_worker_push(&r->w, 1, 1, 8), 0);
	wrig_tx(r);
	tell(r, 0, 1, 2, "tensor b: so it is");
	assert_string_equal(wrig_events(r), "");
	peer_result(&r->s[0], 1, 1, 0, 5);
	assert_string_equal(wrig_events(r), "done t1 #8 SW_OK w2");
	assert_int_equal(r->data[1][0], 5);
	assert_int_equal(sw_worker_push(&r->w, 1, 2, 9), SW_EMISMATCH);
	wrig_close(r);
}

/* Each server sends END once, so the lower of two rounds counts, even if it is
 * in the future. */
static void worker__the_lower_round_counts(void **state)
{
	struct worker_rig *r = open_worker(1);

	tell(r, 0, 1, 7, "tensor b: seven");
	tell(r, 0, 1, 2, "tensor b: two");
	tell(r, 0, 1, 3, "tensor b: three");
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 8), 0);
	wrig_tx(r);
	peer_result(&r->s[0], 1, 1, 0, 5);
	assert_string_equal(wrig_events(r), "done t1 #8 SW_OK w2");
	assert_int_equal(sw_worker_push(&r->w, 1, 2, 9), SW_EMISMATCH);
	assert_string_equal(sw_worker_why(&r->w, 1, (char[SW_TEXT_MAX]){0}),
		"tensor b: two");
	wrig_close(r);
}

/* If a server keeps lowering the round, each lower round counts. Only the first
 * two reasons are kept, because other lanes read them. */
static void worker__rounds_that_fall(void **state)
{
	struct worker_rig *r = open_worker(1);

	(void)state;
	tell(r, 0, 1, 900, "tensor b: first");
	tell(r, 0, 1, 800, "tensor b: second");
	assert_int_equal(r->w.tensors[1].life->from, 800);
	tell(r, 0, 1, 700, "tensor b: third");
	assert_int_equal(r->w.tensors[1].life->from, 700);
	for (uint32_t round = 600; round; round--)
		tell(r, 0, 1, round, "tensor b: more");
	assert_int_equal(r->w.tensors[1].life->from, 1);
	assert_string_equal(sw_worker_why(&r->w, 1, (char[SW_TEXT_MAX]){0}),
		"tensor b: second");
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 8), SW_EMISMATCH);
	wrig_close(r);
}

/* The worker repeats END to the other servers until they acknowledge it; LEAVE
 * waits for the acknowledgements. */
static void worker__tells_the_other_servers(void **state)
{
	struct worker_rig *r = open_worker(2);
	const char *seen;

	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	wrig_tx(r);
	tell(r, 0, 0, 1, WHY);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE; s1 END k0 r1 " WHY);
	tell(r, 0, 0, 1, WHY);
	wrig_tick(r, r->params.query_max);
	assert_non_null(strstr(wrig_tx(r), "s1 END k0 r1 " WHY));
	sw_worker_leave(&r->w, NULL);
	wrig_tick(r, r->params.query_max);
	seen = wrig_tx(r);
	assert_non_null(strstr(seen, "s0 LEAVE"));
	assert_non_null(strstr(seen, "s1 END"));
	assert_null(strstr(seen, "s1 LEAVE"));
	peer_keepalive(&r->s[1]);
	wrig_tick(r, 0);
	assert_non_null(strstr(wrig_tx(r), "s1 LEAVE"));
	wrig_close(r);
}

/* The coordinator refuses one of three tensors. The worker declares that tensor
 * nowhere else, continues the batch after it, and fails its rounds. */
static void worker__is_refused_a_tensor(void **state)
{
	static struct worker_rig rig;
	struct worker_rig *r = &rig;
	struct sw_worker_tensor list[3];
	struct sw_declared d = {.n = 2, .is_refused = 1};
	const struct sw_fault why = {
		.err = SW_EMISMATCH, .text = "tensor b: no"};
	uint8_t payload[sizeof(d) + 16 + sizeof(why)] = {0};

	wrig_open(r, 0, 2, 2);
	wrig_run(r);
	for (uint32_t i = 0; i < 3; i++)
		list[i] = (struct sw_worker_tensor){
			.name = i ? i > 1 ? "c" : "b" : "a",
			.n_elems = PEER_CHUNK,
			.dtype = SW_I32,
			.base = r->data[i]};
	assert_int_equal(sw_worker_declare(&r->w, list, 3), 0);
	assert_string_equal(wrig_tx(r), "s0 DECLARE a b c");
	memcpy(payload, &d, sizeof(d));
	sw_store32(payload + sizeof(d), 4);
	sw_store32(payload + sizeof(d) + 4, SW_KEY_NONE);
	memcpy(payload + sizeof(d) + 16, &why, sizeof(why));
	peer_say(&r->s[0], SW_DECLARED, payload, sizeof(payload));
	assert_string_equal(wrig_tx(r), "s1 DECLARE a; s0 DECLARE c");
	peer_declared(&r->s[0]);
	peer_declared(&r->s[1]);
	assert_string_equal(wrig_tx(r), "s1 DECLARE c; s0 KEEPALIVE");
	assert_string_equal(wrig_events(r), "");
	peer_declared(&r->s[1]);
	assert_string_equal(wrig_events(r), "declared");
	assert_string_equal(sw_worker_why(&r->w, 1, (char[SW_TEXT_MAX]){0}),
		"tensor b: no");
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 7), SW_EMISMATCH);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	wrig_close(r);
}

/* --- two lanes --- */

static struct sw_lane lane;

/* Lane 0 receives END and orders the other lane to stop. Only after that does
 * it tell the process. */
static void lane0__waits_for_the_other(void **state)
{
	static struct worker_rig r;
	struct sw_wtensor theirs = {.life = &theirs.own_life};

	wrig_open_lane(&r, &lane, 0, 1);
	wrig_tx(&r);
	peer_cookie(&r.s[0]);
	wrig_tx(&r);
	peer_accept(&r.s[0]);
	peer_status(&r.s[0], SW_JOB_RUNNING, 0, 2, "");
	lane.theirs = &theirs;
	atomic_fetch_or(&lane.reports.bits, SW_LANE_JOINED);
	sw_worker_take(&r.w);
	assert_string_equal(wrig_events(&r), "running");
	assert_int_equal(sw_worker_declare(&r.w,
				 &(struct sw_worker_tensor){.name = "a",
					 .n_elems = WRIG_ELEMS,
					 .dtype = SW_I32,
					 .base = r.data[0]},
				 1),
		0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	atomic_fetch_or(&lane.reports.bits, SW_LANE_DECLARED);
	sw_worker_take(&r.w);
	assert_string_equal(wrig_events(&r), "declared");
	assert_int_equal(sw_worker_push(&r.w, 0, 1, 7), 0);
	wrig_hear(&lane.commands,
		SW_LANE_START | SW_LANE_SETTLE | SW_LANE_DECLARE);
	wrig_hear_of(&lane.commands);
	assert_int_equal(r.w.tensors[0].said_round, 1);
	tell(&r, 0, 0, 1, WHY);
	wrig_hear_of(&lane.commands);
	assert_int_equal(r.w.tensors[0].own_life.from, 1);
	/* the other lane may still write */
	assert_string_equal(wrig_events(&r), "");
	theirs.said_round = 1;
	sw_flags_raise(&lane.reports.tensors, 0);
	sw_worker_take(&r.w);
	assert_string_equal(wrig_events(&r), "done t0 #7 SW_EMISMATCH w0");
	wrig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server__kills_the_tensor),
		cmocka_unit_test(server__the_round_before_is_sent),
		cmocka_unit_test(server__is_told_by_a_worker),
		cmocka_unit_test(server__rounds_that_are_no_ones),
		cmocka_unit_test(worker__ends_the_round),
		cmocka_unit_test(worker__the_round_before_goes_on),
		cmocka_unit_test(worker__the_lower_round_counts),
		cmocka_unit_test(worker__rounds_that_fall),
		cmocka_unit_test(worker__tells_the_other_servers),
		cmocka_unit_test(worker__is_refused_a_tensor),
		cmocka_unit_test(lane0__waits_for_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
