/* gate.h - system calls of the memif driver, made safe.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * When a memif peer goes, DPDK's interrupt thread marks the link down and then
 * unmaps the rings, though an lcore may be reading them at that moment (DPDK
 * 22.11, drivers/net/memif: the only guard is a flag tested on entry).  Here an
 * lcore says when it is inside a driver call, and our munmap(), which the
 * driver finds before libc's, waits until no lcore is.  An lcore that enters
 * later sees the link down and calls no driver.  gate.c has two more.
 */
#ifndef SW_DPDK_GATE_H
#define SW_DPDK_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_lcore.h>

/* One flag per lcore.  The only writable variable outside of a handle in this
 * program: munmap has no argument from which to reach one. */
extern struct sw_gate {
	_Alignas(64) _Atomic uint32_t is_inside;
} sw_gates[RTE_MAX_LCORE];

/* sw_gate_drain - wait until every lcore has been outside once.  Never called
 * from inside. */
void sw_gate_drain(void);

/* sw_gate_silence - memif (22.11) frees a listener whose last device is removed
 * but neither closes its socket nor takes it from those that DPDK polls: a peer
 * that dials at that moment calls a handler of freed memory, for ever.  If no
 * file @path is left, something that is never ready takes the socket's place
 * (closing it would make DPDK end the process when it next polls anew).
 * Thread: DPDK's interrupt thread. */
void sw_gate_silence(const char *path);

/* Enter, then look at the link; the exchange orders the two. */
static inline struct sw_gate *sw_gate_enter(void)
{
	struct sw_gate *g = &sw_gates[rte_lcore_id() % RTE_MAX_LCORE];

	atomic_exchange_explicit(&g->is_inside, 1, memory_order_seq_cst);
	return g;
}

static inline void sw_gate_leave(struct sw_gate *g)
{
	atomic_store_explicit(&g->is_inside, 0, memory_order_release);
}

#endif
