/* fuzz_worker.c - a worker's frame sequences, sent by arbitrary servers.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: a byte for the job's kind, then steps (fuzz.h).
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "sum/dtype.h"
#include "test/fuzz/fuzz_frames.h"
#include "test/support/worker_rig.h"

/* Bits of the first byte; the lowest two are the number of servers - 1. */
enum { ASYNC = 4, LOCALS = 8, LAST = 16, NO_CRC = 32 };

enum {
	FUZZ_CALLS = 96,  /* open collectives */
	FUZZ_CALL = 1024, /* first cookie of a collective */
};

struct fuzz {
	struct worker_rig r; /* must be first: it is the events' ctx */
	struct test_frame f, last;
	bool has_last;
	uint32_t n_local, n_tensors;
	uint32_t n_begun[FUZZ_TENSORS], n_done[FUZZ_TENSORS];
	void *base[FUZZ_TENSORS], *from[FUZZ_TENSORS];
	struct call {
		void *from, *to; /* NULL: the call is not open */
	} calls[FUZZ_CALLS];
	uint8_t payload[SW_PAYLOAD_MAX];
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fuzz_init();
	return 0;
}

static void free_call(struct call *c)
{
	if (c->to != c->from)
		free(c->to);
	free(c->from);
	*c = (struct call){0};
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct fuzz *x = ctx;

	assert(tensor < x->n_tensors);
	if (cookie >= FUZZ_CALL) {
		struct call *c = &x->calls[cookie - FUZZ_CALL];

		assert(c->from); /* each call ends once */
		free_call(c);
		return;
	}
	x->n_done[tensor]++;
	assert(x->n_done[tensor] <= x->n_begun[tensor]);
}

static void drain(struct fuzz *x, uint32_t max)
{
	static struct test_frame f;

	/* play the beginning of the lcore's next turn */
	sw_worker_take(&x->r.w);
	for (uint32_t n = 0;
		n < max && frame_tx(&x->r.w.engine, x->r.now_ns, 0, &f); n++) {
		assert(n < FUZZ_TX_MAX &&
			frame_is_intact(&f, sw_epoch_seed(x->r.w.epoch)));
		fuzz_show("out", &f);
		wrig_learn(&x->r, &f);
	}
}

static uint32_t server_of(const struct fuzz *x, const struct fuzz_step *s)
{
	return (s->who & FUZZ_WHO) % x->r.n_servers;
}

/* --- frames; each leaves its payload in x->payload --- */

static struct sw_header of(
	struct fuzz *x, enum sw_frame_type type, const void *payload, size_t n)
{
	memcpy(x->payload, payload, n);
	return (struct sw_header){
		.type = (uint8_t)type, .payload_len = (uint16_t)n};
}

static struct sw_header cookie(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_cookie m = {.nonce = x->r.s[server_of(x, s)].nonce,
		.cookie = s->a,
		.landed = s->b,
		.is_misrouted = s->c & 1};

	return of(x, SW_COOKIE, &m, sizeof(m));
}

static struct sw_header accept(struct fuzz *x, const struct fuzz_step *s)
{
	struct test_peer *srv = &x->r.s[server_of(x, s)];
	struct sw_accept m = {.nonce = srv->nonce,
		.session = srv->id + s->a,
		.version = (uint8_t)(SW_VERSION_MAX + s->b),
		.payload = s->c ? (uint16_t)(64 * s->c) : PEER_PAYLOAD};

	return of(x, SW_ACCEPT, &m, sizeof(m));
}

static struct sw_header status(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_status m = {.joined = 3,
		.state = s->a & 3,
		.size = (uint16_t)(2 * x->n_local + s->c),
		.first = (uint16_t)(x->r.s[0].first + (s->d & 15)),
		.member = s->d >> 4,
		.epoch = 9,
		.payload = s->b ? (uint16_t)(64 * s->b) : PEER_PAYLOAD,
		.n_local = {(uint16_t)x->n_local, (uint16_t)x->n_local},
		.why = {.err = (int16_t) - (s->a >> 2),
			.kind = s->b,
			.key = s->c,
			.one = {.op = s->d, .rank = s->c},
			.text = "text"}};

	return of(x, SW_STATUS, &m, sizeof(m));
}

