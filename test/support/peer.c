/* peer.c - one end of a session whose frames a test writes by hand.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/peer.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/wire/coll.h"
#include "sum/dtype.h"
#include "test/support/header.h"

/* --- any frame --- */

static bool is_before_session(const struct test_peer *p, uint8_t type)
{
	return p->is_server ? type == SW_COOKIE
			    : type == SW_HELLO || type == SW_JOIN;
}

void peer_make(struct test_peer *p, struct sw_header h, const void *payload,
	struct test_frame *out)
{
	if (!sw_type_is_data(h.type))
		h.class = SW_CLASS_CTL;
	if (!h.version)
		h.version = SW_VERSION_MAX;
	if (!h.session && !is_before_session(p, h.type))
		h.session = p->session;
	if (!h.head_crc && !is_before_session(p, h.type))
		h.head_crc = sw_session_seed(p->nonce);
	if (!h.psn)
		h.psn = ++p->psn[h.class];
	if (sw_type_is_ordered(h.type) && !h.ctl.number)
		h.ctl.number = ++p->n_built;
	if (h.class == SW_CLASS_CTL && !h.ctl.taken)
		h.ctl.taken = p->n_taken;
	if (!h.consumed)
		h.consumed = p->consumed;
	if (!h.grant)
		h.grant = p->grant;
	out->h = h;
	out->peer = p->path;
	out->seed = sw_epoch_seed(p->epoch);
	if (payload)
		memcpy(out->bytes + SW_HEAD_BYTES, payload, h.payload_len);
	frame_seal(out);
	if (!h.payload_crc)
		return;
	out->h.payload_crc = h.payload_crc;
	header_encode(&out->h, out->bytes);
}

void peer_send(struct test_peer *p, struct sw_header h, const void *payload)
{
	struct test_frame f;

	peer_make(p, h, payload, &f);
	p->road->send(p, &f);
}

static struct sw_header control(enum sw_frame_type type, size_t n)
{
	return (struct sw_header){
		.type = (uint8_t)type, .payload_len = (uint16_t)n};
}

void peer_say(struct test_peer *p, enum sw_frame_type type, const void *payload,
	size_t n)
{
	peer_send(p, control(type, n), payload);
}

void peer_again(struct test_peer *p, const struct test_frame *f)
{
	struct test_frame own = *f;

	own.peer = p->path;
	p->road->send(p, &own);
}

/* Forget a group that the worker has closed. */
static void learn_close(struct test_peer *p, const struct test_frame *f)
{
	struct sw_fault fault;

	frame_get(f, &fault, sizeof(fault));
	for (uint32_t i = 0; i < 16; i++)
		if (p->groups[i].key == fault.key)
			p->groups[i].name[0] = 0;
}

static void learn_declared(struct test_peer *p, const struct test_frame *f)
{
	if (f->h.payload_len > sizeof(struct sw_declared))
		p->key = sw_load32(
			f->bytes + SW_HEAD_BYTES + sizeof(struct sw_declared));
}

static void learn_join(struct test_peer *p, const struct test_frame *f)
{
	struct sw_join j;

	frame_get(f, &j, sizeof(j));
	p->nonce = j.nonce;
	p->session = j.session;
	p->epoch = j.epoch ? j.epoch : p->epoch;
}

void peer_learn(struct test_peer *p, const struct test_frame *f)
{
	struct sw_declare_head head;
	struct sw_accept accept;
	struct sw_cookie cookie;

	if (sw_type_is_ordered(f->h.type))
		p->n_taken = f->h.ctl.number;
	switch (f->h.type) {
	case SW_COOKIE:
		frame_get(f, &cookie, sizeof(cookie));
		p->cookie = cookie.cookie;
		break;
	case SW_ACCEPT:
		frame_get(f, &accept, sizeof(accept));
		p->session = accept.session;
		p->has_probed = false;
		p->n_built = p->n_taken = 0;
		break;
	case SW_STATUS:
		frame_get(f, &p->status, sizeof(p->status));
		p->epoch = p->status.epoch;
		if (p->status.state == SW_JOB_PROBING && !p->has_probed)
			peer_paths(p, p->payload ? p->payload : PEER_PAYLOAD);
		break;
	case SW_DECLARED:
		learn_declared(p, f);
		break;
	case SW_CLOSE:
		learn_close(p, f);
		break;
	case SW_HELLO:
		frame_get(f, &p->nonce, sizeof(p->nonce));
		break;
	case SW_JOIN:
		learn_join(p, f);
		break;
	case SW_DECLARE:
		frame_get(f, &head, sizeof(head));
		p->n_items = head.n;
		memcpy(p->declared, f->bytes + SW_HEAD_BYTES, f->h.payload_len);
		break;
	}
}

