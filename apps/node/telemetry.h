/* telemetry.h - serve this daemon's counters to dpdk-telemetry.py.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_TELEMETRY_H
#define SW_APPS_NODE_TELEMETRY_H

#include "apps/cli/scratch.h"
#include "conf/conf.h"

struct sw_daemon;
struct sw_dpdk_telemetry;

/* All zero: [node] telemetry = no. */
struct sw_telemetry {
	struct sw_scratch scratch;     /* DPDK's runtime folder */
	char link[SW_CONF_PATH_BYTES]; /* link to the folder, at a known path */
	struct sw_dpdk_telemetry *commands;
};

/* sw_telemetry_open - answer /sumwire commands.  DPDK must run, with its folder
 * in d->telemetry.scratch.  If that fails, the daemon runs without them.
 * sw_telemetry_give - give the files that root has made to [node] user.
 * sw_telemetry_close - stop.  Must be called before the data of the answers is
 * freed.  Thread of all: control. */
void sw_telemetry_open(struct sw_daemon *d);
void sw_telemetry_give(const struct sw_daemon *d);
void sw_telemetry_close(struct sw_daemon *d);

#endif
