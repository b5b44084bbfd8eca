/* log_lines.h - log lines of an lcore, which the control thread writes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * To write one is a system call or two; the lcore only formats it.  Lines that
 * find no room are dropped, and the next one that does says how many.
 */
#ifndef SW_APPS_NODE_LOG_LINES_H
#define SW_APPS_NODE_LOG_LINES_H

#include "engine/base/log.h"

struct sw_lines;

/* sw_lines_open - none so far, *out; those that come go to @to, which is
 * borrowed and says the level.  Errors: SW_ENOMEM. */
int sw_lines_open(struct sw_lines **out, const struct sw_log *to);

/* sw_lines_log - the lcore's log: of one thread at a time. */
const struct sw_log *sw_lines_log(const struct sw_lines *l);

/* sw_lines_write - write what has come.  Control, now and then. */
void sw_lines_write(struct sw_lines *l);

/* sw_lines_close - write the rest.  @l may be NULL. */
void sw_lines_close(struct sw_lines *l);

#endif
