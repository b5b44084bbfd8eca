/* frame.h - the headers before ours: Ethernet, IPv4 or IPv6, UDP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Pure functions over bytes. They use DPDK's structs of the headers and nothing
 * else of DPDK, so that tests and fuzzers run without it. @data is at an even
 * address. A port has one address, and so one family. A VLAN tag is allowed;
 * IPv4 options, IPv6 extension headers and fragments are not.
 */
#ifndef SW_PMD_DPDK_FRAME_H
#define SW_PMD_DPDK_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/loop/port.h"

enum {
	SW_INNER_BYTES = 20 + 8,              /* IPv4 and UDP */
	SW_OUTER_BYTES = 14 + SW_INNER_BYTES, /* bytes before our header in an
						 untagged IPv4 frame */
	SW_V6_MORE = 20, /* bytes that an IPv6 header has more than an IPv4 one
			  */
	SW_TAG_BYTES = 4,
	SW_OUTER_MAX = SW_OUTER_BYTES + SW_V6_MORE + SW_TAG_BYTES,
	SW_VLAN_NONE = 0, /* no tag, or a priority tag */
	/* ECN field (RFC 3168, section 5). */
	SW_ECN_CAPABLE = 2,
	SW_ECN_MARKED = 3,
	/* ICMPv6 types of neighbour discovery (RFC 4861, sections 4.3, 4.4). */
	SW_ND_SOLICITATION = 135,
	SW_ND_ADVERTISEMENT = 136,
};

/* Our addresses on one port, and the constant part of all frames that it sends.
 * An Ethernet address is a number whose lowest byte goes first on the wire; 0
 * means no address. */
struct sw_outer {
	uint8_t bytes[SW_OUTER_MAX];
	uint32_t n_bytes; /* bytes before our header */
	uint32_t n_inner; /* without Ethernet header and tag */
	uint32_t ip_sum;  /* sum of its IPv4 header, not folded */
	uint64_t mac;
	struct sw_ip ip;
	/* Our first UDP port, number of endpoints, and UDP ports of each
	 * (port.h), in host order. */
	uint16_t udp, n_udp, n_ways;
	uint16_t vlan;     /* 1 … 4094, or SW_VLAN_NONE */
	bool is_sum_later; /* the port fills in the IPv4 checksum */
	bool has_udp_sum;  /* the port computes a UDP checksum from a start
			      value */
};

/* sw_outer_tos - return the IPv4 TOS or IPv6 traffic class byte of a frame of
 * @class: DSCP CS7 for 0 … CS0 for 7, higher classes wrap; and ECT(0), so that
 * switches may mark it in place of dropping it (RFC 3168).
 * sw_outer_is_marked - has one done so? */
static inline uint8_t sw_outer_tos(uint8_t class)
{
	return (uint8_t)((7 - (class & 7)) << 5 | SW_ECN_CAPABLE);
}

static inline bool sw_outer_is_marked(uint32_t tos)
{
	return (tos & SW_ECN_MARKED) == SW_ECN_MARKED;
}

enum sw_outer_verdict {
	SW_OUTER_OURS,
	SW_OUTER_NOT_OURS, /* no UDP of our family, or for another address or
			      port */
	SW_OUTER_BAD_IP,   /* version, header length or checksum */
	SW_OUTER_OPTIONS,
	SW_OUTER_FRAGMENT,
	SW_OUTER_SHORT,     /* a length says more than is there, or less than
			       our header needs */
	SW_OUTER_BAD_UDP,   /* the device found its checksum wrong, or an IPv6
			       frame has none */
	SW_OUTER_NEIGHBOUR, /* ARP or neighbour discovery of our family, on our
			       VLAN; what it says is neigh.h's business */
};

/* Work that a driver has already done for a received frame. */
struct sw_outer_done {
	bool is_tag_off; /* it removed the tag: */
	uint16_t vlan;
	bool is_sum_good; /* it checked the IPv4 checksum */
	bool is_udp_bad;  /* it found the UDP checksum wrong */
};

/* sw_ip_fold - return 32 bits of @ip; of an IPv4 address, all. */
static inline uint32_t sw_ip_fold(struct sw_ip ip)
{
	uint64_t low = sw_ip_is_v4(ip) ? (uint32_t)ip.low : ip.high ^ ip.low;

	return (uint32_t)(low ^ low >> 32);
}

/* sw_mac_of_ip - the Ethernet address of @ip on links of our own, where nobody
 * is asked: 02:53 and the four bytes of sw_ip_fold. */
uint64_t sw_mac_of_ip(struct sw_ip ip);

uint64_t sw_mac_load(const uint8_t at[6]);
void sw_mac_store(uint8_t at[6], uint64_t mac);

/* sw_outer_init - for frames from @mac, @ip and UDP port @udp (one, until n_udp
 * and n_ways are set), tagged for @vlan unless it is SW_VLAN_NONE. */
void sw_outer_init(struct sw_outer *o, uint64_t mac, struct sw_ip ip,
	uint16_t udp, uint16_t vlan);

/* sw_outer_ethernet - write the Ethernet header and tag of a frame of @type to
 * @dst; returns its bytes. */
uint32_t sw_outer_ethernet(
	const struct sw_outer *o, uint8_t *at, uint64_t dst, uint16_t type);

/* sw_outer_write - write the @o->n_bytes before our header: a frame for @to
 * with next hop @dst, from our UDP port udp + @from, with @len bytes from our
 * header on. @class becomes the DSCP (sw_outer_tos). The IPv4 checksum is set,
 * unless the port fills it in. If the port computes a UDP checksum at no cost,
 * it is the sum of the pseudo header (RFC 768) as start value. Otherwise it is
 * 0: none over IPv4, because our CRCs are stronger, and over IPv6 what
 * sw_outer_sum replaces. */
void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint64_t dst,
	uint16_t from, const struct sw_path *to, uint8_t class, uint32_t len);

/* sw_outer_sum - set the UDP checksum, which IPv6 demands (RFC 8200, section
 * 8.1), of the frame whose headers and ours are at @at, with @len bytes of
 * @payload. For ports without has_udp_sum. */
void sw_outer_sum(const struct sw_outer *o, uint8_t *at, const void *payload,
	uint32_t len);

/* sw_outer_check - check whether the frame of @bytes bytes at @data is a
 * datagram for @o's VLAN, address and UDP ports that can hold our header. For
 * SW_OUTER_OURS, sets @out except from.port_i and landed; for
 * SW_OUTER_NEIGHBOUR, sets @out->data and len to the bytes behind the Ethernet
 * header. Reads nothing beyond @bytes. The UDP checksum is the device's
 * business: our CRCs cover more. */
enum sw_outer_verdict sw_outer_check(const struct sw_outer *o,
	const uint8_t *data, uint32_t bytes, struct sw_outer_done done,
	struct sw_rx_frame *out);

#endif
