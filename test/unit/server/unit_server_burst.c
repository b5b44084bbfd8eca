/* unit_server_burst.c - a server that receives several frames in one burst.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

#include <stdio.h>

struct burst {
	struct server_rig *r;
	struct test_frame frames[SW_RX_BURST];
	uint32_t n;
};

/* Open a server of @n_members with tensor "a", and an empty burst. */
static struct burst *open_elems(uint16_t n_members, uint64_t n_elems)
{
	static struct server_rig r;
	static struct burst b;

	server_rig_open(&r, n_members, 64 << 20);
	rig_run(&r, n_elems);
	b = (struct burst){.r = &r};
	return &b;
}

/* The same, of @n_chunks full chunks. */
static struct burst *open_burst(uint16_t n_members, uint32_t n_chunks)
{
	return open_elems(n_members, (uint64_t)n_chunks * PEER_CHUNK);
}

/* Add a frame of worker @i to the burst; the test may change it. */
static struct test_frame *add(
	struct burst *b, uint32_t i, struct sw_header h, const void *payload)
{
	struct test_frame *f = &b->frames[b->n++];

	peer_make(&b->r->w[i], h, payload, f);
	return f;
}

/* Add a push of round 1 with @value in every element. */
static struct test_frame *add_push(
	struct burst *b, uint32_t i, uint32_t chunk, int32_t value)
{
	int32_t elems[PEER_CHUNK];

	for (uint32_t e = 0; e < PEER_CHUNK; e++)
		elems[e] = value;
	return add(b, i, peer_push_header(0, 1, chunk), elems);
}

static void add_leave(struct burst *b, uint32_t i, int err)
{
	struct sw_fault fault = {.err = (int16_t)err, .key = SW_KEY_NONE};

	strcpy(fault.text, err ? "I cannot go on" : "");
	add(b, i,
		(struct sw_header){
			.type = SW_LEAVE, .payload_len = sizeof(fault)},
		&fault);
}

/* Hand the burst to the server; return the frames that it sends. */
static const char *give(struct burst *b)
{
	struct server_rig *r = b->r;

	frame_rx_burst(&r->srv->engine, r->now_ns, b->frames, b->n);
	b->n = 0;
	return rig_tx(r);
}

static const struct sw_stats *stats_of(const struct burst *b)
{
	return &b->r->srv->stats;
}

/* --- bad frames between good ones --- */

static void bad__between_good_ones(void **state)
{
	struct burst *b = open_burst(1, 3);
	struct test_frame *f;

	add_push(b, 0, 0, 1);
	add_push(b, 0, 1, 2)->bytes[20] ^= 1; /* damage the header */
	add_push(b, 0, 1, 2)->bytes[SW_HEAD_BYTES] ^= 1;
	add_push(b, 0, 1, 2)->len = SW_HEAD_BYTES - 1;
	f = add_push(b, 0, 1, 2);
	f->h.session++; /* as in a frame of an earlier generation */
	frame_seal(f);
	add_push(b, 0, 1, 2)->peer.udp++;
	add_push(b, 0, 2, 3);
	assert_string_equal(give(b),
		"w0 LEFT; w0 ANSWER CRC k0r1c1; w0 ACK 0:1,7; "
		"w0 RESULT k0 r1 c0 +1344 w1; w0 RESULT k0 r1 c2 +1344 w1");
	assert_true(rig_result_is(b->r, 3));
	assert_int_equal(stats_of(b)->rx_head_crc, 1);
	assert_int_equal(stats_of(b)->rx_payload_crc, 1);
	assert_int_equal(stats_of(b)->rx_short, 1);
	assert_int_equal(stats_of(b)->rx_session, 1);
	assert_int_equal(stats_of(b)->rx_source, 1);
	assert_int_equal(stats_of(b)->push_folded, 2);
	server_rig_close(b->r);
}

