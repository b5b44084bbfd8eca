/* packet.h - find and filter a driver's packet sockets.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Thread: the thread that makes the device.
 */
#ifndef SW_PMD_DPDK_PACKET_H
#define SW_PMD_DPDK_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/ip.h"

/* Frames to accept on a packet socket of an interface: ARP or neighbour
 * discovery, and datagrams to the UDP ports of some endpoints. Port udp + i
 * belongs to endpoint i % n_endpoints. */
struct sw_packet_filter {
	struct sw_ip ip;
	uint16_t udp, n_udp; /* host order */
	uint16_t n_endpoints;
	uint32_t endpoints; /* bit mask of endpoints to accept */
	bool has_neighbours;
};
enum { SW_PACKET_ENDPOINTS = 32 };

/* sw_packet_filter - let packet socket @fd receive only these frames. Errors:
 * SW_EIO the kernel refuses. */
int sw_packet_filter(int fd, const struct sw_packet_filter *f);

/* sw_packet_sockets - return at most @max packet sockets of this process that
 * receive all frames of the interface and have no filter yet, in the order of
 * their creation. */
uint32_t sw_packet_sockets(uint32_t if_index, int fds[], uint32_t max);

/* sw_packet_fanout - distribute received frames over @n packet sockets by a
 * hash of addresses and ports. Errors: SW_EIO the kernel refuses. */
int sw_packet_fanout(const int fds[], uint32_t n);

#endif
