/* frame.c - the headers before ours: Ethernet, IPv4 or IPv6, UDP.
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
	HOPS = 64,
	V6_VERSION = 6,
	TCLASS_SHIFT = 20,
};
/* Headers after the Ethernet header and tag. */
struct inner {
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
};
struct inner6 {
	struct rte_ipv6_hdr ip;
	struct rte_udp_hdr udp;
};

_Static_assert(SW_INNER_BYTES == sizeof(struct inner) &&
		       SW_INNER_BYTES + SW_V6_MORE == sizeof(struct inner6) &&
		       SW_OUTER_BYTES == sizeof(struct rte_ether_hdr) +
						 sizeof(struct inner) &&
		       SW_TAG_BYTES == sizeof(struct rte_vlan_hdr),
	"frame.h includes nothing of DPDK's");

uint64_t sw_mac_of_ip(struct sw_ip ip)
{
	uint8_t mac[6] = {0x02, 0x53}; /* locally administered */
	uint32_t be = rte_cpu_to_be_32(sw_ip_fold(ip));

	memcpy(mac + 2, &be, sizeof(be));
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
	uint32_t n = o->n_bytes - o->n_inner;
	rte_be16_t be = rte_cpu_to_be_16(type);

	memcpy(at, o->bytes, n);
	sw_mac_store(at, dst);
	memcpy(at + n - sizeof(be), &be, sizeof(be));
	return n;
}

/* Write Ethernet header and tag; returns the address after them. */
static void *ethernet_init(struct sw_outer *o, rte_be16_t type)
{
	struct rte_ether_hdr *eth = (void *)o->bytes;
	struct rte_vlan_hdr *tag = (void *)(eth + 1);

	sw_mac_store(eth->src_addr.addr_bytes, o->mac);
	if (o->vlan == SW_VLAN_NONE) {
		eth->ether_type = type;
		return eth + 1;
	}
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	tag->vlan_tci = rte_cpu_to_be_16(o->vlan);
	tag->eth_proto = type;
	return tag + 1;
}

void sw_outer_init(struct sw_outer *o, uint64_t mac, struct sw_ip ip,
	uint16_t udp, uint16_t vlan)
{
	bool is_v4 = sw_ip_is_v4(ip);
	struct inner *in;
	struct inner6 *in6;

	*o = (struct sw_outer){.mac = mac,
		.ip = ip,
		.udp = udp,
		.n_udp = 1,
		.n_ways = 1,
		.vlan = vlan};
	in = ethernet_init(o, is_v4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4)
				    : RTE_BE16(RTE_ETHER_TYPE_IPV6));
	in6 = (void *)in;
	o->n_inner = is_v4 ? sizeof(*in) : sizeof(*in6);
	o->n_bytes = (uint32_t)((uint8_t *)in - o->bytes) + o->n_inner;
	if (is_v4) {
		in->ip.version_ihl = RTE_IPV4_VHL_DEF;
		in->ip.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
		in->ip.time_to_live = HOPS;
		in->ip.next_proto_id = IPPROTO_UDP;
		in->ip.src_addr = rte_cpu_to_be_32((uint32_t)ip.low);
		o->ip_sum = rte_raw_cksum(&in->ip, sizeof(in->ip));
	} else {
		in6->ip.proto = IPPROTO_UDP;
		in6->ip.hop_limits = HOPS;
		sw_ip_store(in6->ip.src_addr, ip);
	}
}

/* Complete the IPv4 checksum with the fields that @sum lacks, in wire order. */
static uint16_t ip_cksum(uint32_t sum, const struct rte_ipv4_hdr *ip)
{
	sum += rte_cpu_to_be_16(ip->type_of_service) + ip->total_length +
	       (ip->dst_addr >> 16) + (ip->dst_addr & 0xffff);
	return (uint16_t)~__rte_raw_cksum_reduce(sum);
}

static struct rte_udp_hdr *write_v4(const struct sw_outer *o, void *at,
	const struct sw_path *to, uint8_t class, uint32_t udp_bytes)
{
	struct inner *in = at;

	in->ip.type_of_service = sw_outer_tos(class);
	in->ip.total_length =
		rte_cpu_to_be_16((uint16_t)(udp_bytes + sizeof(in->ip)));
	in->ip.dst_addr = rte_cpu_to_be_32((uint32_t)to->ip.low);
	if (!o->is_sum_later)
		in->ip.hdr_checksum = ip_cksum(o->ip_sum, &in->ip);
	if (o->has_udp_sum)
		in->udp.dgram_cksum = rte_ipv4_phdr_cksum(&in->ip, 0);
	return &in->udp;
}

