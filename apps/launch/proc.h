/* proc.h - inside launch: start and end one process of a crew.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAUNCH_PROC_H
#define SW_APPS_LAUNCH_PROC_H

#include "apps/launch/crew.h"

/* sw_proc_start - start process @i of @c.
 * Errors: SW_EIO, reported on stderr. */
int sw_proc_start(struct sw_crew *c, uint32_t i);

/* sw_proc_signal - send a signal to a process and its children. */
void sw_proc_signal(const struct sw_proc *p, int number);

/* sw_proc_reap - return whether @p has ended since the last call.  If so, set
 * p->code and p->how, write all its output, and kill the rest of its group. */
bool sw_proc_reap(struct sw_proc *p);

#endif
