/* unit_job.c - a job's members and state at a server.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

static struct server_rig *open_rig(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, 64 << 20);
	return &r;
}

static struct server_rig *open_running(uint16_t n_members)
{
	struct server_rig *r = open_rig(n_members);

	rig_run(r, PEER_CHUNK);
	return r;
}

static void find__by_its_whole_name(void **state)
{
	struct server_rig *r = open_rig(2);

	assert_null(sw_job_find(r->srv, "job"));
	rig_join(r, 0);
	assert_non_null(sw_job_find(r->srv, "job"));
	assert_null(sw_job_find(r->srv, "jo"));
	assert_null(sw_job_find(r->srv, "job2"));
	server_rig_close(r);
}

static void open__epochs_differ(void **state)
{
	struct server_rig *r = open_rig(1);
	uint64_t first;

	rig_join(r, 0);
	first = r->w[0].epoch;
	peer_leave(&r->w[0], 0, "");
	rig_tx(r);
	r->w[0].nonce++;
	rig_join(r, 0);
	assert_true(r->w[0].epoch != first);
	server_rig_close(r);
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* Let @s seconds pass while the present members send KEEPALIVEs. */
static void wait_s(struct server_rig *r, uint32_t s)
{
	for (uint32_t i = 0; i < s; i++) {
		rig_tick(r, SW_S);
		for (uint32_t w = 0; w < r->n_members; w++)
			if (r->w[w].session)
				peer_keepalive(&r->w[w]);
		rig_tx(r);
	}
}

/* While a job forms, the server logs which members are missing and where the
 * others are, at once and then rarely. Members get the same text. */
static void forming__says_whom_it_waits_for(void **state)
{
	struct server_rig *r = open_rig(5);

	rig_join(r, 0);
	rig_join(r, 2);
	assert_contains(r->env.lines,
		"job job: agent 2 joined from node node2 at 10.0.0.2 with 1 "
		"rank (2 of 5 agents)");
	assert_string_equal(r->w[0].status.why.text,
		"2 ranks here: agent 0 10.0.0.0, 2 10.0.0.2");
	assert_null(strstr(r->env.lines, "waiting"));
	wait_s(r, 2);
	assert_contains(r->env.lines,
		"job job: waiting for agents 1, 3, 4 of 5; 2 ranks here: "
		"agent 0 10.0.0.0, 2 10.0.0.2\n");
	wait_s(r, 58);
	assert_in_range(count(r->env.lines, "waiting"), 3, 6);
	server_rig_close(r);
}

/* The text has the history of the missing members: one left, one was
 * refused. */
static void forming__knows_of_the_missing(void **state)
{
	struct server_rig *r = open_rig(4);
	struct sw_join j;

	rig_join(r, 0);
	rig_join(r, 1);
	peer_leave(&r->w[1], 0, "");
	rig_tx(r);
	r->w[1].session = 0;
	peer_hello(&r->w[3]);
	j = rig_join_payload(r, 3);
	j.n_members = 5;
	for (uint32_t i = 0; i < 3; i++) { /* logged only once */
		peer_say(&r->w[3], SW_JOIN, &j, sizeof(j));
		rig_tx(r);
	}
	assert_int_equal(
		count(r->env.lines, "agent 3 at 10.0.0.3 refused: agent "
				    "3 has agents = 5, job job has "
				    "4"),
		1);
	assert_string_equal(r->w[0].status.why.text,
		"agent 1 left (node1, 10.0.0.1); agent 3 at 10.0.0.3 was "
		"refused "
		"(SW_EMISMATCH); 1 rank here: agent 0 10.0.0.0");
	wait_s(r, 2);
	assert_contains(r->env.lines,
		"waiting for agents 1-3 of 4; agent 1 left (node1, "
		"10.0.0.1); agent 3 at 10.0.0.3 was refused (SW_EMISMATCH); "
		"1 rank here: agent 0 10.0.0.0\n");
	assert_contains(rig_join(r, 3), "w3 STATUS forming 9");
	assert_string_equal(r->w[0].status.why.text,
		"agent 1 left (node1, 10.0.0.1); 2 ranks here: agent 0 "
		"10.0.0.0, 3 10.0.0.3");
	server_rig_close(r);
}

