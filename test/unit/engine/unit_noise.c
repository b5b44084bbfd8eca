/* unit_noise.c - a hundred thousand random frames into a server and a worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * There are three kinds: random bytes; good frames with flipped bits or cut
 * short; and frames with right checksums and nearly right fields. Each frame of
 * the first two kinds must end in one counter and in no allocation. Some frames
 * of the third kind are good by chance. Even if they break their own job, all
 * accesses stay in bounds (sanitizers check this), and the job beside it
 * continues.
 */
#include "test/support/alloc.h"
#include "test/support/server_rig.h"
#include "test/support/worker_rig.h"

#include <stdlib.h>

enum { N_FRAMES = 100000, VICTIM = 2, N_CHUNKS = 70 };

static uint32_t below(uint64_t *rng, uint32_t n)
{
	return (uint32_t)(test_random(rng) >> 33) % n;
}

/* Return the sum of all counters of dropped frames. */
static uint64_t dropped(const struct sw_stats *st)
{
	return st->rx_short + st->rx_magic + st->rx_head_crc + st->rx_version +
	       st->rx_type + st->rx_length + st->rx_session + st->rx_source +
	       st->rx_key + st->rx_chunk + st->rx_dtype + st->rx_round +
	       st->rx_payload_crc + st->rx_state;
}

static void make_random(struct test_frame *f, uint64_t *rng)
{
	f->len = below(rng, 4) ? below(rng, 200)
			       : below(rng, sizeof(f->bytes) + 1);
	for (uint32_t i = 0; i < f->len; i += 8) {
		uint64_t r = test_random(rng);

		memcpy(f->bytes + i, &r, f->len - i < 8 ? f->len - i : 8);
	}
	/* Half of the frames begin like ours. */
	if (below(rng, 2) && f->len >= 2)
		memcpy(f->bytes, &(uint16_t){SW_MAGIC}, 2);
}

/* Flip up to three bits of the header, or truncate the frame. */
static void damage(struct test_frame *f, uint64_t *rng)
{
	uint32_t n = 1 + below(rng, 3);

	if (below(rng, 4) == 0) {
		f->len = below(rng, f->len);
		return;
	}
	for (uint32_t at = below(rng, 8 * SW_HEAD_BYTES); n-- > 0; at++)
		f->bytes[at / 8 % SW_HEAD_BYTES] ^= (uint8_t)(1 << at % 8);
}

/* Return mostly a small number, sometimes any number. */
static uint32_t nearly(uint64_t *rng, uint32_t n)
{
	static const uint32_t edges[] = {0, 1, 0x7fffffff, 0x80000000,
		UINT32_MAX, UINT32_MAX - 1, 64, 4096};

	switch (below(rng, 8)) {
	case 0:
		return (uint32_t)test_random(rng);
	case 1:
		return edges[below(rng, SW_ARRAY_SIZE(edges))];
	default:
		return below(rng, n);
	}
}

/* Return mostly a length that the type allows. */
static uint16_t length_of(uint8_t type, uint64_t *rng)
{
	if (below(rng, 16) == 0)
		return (uint16_t)below(rng, SW_PAYLOAD_MAX + 1);
	switch (type) {
	case SW_HELLO:
		return sizeof(struct sw_hello);
	case SW_COOKIE:
		return sizeof(struct sw_cookie);
	case SW_JOIN:
		return sizeof(struct sw_join);
	case SW_ACCEPT:
		return sizeof(struct sw_accept);
	case SW_STATUS:
		return sizeof(struct sw_status);
	case SW_TUNE:
		return sizeof(struct sw_tune_ask);
	case SW_LEAVE:
	case SW_ERROR:
	case SW_END:
	case SW_CLOSE:
		return sizeof(struct sw_fault);
	case SW_DECLARE:
		return (uint16_t)(8 + below(rng, 300));
	case SW_DECLARED:
		return (uint16_t)(8 + 4 * below(rng, 20));
	case SW_ACK:
		return (uint16_t)(sizeof(struct sw_sack) * below(rng, 9));
	case SW_QUERY:
		return (uint16_t)(sizeof(struct sw_query) *
				  (1 + below(rng, 64)));
	case SW_ANSWER:
		return (uint16_t)(sizeof(struct sw_answer) *
				  (1 + below(rng, 64)));
	case SW_PATHS:
		return sizeof(struct sw_paths);
	case SW_PUSH:
	case SW_RESULT:
	case SW_PROBE:
		return PEER_PAYLOAD;
	default:
		return 0;
	}
}

