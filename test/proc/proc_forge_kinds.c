/* proc_forge_kinds.c - the malformed frames, one function per way.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/proc/proc_forge.h"

#include <string.h>

#include "sum/sum.h"

enum { CHUNK_BYTES = 8192 };

uint64_t forge_random(struct forge *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

static void fill_random(struct forge *f, uint8_t *at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(forge_random(f) >> 32);
}

void forge_begin(struct forge *f, struct forged *x, enum sw_frame_type type)
{
	uint8_t class = type == SW_PUSH ? 0 : SW_CLASS_CTL;

	x->h = (struct sw_header){.version = SW_VERSION_MAX,
		.type = (uint8_t)type,
		.class = class,
		.session = f->peer,
		.psn = ++f->psn[class]};
}

void forge_seal(struct forged *x, uint32_t bytes)
{
	x->bytes = bytes;
	x->h.payload_len = (uint16_t)bytes;
	x->h.payload_crc = x->h.class == SW_CLASS_CTL
				   ? sw_crc32c(0, x->payload, bytes)
				   : sw_data_crc(&x->h, x->payload, bytes);
	sw_header_encode(&x->h, x->head);
}

void forge_push(struct forge *f, struct forged *x)
{
	forge_begin(f, x, SW_PUSH);
	x->h.key = f->key;
	x->h.round = 1;
	x->h.weight = 1;
	x->h.dtype = SW_F32;
	memset(x->payload, 0, CHUNK_BYTES);
	forge_seal(x, CHUNK_BYTES);
}

static void hello(struct forge *f, struct forged *x)
{
	forge_begin(f, x, SW_HELLO);
	x->h.session = 0;
	memset(x->payload, 0, sizeof(struct sw_hello));
	forge_seal(x, sizeof(struct sw_hello));
}

/* --- the header --- */

static void magic(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->head[0] ^= 0x20;
}

static void head_crc(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->head[4 + forge_random(f) % 40] ^= 1 << forge_random(f) % 8;
}

static void version(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.version = SW_VERSION_MAX + 1;
	forge_seal(x, x->bytes);
}

static void type(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.type = forge_random(f) % 2 ? SW_N_TYPES : 12;
	forge_seal(x, x->bytes);
}

static void flag(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.flags = 8; /* the bit that stands for nothing */
	forge_seal(x, x->bytes);
}

static void class(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.class = SW_N_CLASSES + 1;
	forge_seal(x, x->bytes);
}

static void truncated(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->bytes = (uint32_t)(forge_random(f) % CHUNK_BYTES);
}

static void oversized(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	forge_seal(x, 100);
	x->bytes = CHUNK_BYTES;
}

static void control_length(struct forge *f, struct forged *x)
{
	hello(f, x);
	forge_seal(x, (uint32_t)(forge_random(f) % sizeof(struct sw_hello)));
}

static void control_crc(struct forge *f, struct forged *x)
{
	hello(f, x);
	x->payload[forge_random(f) % x->bytes] ^= 1;
}

/* --- the session --- */

static void no_session(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.session = 0;
	forge_seal(x, x->bytes);
}

static void stale_session(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.session = (f->peer & 0xffff0000) | (uint16_t)(f->peer - 1);
	forge_seal(x, x->bytes);
}

static void far_session(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.session = (uint32_t)forge_random(f) | 0xff000000;
	forge_seal(x, x->bytes);
}

static void wrong_cookie(struct forge *f, struct forged *x)
{
	forge_begin(f, x, SW_JOIN);
	x->h.session = 0;
	fill_random(f, x->payload, sizeof(struct sw_join));
	forge_seal(x, sizeof(struct sw_join));
}

static void servers_type(struct forge *f, struct forged *x)
{
	forge_begin(f, x, SW_STATUS);
	fill_random(f, x->payload, sizeof(struct sw_status));
	forge_seal(x, sizeof(struct sw_status));
}

/* --- the contribution --- */

static void key(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.key = f->key + 1 + (uint32_t)(forge_random(f) % UINT16_MAX) * 7919;
	forge_seal(x, x->bytes);
}

