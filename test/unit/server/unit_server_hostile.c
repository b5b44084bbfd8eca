/* unit_server_hostile.c - how a server handles invalid and forged frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * In every test worker 1 misbehaves, and worker 0 still gets its sum.
 */
#include "test/support/alloc.h"
#include "test/support/server_rig.h"

static struct server_rig *open_rig(uint32_t n_chunks)
{
	static struct server_rig r;

	server_rig_open(&r, 2, 64 << 20);
	rig_run(&r, (uint64_t)n_chunks * PEER_CHUNK);
	return &r;
}

/* Check that the job still works: sum one more round exactly. */
static void assert_sums(struct server_rig *r)
{
	uint32_t round =
		r->srv->jobs[0].shard.tensors[0].chunks[0].cell[0].round;
	uint32_t other =
		r->srv->jobs[0].shard.tensors[0].chunks[0].cell[1].round;

	if (sw_round_before(round, other))
		round = other;
	rig_tick(r, SW_S);
	rig_tx(r);
	peer_push(&r->w[0], 0, round + 1, 0, 3);
	peer_push(&r->w[1], 0, round + 1, 0, 4);
	rig_tx(r);
	assert_true(rig_result_is(r, 7));
}

static void close_rig(struct server_rig *r)
{
	assert_sums(r);
	server_rig_close(r);
}

/* Send a PUSH of worker 1 with a field that the test changed. */
static void push_header(struct server_rig *r, struct sw_header h)
{
	uint8_t payload[SW_PAYLOAD_MAX] = {0};

	peer_send(&r->w[1], h, payload);
}

static void rx__truncated(void **state)
{
	struct server_rig *r = open_rig(1);
	static struct test_frame f;
	int32_t elems[PEER_CHUNK] = {0};

	peer_make(&r->w[1], peer_push_header(0, 1, 0), elems, &f);
	while (f.len-- > 0)
		frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_int_equal(r->srv->stats.rx_short, SW_HEAD_BYTES);
	assert_int_equal(r->srv->stats.rx_length, PEER_PAYLOAD);
	close_rig(r);
}

static void rx__oversized(void **state)
{
	struct server_rig *r = open_rig(1);
	static struct test_frame f;
	int32_t elems[PEER_CHUNK] = {0};

	peer_make(&r->w[1], peer_push_header(0, 1, 0), elems, &f);
	f.len++;
	frame_rx(&r->srv->engine, r->now_ns, &f);
	f.len = sizeof(f.bytes);
	frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_int_equal(r->srv->stats.rx_length, 2);
	close_rig(r);
}

static void rx__wrong_magic(void **state)
{
	struct server_rig *r = open_rig(1);
	static struct test_frame f;

	peer_make(&r->w[1], (struct sw_header){.type = SW_KEEPALIVE}, NULL, &f);
	f.bytes[0] = 'X';
	frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_int_equal(r->srv->stats.rx_magic, 1);
	close_rig(r);
}

static void rx__damaged_header(void **state)
{
	struct server_rig *r = open_rig(1);
	static struct test_frame f;

	peer_make(&r->w[1], (struct sw_header){.type = SW_KEEPALIVE}, NULL, &f);
	f.bytes[20] ^= 1;
	frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_int_equal(r->srv->stats.rx_head_crc, 1);
	close_rig(r);
}

/* Frames of an earlier run of the job have no effect, even from the same
 * address in the same session, because their seed differs. */