/* When all members have joined, the server logs no further line. */
static void forming__is_over(void **state)
{
	struct server_rig *r = open_rig(SW_MAX_MEMBERS);

	for (uint32_t i = 0; i < SW_MAX_MEMBERS; i++)
		rig_join(r, i);
	wait_s(r, 60);
	assert_int_equal(count(r->env.lines, "waiting"), 0);
	server_rig_close(r);
}

/* The server repeats STATUS at growing intervals until it is acknowledged. */
static void status__until_acknowledged(void **state)
{
	struct server_rig *r = open_rig(1);
	uint32_t n = 0;

	assert_contains(rig_join(r, 0), "w0 STATUS running 1");
	for (uint32_t ms = 0; ms < 1000; ms++) {
		rig_tick(r, SW_MS);
		n += strstr(rig_tx(r), "STATUS") != NULL;
	}
	assert_in_range(n, 6, 9);
	assert_int_equal(r->srv->stats.control_again, n);
	peer_keepalive(&r->w[0]);
	for (uint32_t s = 0; s < 9; s++) {
		rig_tick(r, 500 * SW_MS);
		assert_null(strstr(rig_tx(r), "STATUS"));
	}
	server_rig_close(r);
}

/* A member that acknowledges nothing gets eight states. After that only the
 * newest state waits, whatever happens. */
static void status__window_is_full(void **state)
{
	struct server_rig *r = open_rig(3);
	struct test_frame f;
	uint16_t before;

	rig_join(r, 0);
	before = r->w[0].n_taken;
	for (uint32_t i = 0; i < 40; i++) { /* w1 joins and leaves */
		rig_join(r, 1);
		peer_leave(&r->w[1], 0, "");
		r->w[1].nonce++;
		rig_tx(r);
		r->w[1].session = 0;
	}
	assert_int_equal(r->w[0].n_taken - before, SW_CONTROL_WINDOW - 1);
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "w0 STATUS forming 1");
	f = r->last[SW_STATUS];
	assert_int_equal(f.h.ctl.number, before + SW_CONTROL_WINDOW);
	assert_string_equal(r->w[0].status.why.text,
		"agent 1 left (node1, 10.0.0.1); 1 "
		"rank here: agent 0 10.0.0.0");
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "");
	server_rig_close(r);
}

/* If a member sends frames but acknowledges nothing, the server declares it
 * dead. */
static void status__never_acknowledged(void **state)
{
	struct server_rig *r = open_rig(2);

	rig_join(r, 0);
	for (uint32_t s = 0; s < 10; s++) {
		assert_int_equal(r->srv->stats.sessions_dead, 0);
		peer_send(&r->w[0],
			(struct sw_header){
				.type = SW_KEEPALIVE, .ctl.taken = 9999},
			NULL);
		rig_tick(r, SW_S);
		rig_tx(r);
	}
	assert_int_equal(r->srv->stats.sessions_dead, 1);
	assert_contains(r->env.lines,
		"rank 0 (node node0) acknowledging nothing for 10 s");
	server_rig_close(r);
}

/* A frame that waits for a port's room is no timer, so the lcore can sleep. */
static void status__owed_is_no_timer(void **state)
{
	struct server_rig *r = open_rig(1);

	rig_join(r, 0);
	assert_true(rig_tick(r, SW_S) > r->now_ns); /* due, and not yet sent */
	assert_contains(rig_tx(r), "w0 STATUS running 1");
	assert_true(rig_tick(r, 0) > r->now_ns);
	server_rig_close(r);
}

/* An acknowledgement of an older state does not stop the repetition of the
 * newer one. */
