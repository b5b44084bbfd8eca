/* bell.h - wake a sleeping lcore when another thread has work for it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The work itself lies in rings; the bell only ends a sleep. A sleeper
 * announces its sleep, then checks the rings. A producer puts an entry, then
 * checks in this and every later turn whether the reader sleeps, and rings. So
 * one of the two sees the other, and no fence is needed on the packet path.
 */
#ifndef SW_PMD_HOST_BELL_H
#define SW_PMD_HOST_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sw_bell {
	int fd; /* an eventfd, valid while is_open */
	bool is_open;
	/* The sleeper waits and has not been rung. */
	_Alignas(64) _Atomic uint32_t is_awaited;
};

/* sw_bell_open - open a closed or zeroed bell. Errors: SW_ENOMEM, the process
 * has no descriptor left. sw_bell_close - close it, if it is open. */
int sw_bell_open(struct sw_bell *b);
void sw_bell_close(struct sw_bell *b);

/* sw_bell_await - announce a sleep; the sleeper then checks its rings a last
 * time, and its descriptor is readable once the bell rings. sw_bell_done - end
 * the sleep. */
void sw_bell_await(struct sw_bell *b);
void sw_bell_done(struct sw_bell *b);

/* sw_bell_is_awaited - return whether the lcore sleeps and may not have seen
 * its rings; ask again in each turn. sw_bell_ring - end the sleep, if there is
 * one; rings once per sleep. Any thread. */
static inline bool sw_bell_is_awaited(const struct sw_bell *b)
{
	return atomic_load_explicit(&b->is_awaited, memory_order_relaxed);
}

void sw_bell_ring(struct sw_bell *b);

/* sw_bell_fd - return the descriptor of an open bell. */
static inline int sw_bell_fd(const struct sw_bell *b)
{
	return b->fd;
}

#endif