/* Return the first key of the tensor @i after the next one: 0, or for a stream
 * its group's key; a new group gets @key. */
static uint32_t first_of(const struct fuzz *x, uint32_t i, uint32_t key)
{
	const struct sw_wtensor *t =
		sw_wtensor_numbered(&x->r.w, x->r.w.links[0].n_declared + i);

	if (!t->stream)
		return 0;
	return t->life->key == SW_KEY_NONE ? key : t->life->key;
}

static struct sw_header declared(struct fuzz *x, const struct fuzz_step *s)
{
	const struct test_peer *srv = &x->r.s[server_of(x, s)];
	uint32_t n = (srv->n_items + s->a) % 512;
	struct sw_declared m = {.n = (uint16_t)n, .is_refused = s->d & 1};
	struct sw_fault why = fuzz_fault(s);
	struct sw_header h = of(x, SW_DECLARED, &m, sizeof(m));
	uint8_t *at = x->payload + sizeof(m);

	for (uint32_t i = 0; i < n; i++, at += 4) {
		uint32_t key = x->n_tensors - srv->n_items + s->c + i;

		sw_store32(at, key);
		sw_store32(at + 4 * n, first_of(x, i, key));
	}
	at += 4 * n;
	if (m.is_refused) {
		memcpy(at, &why, sizeof(why));
		at += sizeof(why);
	}
	h.payload_len = (uint16_t)(at - x->payload);
	return h;
}

static struct sw_header left(struct fuzz *x, const struct fuzz_step *s)
{
	return (struct sw_header){
		.type = SW_LEFT, .key = x->r.s[server_of(x, s)].id + s->a};
}

static struct sw_header keepalive(struct fuzz *x, const struct fuzz_step *s)
{
	return (struct sw_header){.type = SW_KEEPALIVE,
		.aux = s->a,
		.key = s->b,
		.round = s->c,
		.grant = (uint32_t)s->d << 8};
}

/* Answer the last PROBE, with a more units of 64 bytes and b more bytes. */
static struct sw_header probe(struct fuzz *x, const struct fuzz_step *s)
{
	uint32_t n = x->r.last[SW_PROBE].h.payload_len + 64u * s->a + s->b;

	n = n < SW_PAYLOAD_MAX ? n : SW_PAYLOAD_MAX;
	memset(x->payload, 0, n);
	return (struct sw_header){.type = SW_PROBE, .payload_len = (uint16_t)n};
}

static struct sw_header fault(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_fault m = fuzz_fault(s);
	struct sw_header h;

	if (!(s->c & 2))
		m.nonce = x->r.s[server_of(x, s)].nonce;
	h = of(x,
		s->c & 4   ? SW_CLOSE
		: s->c & 1 ? SW_END
			   : SW_ERROR,
		&m, sizeof(m));
	h.round = fuzz_edge(s->d);
	h.key = m.key;
	return h;
}

static struct sw_header result(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_header h = peer_result_header(
		fuzz_edge(s->a), fuzz_edge(s->b), fuzz_edge(s->c), PEER_CHUNK);

	h.payload_len = fuzz_payload_len(s->a, s->c);
	h.op = s->d & 1;
	h.weight = (uint16_t)(h.weight + (s->d >> 1 & 3));
	h.aux = s->d >> 3 & 7;
	h.flags = x->r.params.has_crc ? 0 : SW_FLAG_NO_CRC;
	memset(x->payload, 1 + s->who, h.payload_len);
	return h;
}

/* Send a result for chunk b of stream a. c gives kind and operation; d gives
 * the collective, base, length and type. */
static struct sw_header call_result(struct fuzz *x, const struct fuzz_step *s)
{
	static const uint16_t lengths[] = {4, PEER_PAYLOAD, 28, 0};
	struct sw_header h = peer_result_header(
		fuzz_edge(s->a), fuzz_edge(s->b), 1 + (s->d & 3), 1);