/* Fill the payload with nearly right numbers. */
static void fill(uint8_t *payload, uint16_t len, uint64_t *rng)
{
	for (uint32_t i = 0; i < len; i += 4)
		sw_store32(payload + i, nearly(rng, N_CHUNKS + 4));
}

static struct sw_header wild_header(uint8_t type, uint64_t *rng)
{
	struct sw_header h = {.type = type,
		.flags = (uint8_t)below(rng, 4),
		.class = (uint8_t)below(rng, 8),
		.payload_len = length_of(type, rng),
		.key = nearly(rng, 3),
		.round = nearly(rng, 6),
		.chunk = nearly(rng, N_CHUNKS + 2),
		.step = below(rng, 50) == 0,
		.weight = below(rng, 20) ? 1 : (uint16_t)nearly(rng, 3),
		.dtype = below(rng, 20) ? SW_I32 : (uint8_t)nearly(rng, 12),
		.op = below(rng, 50) == 0,
		.aux = (uint16_t)nearly(rng, 5),
		.consumed = below(rng, 20) ? 0 : nearly(rng, 2000),
		.grant = nearly(rng, 32000)};

	if (below(rng, 20) == 0) /* a packet number of the past */
		h.psn = 1 + below(rng, 100);
	if (below(rng, 20) == 0)
		h.payload_crc = 1 + nearly(rng, 9);
	if (below(rng, 50) == 0)
		h.session = nearly(rng, 1 << 20);
	return h;
}

/* --- into a server --- */

/* Open a server whose workers 0 and 1 are the attackers' job; the victim has a
 * job of its own. */
static struct server_rig *open_server(void)
{
	static struct server_rig r;
	struct sw_join j;

	server_rig_open(&r, 2, 64 << 20);
	rig_run(&r, N_CHUNKS * PEER_CHUNK);
	peer_hello(&r.w[VICTIM]);
	j = rig_join_payload(&r, VICTIM);
	strcpy(j.job, "victim");
	j.member = 0;
	j.n_members = 1;
	peer_say(&r.w[VICTIM], SW_JOIN, &j, sizeof(j));
	rig_tx(&r);
	peer_keepalive(&r.w[VICTIM]);
	rig_tx(&r);
	rig_declare(&r, VICTIM, "v", SW_I32, PEER_CHUNK, 0);
	return &r;
}

/* Let the server run; its port has room for @room frames. */
static void turn_server(struct server_rig *r, uint32_t room)
{
	static struct test_frame f;

	rig_tick(r, 30 * SW_US);
	while (room-- && frame_tx(&r->srv->engine, r->now_ns, 0, &f)) {
		assert_true(rig_is_intact(r, &f));
		if (f.h.type == SW_RESULT &&
			(uint32_t)f.peer.ip.low == frame_ip(VICTIM))
			r->last[SW_RESULT] = f;
	}
}

/* Check that one more round of the victim is exact. */
static void check_victim(struct server_rig *r, uint32_t round)
{
	r->last[SW_RESULT].h.round = 0;
	peer_push(&r->w[VICTIM], 0, round, 0, (int32_t)round);
	turn_server(r, UINT32_MAX);
	assert_int_equal(r->last[SW_RESULT].h.round, round);
	assert_true(rig_result_is(r, (int32_t)round));
	peer_ack(&r->w[VICTIM], 0, r->last[SW_RESULT].h.psn);
}

/* Check that the shard's count of open chunks is right. */
static void check_shard(const struct sw_shard *sh)
{
	uint64_t sum = 0;

	for (uint32_t key = 0; key < SW_MAX_TENSORS; key++) {
		const struct sw_stensor *t = &sh->tensors[key];
		uint64_t n = 0;

		for (uint32_t c = 0; c < t->place.n_local; c++)
			for (uint32_t g = 0; g < 2; g++)
				n += !t->chunks[c].cell[g].is_done;
		if (!t->own.from)
			assert_int_equal(n, t->n_open);
		else
			assert_true(n >= t->n_open);
		sum += t->n_open;
	}
	assert_int_equal(sum, sh->n_open);
}

