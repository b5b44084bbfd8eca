/* cpu_wait.h - how long an lcore was ready to run and had no CPU.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_CPU_WAIT_H
#define SW_APPS_NODE_CPU_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing is known. */
struct sw_cpu_wait {
	uint64_t from_ns, from_wait_ns; /* begin of the current period */
	/* last period; period_ns 0: none has ended */
	uint64_t waited_ns, period_ns;
};

/* sw_cpu_wait_read - read from /proc how long thread @tid of this process has
 * waited for a CPU since it began.  Returns false if the kernel does not
 * tell. */
bool sw_cpu_wait_read(uint32_t tid, uint64_t *ns);

/* sw_cpu_wait_look - end the period of @w and begin the next one, if it has
 * lasted for two seconds.  Thread: control. */
void sw_cpu_wait_look(struct sw_cpu_wait *w, uint32_t tid, uint64_t now_ns);

#endif
