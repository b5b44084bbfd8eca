/* server_rig.c - a server under test and workers that are made of frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void server_rig_open(
	struct server_rig *r, uint16_t n_members, uint64_t quota_bytes)
{
	memset(r, 0, sizeof(*r));
	test_env_init(&r->env);
	sw_params_init(&r->params);
	r->params.payload = RIG_PAYLOAD;
	r->port.max_payload = SW_PAYLOAD_MAX;
	r->ports[0] = &r->port;
	r->now_ns = SW_S;
	r->n_members = n_members;
	for (uint32_t i = 0; i < RIG_WORKERS; i++)
		r->w[i] = (struct rig_worker){
			.path = {.ip = frame_ip(i), .udp = 5700},
			.nonce = 100 + i,
			.id = 0x100 + i,
			.grant = 1 << 15};
	assert_int_equal(sw_server_open(&r->srv, &r->params, &r->env.env,
				 r->ports, 1, quota_bytes),
		0);
}

void server_rig_close(struct server_rig *r)
{
	sw_server_close(r->srv);
	test_env_fini(&r->env);
}

void rig_make(struct server_rig *r, uint32_t i, struct sw_header h,
	const void *payload, struct test_frame *out)
{
	struct rig_worker *w = &r->w[i];
	bool keep_crc = h.payload_crc != 0;

	if (h.type != SW_PUSH && h.type != SW_RESULT)
		h.class = SW_CLASS_CTL;
	if (!h.version)
		h.version = SW_VERSION_MAX;
	if (!h.session && h.type != SW_HELLO && h.type != SW_JOIN)
		h.session = w->peer;
	if (!h.psn)
		h.psn = ++w->psn[h.class];
	if (!h.consumed)
		h.consumed = w->consumed;
	if (!h.grant)
		h.grant = w->grant;
	frame_make(out, &h, payload, w->path, keep_crc);
}

void rig_send(struct server_rig *r, uint32_t i, struct sw_header h,
	const void *payload)
{
	struct test_frame f;

	rig_make(r, i, h, payload, &f);
	frame_rx(&r->srv->node, r->now_ns, &f);
}

void rig_learn(struct server_rig *r, const struct test_frame *f)
{
	uint32_t i = f->peer.ip & 0xff;
	struct rig_worker *w = &r->w[i];
	struct sw_accept a;
	struct sw_cookie c;

	r->last[f->h.type] = *f;
	if (i >= RIG_WORKERS)
		return;
	if (f->h.type == SW_COOKIE) {
		memcpy(&c, f->bytes + SW_HEAD_BYTES, sizeof(c));
		w->cookie = c.cookie;
	} else if (f->h.type == SW_ACCEPT) {
		memcpy(&a, f->bytes + SW_HEAD_BYTES, sizeof(a));
		w->peer = a.session;
	} else if (f->h.type == SW_STATUS) {
		memcpy(&w->status, f->bytes + SW_HEAD_BYTES, sizeof(w->status));
		w->epoch = w->status.epoch;
	}
}

const char *rig_tx(struct server_rig *r)
{
	static struct test_frame f;
	size_t n = 0;

	r->text[0] = 0;
	while (frame_tx(&r->srv->node, r->now_ns, 0, &f)) {
		assert_true(n + 512 < sizeof(r->text));
		if (n)
			n += (size_t)sprintf(r->text + n, "; ");
		frame_text(&f, 'w', r->text + n, sizeof(r->text) - n);
		n += strlen(r->text + n);
		rig_learn(r, &f);
	}
	return r->text;
}

uint64_t rig_tick(struct server_rig *r, uint64_t ns)
{
	r->now_ns += ns;
	return r->srv->node.tick(&r->srv->node, r->now_ns, 0);
}

struct sw_join rig_join_payload(struct server_rig *r, uint32_t i)
{
	struct rig_worker *w = &r->w[i];
	struct sw_join j = {.nonce = w->nonce,
		.cookie = w->cookie,
		.session = w->id,
		.version_min = SW_VERSION_MIN,
		.version_max = SW_VERSION_MAX,
		.rank = (uint16_t)i,
		.n_members = r->n_members,
		.n_local = 1,
		.n_servers = 1,
		.payload = RIG_PAYLOAD,
		.has_crc = r->params.has_crc,
		.mode = r->params.is_async,
		.job = "job"};

	snprintf(j.node, sizeof(j.node), "node%u", i);
	return j;
}

void rig_hello(struct server_rig *r, uint32_t i)
{
	struct sw_hello hello = {.nonce = r->w[i].nonce};

	rig_send(r, i,
		(struct sw_header){
			.type = SW_HELLO, .payload_len = sizeof(hello)},
		&hello);
	rig_tx(r);
}

const char *rig_join_only(struct server_rig *r, uint32_t i)
{
	struct sw_join j;

	rig_hello(r, i);
	j = rig_join_payload(r, i);
	rig_send(r, i,
		(struct sw_header){.type = SW_JOIN, .payload_len = sizeof(j)},
		&j);
	return rig_tx(r);
}

const char *rig_join(struct server_rig *r, uint32_t i)
{
	char first[512];
	size_t n;

	n = (size_t)snprintf(first, sizeof(first), "%s", rig_join_only(r, i));
	if (!strstr(first, "ACCEPT"))
		return r->text;
	rig_send(r, i, (struct sw_header){.type = SW_KEEPALIVE}, NULL);
	rig_tx(r);
	memmove(r->text + n + 2, r->text, strlen(r->text) + 1);
	memcpy(r->text, first, n);
	memcpy(r->text + n, r->text[n + 2] ? "; " : "", r->text[n + 2] ? 2 : 1);
	return r->text;
}

const char *rig_declare(struct server_rig *r, uint32_t i, uint32_t batch,
	const char *name, uint32_t dtype, uint64_t n_elems, uint32_t priority)
{
	uint8_t payload[512];
	struct sw_declare_head head = {.batch = batch, .n = 1};
	struct sw_declare_item item = {.n_elems = n_elems,
		.key = SW_KEY_NONE,
		.priority = priority,
		.dtype = (uint8_t)dtype,
		.name_len = (uint16_t)strlen(name)};
	uint16_t len = sizeof(head) + sizeof(item) + item.name_len;

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), &item, sizeof(item));
	memcpy(payload + sizeof(head) + sizeof(item), name, item.name_len);
	rig_send(r, i,
		(struct sw_header){.type = SW_DECLARE, .payload_len = len},
		payload);
	return rig_tx(r);
}

void rig_run(struct server_rig *r, uint64_t n_elems)
{
	for (uint32_t i = 0; i < r->n_members; i++)
		rig_join(r, i);
	for (uint32_t i = 0; i < r->n_members; i++) {
		rig_send(r, i,
			(struct sw_header){.type = SW_KEEPALIVE,
				.aux = (uint16_t)r->w[i].status.seq},
			NULL);
		rig_declare(r, i, 0, "a", SW_I32, n_elems, 0);
	}
	rig_tick(r, 0);
	assert_string_equal(rig_tx(r), "");
}

struct sw_header rig_push_header(uint32_t key, uint32_t round, uint32_t chunk)
{
	return (struct sw_header){.type = SW_PUSH,
		.key = key,
		.round = round,
		.chunk = chunk,
		.weight = 1,
		.dtype = SW_I32,
		.payload_len = RIG_PAYLOAD};
}

void rig_push(struct server_rig *r, uint32_t i, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value)
{
	int32_t elems[RIG_CHUNK];

	for (uint32_t e = 0; e < RIG_CHUNK; e++)
		elems[e] = value;
	rig_send(r, i, rig_push_header(key, round, chunk), elems);
}

bool rig_result_is(const struct server_rig *r, int32_t value)
{
	const struct test_frame *f = &r->last[SW_RESULT];
	int32_t elem;

	for (uint32_t at = 0; at < f->h.payload_len; at += 4) {
		memcpy(&elem, f->bytes + SW_HEAD_BYTES + at, 4);
		if (elem != value)
			return false;
	}
	return f->h.payload_len > 0;
}

void rig_pull(struct server_rig *r, uint32_t i, uint32_t key, uint32_t round,
	uint32_t chunk)
{
	struct sw_pull pull = {key, round, chunk};

	rig_send(r, i,
		(struct sw_header){
			.type = SW_PULL, .payload_len = sizeof(pull)},
		&pull);
}

void rig_ack(struct server_rig *r, uint32_t i, uint32_t class, uint64_t largest)
{
	struct sw_sack k = {.class = (uint8_t) class,
		.largest = largest,
		.bits = {~0ULL, ~0ULL, ~0ULL, ~0ULL}};

	rig_send(r, i,
		(struct sw_header){.type = SW_ACK, .payload_len = sizeof(k)},
		&k);
}

void rig_leave(struct server_rig *r, uint32_t i, int err, const char *text)
{
	struct sw_fault fault = {.err = (int16_t)err, .key = SW_KEY_NONE};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	rig_send(r, i,
		(struct sw_header){
			.type = SW_LEAVE, .payload_len = sizeof(fault)},
		&fault);
}
