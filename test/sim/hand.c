/* hand.c - a real server; a test writes every frame of the workers by hand.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/sim/hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the network: a turn of the server after each frame, and inboxes --- */

static void keep(struct hand_rig *rig, const struct test_frame *f)
{
	uint32_t i = (uint32_t)f->peer.ip.low - frame_ip(0);
	struct hand_inbox *in = &rig->in[i];

	if (f->h.type == SW_STATUS) /* it has the epoch */
		peer_learn(&rig->r.w[i], f);
	if (in->n < HAND_INBOX)
		in->f[in->n++] = *f;
}

/* Run the server's timers and deliver its frames at the current time. */
static void turn(struct hand_rig *rig)
{
	struct test_frame f;

	rig_tick(&rig->r, 0);
	while (!rig->is_stuck &&
		frame_tx(&rig->r.srv->engine, rig->r.now_ns, 0, &f))
		keep(rig, &f);
}

void hand_pass(struct hand_rig *rig, uint64_t ns)
{
	uint64_t until_ns = rig->r.now_ns + ns;

	while (rig->r.now_ns < until_ns) {
		rig->r.now_ns = sw_min64(until_ns,
			rig->r.now_ns + sw_max64(50 * SW_US, ns / 1000));
		turn(rig);
	}
}

static void road_send(struct test_peer *p, const struct test_frame *f)
{
	struct hand_rig *rig = p->ctx;

	rig->sent = *f;
	rig->r.now_ns += SW_US;
	frame_rx(&rig->r.srv->engine, rig->r.now_ns, f);
	turn(rig);
}

static bool road_receive(
	struct test_peer *p, uint8_t type, struct test_frame *out)
{
	struct hand_rig *rig = p->ctx;

	return hand_take(rig, (uint32_t)(p - rig->r.w), type, out);
}

static const struct peer_road road = {road_send, road_receive, 1};

bool hand_take(
	struct hand_rig *rig, uint32_t i, uint8_t type, struct test_frame *out)
{
	struct hand_inbox *in = &rig->in[i];

	for (uint32_t f = 0; f < in->n; f++) {
		if (in->f[f].h.type != type)
			continue;
		*out = in->f[f];
		in->n--;
		memmove(&in->f[f], &in->f[f + 1],
			(in->n - f) * sizeof(in->f[0]));
		return true;
	}
	return false;
}

uint32_t hand_count(const struct hand_rig *rig, uint32_t i, uint8_t type)
{
	uint32_t n = 0;

	for (uint32_t f = 0; f < rig->in[i].n; f++)
		n += rig->in[i].f[f].h.type == type;
	return n;
}

void hand_empty(struct hand_rig *rig)
{
	for (uint32_t i = 0; i < HAND_WORKERS; i++)
		rig->in[i].n = 0;
}

/* --- the job --- */

bool hand_join(struct hand_rig *rig, uint32_t i, uint16_t rank,
	uint16_t n_members, struct test_frame *join)
{
	struct test_peer *w = &rig->r.w[i];
	struct sw_join j;
	char node[SW_NAME_MAX];
	bool is_in;

	w->nonce += 1000;
	if (!peer_hello(w))
		return false;
	snprintf(node, sizeof(node), "gpu%u", i);
	j = peer_join_payload(w, rig->job, node, rank, n_members);
	j.mode = rig->is_async;
	is_in = peer_join(w, &j);
	if (join)
		*join = rig->sent;
	if (is_in && !rig->is_mute)
		peer_keepalive(w);
	return is_in;
}

void hand_open_idle(struct hand_rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	server_rig_open(&rig->r, 0, 1ULL << 30);
	rig->job = "hand";
	for (uint32_t i = 0; i < HAND_WORKERS; i++) {
		rig->r.w[i].road = &road;
		rig->r.w[i].ctx = rig;
		rig->in[i].f = calloc(HAND_INBOX, sizeof(*rig->in[i].f));
		if (!rig->in[i].f)
			abort();
	}
}

static void open_declared(
	struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems)
{
	struct sw_declare_item item = {
		.n_elems = n_elems, .dtype = SW_I32, .mode = rig->is_async};

	rig->n_workers = n_workers;
	rig->n_chunks = (n_elems - 1) / PEER_CHUNK + 1;
	rig->last_elems = n_elems - (rig->n_chunks - 1) * PEER_CHUNK;
	for (uint32_t i = 0; i < n_workers; i++)
		if (!hand_join(rig, i, (uint16_t)i, (uint16_t)n_workers, NULL))
			abort();
	for (uint32_t i = 0; i < n_workers; i++)
		if (!peer_declare(&rig->r.w[i], item, "t"))
			abort();
	hand_pass(rig, SW_MS);
	hand_empty(rig);
}

void hand_open(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems)
{
	hand_open_idle(rig);
	open_declared(rig, n_workers, n_elems);
}

static struct sw_header push_header(
	const struct hand_rig *rig, uint32_t round, uint32_t chunk)
{
	struct sw_header h = peer_push_header(0, round, chunk);

	if (chunk + 1 == rig->n_chunks)
		h.payload_len = (uint16_t)(4 * rig->last_elems);
	return h;
}

/* Worker @i is ready to push; rank 0 first broadcasts the initial value. */
static void start(struct hand_rig *rig, uint32_t i, uint32_t chunk)
{
	struct sw_header h = push_header(rig, 1, chunk);

	h.op = SW_ROUND_COPY;
	if (i)
		h.weight = h.payload_len = 0;
	peer_fill(&rig->r.w[i], h, 0);
}

void hand_open_async(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems)
{
	struct test_frame got;

	hand_open_idle(rig);
	rig->is_async = true;
	open_declared(rig, n_workers, n_elems);
	for (uint32_t c = 0; c < rig->n_chunks; c++)
		for (uint32_t i = 0; i < n_workers; i++)
			start(rig, i, c);
	for (uint32_t i = 0; i < n_workers; i++)
		while (hand_take(rig, i, SW_RESULT, &got))
			peer_ack_one(&rig->r.w[i], 0, got.h.psn);
	hand_empty(rig);
}

void hand_close(struct hand_rig *rig)
{
	for (uint32_t i = 0; i < HAND_WORKERS; i++)
		free(rig->in[i].f);
	server_rig_close(&rig->r);
}

void hand_push(struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk,
	int32_t value)
{
	struct sw_header h = push_header(rig, round, chunk);

	h.step = (uint16_t)round;
	rig->r.w[i].consumed += sw_quanta(h.payload_len);
	peer_fill(&rig->r.w[i], h, value);
}

void hand_expect(struct check *c, struct hand_rig *rig, uint32_t i,
	uint32_t round, int32_t value)
{
	struct test_frame got;

	if (!check(c, hand_take(rig, i, SW_RESULT, &got), "a RESULT came"))
		return;
	check_eq(c, got.h.round, round, "round of the RESULT");
	check(c, rig_is_intact(&rig->r, &got), "the RESULT has its CRC");
	check(c, frame_is_all(&got, frame_value(&got)),
		"the RESULT has one value");
	check_eq(c, (uint32_t)frame_value(&got), (uint32_t)value, "the value");
	if (!rig->is_async)
		check_eq(c, got.h.weight, rig->n_workers, "weight");
}

struct sw_session *hand_session(struct hand_rig *rig, uint32_t i)
{
	return rig->r.srv->sessions[rig->r.w[i].session >> 16];
}

struct sw_chunk *hand_chunk(struct hand_rig *rig, uint32_t chunk)
{
	return &rig->r.srv->jobs[0].shard.tensors[0].chunks[chunk];
}
