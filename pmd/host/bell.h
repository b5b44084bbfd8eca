/* bell.h - wakes an lcore that sleeps: others have something for it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What they have lies in rings, which say by themselves what is in them; the
 * bell ends a sleep, no more.  Who goes to sleep says so, then looks at the
 * rings; who has put something there looks whether its reader sleeps, now and
 * in each turn to come, then rings.  So one of the two sees the other, and no
 * turn pays for a barrier.
 */
#ifndef SW_PMD_HOST_BELL_H
#define SW_PMD_HOST_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sw_bell {
	int fd; /* an eventfd; only while is_open */
	bool is_open;
	_Alignas(64) _Atomic uint32_t is_awaited; /* nobody has rung since */
};

/* sw_bell_open - a closed one, or zeros.  Errors: SW_ENOMEM, the process has no
 * descriptor left.  sw_bell_close - also one that is not open. */
int sw_bell_open(struct sw_bell *b);
void sw_bell_close(struct sw_bell *b);

/* The sleeper: sw_bell_await - before it looks at its rings for the last time;
 * its descriptor is readable from then on when somebody rings.  sw_bell_done -
 * it sleeps no more. */
void sw_bell_await(struct sw_bell *b);
void sw_bell_done(struct sw_bell *b);

/* sw_bell_is_awaited - does its lcore sleep, which may not have seen what is in
 * its rings?  To be asked again.  sw_bell_ring - end a sleep, if there is one:
 * once for each.  Any thread. */
static inline bool sw_bell_is_awaited(const struct sw_bell *b)
{
	return atomic_load_explicit(&b->is_awaited, memory_order_relaxed);
}

void sw_bell_ring(struct sw_bell *b);

/* sw_bell_fd - what is readable then, of an open one. */
static inline int sw_bell_fd(const struct sw_bell *b)
{
	return b->fd;
}

#endif
