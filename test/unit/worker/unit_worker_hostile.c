/* unit_worker_hostile.c - how a worker handles invalid and forged frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * After every attack the current round still ends well.
 */
#include "test/support/alloc.h"
#include "test/support/worker_rig.h"
#include "test/support/header.h"

static struct worker_rig *open_rig(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 2);
	wrig_run(&r);
	wrig_declare(&r, "a", 2 * PEER_CHUNK, 0);
	assert_int_equal(sw_worker_push(&r.w, 0, 1, 7), 0);
	assert_string_equal(wrig_tx(&r), "s0 PUSH k0 r1 c0 +1344; "
					 "s0 PUSH k0 r1 c1 +1344");
	return &r;
}

static void close_rig(struct worker_rig *r)
{
	peer_result(&r->s[0], 0, 1, 0, 5);
	peer_result(&r->s[0], 0, 1, 1, 5);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_OK w2");
	wrig_close(r);
}

/* Return a full RESULT for a test to damage. */
static struct test_frame *good_result(struct worker_rig *r)
{
	static struct test_frame f;
	int32_t elems[PEER_CHUNK] = {0};

	peer_make(&r->s[0], peer_result_header(0, 1, 0, PEER_CHUNK), elems, &f);
	return &f;
}

static void deliver(struct worker_rig *r, const struct test_frame *f)
{
	frame_rx(&r->w.engine, r->now_ns, f);
}

static void rx__truncated_and_oversized(void **state)
{
	struct worker_rig *r = open_rig();
	struct test_frame *f = good_result(r);
	uint32_t whole = f->len;

	for (f->len = 0; f->len < whole; f->len++)
		deliver(r, f);
	f->len = whole + 1;
	deliver(r, f);
	f->len = sizeof(f->bytes);
	deliver(r, f);
	assert_int_equal(r->w.stats.rx_short, SW_HEAD_BYTES);
	assert_int_equal(r->w.stats.rx_length, PEER_PAYLOAD + 2);
	close_rig(r);
}

static void rx__wrong_magic_header_version_type(void **state)
{
	struct worker_rig *r = open_rig();
	struct test_frame *f = good_result(r);

	f->bytes[1] ^= 0x40;
	deliver(r, f);
	assert_int_equal(r->w.stats.rx_magic, 1);
	f->bytes[1] ^= 0x40;
	f->bytes[24] ^= 0x40;
	deliver(r, f);
	assert_int_equal(r->w.stats.rx_head_crc, 1);
	peer_send(&r->s[0],
		(struct sw_header){.type = SW_KEEPALIVE, .version = 9}, NULL);
	assert_int_equal(r->w.stats.rx_version, 1);
	peer_send(&r->s[0], (struct sw_header){.type = 40}, NULL);
	assert_int_equal(r->w.stats.rx_type, 1);
	close_rig(r);
}

/* Frames of an earlier run of the job have no effect, even from the same
 * address in the same session, because their seed differs. */
static void rx__earlier_run(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_declared declared = {.n = 1};
	struct sw_fault fault = {.err = SW_EPEER, .text = "earlier"};
	uint64_t rx_ns = r->w.links[0].peer.rx_ns;

	r->now_ns += SW_MS;
	r->s[0].nonce++;
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_FAILED, SW_EPEER, 2, "earlier");
	peer_say(&r->s[0], SW_DECLARED, &declared, sizeof(declared));
	peer_say(&r->s[0], SW_ERROR, &fault, sizeof(fault));
	peer_say(&r->s[0], SW_END, &fault, sizeof(fault));
	peer_keepalive(&r->s[0]);
	peer_ack(&r->s[0], 0, 2);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 1, 0, 0);
	peer_result(&r->s[0], 0, 1, 0, 66);
	peer_left(&r->s[0], true);
	peer_left(&r->s[0], false);
	assert_int_equal(r->w.stats.rx_head_crc, 11);
	assert_string_equal(wrig_events(r), "");
	assert_string_equal(wrig_tx(r), "");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	assert_true(r->w.links[0].peer.rx_ns == rx_ns);
	r->s[0].nonce--;
	close_rig(r);
}

static void rx__corrupted_control_payload(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_status st = {.state = SW_JOB_FAILED};

	peer_send(&r->s[0],
		(struct sw_header){.type = SW_STATUS,
			.payload_len = sizeof(st),
			.payload_crc = 1},
		&st);
	assert_int_equal(r->w.stats.rx_payload_crc, 1);
	close_rig(r);
}

static void rx__stale_generation(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_header h = peer_result_header(0, 1, 0, PEER_CHUNK);
	static const uint32_t offsets[] = {1, 0x20000, 0xffff0000};
	int32_t elems[PEER_CHUNK] = {0};

	for (size_t i = 0; i < SW_ARRAY_SIZE(offsets); i++) {
		h.session = r->s[0].session + offsets[i];
		peer_send(&r->s[0], h, elems);
	}
	assert_int_equal(r->w.stats.rx_session, 3);
	close_rig(r);
}

