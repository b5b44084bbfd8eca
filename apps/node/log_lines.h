/* log_lines.h - log lines of an lcore, which the control thread writes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a line takes a system call or two, so the lcore only formats it.
 * Lines that find no room are dropped, and the next line that fits reports how
 * many.
 */
#ifndef SW_APPS_NODE_LOG_LINES_H
#define SW_APPS_NODE_LOG_LINES_H

#include "engine/base/log.h"

struct sw_lines;

/* sw_lines_open - make an empty queue in *out whose lines go to @to, which is
 * borrowed and sets the level. Errors: SW_ENOMEM. */
int sw_lines_open(struct sw_lines **out, const struct sw_log *to);

/* sw_lines_log - return the lcore's log, for one thread at a time. */
const struct sw_log *sw_lines_log(const struct sw_lines *l);

/* sw_lines_write - write the queued lines. Control thread, periodically. */
void sw_lines_write(struct sw_lines *l);

/* sw_lines_close - write the rest.  @l may be NULL. */
void sw_lines_close(struct sw_lines *l);

#endif