static void status__acknowledged_too_early(void **state)
{
	struct server_rig *r = open_rig(2);
	uint16_t first;

	rig_join(r, 0);
	first = r->w[0].n_taken;
	rig_join(r, 1);
	peer_send(&r->w[0],
		(struct sw_header){.type = SW_KEEPALIVE, .ctl.taken = first},
		NULL);
	rig_tick(r, SW_S);
	assert_contains(rig_tx(r), "w0 STATUS running 2");
	server_rig_close(r);
}

static void join_with(struct server_rig *r, uint32_t i, uint16_t n_local)
{
	struct sw_join j;

	peer_hello(&r->w[i]);
	j = rig_join_payload(r, i);
	j.n_local = n_local;
	peer_say(&r->w[i], SW_JOIN, &j, sizeof(j));
	assert_contains(rig_tx(r), "ACCEPT");
	peer_keepalive(&r->w[i]);
}

static void status__size_is_the_sum_of_local_ranks(void **state)
{
	struct server_rig *r = open_rig(2);

	join_with(r, 0, 4);
	join_with(r, 1, 5);
	assert_contains(rig_tx(r), "w1 STATUS running 9");
	server_rig_close(r);
}

/* Let worker 1 leave while worker 0 waits for its push. */
static void leave_and_wait(struct server_rig *r)
{
	peer_leave(&r->w[1], 0, "");
	peer_push(&r->w[0], 0, 1, 0, 1);
	rig_tx(r);
	peer_query(&r->w[0], 0, 1, 0);
}

/* A text names a lost member by its ranks, which readers know, not by its
 * number. */
static void gone__is_named_by_its_ranks(void **state)
{
	struct server_rig *r = open_rig(3);

	for (uint32_t i = 0; i < 3; i++)
		join_with(r, i, i == 1 ? 3 : 1);
	rig_tx(r);
	rig_declare(r, 0, "a", SW_I32, PEER_CHUNK, 0);
	leave_and_wait(r);
	assert_contains(rig_tx(r), "w0 ERROR SW_EPEER ranks 1-3 (node node1) "
				   "left; round 1 of tensor k0 cannot");
	rig_tick(r, r->params.dead_after / 2);
	peer_send(&r->w[0], (struct sw_header){.type = SW_KEEPALIVE}, NULL);
	rig_tick(r, r->params.dead_after / 2);
	assert_contains(rig_tx(r), "w0 STATUS failed SW_EPEER rank 4 (node "
				   "node2) silent for 10 s");
	server_rig_close(r);
}

/* A member that leaves while the job forms may join again. */
static void leave__while_forming(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	rig_join(r, 0);
	peer_hello(&r->w[1]); /* worker 1 is about to join */
	j = rig_join_payload(r, 1);
	j.n_members = 3; /* refused: other terms than worker 0's */
	peer_say(&r->w[1], SW_JOIN, &j, sizeof(j));
	rig_tx(r);
	peer_leave(&r->w[0], 0, "");
	assert_string_equal(rig_tx(r), "w0 LEFT");
	/* worker 0 was the only member */
	assert_null(sw_job_find(r->srv, "job"));
	r->w[0].nonce++;
	assert_contains(rig_join(r, 0), "w0 STATUS forming 1");
	assert_contains(rig_join(r, 1), "w0 STATUS running 2");
	server_rig_close(r);
}

/* A member that dies while the job forms may also join again, restarted after a
 * failure of its machine or agent. */
static void death__while_forming(void **state)
{
	struct server_rig *r = open_rig(3);

	rig_join(r, 0);
	rig_join(r, 1);
	rig_tick(r, r->params.dead_after / 2);
	peer_keepalive(&r->w[0]);
	rig_tick(r, r->params.dead_after / 2);
	assert_contains(rig_tx(r), "w0 STATUS forming 1");
	assert_int_equal(r->srv->stats.sessions_dead, 1);
	assert_contains(r->env.lines, "agent 1");
	r->w[1].nonce++;
	r->w[1].session = 0;
	assert_contains(rig_join(r, 1), "w0 STATUS forming 3");
	assert_contains(rig_join(r, 2), "running 3");
	server_rig_close(r);
}