bool peer_ask(struct test_peer *p, const struct test_frame *f, uint8_t type,
	struct test_frame *out)
{
	for (uint32_t i = 0; i < p->road->n_tries; i++) {
		p->road->send(p, f);
		if (p->road->receive(p, type, out)) {
			peer_learn(p, out);
			return true;
		}
	}
	return false;
}

/* Send a control frame until its answer comes; peer_learn keeps the answer. */
static bool ask(struct test_peer *p, enum sw_frame_type type,
	const void *payload, size_t n, enum sw_frame_type answer)
{
	struct test_frame f, got;

	peer_make(p, control(type, n), payload, &f);
	return peer_ask(p, &f, (uint8_t)answer, &got);
}

/* --- worker or server --- */

void peer_keepalive(struct test_peer *p)
{
	peer_say(p, SW_KEEPALIVE, NULL, 0);
}

static void say_ack(
	struct test_peer *p, uint32_t class, uint64_t largest, uint64_t bits)
{
	struct sw_sack k = {.class = (uint8_t) class,
		.largest = largest,
		.bits = {bits, bits, bits, bits}};

	peer_say(p, SW_ACK, &k, sizeof(k));
}

void peer_ack(struct test_peer *p, uint32_t class, uint64_t largest)
{
	say_ack(p, class, largest, UINT64_MAX);
}

void peer_ack_one(struct test_peer *p, uint32_t class, uint64_t psn)
{
	say_ack(p, class, psn, 0);
}

void peer_fill(struct test_peer *p, struct sw_header h, int32_t value)
{
	int32_t elems[SW_PAYLOAD_MAX / 4];

	for (uint32_t e = 0; e < h.payload_len / 4u; e++)
		elems[e] = value;
	peer_send(p, h, elems);
}

static struct sw_header data_header(enum sw_frame_type type, uint32_t key,
	uint32_t round, uint32_t chunk, uint32_t n_elems)
{
	return (struct sw_header){.type = (uint8_t)type,
		.key = key,
		.round = round,
		.chunk = chunk,
		.weight = type == SW_PUSH ? 1 : 2,
		.dtype = SW_I32,
		.payload_len = (uint16_t)(4 * n_elems)};
}

/* --- worker --- */

bool peer_hello(struct test_peer *p)
{
	struct sw_hello hello = {.nonce = p->nonce};

	return ask(p, SW_HELLO, &hello, sizeof(hello), SW_COOKIE);
}

struct sw_join peer_join_payload(const struct test_peer *p, const char *job,
	const char *node, uint32_t rank, uint16_t n_members)
{
	struct sw_join j = {.nonce = p->nonce,
		.cookie = p->cookie,
		.session = p->id,
		.version_min = SW_VERSION_MIN,
		.version_max = SW_VERSION_MAX,
		.member = (uint16_t)rank,
		.n_members = n_members,
		.n_local = 1,
		.n_servers = 1,
		.payload = PEER_PAYLOAD,
		.has_crc = 1};

	snprintf(j.job, sizeof(j.job), "%s", job);
	snprintf(j.node, sizeof(j.node), "%s", node);
	return j;
}

bool peer_join(struct test_peer *p, const struct sw_join *j)
{
	return ask(p, SW_JOIN, j, sizeof(*j), SW_ACCEPT);
}

void peer_paths(struct test_peer *p, uint32_t payload)
{
	struct sw_paths said = {.payload = (uint16_t)payload};

	p->has_probed = true;
	peer_say(p, SW_PATHS, &said, sizeof(said));
}

bool peer_declare(
	struct test_peer *p, struct sw_declare_item item, const char *name)
{
	struct sw_declare_head head = {.n = 1,
		.payload = (uint16_t)(p->payload ? p->payload : PEER_PAYLOAD)};
	uint8_t payload[512];

	item.key = item.key ? item.key : SW_KEY_NONE;
	item.name_len = (uint16_t)strlen(name);
	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), &item, sizeof(item));
	memcpy(payload + sizeof(head) + sizeof(item), name, item.name_len);
	return ask(p, SW_DECLARE, payload,
		sizeof(head) + sizeof(item) + item.name_len, SW_DECLARED);
}

struct sw_header peer_push_header(uint32_t key, uint32_t round, uint32_t chunk)
{
	return data_header(SW_PUSH, key, round, chunk, PEER_CHUNK);
}

void peer_push(struct test_peer *p, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value)
{
	peer_fill(p, peer_push_header(key, round, chunk), value);
}

void peer_query(
	struct test_peer *p, uint32_t key, uint32_t round, uint32_t chunk)
{
	struct sw_query query = {key, round, chunk};

