/* gate.h - make system calls of DPDK's drivers safe; a build option (gate).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Works around the driver bugs that pmd/dpdk/meson.build lists with their
 * versions. Without the option, none of this code is compiled.
 *
 * When a memif peer disconnects, DPDK's interrupt thread marks the link down
 * and then unmaps the rings, though an lcore may be reading them: the driver's
 * only guard is a flag tested on entry. Here an lcore marks itself inside
 * during a driver call. Our munmap(), which the driver finds before libc's,
 * waits until no lcore is inside. An lcore that enters later sees the link down
 * and does not call the driver.
 */
#ifndef SW_PMD_DPDK_GATE_H
#define SW_PMD_DPDK_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_lcore.h>

#if SW_DPDK_GATE

/* One flag per lcore. It is the only writable global of this program, because
 * munmap has no argument from which to reach a handle. */
extern struct sw_gate {
	_Alignas(64) _Atomic uint32_t is_inside;
} sw_gates[RTE_MAX_LCORE];

/* sw_gate_drain - wait until every lcore has been outside the gate at least
 * once. Must not be called inside the gate. */
void sw_gate_drain(void);

/* sw_gate_silence - if the socket file @path is gone, replace the listener that
 * memif has freed by a descriptor that is never ready. Closing the listener
 * would make DPDK end the process at its next poll. Thread: DPDK's interrupt
 * thread. */
void sw_gate_silence(const char *path);

/* Enter the gate. Check the link after it; the exchange orders the two. */
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

#else

struct sw_gate;

#define sw_gate_silence NULL

static inline void sw_gate_drain(void)
{
}

static inline struct sw_gate *sw_gate_enter(void)
{
	return NULL;
}

static inline void sw_gate_leave(struct sw_gate *g)
{
	(void)g;
}

#endif

#endif
