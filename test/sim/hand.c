/* hand.c - a real server, and workers whose every frame a test writes by hand.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"

static void *mem_get(void *ctx, uint64_t bytes)
{
	(void)ctx;
	return sim_zeros(bytes);
}

static void mem_put(void *ctx, void *mem, uint64_t bytes)
{
	(void)ctx;
	(void)bytes;
	free(mem);
}

static uint64_t env_random(void *ctx)
{
	return sim_random(&((struct hand_rig *)ctx)->rng);
}

/* Decoding wants head and payload in one piece. */
static void decode(const struct sw_tx_frame *t, struct sw_header *h)
{
	uint8_t whole[SW_HEAD_BYTES + SW_PAYLOAD_MAX];

	memcpy(whole, t->head, SW_HEAD_BYTES);
	if (t->payload_len)
		memcpy(whole + SW_HEAD_BYTES, t->payload, t->payload_len);
	if (sw_header_decode(whole, SW_HEAD_BYTES + t->payload_len, h) !=
		SW_FRAME_OK)
		abort();
}

static void keep(struct hand_rig *rig, const struct sw_tx_frame *t)
{
	struct hand *w = &rig->w[t->to.ip - sim_ip(1)];
	struct hand_got *g = &w->in[w->n_in];
	const uint8_t *p = t->payload;

	if (w->n_in == HAND_INBOX)
		return;
	w->n_in++;
	memset(g, 0, sizeof(*g));
	decode(t, &g->h);
	g->at_ns = rig->now_ns;
	if (t->payload_len)
		memcpy(g->payload, p,
			sw_min64(t->payload_len, sizeof(g->payload)));
	if (g->h.type != SW_RESULT)
		return;
	g->is_intact =
		sw_data_crc(&g->h, p, t->payload_len) == g->h.payload_crc;
	memcpy(&g->value, p, sizeof(g->value));
	g->is_even = true;
	for (uint32_t at = 0; at < t->payload_len; at += 4)
		g->is_even = g->is_even && !memcmp(p + at, &g->value, 4);
}

/* Timers and frames of the server at this moment. */
static void turn(struct hand_rig *rig)
{
	struct sw_node *node = &rig->srv->node;
	struct sw_tx_frame t;

	node->tick(node, rig->now_ns, 0);
	while (!rig->is_stuck && node->tx(node, rig->now_ns, 0, &t))
		keep(rig, &t);
}

void hand_pass(struct hand_rig *rig, uint64_t ns)
{
	uint64_t until_ns = rig->now_ns + ns;

	while (rig->now_ns < until_ns) {
		rig->now_ns = sw_min64(until_ns,
			rig->now_ns + sw_max64(50 * SW_US, ns / 1000));
		turn(rig);
	}
}

static void receive(struct hand_rig *rig, const struct hand *w,
	const uint8_t *bytes, uint32_t len)
{
	struct sw_rx_frame f = {.data = bytes,
		.payload = bytes + SW_HEAD_BYTES,
		.len = len,
		.from = w->path};

	rig->now_ns += SW_US;
	rig->srv->node.rx(&rig->srv->node, rig->now_ns, 0, &f, 1);
	turn(rig);
}

void hand_again(struct hand_rig *rig, uint32_t i, const struct hand_frame *f)
{
	receive(rig, &rig->w[i], f->bytes, f->len);
}

void hand_send(struct hand_rig *rig, uint32_t i, struct sw_header *h,
	const void *payload, struct hand_frame *sent)
{
	struct hand *w = &rig->w[i];
	struct hand_frame own;
	struct hand_frame *f = sent ? sent : &own;

	h->version = SW_VERSION_MAX;
	h->psn = ++w->next[h->class];
	h->consumed = w->consumed;
	h->grant = w->grant;
	if (payload)
		memcpy(f->bytes + SW_HEAD_BYTES, payload, h->payload_len);
	if (h->class == SW_CLASS_CTL)
		h->payload_crc =
			sw_crc32c(0, f->bytes + SW_HEAD_BYTES, h->payload_len);
	sw_header_encode(h, f->bytes);
	f->len = SW_HEAD_BYTES + h->payload_len;
	receive(rig, w, f->bytes, f->len);
}

bool hand_take(
	struct hand_rig *rig, uint32_t i, uint8_t type, struct hand_got *out)
{
	struct hand *w = &rig->w[i];

