/* neigh_frame.c - the packets of ARP and of IPv6 neighbour discovery.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ip.h>

#include "pmd/dpdk/neigh.h"

#define BROADCAST UINT64_C(0xffffffffffff)

enum {
	ARP_BYTES = 60 - 14, /* after the Ethernet header, padded */
	HOPS = 255,     /* proves that no router forwarded it (RFC 4861, 7.1) */
	SOURCE_MAC = 1, /* option: the sender's Ethernet address */
	TARGET_MAC = 2, /* option: the target's Ethernet address */
	SOLICITED = 0x40000000,
	OVERRIDE = 0x20000000,
	OPTION_UNIT = 8, /* unit of an option's length, in bytes */
};

/* Multicast groups (RFC 4291, section 2.7.1): all nodes on the link, and all
 * nodes whose address ends in the last three bytes of @ip. */
static const struct sw_ip all_nodes = {UINT64_C(0xff02) << 48, 1};

static struct sw_ip solicited_nodes(struct sw_ip ip)
{
	return (struct sw_ip){.high = UINT64_C(0xff02) << 48,
		.low = UINT64_C(0x1ff000000) | (ip.low & 0xffffff)};
}

/* Return the Ethernet address of a multicast group (RFC 2464, section 7). */
static uint64_t mac_of_group(struct sw_ip group)
{
	return 0x3333 | (uint64_t)rte_cpu_to_be_32((uint32_t)group.low) << 16;
}

static bool is_host(uint64_t mac)
{
	return mac && !(mac & 1); /* not a group */
}

/* --- ARP --- */

/* Return whether @h is a request or reply for Ethernet and IPv4. */
static bool is_arp(const struct rte_arp_hdr *h)
{
	return h->arp_hardware == RTE_BE16(RTE_ARP_HRD_ETHER) &&
	       h->arp_protocol == RTE_BE16(RTE_ETHER_TYPE_IPV4) &&
	       h->arp_hlen == RTE_ETHER_ADDR_LEN &&
	       h->arp_plen == sizeof(h->arp_data.arp_sip) &&
	       (h->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST) ||
		       h->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY));
}

static bool arp_take(struct sw_neigh *t, const uint8_t *at, uint32_t n,
	struct sw_ip *reply_to, uint64_t *reply_mac)
{
	const struct rte_arp_hdr *h = (const void *)at;
	struct sw_ip from;
	bool is_for_us;
	uint64_t mac;

	if (n < sizeof(*h) || !is_arp(h))
		return false;
	mac = sw_mac_load(h->arp_data.arp_sha.addr_bytes);
	from = sw_ip_v4(rte_be_to_cpu_32(h->arp_data.arp_sip));
	is_for_us =
		rte_be_to_cpu_32(h->arp_data.arp_tip) == (uint32_t)t->ip.low;
	if (!is_host(mac) || mac == t->mac ||
		!sw_neigh_heard(t, from, mac, is_for_us))
		return false;
	*reply_to = from;
	*reply_mac = mac;
	return is_for_us && h->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
}

static uint32_t arp_write(
	const struct sw_outer *o, uint8_t *at, struct sw_ip ip, uint64_t mac)
{
	uint32_t n = sw_outer_ethernet(
		o, at, mac ? mac : BROADCAST, RTE_ETHER_TYPE_ARP);
	struct rte_arp_hdr *h = (void *)(at + n);

	memset(h, 0, ARP_BYTES);
	h->arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	h->arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	h->arp_hlen = RTE_ETHER_ADDR_LEN;
	h->arp_plen = sizeof(h->arp_data.arp_sip);
	h->arp_opcode =
		rte_cpu_to_be_16(mac ? RTE_ARP_OP_REPLY : RTE_ARP_OP_REQUEST);
	sw_mac_store(h->arp_data.arp_sha.addr_bytes, o->mac);
	h->arp_data.arp_sip = rte_cpu_to_be_32((uint32_t)o->ip.low);
	sw_mac_store(h->arp_data.arp_tha.addr_bytes, mac);
	h->arp_data.arp_tip = rte_cpu_to_be_32((uint32_t)ip.low);
	return n + ARP_BYTES;
}

/* --- neighbour discovery --- */

/* A solicitation or an advertisement; options follow. We write one option. */
struct nd {
	struct rte_ipv6_hdr ip;
	uint8_t type, code;
	rte_be16_t sum;
	rte_be32_t flags;
	uint8_t target[16];
};
struct nd_option {
	uint8_t type, units, mac[6];
};
_Static_assert(sizeof(struct nd) == 64 &&
		       SW_NEIGH_FRAME == 14 + sizeof(struct nd) +
						 sizeof(struct nd_option),
	"as on the wire");

/* Return the Ethernet address in the option @type; 0 if there is none; a group
 * address, which is_host refuses, if an option is malformed. */