	h.op = sw_coll_op((enum sw_coll_kind)(1 + s->c % SW_BARRIER),
		s->c / SW_BARRIER % SW_N_REDUCE_OPS);
	h.payload_len = lengths[s->d >> 2 & 3];
	h.aux = (uint16_t)(fuzz_edge(s->b) + (s->d >> 4 & 3));
	if (s->d & 64)
		h.dtype = SW_U8;
	h.flags = x->r.params.has_crc ? 0 : SW_FLAG_NO_CRC;
	memset(x->payload, 1 + s->who, h.payload_len);
	return h;
}

static struct sw_header ack(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_sack m = fuzz_sack(s);

	return of(x, SW_ACK, &m, sizeof(m));
}

static struct sw_header answer(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_answer m = {.missing = s->d >> 3,
		.key = fuzz_edge(s->a),
		.round = fuzz_edge(s->b),
		.chunk = fuzz_edge(s->c),
		.kind = s->d & 7};

	return of(x, SW_ANSWER, &m, sizeof(m));
}

/* Make a header of any type; patches fill it. */
static struct sw_header any(struct fuzz *x, const struct fuzz_step *s)
{
	return (struct sw_header){.type = s->a,
		.payload_len = (uint16_t)(s->b + 256u * (s->c & 31)),
		.flags = s->d};
}

/* --- steps without frames --- */

static void later(struct fuzz *x, const struct fuzz_step *s)
{
	x->r.now_ns += fuzz_later(s);
	x->r.w.engine.tick(&x->r.w.engine, x->r.now_ns,
		s->c ? (uint64_t)s->d << s->c % 33 : 0);
}

/* Declare the tensor with the next number, in memory of exactly its size. */
static void declare(struct fuzz *x, const struct fuzz_step *s)
{
	char name[] = {(char)('a' + x->n_tensors), 0};
	uint32_t i = x->n_tensors, dtype = s->b & 64 ? s->b & 15u : SW_I32;
	struct sw_worker_tensor t = {.name = name,
		.n_elems = fuzz_elems(i),
		.dtype = dtype,
		.priority = s->c ? s->c : SW_PRIORITY_BY_USE,
		.is_async = s->d & 1};
	size_t bytes = t.n_elems * sw_dtype_bytes(dtype);

	if (i == FUZZ_TENSORS)
		return;
	t.base = x->base[i] = calloc(1, bytes + !bytes);
	x->from[i] = calloc(1, bytes + !bytes);
	if (sw_worker_declare(&x->r.w, &t, 1)) {
		free(x->base[i]);
		free(x->from[i]);
		return;
	}
	x->n_tensors++;
	for (uint32_t l = 0; x->n_local > 1 && l < x->n_local; l++)
		sw_worker_source(&x->r.w, i, l, x->from[i]);
}

/* Open a stream of the ranks whose bits b has, or of all ranks if b is 0. c
 * gives window and group. */
static void open_stream(struct fuzz *x, const struct fuzz_step *s)
{
	char name[] = {
		(char)('g' + (s->c & 1)), '/', (char)('a' + x->n_tensors), 0};
	uint16_t ranks[8];
	struct sw_worker_tensor t = {.name = name,
		.window_log2 = (uint8_t)(SW_WINDOW_MIN_LOG2 + (s->c >> 6)),
		.ranks = ranks,
		.priority = s->d ? s->d : SW_PRIORITY_BY_USE};
	uint32_t bits = s->b ? s->b : (1u << x->r.w.size % 8) - 1;

	for (uint32_t i = 0; i < 8; i++)
		if (bits >> i & 1)
			ranks[t.n_ranks++] = (uint16_t)i;
	if (x->n_tensors == FUZZ_TENSORS || sw_worker_declare(&x->r.w, &t, 1))
		return;
	x->base[x->n_tensors] = x->from[x->n_tensors] = NULL;
	x->n_tensors++;
}

