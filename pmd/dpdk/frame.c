/* frame.c - what stands before our header: Ethernet, IPv4, UDP.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/frame.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

enum {
	VLAN_MASK = 0xfff,
	FRAGMENT_MASK = RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK,
};
/* Headers behind Ethernet and tag. */
struct inner {
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
};

_Static_assert(SW_INNER_BYTES == sizeof(struct inner) &&
		       SW_OUTER_BYTES == sizeof(struct rte_ether_hdr) +
						 sizeof(struct inner) &&
		       SW_TAG_BYTES == sizeof(struct rte_vlan_hdr),
	"frame.h includes nothing of DPDK's");

uint64_t sw_mac_of_ip(uint32_t ip)
{
	uint8_t mac[6] = {0x02, 0x53}; /* locally administered */

	ip = rte_cpu_to_be_32(ip);
	memcpy(mac + 2, &ip, sizeof(ip));
	return sw_mac_load(mac);
}

uint64_t sw_mac_load(const uint8_t at[6])
{
	uint64_t mac = 0;

	memcpy(&mac, at, RTE_ETHER_ADDR_LEN);
	return rte_le_to_cpu_64(mac);
}

void sw_mac_store(uint8_t at[6], uint64_t mac)
{
	mac = rte_cpu_to_le_64(mac);
	memcpy(at, &mac, RTE_ETHER_ADDR_LEN);
}

uint32_t sw_outer_ethernet(
	const struct sw_outer *o, uint8_t *at, uint64_t dst, uint16_t type)
{
	uint32_t n = o->n_bytes - SW_INNER_BYTES;
	rte_be16_t be = rte_cpu_to_be_16(type);

	memcpy(at, o->bytes, n);
	sw_mac_store(at, dst);
	memcpy(at + n - sizeof(be), &be, sizeof(be));
	return n;
}

/* Write Ethernet header and tag; returns what is behind them. */
static struct inner *ethernet_init(struct sw_outer *o)
{
	struct rte_ether_hdr *eth = (void *)o->bytes;
	struct rte_vlan_hdr *tag = (void *)(eth + 1);

	sw_mac_store(eth->src_addr.addr_bytes, o->mac);
	if (o->vlan == SW_VLAN_NONE) {
		eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
		return (void *)(eth + 1);
	}
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	tag->vlan_tci = rte_cpu_to_be_16(o->vlan);
	tag->eth_proto = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	return (void *)(tag + 1);
}

void sw_outer_init(struct sw_outer *o, uint64_t mac, uint32_t ip, uint16_t udp,
	uint16_t vlan)
{
	struct inner *in;

	*o = (struct sw_outer){.mac = mac,
		.ip = ip,
		.udp = udp,
		.n_udp = 1,
		.n_ways = 1,
		.vlan = vlan};
	in = ethernet_init(o);
	in->ip.version_ihl = RTE_IPV4_VHL_DEF;
	in->ip.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	in->ip.time_to_live = 64;
	in->ip.next_proto_id = IPPROTO_UDP;
	in->ip.src_addr = rte_cpu_to_be_32(ip);
	o->n_bytes = (uint32_t)((uint8_t *)(in + 1) - o->bytes);
	o->ip_sum = rte_raw_cksum(&in->ip, sizeof(in->ip));
}

/* Complete the IPv4 checksum with the fields that @sum lacks, in wire order. */
static uint16_t ip_cksum(uint32_t sum, const struct rte_ipv4_hdr *ip)
{
	sum += rte_cpu_to_be_16(ip->type_of_service) + ip->total_length +
	       (ip->dst_addr >> 16) + (ip->dst_addr & 0xffff);
	return (uint16_t)~__rte_raw_cksum_reduce(sum);
}

void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint64_t dst,
	uint16_t from, const struct sw_path *to, uint8_t class, uint32_t len)
{
	uint32_t udp_bytes = len + sizeof(struct rte_udp_hdr);
	uint32_t ip_bytes = udp_bytes + sizeof(struct rte_ipv4_hdr);
	struct inner *in = (void *)(at + o->n_bytes - SW_INNER_BYTES);

	memcpy(at, o->bytes, o->n_bytes);
	sw_mac_store(at, dst);
	in->ip.type_of_service = sw_outer_tos(class);
	in->ip.total_length = rte_cpu_to_be_16((uint16_t)ip_bytes);
	in->ip.dst_addr = rte_cpu_to_be_32(to->ip);
	if (!o->is_sum_later)
		in->ip.hdr_checksum = ip_cksum(o->ip_sum, &in->ip);
	in->udp.src_port = rte_cpu_to_be_16((uint16_t)(o->udp + from));
	in->udp.dst_port = rte_cpu_to_be_16(to->udp);
	in->udp.dgram_len = rte_cpu_to_be_16((uint16_t)udp_bytes);
	if (o->has_udp_sum)
		in->udp.dgram_cksum = rte_ipv4_phdr_cksum(&in->ip, 0);
}

