/* worker_rig.c - a worker under test and servers that are made of frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/worker_rig.h"

#include "sum/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- events --- */

static void note(struct worker_rig *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct worker_rig *r, const char *fmt, ...)
{
	size_t n = strlen(r->events);
	va_list ap;

	if (n && n + 2 < sizeof(r->events))
		n += (size_t)sprintf(r->events + n, "; ");
	va_start(ap, fmt);
	vsnprintf(r->events + n, sizeof(r->events) - n, fmt, ap);
	va_end(ap);
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	static const char *const names[] = {
		"joining", "running", "failed", "left"};

	note(ctx, "%s%s%s%s%s", names[state], err ? " " : "",
		err ? sw_error_name(err) : "", *text ? " " : "", text);
}

static void on_declared(void *ctx)
{
	note(ctx, "declared");
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct worker_rig *r = ctx;

	note(r, "done t%u #%llu %s w%u", tensor, (unsigned long long)cookie,
		sw_error_name(err), weight);
	if (r->on_done)
		r->on_done(r, tensor);
}

const char *wrig_events(struct worker_rig *r)
{
	memcpy(r->seen, r->events, sizeof(r->seen));
	r->events[0] = 0;
	return r->seen;
}

/* --- life --- */

static void open_job(struct worker_rig *r, struct sw_worker_job *job)
{
	struct sw_worker_events events = {on_state, on_declared, on_done, r};
	struct sw_worker_server servers[WRIG_SERVERS];
	struct sw_port *port = &r->port;

	job->job = "job";
	job->node = "node";
	job->servers = servers;
	memset(r, 0, sizeof(*r));
	test_env_init(&r->env);
	sw_params_init(&r->params);
	r->params.payload = WRIG_PAYLOAD;
	r->now_ns = SW_S;
	r->n_servers = job->n_servers;
	for (uint32_t i = 0; i < job->n_servers; i++) {
		r->s[i] = (struct wrig_server){
			.path = {.ip = frame_ip(i), .udp = 5700},
			.id = 0x5000 + i,
			.grant = 512};
		servers[i] = (struct sw_worker_server){
			.name = i ? "other" : "first", .path = r->s[i].path};
	}
	assert_int_equal(sw_worker_open(&r->w, &r->params, &r->env.env, &events,
				 job, &port, 1, r->now_ns),
		0);
}

void wrig_open(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers)
{
	wrig_open_local(r, rank, n_members, n_servers, 1);
}

void wrig_open_local(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers, uint16_t n_local)
{
	struct sw_worker_job job = {.rank = rank,
		.n_members = n_members,
		.n_local = n_local,
		.n_servers = n_servers};

	open_job(r, &job);
}

void wrig_open_lane(struct worker_rig *r, struct sw_lane *lane, uint8_t lane_i,
	uint16_t n_local)
{
	struct sw_worker_job job = {.n_members = 2,
		.n_local = n_local,
		.n_servers = 2,
		.lane_i = lane_i,
		.n_lanes = 2,
		.lanes = lane};

	sw_lane_init(lane);
	open_job(r, &job);
}

void wrig_close(struct worker_rig *r)
{
	sw_worker_close(&r->w);
	test_env_fini(&r->env);
}

/* --- frames --- */

void wrig_make(struct worker_rig *r, uint32_t i, struct sw_header h,
	const void *payload, struct test_frame *out)
{
	struct wrig_server *s = &r->s[i];
	bool keep_crc = h.payload_crc != 0;

	if (h.type != SW_PUSH && h.type != SW_RESULT)
		h.class = SW_CLASS_CTL;
	if (!h.version)
		h.version = SW_VERSION_MAX;
	if (!h.session && h.type != SW_COOKIE)
		h.session = s->peer;
	if (!h.psn)
		h.psn = ++s->psn[h.class];
	if (!h.consumed)
		h.consumed = s->consumed;
	if (!h.grant)
		h.grant = s->grant;
	frame_make(out, &h, payload, s->path, keep_crc);
}

void wrig_send(struct worker_rig *r, uint32_t i, struct sw_header h,
	const void *payload)
{
	struct test_frame f;

	wrig_make(r, i, h, payload, &f);
	frame_rx(&r->w.node, r->now_ns, &f);
}

void wrig_learn(struct worker_rig *r, const struct test_frame *f)
{
	struct wrig_server *s = &r->s[f->peer.ip & 0xff];
	const uint8_t *payload = f->bytes + SW_HEAD_BYTES;
	struct sw_declare_head head;
	struct sw_join j;

	r->last[f->h.type] = *f;
	if (f->h.type == SW_HELLO) {
		memcpy(&s->nonce, payload, sizeof(s->nonce));
	} else if (f->h.type == SW_JOIN) {
		memcpy(&j, payload, sizeof(j));
		s->nonce = j.nonce;
		s->peer = j.session;
	} else if (f->h.type == SW_DECLARE) {
		memcpy(&head, payload, sizeof(head));
		s->n_items = head.n;
		s->batch = head.batch;
	}
}

static bool tx_one(struct worker_rig *r, char *out, size_t size)
{
	static struct test_frame f;

	out[0] = 0;
	if (!frame_tx(&r->w.node, r->now_ns, 0, &f))
		return false;
	frame_text(&f, 's', out, size);
	wrig_learn(r, &f);
	return true;
}

const char *wrig_tx(struct worker_rig *r)
{
	size_t n = 0;

	r->text[0] = 0;
	while (tx_one(r, r->text + n + (n ? 2 : 0),
		sizeof(r->text) - n - (n ? 2 : 0))) {
		if (n)
			memcpy(r->text + n, "; ", 2);
		n = strlen(r->text);
		assert_true(n + 512 < sizeof(r->text));
	}
	r->text[n] = 0;
	return r->text;
}

