/* unit_probe.c - the worker tries source ports.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/worker_rig.h"

enum { WAYS = 3 };

static struct worker_rig *open_rig(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 1, 1);
	r.w.n_ways = WAYS;
	return &r;
}

/* Send a COOKIE for @nonce whose HELLO landed on lcore 2. */
static void cookie(struct worker_rig *r, uint64_t nonce, bool is_misrouted)
{
	struct sw_cookie c = {.nonce = nonce,
		.cookie = 77,
		.landed = 2,
		.is_misrouted = is_misrouted};

	peer_say(&r->s[0], SW_COOKIE, &c, sizeof(c));
}

/* Check that the next frame leaves by @way; return its type. */
static uint8_t sent(struct worker_rig *r, uint16_t way)
{
	struct sw_tx_frame f = {.way = 99};
	struct sw_hello hello;

	assert_true(r->w.engine.tx(&r->w.engine, r->now_ns, 0, &f, 1));
	assert_int_equal(f.way, way);
	memcpy(&hello, f.payload, sizeof(hello));
	r->s[0].nonce = hello.nonce; /* a JOIN also begins with the nonce */
	return f.head[3];
}

static void cookie__right_at_once(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(sent(r, 0), SW_HELLO);
	cookie(r, r->s[0].nonce, false);
	assert_int_equal(sent(r, 0), SW_JOIN);
	assert_int_equal(r->w.stats.probes, 0);
	wrig_close(r);
}

static void cookie__misrouted_then_right(void **state)
{
	struct worker_rig *r = open_rig();
	uint64_t first;

	assert_int_equal(sent(r, 0), SW_HELLO);
	first = r->s[0].nonce;
	cookie(r, first, true);
	assert_int_equal(sent(r, 1), SW_HELLO);
	assert_true(r->s[0].nonce != first);
	/* late: for another port than the current one */
	cookie(r, first, false);
	assert_int_equal(r->w.stats.rx_state, 1);
	assert_int_equal(r->w.links[0].state, SW_LINK_HELLO);
	cookie(r, r->s[0].nonce, false);
	assert_int_equal(sent(r, 1), SW_JOIN);
	assert_int_equal(r->w.stats.probes, 1);
	assert_int_equal(r->w.stats.probes_failed, 0);
	wrig_close(r);
}

/* If all ports fail, the worker joins from the last one. */
static void cookie__never_right(void **state)
{
	struct worker_rig *r = open_rig();

	for (uint16_t way = 0; way < WAYS; way++) {
		assert_int_equal(sent(r, way), SW_HELLO);
		cookie(r, r->s[0].nonce, true);
	}
	assert_int_equal(sent(r, WAYS - 1), SW_JOIN);
	assert_int_equal(r->w.stats.probes, WAYS - 1);
	assert_int_equal(r->w.stats.probes_failed, 1);
	wrig_close(r);
}

/* The COOKIE itself landed on a wrong lcore of ours. */
static void cookie__itself_misrouted(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_cookie c = {.cookie = 77};
	struct test_frame f;
	struct sw_rx_frame in = {.is_misrouted = true};

	assert_int_equal(sent(r, 0), SW_HELLO);
	c.nonce = r->s[0].nonce;
	peer_make(&r->s[0],
		(struct sw_header){.type = SW_COOKIE, .payload_len = sizeof(c)},
		&c, &f);
	in.data = f.bytes;
	in.payload = f.bytes + SW_HEAD_BYTES;
	in.len = f.len;
	in.from = r->s[0].path;
	r->w.engine.rx(&r->w.engine, r->now_ns, 0, &in, 1);
	assert_int_equal(sent(r, 1), SW_HELLO);
	wrig_close(r);
}

/* From the first JOIN on the session keeps its port. If JOINs get no answer,
 * the repeated HELLO uses the same port. */
static void join__keeps_its_port(void **state)
{
	struct worker_rig *r = open_rig();
	uint8_t type = SW_JOIN;

	assert_int_equal(sent(r, 0), SW_HELLO);
	cookie(r, r->s[0].nonce, false);
	for (uint32_t i = 0; i < 20 && type == SW_JOIN; i++) {
		type = sent(r, 0);
		wrig_tick(r, SW_S);
	}
	assert_int_equal(type, SW_HELLO);
	sent(r, 0);
	cookie(r, r->s[0].nonce, true);
	assert_int_equal(sent(r, 0), SW_JOIN);
	assert_int_equal(r->w.stats.probes, 0);
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cookie__right_at_once),
		cmocka_unit_test(cookie__misrouted_then_right),
		cmocka_unit_test(cookie__never_right),
		cmocka_unit_test(cookie__itself_misrouted),
		cmocka_unit_test(join__keeps_its_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