static void rx__earlier_run(void **state)
{
	static const uint8_t types[] = {SW_DECLARE, SW_LEAVE, SW_KEEPALIVE,
		SW_TUNE, SW_END, SW_CLOSE, SW_PUSH, SW_ACK, SW_QUERY, SW_WANT};
	struct server_rig *r = open_rig(1);
	struct sw_job *job = &r->srv->jobs[0];
	uint8_t payload[SW_PAYLOAD_MAX] = {0};
	uint64_t rx_ns = job->members[1].session->peer.rx_ns;

	r->now_ns += SW_MS;
	r->w[1].nonce++;
	for (size_t i = 0; i < sizeof(types); i++) {
		struct sw_header h = peer_push_header(0, 1, 0);

		h.type = types[i];
		h.aux = 77;
		h.payload_len = h.type == SW_PUSH      ? PEER_PAYLOAD
				: h.type == SW_DECLARE ? 100
				: h.type == SW_TUNE ? sizeof(struct sw_tune_ask)
				: h.type == SW_ACK  ? sizeof(struct sw_sack)
				: h.type == SW_QUERY ? sizeof(struct sw_query)
				: h.type == SW_LEAVE || h.type == SW_END ||
						h.type == SW_CLOSE
					? sizeof(struct sw_fault)
					: 0;
		peer_send(&r->w[1], h, payload);
	}
	assert_string_equal(rig_tx(r), "");
	assert_int_equal(r->srv->stats.rx_head_crc, sizeof(types));
	assert_int_equal(job->n_sessions, 2);
	assert_true(job->members[1].session->peer.rx_ns == rx_ns);
	assert_int_equal(r->srv->stats.push_folded, 0);
	r->w[1].nonce--;
	close_rig(r);
}

/* HELLO and JOIN belong to no session, and carry no seed. */
static void rx__stranger_with_a_seed(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_hello hello = {.nonce = r->w[1].nonce};
	struct sw_join join = rig_join_payload(r, 1);

	peer_send(&r->w[1],
		(struct sw_header){.type = SW_HELLO,
			.payload_len = sizeof(hello),
			.head_crc = sw_session_seed(hello.nonce)},
		&hello);
	peer_send(&r->w[1],
		(struct sw_header){.type = SW_JOIN,
			.payload_len = sizeof(join),
			.head_crc = 1},
		&join);
	assert_string_equal(rig_tx(r), "");
	assert_int_equal(r->srv->stats.rx_head_crc, 2);
	close_rig(r);
}

/* LEFT for an unknown session has the seed of the frame that it answers, so the
 * worker knows that LEFT is genuine. */
static void left__has_the_seed_of_the_question(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_send(&r->w[1],
		(struct sw_header){
			.type = SW_KEEPALIVE, .session = r->w[1].session + 1},
		NULL);
	assert_string_equal(rig_tx(r), "w1 LEFT");
	assert_int_equal(
		r->last[SW_LEFT].h.head_crc, sw_session_seed(r->w[1].nonce));
	close_rig(r);
}

static void rx__wrong_version(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_send(&r->w[1],
		(struct sw_header){
			.type = SW_KEEPALIVE, .version = SW_VERSION_MAX + 1},
		NULL);
	peer_send(&r->w[1],
		(struct sw_header){
			.type = SW_KEEPALIVE, .version = SW_VERSION_MAX + 2},
		NULL);
	assert_int_equal(r->srv->stats.rx_version, 2);
	close_rig(r);
}

static void rx__unknown_type(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_send(&r->w[1], (struct sw_header){.type = SW_N_TYPES}, NULL);
	peer_send(&r->w[1], (struct sw_header){.type = 255}, NULL);
	assert_int_equal(r->srv->stats.rx_type, 2);
	close_rig(r);
}

static void rx__corrupted_control_payload(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_fault fault = {.err = SW_EPEER};

	peer_send(&r->w[1],
		(struct sw_header){.type = SW_LEAVE,
			.payload_len = sizeof(fault),
			.payload_crc = 99},
		&fault);
	assert_int_equal(r->srv->stats.rx_payload_crc, 1);
	close_rig(r);
}

