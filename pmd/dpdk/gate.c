/* gate.c - no thread unmaps memory while an lcore is inside a driver call.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/gate.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sw_gate sw_gates[RTE_MAX_LCORE];

void sw_gate_drain(void)
{
	/* What the caller wrote before (link down) is seen by an lcore that
	 * enters from here on. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < RTE_MAX_LCORE; i++)
		while (atomic_load_explicit(
			&sw_gates[i].is_inside, memory_order_acquire))
			sched_yield();
}

/* Found before libc's by every library of the process, the driver included. */
__attribute__((visibility("default"))) int munmap(void *at, size_t bytes)
{
	sw_gate_drain();
	return (int)syscall(SYS_munmap, at, bytes);
}