	for (uint32_t f = 0; f < w->n_in; f++) {
		if (w->in[f].h.type != type)
			continue;
		*out = w->in[f];
		w->n_in--;
		memmove(&w->in[f], &w->in[f + 1],
			(w->n_in - f) * sizeof(w->in[0]));
		return true;
	}
	return false;
}

uint32_t hand_count(const struct hand_rig *rig, uint32_t i, uint8_t type)
{
	uint32_t n = 0;

	for (uint32_t f = 0; f < rig->w[i].n_in; f++)
		n += rig->w[i].in[f].h.type == type;
	return n;
}

void hand_empty(struct hand_rig *rig)
{
	for (uint32_t i = 0; i < HAND_WORKERS; i++)
		rig->w[i].n_in = 0;
}

/* --- getting in --- */

static bool hello(struct hand_rig *rig, uint32_t i)
{
	struct hand *w = &rig->w[i];
	struct sw_header h = {.type = SW_HELLO,
		.class = SW_CLASS_CTL,
		.payload_len = sizeof(struct sw_hello)};
	struct sw_hello hello = {.nonce = w->nonce};
	struct sw_cookie cookie;
	struct hand_got got;

	hand_send(rig, i, &h, &hello, NULL);
	if (!hand_take(rig, i, SW_COOKIE, &got))
		return false;
	memcpy(&cookie, got.payload, sizeof(cookie));
	w->cookie = cookie.cookie;
	return true;
}

void hand_speak(struct hand_rig *rig, uint32_t i)
{
	struct sw_header h = {.type = SW_KEEPALIVE,
		.class = SW_CLASS_CTL,
		.session = rig->w[i].peer};

	hand_send(rig, i, &h, NULL, NULL);
}

bool hand_join(struct hand_rig *rig, uint32_t i, uint16_t rank,
	uint16_t n_members, struct hand_frame *join)
{
	struct hand *w = &rig->w[i];
	struct sw_header h = {.type = SW_JOIN,
		.class = SW_CLASS_CTL,
		.payload_len = sizeof(struct sw_join)};
	struct sw_join j = {.version_min = SW_VERSION_MIN,
		.version_max = SW_VERSION_MAX,
		.rank = rank,
		.n_members = n_members,
		.n_local = 1,
		.n_servers = 1,
		.payload = HAND_PAYLOAD,
		.has_crc = 1,
		.mode = rig->is_async};
	struct sw_accept accept;
	struct hand_got got;

	w->nonce = sim_random(&rig->rng);
	w->id = i << 16 | 7;
	if (!hello(rig, i))
		return false;
	j.nonce = w->nonce;
	j.cookie = w->cookie;
	j.session = w->id;
	snprintf(j.job, sizeof(j.job), "%s", rig->job ? rig->job : "hand");
	snprintf(j.node, sizeof(j.node), "gpu%u", i);
	hand_send(rig, i, &h, &j, join);
	if (!hand_take(rig, i, SW_ACCEPT, &got))
		return false;
	memcpy(&accept, got.payload, sizeof(accept));
	w->peer = accept.session;
	if (!rig->is_mute)
		hand_speak(rig, i);
	return true;
}

static bool declare(struct hand_rig *rig, uint32_t i, uint32_t n_elems)
{
	struct sw_declare_head head = {.n = 1};
	struct sw_declare_item item = {.n_elems = n_elems,
		.key = SW_KEY_NONE,
		.dtype = SW_I32,
		.mode = rig->is_async,
		.name_len = 1};
	uint8_t payload[sizeof(head) + sizeof(item) + 1];
	struct sw_header h = {.type = SW_DECLARE,
		.class = SW_CLASS_CTL,
		.session = rig->w[i].peer,
		.payload_len = sizeof(payload)};
	struct hand_got got;

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), &item, sizeof(item));
	payload[sizeof(payload) - 1] = 't';
	hand_send(rig, i, &h, payload, NULL);
	return hand_take(rig, i, SW_DECLARED, &got);
}

void hand_open_idle(struct hand_rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	sw_params_init(&rig->params);
	rig->now_ns = SW_S;
	rig->env = (struct sw_env){.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = rig,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = env_random};
	rig->port.max_payload = SW_PAYLOAD_MAX;
	rig->ports[0] = &rig->port;
	if (sw_server_open(&rig->srv, &rig->params, &rig->env, rig->ports, 1,
		    1ULL << 30))
		abort();
	for (uint32_t i = 0; i < HAND_WORKERS; i++) {
		rig->w[i].path =
			(struct sw_path){.ip = sim_ip(1 + i), .udp = 5700};
		rig->w[i].grant = 1 << 15;
	}
}