/* Frames of sessions that never existed or have ended get a short LEFT. */
static void rx__stale_generation(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_header h = peer_push_header(0, 1, 0);
	uint32_t id = r->w[1].session;

	static const uint32_t offsets[] = {1, 0x10000, 0x40000, 0xfff00000};

	for (size_t i = 0; i < SW_ARRAY_SIZE(offsets); i++) {
		h.session = id + offsets[i];
		push_header(r, h);
		assert_string_equal(rig_tx(r), "w1 LEFT");
		assert_int_equal(r->last[SW_LEFT].h.key, h.session);
		assert_int_equal(r->last[SW_LEFT].len, SW_HEAD_BYTES);
	}
	assert_int_equal(r->srv->stats.rx_session, 4);
	assert_int_equal(r->srv->stats.push_folded, 0);
	close_rig(r);
}

/* A session's frames are valid only from its own address. */
static void rx__session_of_another_address(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_header h = peer_push_header(0, 1, 0);

	h.session = r->w[0].session;
	push_header(r, h);
	r->w[1].path.udp++;
	peer_leave(&r->w[1], SW_EPEER, "not me");
	r->w[1].path.udp--;
	assert_int_equal(r->srv->stats.rx_source, 2);
	assert_int_equal(r->srv->stats.push_folded, 0);
	assert_string_equal(rig_tx(r), "");
	close_rig(r);
}

/* The server drops types that only a server sends. */
static void rx__types_of_a_server(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t len;
	} rows[] = {{SW_COOKIE, 24}, {SW_ACCEPT, 16}, {SW_DECLARED, 8},
		{SW_STATUS, sizeof(struct sw_status)}, {SW_LEFT, 0},
		{SW_ERROR, 264}, {SW_ANSWER, 24}, {SW_RESULT, 64}};
	struct server_rig *r = open_rig(1);
	uint8_t zeros[sizeof(struct sw_status)] = {0};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		peer_send(&r->w[1],
			(struct sw_header){.type = rows[i].type,
				.payload_len = rows[i].len},
			zeros);
		assert_int_equal(r->srv->stats.rx_state, i + 1);
	}
	/* acknowledges STATUS */
	assert_string_equal(rig_tx(r), "w1 KEEPALIVE");
	close_rig(r);
}

static void push__wrong_fields(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_header good = peer_push_header(0, 1, 0), h;
	const struct sw_stats *st = &r->srv->stats;

	h = good;
	h.key = 1;
	push_header(r, h);
	h.key = SW_KEY_NONE;
	push_header(r, h);
	assert_int_equal(st->rx_key, 2);
	h = good;
	h.chunk = 1;
	push_header(r, h);
	h.chunk = UINT32_MAX;
	push_header(r, h);
	assert_int_equal(st->rx_chunk, 2);
	h = good;
	h.dtype = SW_F32;
	push_header(r, h);
	h.dtype = 200;
	push_header(r, h);
	h = good;
	h.op = 3;
	push_header(r, h);
	assert_int_equal(st->rx_dtype, 3);
	h = good;
	h.payload_len -= 4;
	push_header(r, h);
	h.payload_len = 8192;
	push_header(r, h);
	h.payload_len = 1;
	push_header(r, h);
	assert_int_equal(st->rx_length, 3);
	h = good;
	h.round = 5;
	push_header(r, h);
	assert_int_equal(st->rx_round, 1);
	assert_int_equal(st->push_folded, 0);
	close_rig(r);
}

/* Rounds that were never pushed have no result. */
static void push_and_query__round_before_the_first(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_header h = peer_push_header(0, 0, 0);

	push_header(r, h);
	h.round = UINT32_MAX;
	push_header(r, h);
	peer_query(&r->w[1], 0, 0, 0);
	peer_query(&r->w[1], 0, UINT32_MAX, 0);
	assert_string_equal(
		rig_tx(r), "w1 ANSWER GONE k0r0c0, GONE k0r4294967295c0");
	close_rig(r);
}

/* A worker may lie about credit, but gets only the bytes that exist. */
static void hear__implausible_grant_and_consumed(void **state)
{
	struct server_rig *r = open_rig(1);

	for (uint32_t i = 0; i < 8; i++)
		peer_send(&r->w[1],
			(struct sw_header){.type = SW_KEEPALIVE,
				.consumed = 0x7fffffff,
				.grant = 0x7fffffff},
			NULL);
	assert_true(r->srv->sessions[1]->peer.flow.granted <=
		    SW_CREDIT_MAX + r->srv->sessions[1]->peer.flow.consumed);
	close_rig(r);
}