static uint32_t free_call_index(const struct fuzz *x)
{
	uint32_t i = 0;

	while (i < FUZZ_CALLS && x->calls[i].from)
		i++;
	return i;
}

/* Call a collective on stream b. c gives kind and operation; d gives the local
 * rank, the length, the type and whether it is in place. Its buffers have
 * exactly its size. */
static void collective(struct fuzz *x, const struct fuzz_step *s)
{
	static const uint32_t n_elems[] = {
		1, PEER_CHUNK, 3 * PEER_CHUNK + 7, 40 * PEER_CHUNK};
	struct sw_worker_coll ask = {.stream = s->b,
		.local = (s->d & 3) % x->n_local,
		.kind = (enum sw_coll_kind)(1 + s->c % SW_BARRIER),
		.op = s->c / SW_BARRIER % SW_N_REDUCE_OPS,
		.dtype = s->d & 16 ? SW_U8 : SW_I32,
		.n_elems = n_elems[s->d >> 2 & 3]};
	uint32_t i = free_call_index(x);
	size_t n = ask.n_elems * sw_dtype_bytes(ask.dtype), from = n, to = n;
	struct call *c = &x->calls[i];

	if (i == FUZZ_CALLS)
		return;
	if (ask.kind == SW_REDUCE_SCATTER)
		from = n * 8;
	if (ask.kind == SW_ALL_GATHER)
		to = n * 8;
	c->from = calloc(1, from);
	c->to = from == to && s->d & 32 ? c->from : calloc(1, to);
	ask.from = c->from;
	ask.to = c->to;
	ask.from_bytes = from;
	ask.to_bytes = to;
	ask.cookie = FUZZ_CALL + i;
	if (sw_worker_coll(&x->r.w, &ask))
		free_call(c);
}

static void end_group(struct fuzz *x, const struct fuzz_step *s)
{
	if (s->b >= x->n_tensors || x->base[s->b])
		return; /* not a stream */
	if (s->c & 1)
		sw_worker_close_group(&x->r.w, s->b, s->d % x->n_local);
	else
		sw_worker_abort(&x->r.w, s->b, s->d % x->n_local,
			s->c & 2 ? SW_EEXPIRED : SW_EABORTED, "why");
}

static void begin(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_worker_round round = {.tensor = s->b,
		.step = s->d >> 4,
		.local = (s->d & 15) % x->n_local,
		.cookie = x->r.w.n_open,
		.op = s->c & 1,
		.root = s->c >> 1};

	if (round.tensor < x->n_tensors)
		x->n_begun[round.tensor]++;
	if (sw_worker_begin(&x->r.w, &round) && round.tensor < x->n_tensors)
		x->n_begun[round.tensor]--;
}

static void tune(struct fuzz *x, const struct fuzz_step *s)
{
	static const struct sw_policy *const policies[] = {
		&sw_policies[SW_POLICY_FIFO], &sw_policies[SW_POLICY_P3],
		&sw_policies[SW_POLICY_BYTESCHEDULER]};
	uint64_t part = (uint64_t)s->c << 10, credit = (uint64_t)s->d << 10;

	if (s->b & 128)
		sw_worker_set_tuning(&x->r.w, part, credit);
	else
		sw_worker_tune(&x->r.w, policies[s->b % 3], part, credit);
}

static void own(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_fault died = {.err = SW_EPEER,
		.kind = s->c % SW_N_FAULT_KINDS,
		.one = {.rank = s->d},
		.text = "died"};
	struct sw_fault why;
	switch (s->a % 11) {
	case 0:
		declare(x, s);
		break;
	case 1:
		begin(x, s);
		break;
	case 2:
		tune(x, s);
		break;
	case 3:
		if (s->b & 0x80)
			sw_worker_local_died(&x->r.w, s->b % x->n_local, &died);
		else
			sw_worker_local_left(&x->r.w, s->b % x->n_local);
		break;
	case 4:
		why = sw_fault_said(-(int)s->b, "why");
		sw_worker_leave(&x->r.w, s->b ? &why : NULL);
		break;
	case 5:
		x->r.env.is_short = s->b & 1;
		break;
	case 6:
		x->r.env.is_preparing = s->b & 1;
		break;
	case 7:
		open_stream(x, s);
		break;
	case 8:
		collective(x, s);
		break;
	case 9:
		end_group(x, s);
		break;
	default:
		drain(x, s->b);
	}
}