/* The server checks fields that several frames share only once; a frame that
 * differs is still checked. */
static void bad__behind_what_it_is_like(void **state)
{
	struct burst *b = open_elems(1, 2 * PEER_CHUNK + 1);
	struct test_frame *f;

	add_push(b, 0, 0, 1);
	add_push(b, 0, 2, 1); /* the last chunk is shorter */
	add_push(b, 0, 0, 1);
	f = add_push(b, 0, 1, 2);
	f->h.dtype = SW_F32;
	frame_seal(f);
	add_push(b, 0, 0, 1);
	f = add_push(b, 0, 1, 2);
	f->h.weight = 9;
	frame_seal(f);
	add_push(b, 0, 0, 1);
	f = add_push(b, 0, 1, 2);
	f->h.op = SW_N_ROUND_KINDS;
	frame_seal(f);
	add_push(b, 0, 0, 1);
	f = add_push(b, 0, 1, 2);
	f->h.key = 1;
	frame_seal(f);
	add_push(b, 0, 0, 1);
	add_push(b, 0, 1, 2);
	give(b);
	assert_int_equal(stats_of(b)->rx_length, 1);
	assert_int_equal(stats_of(b)->rx_dtype, 2);
	assert_int_equal(stats_of(b)->rx_weight, 1);
	assert_int_equal(stats_of(b)->rx_key, 1);
	assert_int_equal(stats_of(b)->push_again, 5);
	assert_int_equal(stats_of(b)->push_folded, 2);
	server_rig_close(b->r);
}

static void bad__all_of_them(void **state)
{
	struct burst *b = open_burst(1, 1);

	while (b->n < SW_RX_BURST)
		add_push(b, 0, 0, 1)->bytes[0] ^= 1;
	assert_string_equal(give(b), "");
	assert_int_equal(stats_of(b)->rx_magic, SW_RX_BURST);
	server_rig_close(b->r);
}

/* --- one chunk more than once --- */

/* A duplicate chunk is not folded, even if its bytes differ. */
static void twice__chunk(void **state)
{
	struct burst *b = open_burst(2, 1);

	add_push(b, 0, 0, 1);
	add_push(b, 0, 0, 99);
	add_push(b, 1, 0, 10);
	add_push(b, 1, 0, 99);
	assert_string_equal(give(b), "w0 RESULT k0 r1 c0 +1344 w2; "
				     "w1 RESULT k0 r1 c0 +1344 w2");
	assert_true(rig_result_is(b->r, 11));
	assert_int_equal(stats_of(b)->push_folded, 2);
	assert_int_equal(stats_of(b)->push_again, 2);
	rig_tick(b->r, SW_MS); /* both copies of each are acknowledged */
	assert_string_equal(rig_tx(b->r), "w0 ACK 0:1-2; w1 ACK 0:1-2");
	server_rig_close(b->r);
}

/* The network duplicates a frame. */
static void twice__frame(void **state)
{
	struct burst *b = open_burst(1, 1);

	b->frames[1] = *add_push(b, 0, 0, 5);
	b->n = 2;
	assert_string_equal(give(b), "w0 ACK 0:1; w0 RESULT k0 r1 c0 +1344 w1");
	assert_true(rig_result_is(b->r, 5));
	assert_int_equal(stats_of(b)->push_again, 1);
	server_rig_close(b->r);
}

/* --- sessions and jobs that end between two frames --- */

static void ends__session(void **state)
{
	struct burst *b = open_burst(2, 2);

	add_push(b, 0, 0, 1);
	add_leave(b, 0, 0);
	add_push(b, 0, 1, 1); /* its session has ended */
	add_push(b, 1, 0, 2);
	add_push(b, 1, 1, 2); /* waits for worker 0, which left */
	assert_string_equal(give(b), "w0 LEFT; w0 LEFT; "
				     "w1 RESULT k0 r1 c0 +1344 w2");
	assert_true(rig_result_is(b->r, 3));
	assert_int_equal(stats_of(b)->rx_session, 1);
	assert_int_equal(stats_of(b)->push_folded, 3);
	server_rig_close(b->r);
}

