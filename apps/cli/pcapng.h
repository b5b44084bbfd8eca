/* pcapng.h - write frames to a file that Wireshark opens.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_PCAPNG_H
#define SW_APPS_CLI_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/ip.h"

enum sw_pcapng_link {
	SW_PCAPNG_ETHERNET = 1,
	SW_PCAPNG_IP = 101, /* IPv4 or IPv6, without a link header */
};

enum sw_pcapng_way { SW_PCAPNG_UNKNOWN, SW_PCAPNG_IN, SW_PCAPNG_OUT };

enum {
	SW_PCAPNG_PARTS = 4,
	SW_PCAPNG_HEADS_MAX = 48, /* bytes: IPv6 and UDP */
};

struct sw_pcapng_part {
	const void *bytes;
	size_t n;
};

struct sw_pcapng_packet {
	uint32_t interface; /* index of sw_pcapng_interface calls, from 0 */
	enum sw_pcapng_way way;
	uint64_t at_ns; /* wall clock, as Wireshark shows it */
	uint32_t len;   /* whole packet; the parts may hold fewer bytes */
	uint32_t n_parts;
	struct sw_pcapng_part parts[SW_PCAPNG_PARTS];
};

/* sw_pcapng_begin - write the head of a file.
 * sw_pcapng_interface - write an interface; @name may be NULL.  Times are in
 * nanoseconds.
 * sw_pcapng_packet - write a packet.
 * sw_pcapng_dropped - write how many packets interface @i has lost until
 * @at_ns.
 * All return how many bytes they wrote; errors stay in @f. */
size_t sw_pcapng_begin(FILE *f);
size_t sw_pcapng_interface(FILE *f, enum sw_pcapng_link link, const char *name);
size_t sw_pcapng_packet(FILE *f, const struct sw_pcapng_packet *p);
size_t sw_pcapng_dropped(FILE *f, uint32_t i, uint64_t at_ns, uint64_t n);

/* Source and destination of a datagram. */
struct sw_pcapng_udp {
	struct sw_ip from, to; /* both of the same family */
	uint16_t from_udp, to_udp;
	uint8_t ecn;
	uint32_t len; /* bytes of payload */
};

/* sw_pcapng_heads - write the IP and UDP headers, without a checksum of the
 * payload.  Returns their length. */
size_t sw_pcapng_heads(
	uint8_t out[SW_PCAPNG_HEADS_MAX], const struct sw_pcapng_udp *u);

#endif
