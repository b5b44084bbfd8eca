/* frame.h - what stands before our header: Ethernet, IPv4, UDP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Pure functions over bytes; no DPDK, so that they can be tested and fuzzed
 * anywhere.  VLAN tags, IPv4 options, fragments and IPv6 are not spoken. */
#ifndef SW_DPDK_FRAME_H
#define SW_DPDK_FRAME_H

#include <stdint.h>

#include "engine/port.h"

enum { SW_OUTER_BYTES = 14 + 20 + 8 };

/* Constant part of all frames that one port sends. */
struct sw_outer {
	uint8_t bytes[SW_OUTER_BYTES];
	uint32_t ip_sum; /* of its IPv4 header, not folded */
	uint16_t udp;    /* of endpoint 0 */
};

enum sw_verdict {
	SW_FRAME_OURS,
	SW_FRAME_NOT_OURS, /* no IPv4 UDP, or for another address or port */
	SW_FRAME_BAD_IP,   /* version, header length or checksum */
	SW_FRAME_OPTIONS,
	SW_FRAME_FRAGMENT,
	SW_FRAME_SHORT, /* a length says more than is there, or less than our
			   header needs */
};

/* sw_mac - the Ethernet address of @ip on links of our own, where nobody
 * answers ARP: 02:53 and the four bytes of @ip. */
void sw_mac(uint32_t ip, uint8_t out[6]);

/* sw_outer_init - for frames from @ip and UDP port @udp (host order). */
void sw_outer_init(struct sw_outer *o, uint32_t ip, uint16_t udp);

/* sw_outer_write - write the SW_OUTER_BYTES of a frame for @to with @len bytes
 * from our header on, from our UDP port @udp + @endpoint.  @class goes out as
 * DSCP: 0 as CS7 … 7 as CS0.  The IPv4 checksum is set, the UDP checksum is 0
 * (none): our own CRCs are stronger. */
void sw_outer_write(const struct sw_outer *o, uint8_t *at, uint16_t endpoint,
	const struct sw_path *to, uint8_t class, uint32_t len);

/* sw_outer_check - is the frame of @bytes bytes at @data a datagram for @ip and
 * one of the @n_udp ports from @udp on that can hold our header?  Sets all of
 * @out but from.port_i only if it returns SW_FRAME_OURS.  Reads nothing beyond
 * @bytes. */
enum sw_verdict sw_outer_check(const uint8_t *data, uint32_t bytes, uint32_t ip,
	uint16_t udp, uint16_t n_udp, struct sw_rx_frame *out);

#endif
