/* reserve.c - the server's memory, made and unmade beside the polling lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/reserve.h"

#include <stddef.h>

#include "pmd/host/memory.h"

enum { NONE, WANTED, MADE, FAILED };

enum {
	PAGE = 4096,
	SMALL = 1 << 20, /* the lcore makes it itself: well under 1 ms */
};

struct sw_reserve_dead {
	struct sw_reserve_dead *next;
	uint64_t bytes;
};

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* What a batch did not need, or a worker did not come back for. */
static void drop_rest(struct sw_reserve *r)
{
	sw_reserve_put(r, r->next, r->left_bytes);
	r->left_bytes = 0;
	r->is_taken = false;
	atomic_store(&r->state, NONE);
}

bool sw_reserve_ready(struct sw_reserve *r, uint64_t bytes)
{
	switch (atomic_load_explicit(&r->state, memory_order_acquire)) {
	case WANTED:
		return false;
	case FAILED:
		atomic_store(&r->state, NONE);
		return true; /* sw_reserve_get will say that there is none */
	case MADE:
		if (r->left_bytes >= bytes)
			return true;
		drop_rest(r);
		break;
	default:
		break;
	}
	if (bytes <= SMALL)
		return true;
	r->wanted_bytes = whole_pages(bytes);
	atomic_store_explicit(&r->state, WANTED, memory_order_release);
	return false;
}

void *sw_reserve_get(struct sw_reserve *r, uint64_t bytes)
{
	uint64_t size = whole_pages(bytes);
	char *mem = r->next;

	if (atomic_load_explicit(&r->state, memory_order_acquire) != MADE ||
		r->left_bytes < size)
		return size <= SMALL ? sw_memory_get(size, r->node) : NULL;
	r->next += size;
	r->left_bytes -= size;
	r->is_taken = true;
	return mem;
}

void sw_reserve_put(struct sw_reserve *r, void *mem, uint64_t bytes)
{
	struct sw_reserve_dead *d = mem;

	if (!whole_pages(bytes))
		return;
	*d = (struct sw_reserve_dead){
		.next = r->dead, .bytes = whole_pages(bytes)};
	r->dead = d;
}

void sw_reserve_turn(struct sw_reserve *r)
{
	struct sw_reserve_dead *none = NULL;

	if (r->is_taken)
		drop_rest(r); /* a batch is admitted within one turn */
	if (r->dead &&
		atomic_compare_exchange_strong(&r->leaving, &none, r->dead))
		r->dead = NULL;
}

bool sw_reserve_is_leaving(const struct sw_reserve *r)
{
	return atomic_load_explicit(&r->leaving, memory_order_acquire);
}

void sw_reserve_pass(struct sw_reserve *r)
{
	struct sw_reserve_dead *none = NULL, *dead = atomic_load(&r->leaving);

	if (dead && atomic_compare_exchange_strong(&r->to_unmap, &none, dead))
		atomic_store(&r->leaving, NULL);
}

static void unmap(struct sw_reserve_dead *d)
{
	while (d) {
		struct sw_reserve_dead *next = d->next;

		sw_memory_put(d, d->bytes);
		d = next;
	}
}

void sw_reserve_work(struct sw_reserve *r)
{
	unmap(atomic_exchange(&r->to_unmap, NULL));
	if (atomic_load_explicit(&r->state, memory_order_acquire) != WANTED)
		return;
	r->next = sw_memory_get(r->wanted_bytes, r->node);
	r->left_bytes = r->next ? r->wanted_bytes : 0;
	atomic_store_explicit(
		&r->state, r->next ? MADE : FAILED, memory_order_release);
}

void sw_reserve_close(struct sw_reserve *r)
{
	if (atomic_load(&r->state) == MADE)
		sw_reserve_put(r, r->next, r->left_bytes);
	unmap(atomic_exchange(&r->to_unmap, NULL));
	unmap(atomic_exchange(&r->leaving, NULL));
	unmap(r->dead);
	r->dead = NULL;
}