static void ends__job(void **state)
{
	struct burst *b = open_burst(2, 1);

	add_push(b, 0, 0, 1);
	add_push(b, 1, 0, 2); /* completes the sum for both */
	add_leave(b, 0, 0);
	add_leave(b, 1, 0);
	add_push(b, 1, 0, 2);
	assert_string_equal(give(b), "w0 LEFT; w1 LEFT; w1 LEFT");
	assert_int_equal(b->r->srv->jobs[0].n_sessions, 0);
	assert_int_equal(b->r->srv->quota.used_bytes, 0);
	rig_tick(b->r, SW_S);
	assert_string_equal(rig_tx(b->r), "");
	server_rig_close(b->r);
}

/* Pushes after the job's failure are not folded. */
static void ends__job_with_an_error(void **state)
{
	struct burst *b = open_burst(2, 2);
	const char *text;

	add_push(b, 0, 0, 1);
	add_push(b, 0, 1, 1);
	add_push(b, 1, 0, 2);
	add_leave(b, 0, SW_EPEER);
	add_push(b, 1, 1, 2);
	text = give(b);
	assert_contains(text, "w0 LEFT");
	assert_contains(text, "w1 STATUS");
	assert_null(strstr(text, "RESULT"));
	assert_int_equal(stats_of(b)->push_folded, 3);
	assert_int_equal(stats_of(b)->rx_state, 1);
	server_rig_close(b->r);
}

/* --- cost of a burst --- */

/* The server looks at each session that a burst concerns once, not once per
 * frame. */
static void look__once(void **state)
{
	struct burst *b = open_burst(4, 16);
	uint64_t before = stats_of(b)->session_looks;

	for (uint32_t i = 0; i < 64; i++)
		add_push(b, i % 4, i / 4, 1);
	frame_rx_burst(&b->r->srv->engine, b->r->now_ns, b->frames, b->n);
	assert_int_equal(stats_of(b)->session_looks - before, 4);
	assert_int_equal(stats_of(b)->chunks_done, 16);
	rig_tx(b->r);
	assert_int_equal(stats_of(b)->results, 64);
	server_rig_close(b->r);
}

/* A member that sent nothing is also looked at if there are results for it. */
static void look__at_those_that_wait(void **state)
{
	struct burst *b = open_burst(2, 1);

	add_push(b, 0, 0, 1);
	assert_string_equal(give(b), "");
	add_push(b, 1, 0, 1);
	assert_string_equal(give(b), "w0 RESULT k0 r1 c0 +1344 w2; "
				     "w1 RESULT k0 r1 c0 +1344 w2");
	server_rig_close(b->r);
}

/* Add a DECLARE of @n tensors from worker @i. */
static void add_declare(struct burst *b, uint32_t i, uint32_t n)
{
	uint8_t payload[PEER_PAYLOAD];
	struct sw_declare_head head = {
		.n = (uint16_t)n, .payload = PEER_PAYLOAD};
	struct sw_declare_item item = {.n_elems = 1,
		.key = SW_KEY_NONE,
		.dtype = SW_I32,
		.name_len = 3};
	size_t at = sizeof(head);
	char name[8];

	memcpy(payload, &head, sizeof(head));
	for (uint32_t t = 0; t < n; t++) {
		snprintf(name, sizeof(name), "t%02u", t);
		memcpy(payload + at, &item, sizeof(item));
		memcpy(payload + at + sizeof(item), name, 3);
		at += sizeof(item) + 3;
	}
	add(b, i,
		(struct sw_header){
			.type = SW_DECLARE, .payload_len = (uint16_t)at},
		payload);
}

