/* frame.c - what stands before our header: Ethernet, IPv4, UDP.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/frame.h"

#include <string.h>

/* Offsets from the start of the frame. */
enum {
	ETH_DST = 0,
	ETH_SRC = 6,
	ETH_TYPE = 12,
	IP = 14,
	IP_TOS = IP + 1,
	IP_TOTAL = IP + 2,
	IP_FRAGMENT = IP + 6,
	IP_TTL = IP + 8,
	IP_PROTO = IP + 9,
	IP_SUM = IP + 10,
	IP_SRC = IP + 12,
	IP_DST = IP + 16,
	UDP_SRC = 34,
	UDP_DST = 36,
	UDP_LEN = 38,
	IP_BYTES = 20,
	UDP_BYTES = 8,
	DONT_FRAGMENT = 0x4000,
	FRAGMENT_MASK = 0x3fff, /* "more fragments" and the offset */
};

static uint32_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static void put16(uint8_t *p, uint32_t v)
{
	uint16_t be = __builtin_bswap16((uint16_t)v);

	memcpy(p, &be, sizeof(be));
}

static void put32(uint8_t *p, uint32_t v)
{
	uint32_t be = __builtin_bswap32(v);

	memcpy(p, &be, sizeof(be));
}

static uint32_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static uint32_t ip_sum(const uint8_t *frame)
{
	uint32_t sum = 0;

	for (int i = 0; i < IP_BYTES; i += 2)
		sum += get16(frame + IP + i);
	return sum;
}

void sw_mac(uint32_t ip, uint8_t out[6])
{
	out[0] = 0x02; /* locally administered */
	out[1] = 0x53;
	put32(out + 2, ip);
}

void sw_outer_init(struct sw_outer *o, uint32_t ip, uint16_t udp)
{
	uint8_t *at = o->bytes;

	memset(o, 0, sizeof(*o));
	sw_mac(ip, at + ETH_SRC);
	put16(at + ETH_TYPE, 0x0800);
	at[IP] = 0x45;
	put16(at + IP_FRAGMENT, DONT_FRAGMENT);
	at[IP_TTL] = 64;
	at[IP_PROTO] = 17;
	put32(at + IP_SRC, ip);
	o->udp = udp;
	o->ip_sum = ip_sum(at);
}

void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint16_t endpoint,
	const struct sw_path *to, uint8_t class, uint32_t len)
{
	uint32_t udp_bytes = len + UDP_BYTES, ip_bytes = udp_bytes + IP_BYTES;
	uint8_t tos = (uint8_t)((7 - (class & 7)) << 5);

	memcpy(at, o->bytes, SW_OUTER_BYTES);
	put16(at + UDP_SRC, o->udp + endpoint);
	sw_mac(to->ip, at + ETH_DST);
	at[IP_TOS] = tos;
	put16(at + IP_TOTAL, ip_bytes);
	put32(at + IP_DST, to->ip);
	put16(at + IP_SUM, ~fold(o->ip_sum + tos + ip_bytes + (to->ip >> 16) +
				   (to->ip & 0xffff)));
	put16(at + UDP_DST, to->udp);
	put16(at + UDP_LEN, udp_bytes);
}

static enum sw_verdict ip_check(
	const uint8_t *frame, uint32_t bytes, uint32_t ip)
{
	uint32_t total = get16(frame + IP_TOTAL);

	if (frame[IP] >> 4 != 4 || (frame[IP] & 15) < 5)
		return SW_FRAME_BAD_IP;
	if (frame[IP] != 0x45)
		return SW_FRAME_OPTIONS;
	if (fold(ip_sum(frame)) != 0xffff)
		return SW_FRAME_BAD_IP;
	if (get32(frame + IP_DST) != ip || frame[IP_PROTO] != 17)
		return SW_FRAME_NOT_OURS;
	if (get16(frame + IP_FRAGMENT) & FRAGMENT_MASK)
		return SW_FRAME_FRAGMENT;
	if (total > bytes - IP || total < IP_BYTES + UDP_BYTES)
		return SW_FRAME_SHORT;
	return SW_FRAME_OURS;
}

enum sw_verdict sw_outer_check(const uint8_t *data, uint32_t bytes, uint32_t ip,
	uint16_t udp, uint16_t n_udp, struct sw_rx_frame *out)
{
	enum sw_verdict v;
	uint32_t udp_bytes, endpoint;

	if (bytes < SW_OUTER_BYTES)
		return SW_FRAME_SHORT;
	if (get16(data + ETH_TYPE) != 0x0800)
		return SW_FRAME_NOT_OURS;
	v = ip_check(data, bytes, ip);
	if (v != SW_FRAME_OURS)
		return v;
	endpoint = get16(data + UDP_DST) - udp; /* huge where it is below */
	if (endpoint >= n_udp)
		return SW_FRAME_NOT_OURS;
	udp_bytes = get16(data + UDP_LEN);
	if (udp_bytes + IP_BYTES > get16(data + IP_TOTAL) ||
		udp_bytes < UDP_BYTES + SW_HEAD_BYTES)
		return SW_FRAME_SHORT;
	out->data = data + SW_OUTER_BYTES;
	out->payload = out->data + SW_HEAD_BYTES;
	out->endpoint = (uint16_t)endpoint;
	out->len = udp_bytes - UDP_BYTES;
	out->from.ip = get32(data + IP_SRC);
	out->from.udp = (uint16_t)get16(data + UDP_SRC);
	return SW_FRAME_OURS;
}