static void leave__forming_goes_on_with_the_others(void **state)
{
	struct server_rig *r = open_rig(3);

	rig_join(r, 0);
	rig_join(r, 1);
	peer_leave(&r->w[0], 0, "");
	assert_string_equal(rig_tx(r), "w0 LEFT; w1 STATUS forming 2");
	r->w[0].nonce++;
	assert_contains(rig_join(r, 0), "w1 STATUS forming 3");
	assert_contains(rig_join(r, 2), "running 3");
	server_rig_close(r);
}

static void leave__with_an_error_fails_the_job(void **state)
{
	struct server_rig *r = open_running(2);

	peer_leave(&r->w[1], SW_ECORRUPT, "out of cheese");
	assert_string_equal(rig_tx(r),
		"w1 LEFT; w0 STATUS failed SW_ECORRUPT out of cheese");
	/* A server of a failed job sums nothing. */
	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_query(&r->w[0], 0, 1, 0);
	assert_int_equal(r->srv->stats.rx_state, 2);
	server_rig_close(r);
}

/* A member's error code and text come from outside and may be arbitrary. */
static void leave__with_a_wild_error(void **state)
{
	static const int errs[] = {5, INT16_MAX, INT16_MIN, -12345};

	for (size_t i = 0; i < SW_ARRAY_SIZE(errs); i++) {
		struct server_rig *r = open_running(2);

		peer_leave(&r->w[1], errs[i], "a\nb\x1b[2J");
		rig_tx(r);
		assert_int_equal(r->w[0].status.state, SW_JOB_FAILED);
		assert_true(r->w[0].status.why.err < 0);
		assert_string_equal(r->w[0].status.why.text, "a?b?[2J");
		server_rig_close(r);
	}
}

static void leave__text_without_end(void **state)
{
	struct server_rig *r = open_running(2);
	struct sw_fault fault = {.err = SW_EPEER};

	memset(fault.text, 'x', sizeof(fault.text));
	peer_say(&r->w[1], SW_LEAVE, &fault, sizeof(fault));
	rig_tx(r);
	assert_int_equal(strlen(r->w[0].status.why.text), SW_TEXT_MAX - 1);
	server_rig_close(r);
}

/* A member may leave with an error and without a reason. */
static void leave__with_an_error_and_no_text(void **state)
{
	struct server_rig *r = open_running(2);

	peer_leave(&r->w[1], SW_ECORRUPT, "");
	assert_string_equal(rig_tx(r),
		"w1 LEFT; w0 STATUS failed SW_ECORRUPT rank 1 (node node1) "
		"left: a tensor was written while it was being pushed");
	server_rig_close(r);
}

/* The first error is the cause; later errors do not replace it. */
static void fail__once(void **state)
{
	struct server_rig *r = open_running(3);

	peer_leave(&r->w[1], SW_ECORRUPT, "first");
	rig_tx(r);
	peer_leave(&r->w[2], SW_EPEER, "second");
	assert_string_equal(rig_tx(r), "w2 LEFT");
	assert_string_equal(r->w[0].status.why.text, "first");
	assert_contains(r->env.lines, "job job failed: first\n");
	server_rig_close(r);
}

/* If the server stops and a member repeats the server's reason, the log blames
 * no member. */
static void fail__by_a_server_that_stops(void **state)
{
	struct server_rig *r = open_running(2);

	sw_server_fail_all(r->srv, "the server at node s stops");
	rig_tx(r);
	peer_leave(&r->w[1], SW_ESERVER, "the server at node s stops");
	rig_tx(r);
	assert_contains(
		r->env.lines, "job job failed: the server at node s stops\n");
	assert_null(strstr(r->env.lines, "failed by"));
	server_rig_close(r);
}