/* A RESULT without a session, from another server, or from another address is
 * dropped. */
static void rx__wrong_source(void **state)
{
	struct worker_rig *r = open_rig();
	struct test_frame *f = good_result(r);

	f->peer = r->s[1].path;
	deliver(r, f);
	f->peer = r->s[0].path;
	f->peer.udp++;
	deliver(r, f);
	f->peer.udp--;
	f->peer.port_i = 1;
	deliver(r, f);
	assert_int_equal(r->w.stats.rx_source, 3);
	f->peer.port_i = 0;
	f->h.session = 0;
	header_encode(&f->h, f->bytes);
	deliver(r, f);
	assert_int_equal(r->w.stats.rx_session, 1);
	close_rig(r);
}

/* A server that does not own the chunk has no effect on it. */
static void result__of_the_wrong_server(void **state)
{
	struct worker_rig *r = open_rig();

	peer_result(&r->s[1], 0, 1, 0, 66);
	peer_answer(&r->s[1], SW_ANSWER_GONE, 0, 1, 0, 0);
	assert_int_equal(r->w.stats.rx_chunk, 2);
	close_rig(r);
}

/* The worker drops types that only a worker sends. */
static void rx__types_of_a_worker(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t len;
	} rows[] = {{SW_HELLO, 64}, {SW_JOIN, 368}, {SW_DECLARE, 8},
		{SW_LEAVE, 264}, {SW_QUERY, 12}, {SW_PUSH, 64}};
	struct worker_rig *r = open_rig();
	uint8_t zeros[512] = {0};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		peer_send(&r->s[0],
			(struct sw_header){.type = rows[i].type,
				.payload_len = rows[i].len},
			zeros);
		assert_int_equal(r->w.stats.rx_state, i + 1);
	}
	close_rig(r);
}

/* Handshake frames that repeat in a running job have no effect. */
static void rx__handshake_again(void **state)
{
	struct worker_rig *r = open_rig();

	peer_cookie(&r->s[0]);
	peer_accept(&r->s[0]);
	peer_refuse(&r->s[0], SW_EREFUSED, "no");
	r->s[0].n_items = 1;
	peer_declared(&r->s[0]);
	assert_string_equal(wrig_events(r), "");
	close_rig(r);
}

static void hear__implausible_grant(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_flow *f = &r->w.links[0].peer.flow;

	for (uint32_t i = 0; i < 9; i++)
		peer_send(&r->s[0],
			(struct sw_header){.type = SW_KEEPALIVE,
				.grant = 0x7fffffff - i,
				.consumed = 0x7fffffff},
			NULL);
	assert_true(f->granted <= f->consumed + SW_CREDIT_MAX);
	close_rig(r);
}

/* Replayed grants and ACKs have no effect (A5, A9). */
static void hear__played_back(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_sack k = {.largest = 0};
	uint64_t granted = r->w.links[0].peer.flow.granted;

	peer_say(&r->s[0], SW_ACK, &k, sizeof(k));
	k = (struct sw_sack){.largest = 2, .bits = {1}};
	peer_send(&r->s[0],
		(struct sw_header){.type = SW_ACK,
			.psn = 1,
			.grant = (uint32_t)granted + 500,
			.payload_len = sizeof(k)},
		&k);
	assert_true(r->w.links[0].peer.flow.granted == granted);
	assert_int_equal(r->w.links[0].peer.flow.open_mask, 1);
	close_rig(r);
}

static void ack__wild(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_sack k[SW_N_CLASSES];

	memset(k, 0xff, sizeof(k));
	for (uint32_t n = 1; n <= SW_N_CLASSES; n++)
		peer_say(&r->s[0], SW_ACK, k, (n * sizeof(k[0])));
	assert_int_equal(r->w.stats.rx_state, SW_N_CLASSES);
	close_rig(r);
}

/* A storm of ANSWERs makes the worker push each chunk only once. */
static void answer__storm(void **state)
{
	struct worker_rig *r = open_rig();
	uint64_t calls = alloc_calls();

	for (uint32_t n = 0; n < 5000; n++)
		peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, n & 1, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344 again; "
					"s0 PUSH k0 r1 c1 +1344 again");
	assert_true(alloc_calls() == calls);
	close_rig(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx__truncated_and_oversized),
		cmocka_unit_test(rx__wrong_magic_header_version_type),
		cmocka_unit_test(rx__earlier_run),
		cmocka_unit_test(rx__corrupted_control_payload),
		cmocka_unit_test(rx__stale_generation),
		cmocka_unit_test(rx__wrong_source),
		cmocka_unit_test(result__of_the_wrong_server),
		cmocka_unit_test(rx__types_of_a_worker),
		cmocka_unit_test(rx__handshake_again),
		cmocka_unit_test(hear__implausible_grant),
		cmocka_unit_test(hear__played_back),
		cmocka_unit_test(ack__wild),
		cmocka_unit_test(answer__storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
