/* log.h - log lines of a process, to stderr.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LOG_H
#define SW_APPS_LOG_H

#include "engine/log.h"

/* sw_log_init - make @log write "SECONDS LEVEL TEXT" to stderr, one write per
 * line, for @level and what is more urgent.  SECONDS is the monotonic clock
 * (since boot).  Thread: lines of any thread stay whole. */
void sw_log_init(struct sw_log *log, enum sw_log_level level);

#endif
