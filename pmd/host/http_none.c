/* http_none.c - replaces http.c in a build without libmicrohttpd.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/base/error.h"
#include "pmd/host/http.h"

int sw_http_open(const char *address, sw_http_fn make, void *ctx,
	char at[SW_HTTP_ADDRESS], char why[SW_HTTP_WHY], struct sw_http **out)
{
	(void)address;
	(void)make;
	(void)ctx;
	(void)at;
	(void)out;
	snprintf(why, SW_HTTP_WHY, "built without libmicrohttpd");
	return SW_EIO;
}

void sw_http_close(struct sw_http **h)
{
	(void)h;
}
