/* fuzz_server.c - a server's frame sequences, sent by arbitrary members.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: a byte for the job's kind, then steps (fuzz.h).
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/wire/coll.h"
#include "test/fuzz/fuzz_frames.h"
#include "test/support/server_rig.h"

/* Bits of the first byte; the lowest two are the number of members - 1. */
enum { ASYNC = 4, NO_CRC = 8, SMALL = 16, INNER = 32, BY_RANK = 64 };

struct fuzz {
	struct server_rig r;
	struct fuzz_lent lent;
	struct test_frame f, last; /* the current frame and the one before */
	bool has_last;
	_Atomic uint64_t used_bytes; /* bytes of the quota in use */
	uint8_t payload[SW_PAYLOAD_MAX];
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fuzz_init();
	return 0;
}

static void drain(struct fuzz *x, uint32_t max)
{
	static struct test_frame f;
	struct sw_engine *node = &x->r.srv->engine;

	for (uint32_t n = 0; n < max && frame_tx(node, x->r.now_ns, 0, &f);
		n++) {
		assert(n < FUZZ_TX_MAX && rig_is_intact(&x->r, &f));
		fuzz_show("out", &f);
		rig_learn(&x->r, &f);
	}
}

/* --- frames; each leaves its payload in x->payload --- */

static struct sw_header of_type(enum sw_frame_type type, size_t payload_len)
{
	return (struct sw_header){
		.type = (uint8_t)type, .payload_len = (uint16_t)payload_len};
}

static struct sw_header hello(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_hello m = {.nonce = x->r.w[s->who & FUZZ_WHO].nonce};

	memcpy(x->payload, &m, sizeof(m));
	return of_type(SW_HELLO, sizeof(m));
}

static struct sw_header join(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_join m = rig_join_payload(&x->r, s->who & FUZZ_WHO);

	m.member = (uint16_t)(m.member + s->a);
	m.n_members = (uint16_t)(m.n_members + s->b);
	m.job[3] = s->c ? (char)('a' + s->c % 16) : 0;
	m.n_local = (uint16_t)(m.n_local + s->d);
	memcpy(x->payload, &m, sizeof(m));
	return of_type(SW_JOIN, sizeof(m));
}

static struct sw_header keepalive(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_header h = of_type(SW_KEEPALIVE, 0);

	h.ctl.taken = (uint16_t)(x->r.w[s->who & FUZZ_WHO].n_taken + s->a);
	h.key = s->b;
	h.round = s->c;
	return h;
}

static struct sw_header declare(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_declare_head head = {.n = 1, .payload = PEER_PAYLOAD};
	struct sw_declare_item item = {.n_elems = fuzz_elems(s->a) + s->b,
		.key = SW_KEY_NONE,
		.priority = s->a,
		.dtype = s->d & 64 ? s->c >> 4 : SW_I32,
		.mode = s->d & 1,
		.name_len = 2};
	uint8_t *at = x->payload;
	char name[2] = {'t', (char)('a' + s->a % 16)};
	uint32_t n = 1 + (s->d >> 1) % 4;

	head.n = (uint16_t)n;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	while (n--) {
		memcpy(at, &item, sizeof(item));
		memcpy(at + sizeof(item), name, sizeof(name));
		at += sizeof(item) + sizeof(name);
		item.n_elems = fuzz_elems(++item.priority);
		item.mode ^= s->d >> 5 & 1;
		name[1] += !(s->d & 128);
	}
	return of_type(SW_DECLARE, (size_t)(at - x->payload));
}

/* Open a stream: a gives its group and name, b the other members in it, c its
 * window. */
static struct sw_header open_stream(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_declare_head head = {.n = 1, .payload = PEER_PAYLOAD};
	struct sw_declare_item item = {
		.n_elems = ((1ULL << x->r.n_members) - 1) ^ fuzz_edge(s->b),
		.key = SW_KEY_NONE,
		.dtype = (uint8_t)(SW_WINDOW_MIN_LOG2 + s->c),
		.mode = SW_MODE_STREAM,
		.name_len = 3};
	char name[3] = {
		(char)('g' + (s->a & 1)), '/', (char)('a' + (s->a >> 1) % 16)};

	memcpy(x->payload, &head, sizeof(head));
	memcpy(x->payload + sizeof(head), &item, sizeof(item));
	memcpy(x->payload + sizeof(head) + sizeof(item), name, sizeof(name));
	return of_type(SW_DECLARE, sizeof(head) + sizeof(item) + sizeof(name));
}

