/* unit_link.c - how a worker joins its servers, stays, and leaves.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/worker_rig.h"

static struct worker_rig *open_rig(uint16_t n_members, uint32_t n_servers)
{
	static struct worker_rig r;

	wrig_open(&r, 0, n_members, n_servers);
	return &r;
}

static struct worker_rig *open_running(uint32_t n_servers)
{
	struct worker_rig *r = open_rig(2, n_servers);

	wrig_run(r);
	return r;
}

/* --- handshake --- */

static void join__in_order(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	assert_string_equal(wrig_tx(r), "s0 HELLO");
	assert_int_equal(r->last[SW_HELLO].h.session, 0);
	peer_cookie(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 JOIN job rank 0 of 2");
	peer_accept(&r->s[0]);
	wrig_tick(r, 0);
	assert_string_equal(wrig_events(r), "");
	peer_status(&r->s[0], SW_JOB_FORMING, 0, 0, "");
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	assert_int_equal(r->last[SW_KEEPALIVE].h.ctl.taken, 1);
	assert_int_equal(r->last[SW_KEEPALIVE].h.session, r->s[0].id);
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
	assert_string_equal(wrig_events(r), "running");
	assert_int_equal(r->w.size, 2);
	wrig_close(r);
}

/* When the coordinator reports that the job runs, the worker asks the second
 * server with the coordinator's epoch. */
static void join__second_server(void **state)
{
	struct worker_rig *r = open_rig(2, 2);
	struct sw_join j;

	assert_string_equal(wrig_tx(r), "s0 HELLO");
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_FORMING, 0, 0, "");
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
	assert_string_equal(wrig_events(r), "");
	assert_string_equal(wrig_tx(r), "s1 HELLO; s0 KEEPALIVE");
	peer_cookie(&r->s[1]);
	assert_string_equal(wrig_tx(r), "s1 JOIN job rank 0 of 2");
	memcpy(&j, r->last[SW_JOIN].bytes + SW_HEAD_BYTES, sizeof(j));
	assert_int_equal(j.epoch, 9);
	assert_int_equal(j.server_i, 1);
	assert_int_equal(j.n_servers, 2);
	assert_int_equal(j.first, 1 + r->w.first);
	peer_accept(&r->s[1]);
	assert_string_equal(wrig_events(r), "running");
	wrig_close(r);
}

/* Requests are repeated at growing intervals. */
static void join__repeats(void **state)
{
	struct worker_rig *r = open_rig(2, 1);
	uint64_t wait = r->params.retry_min;

	wrig_tx(r);
	for (int i = 0; i < 10; i++) {
		wrig_tick(r, wait - 1);
		assert_string_equal(wrig_tx(r), "");
		wrig_tick(r, 1);
		assert_string_equal(wrig_tx(r), "s0 HELLO");
		wait = sw_min64(2 * wait, r->params.retry_max);
	}
	wrig_close(r);
}

/* A cookie is valid for seconds only, so a worker without an answer asks
 * again. */