	peer_say(p, SW_QUERY, &query, sizeof(query));
}

static void say_fault(struct test_peer *p, enum sw_frame_type type,
	struct sw_fault fault, const char *text)
{
	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_say(p, type, &fault, sizeof(fault));
}

void peer_leave(struct test_peer *p, int err, const char *text)
{
	struct sw_fault fault = {.err = (int16_t)err, .key = SW_KEY_NONE};

	say_fault(p, SW_LEAVE, fault, text);
}

/* --- server --- */

void peer_cookie(struct test_peer *p)
{
	struct sw_cookie c = {.nonce = p->nonce, .cookie = 77};

	peer_say(p, SW_COOKIE, &c, sizeof(c));
}

void peer_accept(struct test_peer *p)
{
	struct sw_accept a = {.nonce = p->nonce,
		.session = p->id,
		.version = SW_VERSION_MAX,
		.payload = PEER_PAYLOAD};

	p->n_built = p->n_taken = 0;
	peer_say(p, SW_ACCEPT, &a, sizeof(a));
}

void peer_refuse(struct test_peer *p, int err, const char *text)
{
	struct sw_fault fault = {
		.nonce = p->nonce, .err = (int16_t)err, .key = SW_KEY_NONE};

	say_fault(p, SW_ERROR, fault, text);
}

void peer_status(struct test_peer *p, enum sw_job_state state, int err,
	uint16_t size, const char *text)
{
	struct sw_status st = {.joined = state == SW_JOB_RUNNING ? ~0ULL : 1,
		.state = (uint8_t)state,
		.why = sw_fault_said(err, text),
		.size = size,
		.first = p->first,
		.payload = PEER_PAYLOAD,
		.epoch = 9};

	for (uint32_t m = 0; m < SW_MAX_MEMBERS; m++)
		st.n_local[m] = p->n_local ? p->n_local : 1;
	p->epoch = st.epoch;
	peer_say(p, SW_STATUS, &st, sizeof(st));
}

/* Return the first key of the next item of the DECLARE, which gets @key: for a
 * stream the first key of its group, otherwise 0. */
static uint32_t first_of(
	struct test_peer *p, const uint8_t **next, uint32_t key)
{
	struct sw_declare_item item;
	struct test_group *g;
	char name[SW_NAME_MAX] = "";

	memcpy(&item, *next, sizeof(item));
	memcpy(name, *next + sizeof(item), item.name_len % SW_NAME_MAX);
	*next += sizeof(item) + item.name_len % SW_NAME_MAX;
	if (item.mode != SW_MODE_STREAM)
		return 0;
	name[sw_coll_group_bytes(name)] = 0;
	for (uint32_t i = 0; i < 16; i++)
		if (!strcmp(p->groups[i].name, name))
			return p->groups[i].key;
	g = &p->groups[p->n_groups++ % 16];
	memcpy(g->name, name, sizeof(name));
	g->key = key;
	return key;
}

void peer_declared(struct test_peer *p)
{
	uint8_t payload[SW_PAYLOAD_MAX];
	struct sw_declared d = {.n = (uint16_t)p->n_items};
	const uint8_t *item = p->declared + sizeof(struct sw_declare_head);
	uint8_t *keys = payload + sizeof(d), *firsts = keys + 4 * d.n;

	memcpy(payload, &d, sizeof(d));
	for (uint32_t n = 0; n < p->n_items; n++) {
		sw_store32(keys + 4 * n, p->next_key);
		sw_store32(firsts + 4 * n, first_of(p, &item, p->next_key++));
	}
	peer_say(p, SW_DECLARED, payload, sizeof(d) + 8 * p->n_items);
}

void peer_left(struct test_peer *p, bool with_session)
{
	struct sw_header h = {.type = SW_LEFT, .key = p->id};
	struct test_frame f;

	peer_make(p, h, NULL, &f);
	f.h.session = with_session ? p->session : 0;
	frame_seal(&f);
	p->road->send(p, &f);
}

struct sw_header peer_result_header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems)
{
	return data_header(SW_RESULT, key, round, chunk, n_elems);
}

void peer_result(struct test_peer *p, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value)
{
	peer_fill(p, peer_result_header(key, round, chunk, PEER_CHUNK), value);
}

void peer_answer(struct test_peer *p, enum sw_answer_kind kind, uint32_t key,
	uint32_t round, uint32_t chunk, uint64_t missing)
{
	struct sw_answer a = {.missing = missing,
		.key = key,
		.round = round,
		.chunk = chunk,
		.kind = (uint8_t)kind};

	peer_say(p, SW_ANSWER, &a, sizeof(a));
}