/* Send everything that a server sends until the job runs. */
static void enter(struct fuzz *x, const struct fuzz_step *s)
{
	uint32_t i = server_of(x, s);

	x->r.w.engine.tick(&x->r.w.engine, x->r.now_ns, 0);
	drain(x, UINT32_MAX);
	peer_cookie(&x->r.s[i]);
	drain(x, UINT32_MAX);
	peer_accept(&x->r.s[i]);
	if (!i)
		peer_status(&x->r.s[0], SW_JOB_RUNNING, 0,
			(uint16_t)(2 * x->n_local), "");
}

static void again(struct fuzz *x, const struct fuzz_step *s)
{
	x->last.peer = x->r.s[server_of(x, s)].path;
	if (x->has_last)
		fuzz_rx(&x->r.w.engine, x->r.now_ns, &x->last, NULL);
}

/* --- all --- */

static struct sw_header (*const makers[])(struct fuzz *,
	const struct fuzz_step *) = {cookie, accept, status, declared, left,
	keepalive, fault, result, ack, answer, any, call_result, probe};
static void (*const calls[])(struct fuzz *, const struct fuzz_step *) = {
	later, own, enter, again};

enum { MAKERS = SW_ARRAY_SIZE(makers), CALLS = SW_ARRAY_SIZE(calls) };

static void send(
	struct fuzz *x, struct fuzz_input *in, const struct fuzz_step *s)
{
	struct sw_header h = makers[(s->kind - CALLS) % MAKERS](x, s);

	peer_make(&x->r.s[server_of(x, s)], h, x->payload, &x->f);
	fuzz_mend(in, s, &x->f);
	fuzz_rx(&x->r.w.engine, x->r.now_ns, &x->f, NULL);
	x->last = x->f;
	x->has_last = true;
}

static void open_job(struct fuzz *x, uint8_t kind)
{
	x->has_last = false;
	x->n_tensors = 0;
	memset(x->n_begun, 0, sizeof(x->n_begun));
	memset(x->n_done, 0, sizeof(x->n_done));
	x->n_local = kind & LOCALS ? 3 : 1;
	wrig_open_local(&x->r, kind & LAST ? 1 : 0, 2, 1 + kind % 4,
		(uint16_t)x->n_local);
	x->r.s[0].n_local = (uint16_t)x->n_local;
	x->r.s[0].first = (uint16_t)(kind & LAST ? x->n_local : 0);
	x->r.w.events.done = on_done;
	x->r.w.params.mode = kind & ASYNC ? SW_MODE_ASYNC : SW_MODE_SYNC;
	x->r.params.has_crc = x->r.w.params.has_crc = !(kind & NO_CRC);
}

static void close_job(struct fuzz *x)
{
	sw_worker_close(&x->r.w);
	for (uint32_t i = 0; i < x->n_tensors; i++) {
		free(x->base[i]);
		free(x->from[i]);
	}
	for (uint32_t i = 0; i < FUZZ_CALLS; i++)
		free_call(&x->calls[i]);
	x->r.env.is_preparing = false;
	test_env_fini(&x->r.env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct fuzz x;
	struct fuzz_input in = {data, n};
	struct fuzz_step s;

	open_job(&x, fuzz_u8(&in));
	for (uint32_t i = 0; i < FUZZ_STEPS && fuzz_step(&in, &s); i++) {
		if (s.kind < CALLS)
			calls[s.kind](&x, &s);
		else
			send(&x, &in, &s);
		if (!(s.who & FUZZ_QUIET))
			drain(&x, UINT32_MAX);
	}
	close_job(&x);
	return 0;
}
