/* frame.c - what stands before our header: Ethernet, IPv4, UDP.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/frame.h"

#include <string.h>

enum {
	/* offsets from the start of the frame */
	ETH_DST = 0,
	ETH_SRC = 6,
	ETH_TYPE = 12,
	ETH_BYTES = 14,
	/* from the start of IPv4 */
	IP_TOS = 1,
	IP_TOTAL = 2,
	IP_FRAGMENT = 6,
	IP_TTL = 8,
	IP_PROTO = 9,
	IP_SUM = 10,
	IP_SRC = 12,
	IP_DST = 16,
	IP_BYTES = 20,
	UDP_SRC = IP_BYTES,
	UDP_DST = IP_BYTES + 2,
	UDP_LEN = IP_BYTES + 4,
	UDP_SUM = IP_BYTES + 6,
	UDP_BYTES = 8,
	TYPE_IP = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_VLAN = 0x8100,
	VLAN_MASK = 0xfff,
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

static uint32_t ip_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < IP_BYTES; i += 2)
		sum += get16(ip + i);
	return sum;
}

uint64_t sw_mac_of_ip(uint32_t ip)
{
	uint8_t mac[6] = {0x02, 0x53}; /* locally administered */

	put32(mac + 2, ip);
	return sw_mac_load(mac);
}

uint64_t sw_mac_load(const uint8_t at[6])
{
	uint64_t mac = 0;

	for (int i = 0; i < 6; i++)
		mac |= (uint64_t)at[i] << (8 * i);
	return mac;
}

void sw_mac_store(uint8_t at[6], uint64_t mac)
{
	for (int i = 0; i < 6; i++)
		at[i] = (uint8_t)(mac >> (8 * i));
}

uint32_t sw_outer_ethernet(
	const struct sw_outer *o, uint8_t *at, uint64_t dst, uint16_t type)
{
	uint32_t n = o->n_bytes - IP_BYTES - UDP_BYTES;

	memcpy(at, o->bytes, n);
	sw_mac_store(at + ETH_DST, dst);
	put16(at + n - 2, type);
	return n;
}

void sw_outer_init(struct sw_outer *o, uint64_t mac, uint32_t ip, uint16_t udp,
	uint16_t vlan)
{
	uint8_t *at = o->bytes;

	*o = (struct sw_outer){.mac = mac,
		.ip = ip,
		.udp = udp,
		.n_udp = 1,
		.n_ways = 1,
		.vlan = vlan};
	sw_mac_store(at + ETH_SRC, mac);
	at += ETH_TYPE;
	if (vlan != SW_VLAN_NONE) {
		put16(at, TYPE_VLAN);
		put16(at + 2, vlan);
		at += SW_TAG_BYTES;
	}
	put16(at, TYPE_IP);
	at += 2;
	at[0] = 0x45;
	put16(at + IP_FRAGMENT, DONT_FRAGMENT);
	at[IP_TTL] = 64;
	at[IP_PROTO] = 17;
	put32(at + IP_SRC, ip);
	o->n_bytes = (uint32_t)(at - o->bytes) + IP_BYTES + UDP_BYTES;
	o->ip_sum = ip_sum(at);
}

/* Of the pseudo header (RFC 768), not inverted. */
static uint32_t pseudo_sum(const uint8_t *ip, uint32_t udp_bytes)
{
	uint32_t sum = ip[IP_PROTO] + udp_bytes;

	for (int i = IP_SRC; i < IP_BYTES; i += 2)
		sum += get16(ip + i);
	return fold(sum);
}

void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint64_t dst,
	uint16_t from, const struct sw_path *to, uint8_t class, uint32_t len)
{
	uint32_t udp_bytes = len + UDP_BYTES, ip_bytes = udp_bytes + IP_BYTES;
	uint8_t tos = sw_outer_tos(class);
	uint8_t *ip = at + o->n_bytes - IP_BYTES - UDP_BYTES;

	memcpy(at, o->bytes, o->n_bytes);
	sw_mac_store(at + ETH_DST, dst);
	ip[IP_TOS] = tos;
	put16(ip + IP_TOTAL, ip_bytes);
	put32(ip + IP_DST, to->ip);
	if (!o->is_sum_later)
		put16(ip + IP_SUM, ~fold(o->ip_sum + tos + ip_bytes +
					   (to->ip >> 16) + (to->ip & 0xffff)));
	put16(ip + UDP_SRC, o->udp + from);
	put16(ip + UDP_DST, to->udp);
	put16(ip + UDP_LEN, udp_bytes);
	if (o->has_udp_sum)
		put16(ip + UDP_SUM, pseudo_sum(ip, udp_bytes));
}