/* Call with chunk b of stream a. c gives kind and operation; d gives type,
 * root, collective and length, or the number of wanted chunks. */
static struct sw_header call(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_header h =
		peer_push_header(fuzz_edge(s->a), fuzz_edge(s->b), 1);
	uint32_t root = s->d >> 4 & 1;

	h.op = sw_coll_op((enum sw_coll_kind)(1 + s->c % SW_BARRIER),
		s->c / SW_BARRIER % SW_N_REDUCE_OPS);
	h.dtype = s->d & 15;
	h.aux = (uint16_t)root;
	h.step = h.chunk = 1 + (s->d >> 5 & 1);
	h.payload_len = s->d & 64 ? 8 : PEER_PAYLOAD;
	h.weight = 1;
	if (!sw_coll_is_sum(sw_coll_kind_of(h.op)) &&
		root != (s->who & FUZZ_WHO)) {
		h.type = SW_WANT;
		h.payload_len = 0;
		h.weight = s->d & 128 ? s->c : 1;
	}
	memset(x->payload, 1 + s->who, h.payload_len);
	if (x->r.port.is_inner || !x->r.params.has_crc)
		h.flags |= SW_FLAG_NO_CRC;
	return h;
}

static struct sw_header push(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_header h = peer_push_header(
		fuzz_edge(s->a), fuzz_edge(s->b), fuzz_edge(s->c));

	h.payload_len = fuzz_payload_len(s->a, s->c);
	h.op = s->d & 1;
	h.aux = (s->d >> 1) & 3;
	h.step = (s->d >> 3) & 1;
	h.flags = (uint8_t)(s->d & 0xf0);
	memset(x->payload, 1 + s->who, h.payload_len);
	if (h.op && h.aux != (s->who & FUZZ_WHO))
		h.payload_len = h.weight = 0;
	if (x->r.port.is_inner || !x->r.params.has_crc)
		h.flags |= SW_FLAG_NO_CRC;
	return h;
}

static struct sw_header query(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_query m = {fuzz_edge(s->a), fuzz_edge(s->b), fuzz_edge(s->c)};
	uint32_t n = 1 + s->d % SW_QUERY_MAX;

	for (uint32_t i = 0; i < n; i++, m.chunk++)
		memcpy(x->payload + i * sizeof(m), &m, sizeof(m));
	return of_type(SW_QUERY, n * sizeof(m));
}

static struct sw_header ack(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_sack m = fuzz_sack(s);

	memcpy(x->payload, &m, sizeof(m));
	return of_type(SW_ACK, sizeof(m));
}

static struct sw_header fault(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_fault m = fuzz_fault(s);
	struct sw_header h = of_type(s->c & 2   ? SW_CLOSE
				     : s->c & 1 ? SW_END
						: SW_LEAVE,
		sizeof(m));

	h.round = fuzz_edge(s->d);
	h.key = m.key;
	memcpy(x->payload, &m, sizeof(m));
	return h;
}

static struct sw_header tune(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_tune_ask m = {.policy = s->b,
		.part_bytes = (uint64_t)s->c << 12,
		.credit_bytes = (uint64_t)s->d << 12};

	struct sw_header h = of_type(SW_TUNE, sizeof(m));

	memcpy(x->payload, &m, sizeof(m));
	h.ctl.number = s->a; /* 0: the next number */
	return h;
}

/* Probe with a payload of a units of 64 bytes plus b bytes. */
static struct sw_header probe(struct fuzz *x, const struct fuzz_step *s)
{
	uint32_t n = 64u * s->a + s->b;

	n = n < SW_PAYLOAD_MAX ? n : SW_PAYLOAD_MAX;
	memset(x->payload, 0, n);
	return of_type(SW_PROBE, n);
}

static struct sw_header paths(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_paths m = {.payload = (uint16_t)(64 * s->a + s->b)};

	memcpy(x->payload, &m, sizeof(m));
	return of_type(SW_PATHS, sizeof(m));
}

