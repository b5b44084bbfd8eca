/* packet.h - a driver's packet sockets: which they are, what they receive.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Thread: that which makes the device. */
#ifndef SW_PMD_DPDK_PACKET_H
#define SW_PMD_DPDK_PACKET_H

#include <stdbool.h>
#include <stdint.h>

/* What a socket that receives all frames of an interface is to receive: ARP,
 * and datagrams to some of our UDP ports, which count through the endpoints. */
struct sw_packet_filter {
	uint32_t ip; /* host order, as all here */
	uint16_t udp, n_udp;
	uint16_t n_endpoints;
	uint32_t endpoints; /* bits: those that are wanted */
	bool has_arp;
};
enum { SW_PACKET_ENDPOINTS = 32 };

/* sw_packet_filter - let the packet socket @fd receive that and no more.
 * Errors: SW_EIO the kernel refuses. */
int sw_packet_filter(int fd, const struct sw_packet_filter *f);

/* sw_packet_sockets - the sockets of this process that receive all frames of
 * the interface and have no filter yet, in the order in which they were made;
 * at most @max. */
uint32_t sw_packet_sockets(uint32_t if_index, int fds[], uint32_t max);

/* sw_packet_fanout - let @n packet sockets share what comes, by a hash of
 * addresses and ports.  Errors: SW_EIO the kernel refuses. */
int sw_packet_fanout(const int fds[], uint32_t n);

#endif
