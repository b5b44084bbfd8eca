/* echo.c - a small UDP echo between two doctors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/doctor/echo.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/bytes.h"

#define SECOND_NS UINT64_C(1000000000)

/* Write an address in 16 bytes; an IPv4 address is mapped to IPv6. */
static void ip_of(const union sw_echo_address *a, uint8_t out[16])
{
	memset(out, 0, 16);
	if (a->any.sa_family == AF_INET6) {
		memcpy(out, &a->v6.sin6_addr, 16);
		return;
	}
	out[10] = out[11] = 0xff;
	memcpy(out + 12, &a->v4.sin_addr, 4);
}

/* Take a token of the source.  A new source replaces one that has been silent
 * for a second.  If no source has, the new one gets no answer.  Returns whether
 * to answer. */
static bool token_take(struct sw_echo_limits *l,
	const union sw_echo_address *from, uint64_t now_ns)
{
	struct sw_echo_source *s = NULL;
	uint64_t more;
	uint8_t ip[16];

	ip_of(from, ip);
	for (uint32_t i = 0; i < SW_ECHO_SOURCES && !s; i++)
		if (l->all[i].at_ns && !memcmp(l->all[i].ip, ip, sizeof(ip)))
			s = &l->all[i];
	for (uint32_t i = 0; i < SW_ECHO_SOURCES && !s; i++)
		if (!l->all[i].at_ns || now_ns - l->all[i].at_ns > SECOND_NS) {
			s = &l->all[i];
			memcpy(s->ip, ip, sizeof(ip));
			s->tokens = SW_ECHO_PER_SECOND / 10;
			s->at_ns = now_ns;
		}
	if (!s)
		return false;
	more = (now_ns - s->at_ns) * SW_ECHO_PER_SECOND / SECOND_NS;
	if (more) {
		s->tokens = s->tokens + more > SW_ECHO_PER_SECOND / 10
				    ? SW_ECHO_PER_SECOND / 10
				    : s->tokens + (uint32_t)more;
		s->at_ns = now_ns;
	}
	if (!s->tokens)
		return false;
	s->tokens--;
	return true;
}

uint32_t sw_echo_judge(struct sw_echo_limits *l,
	const union sw_echo_address *from, uint64_t now_ns, void *p, uint32_t n)
{
	struct sw_echo e;
	uint32_t answer = n;

	if (n < sizeof(e) || n > SW_ECHO_MOST)
		return 0;
	memcpy(&e, p, sizeof(e));
	if (e.magic != SW_ECHO_MAGIC || e.bytes != n ||
		(e.kind != SW_ECHO_ASK && e.kind != SW_ECHO_SHORT))
		return 0;
	if (!token_take(l, from, now_ns))
		return 0;
	if (e.kind == SW_ECHO_SHORT) {
		answer = sizeof(e);
		e.mtu = sw_echo_interface(from, NULL);
	}
	e.kind = SW_ECHO_ANSWER;
	memcpy(p, &e, sizeof(e));
	return answer;
}

int sw_echo_socket(int family)
{
	bool is_v6 = family == AF_INET6;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int probe = is_v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
	int room = 1 << 20, v4 = IP_PMTUDISC_PROBE;

	if (fd < 0)
		return -1;
	if (is_v6) /* for IPv4 packets; fails on a machine without IPv4 */
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!setsockopt(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		    is_v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe,
		    sizeof(probe)))
		return fd;
	close(fd);
	return -1;
}

/* --- interfaces --- */

static socklen_t bytes_of(const union sw_echo_address *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static uint32_t mtu_of(int fd, const char *name)
{
	struct ifreq ask = {.ifr_mtu = 0};

	snprintf(ask.ifr_name, sizeof(ask.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFMTU, &ask) ? 0 : (uint32_t)ask.ifr_mtu;
}

static uint32_t find_mtu(int fd, const union sw_echo_address *own, char *name)
{
	struct ifaddrs *all, *at;
	uint32_t mtu = 0;
	uint8_t ip[16], other[16];

	if (getifaddrs(&all))
		return 0;
	ip_of(own, ip);
	for (at = all; at && !mtu; at = at->ifa_next) {
		if (!at->ifa_addr ||
			(at->ifa_addr->sa_family != AF_INET &&
				at->ifa_addr->sa_family != AF_INET6))
			continue;
		ip_of((const union sw_echo_address *)at->ifa_addr, other);
		if (memcmp(ip, other, sizeof(ip)))
			continue;
		mtu = mtu_of(fd, at->ifa_name);
		if (name)
			snprintf(name, IF_NAMESIZE, "%s", at->ifa_name);
	}
	freeifaddrs(all);
	return mtu;
}

uint32_t sw_echo_interface(const union sw_echo_address *to, char *name)
{
	union sw_echo_address own;
	socklen_t size = sizeof(own);
	uint32_t mtu = 0;
	int fd = sw_echo_socket(to->any.sa_family);

	if (fd < 0)
		return 0;
	memset(&own, 0, sizeof(own));
	if (!connect(fd, &to->any, bytes_of(to)) &&
		!getsockname(fd, &own.any, &size))
		mtu = find_mtu(fd, &own, name);
	close(fd);
	return mtu;
}

/* --- addresses --- */

/* Cut the port off @host, and the brackets of an address.  Returns the port's
 * text, or NULL if there is none. */
static const char *port_split(char *host)
{
	char *colon = strrchr(host, ':'), *end;

	if (host[0] == '[') {
		end = strchr(host, ']');
		if (!end)
			return NULL;
		*end = '\0';
		memmove(host, host + 1, strlen(host));
		return end[1] == ':' ? end + 2 : NULL;
	}
	if (!colon || strchr(host, ':') != colon) /* a bare IPv6 address */
		return NULL;
	*colon = '\0';
	return colon + 1;
}

socklen_t sw_echo_address(const char *text, uint16_t port,
	union sw_echo_address *out, char *why, uint32_t size)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM,
		.ai_flags =
			port ? AI_NUMERICSERV
			     : AI_NUMERICSERV | AI_PASSIVE | AI_NUMERICHOST};
	struct addrinfo *found = NULL;
	char host[300], digits[16], *end = NULL;
	const char *service;
	unsigned long number = port;
	socklen_t n;
	int err;

	snprintf(host, sizeof(host), "%s", text);
	service = port_split(host);
	if (!service && !port) { /* @text is only a port */
		service = text;
		host[0] = '\0';
	}
	if (service) {
		number = strtoul(service, &end, 10);
		if (*service < '0' || *service > '9' || *end || !number ||
			number > UINT16_MAX) {
			snprintf(why, size,
				"%s: \"%s\" is no UDP port from 1 to 65535",
				text, service);
			return 0;
		}
	}
	snprintf(digits, sizeof(digits), "%lu", number);
	if (port && !*host) {
		snprintf(why, size, "\"%s\" names no machine", text);
		return 0;
	}
	err = getaddrinfo(*host ? host : "::", digits, &hints, &found);
	if (err) {
		snprintf(why, size, "%s: %s", text, gai_strerror(err));
		return 0;
	}
	n = (socklen_t)found->ai_addrlen;
	memcpy(out, found->ai_addr, n);
	freeaddrinfo(found);
	return n;
}