static struct rte_udp_hdr *write_v6(const struct sw_outer *o, void *at,
	const struct sw_path *to, uint8_t class, uint32_t udp_bytes)
{
	struct inner6 *in = at;

	in->ip.vtc_flow =
		rte_cpu_to_be_32((uint32_t)V6_VERSION << 28 |
				 (uint32_t)sw_outer_tos(class) << TCLASS_SHIFT);
	in->ip.payload_len = rte_cpu_to_be_16((uint16_t)udp_bytes);
	sw_ip_store(in->ip.dst_addr, to->ip);
	if (o->has_udp_sum)
		in->udp.dgram_cksum = rte_ipv6_phdr_cksum(&in->ip, 0);
	return &in->udp;
}

void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint64_t dst,
	uint16_t from, const struct sw_path *to, uint8_t class, uint32_t len)
{
	uint32_t udp_bytes = len + sizeof(struct rte_udp_hdr);
	uint8_t *inner = at + o->n_bytes - o->n_inner;
	struct rte_udp_hdr *udp;

	memcpy(at, o->bytes, o->n_bytes);
	sw_mac_store(at, dst);
	udp = o->n_inner == SW_INNER_BYTES
		      ? write_v4(o, inner, to, class, udp_bytes)
		      : write_v6(o, inner, to, class, udp_bytes);
	udp->src_port = rte_cpu_to_be_16((uint16_t)(o->udp + from));
	udp->dst_port = rte_cpu_to_be_16(to->udp);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)udp_bytes);
}

void sw_outer_sum(const struct sw_outer *o, uint8_t *at, const void *payload,
	uint32_t len)
{
	struct inner6 *in = (void *)(at + o->n_bytes - o->n_inner);
	uint32_t sum = rte_ipv6_phdr_cksum(&in->ip, 0);

	in->udp.dgram_cksum = 0;
	sum += rte_raw_cksum(&in->udp, sizeof(in->udp) + SW_HEAD_BYTES);
	if (len)
		sum += rte_raw_cksum(payload, len);
	sum = (uint16_t)~__rte_raw_cksum_reduce(sum);
	in->udp.dgram_cksum = sum ? (uint16_t)sum : UINT16_MAX;
}

/* Check the IPv4 header @ip of a frame that has @bytes from there on. */
static enum sw_outer_verdict v4_check(const struct sw_outer *o,
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
	if (rte_be_to_cpu_32(ip->dst_addr) != (uint32_t)o->ip.low ||
		ip->next_proto_id != IPPROTO_UDP)
		return SW_OUTER_NOT_OURS;
	if (ip->fragment_offset & RTE_BE16(FRAGMENT_MASK))
		return SW_OUTER_FRAGMENT;
	if (total > bytes || total < SW_INNER_BYTES)
		return SW_OUTER_SHORT;
	return SW_OUTER_OURS;
}

/* Check the IPv6 header @ip of a frame that has @bytes from there on. */
static enum sw_outer_verdict v6_check(
	const struct sw_outer *o, const struct rte_ipv6_hdr *ip, uint32_t bytes)
{
	uint32_t total = sizeof(*ip) + rte_be_to_cpu_16(ip->payload_len);
	const uint8_t *icmp = (const uint8_t *)(ip + 1);

	if (rte_be_to_cpu_32(ip->vtc_flow) >> 28 != V6_VERSION)
		return SW_OUTER_BAD_IP;
	if (ip->proto == IPPROTO_ICMPV6)
		return *icmp == SW_ND_SOLICITATION ||
				       *icmp == SW_ND_ADVERTISEMENT
			       ? SW_OUTER_NEIGHBOUR
			       : SW_OUTER_NOT_OURS;
	if (!sw_ip_is_same(sw_ip_load(ip->dst_addr), o->ip))
		return SW_OUTER_NOT_OURS;
	switch (ip->proto) {
	case IPPROTO_UDP:
		break;
	case IPPROTO_FRAGMENT:
		return SW_OUTER_FRAGMENT;
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
		return SW_OUTER_OPTIONS;
	default:
		return SW_OUTER_NOT_OURS;
	}
	return total > bytes || total < sizeof(struct inner6) ? SW_OUTER_SHORT
							      : SW_OUTER_OURS;
}

