/* http.c - serve pages over HTTP by libmicrohttpd.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

enum { CONNECTIONS = 256, SILENCE_S = 10, BACKLOG = 512 };

struct sw_http {
	struct MHD_Daemon *daemon;
	sw_http_fn make;
	void *ctx;
};

static enum MHD_Result answer(struct MHD_Connection *c, unsigned code,
	struct MHD_Response *r, const char *type)
{
	enum MHD_Result result = MHD_NO;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result refuse(
	struct MHD_Connection *c, unsigned code, const char *text)
{
	return answer(c, code,
		MHD_create_response_from_buffer(
			strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT),
		"text/plain; charset=utf-8");
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c,
	const char *url, const char *method, const char *version,
	const char *upload, size_t *upload_size, void **state)
{
	static const char
		seen; /* its address marks a request whose head was read */
	struct sw_http *h = ctx;
	struct sw_http_page page = {0};
	const char *accept;
	int err;

	(void)version;
	(void)upload;
	if (strcmp(method, MHD_HTTP_METHOD_GET) &&
		strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(
			c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (!*state) {
		*state = (void *)&seen;
		return MHD_YES;
	}
	*upload_size = 0; /* a body is ignored */
	accept = MHD_lookup_connection_value(
		c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	err = h->make(h->ctx, url, accept ? accept : "", &page);
	if (err == SW_ENOENT)
		return refuse(c, MHD_HTTP_NOT_FOUND, "see /metrics\n");
	if (err)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE,
			"no memory; try again\n");
	return answer(c, MHD_HTTP_OK,
		MHD_create_response_from_buffer(
			page.len, page.text, MHD_RESPMEM_MUST_FREE),
		page.type);
}

/* Parse a numeric "HOST:PORT" or "[HOST]:PORT". Returns a list for
 * freeaddrinfo, or NULL. */
static struct addrinfo *parse(const char *address)
{
	struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	char host[SW_HTTP_ADDRESS];
	const char *colon = strrchr(address, ':');
	size_t n = colon ? (size_t)(colon - address) : 0;
	bool is_v6 = n > 2 && address[0] == '[' && address[n - 1] == ']';

	if (!n || n >= sizeof(host) || !colon[1] ||
		strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
		(!is_v6 && memchr(address, ':', n)))
		return NULL;
	snprintf(host, sizeof(host), "%.*s", (int)(is_v6 ? n - 2 : n),
		address + is_v6);
	return getaddrinfo(host, colon + 1, &hints, &all) ? NULL : all;
}

static int fail(
	int err, const char *address, const char *what, char why[SW_HTTP_WHY])
{
	snprintf(why, SW_HTTP_WHY, "%.64s: %s", address, what);
	return err;
}

static int start(struct sw_http *h, const struct sockaddr *a)
{
	unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD;

	if (a->sa_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	h->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, h,
		MHD_OPTION_SOCK_ADDR, a, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)SILENCE_S, MHD_OPTION_LISTEN_BACKLOG_SIZE,
		(unsigned)BACKLOG, MHD_OPTION_END);
	return h->daemon ? 0 : SW_EIO;
}

int sw_http_open(const char *address, sw_http_fn make, void *ctx,
	char at[SW_HTTP_ADDRESS], char why[SW_HTTP_WHY], struct sw_http **out)
{
	struct addrinfo *a = parse(address);
	const char *colon = strrchr(address, ':');
	struct sw_http *h;
	int err;

	if (!a)
		return fail(SW_EINVAL, address,
			"no address like 127.0.0.1:9410 or [::1]:9410", why);
	h = calloc(1, sizeof(*h));
	if (!h) {
		freeaddrinfo(a);
		return fail(SW_ENOMEM, address, "no memory", why);
	}
	h->make = make;
	h->ctx = ctx;
	err = start(h, a->ai_addr);
	freeaddrinfo(a);
	if (err) {
		free(h);
		return fail(err, address,
			errno ? strerror(errno) : "cannot listen there", why);
	}
	snprintf(at, SW_HTTP_ADDRESS, "%.*s:%u", (int)(colon - address),
		address,
		MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT)
			->port);
	*out = h;
	return 0;
}

void sw_http_close(struct sw_http **h)
{
	if (!*h)
		return;
	MHD_stop_daemon((*h)->daemon);
	free(*h);
	*h = NULL;
}