/* If the packet number jumps to the end of its range, only that session stops
 * receiving. */
static void hear__number_at_the_end(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_header h = peer_push_header(0, 1, 0);

	h.psn = 0xffffffffffffULL;
	push_header(r, h);
	rig_tx(r);
	peer_push(&r->w[1], 0, 1, 0, 9); /* folded despite its number */
	peer_push(&r->w[0], 0, 1, 0, 1);
	rig_tx(r);
	assert_true(rig_result_is(r, 1)); /* the zeros arrived first */
	close_rig(r);
}

/* A storm of full QUERIES gets one answer of bounded size. */
static void query__storm(void **state)
{
	struct server_rig *r = open_rig(200);
	struct sw_query queries[SW_QUERY_MAX];
	uint64_t calls = alloc_calls(), before;

	for (uint32_t n = 0; n < 1000; n++) {
		for (uint32_t i = 0; i < SW_QUERY_MAX; i++)
			queries[i] = (struct sw_query){0, 1, (n + i) % 200};
		peer_say(&r->w[1], SW_QUERY, queries, sizeof(queries));
	}
	before = r->srv->stats.tx_bytes;
	rig_tx(r);
	assert_true(r->srv->stats.tx_bytes - before <
		    2 * SW_HEAD_BYTES +
			    SW_QUERY_MAX * sizeof(struct sw_answer) + 1);
	assert_true(alloc_calls() == calls);
	assert_int_equal(r->srv->stats.queries, 64000);
	close_rig(r);
}

/* Repeated QUERIES of a finished sum cause one RESULT, not one each. */
static void query__storm_of_a_finished_sum(void **state)
{
	struct server_rig *r = open_rig(1);
	uint64_t results;

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_push(&r->w[1], 0, 1, 0, 1);
	rig_tx(r);
	results = r->srv->stats.results;
	for (uint32_t n = 0; n < 1000; n++) {
		peer_query(&r->w[1], 0, 1, 0);
		rig_tx(r);
	}
	assert_int_equal(r->srv->stats.results, results);
	close_rig(r);
}

static void query__unknown(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_query(&r->w[1], 9, 1, 0);
	peer_query(&r->w[1], SW_KEY_NONE, 1, 0);
	peer_query(&r->w[1], 0, 1, 7);
	assert_int_equal(r->srv->stats.rx_key, 2);
	assert_int_equal(r->srv->stats.rx_chunk, 1);
	assert_string_equal(rig_tx(r), "");
	close_rig(r);
}

/* A replayed control frame has no effect (A5). */
static void control__played_back(void **state)
{
	struct server_rig *r = open_rig(1);
	static struct test_frame f;
	struct sw_query query = {0, 1, 0};

	peer_make(&r->w[1],
		(struct sw_header){
			.type = SW_QUERY, .payload_len = sizeof(query)},
		&query, &f);
	frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_string_equal(rig_tx(r), "w1 ANSWER NEED k0r1c0");
	for (uint32_t n = 0; n < 10; n++)
		frame_rx(&r->srv->engine, r->now_ns, &f);
	assert_string_equal(rig_tx(r), "");
	assert_int_equal(r->srv->stats.queries, 1);
	close_rig(r);
}

static void ack__wild(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_sack k[SW_N_CLASSES];

	memset(k, 0xff, sizeof(k));
	for (uint32_t n = 0; n <= SW_N_CLASSES; n++)
		peer_say(&r->w[1], SW_ACK, k, (n * sizeof(k[0])));
	assert_int_equal(r->srv->stats.rx_state, SW_N_CLASSES);
	close_rig(r);
}