/* @bytes are there from IPv4 on. */
static enum sw_outer_verdict ip_check(const struct sw_outer *o,
	const struct rte_ipv4_hdr *ip, uint32_t bytes, bool is_sum_good)
{
	uint32_t total = rte_be_to_cpu_16(ip->total_length);

	if (ip->version_ihl >> 4 != IPVERSION ||
		(ip->version_ihl & RTE_IPV4_HDR_IHL_MASK) < RTE_IPV4_MIN_IHL)
		return SW_OUTER_BAD_IP;
	if (ip->version_ihl != RTE_IPV4_VHL_DEF)
		return SW_OUTER_OPTIONS;
	if (!is_sum_good && rte_raw_cksum(ip, sizeof(*ip)) != 0xffff)
		return SW_OUTER_BAD_IP;
	if (rte_be_to_cpu_32(ip->dst_addr) != o->ip ||
		ip->next_proto_id != IPPROTO_UDP)
		return SW_OUTER_NOT_OURS;
	if (ip->fragment_offset & RTE_BE16(FRAGMENT_MASK))
		return SW_OUTER_FRAGMENT;
	if (total > bytes || total < SW_INNER_BYTES)
		return SW_OUTER_SHORT;
	return SW_OUTER_OURS;
}

static enum sw_outer_verdict udp_check(const struct sw_outer *o,
	const struct inner *in, uint32_t bytes, struct sw_outer_done done,
	struct sw_rx_frame *out)
{
	enum sw_outer_verdict v;
	uint32_t udp_bytes, endpoint;

	if (bytes < SW_INNER_BYTES)
		return SW_OUTER_SHORT;
	v = ip_check(o, &in->ip, bytes, done.is_sum_good);
	if (v != SW_OUTER_OURS)
		return v;
	/* huge where it is below */
	endpoint = (uint32_t)rte_be_to_cpu_16(in->udp.dst_port) - o->udp;
	if (endpoint >= (uint32_t)o->n_udp * o->n_ways)
		return SW_OUTER_NOT_OURS;
	if (endpoint >= o->n_udp)
		endpoint %= o->n_udp;
	udp_bytes = rte_be_to_cpu_16(in->udp.dgram_len);
	if (udp_bytes + sizeof(in->ip) >
			rte_be_to_cpu_16(in->ip.total_length) ||
		udp_bytes < sizeof(in->udp) + SW_HEAD_BYTES)
		return SW_OUTER_SHORT;
	/* there are NICs that take 0, none, for a wrong one */
	if (done.is_udp_bad && in->udp.dgram_cksum)
		return SW_OUTER_BAD_UDP;
	out->data = (const uint8_t *)(in + 1);
	out->payload = out->data + SW_HEAD_BYTES;
	out->endpoint = (uint16_t)endpoint;
	out->is_lent = false;
	out->len = udp_bytes - (uint32_t)sizeof(in->udp);
	out->from.ip = rte_be_to_cpu_32(in->ip.src_addr);
	out->from.udp = rte_be_to_cpu_16(in->udp.src_port);
	return SW_OUTER_OURS;
}

enum sw_outer_verdict sw_outer_check(const struct sw_outer *o,
	const uint8_t *data, uint32_t bytes, struct sw_outer_done done,
	struct sw_rx_frame *out)
{
	const struct rte_ether_hdr *eth = (const void *)data;
	const struct rte_vlan_hdr *tag = (const void *)(eth + 1);
	uint32_t vlan = done.is_tag_off ? done.vlan & VLAN_MASK : 0;
	const uint8_t *end = data + bytes, *at = (const uint8_t *)tag;
	rte_be16_t type;

	if (bytes < sizeof(*eth) + sizeof(*tag))
		return SW_OUTER_SHORT;
	type = eth->ether_type;
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN) && !done.is_tag_off) {
		vlan = rte_be_to_cpu_16(tag->vlan_tci) & VLAN_MASK;
		type = tag->eth_proto;
		at += sizeof(*tag);
	}
	if (vlan != o->vlan)
		return SW_OUTER_NOT_OURS;
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return udp_check(
			o, (const void *)at, (uint32_t)(end - at), done, out);
	if (type != RTE_BE16(RTE_ETHER_TYPE_ARP))
		return SW_OUTER_NOT_OURS;
	out->data = at;
	out->len = (uint32_t)(end - at);
	return SW_OUTER_ARP;
}
