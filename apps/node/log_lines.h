/* log_lines.h - log lines of an lcore, which the control thread writes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a line takes one or two system calls, so the lcore only formats it.
 * If the queue is full, the line is dropped, and the next line tells how many
 * were.
 */
#ifndef SW_APPS_NODE_LOG_LINES_H
#define SW_APPS_NODE_LOG_LINES_H

#include "engine/base/log.h"

struct sw_lines;

/* sw_lines_open - make an empty queue, *out, that writes to @to.  @to is
 * borrowed and gives the level.  Errors: SW_ENOMEM. */
int sw_lines_open(struct sw_lines **out, const struct sw_log *to);

/* sw_lines_log - return the lcore's log, for one thread at a time. */
const struct sw_log *sw_lines_log(const struct sw_lines *l);

/* sw_lines_set_level - change the level.  Thread: control. */
void sw_lines_set_level(struct sw_lines *l, enum sw_log_level level);

/* sw_lines_write - write the queued lines.  The control thread calls it
 * regularly. */
void sw_lines_write(struct sw_lines *l);

/* sw_lines_close - write the queued lines, and close.  @l may be NULL. */
void sw_lines_close(struct sw_lines *l);

#endif
