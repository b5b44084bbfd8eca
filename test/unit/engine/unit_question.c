/* unit_question.c - a worker asks a silent server whether its session exists.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/admit_keys.h"
#include "test/support/keyed_rig.h"

/* the last HELLO, and the COOKIE that answered it */
static struct kept asked, told;

/* Let @ns pass without a frame from the server. Keep worker 0's last HELLO. */
static void pass_in_silence(uint64_t ns)
{
	struct sw_tx_frame f;

	for (uint64_t end = rig.now_ns + ns; rig.now_ns < end;
		rig.now_ns += SW_MS)
		for (uint32_t i = 0; i < N; i++) {
			worker(i)->tick(worker(i), rig.now_ns, 0);
			while (worker(i)->tx(worker(i), rig.now_ns, 0, &f, 1))
				if (!i && f.header.type == SW_HELLO)
					put(&asked, &f, 1);
		}
}

/* Let the silence last until worker 0 asks. */
static void ask(void)
{
	struct sw_hello hello;

	asked.len = 0;
	pass_in_silence(rig.params.dead_after / 8 + 2 * SW_MS);
	assert_int_equal(asked.len, SW_HEAD_BYTES + sizeof(hello));
	memcpy(&hello, asked.bytes + SW_HEAD_BYTES, sizeof(hello));
	assert_int_equal(hello.session, rig.w[0].links[0].peer.far_id);
	assert_int_equal(hello.udp, path_of(0).udp);
}

/* Give @k to the server. Return the session that the server does not know, or
 * -1 if it sends no COOKIE. */
static int64_t answer(const struct kept *k)
{
	struct sw_cookie c;
	struct sw_tx_frame f;

	told.len = 0;
	give(server(), k);
	while (server()->tx(server(), rig.now_ns, 0, &f, 1))
		if (f.header.type == SW_COOKIE)
			put(&told, &f, 0);
	if (!told.len)
		return -1;
	assert_int_equal(told.len, SW_HEAD_BYTES + sizeof(c) + SW_MAC_BYTES);
	memcpy(&c, told.bytes + SW_HEAD_BYTES, sizeof(c));
	return c.unknown;
}

static void restart(void)
{
	sw_server_close(rig.srv);
	open_server();
}

/* Seal the CRCs of a frame of the handshake. */
static void crcs(struct kept *k)
{
	uint32_t crc =
		sw_crc32c(0, k->bytes + SW_HEAD_BYTES, k->len - SW_HEAD_BYTES);

	memcpy(k->bytes + 46, &crc, sizeof(crc));
	crc = sw_crc32c(0, k->bytes, 50);
	memcpy(k->bytes + 50, &crc, sizeof(crc));
}

static void question__a_restarted_server_ends_the_job_at_once(void **state)
{
	run();
	restart();
	pass(rig.params.dead_after / 8 + 10 * SW_MS);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(sw_worker_end_of(&rig.w[i]), SW_ESERVER);
		assert_contains(rig.text[i], "no longer knows this agent: it "
					     "was restarted");
	}
	close_all();
}

/* The worker repeats its question until the server is back. */
static void question__it_asks_until_the_server_is_back(void **state)
{
	run();
	sw_server_close(rig.srv);
	pass_in_silence(rig.params.dead_after / 2);
	open_server();
	pass(rig.params.retry_max + 10 * SW_MS);
	assert_int_equal(sw_worker_end_of(&rig.w[0]), SW_ESERVER);
	assert_contains(rig.text[0], "no longer knows this agent");
	close_all();
}

static void question__a_worker_that_hears_its_server_asks_nothing(void **state)
{
	run();
	memset(rig.to_server, 0, sizeof(rig.to_server));
	pass(3 * rig.params.dead_after);
	assert_int_equal(rig.to_server[0][SW_HELLO].len, 0);
	close_all();
}

static void question__a_live_session_is_never_unknown(void **state)
{
	run();
	ask();
	assert_int_equal(answer(&asked), 0);
	give(worker(0), &told);
	assert_int_equal(rig.w[0].state, SW_WORKER_RUNNING);
	sum(2);
	close_all();
}

