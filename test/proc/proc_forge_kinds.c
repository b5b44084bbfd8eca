/* proc_forge_kinds.c - the malformed frames, one function per kind.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/proc/proc_forge.h"

#include <string.h>

#include "sum/dtype.h"
#include "test/support/random.h"

enum { CHUNK_BYTES = 8192 };

uint32_t forge_random(struct forge *f, uint32_t n)
{
	return (uint32_t)(test_random(&f->rng) >> 32) % n;
}

static void fill_random(struct forge *f, void *at, size_t n)
{
	uint8_t *bytes = at;

	while (n--)
		bytes[n] = (uint8_t)forge_random(f, 256);
}

/* Flip a bit of the frame, among the @n bytes from @from. */
static void flip(struct forge *f, uint32_t from, uint32_t n)
{
	f->frame.bytes[from + forge_random(f, n)] ^= 1 << forge_random(f, 8);
}

void forge_control(
	struct forge *f, enum sw_frame_type type, const void *payload, size_t n)
{
	struct sw_header h = {
		.type = (uint8_t)type, .payload_len = (uint16_t)n};

	peer_make(&f->peer, h, payload, &f->frame);
}

/* Change the length consistently in all its fields. */
static void reseal(struct forge *f, uint32_t n)
{
	f->frame.h.payload_len = (uint16_t)n;
	frame_seal(&f->frame);
}

/* Make a good control frame of random bytes. */
static void forge_noise(struct forge *f, enum sw_frame_type type, size_t n)
{
	uint8_t payload[SW_PAYLOAD_MAX];

	fill_random(f, payload, n);
	forge_control(f, type, payload, n);
}

void forge_push(struct forge *f)
{
	static const uint8_t zeros[CHUNK_BYTES];
	struct sw_header h = {.type = SW_PUSH,
		.key = f->peer.key,
		.round = 1,
		.weight = 1,
		.dtype = SW_F32,
		.payload_len = CHUNK_BYTES};

	peer_make(&f->peer, h, zeros, &f->frame);
}

static void hello(struct forge *f)
{
	struct sw_hello hello = {0};

	forge_control(f, SW_HELLO, &hello, sizeof(hello));
}

/* --- the header --- */

static void magic(struct forge *f)
{
	forge_push(f);
	f->frame.bytes[0] ^= 0x20;
}

static void head_crc(struct forge *f)
{
	forge_push(f);
	flip(f, 16, 28); /* key to grant: only the CRC covers them */
}

static void version(struct forge *f)
{
	forge_push(f);
	f->frame.h.version = SW_VERSION_MAX + 1;
	frame_seal(&f->frame);
}

static void type(struct forge *f)
{
	forge_push(f);
	f->frame.h.type = forge_random(f, 2) ? SW_N_TYPES : 12;
	frame_seal(&f->frame);
}

static void flag(struct forge *f)
{
	forge_push(f);
	f->frame.h.type = SW_ACK;
	f->frame.h.class = SW_CLASS_CTL;
	f->frame.h.flags = SW_FLAG_ACK; /* only data may have this flag */
	frame_seal(&f->frame);
}

static void class(struct forge *f)
{
	forge_push(f);
	f->frame.h.class = SW_N_CLASSES + 1;
	frame_seal(&f->frame);
}

static void truncated(struct forge *f)
{
	forge_push(f);
	f->frame.len = SW_HEAD_BYTES + forge_random(f, CHUNK_BYTES);
}

static void oversized(struct forge *f)
{
	forge_push(f);
	reseal(f, 100);
	f->frame.len = SW_HEAD_BYTES + CHUNK_BYTES;
}

static void control_length(struct forge *f)
{
	hello(f);
	reseal(f, forge_random(f, sizeof(struct sw_hello)));
}

static void control_crc(struct forge *f)
{
	hello(f);
	flip(f, SW_HEAD_BYTES, sizeof(struct sw_hello));
}

/* --- the session --- */

static void no_session(struct forge *f)
{
	forge_push(f);
	f->frame.h.session = 0;
	frame_seal(&f->frame);
}

static void stale_session(struct forge *f)
{
	uint32_t session = f->peer.session;

	forge_push(f);
	f->frame.h.session = (session & 0xffff0000) | (uint16_t)(session - 1);
	frame_seal(&f->frame);
}

static void far_session(struct forge *f)
{
	forge_push(f);
	f->frame.h.session = forge_random(f, UINT32_MAX) | 0xff000000;
	frame_seal(&f->frame);
}

static void wrong_cookie(struct forge *f)
{
	forge_noise(f, SW_JOIN, sizeof(struct sw_join));
}

static void servers_type(struct forge *f)
{
	forge_noise(f, SW_STATUS, sizeof(struct sw_status));
}

/* --- the contribution --- */

static void key(struct forge *f)
{
	forge_push(f);
	f->frame.h.key = f->peer.key + 1 + forge_random(f, UINT16_MAX) * 7919;
	frame_seal(&f->frame);
}

