/* bell.c - wake a sleeping lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/bell.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"

int sw_bell_open(struct sw_bell *b)
{
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->is_open = b->fd >= 0;
	return b->is_open ? 0 : SW_ENOMEM;
}

void sw_bell_close(struct sw_bell *b)
{
	if (b->is_open)
		close(b->fd);
	b->is_open = false;
}

void sw_bell_await(struct sw_bell *b)
{
	sw_edge_doze(&b->is_awaited);
}

/* A ringer may write after this read. Its write then ends the next sleep at
 * once, and the next sw_bell_done consumes it. */
void sw_bell_done(struct sw_bell *b)
{
	uint64_t n;

	atomic_store_explicit(&b->is_awaited, 0, memory_order_relaxed);
	(void)!read(b->fd, &n, sizeof(n));
}

void sw_bell_ring(struct sw_bell *b)
{
	const uint64_t one = 1;

	if (sw_edge_is_asleep(&b->is_awaited))
		(void)!write(b->fd, &one, sizeof(one));
}
