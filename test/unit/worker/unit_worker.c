/* unit_worker.c - the worker's data path: pushes, results, retransmissions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdlib.h>

/* Open a running worker with tensor "a" of @n_chunks full chunks, key 0, whose
 * elements are 10. */
static struct worker_rig *open_rig(uint32_t n_chunks)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	wrig_run(&r);
	wrig_declare(&r, "a", (uint64_t)n_chunks * PEER_CHUNK, 0);
	for (uint32_t i = 0; i < n_chunks * PEER_CHUNK; i++)
		r.data[0][i] = 10;
	return &r;
}

/* The same, with round 1 pushed and sent. */
static struct worker_rig *open_pushed(uint32_t n_chunks)
{
	struct worker_rig *r = open_rig(n_chunks);

	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	wrig_tx(r);
	return r;
}

static bool data_is(const struct worker_rig *r, uint32_t chunk, int32_t value)
{
	for (uint32_t i = 0; i < PEER_CHUNK; i++)
		if (r->data[0][chunk * PEER_CHUNK + i] != value)
			return false;
	return true;
}

static void set_data(struct worker_rig *r, uint32_t chunk, int32_t value)
{
	for (uint32_t i = 0; i < PEER_CHUNK; i++)
		r->data[0][chunk * PEER_CHUNK + i] = value;
}

/* --- life --- */

static int open_job(struct sw_worker_job job, uint32_t n_ports)
{
	static struct sw_worker w;
	struct test_env e;
	struct sw_params params;
	struct sw_worker_events events = {0};
	struct sw_port wire = {0}, *ports[SW_MAX_PORTS];
	int err;

	for (uint32_t i = 0; i < SW_MAX_PORTS; i++)
		ports[i] = &wire;
	test_env_init(&e);
	sw_params_init(&params);
	err = sw_worker_open(
		&w, &params, &e.env, &events, &job, ports, n_ports, 1);
	if (!err)
		sw_worker_close(&w);
	test_env_fini(&e);
	return err;
}

/* Other threads read the counters at any time, so opening a worker again
 * neither lowers nor resets them. */
static void open__counters_go_on(void **state)
{
	struct sw_worker_server server = {
		.name = "s", .path = {.ip = sw_ip_v4(1)}};
	const struct sw_worker_job job = {.job = "j",
		.node = "n",
		.n_members = 1,
		.n_local = 1,
		.servers = &server,
		.n_servers = 1};
	const struct sw_worker_events events = {0};
	struct sw_port wire = {0}, *port = &wire;
	static struct sw_worker w;
	struct sw_params params;
	struct test_env e;

	test_env_init(&e);
	sw_params_init(&params);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(sw_worker_open(&w, &params, &e.env, &events,
					 &job, &port, 1, 1),
			0);
		assert_int_equal(w.stats.rx_state, i);
		sw_count(&w.stats.rx_state, 1);
		sw_worker_close(&w);
		assert_int_equal(w.stats.rx_state, i + 1);
	}
	test_env_fini(&e);
}

static void open__malformed(void **state)
{
	struct sw_worker_server servers[SW_MAX_SERVERS + 1] = {
		{.name = "s", .path = {.ip = sw_ip_v4(1)}}};
	const struct sw_worker_job good = {.job = "j",
		.node = "n",
		.n_members = 1,
		.n_local = 1,
		.servers = servers,
		.n_servers = 1};
	struct sw_worker_job bad = good;
	char name[SW_NAME_MAX + 1];

	memset(name, 'x', sizeof(name));
	name[SW_NAME_MAX] = 0;
	assert_int_equal(open_job(good, 1), 0);
	assert_int_equal(open_job(good, 0), SW_EINVAL);
	assert_int_equal(open_job(good, SW_MAX_PORTS + 1), SW_EINVAL);
	bad.n_servers = 0;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad.n_servers = SW_MAX_SERVERS + 1;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad = good;
	bad.n_members = 0;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad.n_members = SW_MAX_MEMBERS + 1;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad = good;
	bad.member = 1;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad = good;
	bad.job = name;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad.job = "";
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	bad = good;
	bad.node = name;
	assert_int_equal(open_job(bad, 1), SW_EINVAL);
	name[SW_NAME_MAX - 1] = 0;
	assert_int_equal(open_job(bad, 1), 0);
	servers[0].path.port_i = 1;
	assert_int_equal(open_job(good, 1), SW_EINVAL);
	assert_int_equal(open_job(good, 2), 0);
}

