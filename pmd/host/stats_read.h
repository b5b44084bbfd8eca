/* stats_read.h - read the counters of a running daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_STATS_READ_H
#define SW_PMD_HOST_STATS_READ_H

#include <stdint.h>

/* sw_stats_read - connect to the stats socket @path and call @each for every
 * counter, in the daemon's order.
 * @each   @name is borrowed for the call
 * Lines are "NAME VALUE\n", at most 255 bytes, decimal.
 * Errors: SW_ECLOSED no process listens there, or the daemon ended; SW_EPERM
 * the daemon belongs to another user; SW_ETIMEDOUT the daemon sent nothing for
 * 5 s; SW_EPROTO a socket of another type, or an invalid line; SW_EINVAL @path
 * is too long; SW_ENOMEM; SW_EIO. Thread: any. */
int sw_stats_read(const char *path,
	void (*each)(void *ctx, const char *name, uint64_t value), void *ctx);

#endif
