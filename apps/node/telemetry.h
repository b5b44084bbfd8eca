/* telemetry.h - this daemon's counters for dpdk-telemetry.py.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_TELEMETRY_H
#define SW_APPS_NODE_TELEMETRY_H

#include "apps/cli/scratch.h"
#include "conf/conf.h"

struct sw_daemon;
struct sw_dpdk_telemetry;

/* Zeroed: [node] telemetry = no. */
struct sw_telemetry {
	struct sw_scratch scratch;     /* DPDK's runtime folder */
	char link[SW_CONF_PATH_BYTES]; /* to it, at a path that is known */
	struct sw_dpdk_telemetry *commands;
};

/* sw_telemetry_open - answer /sumwire commands, once DPDK runs with its folder
 * in d->telemetry.scratch.  If that fails, the daemon runs without them.
 * sw_telemetry_give - give what root has made to [node] user.
 * sw_telemetry_close - stop before anything is freed that answers read.
 * Thread: control. */
void sw_telemetry_open(struct sw_daemon *d);
void sw_telemetry_give(const struct sw_daemon *d);
void sw_telemetry_close(struct sw_daemon *d);

#endif