/* Make a header of any type; patches fill it. */
static struct sw_header any(struct fuzz *x, const struct fuzz_step *s)
{
	struct sw_header h = of_type(s->a, s->b + 256u * (s->c & 31));

	h.flags = s->d;
	return h;
}

/* --- steps without frames --- */

static void later(struct fuzz *x, const struct fuzz_step *s)
{
	x->r.now_ns += fuzz_later(s);
	x->r.srv->engine.tick(&x->r.srv->engine, x->r.now_ns,
		s->c ? (uint64_t)s->d << s->c % 33 : 0);
}

static void own(struct fuzz *x, const struct fuzz_step *s)
{
	switch (s->a % 6) {
	case 0:
		while (!sw_server_copy_lent(x->r.srv))
			sw_server_keep_stream(x->r.srv, s->b);
		break;
	case 1:
		sw_server_stop(x->r.srv);
		break;
	case 2:
		sw_server_fail_all(x->r.srv, "the fuzzer stops it");
		break;
	case 3:
		x->r.env.is_short = s->b & 1;
		break;
	case 4:
		x->r.env.is_preparing = s->b & 1;
		break;
	default:
		drain(x, s->b);
	}
}

/* Send everything that makes a worker a member. */
static void enter(struct fuzz *x, const struct fuzz_step *s)
{
	uint32_t i = s->who & FUZZ_WHO;
	struct sw_join m;

	peer_send(&x->r.w[i], hello(x, s), x->payload);
	drain(x, UINT32_MAX);
	m = rig_join_payload(&x->r, i);
	peer_send(&x->r.w[i], of_type(SW_JOIN, sizeof(m)), &m);
	drain(x, UINT32_MAX);
	peer_send(&x->r.w[i], of_type(SW_KEEPALIVE, 0), NULL);
	drain(x, UINT32_MAX);
	peer_send(&x->r.w[i], keepalive(x, s), NULL);
}

static void again(struct fuzz *x, const struct fuzz_step *s)
{
	x->last.peer = x->r.w[s->who & FUZZ_WHO].path;
	if (x->has_last)
		fuzz_rx(&x->r.srv->engine, x->r.now_ns, &x->last, NULL);
}

/* --- all --- */

static struct sw_header (*const makers[])(struct fuzz *,
	const struct fuzz_step *) = {hello, join, keepalive, declare, push,
	query, ack, fault, tune, any, open_stream, call, probe, paths};
static void (*const calls[])(struct fuzz *, const struct fuzz_step *) = {
	later, own, enter, again};

enum { MAKERS = SW_ARRAY_SIZE(makers), CALLS = SW_ARRAY_SIZE(calls) };

static void send(
	struct fuzz *x, struct fuzz_input *in, const struct fuzz_step *s)
{
	struct sw_header h = makers[(s->kind - CALLS) % MAKERS](x, s);
	bool is_lent =
		x->r.port.is_inner && s->who & FUZZ_LENT && h.type == SW_PUSH;

	peer_make(&x->r.w[s->who & FUZZ_WHO], h, x->payload, &x->f);
	fuzz_mend(in, s, &x->f);
	fuzz_rx(&x->r.srv->engine, x->r.now_ns, &x->f,
		is_lent ? &x->lent : NULL);
	x->last = x->f;
	x->has_last = true;
}

static void open_job(struct fuzz *x, uint8_t kind)
{
	x->has_last = false;
	server_rig_open(&x->r, (uint16_t)(1 + kind % 4),
		kind & SMALL ? 64 << 10 : 4 << 20);
	x->r.params.mode = kind & ASYNC ? SW_MODE_ASYNC
					/* the mode in the JOINs */
					: SW_MODE_SYNC;
	x->r.params.has_crc = !(kind & NO_CRC);
	x->r.params.is_by_rank = kind & BY_RANK;
	x->r.port.is_inner = x->r.srv->is_inner[0] = kind & INNER;
	sw_server_set_lcores(x->r.srv, 1, &x->used_bytes);
}

static void close_job(struct fuzz *x)
{
	sw_server_close(x->r.srv);
	assert(x->used_bytes == 0);
	fuzz_lent_free(&x->lent);
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
	x.r.env.is_preparing = false;
	close_job(&x);
	return 0;
}
