/* frame.h - the headers before ours: Ethernet, IPv4 or IPv6, UDP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Pure functions over bytes. They use only DPDK's header structs, so tests and
 * fuzzers run without DPDK. @data must be at an even address. A port has one
 * address and so one family. A VLAN tag is allowed; IPv4 options, IPv6
 * extension headers and fragments are not.
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
	SW_V6_MORE = 20, /* length of an IPv6 header beyond an IPv4 header */
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
	uint32_t n_inner; /* n_bytes less Ethernet header and tag */
	uint32_t ip_sum;  /* unfolded checksum of the constant IPv4 header */
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
 * switches may mark it instead of dropping it (RFC 3168).
 * sw_outer_is_marked - return whether a switch marked the frame whose byte is
 * @tos. */
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
	SW_OUTER_NOT_OURS, /* not UDP of our family, or for another VLAN,
			      address or port */
	SW_OUTER_BAD_IP,   /* version, header length or checksum */
	SW_OUTER_OPTIONS,
	SW_OUTER_FRAGMENT,
	SW_OUTER_SHORT,   /* a length field exceeds the received bytes or leaves
			     no room for our header */
	SW_OUTER_BAD_UDP, /* the device found a wrong checksum, or an IPv6 frame
			     has no checksum */
	SW_OUTER_NEIGHBOUR, /* ARP or neighbour discovery of our family, on our
			       VLAN; neigh.h reads it */
};

/* Work that a driver has already done for a received frame. */
struct sw_outer_done {
	bool is_tag_off; /* the driver moved the tag to vlan */
	uint16_t vlan;
	bool is_sum_good; /* the driver verified the IPv4 checksum */
	bool is_udp_bad;  /* the driver found a wrong UDP checksum */
};

/* sw_ip_fold - return @ip folded to 32 bits: an IPv4 address itself. */
static inline uint32_t sw_ip_fold(struct sw_ip ip)
{
	uint64_t low = sw_ip_is_v4(ip) ? (uint32_t)ip.low : ip.high ^ ip.low;

	return (uint32_t)(low ^ low >> 32);
}

/* sw_mac_of_ip - return the Ethernet address of @ip on links, which have no
 * ARP: 02:53 and the four bytes of sw_ip_fold. */
uint64_t sw_mac_of_ip(struct sw_ip ip);

uint64_t sw_mac_load(const uint8_t at[6]);
void sw_mac_store(uint8_t at[6], uint64_t mac);

/* sw_outer_init - initialise @o for frames from @mac, @ip and UDP port @udp,
 * tagged for @vlan unless it is SW_VLAN_NONE. The caller may then raise n_udp
 * and n_ways above 1. */
void sw_outer_init(struct sw_outer *o, uint64_t mac, struct sw_ip ip,
	uint16_t udp, uint16_t vlan);

/* sw_outer_ethernet - write the Ethernet header and tag of a frame of @type for
 * @dst to @at; returns their bytes. */
uint32_t sw_outer_ethernet(
	const struct sw_outer *o, uint8_t *at, uint64_t dst, uint16_t type);

/* sw_outer_write - write the @o->n_bytes of headers before ours to @at. The
 * frame goes to @to through next hop @dst, from our UDP port udp + @from, and
 * has @len bytes from our header on. @class becomes the DSCP (sw_outer_tos).
 * The IPv4 checksum is complete unless the port fills it in (is_sum_later).
 * The UDP checksum is the pseudo header's sum (RFC 768) if the port completes
 * it (has_udp_sum), otherwise 0: IPv4 needs none, because our CRCs are
 * stronger, and IPv6 needs sw_outer_sum. */
void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint64_t dst,
	uint16_t from, const struct sw_path *to, uint8_t class, uint32_t len);

/* sw_outer_sum - set the UDP checksum, which IPv6 demands (RFC 8200, section
 * 8.1), of the frame whose headers, including ours, start at @at, with @len
 * bytes of @payload. For IPv6 ports without has_udp_sum. */
void sw_outer_sum(const struct sw_outer *o, uint8_t *at, const void *payload,
	uint32_t len);

/* sw_outer_check - check whether the frame of @bytes bytes at @data is a
 * datagram for @o's VLAN, address and UDP ports that can hold our header. For
 * SW_OUTER_OURS, sets @out except from.port_i and landed; for
 * SW_OUTER_NEIGHBOUR, sets @out->data and len to the bytes after the Ethernet
 * header. Reads nothing beyond @bytes. Does not compute the UDP checksum,
 * because our CRCs cover more; @done has the device's verdict. */
enum sw_outer_verdict sw_outer_check(const struct sw_outer *o,
	const uint8_t *data, uint32_t bytes, struct sw_outer_done done,
	struct sw_rx_frame *out);

#endif
