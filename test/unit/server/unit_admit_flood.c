/* unit_admit_flood.c - floods of JOINs from strangers, and their cost.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/alloc.h"
#include "engine/server/session.h"
#include "test/support/server_rig.h"

#include <stdio.h>

enum { FLOOD = 10000 }; /* JOINs per second */

static struct server_rig *open_rig(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, 64 << 20);
	return &r;
}

/* Give worker @i another address for each @nth; the low byte stays its
 * number. */
static void move(struct server_rig *r, uint32_t i, uint32_t nth)
{
	r->w[i].path.ip = sw_ip_v4((frame_ip(i) & 0xff0000ff) | nth << 8);
	r->w[i].nonce++;
}

static void send_join(
	struct server_rig *r, uint32_t i, const char *job, uint16_t n_members)
{
	struct sw_join j = rig_join_payload(r, i);

	snprintf(j.job, sizeof(j.job), "%s", job);
	j.n_members = n_members;
	j.member = 0;
	peer_say(&r->w[i], SW_JOIN, &j, sizeof(j));
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static uint32_t n_jobs(const struct server_rig *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		n += r->srv->jobs[i].n_sessions != 0;
	return n;
}

/* Send two different JOINs alternately for a second; return the number of
 * answers. */
static uint32_t flood(struct server_rig *r, uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < FLOOD; k++) {
		if (k % (FLOOD / 4) == 0)
			peer_hello(&r->w[i]);
		send_join(r, i, "churn", (uint16_t)(2 + k % 2));
		r->now_ns += SW_S / FLOOD;
		n += count(rig_tx(r), "ACCEPT");
	}
	return n;
}

/* A flood of JOINs costs no memory, no job and at most one log line. */
static void flood__costs_nothing(void **state)
{
	struct server_rig *r = open_rig(2);
	uint64_t calls = alloc_calls(), bytes = alloc_bytes();
	uint32_t n = flood(r, 3);

	assert_int_equal(alloc_calls(), calls);
	assert_true(alloc_bytes() == bytes);
	assert_int_equal(n_jobs(r), 0);
	assert_in_range(count(r->env.lines, "\n"), 0, 1);
	/* the server answers only some of the JOINs */
	assert_in_range(n, 1, FLOOD / 100);
	server_rig_close(r);
}

/* A job that forms during a flood is not affected, even if it has the same
 * name. */
static void flood__others_join(void **state)
{
	struct server_rig *r = open_rig(2);

	flood(r, 3);
	assert_contains(rig_join(r, 0), "w0 STATUS forming 1");
	flood(r, 3);
	assert_contains(rig_join(r, 1), "w1 STATUS running 2");
	assert_int_equal(n_jobs(r), 1);
	server_rig_close(r);
}

/* A worker that retries at its normal rate is never limited. After a flood from
 * its own address it is limited only for a short time. */
static void limit__not_for_workers(void **state)
{
	struct server_rig *r = open_rig(2);
	uint32_t n = 0;

	for (uint32_t k = 0; k < 1000; k++) {
		r->w[0].nonce++;
		r->now_ns += r->params.retry_max;
		n += count(rig_join_only(r, 0), "ACCEPT");
	}
	assert_int_equal(n, 1000);
	flood(r, 0);
	r->w[0].nonce++;
	r->now_ns += SW_S;
	assert_string_equal(rig_join_only(r, 0), "w0 ACCEPT");
	server_rig_close(r);
}

/* The members of the largest job may all share one address. */
static void limit__not_for_a_large_job(void **state)
{
	struct server_rig *r = open_rig(SW_MAX_MEMBERS);
	struct sw_join j;

	for (uint32_t m = 0; m < SW_MAX_MEMBERS; m++) {
		r->w[0].nonce++;
		r->w[0].path.udp = (uint16_t)(5700 + m);
		peer_hello(&r->w[0]);
		j = rig_join_payload(r, 0);
		j.member = (uint16_t)m;
		peer_say(&r->w[0], SW_JOIN, &j, sizeof(j));
		assert_string_equal(rig_tx(r), "w0 ACCEPT");
	}
	server_rig_close(r);
}

/* Unconfirmed JOINs for more jobs than the server can have keep no job out. */
static void names__hold_no_place(void **state)
{
	struct server_rig *r = open_rig(1);

	for (uint32_t k = 0; k < 2 * SW_MAX_JOBS; k++) {
		char job[16];

		snprintf(job, sizeof(job), "name%u", k);
		move(r, 3, k);
		peer_hello(&r->w[3]);
		send_join(r, 3, job, 1);
		rig_tx(r);
	}
	assert_string_equal(rig_join(r, 0), "w0 ACCEPT; w0 STATUS running 1");
	assert_int_equal(n_jobs(r), 1);
	server_rig_close(r);
}

/* JOINs from more addresses than the server has places for JOINs and sources
 * keep no worker out. */
static void addresses__hold_no_place(void **state)
{
	struct server_rig *r = open_rig(1);
	uint64_t bytes = alloc_bytes();

	for (uint32_t k = 0; k < 2000; k++) {
		move(r, 3, k);
		peer_hello(&r->w[3]);
		send_join(r, 3, "churn", 1);
		rig_tx(r);
	}
	assert_true(alloc_bytes() == bytes);
	r->now_ns += SW_S;
	assert_string_equal(rig_join(r, 0), "w0 ACCEPT; w0 STATUS running 1");
	assert_int_equal(n_jobs(r), 1);
	server_rig_close(r);
}