/* A member that leaves without an error holds all its results; the other
 * members still get theirs. */
static void leave__in_peace(void **state)
{
	struct server_rig *r = open_running(2);

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[1], 0, 1, 0, 2);
	peer_leave(&r->w[1], 0, "");
	rig_tick(r, 0);
	assert_string_equal(rig_tx(r), "w1 LEFT; w0 RESULT k0 r1 c0 +1344 w2");
	assert_true(rig_result_is(r, 3));
	server_rig_close(r);
}

/* A member that waits for a member that has left gets an ERROR that names
 * it. */
static void left__is_named_to_who_waits(void **state)
{
	struct server_rig *r = open_running(2);

	leave_and_wait(r);
	assert_contains(rig_tx(r), "w0 ERROR SW_EPEER rank 1 (node node1) "
				   "left; round 1 of tensor k0 cannot");
	server_rig_close(r);
}

/* An asynchronous job survives members that leave; only a member whose sum
 * needs one of them gets an error. */
static void leave__asynchronous_goes_on(void **state)
{
	struct server_rig *r = open_rig(3);

	r->params.mode = SW_MODE_ASYNC;
	rig_run(r, PEER_CHUNK);
	peer_leave(&r->w[1], SW_EPEER, "out of cheese");
	assert_string_equal(rig_tx(r), "w1 LEFT; w0 STATUS running 3; "
				       "w2 STATUS running 3");
	assert_int_equal(r->w[0].status.joined, 1 << 0 | 1 << 2);
	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[2], 0, 1, 0, 1);
	rig_tx(r);
	peer_query(&r->w[0], 0, 1, 0);
	assert_contains(rig_tx(r), "w0 ERROR SW_EPEER rank 1 (node node1) "
				   "left; round 1 of tensor k0 cannot");
	server_rig_close(r);
}

static void leave__asynchronous_while_forming(void **state)
{
	struct server_rig *r = open_rig(3);

	r->params.mode = SW_MODE_ASYNC;
	rig_join(r, 0);
	rig_join(r, 1);
	peer_leave(&r->w[1], SW_EPEER, "out of cheese");
	assert_contains(rig_tx(r), "w0 STATUS failed SW_EPEER out of cheese");
	server_rig_close(r);
}

static void close__last_member_gives_all_back(void **state)
{
	struct server_rig *r = open_running(2);

	assert_true(r->srv->quota.used_bytes > 0);
	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_leave(&r->w[0], 0, "");
	peer_leave(&r->w[1], 0, "");
	assert_int_equal(r->srv->quota.used_bytes, 0);
	assert_int_equal(r->env.live_bytes, 0);
	assert_null(sw_job_find(r->srv, "job"));
	assert_string_equal(rig_tx(r), "w0 LEFT; w1 LEFT");
	rig_tick(r, 0);
	assert_string_equal(rig_tx(r), "");
	server_rig_close(r);
}

/* The same job can run again at once; nothing of the first run is left. */
static void close__then_open_again(void **state)
{
	struct server_rig *r = open_running(1);

	for (int32_t run = 1; run < 5; run++) {
		peer_push(&r->w[0], 0, 1, 0, run);
		rig_tx(r);
		assert_true(rig_result_is(r, run));
		peer_leave(&r->w[0], 0, "");
		rig_tx(r);
		r->w[0].nonce++;
		memset(r->w[0].psn, 0, sizeof(r->w[0].psn));
		rig_run(r, PEER_CHUNK);
	}
	server_rig_close(r);
}

/* After a worker has confirmed its JOIN, a replayed JOIN does not count as a
 * sign of life: a dead worker stays dead. */