static void leave__twice(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_leave(&r->w[1], 0, "");
	peer_leave(&r->w[1], 0, "");
	assert_string_equal(rig_tx(r), "w1 LEFT; w1 LEFT");
	assert_int_equal(r->srv->stats.sessions_closed, 1);
	assert_int_equal(r->srv->stats.rx_session, 1);
	server_rig_close(r);
}

/* A member's reason for leaving reaches the log and the other members as clean
 * text. */
static void leave__with_controls(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_leave(&r->w[1], SW_EPEER,
		"a\nb\x9b"
		"2J\xc2\x9b"
		"3J\xe2\x80\xae"
		"c");
	rig_tx(r);
	assert_contains(
		r->env.lines, "rank 1 (node node1) left: a?b?2J??3J???c\n");
	assert_string_equal(r->w[0].status.why.text, "a?b?2J??3J???c");
	server_rig_close(r);
}

static void leave__then_anything(void **state)
{
	struct server_rig *r = open_rig(1);

	peer_push(&r->w[0], 0, 1, 0, 1);
	peer_leave(&r->w[1], 0, "");
	peer_push(&r->w[1], 0, 1, 0, 1);
	peer_query(&r->w[1], 0, 1, 0);
	peer_ack(&r->w[1], 0, 1);
	peer_keepalive(&r->w[1]);
	rig_declare(r, 1, "b", SW_I32, 10, 0);
	assert_int_equal(r->srv->stats.rx_session, 5);
	assert_int_equal(r->srv->stats.push_folded, 1);
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 1);
	server_rig_close(r);
}

/* A captured LEAVE of an earlier run of the same worker changes nothing. */
static void leave__played_back_later(void **state)
{
	static struct server_rig r;
	static struct test_frame f;
	struct sw_fault fault = {0};

	server_rig_open(&r, 1, 64 << 20);
	rig_run(&r, PEER_CHUNK);
	peer_make(&r.w[0],
		(struct sw_header){
			.type = SW_LEAVE, .payload_len = sizeof(fault)},
		&fault, &f);
	frame_rx(&r.srv->engine, r.now_ns, &f);
	rig_tx(&r);
	r.w[0].nonce++;
	memset(r.w[0].psn, 0, sizeof(r.w[0].psn));
	rig_run(&r, PEER_CHUNK);
	frame_rx(&r.srv->engine, r.now_ns, &f);
	assert_int_equal(r.srv->stats.rx_session, 1);
	assert_int_equal(r.srv->stats.sessions_closed, 1);
	server_rig_close(&r);
}

/* If one job fails, stalls and floods, the other job is not affected. */
static void jobs__are_apart(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_join j;

	r->w[2].nonce = 900;
	peer_hello(&r->w[2]);
	j = rig_join_payload(r, 2);
	strcpy(j.job, "other");
	j.member = 0;
	j.n_members = 1;
	peer_say(&r->w[2], SW_JOIN, &j, sizeof(j));
	rig_tx(r);
	peer_keepalive(&r->w[2]);
	rig_tx(r);
	assert_contains(rig_declare(r, 2, "x", SW_I32, 2 * PEER_CHUNK, 0),
		"w2 DECLARED k0");
	peer_push(&r->w[2], 0, 1, 0, 77); /* the same key in another job */
	rig_tx(r);
	assert_true(rig_result_is(r, 77));
	peer_push(&r->w[2], 0, 1, 1, 5); /* the first job has no chunk 1 */
	peer_leave(&r->w[2], SW_ECORRUPT, "bye");
	assert_null(strstr(rig_tx(r), "w0"));
	assert_int_equal(r->srv->jobs[0].status.state, SW_JOB_RUNNING);
	close_rig(r);
}

/* While the job runs, the server answers a PROBE with the same number of bytes,
 * but no PROBE larger than the payload, and not several in a row. PATHS count
 * once, before the job runs, with a valid size. A DECLARE with another payload
 * is dropped (I4, I5). */
