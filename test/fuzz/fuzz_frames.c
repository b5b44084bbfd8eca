/* fuzz_frames.c - steps that are frames, for the rigs of the engine's tests.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/fuzz/fuzz_frames.h"

#include <stdlib.h>

#include "engine/base/bytes.h"
#include "sum/sum.h"

/* Offsets in the header (PROTOCOL.md 1). */
enum { AT_PAYLOAD_LEN = 6, AT_PAYLOAD_CRC = 46, AT_HEAD_CRC = 50 };

static bool is_traced;

void fuzz_init(void)
{
	is_traced = getenv("FUZZ_TRACE");
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

uint64_t fuzz_later(const struct fuzz_step *s)
{
	return (uint64_t)s->a << s->b % 33;
}

uint32_t fuzz_elems(uint32_t i)
{
	static const uint32_t elems[FUZZ_TENSORS] = {
		PEER_CHUNK, 2 * PEER_CHUNK + 100, 5, 8 * PEER_CHUNK};

	return elems[i % FUZZ_TENSORS];
}

uint16_t fuzz_payload_len(uint32_t tensor, uint32_t chunk)
{
	uint32_t elems = fuzz_elems(tensor), from = chunk * PEER_CHUNK;

	if (from >= elems)
		return PEER_PAYLOAD;
	return (uint16_t)(elems - from < PEER_CHUNK ? 4 * (elems - from)
						    : PEER_PAYLOAD);
}

struct sw_fault fuzz_fault(const struct fuzz_step *s)
{
	struct sw_fault m = {.err = (int16_t)-s->a,
		.kind = s->d % (SW_N_FAULT_KINDS + 2),
		.key = fuzz_edge(s->b),
		.one = {.rank = s->d, .op = s->c, .dtype = s->d},
		.other = {.rank = UINT16_MAX,
			.root = s->d,
			.op = UINT8_MAX,
			.number = UINT32_MAX},
		.text = "why"};

	if (s->c & 8)
		memset(m.text, 'x', sizeof(m.text));
	return m;
}

struct sw_sack fuzz_sack(const struct fuzz_step *s)
{
	uint64_t bits = ~UINT64_C(0) << s->c % 64;

	return (struct sw_sack){.class = s->a,
		.largest = s->b,
		.bits = {bits, bits, bits, bits},
		.delay_us = s->d};
}

/* Return the payload's CRC; 0 if the header does not decode. */
static uint32_t payload_crc(struct test_frame *f)
{
	frame_read(f);
	return f->h.type ? frame_crc(f, f->seed) : 0;
}

/* Return the seed of the session: the header's checksum without the CRC. */
static uint32_t head_seed(const struct test_frame *f)
{
	return sw_load32(f->bytes + AT_HEAD_CRC) ^
	       sw_crc32c(0, f->bytes, AT_HEAD_CRC);
}

static void mend_head(struct test_frame *f, uint32_t seed)
{
	sw_store32(f->bytes + AT_HEAD_CRC,
		seed ^ sw_crc32c(0, f->bytes, AT_HEAD_CRC));
}

void fuzz_mend(
	struct fuzz_input *in, const struct fuzz_step *s, struct test_frame *f)
{
	uint32_t n = 0, less = s->d ? s->d : 4, seed = head_seed(f);

	for (uint32_t i = 0; i < s->n_patches; i++)
		fuzz_patch(in, f->bytes, sizeof(f->bytes));
	memcpy(&n, f->bytes + AT_PAYLOAD_LEN, 2);
	if (s->who & FUZZ_SHORT)
		n -= n < less ? n : less;
	n = n < SW_PAYLOAD_MAX ? n : SW_PAYLOAD_MAX;
	memcpy(f->bytes + AT_PAYLOAD_LEN, &n, 2);
	f->len = SW_HEAD_BYTES + n;
	if (s->who & FUZZ_AS_IS)
		return;
	mend_head(f, seed);
	sw_store32(f->bytes + AT_PAYLOAD_CRC,
		payload_crc(f) + !!(s->who & FUZZ_BAD_CRC));
	mend_head(f, seed);
}

void fuzz_show(const char *what, const struct test_frame *f)
{
	static char text[8192];

	if (!is_traced)
		return;
	text[0] = 0;
	frame_text(f, 'p', text, sizeof(text));
	fprintf(stderr, "%s %s psn %llu\n", what, text,
		(unsigned long long)f->h.psn);
}

void fuzz_rx(struct sw_engine *node, uint64_t now_ns,
	const struct test_frame *f, struct fuzz_lent *lent)
{
	uint32_t n = f->len - SW_HEAD_BYTES;
	uint8_t *head = malloc(SW_HEAD_BYTES), *payload = malloc(n + !n);
	struct sw_rx_frame rx = {.data = head,
		.payload = payload,
		.len = f->len,
		.is_lent = lent && n,
		.from = f->peer};

	if (is_traced)
		fprintf(stderr, "in type %u of %u, %u bytes\n", f->bytes[3],
			(uint32_t)f->peer.ip.low & 0xff, f->len);
	memcpy(head, f->bytes, SW_HEAD_BYTES);
	memcpy(payload, f->bytes + SW_HEAD_BYTES, n);
	node->rx(node, now_ns, f->peer.port_i, &rx, 1);
	free(head);
	if (rx.is_lent)
		lent->of[lent->n++] = payload;
	else
		free(payload);
}

void fuzz_lent_free(struct fuzz_lent *lent)
{
	while (lent->n)
		free(lent->of[--lent->n]);
}