/* --- PUSH --- */

static void push__in_order(void **state)
{
	struct worker_rig *r = open_rig(3);

	for (uint32_t round = 1; round < 5; round++) {
		assert_int_equal(sw_worker_push(&r->w, 0, round, round), 0);
		assert_true(r->w.engine.is_busy(&r->w.engine));
		wrig_tick(r, 0);
		wrig_tx(r);
		assert_int_equal(r->last[SW_PUSH].h.round, round);
		assert_int_equal(r->last[SW_PUSH].h.step, round);
		assert_int_equal(r->last[SW_PUSH].h.weight, 1);
		assert_int_equal(r->last[SW_PUSH].h.dtype, SW_I32);
		for (uint32_t c = 3; c-- > 0;)
			peer_result(
				&r->s[0], 0, round, c, (int32_t)(round + c));
		for (uint32_t c = 0; c < 3; c++)
			assert_true(data_is(r, c, (int32_t)(round + c)));
		assert_contains(wrig_events(r), "SW_OK w2");
		assert_false(r->w.engine.is_busy(&r->w.engine));
	}
	wrig_close(r);
}

static void push__short_last_chunk(void **state)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	wrig_run(&r);
	wrig_declare(&r, "a", PEER_CHUNK + 3, 0);
	sw_worker_push(&r.w, 0, 1, 7);
	assert_string_equal(wrig_tx(&r), "s0 PUSH k0 r1 c0 +1344; "
					 "s0 PUSH k0 r1 c1 +12");
	r.data[0][PEER_CHUNK + 3] = 55;
	peer_result(&r.s[0], 0, 1, 1, 1); /* a full chunk is too long here */
	assert_int_equal(r.w.stats.rx_length, 1);
	assert_int_equal(r.data[0][PEER_CHUNK + 3], 55);
	wrig_close(&r);
}

static void push__waits_for_credit(void **state)
{
	struct worker_rig *r = open_rig(4);

	r->w.links[0].peer.flow.granted =
		r->w.links[0].peer.flow.consumed + PEER_QUANTA + 1;
	sw_worker_push(&r->w, 0, 1, 7);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344; "
					"s0 PUSH k0 r1 c1 +1344");
	r->s[0].grant = 260 * PEER_QUANTA;
	peer_result(&r->s[0], 0, 1, 0, 1);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c2 +1344; "
					"s0 PUSH k0 r1 c3 +1344");
	wrig_close(r);
}

/* --- RESULT --- */

static void result__duplicate(void **state)
{
	struct worker_rig *r = open_pushed(2);

	peer_result(&r->s[0], 0, 1, 0, 30);
	peer_result(&r->s[0], 0, 1, 0, 31);
	assert_true(data_is(r, 0, 30));
	assert_int_equal(r->w.stats.result_again, 1);
	assert_string_equal(wrig_events(r), "");
	wrig_tick(r, r->params.ack_delay);
	assert_contains(wrig_tx(r), "s0 ACK 0:1-2"); /* both have arrived */
	wrig_close(r);
}

/* A result of the previous round arrives while this round is pushed. It is
 * acknowledged, also if that round was a broadcast, or it would be repeated for
 * ever. */
static void result__past(void **state)
{
	struct worker_rig *r = open_pushed(1);
	struct sw_header h = peer_result_header(0, 0, 0, PEER_CHUNK);
	uint8_t payload[SW_PAYLOAD_MAX] = {0};

	peer_result(&r->s[0], 0, 1, 0, 30);
	sw_worker_push(&r->w, 0, 2, 8);
	wrig_tx(r);
	peer_result(&r->s[0], 0, 1, 0, 31);
	assert_true(data_is(r, 0, 30));
	peer_result(&r->s[0], 0, 0, 0, 31);
	h.op = SW_ROUND_COPY;
	peer_send(&r->s[0], h, payload);
	assert_true(data_is(r, 0, 30));
	assert_int_equal(r->w.stats.result_again, 3);
	wrig_tick(r, r->params.ack_delay);
	assert_contains(wrig_tx(r), "s0 ACK 0:1-4");
	wrig_close(r);
}

static void result__future(void **state)
{
	struct worker_rig *r = open_pushed(1);

	peer_result(&r->s[0], 0, 2, 0, 31);
	peer_result(&r->s[0], 0, UINT32_MAX, 0, 31);
	assert_true(data_is(r, 0, 10));
	peer_result(&r->s[0], 0, 1, 0, 30);
	peer_result(&r->s[0], 0, 2, 0, 31); /* the round is not submitted yet */
	assert_true(data_is(r, 0, 30));
	wrig_close(r);
}

