/* pcapng.c - frames in a file that Wireshark opens.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/pcapng.h"

#include <string.h>

#include "engine/base/bytes.h"

enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	PACKET = 6,
	MAGIC = 0x1a2b3c4d,
	ETHERNET = 1,
	TIME_UNIT = 9, /* option: 10^-n seconds */
	HEADS = 42,
	OTHER_UDP = 9, /* other traffic goes to the port of discard */
};

static void put32(FILE *f, uint32_t v)
{
	uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
		(uint8_t)(v >> 24)};

	fwrite(b, sizeof(b), 1, f);
}

void sw_sim_pcapng_begin(FILE *f)
{
	put32(f, SECTION);
	put32(f, 28);
	put32(f, MAGIC);
	put32(f, 1); /* version 1.0 */
	put32(f, UINT32_MAX);
	put32(f, UINT32_MAX); /* length unknown */
	put32(f, 28);
	put32(f, INTERFACE);
	put32(f, 32);
	put32(f, ETHERNET);
	put32(f, 0);
	put32(f, 1 << 16 | TIME_UNIT);
	put32(f, 9);
	put32(f, 0); /* end of options */
	put32(f, 32);
}

static void be16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void mac(uint8_t *at, uint32_t node)
{
	at[0] = 2; /* local */
	be16(at + 2, node >> 16);
	be16(at + 4, node);
}

static void address(uint8_t *at, uint32_t node)
{
	be16(at, sw_sim_ip(node) >> 16);
	be16(at + 2, sw_sim_ip(node));
}

static uint32_t checksum(const uint8_t *at)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 20; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void heads(uint8_t *b, const struct sw_sim_frame *f)
{
	uint8_t *ip = b + 14, *udp = b + 34;

	memset(b, 0, HEADS);
	mac(b, f->to);
	mac(b + 6, f->from);
	be16(b + 12, 0x0800);
	ip[0] = 0x45;
	ip[1] = f->is_plain ? 0 : f->is_marked ? 3 : 2; /* ECN: CE, ECT(0) */
	be16(ip + 2, f->len + 28);
	be16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = 17;
	address(ip + 12, f->from);
	address(ip + 16, f->to);
	be16(ip + 10, checksum(ip));
	be16(udp, f->is_other ? OTHER_UDP : f->from_udp);
	be16(udp + 2, f->is_other ? OTHER_UDP : f->to_udp);
	be16(udp + 4, f->len + 8); /* no checksum, as IPv4 allows */
}

void sw_sim_pcapng_frame(
	FILE *f, uint64_t at_ns, const struct sw_sim_frame *frame)
{
	static const uint8_t zeros[4];
	uint32_t head = frame->is_other ? 0 : SW_HEAD_BYTES;
	uint32_t body = frame->has_body ? frame->len - SW_HEAD_BYTES : 0;
	uint32_t n = HEADS + head + body, whole = (n + 3) & ~3u;
	uint8_t b[HEADS];

	heads(b, frame);
	put32(f, PACKET);
	put32(f, 32 + whole);
	put32(f, 0);
	put32(f, (uint32_t)(at_ns >> 32));
	put32(f, (uint32_t)at_ns);
	put32(f, n);
	put32(f, HEADS + frame->len);
	fwrite(b, HEADS, 1, f);
	fwrite(frame->head, head, 1, f);
	fwrite(frame->body, body, 1, f);
	fwrite(zeros, whole - n, 1, f);
	put32(f, 32 + whole);
}