static void server__random_bytes(void **state)
{
	struct server_rig *r = open_server();
	struct test_frame *f = malloc(sizeof(*f));
	uint64_t rng = 11, calls = alloc_calls(), drops = 0;

	f->peer = r->w[1].path;
	for (uint32_t n = 0; n < N_FRAMES; n++) {
		make_random(f, &rng);
		frame_rx(&r->srv->engine, r->now_ns, f);
		assert_int_equal(dropped(&r->srv->stats), ++drops);
	}
	assert_true(alloc_calls() == calls);
	assert_false(r->srv->engine.tx(
		&r->srv->engine, r->now_ns, 0, &(struct sw_tx_frame){0}, 1));
	check_victim(r, 1);
	free(f);
	server_rig_close(r);
}

static void server__flipped_bits(void **state)
{
	struct server_rig *r = open_server();
	struct test_frame *good = calloc(3, sizeof(*good)), *f = good + 2;
	int32_t elems[PEER_CHUNK] = {0};
	uint64_t rng = 12, calls, drops = 0;

	peer_make(&r->w[1], peer_push_header(0, 1, 0), elems, &good[0]);
	peer_make(&r->w[1],
		(struct sw_header){.type = SW_LEAVE,
			.payload_len = sizeof(struct sw_fault)},
		elems, &good[1]);
	calls = alloc_calls();
	for (uint32_t n = 0; n < N_FRAMES; n++) {
		*f = good[n & 1];
		damage(f, &rng);
		frame_rx(&r->srv->engine, r->now_ns, f);
		assert_int_equal(dropped(&r->srv->stats), ++drops);
	}
	assert_true(alloc_calls() == calls);
	assert_int_equal(r->srv->stats.push_folded, 0);
	check_victim(r, 1);
	free(good);
	server_rig_close(r);
}

/* Aim at an existing chunk, in a round near its current one. */
static void aim(struct sw_header *h, const struct sw_shard *sh, uint64_t *rng)
{
	const struct sw_chunk *c;

	h->key = 0;
	h->chunk = below(rng, N_CHUNKS);
	c = &sh->tensors[0].chunks[h->chunk];
	h->round = c->cell[below(rng, 2)].round + below(rng, 3);
}

static void server__wild_fields(void **state)
{
	struct server_rig *r = open_server();
	uint8_t payload[SW_PAYLOAD_MAX];
	uint64_t rng = 13;
	uint32_t round = 0;

	for (uint32_t n = 0; n < N_FRAMES; n++) {
		static const uint8_t often[] = {SW_PUSH, SW_PUSH, SW_PUSH,
			SW_QUERY, SW_ACK, SW_KEEPALIVE, SW_DECLARE};
		uint8_t type = below(&rng, 4)
				       ? often[below(&rng, sizeof(often))]
				       : (uint8_t)below(&rng, SW_N_TYPES + 1);
		struct sw_header h;

		if (type == SW_LEAVE) /* the job must stay alive */
			continue;
		h = wild_header(type, &rng);
		/* keep the terms on which members agree */
		if (n < N_FRAMES / 4 * 3) {
			h.step = 0;
			h.op = SW_ROUND_SUM;
			h.type = type == SW_END || type == SW_CLOSE ? SW_QUERY
								    : type;
		}
		if (below(&rng, 2))
			aim(&h, &r->srv->jobs[0].shard, &rng);
		fill(payload, h.payload_len, &rng);
		peer_send(&r->w[below(&rng, 2)], h, payload);
		if (below(&rng, 8) == 0)
			turn_server(r, below(&rng, 30));
		if (n % 500 == 0)
			check_victim(r, ++round);
	}
	assert_true(r->srv->stats.push_folded > 2000);
	assert_true(r->srv->stats.chunks_done > 1000);
	check_shard(&r->srv->jobs[0].shard);
	check_victim(r, ++round);
	server_rig_close(r);
}

/* --- into a worker --- */

static struct worker_rig *open_worker(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	wrig_run(&r);
	wrig_declare(&r, "a", N_CHUNKS * PEER_CHUNK - 7, 0);
	r.data[0][N_CHUNKS * PEER_CHUNK - 7] = 0x6a6a;
	assert_int_equal(sw_worker_push(&r.w, 0, 0, 1), 0);
	wrig_tx(&r);
	return &r;
}

static void close_worker(struct worker_rig *r)
{
	assert_int_equal(r->data[0][N_CHUNKS * PEER_CHUNK - 7], 0x6a6a);
	wrig_close(r);
}

/* Send the results of all chunks: the current round must end well. */
static void finish_round(struct worker_rig *r)
{
	static const int32_t elems[PEER_CHUNK];

	for (uint32_t c = 0; c < N_CHUNKS; c++) {
		struct sw_header h = peer_result_header(0, 1, c,
			c == N_CHUNKS - 1 ? PEER_CHUNK - 7 : PEER_CHUNK);

		peer_send(&r->s[0], h, elems);
	}
	assert_contains(wrig_events(r), "done t0 #1 SW_OK w2");
}