static void confirm__replayed_join_does_not_keep_alive(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	rig_join(r, 0);
	rig_join(r, 1);
	for (uint32_t i = 0; i < 11; i++) {
		peer_hello(&r->w[0]); /* a fresh cookie */
		j = rig_join_payload(r, 0);
		peer_say(&r->w[0], SW_JOIN, &j, sizeof(j));
		rig_tx(r);
		peer_keepalive(&r->w[1]);
		rig_tick(r, r->params.dead_after / 10);
	}
	assert_int_equal(r->srv->stats.sessions_opened, 2);
	assert_int_equal(r->srv->stats.sessions_dead, 1);
	assert_contains(sw_fault_text(&sw_job_find(r->srv, "job")->status.why,
				false, NULL, (char[SW_TEXT_MAX]){0}),
		"rank 0 (node node0) silent for");
	server_rig_close(r);
}

/* A worker that leaves before its first frame never joined, so the other worker
 * does not see the job run. */
static void confirm__not_by_leave(void **state)
{
	struct server_rig *r = open_rig(2);

	rig_join(r, 1);
	rig_join_only(r, 0);
	peer_leave(&r->w[0], 0, "");
	assert_null(strstr(rig_tx(r), "running"));
	assert_int_equal(
		sw_job_find(r->srv, "job")->status.state, SW_JOB_FORMING);
	assert_contains(rig_join(r, 0), "w1 STATUS running 2");
	server_rig_close(r);
}

/* A rank of member 0 died after it pushed round 1. Member 1 declares too late
 * to push round 1, so that round is also dead: otherwise member 0 would wait
 * for ever. */
static void declare__dead_from_a_later_round(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_fault fault = {.err = SW_EPEER, .text = "rank 0 died"};
	const char *seen;

	rig_join(r, 0);
	rig_join(r, 1);
	rig_declare(r, 0, "a", SW_I32, 10, 0);
	peer_send(&r->w[0],
		(struct sw_header){.type = SW_END,
			.round = 2,
			.payload_len = sizeof(fault)},
		&fault);
	assert_contains(rig_tx(r), "w0 END k0 r2 rank 0 died");
	seen = rig_declare(r, 1, "a", SW_I32, 10, 0);
	assert_contains(seen, "w1 DECLARED k-1 refused rank 0 died");
	assert_contains(seen, "w0 END k0 r1 rank 0 died");
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__dead_from_a_later_round),
		cmocka_unit_test(find__by_its_whole_name),
		cmocka_unit_test(open__epochs_differ),
		cmocka_unit_test(forming__says_whom_it_waits_for),
		cmocka_unit_test(forming__knows_of_the_missing),
		cmocka_unit_test(forming__is_over),
		cmocka_unit_test(status__until_acknowledged),
		cmocka_unit_test(status__window_is_full),
		cmocka_unit_test(status__never_acknowledged),
		cmocka_unit_test(status__owed_is_no_timer),
		cmocka_unit_test(status__acknowledged_too_early),
		cmocka_unit_test(status__size_is_the_sum_of_local_ranks),
		cmocka_unit_test(gone__is_named_by_its_ranks),
		cmocka_unit_test(leave__while_forming),
		cmocka_unit_test(death__while_forming),
		cmocka_unit_test(leave__forming_goes_on_with_the_others),
		cmocka_unit_test(leave__with_an_error_fails_the_job),
		cmocka_unit_test(leave__with_a_wild_error),
		cmocka_unit_test(leave__with_an_error_and_no_text),
		cmocka_unit_test(leave__text_without_end),
		cmocka_unit_test(fail__once),
		cmocka_unit_test(fail__by_a_server_that_stops),
		cmocka_unit_test(leave__in_peace),
		cmocka_unit_test(left__is_named_to_who_waits),
		cmocka_unit_test(leave__asynchronous_goes_on),
		cmocka_unit_test(leave__asynchronous_while_forming),
		cmocka_unit_test(close__last_member_gives_all_back),
		cmocka_unit_test(close__then_open_again),
		cmocka_unit_test(confirm__replayed_join_does_not_keep_alive),
		cmocka_unit_test(confirm__not_by_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