static uint32_t n_answers(const char *text)
{
	uint32_t n = 0;

	for (; (text = strstr(text, "DECLARED")); text++)
		n++;
	return n;
}

/* All members declare at once. Each burst and each tick processes DECLAREs of
 * up to SW_DECLARE_BURST tensors; the server defers the others. */
static void declare__all_at_once(void **state)
{
	enum { MEMBERS = 8, TENSORS = 40 };
	struct burst *b = open_burst(MEMBERS, 1);
	uint32_t n, n_ticks = 0;

	for (uint32_t i = 0; i < MEMBERS; i++)
		add_declare(b, i, TENSORS);
	for (n = n_answers(give(b)); n < MEMBERS; n_ticks++) {
		uint32_t more;

		rig_tick(b->r, 0);
		more = n_answers(rig_tx(b->r));
		assert_in_range(more, 1, 2);
		n += more;
	}
	assert_int_equal(n_ticks, MEMBERS / 2 - 1);
	assert_true(rig_tick(b->r, 0) > b->r->now_ns);
	assert_int_equal(b->r->srv->jobs[0].shard.n_tensors, 1 + TENSORS);
	server_rig_close(b->r);
}

/* --- frames that leave at once --- */

static uint32_t take(struct burst *b, struct sw_tx_frame *out)
{
	struct sw_engine *node = &b->r->srv->engine;

	return node->tx(node, b->r->now_ns, 0, out, 16);
}

/* Each control frame in a burst has a payload of its own. */
static void leave__control_frames(void **state)
{
	struct burst *b = open_burst(3, 2);
	struct sw_tx_frame out[16];

	add_push(b, 0, 0, 1);
	add_push(b, 1, 0, 1);
	add_push(b, 1, 1, 1);
	assert_string_equal(give(b), "");
	rig_tick(b->r, SW_MS);
	assert_int_equal(take(b, out), 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct sw_sack sack;

		memcpy(&sack, out[i].payload, sizeof(sack));
		assert_int_equal(out[i].header.type, SW_ACK);
		assert_int_equal(sack.largest, i + 1);
	}
	assert_int_equal(take(b, out), 0);
	server_rig_close(b->r);
}

/* After a tensor's results the server continues with the next tensor of the
 * same class. A less urgent class waits until the other members have had
 * theirs. */
static void leave__by_class(void **state)
{
	struct burst *b = open_burst(2, 1);
	struct sw_tx_frame out[16];
	const uint32_t keys[] = {0, 0, 1, 2, 1, 2};

	for (uint32_t i = 0; i < 2; i++) {
		rig_declare(b->r, i, "b", SW_I32, PEER_CHUNK, 50);
		rig_declare(b->r, i, "c", SW_I32, PEER_CHUNK, 51);
	}
	for (uint32_t i = 0; i < 6; i++)
		add(b, i / 3, peer_push_header(i % 3, 1, 0),
			(int32_t[PEER_CHUNK]){0});
	frame_rx_burst(&b->r->srv->engine, b->r->now_ns, b->frames, b->n);
	assert_int_equal(take(b, out), 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(out[i].header.key, keys[i]);
	assert_int_equal(stats_of(b)->results, 6);
	assert_int_equal(stats_of(b)->result_bytes, 6 * 4 * PEER_CHUNK);
	server_rig_close(b->r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad__between_good_ones),
		cmocka_unit_test(bad__behind_what_it_is_like),
		cmocka_unit_test(bad__all_of_them),
		cmocka_unit_test(twice__chunk),
		cmocka_unit_test(twice__frame),
		cmocka_unit_test(ends__session),
		cmocka_unit_test(ends__job),
		cmocka_unit_test(ends__job_with_an_error),
		cmocka_unit_test(look__once),
		cmocka_unit_test(look__at_those_that_wait),
		cmocka_unit_test(declare__all_at_once),
		cmocka_unit_test(leave__control_frames),
		cmocka_unit_test(leave__by_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
