/* frame.c - make frames, hand them to a node, and render them as short text.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "sum/sum.h"
#include "test/support/header.h"

uint32_t frame_ip(uint32_t i)
{
	return 0x0a000000 + i;
}

uint32_t frame_crc(const struct test_frame *f, uint32_t seed)
{
	const uint8_t *payload = f->bytes + SW_HEAD_BYTES;
	uint32_t n = f->len - SW_HEAD_BYTES;

	if (f->h.type == SW_WANT)
		return 0;
	return f->h.class == SW_CLASS_CTL
		       ? sw_crc32c(0, payload, n)
		       : sw_data_crc(seed, &f->h, payload, n);
}

void frame_seal(struct test_frame *f)
{
	f->len = SW_HEAD_BYTES + f->h.payload_len;
	f->h.payload_crc = frame_crc(f, f->seed);
	header_encode(&f->h, f->bytes);
}

void frame_read(struct test_frame *f)
{
	f->h.type = 0;
	header_decode(f->bytes, f->len, &f->h);
}

bool frame_is_intact(const struct test_frame *f, uint32_t seed)
{
	return f->h.type && (f->h.flags & SW_FLAG_NO_CRC ||
				    f->h.payload_crc == frame_crc(f, seed));
}

void frame_get(const struct test_frame *f, void *out, size_t n)
{
	memcpy(out, f->bytes + SW_HEAD_BYTES, n);
}

int32_t frame_value(const struct test_frame *f)
{
	return (int32_t)sw_load32(f->bytes + SW_HEAD_BYTES);
}

bool frame_is_all(const struct test_frame *f, int32_t value)
{
	for (uint32_t at = SW_HEAD_BYTES; at < f->len; at += 4)
		if ((int32_t)sw_load32(f->bytes + at) != value)
			return false;
	return f->len > SW_HEAD_BYTES;
}

/* Place the frame so that it ends at @end, the end of an array: the sanitizer
 * detects any read beyond it. */
static struct sw_rx_frame received(const struct test_frame *f, uint8_t *end)
{
	uint8_t *data = end - f->len;

	memcpy(data, f->bytes, f->len);
	return (struct sw_rx_frame){.data = data,
		.payload = data + SW_HEAD_BYTES,
		.len = f->len,
		.from = f->peer};
}

void frame_rx(
	struct sw_engine *node, uint64_t now_ns, const struct test_frame *f)
{
	uint8_t room[sizeof(f->bytes)];
	struct sw_rx_frame rx = received(f, room + sizeof(room));

	node->rx(node, now_ns, f->peer.port_i, &rx, 1);
}

void frame_rx_burst(struct sw_engine *node, uint64_t now_ns,
	const struct test_frame *frames, uint32_t n)
{
	uint8_t rooms[SW_RX_BURST][sizeof(frames->bytes)];
	struct sw_rx_frame rx[SW_RX_BURST] = {{0}};

	for (uint32_t i = 0; i < n; i++)
		rx[i] = received(&frames[i], rooms[i] + sizeof(rooms[i]));
	node->rx(node, now_ns, frames[0].peer.port_i, rx, n);
}

bool frame_tx(struct sw_engine *node, uint64_t now_ns, uint32_t port_i,
	struct test_frame *f)
{
	struct sw_tx_frame tx;

	if (!node->tx(node, now_ns, port_i, &tx, 1))
		return false;
	f->peer = tx.to;
	f->len = SW_HEAD_BYTES + tx.payload_len;
	memcpy(f->bytes, tx.head, SW_HEAD_BYTES);
	if (tx.payload_len)
		memcpy(f->bytes + SW_HEAD_BYTES, tx.payload, tx.payload_len);
	frame_read(f);
	return true;
}

/* --- text --- */

struct text {
	char *at;
	size_t left;
};