static void chunk(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.chunk = 2 + (uint32_t)(forge_random(f) % (UINT32_MAX - 2));
	forge_seal(x, x->bytes);
}

static void dtype(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.dtype = (uint8_t)(SW_F32 + 1 + forge_random(f) % 200);
	forge_seal(x, x->bytes);
}

static void operation(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.op = SW_N_OPERATIONS;
	forge_seal(x, x->bytes);
}

static void length(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	forge_seal(x, 1 + (uint32_t)(forge_random(f) % (CHUNK_BYTES - 1)));
}

static void round_ahead(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.round = 3 + (uint32_t)(forge_random(f) % 1000);
	forge_seal(x, x->bytes);
}

/* Chunk 1 has not been pushed, so that its payload is looked at. */
static void payload_crc(struct forge *f, struct forged *x)
{
	forge_push(f, x);
	x->h.chunk = 1;
	forge_seal(x, x->bytes);
	x->payload[forge_random(f) % x->bytes] ^= 0x40;
}

static void again(struct forge *f, struct forged *x)
{
	forge_push(f, x);
}

/* --- control payloads --- */

static void pull_unknown(struct forge *f, struct forged *x)
{
	struct sw_pull pull = {.key = f->key + 1, .round = 1};

	forge_begin(f, x, SW_PULL);
	memcpy(x->payload, &pull, sizeof(pull));
	forge_seal(x, sizeof(pull));
}

static void declare_short(struct forge *f, struct forged *x)
{
	struct sw_declare_head head = {.batch = 1, .n = 3};

	forge_begin(f, x, SW_DECLARE);
	fill_random(f, x->payload, 64);
	memcpy(x->payload, &head, sizeof(head));
	forge_seal(x, 64);
}

static void ack_of_nothing(struct forge *f, struct forged *x)
{
	struct sw_sack sack = {.largest = UINT64_C(1) << 47};

	forge_begin(f, x, SW_ACK);
	fill_random(f, (uint8_t *)sack.bits, sizeof(sack.bits));
	memcpy(x->payload, &sack, sizeof(sack));
	forge_seal(x, sizeof(sack));
}

/* --- noise --- */

static void noise(struct forge *f, struct forged *x)
{
	fill_random(f, x->head, sizeof(x->head));
	x->bytes = (uint32_t)(forge_random(f) % 256);
	fill_random(f, x->payload, x->bytes);
}

void forge_fields(struct forge *f, struct forged *x)
{
	struct sw_header h;

	do
		fill_random(f, (uint8_t *)&h, sizeof(h));
	while (h.type % SW_N_TYPES == SW_LEAVE);
	h.version = SW_VERSION_MAX;
	h.type %= SW_N_TYPES;
	h.flags &= SW_FLAG_NO_CRC | SW_FLAG_RETX | SW_FLAG_FIFO;
	h.class = h.type == SW_PUSH ? h.class % SW_N_CLASSES : SW_CLASS_CTL;
	h.session = f->peer;
	h.psn &= UINT64_C(0xffffffffffff);
	if (h.key % 2)
		h.key = f->key;
	h.round %= 8;
	h.chunk %= 4;
	h.dtype %= 2;
	h.op = 0;
	x->h = h;
	x->bytes = (uint32_t)(forge_random(f) % 512) / 12 * 12;
	if (h.type == SW_PUSH)
		x->bytes = CHUNK_BYTES;
	fill_random(f, x->payload, x->bytes);
	forge_seal(x, x->bytes);
}

const struct forge_kind forge_kinds[] = {
	{"magic", "rx_magic", false, magic},
	{"head_crc", "rx_head_crc", false, head_crc},
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
	{"pull_unknown", "rx_key", true, pull_unknown},
	{"declare_short", "rx_length", true, declare_short},
	{"ack_of_nothing", "rx_state", true, ack_of_nothing},
	{"noise", "", false, noise},
};

const uint32_t forge_n_kinds = sizeof(forge_kinds) / sizeof(forge_kinds[0]);