static void open_declared(
	struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems)
{
	uint32_t per = HAND_PAYLOAD / 4;

	rig->n_workers = n_workers;
	rig->n_chunks = (n_elems - 1) / per + 1;
	rig->last_elems = n_elems - (rig->n_chunks - 1) * per;
	for (uint32_t i = 0; i < n_workers; i++)
		if (!hand_join(rig, i, (uint16_t)i, (uint16_t)n_workers, NULL))
			abort();
	for (uint32_t i = 0; i < n_workers; i++)
		if (!declare(rig, i, n_elems))
			abort();
	hand_pass(rig, SW_MS);
	hand_empty(rig);
}

void hand_open(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems)
{
	hand_open_idle(rig);
	open_declared(rig, n_workers, n_elems);
}

/* Rank 0 gives the first value. */
static void start(struct hand_rig *rig, uint32_t i, uint32_t chunk)
{
	int32_t payload[HAND_PAYLOAD / 4] = {0};
	uint32_t n =
		chunk + 1 == rig->n_chunks ? rig->last_elems : HAND_PAYLOAD / 4;
	struct sw_header h = {.type = SW_PUSH,
		.session = rig->w[i].peer,
		.round = 1,
		.chunk = chunk,
		.weight = i == 0,
		.dtype = SW_I32,
		.op = SW_OPERATION_COPY,
		.payload_len = i == 0 ? (uint16_t)(4 * n) : 0};

	h.payload_crc = sw_data_crc(&h, payload, h.payload_len);
	hand_send(rig, i, &h, payload, NULL);
}

void hand_open_async(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems)
{
	struct hand_got got;

	hand_open_idle(rig);
	rig->is_async = true;
	open_declared(rig, n_workers, n_elems);
	for (uint32_t c = 0; c < rig->n_chunks; c++)
		for (uint32_t i = 0; i < n_workers; i++)
			start(rig, i, c);
	for (uint32_t i = 0; i < n_workers; i++)
		while (hand_take(rig, i, SW_RESULT, &got))
			hand_ack(rig, i, got.h.psn, 1, NULL);
	hand_empty(rig);
}

void hand_close(struct hand_rig *rig)
{
	sw_server_close(rig->srv);
}

/* --- frames of a session --- */

void hand_push(struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk,
	int32_t value, struct hand_frame *sent)
{
	int32_t payload[HAND_PAYLOAD / 4];
	uint32_t n =
		chunk + 1 == rig->n_chunks ? rig->last_elems : HAND_PAYLOAD / 4;
	struct sw_header h = {.type = SW_PUSH,
		.session = rig->w[i].peer,
		.round = round,
		.chunk = chunk,
		.step = (uint16_t)round,
		.weight = 1,
		.dtype = SW_I32,
		.payload_len = (uint16_t)(4 * n)};

	for (uint32_t e = 0; e < n; e++)
		payload[e] = value;
	h.payload_crc = sw_data_crc(&h, payload, h.payload_len);
	rig->w[i].consumed += (h.payload_len + SW_QUANTUM - 1) / SW_QUANTUM;
	hand_send(rig, i, &h, payload, sent);
}

void hand_pull(struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk)
{
	struct sw_pull pull = {.round = round, .chunk = chunk};
	struct sw_header h = {.type = SW_PULL,
		.class = SW_CLASS_CTL,
		.session = rig->w[i].peer,
		.payload_len = sizeof(pull)};

	hand_send(rig, i, &h, &pull, NULL);
}

void hand_ack(struct hand_rig *rig, uint32_t i, uint64_t largest, uint32_t n,
	struct hand_frame *sent)
{
	struct sw_sack k = {.largest = largest};
	struct sw_header h = {.type = SW_ACK,
		.class = SW_CLASS_CTL,
		.session = rig->w[i].peer,
		.payload_len = sizeof(k)};

	for (uint32_t b = 0; b + 1 < n; b++)
		k.bits[b / 64] |= 1ULL << b % 64;
	hand_send(rig, i, &h, &k, sent);
}

struct sw_session *hand_session(struct hand_rig *rig, uint32_t i)
{
	return rig->srv->sessions[rig->w[i].peer >> 16];
}

struct sw_chunk *hand_chunk(struct hand_rig *rig, uint32_t chunk)
{
	return &rig->srv->jobs[0].shard.tensors[0].chunks[chunk];
}
