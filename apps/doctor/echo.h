/* echo.h - a small UDP echo between two doctors.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A datagram is a struct sw_echo, padded with zeros to @bytes.  All numbers are
 * little-endian.  An answer is at most as long as its request.
 */
#ifndef SW_APPS_DOCTOR_ECHO_H
#define SW_APPS_DOCTOR_ECHO_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	SW_ECHO_MOST = 9216,        /* largest packet, with the IP header */
	SW_ECHO_PER_SECOND = 20000, /* most answers to one source per second */
	SW_ECHO_SOURCES = 256,
};

#define SW_ECHO_MAGIC UINT64_C(0x524f54434f445753) /* "SWDOCTOR" */

enum sw_echo_kind {
	SW_ECHO_ASK = 1,   /* requests an answer of the same length */
	SW_ECHO_SHORT = 2, /* requests an answer without padding */
	SW_ECHO_ANSWER = 3,
};

struct sw_echo {
	uint64_t magic;
	uint64_t token; /* chosen by the client and echoed */
	uint32_t number;
	uint32_t bytes; /* length of the request */
	uint32_t kind;
	/* answer to SHORT: MTU of the interface towards the client */
	uint32_t mtu;
};

union sw_echo_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* Limit of the answers to one source: a token bucket. */
struct sw_echo_source {
	uint8_t ip[16];
	uint64_t at_ns;
	uint32_t tokens;
};

struct sw_echo_limits {
	struct sw_echo_source all[SW_ECHO_SOURCES];
};

/* sw_echo_judge - decide whether to answer a datagram of @n bytes from @from,
 * received at @now_ns.  Returns the length of the answer, which it writes over
 * @p, or 0: no answer. */
uint32_t sw_echo_judge(struct sw_echo_limits *l,
	const union sw_echo_address *from, uint64_t now_ns, void *p,
	uint32_t n);

/* sw_echo_socket - open a datagram socket that sets DF and ignores ICMP
 * messages about the path's MTU.  Returns the socket, or -1 with errno. */
int sw_echo_socket(int family);

/* sw_echo_interface - find the interface for packets to @to, and write its name
 * to @name (room for IF_NAMESIZE), unless @name is NULL.  Returns its MTU; 0:
 * no route. */
uint32_t sw_echo_interface(const union sw_echo_address *to, char *name);

/* sw_echo_address - read "[ADDRESS:]PORT" or "NAME[:PORT]", and resolve it.
 * @port  default port; 0: the text must name the port, and may be a port only
 * Returns the bytes of @out, or 0 with the reason in @why. */
socklen_t sw_echo_address(const char *text, uint16_t port,
	union sw_echo_address *out, char *why, uint32_t size);

#endif