/* Unconfirmed JOINs leave nothing behind: sessions expire, and grants are
 * divided as if the JOINs had never arrived. */
static void addresses__leave_nothing(void **state)
{
	struct server_rig *r = open_rig(1);

	for (uint32_t k = 0; k < SW_MAX_SESSIONS; k++) {
		move(r, 3, k);
		peer_hello(&r->w[3]);
		send_join(r, 3, "churn", 1);
		rig_tx(r);
	}
	assert_int_equal(r->srv->n_sessions, SW_MAX_SESSIONS);
	assert_contains(rig_join(r, 0), "w0 STATUS running 1");
	assert_int_equal(r->srv->grants.start, SW_FLOW_START);
	rig_tick(r, r->params.dead_after - 1);
	rig_tx(r);
	peer_keepalive(&r->w[0]);
	rig_tick(r, 1);
	assert_int_equal(r->srv->n_sessions, 1);
	peer_leave(&r->w[0], 0, "");
	assert_int_equal(r->srv->n_sessions, 0);
	server_rig_close(r);
}

static void say_hellos(struct server_rig *r, uint32_t i, uint32_t n)
{
	struct sw_hello hello = {.nonce = 7};

	while (n--)
		peer_say(&r->w[i], SW_HELLO, &hello, sizeof(hello));
}

/* During a flood of HELLOs, LEAVE is still answered, and so is a stranger. */
static void flood__of_hellos_keeps_no_other_reply_out(void **state)
{
	struct server_rig *r = open_rig(1);
	const char *sent;

	assert_contains(rig_join(r, 0), "w0 STATUS running 1");
	say_hellos(r, 3, 10 * SW_REPLIES);
	peer_leave(&r->w[0], 0, "");
	sent = rig_tx(r);
	assert_contains(sent, "LEFT");
	assert_int_equal(count(sent, "COOKIE"), SW_REPLIES);
	/* The reverse: during a flood of frames with unknown sessions, HELLO is
	 * answered. */
	for (uint32_t i = 0; i < 10 * SW_REPLIES; i++)
		peer_keepalive(&r->w[0]);
	say_hellos(r, 3, 1);
	assert_contains(rig_tx(r), "COOKIE");
	server_rig_close(r);
}

/* While a job is open, most HELLOs of a flood are dropped after one look at the
 * clock. */
static void flood__of_hellos_is_limited_beside_a_job(void **state)
{
	struct server_rig *r = open_rig(1);

	say_hellos(r, 3, 1000);
	assert_int_equal(r->srv->stats.hellos_limited, 0);
	rig_tx(r);
	r->now_ns += SW_S;
	assert_contains(rig_join(r, 0), "w0 STATUS running 1");
	r->now_ns += SW_S;
	say_hellos(r, 3, 1000);
	assert_int_equal(r->srv->stats.hellos_limited, 1000 - SW_HELLO_BURST);
	rig_tx(r);
	r->now_ns += SW_HELLO_EVERY_US * SW_US;
	say_hellos(r, 3, 2);
	assert_int_equal(
		r->srv->stats.hellos_limited, 1000 - SW_HELLO_BURST + 1);
	assert_contains(rig_tx(r), "COOKIE");
	server_rig_close(r);
}

/* The server logs one line per source and kind until SW_QUIET_S have passed,
 * and no more lines in total than it has places. */
static void lines__are_limited_by_source(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_server *srv = r->srv;
	struct sw_ip a = sw_ip_v4(0x0a000001), b = sw_ip_v4(0x0a000002);
	struct sw_ip a6 = {.high = 7, .low = 1}, b6 = {.high = 7, .low = 2};
	uint32_t n = 0;

	srv->now_ns = SW_S;
	assert_true(sw_server_may_log(srv, a, SW_LINE_KEY));
	assert_false(sw_server_may_log(srv, a, SW_LINE_KEY));
	assert_true(sw_server_may_log(srv, b, SW_LINE_KEY));
	assert_true(sw_server_may_log(srv, a, SW_LINE_JOINS));
	assert_true(sw_server_may_log(srv, a6, SW_LINE_KEY));
	/* an address in the same /64 */
	assert_false(sw_server_may_log(srv, b6, SW_LINE_KEY));
	srv->now_ns += SW_QUIET_S * SW_S - 1;
	assert_false(sw_server_may_log(srv, a, SW_LINE_KEY));
	srv->now_ns++;
	for (uint32_t i = 0; i < 1000; i++)
		n += sw_server_may_log(srv, sw_ip_v4(i + 1), SW_LINE_KEY);
	assert_int_equal(n, SW_LINES);
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flood__costs_nothing),
		cmocka_unit_test(flood__others_join),
		cmocka_unit_test(limit__not_for_workers),
		cmocka_unit_test(limit__not_for_a_large_job),
		cmocka_unit_test(names__hold_no_place),
		cmocka_unit_test(addresses__hold_no_place),
		cmocka_unit_test(addresses__leave_nothing),
		cmocka_unit_test(flood__of_hellos_keeps_no_other_reply_out),
		cmocka_unit_test(flood__of_hellos_is_limited_beside_a_job),
		cmocka_unit_test(lines__are_limited_by_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
