/* pcapng.c - write frames to a file that Wireshark opens.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/pcapng.h"

#include <assert.h>
#include <string.h>

#include "engine/base/bytes.h"

/* Kinds of blocks, and of their options. */
enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	PACKET = 6,
	STATISTICS = 5,
	MAGIC = 0x1a2b3c4d,
	NAME = 2,      /* option: name of an interface */
	TIME_UNIT = 9, /* option: unit of times, 10^-n seconds */
	FLAGS = 2,     /* option: direction of a packet */
	DROPPED = 5,   /* option: number of packets that an interface lost */
	FRAME = 12,    /* bytes of a block around its body */
	MOST = 256,    /* most bytes of a block other than a packet */
	TTL = 64,
	UDP = 17,
};

/* A block under construction. */
struct block {
	uint8_t bytes[MOST];
	uint32_t n;
};

static void put32(struct block *b, uint32_t v)
{
	for (uint32_t i = 0; i < 4; i++)
		b->bytes[b->n++] = (uint8_t)(v >> 8 * i);
}

static void put64(struct block *b, uint64_t at_ns)
{
	put32(b, (uint32_t)(at_ns >> 32));
	put32(b, (uint32_t)at_ns);
}

static void pad(struct block *b)
{
	while (b->n % 4)
		b->bytes[b->n++] = 0;
}

static void option(struct block *b, uint32_t code, const void *value, size_t n)
{
	put32(b, (uint32_t)n << 16 | code);
	memcpy(b->bytes + b->n, value, n);
	b->n += (uint32_t)n;
	pad(b);
}

static void begin(struct block *b, uint32_t kind)
{
	b->n = 0;
	put32(b, kind);
	put32(b, 0); /* length, set at the end */
}

/* Set the length at both ends of the block. */
static size_t end(FILE *f, struct block *b)
{
	uint32_t n = b->n + 4;

	b->n = 4;
	put32(b, n);
	b->n = n - 4;
	put32(b, n);
	return fwrite(b->bytes, 1, n, f);
}

size_t sw_pcapng_begin(FILE *f)
{
	struct block b;

	begin(&b, SECTION);
	put32(&b, MAGIC);
	put32(&b, 1); /* version 1.0 */
	put32(&b, UINT32_MAX);
	put32(&b, UINT32_MAX); /* length unknown */
	return end(f, &b);
}

size_t sw_pcapng_interface(FILE *f, enum sw_pcapng_link link, const char *name)
{
	const uint8_t unit = 9;
	struct block b;

	begin(&b, INTERFACE);
	put32(&b, link);
	put32(&b, 0); /* no limit on a packet's length */
	if (name)
		option(&b, NAME, name, strnlen(name, MOST / 2));
	option(&b, TIME_UNIT, &unit, sizeof(unit));
	put32(&b, 0); /* end of options */
	return end(f, &b);
}

size_t sw_pcapng_dropped(FILE *f, uint32_t i, uint64_t at_ns, uint64_t n)
{
	struct block b;
	uint8_t value[8];

	for (uint32_t k = 0; k < sizeof(value); k++)
		value[k] = (uint8_t)(n >> 8 * k);
	begin(&b, STATISTICS);
	put32(&b, i);
	put64(&b, at_ns);
	option(&b, DROPPED, value, sizeof(value));
	put32(&b, 0);
	return end(f, &b);
}

/* Write a packet's padding and options, after its first @n bytes. */
static size_t end_packet(
	FILE *f, const struct sw_pcapng_packet *p, uint32_t n, uint32_t all)
{
	const uint8_t flags[4] = {(uint8_t)p->way};
	static const uint8_t zeros[4];
	struct block b = {.n = 0};
	size_t sum = fwrite(zeros, 1, -n & 3, f);

	if (p->way) {
		option(&b, FLAGS, flags, sizeof(flags));
		put32(&b, 0);
	}
	put32(&b, all);
	return sum + fwrite(b.bytes, 1, b.n, f);
}

size_t sw_pcapng_packet(FILE *f, const struct sw_pcapng_packet *p)
{
	struct block b;
	uint32_t n = 0, all;
	size_t sum;

	assert(p->n_parts <= SW_PCAPNG_PARTS);
	for (uint32_t i = 0; i < p->n_parts; i++)
		n += (uint32_t)p->parts[i].n;
	all = 32 + (n + 3) / 4 * 4 + (p->way ? FRAME : 0);
	begin(&b, PACKET);
	put32(&b, p->interface);
	put64(&b, p->at_ns);
	put32(&b, n);
	put32(&b, p->len);
	for (uint32_t i = 0; i < 4; i++)
		b.bytes[4 + i] = (uint8_t)(all >> 8 * i);
	sum = fwrite(b.bytes, 1, b.n, f);
	for (uint32_t i = 0; i < p->n_parts; i++)
		sum += fwrite(p->parts[i].bytes, 1, p->parts[i].n, f);
	return sum + end_packet(f, p, n, all);
}

/* --- headers for packets that have none --- */

static void be16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void be32(uint8_t *at, uint32_t v)
{
	be16(at, v >> 16);
	be16(at + 2, v);
}

static uint32_t checksum(const uint8_t *at)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 20; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static size_t head_v4(uint8_t *at, const struct sw_pcapng_udp *u)
{
	memset(at, 0, 20);
	at[0] = 0x45;
	at[1] = u->ecn;
	be16(at + 2, u->len + 28);
	be16(at + 6, 0x4000); /* do not fragment */
	at[8] = TTL;
	at[9] = UDP;
	be32(at + 12, (uint32_t)u->from.low);
	be32(at + 16, (uint32_t)u->to.low);
	be16(at + 10, checksum(at));
	return 20;
}

static size_t head_v6(uint8_t *at, const struct sw_pcapng_udp *u)
{
	be32(at, 0x60000000 | (uint32_t)u->ecn << 20);
	be16(at + 4, u->len + 8);
	at[6] = UDP;
	at[7] = TTL;
	sw_ip_store(at + 8, u->from);
	sw_ip_store(at + 24, u->to);
	return 40;
}

size_t sw_pcapng_heads(
	uint8_t out[SW_PCAPNG_HEADS_MAX], const struct sw_pcapng_udp *u)
{
	size_t n = sw_ip_is_v4(u->to) ? head_v4(out, u) : head_v6(out, u);

	be16(out + n, u->from_udp);
	be16(out + n + 2, u->to_udp);
	be16(out + n + 4, u->len + 8);
	be16(out + n + 6, 0);
	return n + 8;
}
