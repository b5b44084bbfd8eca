/* echo.h - a small UDP echo between two doctors.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A datagram is a struct sw_echo and zeros up to @bytes.  All numbers are
 * little-endian.  An answer has the bytes of its request, or fewer. */
#ifndef SW_APPS_DOCTOR_ECHO_H
#define SW_APPS_DOCTOR_ECHO_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	SW_ECHO_MOST = 9216, /* bytes of a packet, IP's headers included */
	SW_ECHO_PER_SECOND = 20000, /* answers to one source */
	SW_ECHO_SOURCES = 256,
};

#define SW_ECHO_MAGIC UINT64_C(0x524f54434f445753) /* "SWDOCTOR" */

enum sw_echo_kind {
	SW_ECHO_ASK = 1,   /* answer with as many bytes */
	SW_ECHO_SHORT = 2, /* answer with the header alone */
	SW_ECHO_ANSWER = 3,
};

struct sw_echo {
	uint64_t magic;
	uint64_t token; /* chosen by the client; echoed */
	uint32_t number;
	uint32_t bytes; /* of the request */
	uint32_t kind;
	uint32_t mtu; /* answer to SHORT: of the interface to the client */
};

union sw_echo_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* Answers to one source: a bucket of tokens. */
struct sw_echo_source {
	uint8_t ip[16];
	uint64_t at_ns;
	uint32_t tokens;
};

struct sw_echo_limits {
	struct sw_echo_source all[SW_ECHO_SOURCES];
};

/* sw_echo_judge - decide whether to answer a datagram of @n bytes that @from
 * has sent, at @now_ns.  Returns the bytes of the answer, which is written over
 * @p, or 0: no answer. */
uint32_t sw_echo_judge(struct sw_echo_limits *l,
	const union sw_echo_address *from, uint64_t now_ns, void *p,
	uint32_t n);

/* sw_echo_socket - open a datagram socket that sets DF and heeds no ICMP word
 * on the path's MTU.  Returns it, or -1 with errno. */
int sw_echo_socket(int family);

/* sw_echo_interface - find the interface by which packets to @to leave, and
 * write its name into @name (room for IF_NAMESIZE), if not NULL.  Returns its
 * MTU, 0 if there is no way. */
uint32_t sw_echo_interface(const union sw_echo_address *to, char *name);

/* sw_echo_address - read "[ADDRESS:]PORT" or "NAME[:PORT]" and resolve it.
 * @port  where the text names none; 0: it must, and may have nothing else
 * Returns bytes of @out, or 0: @why says what is wrong. */
socklen_t sw_echo_address(const char *text, uint16_t port,
	union sw_echo_address *out, char *why, uint32_t size);

#endif