/* The server knows a session that it offered by ACCEPT, even if the worker has
 * not confirmed it yet. */
static void question__a_session_that_is_offered_is_known(void **state)
{
	struct sw_rx_frame f = {.from = path_of(1)};
	struct sw_hello hello;

	run();
	ask();
	memcpy(&hello, asked.bytes + SW_HEAD_BYTES, sizeof(hello));
	hello.session = 9 << 16 | 77;
	rig.srv->pending[9].id = hello.session;
	assert_int_equal(sw_admit_unknown(rig.srv, &f, &hello), 0);
	hello.session++;
	assert_int_equal(sw_admit_unknown(rig.srv, &f, &hello), hello.session);
	hello.session = UINT32_MAX; /* beyond the table of sessions */
	assert_int_equal(sw_admit_unknown(rig.srv, &f, &hello), 0);
	rig.srv->pending[9].id = 0;
	close_all();
}

/* Another server at the same address has the secret. An attacker redirects the
 * question to it, and its answer back to the worker. */
static void question__another_endpoint_says_nothing(void **state)
{
	run();
	ask();
	rig.server_port.udp++;
	restart();
	assert_int_equal(answer(&asked), 0);
	rig.server_port.udp--;
	rig.server_port.ip = ip_of(7); /* a server on another machine */
	restart();
	assert_int_equal(answer(&asked), -1);
	rig.server_port.ip = ip_of(0);
	close_all();
}

static void question__no_changed_question_is_answered(void **state)
{
	run();
	ask();
	restart();
	for (uint32_t i = 0; i < sizeof(struct sw_hello); i++) {
		struct kept bad = asked;

		if (i >= 8 && i < 16)
			/* an unknown key id gets an answer without a MAC */
			continue;
		bad.bytes[SW_HEAD_BYTES + i] ^= 1;
		crcs(&bad);
		assert_int_equal(answer(&bad), -1);
	}
	assert_int_not_equal(answer(&asked), 0);
	close_all();
}

static void expect_nothing(const struct kept *k)
{
	give(worker(0), k);
	assert_int_equal(rig.w[0].state, SW_WORKER_RUNNING);
	assert_int_equal(rig.w[0].links[0].state, SW_LINK_OPEN);
}

static void question__no_forged_answer_ends_a_session(void **state)
{
	static struct kept bad, old;
	struct sw_cookie c;

	run();
	ask();
	restart();
	assert_int_equal(answer(&asked), rig.w[0].links[0].peer.far_id);
	old = told;
	for (uint32_t i = 0; i < sizeof(c) + SW_MAC_BYTES; i++) {
		bad = told;
		bad.bytes[SW_HEAD_BYTES + i] ^= 1;
		crcs(&bad);
		expect_nothing(&bad);
	}
	/* A COOKIE without its MAC. */
	bad = told;
	bad.len = SW_HEAD_BYTES + sizeof(c);
	bad.bytes[6] = sizeof(c);
	crcs(&bad);
	expect_nothing(&bad);
	/* A COOKIE from another path. */
	bad = told;
	bad.from = path_of(2);
	expect_nothing(&bad);
	/* A COOKIE of the previous session, which had another nonce. */
	close_all();
	init();
	rig.env.rng = 4711;
	open_all();
	pass(200 * SW_MS);
	memcpy(old.bytes + SW_HEAD_BYTES + offsetof(struct sw_cookie, unknown),
		&rig.w[0].links[0].peer.far_id, sizeof(c.unknown));
	crcs(&old);
	expect_nothing(&old);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			question__a_restarted_server_ends_the_job_at_once),
		cmocka_unit_test(question__it_asks_until_the_server_is_back),
		cmocka_unit_test(
			question__a_worker_that_hears_its_server_asks_nothing),
		cmocka_unit_test(question__a_live_session_is_never_unknown),
		cmocka_unit_test(question__a_session_that_is_offered_is_known),
		cmocka_unit_test(question__another_endpoint_says_nothing),
		cmocka_unit_test(question__no_changed_question_is_answered),
		cmocka_unit_test(question__no_forged_answer_ends_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