/* A result of a round that was not pushed is ignored. */
static void result__before_the_push(void **state)
{
	struct worker_rig *r = open_rig(1);

	sw_worker_push(&r->w, 0, 1, 7); /* submitted and not sent */
	peer_result(&r->s[0], 0, 1, 0, 31);
	assert_true(data_is(r, 0, 10));
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344");
	wrig_close(r);
}

static void result__malformed(void **state)
{
	struct worker_rig *r = open_pushed(2);
	const struct sw_header good = peer_result_header(0, 1, 0, PEER_CHUNK);
	struct sw_header h;
	uint8_t payload[SW_PAYLOAD_MAX] = {0};

	h = good;
	h.key = 1;
	peer_send(&r->s[0], h, payload);
	h.key = SW_KEY_NONE;
	peer_send(&r->s[0], h, payload);
	h.key = SW_TENSORS;
	peer_send(&r->s[0], h, payload);
	assert_int_equal(r->w.stats.rx_key, 3);
	h = good;
	h.chunk = 2;
	peer_send(&r->s[0], h, payload);
	h.chunk = UINT32_MAX;
	peer_send(&r->s[0], h, payload);
	assert_int_equal(r->w.stats.rx_chunk, 2);
	h = good;
	h.dtype = SW_F32;
	peer_send(&r->s[0], h, payload);
	h = good;
	h.op = 1;
	peer_send(&r->s[0], h, payload);
	assert_int_equal(r->w.stats.rx_dtype, 2);
	h = good;
	h.payload_len = 4;
	peer_send(&r->s[0], h, payload);
	h.payload_len = SW_PAYLOAD_MAX;
	peer_send(&r->s[0], h, payload);
	assert_int_equal(r->w.stats.rx_length, 2);
	h = good;
	h.weight = 0;
	peer_send(&r->s[0], h, payload);
	h.weight = 3; /* the job has 2 members */
	peer_send(&r->s[0], h, payload);
	assert_int_equal(r->w.stats.rx_weight, 2);
	assert_true(data_is(r, 0, 10) && data_is(r, 1, 10));
	wrig_tick(r, r->params.ack_delay);
	assert_null(strstr(wrig_tx(r), "ACK"));
	wrig_close(r);
}

static void result__corrupted_payload(void **state)
{
	struct worker_rig *r = open_pushed(1);
	struct sw_header h = peer_result_header(0, 1, 0, PEER_CHUNK);
	int32_t elems[PEER_CHUNK] = {0};

	h.payload_crc = 4711;
	peer_send(&r->s[0], h, elems);
	assert_true(data_is(r, 0, 10)); /* no byte was written (A6) */
	assert_int_equal(r->w.stats.rx_payload_crc, 1);
	wrig_tick(r, r->params.ack_delay);
	assert_null(strstr(wrig_tx(r), "ACK"));
	peer_result(&r->s[0], 0, 1, 0, 30);
	assert_true(data_is(r, 0, 30));
	wrig_close(r);
}

/* The job ran before on the same ports, and only the epoch differs. */
static void result__of_an_earlier_run(void **state)
{
	struct worker_rig *r = open_pushed(1);

	r->s[0].epoch += 1ULL << 32;
	peer_result(&r->s[0], 0, 1, 0, 30);
	assert_true(data_is(r, 0, 10));
	assert_int_equal(r->w.stats.rx_payload_crc, 1);
	assert_string_equal(wrig_events(r), "");
	r->s[0].epoch -= 1ULL << 32;
	peer_result(&r->s[0], 0, 1, 0, 40);
	assert_true(data_is(r, 0, 40));
	wrig_close(r);
}

/* A6: once a result is written, nothing builds a PUSH from the buffer. */
static void result__then_no_retransmission(void **state)
{
	struct worker_rig *r = open_pushed(1);

	peer_result(&r->s[0], 0, 1, 0, 30);
	wrig_tick(r, SW_S);
	assert_null(strstr(wrig_tx(r), "PUSH"));
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, 0, 0);
	peer_answer(&r->s[0], SW_ANSWER_CRC, 0, 1, 0, 0);
	wrig_tick(r, SW_S);
	assert_null(strstr(wrig_tx(r), "PUSH"));
	wrig_close(r);
}