static void put(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	n = (size_t)n < t->left ? n : (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

static void put_data(struct text *t, const struct sw_header *h)
{
	put(t, " k%u r%u c%u +%u", h->key, h->round, h->chunk, h->payload_len);
	if (h->type == SW_RESULT)
		put(t, " w%u", h->weight);
	if (h->type == SW_WANT)
		put(t, " n%u", h->weight);
	if (h->flags & SW_FLAG_RETX)
		put(t, " again");
}

static bool is_in_sack(const struct sw_sack *k, uint64_t psn)
{
	uint64_t back = k->largest - psn;

	return !back || k->bits[(back - 1) / 64] >> ((back - 1) % 64) & 1;
}

/* Write one SACK block as ranges, such as 0:1-3,5. */
static void put_sack(struct text *t, const struct sw_sack *k)
{
	uint64_t psn =
		k->largest > SW_SACK_BITS ? k->largest - SW_SACK_BITS : 1;
	char sep = ':';

	put(t, " %u", k->class);
	while (psn <= k->largest) {
		uint64_t from = psn;

		if (!is_in_sack(k, psn++))
			continue;
		while (psn <= k->largest && is_in_sack(k, psn))
			psn++;
		put(t, "%c%llu", sep, (unsigned long long)from);
		if (psn - 1 > from)
			put(t, "-%llu", (unsigned long long)psn - 1);
		sep = ',';
	}
}

static void put_ack(struct text *t, const struct test_frame *f)
{
	struct sw_sack k;

	for (uint32_t at = 0; at < f->h.payload_len; at += sizeof(k)) {
		memcpy(&k, f->bytes + SW_HEAD_BYTES + at, sizeof(k));
		put_sack(t, &k);
	}
}

static void put_query(struct text *t, const struct test_frame *f)
{
	struct sw_query p;

	for (uint32_t at = 0; at < f->h.payload_len; at += sizeof(p)) {
		memcpy(&p, f->bytes + SW_HEAD_BYTES + at, sizeof(p));
		put(t, " k%ur%uc%u", p.key, p.round, p.chunk);
	}
}

static void put_answer(struct text *t, const struct test_frame *f)
{
	static const char *const kinds[] = {"WAIT", "NEED", "GONE", "CRC"};
	struct sw_answer a;

	for (uint32_t at = 0; at < f->h.payload_len; at += sizeof(a)) {
		memcpy(&a, f->bytes + SW_HEAD_BYTES + at, sizeof(a));
		put(t, "%s %s k%ur%uc%u", at ? "," : "",
			a.kind < SW_ARRAY_SIZE(kinds) ? kinds[a.kind] : "?",
			a.key, a.round, a.chunk);
		if (a.kind == SW_ANSWER_WAIT)
			put(t, " for %llx", (unsigned long long)a.missing);
	}
}

static void put_status(struct text *t, const struct test_frame *f)
{
	char why[SW_TEXT_MAX];
	struct sw_status s;

	memcpy(&s, f->bytes + SW_HEAD_BYTES, sizeof(s));
	if (s.state == SW_JOB_FORMING)
		put(t, " forming %llx", (unsigned long long)s.joined);
	else if (s.state == SW_JOB_PROBING)
		put(t, " probing %u", s.size);
	else if (s.state == SW_JOB_RUNNING)
		put(t, " running %u", s.size);
	else
		put(t, " failed %s %s", sw_error_name(s.why.err),
			sw_fault_text(&s.why, false, NULL, why));
}

/* Name the tensor by its key, such as k7, because frames carry keys, not
 * names. */
static const char *sentence(
	const struct sw_fault *fault, bool is_stream, char *out)
{
	char name[16];

	snprintf(name, sizeof(name), "k%d", (int)fault->key);
	return sw_fault_text(fault,
		is_stream && fault->kind != SW_FAULT_DECLARED &&
			fault->kind != SW_FAULT_ROUND &&
			fault->kind != SW_FAULT_STEPS,
		fault->key == SW_KEY_NONE ? NULL : name, out);
}

static void put_fault(struct text *t, const struct test_frame *f)
{
	char why[SW_TEXT_MAX];
	struct sw_fault fault;

	memcpy(&fault, f->bytes + SW_HEAD_BYTES, sizeof(fault));
	if (fault.err)
		put(t, " %s %s", sw_error_name(fault.err),
			sentence(&fault, false, why));
}

static void put_end(struct text *t, const struct test_frame *f)
{
	char why[SW_TEXT_MAX];
	struct sw_fault fault;

	memcpy(&fault, f->bytes + SW_HEAD_BYTES, sizeof(fault));
	put(t, " k%u r%u %s", fault.key, f->h.round,
		sentence(&fault, true, why));
}

static void put_close(struct text *t, const struct test_frame *f)
{
	char why[SW_TEXT_MAX];
	struct sw_fault fault;

	memcpy(&fault, f->bytes + SW_HEAD_BYTES, sizeof(fault));
	put(t, " k%u %s", fault.key, sentence(&fault, true, why));
}

static void put_declare(struct text *t, const struct test_frame *f)
{
	const uint8_t *p = f->bytes + SW_HEAD_BYTES;
	struct sw_declare_head head;
	struct sw_declare_item item;

	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	for (uint32_t i = 0; i < head.n; i++) {
		memcpy(&item, p, sizeof(item));
		put(t, " %.*s", item.name_len, (const char *)p + sizeof(item));
		p += sizeof(item) + item.name_len;
	}
}

static void put_declared(struct text *t, const struct test_frame *f)
{
	const uint8_t *p = f->bytes + SW_HEAD_BYTES;
	char why[SW_TEXT_MAX];
	struct sw_fault fault;
	struct sw_declared d;

	memcpy(&d, p, sizeof(d));
	for (uint32_t i = 0; i < d.n; i++)
		put(t, " k%d", (int)sw_load32(p + sizeof(d) + 4 * i));
	if (!d.is_refused)
		return;
	memcpy(&fault, p + sizeof(d) + 8 * d.n, sizeof(fault));
	put(t, " refused %s", sentence(&fault, true, why));
}

static void put_join(struct text *t, const struct test_frame *f)
{
	struct sw_join j;

	memcpy(&j, f->bytes + SW_HEAD_BYTES, sizeof(j));
	put(t, " %s rank %u of %u", j.job, j.member, j.n_members);
}

static void put_paths(struct text *t, const struct test_frame *f)
{
	struct sw_paths p;

	memcpy(&p, f->bytes + SW_HEAD_BYTES, sizeof(p));
	put(t, " %u", p.payload);
}

static void put_bytes(struct text *t, const struct test_frame *f)
{
	put(t, " +%u", f->h.payload_len);
}

bool frame_is_probing(const struct test_frame *f)
{
	struct sw_status s;

	if (f->h.type != SW_STATUS)
		return false;
	memcpy(&s, f->bytes + SW_HEAD_BYTES, sizeof(s));
	return s.state == SW_JOB_PROBING;
}

void frame_text(const struct test_frame *f, char letter, char *out, size_t size)
{
	static const struct {
		const char *name;
		void (*put)(struct text *, const struct test_frame *);
	} rows[SW_N_TYPES] = {[SW_HELLO] = {"HELLO", NULL},
		[SW_COOKIE] = {"COOKIE", NULL},
		[SW_JOIN] = {"JOIN", put_join},
		[SW_ACCEPT] = {"ACCEPT", NULL},
		[SW_DECLARE] = {"DECLARE", put_declare},
		[SW_DECLARED] = {"DECLARED", put_declared},
		[SW_STATUS] = {"STATUS", put_status},
		[SW_LEAVE] = {"LEAVE", put_fault},
		[SW_LEFT] = {"LEFT", NULL},
		[SW_KEEPALIVE] = {"KEEPALIVE", NULL},
		[SW_ERROR] = {"ERROR", put_fault},
		[SW_TUNE] = {"TUNE", NULL},
		[SW_END] = {"END", put_end},
		[SW_CLOSE] = {"CLOSE", put_close},
		[SW_PATHS] = {"PATHS", put_paths},
		[SW_PROBE] = {"PROBE", put_bytes},
		[SW_PUSH] = {"PUSH", NULL},
		[SW_RESULT] = {"RESULT", NULL},
		[SW_ACK] = {"ACK", put_ack},
		[SW_QUERY] = {"QUERY", put_query},
		[SW_ANSWER] = {"ANSWER", put_answer},
		[SW_WANT] = {"WANT", NULL}};
	size_t n = strlen(out);
	struct text t = {out + n, size - n};

	put(&t, "%s%c%u %s", n ? "; " : "", letter,
		(uint32_t)f->peer.ip.low & 0xff, rows[f->h.type].name);
	if (f->h.class != SW_CLASS_CTL)
		put_data(&t, &f->h);
	else if (rows[f->h.type].put)
		rows[f->h.type].put(&t, f);
}