static uint64_t nd_mac(const uint8_t *at, uint32_t n, uint8_t type)
{
	uint64_t mac = 0;

	while (n) {
		const struct nd_option *o = (const void *)at;
		uint32_t bytes;

		if (n < sizeof(*o) || !o->units || o->units * OPTION_UNIT > n)
			return BROADCAST;
		if (o->type == type && o->units == 1)
			mac = sw_mac_load(o->mac);
		bytes = (uint32_t)o->units * OPTION_UNIT;
		at += bytes;
		n -= bytes;
	}
	return mac;
}

/* Check the packet by RFC 4861, sections 7.1.1 and 7.1.2. */
static bool is_nd(const struct nd *p, uint32_t n)
{
	uint32_t bytes;

	if (n < sizeof(*p))
		return false;
	bytes = rte_be_to_cpu_16(p->ip.payload_len);
	return bytes >= sizeof(*p) - sizeof(p->ip) &&
	       bytes <= n - sizeof(p->ip) && p->ip.hop_limits == HOPS &&
	       !p->code &&
	       (p->type == SW_ND_SOLICITATION ||
		       p->type == SW_ND_ADVERTISEMENT) &&
	       p->target[0] != 0xff && !rte_ipv6_udptcp_cksum(&p->ip, &p->type);
}

static bool nd_take(struct sw_neigh *t, const uint8_t *at, uint32_t n,
	struct sw_ip *reply_to, uint64_t *reply_mac)
{
	const struct nd *p = (const void *)at;
	struct sw_ip from, target;
	bool is_question, is_for_us;
	uint64_t mac;

	if (!is_nd(p, n))
		return false;
	n = rte_be_to_cpu_16(p->ip.payload_len) + (uint32_t)sizeof(p->ip);
	from = sw_ip_load(p->ip.src_addr);
	target = sw_ip_load(p->target);
	is_question = p->type == SW_ND_SOLICITATION;
	is_for_us = sw_ip_is_same(target, t->ip);
	mac = nd_mac((const uint8_t *)(p + 1), n - (uint32_t)sizeof(*p),
		is_question ? SOURCE_MAC : TARGET_MAC);
	if (is_question && sw_ip_is_none(from) && !mac) {
		*reply_to = from; /* a probe whether our address is free */
		*reply_mac = mac_of_group(all_nodes);
		return is_for_us;
	}
	if (!is_host(mac) || mac == t->mac)
		return false;
	/* A solicitation names its sender's address, an advertisement its
	 * target's. Only a solicitation for us may add an entry. */
	if (!sw_neigh_heard(t, is_question ? from : target, mac,
		    is_question && is_for_us))
		return false;
	*reply_to = from;
	*reply_mac = mac;
	return is_question && is_for_us;
}

static uint32_t nd_write(
	const struct sw_outer *o, uint8_t *at, struct sw_ip ip, uint64_t mac)
{
	/* An announcement, with @ip our own, is an unsolicited answer. */
	bool is_answer = mac || sw_ip_is_same(ip, o->ip);
	bool is_to_all = is_answer && (!mac || sw_ip_is_none(ip));
	struct sw_ip to = is_to_all   ? all_nodes
			  : is_answer ? ip
				      : solicited_nodes(ip);
	uint32_t n = sw_outer_ethernet(
		o, at, mac ? mac : mac_of_group(to), RTE_ETHER_TYPE_IPV6);
	struct nd *p = (void *)(at + n);
	struct nd_option *option = (void *)(p + 1);

	memset(p, 0, sizeof(*p) + sizeof(*option));
	p->ip.vtc_flow = RTE_BE32(UINT32_C(6) << 28);
	p->ip.payload_len =
		RTE_BE16(sizeof(*p) + sizeof(*option) - sizeof(p->ip));
	p->ip.proto = IPPROTO_ICMPV6;
	p->ip.hop_limits = HOPS;
	sw_ip_store(p->ip.src_addr, o->ip);
	sw_ip_store(p->ip.dst_addr, to);
	p->type = is_answer ? SW_ND_ADVERTISEMENT : SW_ND_SOLICITATION;
	if (is_answer)
		p->flags = is_to_all ? RTE_BE32(OVERRIDE)
				     : RTE_BE32(SOLICITED | OVERRIDE);
	sw_ip_store(p->target, is_answer ? o->ip : ip);
	option->type = is_answer ? TARGET_MAC : SOURCE_MAC;
	option->units = 1;
	sw_mac_store(option->mac, o->mac);
	p->sum = rte_ipv6_udptcp_cksum(&p->ip, &p->type);
	return n + (uint32_t)(sizeof(*p) + sizeof(*option));
}

bool sw_neigh_take(struct sw_neigh *t, const uint8_t *at, uint32_t n,
	struct sw_ip *reply_to, uint64_t *reply_mac)
{
	return sw_ip_is_v4(t->ip) ? arp_take(t, at, n, reply_to, reply_mac)
				  : nd_take(t, at, n, reply_to, reply_mac);
}

uint32_t sw_neigh_write(
	const struct sw_outer *o, uint8_t *at, struct sw_ip ip, uint64_t mac)
{
	return sw_ip_is_v4(o->ip) ? arp_write(o, at, ip, mac)
				  : nd_write(o, at, ip, mac);
}
