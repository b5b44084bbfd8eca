/* stats_serve.h - serve this daemon's counters over a Unix socket.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_STATS_SERVE_H
#define SW_PMD_HOST_STATS_SERVE_H

#include <stdint.h>

#include "engine/base/log.h"

struct sw_stats_serve;

/* Write all counters through @put, one call each. */
typedef void (*sw_stats_fill_fn)(void *ctx,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* sw_stats_serve_open - listen at the Unix socket @path (mode 0666 less the
 * umask; counters are no secret). Replaces a stale socket file. Errors:
 * SW_EBUSY a process listens there; SW_EINVAL the path is too long, or is not a
 * socket; SW_EIO; logged. Also SW_ENOMEM. */
int sw_stats_serve_open(const char *path, sw_stats_fill_fn fill, void *ctx,
	const struct sw_log *log, struct sw_stats_serve **out);

/* sw_stats_serve_poll - answer new connections with lines "NAME VALUE", then
 * close them. Never blocks; a slow reader gets fewer lines. */
void sw_stats_serve_poll(struct sw_stats_serve *s);

/* sw_stats_serve_path - return the path of the socket. */
const char *sw_stats_serve_path(const struct sw_stats_serve *s);

/* sw_stats_serve_close - stop, remove the socket file.  *@s may be NULL. */
void sw_stats_serve_close(struct sw_stats_serve **s);

#endif