/* A push counts as lost and is about to be retransmitted, but the port has no
 * room, and then the result arrives. */
static void result__while_the_push_is_due_again(void **state)
{
	struct worker_rig *r = open_pushed(1);

	wrig_tick(r, r->params.rto_first); /* no tx: the port has no room */
	peer_result(&r->s[0], 0, 1, 0, 30);
	assert_null(strstr(wrig_tx(r), "PUSH"));
	assert_true(data_is(r, 0, 30));
	wrig_close(r);
}

/* --- ACK, QUERY, ANSWER --- */

static void ack__past_duplicate_and_never_sent(void **state)
{
	struct worker_rig *r = open_pushed(2);

	peer_ack(&r->s[0], 0, 3);
	peer_ack(&r->s[0], 1, 1);
	peer_ack(&r->s[0], 9, 1);
	assert_int_equal(r->w.stats.rx_state, 3);
	peer_ack(&r->s[0], 0, 2);
	peer_ack(&r->s[0], 0, 2);
	peer_ack(&r->s[0], 0, 1);
	assert_int_equal(r->w.stats.rx_state, 3);
	wrig_tick(r, SW_S / 10);
	assert_null(strstr(wrig_tx(r), "PUSH"));
	wrig_close(r);
}

static void lost__is_pushed_again(void **state)
{
	struct worker_rig *r = open_pushed(2);

	wrig_tick(r, r->params.rto_first);
	/* The oldest push serves as a probe; its ACK would report on the other
	 * one. */
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344 again");
	assert_int_equal(r->last[SW_PUSH].h.psn, 3);
	assert_int_equal(r->w.stats.timeouts, 1);
	wrig_tick(r, r->params.rto_first);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c1 +1344 again");
	assert_int_equal(r->last[SW_PUSH].h.psn, 4);
	assert_int_equal(r->w.stats.retransmissions, 2);
	assert_int_equal(r->w.stats.lost, 2);
	assert_int_equal(r->w.stats.timeouts, 2);
	wrig_close(r);
}

/* If a push is acknowledged and no result arrives, the worker queries it at
 * growing intervals. */
static void late__is_queried(void **state)
{
	struct worker_rig *r = open_pushed(2);
	uint32_t n = 0;

	peer_ack(&r->s[0], 0, 2);
	wrig_tick(r, 0);
	wrig_tick(r, r->params.query_min - 1);
	assert_string_equal(wrig_tx(r), "");
	for (uint32_t ms = 0; ms < 1000; ms++) {
		wrig_tick(r, SW_MS);
		n += strstr(wrig_tx(r), "s0 QUERY k0r1c0 k0r1c1") != NULL;
	}
	assert_in_range(n, 8, 18);
	wrig_close(r);
}

/* While the port has no room, no timer fires repeatedly. */
static void late__waits_for_the_port(void **state)
{
	struct worker_rig *r = open_pushed(2);

	peer_ack(&r->s[0], 0, 2);
	wrig_tick(r, 0);
	wrig_tick(r, r->params.query_min);
	for (uint32_t ms = 0; ms < 10; ms++)
		assert_true(wrig_tick(r, SW_MS) >= r->now_ns + SW_MS);
	assert_contains(wrig_tx(r), "s0 QUERY k0r1c0 k0r1c1");
	wrig_close(r);
}

/* A QUERY has at most 64 chunks (A18); the next QUERY continues after them. */
static void late__many(void **state)
{
	struct worker_rig *r = open_pushed(150);

	peer_ack(&r->s[0], 0, 150);
	wrig_tick(r, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct sw_query first;

		while (!strstr(wrig_tx(r), "QUERY"))
			wrig_tick(r, SW_MS);
		memcpy(&first, r->last[SW_QUERY].bytes + SW_HEAD_BYTES,
			sizeof(first));
		assert_int_equal(first.chunk, SW_QUERY_MAX * i);
		assert_int_equal(r->last[SW_QUERY].h.payload_len,
			(i < 2 ? SW_QUERY_MAX : 22) * sizeof(first));
	}
	wrig_close(r);
}

static void answer__wait_need_gone(void **state)
{
	struct worker_rig *r = open_pushed(1);

	peer_ack(&r->s[0], 0, 1);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 1, 0, 2);
	assert_int_equal(r->w.tensors[0].awaited, 2);
	assert_string_equal(wrig_tx(r), "");
	/* Push again, even if the push was acknowledged (A5). */
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, 0, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344 again");
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 1, 0, 0);
	assert_string_equal(wrig_events(r),
		"done t0 #7 SW_EPROTO w0; failed SW_EPROTO server first "
		"no longer has the result of tensor a");
	wrig_close(r);
}