static void jobs__forged_probes_and_paths(void **state)
{
	static const uint8_t zeros[SW_PAYLOAD_MAX];
	static struct server_rig r;

	server_rig_open(&r, 2, 64 << 20);
	rig_join(&r, 0);
	rig_join(&r, 1);
	assert_int_equal(r.srv->jobs[0].status.state, SW_JOB_RUNNING);
	peer_paths(&r.w[1], 1152);
	peer_say(&r.w[1], SW_PROBE, zeros, 1408);
	assert_int_equal(r.srv->stats.rx_state, 2);
	assert_null(strstr(rig_tx(&r), "PROBE"));
	peer_say(&r.w[1], SW_PROBE, zeros, 1344);
	assert_contains(rig_tx(&r), "w1 PROBE +1344");
	peer_say(&r.w[1], SW_PROBE, zeros, 1344);
	assert_int_equal(r.srv->stats.rx_state, 3);
	assert_null(strstr(rig_tx(&r), "PROBE"));
	assert_int_equal(r.srv->jobs[0].params.payload, PEER_PAYLOAD);
	r.w[0].payload = 1152;
	assert_null(strstr(rig_declare(&r, 0, "a", SW_I32, 4, 0), "DECLARED"));
	assert_int_equal(r.srv->stats.rx_state, 4);
	server_rig_close(&r);
}

/* The job's payload is the smallest one that a member reports. */
static void jobs__take_the_least_payload(void **state)
{
	static const uint8_t zeros[SW_PAYLOAD_MAX];
	static struct server_rig r;

	server_rig_open(&r, 3, 64 << 20);
	r.w[1].payload = 1216;
	for (uint32_t i = 0; i < 2; i++)
		rig_join(&r, i);
	peer_paths(&r.w[0], 1152); /* the job is not PROBING yet */
	assert_int_equal(r.srv->stats.rx_state, 1);
	peer_say(&r.w[0], SW_PROBE, zeros, 1344);
	assert_contains(rig_tx(&r), "w0 PROBE +1344");
	peer_say(&r.w[0], SW_PROBE, zeros, 1345); /* not a valid size */
	assert_int_equal(r.srv->stats.rx_length, 1);
	r.w[0].has_probed = false;
	rig_join(&r, 2);
	assert_int_equal(r.srv->jobs[0].status.state, SW_JOB_RUNNING);
	assert_int_equal(r.w[2].status.payload, 1216);
	server_rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx__truncated),
		cmocka_unit_test(rx__oversized),
		cmocka_unit_test(rx__wrong_magic),
		cmocka_unit_test(rx__damaged_header),
		cmocka_unit_test(rx__earlier_run),
		cmocka_unit_test(rx__stranger_with_a_seed),
		cmocka_unit_test(left__has_the_seed_of_the_question),
		cmocka_unit_test(rx__wrong_version),
		cmocka_unit_test(rx__unknown_type),
		cmocka_unit_test(rx__corrupted_control_payload),
		cmocka_unit_test(rx__stale_generation),
		cmocka_unit_test(rx__session_of_another_address),
		cmocka_unit_test(rx__types_of_a_server),
		cmocka_unit_test(push__wrong_fields),
		cmocka_unit_test(push_and_query__round_before_the_first),
		cmocka_unit_test(hear__implausible_grant_and_consumed),
		cmocka_unit_test(hear__number_at_the_end),
		cmocka_unit_test(query__storm),
		cmocka_unit_test(query__storm_of_a_finished_sum),
		cmocka_unit_test(query__unknown),
		cmocka_unit_test(control__played_back),
		cmocka_unit_test(ack__wild),
		cmocka_unit_test(leave__twice),
		cmocka_unit_test(leave__with_controls),
		cmocka_unit_test(leave__then_anything),
		cmocka_unit_test(leave__played_back_later),
		cmocka_unit_test(jobs__are_apart),
		cmocka_unit_test(jobs__forged_probes_and_paths),
		cmocka_unit_test(jobs__take_the_least_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