static void join__asks_for_a_new_cookie(void **state)
{
	struct worker_rig *r = open_rig(2, 1);
	bool has_hello = false;

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	for (uint64_t at = 0; at < 2 * r->params.cookie_life;
		at += 50 * SW_MS) {
		wrig_tick(r, 50 * SW_MS);
		has_hello |= strstr(wrig_tx(r), "HELLO") != NULL;
	}
	assert_true(has_hello);
	peer_cookie(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 JOIN job rank 0 of 2");
	peer_accept(&r->s[0]);
	assert_int_equal(r->w.links[0].state, SW_LINK_OPEN);
	wrig_close(r);
}

/* Cookies and ACCEPTs for other nonces, or at the wrong time, are ignored. */
static void join__answers_to_other_questions(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	wrig_tx(r);
	r->s[0].nonce++;
	peer_cookie(&r->s[0]);
	assert_string_equal(wrig_tx(r), "");
	r->s[0].nonce--;
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_cookie(&r->s[0]); /* a late copy */
	r->s[0].nonce++;
	peer_accept(&r->s[0]);
	r->s[0].nonce--;
	assert_int_equal(r->w.links[0].state, SW_LINK_JOIN);
	peer_accept(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	peer_accept(&r->s[0]); /* repeated, because our KEEPALIVE was lost */
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	assert_int_equal(r->w.stats.rx_state, 2);
	assert_int_equal(r->w.stats.rx_head_crc, 1);
	assert_int_equal(r->w.stats.sessions_opened, 1);
	wrig_close(r);
}

/* The port has no room for a repeated JOIN, and ACCEPT arrives meanwhile: the
 * worker sends no further JOIN. */
static void join__accept_before_the_repetition(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	wrig_tick(r, r->params.retry_min);
	peer_accept(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	wrig_close(r);
}

static void join__accept_without_session(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	r->s[0].id = 0;
	peer_accept(&r->s[0]);
	assert_int_equal(r->w.links[0].state, SW_LINK_JOIN);
	wrig_close(r);
}

static void join__refused(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_refuse(
		&r->s[0], SW_EVERSION, "agent speaks protocol versions 7 to 8");
	assert_string_equal(wrig_events(r),
		"failed SW_EVERSION server first: agent speaks protocol "
		"versions 7 to 8");
	wrig_tick(r, 0);
	assert_contains(wrig_events(r), "left SW_EVERSION");
	wrig_tick(r, SW_S);
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

/* A place that is taken may become free, so the worker asks again. */
static void join__busy_is_asked_again(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_refuse(&r->s[0], SW_EBUSY, "rank 0 is held by node x");
	wrig_tick(r, r->params.retry_max);
	assert_string_equal(wrig_tx(r), "s0 HELLO");
	wrig_tick(r, 2 * SW_S);
	assert_contains(wrig_events(r), "rank 0 is held by node x");
	wrig_tx(r);
	peer_cookie(&r->s[0]);
	assert_contains(wrig_tx(r), "s0 JOIN");
	peer_accept(&r->s[0]);
	assert_int_equal(r->w.links[0].state, SW_LINK_OPEN);
	wrig_close(r);
}

/* The error is always negative, even if the server's is not. */
static void join__refused_with_a_wild_error(void **state)
{
	static const int errs[] = {0, 1, INT16_MAX};

	for (size_t i = 0; i < SW_ARRAY_SIZE(errs); i++) {
		struct worker_rig *r = open_rig(2, 1);

		wrig_tx(r);
		peer_cookie(&r->s[0]);
		wrig_tx(r);
		peer_refuse(&r->s[0], errs[i], "?");
		assert_int_equal(r->w.state, SW_WORKER_FAILED);
		assert_true(r->w.fault.err < 0);
		wrig_close(r);
	}
}

static void join__tells_what_it_waits_for(void **state)
{
	struct worker_rig *r = open_rig(3, 1);

	wrig_tx(r);
	wrig_tick(r, 2 * SW_S);
	assert_string_equal(wrig_events(r), "joining waiting for server first "
					    "(10.0.0.0:5700), which does not "
					    "answer");
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_FORMING, 0, 0, "here: agent 0 10.0.0.7");
	wrig_tick(r, 2 * SW_S);
	assert_string_equal(wrig_events(r),
		"joining waiting for agents 1, 2 of 3 at "
		"server first (10.0.0.0:5700); here: agent 0 "
		"10.0.0.7");
	wrig_close(r);
}

/* HELLO and COOKIE are short and arrive. JOIN is as long as data and gets no
 * answer. */
static void join__long_frames_do_not_arrive(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	(void)state;
	wrig_tx(r);
	peer_cookie(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 JOIN job rank 0 of 2");
	assert_int_equal(r->last[SW_JOIN].h.payload_len, SW_PAYLOAD_MIN);
	for (int i = 0; i < 40; i++) {
		wrig_tick(r, 50 * SW_MS);
		if (strstr(wrig_tx(r), "HELLO"))
			break;
	}
	peer_cookie(&r->s[0]);
	wrig_tick(r, 2 * SW_S);
	assert_contains(wrig_events(r),
		", which answers, but not to packets of 1234 B (payload 1152): "
		"an MTU on the path is smaller");
	wrig_tx(r);
	peer_accept(&r->s[0]);
	assert_int_equal(r->w.links[0].state, SW_LINK_OPEN);
	wrig_close(r);
}

static void join__timeout(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	r->w.params.dead_after = 1000 * SW_S;
	wrig_tick(r, r->params.join_timeout);
	assert_contains(wrig_events(r),
		"failed SW_ETIMEDOUT waited 60 s for server first");
	assert_contains(r->seen, "left SW_ETIMEDOUT");
	wrig_close(r);
}

/* The worker was refused until the other members had given up, and then
 * admitted to wait for them. The timeout's text includes the refusal. */
static void join__timeout_after_a_refusal(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	r->w.params.dead_after = 1000 * SW_S;
	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_refuse(&r->s[0], SW_EBUSY, "rank 0 is held by node x");
	wrig_tick(r, 50 * SW_S);
	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_FORMING, 0, 0, "");
	wrig_events(r);
	wrig_tick(r, 10 * SW_S);
	assert_contains(wrig_events(r),
		"failed SW_ETIMEDOUT waited 60 s; until 60 s ago server first "
		"refused: rank 0 is held by node x; now for agent 1 of 2 "
		"at server first (10.0.0.0:5700)");
	wrig_close(r);
}

/* After an ACCEPT, another worker got the rank: the worker asks again. */
static void join__refused_after_accept(void **state)
{
	struct worker_rig *r = open_rig(2, 1);
	uint32_t id;

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	id = r->w.links[0].peer.id;
	peer_refuse(&r->s[0], SW_EBUSY, "rank 0 is held by node x");
	assert_int_equal(r->w.links[0].state, SW_LINK_HELLO);
	assert_int_not_equal(r->w.links[0].peer.id, id);
	wrig_tick(r, 2 * SW_S);
	assert_contains(wrig_events(r), ": rank 0 is held by node x");
	assert_string_equal(wrig_tx(r), "s0 HELLO");
	peer_cookie(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 JOIN job rank 0 of 2");
	wrig_close(r);
}

/* If the server starts late, its silence before that does not count. */
static void join__after_a_long_wait(void **state)
{
	struct worker_rig *r = open_rig(2, 2);

	for (uint32_t s = 0; s < 25; s++) {
		wrig_tick(r, SW_S);
		wrig_tx(r);
	}
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	wrig_tick(r, SW_MS);
	assert_int_equal(r->w.links[0].state, SW_LINK_OPEN);
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
	wrig_tx(r);
	peer_cookie(&r->s[1]);
	wrig_tx(r);
	peer_accept(&r->s[1]);
	wrig_tick(r, SW_MS);
	assert_contains(wrig_events(r), "running");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

/* --- state of the job --- */

static void status__failed(void **state)
{
	struct worker_rig *r = open_running(1);

	peer_status(
		&r->s[0], SW_JOB_FAILED, SW_EPEER, 0, "rank 1 (node b) silent");
	assert_string_equal(
		wrig_events(r), "failed SW_EPEER rank 1 (node b) silent");
	assert_string_equal(
		wrig_tx(r), "s0 LEAVE SW_EPEER rank 1 (node b) silent");
	peer_left(&r->s[0], true);
	assert_contains(wrig_events(r), "left SW_EPEER");
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

static void status__failed_with_a_wild_error(void **state)
{
	static const int errs[] = {0, 3, INT16_MAX};

	for (size_t i = 0; i < SW_ARRAY_SIZE(errs); i++) {
		struct worker_rig *r = open_running(1);

		peer_status(&r->s[0], SW_JOB_FAILED, errs[i], 0, "?");
		assert_true(r->w.fault.err < 0);
		wrig_close(r);
	}
}

/* Only the coordinator's STATUS counts. */
static void status__of_another_server(void **state)
{
	struct worker_rig *r = open_running(2);
	struct sw_status st = {.state = SW_JOB_FAILED};

	peer_say(&r->s[1], SW_STATUS, &st, sizeof(st));
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

static void status__past_and_duplicate(void **state)
{
	struct worker_rig *r = open_running(1);
	struct sw_status st = {.state = SW_JOB_FAILED};
	struct sw_header h = {.type = SW_STATUS,
		.psn = 1,
		/* a message that was already taken */
		.ctl.number = r->s[0].n_built,
		.payload_len = sizeof(st)};

	peer_send(&r->s[0], h, &st);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	h.psn = 0; /* a new packet number, as for a retransmission */
	peer_send(&r->s[0], h, &st);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	h.ctl.number++;
	peer_send(&r->s[0], h, &st);
	assert_int_equal(r->w.state, SW_WORKER_FAILED);
	wrig_close(r);
}

static void error__ends_the_job(void **state)
{
	struct worker_rig *r = open_running(1);
	struct sw_fault fault = {.err = SW_EMISMATCH, .key = 3};

	strcpy(fault.text, "tensor a: 1 x f32, 2 x f32");
	peer_say(&r->s[0], SW_ERROR, &fault, sizeof(fault));
	assert_string_equal(wrig_events(r),
		"failed SW_EMISMATCH tensor a: 1 x f32, 2 x f32");
	wrig_close(r);
}

/* A server's text cannot control the terminal of somebody who reads the log. */
static void error__text_is_made_printable(void **state)
{
	struct worker_rig *r = open_running(1);
	struct sw_fault fault = {.err = SW_EMISMATCH};

	memset(fault.text, 0x1b, sizeof(fault.text)); /* also unterminated */
	peer_say(&r->s[0], SW_ERROR, &fault, sizeof(fault));
	assert_null(strchr(wrig_events(r), 0x1b));
	assert_null(strchr(r->env.lines, 0x1b));
	wrig_close(r);
}

/* A late refusal of a JOIN that was accepted meanwhile is ignored. */
static void error__late_refusal(void **state)
{
	struct worker_rig *r = open_running(1);

	peer_refuse(&r->s[0], SW_EREFUSED, "late");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	assert_int_equal(r->w.stats.rx_state, 1);
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(join__in_order),
		cmocka_unit_test(join__second_server),
		cmocka_unit_test(join__repeats),
		cmocka_unit_test(join__asks_for_a_new_cookie),
		cmocka_unit_test(join__answers_to_other_questions),
		cmocka_unit_test(join__accept_before_the_repetition),
		cmocka_unit_test(join__accept_without_session),
		cmocka_unit_test(join__refused),
		cmocka_unit_test(join__busy_is_asked_again),
		cmocka_unit_test(join__refused_with_a_wild_error),
		cmocka_unit_test(join__tells_what_it_waits_for),
		cmocka_unit_test(join__long_frames_do_not_arrive),
		cmocka_unit_test(join__timeout),
		cmocka_unit_test(join__timeout_after_a_refusal),
		cmocka_unit_test(join__refused_after_accept),
		cmocka_unit_test(join__after_a_long_wait),
		cmocka_unit_test(status__failed),
		cmocka_unit_test(status__failed_with_a_wild_error),
		cmocka_unit_test(status__of_another_server),
		cmocka_unit_test(status__past_and_duplicate),
		cmocka_unit_test(error__ends_the_job),
		cmocka_unit_test(error__text_is_made_printable),
		cmocka_unit_test(error__late_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
