/* http.h - serve pages over HTTP.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_HTTP_H
#define SW_PMD_HOST_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct sw_http;

/* A page that is made for a request. */
struct sw_http_page {
	char *text; /* malloc; the server frees it */
	size_t len;
	const char *type; /* "text/plain"; static */
};

/* Make the page @path for a reader whose Accept header is @accept ("" if it
 * sent none). Returns 0, SW_ENOENT if there is no such page, or another error
 * if the page cannot be made now. Thread: the server's, one call at a time. */
typedef int (*sw_http_fn)(void *ctx, const char *path, const char *accept,
	struct sw_http_page *out);

enum { SW_HTTP_ADDRESS = 64, SW_HTTP_WHY = 160 };

/* sw_http_open - serve GET and HEAD at @address, "127.0.0.1:9410" or
 * "[::1]:9410"; port 0 takes a free port. Disconnects a reader that sends or
 * reads nothing for 10 s, and readers beyond 256.
 * @at   becomes the address with its port
 * @why  becomes the reason of an error
 * Errors: SW_EINVAL invalid address; SW_ENOMEM; SW_EIO it cannot listen there,
 * or was built without HTTP. */
int sw_http_open(const char *address, sw_http_fn make, void *ctx,
	char at[SW_HTTP_ADDRESS], char why[SW_HTTP_WHY], struct sw_http **out);

/* sw_http_close - stop; running requests are answered or disconnected. *@h may
 * be NULL. */
void sw_http_close(struct sw_http **h);

#endif
