/* cpu_wait.h - how long an lcore was ready to run and had no CPU.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_CPU_WAIT_H
#define SW_APPS_NODE_CPU_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is known. */
struct sw_cpu_wait {
	uint64_t from_ns, from_wait_ns; /* the period that has begun */
	uint64_t waited_ns, period_ns;  /* the last one; 0: none is over */
};

/* sw_cpu_wait_read - read from /proc how long thread @tid of this process has
 * waited for a CPU since its begin.  False: the kernel does not say. */
bool sw_cpu_wait_read(uint32_t tid, uint64_t *ns);

/* sw_cpu_wait_look - end the period of @w and begin the next one, if it has
 * lasted for two seconds.  Thread: control. */
void sw_cpu_wait_look(struct sw_cpu_wait *w, uint32_t tid, uint64_t now_ns);

#endif