/* Check the UDP header @udp, which has @bytes after the IP header, and fill
 * @out. */
static enum sw_outer_verdict udp_check(const struct sw_outer *o,
	const struct rte_udp_hdr *udp, uint32_t bytes,
	struct sw_outer_done done, struct sw_rx_frame *out)
{
	uint32_t udp_bytes = rte_be_to_cpu_16(udp->dgram_len);
	/* wraps to a huge number for a port below ours */
	uint32_t endpoint = (uint32_t)rte_be_to_cpu_16(udp->dst_port) - o->udp;
	bool has_sum = udp->dgram_cksum;

	if (endpoint >= (uint32_t)o->n_udp * o->n_ways)
		return SW_OUTER_NOT_OURS;
	if (endpoint >= o->n_udp)
		endpoint %= o->n_udp;
	if (udp_bytes > bytes || udp_bytes < sizeof(*udp) + SW_HEAD_BYTES)
		return SW_OUTER_SHORT;
	/* some NICs report the checksum 0 (none) as wrong */
	if (has_sum ? done.is_udp_bad : o->n_inner != SW_INNER_BYTES)
		return SW_OUTER_BAD_UDP;
	out->data = (const uint8_t *)(udp + 1);
	out->payload = out->data + SW_HEAD_BYTES;
	out->endpoint = (uint16_t)endpoint;
	out->is_lent = false;
	out->len = udp_bytes - (uint32_t)sizeof(*udp);
	out->from.udp = rte_be_to_cpu_16(udp->src_port);
	return SW_OUTER_OURS;
}

static enum sw_outer_verdict ip_check(const struct sw_outer *o, const void *at,
	uint32_t bytes, struct sw_outer_done done, struct sw_rx_frame *out)
{
	const struct inner *in = at;
	const struct inner6 *in6 = at;
	enum sw_outer_verdict v;

	if (bytes < o->n_inner)
		return SW_OUTER_SHORT;
	if (o->n_inner == SW_INNER_BYTES) {
		v = v4_check(o, &in->ip, bytes, done.is_sum_good);
		if (v != SW_OUTER_OURS)
			return v;
		out->from.ip = sw_ip_v4(rte_be_to_cpu_32(in->ip.src_addr));
		out->is_marked = sw_outer_is_marked(in->ip.type_of_service);
		bytes = rte_be_to_cpu_16(in->ip.total_length) -
			(uint32_t)sizeof(in->ip);
		return udp_check(o, &in->udp, bytes, done, out);
	}
	v = v6_check(o, &in6->ip, bytes);
	if (v == SW_OUTER_NEIGHBOUR) {
		out->data = at;
		out->len = bytes;
	}
	if (v != SW_OUTER_OURS)
		return v;
	out->from.ip = sw_ip_load(in6->ip.src_addr);
	out->is_marked = sw_outer_is_marked(
		rte_be_to_cpu_32(in6->ip.vtc_flow) >> TCLASS_SHIFT);
	return udp_check(
		o, &in6->udp, rte_be_to_cpu_16(in6->ip.payload_len), done, out);
}

enum sw_outer_verdict sw_outer_check(const struct sw_outer *o,
	const uint8_t *data, uint32_t bytes, struct sw_outer_done done,
	struct sw_rx_frame *out)
{
	const struct rte_ether_hdr *eth = (const void *)data;
	const struct rte_vlan_hdr *tag = (const void *)(eth + 1);
	uint32_t vlan = done.is_tag_off ? done.vlan & VLAN_MASK : 0;
	const uint8_t *end = data + bytes, *at = (const uint8_t *)tag;
	bool is_v4 = o->n_inner == SW_INNER_BYTES;
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
	if (type == (is_v4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4)
			   : RTE_BE16(RTE_ETHER_TYPE_IPV6)))
		return ip_check(o, at, (uint32_t)(end - at), done, out);
	if (!is_v4 || type != RTE_BE16(RTE_ETHER_TYPE_ARP))
		return SW_OUTER_NOT_OURS;
	out->data = at;
	out->len = (uint32_t)(end - at);
	return SW_OUTER_NEIGHBOUR;
}