const char *wrig_tx_one(struct worker_rig *r)
{
	tx_one(r, r->text, sizeof(r->text));
	return r->text;
}

uint64_t wrig_tick(struct worker_rig *r, uint64_t ns)
{
	r->now_ns += ns;
	return r->w.node.tick(&r->w.node, r->now_ns, 0);
}

/* --- answers --- */

void wrig_cookie(struct worker_rig *r, uint32_t i)
{
	struct sw_cookie c = {.nonce = r->s[i].nonce, .cookie = 77};

	wrig_send(r, i,
		(struct sw_header){.type = SW_COOKIE, .payload_len = sizeof(c)},
		&c);
}

void wrig_accept(struct worker_rig *r, uint32_t i)
{
	struct sw_accept a = {.nonce = r->s[i].nonce,
		.session = r->s[i].id,
		.version = SW_VERSION_MAX};

	wrig_send(r, i,
		(struct sw_header){.type = SW_ACCEPT, .payload_len = sizeof(a)},
		&a);
}

void wrig_status(struct worker_rig *r, enum sw_job_state state, int err,
	uint16_t size, const char *text)
{
	struct sw_status st = {.joined = 1,
		.seq = 1,
		.state = (uint8_t)state,
		.err = (int16_t)err,
		.size = size,
		.epoch = 9};

	snprintf(st.text, sizeof(st.text), "%s", text);
	wrig_send(r, 0,
		(struct sw_header){
			.type = SW_STATUS, .payload_len = sizeof(st)},
		&st);
}

void wrig_refuse(struct worker_rig *r, uint32_t i, int err, const char *text)
{
	struct sw_fault fault = {.nonce = r->s[i].nonce,
		.err = (int16_t)err,
		.key = SW_KEY_NONE};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	wrig_send(r, i,
		(struct sw_header){
			.type = SW_ERROR, .payload_len = sizeof(fault)},
		&fault);
}

void wrig_declared(struct worker_rig *r, uint32_t i)
{
	struct wrig_server *s = &r->s[i];
	uint8_t payload[1024];
	struct sw_declared d = {.batch = s->batch, .n = (uint16_t)s->n_items};

	assert_true(s->n_items <= 64);
	memcpy(payload, &d, sizeof(d));
	for (uint32_t n = 0; n < s->n_items; n++)
		sw_store32(payload + sizeof(d) + 4 * n, s->next_key++);
	memset(payload + sizeof(d) + 4 * s->n_items, 0, 4 * s->n_items);
	wrig_send(r, i,
		(struct sw_header){.type = SW_DECLARED,
			.payload_len = (uint16_t)(sizeof(d) + 8 * s->n_items)},
		payload);
}

void wrig_left(struct worker_rig *r, uint32_t i, bool with_session)
{
	struct test_frame f;
	struct sw_header h = {.type = SW_LEFT,
		.class = SW_CLASS_CTL,
		.version = SW_VERSION_MAX,
		.session = with_session ? r->s[i].peer : 0,
		.key = r->s[i].id};

	frame_make(&f, &h, NULL, r->s[i].path, false);
	frame_rx(&r->w.node, r->now_ns, &f);
}

void wrig_run(struct worker_rig *r)
{
	wrig_tx(r);
	wrig_cookie(r, 0);
	wrig_tx(r);
	wrig_accept(r, 0);
	wrig_status(r, SW_JOB_RUNNING, 0, r->w.n_members, "");
	for (uint32_t i = 1; i < r->n_servers; i++) {
		wrig_tx(r);
		wrig_cookie(r, i);
		wrig_tx(r);
		wrig_accept(r, i);
	}
	wrig_tick(r, 0);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "running");
}

void wrig_declare(struct worker_rig *r, const char *name, uint64_t n_elems,
	uint32_t priority)
{
	uint32_t i = r->w.n_tensors;
	struct sw_worker_tensor t = {.name = name,
		.n_elems = n_elems,
		.dtype = SW_I32,
		.priority = priority,
		.base = r->data[i]};

	assert_true(i < WRIG_TENSORS && n_elems <= WRIG_ELEMS);
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), 0);
	for (uint32_t s = 0; s < r->n_servers; s++) {
		wrig_tx(r);
		wrig_declared(r, s);
	}
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "declared");
}

struct sw_header wrig_result_header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems)
{
	return (struct sw_header){.type = SW_RESULT,
		.key = key,
		.round = round,
		.chunk = chunk,
		.weight = 2,
		.dtype = SW_I32,
		.payload_len = (uint16_t)(4 * n_elems)};
}

void wrig_result(struct worker_rig *r, uint32_t i, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value)
{
	int32_t elems[WRIG_CHUNK];

	for (uint32_t e = 0; e < WRIG_CHUNK; e++)
		elems[e] = value;
	wrig_send(
		r, i, wrig_result_header(key, round, chunk, WRIG_CHUNK), elems);
}

void wrig_ack(
	struct worker_rig *r, uint32_t i, uint32_t class, uint64_t largest)
{
	struct sw_sack k = {.class = (uint8_t) class,
		.largest = largest,
		.bits = {~0ULL, ~0ULL, ~0ULL, ~0ULL}};

	wrig_send(r, i,
		(struct sw_header){.type = SW_ACK, .payload_len = sizeof(k)},
		&k);
}

void wrig_answer(struct worker_rig *r, uint32_t i, enum sw_answer_kind kind,
	uint32_t key, uint32_t round, uint32_t chunk, uint64_t missing)
{
	struct sw_answer a = {.missing = missing,
		.key = key,
		.round = round,
		.chunk = chunk,
		.kind = (uint8_t)kind};

	wrig_send(r, i,
		(struct sw_header){.type = SW_ANSWER, .payload_len = sizeof(a)},
		&a);
}