static void worker__random_bytes(void **state)
{
	struct worker_rig *r = open_worker();
	struct test_frame *f = malloc(sizeof(*f));
	uint64_t rng = 21, calls = alloc_calls(), drops = 0;

	f->peer = r->s[0].path;
	for (uint32_t n = 0; n < N_FRAMES; n++) {
		make_random(f, &rng);
		frame_rx(&r->w.engine, r->now_ns, f);
		assert_int_equal(dropped(&r->w.stats), ++drops);
	}
	assert_true(alloc_calls() == calls);
	finish_round(r);
	free(f);
	close_worker(r);
}

static void worker__flipped_bits(void **state)
{
	struct worker_rig *r = open_worker();
	struct test_frame *good = calloc(3, sizeof(*good)), *f = good + 2;
	int32_t elems[PEER_CHUNK] = {0};
	uint64_t rng = 22, calls, drops = 0;

	peer_make(&r->s[0], peer_result_header(0, 1, 0, PEER_CHUNK), elems,
		&good[0]);
	peer_make(&r->s[0],
		(struct sw_header){.type = SW_ERROR,
			.payload_len = sizeof(struct sw_fault)},
		elems, &good[1]);
	calls = alloc_calls();
	for (uint32_t n = 0; n < N_FRAMES; n++) {
		*f = good[n & 1];
		damage(f, &rng);
		frame_rx(&r->w.engine, r->now_ns, f);
		assert_int_equal(dropped(&r->w.stats), ++drops);
	}
	assert_true(alloc_calls() == calls);
	finish_round(r);
	free(good);
	close_worker(r);
}

static void send_wild(struct worker_rig *r, uint8_t type, uint64_t *rng)
{
	uint8_t payload[SW_PAYLOAD_MAX];
	struct sw_header h = wild_header(type, rng);

	if (below(rng, 2)) {
		h.key = 0;
		h.round = r->w.tensors[0].round;
		h.chunk = below(rng, N_CHUNKS);
		if (type == SW_RESULT && h.chunk == N_CHUNKS - 1)
			h.payload_len -= 4 * 7;
	}
	fill(payload, h.payload_len, rng);
	peer_send(&r->s[0], h, payload);
}

static void worker__wild_fields(void **state)
{
	struct worker_rig *r = open_worker();
	uint64_t rng = 23, results = 0;
	static struct test_frame f;

	for (uint32_t n = 0; n < N_FRAMES; n++) {
		static const uint8_t often[] = {SW_RESULT, SW_RESULT, SW_ACK,
			SW_ANSWER, SW_KEEPALIVE, SW_DECLARED, SW_COOKIE};
		bool is_rare = below(&rng, 100) == 0;
		uint8_t type = is_rare ? (uint8_t)below(&rng, SW_N_TYPES + 1)
				       : often[below(&rng, sizeof(often))];

		/* Full ANSWERs would contain GONE, which ends the job each
		 * time. */
		if (type == SW_ANSWER && below(&rng, 50))
			peer_answer(&r->s[0],
				(enum sw_answer_kind)(3 * below(&rng, 2)), 0,
				nearly(&rng, 6), nearly(&rng, N_CHUNKS), 2);
		else
			send_wild(r, type, &rng);
		if (below(&rng, 8) == 0) {
			wrig_tick(r, 30 * SW_US);
			for (uint32_t room = below(&rng, 30);
				room-- &&
				frame_tx(&r->w.engine, r->now_ns, 0, &f);)
				assert_true(frame_is_intact(
					&f, sw_epoch_seed(r->w.epoch)));
		}
		if (!r->w.n_open)
			sw_worker_push(&r->w, 0, 0, 1);
		wrig_events(r);
		if (r->w.state == SW_WORKER_RUNNING)
			continue;
		results += r->w.stats.results;
		close_worker(r);
		r = open_worker();
	}
	results += r->w.stats.results;
	/* Random ACKs report that all frames were marked, so the window is
	 * small. */
	assert_true(results > 200);
	close_worker(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server__random_bytes),
		cmocka_unit_test(server__flipped_bits),
		cmocka_unit_test(server__wild_fields),
		cmocka_unit_test(worker__random_bytes),
		cmocka_unit_test(worker__flipped_bits),
		cmocka_unit_test(worker__wild_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