/* @bytes are there from IPv4 on. */
static enum sw_verdict ip_check(const struct sw_outer *o, const uint8_t *ip,
	uint32_t bytes, bool is_sum_good)
{
	uint32_t total = get16(ip + IP_TOTAL);

	if (ip[0] >> 4 != 4 || (ip[0] & 15) < 5)
		return SW_FRAME_BAD_IP;
	if (ip[0] != 0x45)
		return SW_FRAME_OPTIONS;
	if (!is_sum_good && fold(ip_sum(ip)) != 0xffff)
		return SW_FRAME_BAD_IP;
	if (get32(ip + IP_DST) != o->ip || ip[IP_PROTO] != 17)
		return SW_FRAME_NOT_OURS;
	if (get16(ip + IP_FRAGMENT) & FRAGMENT_MASK)
		return SW_FRAME_FRAGMENT;
	if (total > bytes || total < IP_BYTES + UDP_BYTES)
		return SW_FRAME_SHORT;
	return SW_FRAME_OURS;
}

static enum sw_verdict udp_check(const struct sw_outer *o, const uint8_t *ip,
	uint32_t bytes, struct sw_outer_done done, struct sw_rx_frame *out)
{
	enum sw_verdict v;
	uint32_t udp_bytes, endpoint;

	if (bytes < IP_BYTES + UDP_BYTES)
		return SW_FRAME_SHORT;
	v = ip_check(o, ip, bytes, done.is_sum_good);
	if (v != SW_FRAME_OURS)
		return v;
	endpoint = get16(ip + UDP_DST) - o->udp; /* huge where it is below */
	if (endpoint >= (uint32_t)o->n_udp * o->n_ways)
		return SW_FRAME_NOT_OURS;
	if (endpoint >= o->n_udp)
		endpoint %= o->n_udp;
	udp_bytes = get16(ip + UDP_LEN);
	if (udp_bytes + IP_BYTES > get16(ip + IP_TOTAL) ||
		udp_bytes < UDP_BYTES + SW_HEAD_BYTES)
		return SW_FRAME_SHORT;
	/* there are NICs that take 0, none, for a wrong one */
	if (done.is_udp_bad && get16(ip + UDP_SUM))
		return SW_FRAME_BAD_UDP;
	out->data = ip + IP_BYTES + UDP_BYTES;
	out->payload = out->data + SW_HEAD_BYTES;
	out->endpoint = (uint16_t)endpoint;
	out->is_lent = false;
	out->len = udp_bytes - UDP_BYTES;
	out->from.ip = get32(ip + IP_SRC);
	out->from.udp = (uint16_t)get16(ip + UDP_SRC);
	return SW_FRAME_OURS;
}

enum sw_verdict sw_outer_check(const struct sw_outer *o, const uint8_t *data,
	uint32_t bytes, struct sw_outer_done done, struct sw_rx_frame *out)
{
	uint32_t type, vlan = done.is_tag_off ? done.vlan & VLAN_MASK : 0;
	const uint8_t *end = data + bytes, *at = data + ETH_BYTES;

	if (bytes < ETH_BYTES + SW_TAG_BYTES)
		return SW_FRAME_SHORT;
	type = get16(data + ETH_TYPE);
	if (type == TYPE_VLAN && !done.is_tag_off) {
		vlan = get16(at) & VLAN_MASK;
		type = get16(at + 2);
		at += SW_TAG_BYTES;
	}
	if (vlan != o->vlan)
		return SW_FRAME_NOT_OURS;
	if (type == TYPE_IP)
		return udp_check(o, at, (uint32_t)(end - at), done, out);
	if (type != TYPE_ARP)
		return SW_FRAME_NOT_OURS;
	out->data = at;
	out->len = (uint32_t)(end - at);
	return SW_FRAME_ARP;
}