static void answer__past_future_unknown(void **state)
{
	struct worker_rig *r = open_pushed(1);

	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 0, 0, 0);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 2, 0, 0);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 1, 1, 0, 0);
	peer_answer(&r->s[0], SW_ANSWER_GONE, SW_KEY_NONE, 1, 0, 0);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 1, 1, 0);
	peer_answer(&r->s[0], (enum sw_answer_kind)77, 0, 1, 0, 0);
	assert_int_equal(r->w.stats.rx_key, 2);
	assert_int_equal(r->w.stats.rx_chunk, 1);
	assert_int_equal(r->w.stats.rx_type, 1);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	peer_result(&r->s[0], 0, 1, 0, 1);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 1, 0, 0);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

/* The application writes while it pushes: after three refusals the worker
 * pushes a copy, and the call returns an error for this tensor. */
static void answer__crc_three_times(void **state)
{
	struct worker_rig *r = open_pushed(1);

	for (uint32_t n = 1; n <= 3; n++) {
		set_data(r, 0, 100 + (int32_t)n);
		peer_answer(&r->s[0], SW_ANSWER_CRC, 0, 1, 0, 0);
		assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +1344 again");
		assert_int_equal(r->w.stats.push_copied, n == 3);
	}
	peer_result(&r->s[0], 0, 1, 0, 30);
	assert_contains(wrig_events(r), "done t0 #7 SW_ECORRUPT");
	assert_true(data_is(r, 0, 30));
	/* The next round is not affected. */
	sw_worker_push(&r->w, 0, 2, 8);
	wrig_tx(r);
	peer_result(&r->s[0], 0, 2, 0, 31);
	assert_contains(wrig_events(r), "done t0 #8 SW_OK");
	wrig_close(r);
}

/* If the network damaged the push, and not the application, there is no
 * error. */
static void answer__crc_of_an_unchanged_buffer(void **state)
{
	struct worker_rig *r = open_pushed(1);

	for (uint32_t n = 0; n < 5; n++) {
		peer_answer(&r->s[0], SW_ANSWER_CRC, 0, 1, 0, 0);
		wrig_tx(r);
	}
	assert_int_equal(r->w.stats.push_refused, 5);
	peer_result(&r->s[0], 0, 1, 0, 30);
	assert_contains(wrig_events(r), "done t0 #7 SW_OK");
	wrig_close(r);
}

/* --- the rest --- */

/* A frame in another class than the tensor's is still valid. */
static void result__another_class(void **state)
{
	struct worker_rig *r = open_pushed(1);
	struct sw_header h = peer_result_header(0, 1, 0, PEER_CHUNK);
	int32_t elems[PEER_CHUNK] = {0};

	h.class = 5;
	peer_send(&r->s[0], h, elems);
	assert_contains(wrig_events(r), "done t0 #7 SW_OK");
	wrig_tick(r, r->params.ack_delay);
	assert_contains(wrig_tx(r), "s0 ACK 5:1");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__counters_go_on),
		cmocka_unit_test(open__malformed),
		cmocka_unit_test(push__in_order),
		cmocka_unit_test(push__short_last_chunk),
		cmocka_unit_test(push__waits_for_credit),
		cmocka_unit_test(result__duplicate),
		cmocka_unit_test(result__past),
		cmocka_unit_test(result__future),
		cmocka_unit_test(result__before_the_push),
		cmocka_unit_test(result__malformed),
		cmocka_unit_test(result__corrupted_payload),
		cmocka_unit_test(result__of_an_earlier_run),
		cmocka_unit_test(result__then_no_retransmission),
		cmocka_unit_test(result__while_the_push_is_due_again),
		cmocka_unit_test(ack__past_duplicate_and_never_sent),
		cmocka_unit_test(lost__is_pushed_again),
		cmocka_unit_test(late__is_queried),
		cmocka_unit_test(late__waits_for_the_port),
		cmocka_unit_test(late__many),
		cmocka_unit_test(answer__wait_need_gone),
		cmocka_unit_test(answer__past_future_unknown),
		cmocka_unit_test(answer__crc_three_times),
		cmocka_unit_test(answer__crc_of_an_unchanged_buffer),
		cmocka_unit_test(result__another_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