static void chunk(struct forge *f)
{
	forge_push(f);
	f->frame.h.chunk = 2 + forge_random(f, UINT32_MAX - 2);
	frame_seal(&f->frame);
}

static void dtype(struct forge *f)
{
	forge_push(f);
	f->frame.h.dtype = (uint8_t)(SW_F32 + 1 + forge_random(f, 200));
	frame_seal(&f->frame);
}

static void operation(struct forge *f)
{
	forge_push(f);
	f->frame.h.op = SW_N_ROUND_KINDS;
	frame_seal(&f->frame);
}

static void length(struct forge *f)
{
	forge_push(f);
	reseal(f, 1 + forge_random(f, CHUNK_BYTES - 1));
}

static void round_ahead(struct forge *f)
{
	forge_push(f);
	f->frame.h.round = 3 + forge_random(f, 1000);
	frame_seal(&f->frame);
}

/* Chunk 1 has not been pushed, so the server checks its payload. */
static void payload_crc(struct forge *f)
{
	forge_push(f);
	f->frame.h.chunk = 1;
	frame_seal(&f->frame);
	flip(f, SW_HEAD_BYTES, CHUNK_BYTES);
}

static void again(struct forge *f)
{
	forge_push(f);
}

/* --- control payloads --- */

static void query_unknown(struct forge *f)
{
	struct sw_query query = {.key = f->peer.key + 1, .round = 1};

	forge_control(f, SW_QUERY, &query, sizeof(query));
}

static void declare_short(struct forge *f)
{
	struct sw_declare_head head = {.n = 3, .payload = SW_PAYLOAD_MAX};

	forge_noise(f, SW_DECLARE, 64);
	memcpy(f->frame.bytes + SW_HEAD_BYTES, &head, sizeof(head));
	frame_seal(&f->frame);
}

static void ack_of_nothing(struct forge *f)
{
	struct sw_sack sack = {.largest = UINT64_C(1) << 47};

	fill_random(f, sack.bits, sizeof(sack.bits));
	forge_control(f, SW_ACK, &sack, sizeof(sack));
}

/* --- noise --- */

static void noise(struct forge *f)
{
	f->frame.len = SW_HEAD_BYTES + forge_random(f, 256);
	fill_random(f, f->frame.bytes, f->frame.len);
}

void forge_fields(struct forge *f)
{
	struct sw_header h;

	do
		fill_random(f, &h, sizeof(h));
	while (h.type % SW_N_TYPES == SW_LEAVE);
	h.version = SW_VERSION_MAX;
	h.type %= SW_N_TYPES;
	h.flags &= SW_FLAG_NO_CRC | SW_FLAG_RETX;
	h.class =
		sw_type_is_data(h.type) ? h.class % SW_N_CLASSES : SW_CLASS_CTL;
	h.session = f->peer.session;
	h.head_crc = sw_session_seed(f->peer.nonce);
	h.psn &= UINT64_C(0xffffffffffff);
	if (h.key % 2)
		h.key = f->peer.key;
	h.round %= 8;
	h.chunk %= 4;
	h.dtype %= 2;
	h.op = 0;
	h.payload_len = (uint16_t)(forge_random(f, 512) / 12 * 12);
	if (h.type == SW_PUSH)
		h.payload_len = CHUNK_BYTES;
	if (h.type == SW_WANT)
		h.payload_len = 0;
	fill_random(f, f->frame.bytes + SW_HEAD_BYTES, h.payload_len);
	f->frame.h = h;
	frame_seal(&f->frame);
}

const struct forge_kind forge_kinds[] = {
	{"magic", "rx_magic", false, magic},
	{"head_crc", "rx_head_crc", true, head_crc},
	{"version", "rx_version", false, version},
	{"type", "rx_type", false, type},
	{"flag", "rx_type", false, flag},
	{"class", "rx_type", false, class},
	{"truncated", "rx_length", false, truncated},
	{"oversized", "rx_length", false, oversized},
	{"control_length", "rx_length", false, control_length},
	{"control_crc", "rx_payload_crc", false, control_crc},
	{"no_session", "rx_session", false, no_session},
	{"far_session", "rx_session", false, far_session},
	{"stale_session", "rx_session", true, stale_session},
	{"wrong_cookie", "rx_state", true, wrong_cookie},
	{"servers_type", "rx_state", true, servers_type},
	{"key", "rx_key", true, key},
	{"chunk", "rx_chunk", true, chunk},
	{"dtype", "rx_dtype", true, dtype},
	{"operation", "rx_dtype", true, operation},
	{"length", "rx_length", true, length},
	{"round_ahead", "rx_round", true, round_ahead},
	{"payload_crc", "rx_payload_crc", true, payload_crc},
	{"again", "push_again", true, again},
	{"query_unknown", "rx_key", true, query_unknown},
	{"declare_short", "rx_length", true, declare_short},
	{"ack_of_nothing", "rx_state", true, ack_of_nothing},
	{"noise", "", false, noise},
};

const uint32_t forge_n_kinds = sizeof(forge_kinds) / sizeof(forge_kinds[0]);
