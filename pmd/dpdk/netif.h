/* netif.h - what the kernel knows of one of its network interfaces.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_DPDK_NETIF_H
#define SW_DPDK_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_netif {
	uint32_t index; /* another one after it was made anew */
	uint32_t mtu;
	bool is_up; /* it, and what is at its other end */
};

/* sw_netif_get - look at the interface @name.
 * Errors: SW_ENOENT there is none; SW_EIO. */
int sw_netif_get(const char *name, struct sw_netif *out);

/* sw_netif_queues - how many queues share what @name receives; 1 where the
 * kernel does not say. */
uint32_t sw_netif_queues(const char *name);

/* sw_netif_strips_tags - is it set to take VLAN tags off what it receives? */
bool sw_netif_strips_tags(const char *name);

/* sw_netif_names - the interfaces there are, as "lo, eth0". */
void sw_netif_names(char *out, size_t size);

/* sw_netif_of_ip - the interface that has @ip (host order) in the kernel, into
 * @name: @wanted if that has it, or else, or if @wanted is NULL, the first;
 * false: none.  A loopback interface has its whole network. */
bool sw_netif_of_ip(uint32_t ip, const char *wanted, char *name, size_t size);

/* What a socket that receives all frames of an interface is to receive: ARP,
 * and datagrams to some of our UDP ports, which count through the endpoints. */
struct sw_netif_filter {
	uint32_t ip; /* host order, as all here */
	uint16_t udp, n_udp;
	uint16_t n_endpoints;
	uint32_t endpoints; /* bits: those that are wanted */
	bool has_arp;
};
enum { SW_NETIF_ENDPOINTS = 32 };

/* sw_netif_filter - let the packet socket @fd receive that and no more.
 * Errors: SW_EIO the kernel refuses. */
int sw_netif_filter(int fd, const struct sw_netif_filter *f);

/* sw_netif_sockets - the sockets of this process that receive all frames of the
 * interface and have no filter yet, in the order in which they were made; at
 * most @max. */
uint32_t sw_netif_sockets(uint32_t if_index, int fds[], uint32_t max);

/* sw_netif_fanout - let @n packet sockets share what comes, by a hash of
 * addresses and ports.  Errors: SW_EIO the kernel refuses. */
int sw_netif_fanout(const int fds[], uint32_t n);

#endif
