/* udp_address.h - convert addresses to and from socket addresses.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_UDP_ADDRESS_H
#define SW_PMD_DPDK_UDP_ADDRESS_H

#include <netinet/in.h>

#include "engine/base/ip.h"

union sw_udp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* sw_udp_address - write the socket address of @ip and @udp to @out; returns
 * its bytes. */
static inline socklen_t sw_udp_address(
	union sw_udp_address *out, struct sw_ip ip, uint16_t udp)
{
	if (sw_ip_is_v4(ip)) {
		out->v4 = (struct sockaddr_in){.sin_family = AF_INET,
			.sin_port = htons(udp),
			.sin_addr.s_addr = htonl((uint32_t)ip.low)};
		return sizeof(out->v4);
	}
	out->v6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(udp)};
	sw_ip_store(out->v6.sin6_addr.s6_addr, ip);
	return sizeof(out->v6);
}

/* sw_udp_address_ip - return the IP address in @a. */
static inline struct sw_ip sw_udp_address_ip(const union sw_udp_address *a)
{
	if (a->any.sa_family == AF_INET6)
		return sw_ip_load(a->v6.sin6_addr.s6_addr);
	return sw_ip_v4(ntohl(a->v4.sin_addr.s_addr));
}

#endif
