/* reserve.c - an lcore's memory, mapped and unmapped by the control thread.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/reserve.h"

#include <stddef.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "pmd/host/memory.h"

/* States of a block.  In WANTED and UNWANTED the control thread owns the block,
 * in the others the lcore. */
enum {
	NONE,
	WANTED,   /* to be mapped and made present */
	MADE,     /* all of it is present */
	FAILED,   /* out of memory */
	UNWANTED, /* to be unmapped */
};

enum { PAGE = 4096, STOCK = SW_MEM_OWNERS, N_BLOCKS };

struct sw_reserve_dead {
	struct sw_reserve_dead *next;
	uint64_t bytes;
};

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int state_of(const struct sw_reserve_block *b)
{
	return atomic_load_explicit(&b->state, memory_order_acquire);
}

static void set_state(struct sw_reserve_block *b, int state)
{
	atomic_store_explicit(&b->state, state, memory_order_release);
}

/* --- the lcore --- */

/* Release the rest of a block, which its batch did not need or whose worker has
 * ended. */
static void put_rest(struct sw_reserve *r, struct sw_reserve_block *b)
{
	sw_reserve_put(r, b->mem + b->taken, b->bytes - b->taken);
	set_state(b, NONE);
}

static void drop(struct sw_reserve *r, struct sw_reserve_block *b)
{
	int wanted = WANTED;

	if (atomic_compare_exchange_strong(&b->state, &wanted, UNWANTED))
		return;
	if (wanted == MADE)
		put_rest(r, b);
	else if (wanted == FAILED)
		set_state(b, NONE);
}

/* End the current batch: it is admitted within its turn, and before the next
 * batch. */
static void end_batch(struct sw_reserve *r)
{
	if (r->from && r->from != &r->blocks[STOCK])
		drop(r, r->from);
	r->from = NULL;
}

static void want(struct sw_reserve_block *b, uint64_t bytes)
{
	b->mem = NULL;
	b->bytes = whole_pages(bytes);
	b->made = b->taken = 0;
	set_state(b, WANTED);
}

bool sw_reserve_ready(struct sw_reserve *r, uint32_t owner, uint64_t bytes)
{
	bool is_small = bytes <= SW_RESERVE_SMALL;
	struct sw_reserve_block *b = &r->blocks[is_small ? STOCK : owner];

	end_batch(r);
	switch (state_of(b)) {
	case FAILED:
		set_state(b, NONE);
		return true; /* then sw_reserve_get returns NULL */
	case MADE:
		if (b->bytes - b->taken >= bytes) {
			r->from = b;
			return true;
		}
		put_rest(r, b);
		break;
	case NONE:
		break;
	default:
		return false;
	}
	want(b, is_small ? SW_RESERVE_STOCK : bytes);
	return false;
}

void sw_reserve_drop(struct sw_reserve *r, uint32_t owner)
{
	drop(r, &r->blocks[owner]);
}

void *sw_reserve_get(struct sw_reserve *r, uint64_t bytes)
{
	struct sw_reserve_block *b = r->from;
	uint64_t size = whole_pages(bytes);
	char *mem;

	if (!b || b->bytes - b->taken < size)
		return NULL;
	mem = b->mem + b->taken;
	b->taken += size;
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

static bool env_ready(void *ctx, uint32_t owner, uint64_t bytes)
{
	return sw_reserve_ready(ctx, owner, bytes);
}

static void env_drop(void *ctx, uint32_t owner)
{
	sw_reserve_drop(ctx, owner);
}

static void *env_get(void *ctx, uint64_t bytes)
{
	return sw_reserve_get(ctx, bytes);
}

static void env_put(void *ctx, void *mem, uint64_t bytes)
{
	sw_reserve_put(ctx, mem, bytes);
}

void sw_reserve_env(struct sw_reserve *r, struct sw_env *env)
{
	env->ctx = r;
	env->mem_ready = env_ready;
	env->mem_drop = env_drop;
	env->mem_get = env_get;
	env->mem_put = env_put;
}

void sw_reserve_turn(struct sw_reserve *r)
{
	struct sw_reserve_dead *none = NULL;

	end_batch(r);
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

/* --- the control thread --- */

/* Unmap from the end, since the header with the size is at the beginning. */
static bool unmap_slice(struct sw_reserve *r)
{
	struct sw_reserve_dead *d = r->unmapping;
	uint64_t n;

	if (!d)
		d = r->unmapping = atomic_exchange(&r->to_unmap, NULL);
	if (!d)
		return false;
	n = sw_min64(d->bytes, SW_RESERVE_UNMAP);
	if (n == d->bytes)
		r->unmapping = d->next;
	else
		d->bytes -= n;
	sw_memory_put((char *)d + (r->unmapping == d ? d->bytes : 0), n);
	return true;
}

/* Unmap the whole block, whether present or not. */
static void unmake(struct sw_reserve_block *b)
{
	sw_memory_put(b->mem, b->bytes);
	b->mem = NULL;
}

/* Make the next slice of a block present.  Returns 0, or SW_ENOMEM after
 * unmapping the block. */
static int make_slice(struct sw_reserve_block *b, int node)
{
	uint64_t n = sw_min64(b->bytes - b->made, SW_RESERVE_SLICE);

	if (!b->mem)
		b->mem = sw_memory_map(b->bytes, node);
	if (!b->mem)
		return SW_ENOMEM;
	b->made += n;
	if (!sw_memory_fill(b->mem + b->made - n, n))
		return 0;
	unmake(b);
	return SW_ENOMEM;
}

/* Work on the next slice of a block.  Returns false if there is no work. */
static bool work(struct sw_reserve_block *b, int node)
{
	int state = state_of(b), wanted = WANTED;

	if (state == UNWANTED) {
		unmake(b);
		set_state(b, NONE);
		return true;
	}
	if (state != WANTED)
		return false;
	state = make_slice(b, node) ? FAILED : MADE;
	/* If the block has become UNWANTED, the next call unmaps it. */
	if (state == FAILED || b->made == b->bytes)
		atomic_compare_exchange_strong(&b->state, &wanted, state);
	return true;
}

bool sw_reserve_work(struct sw_reserve *r)
{
	bool has_worked = unmap_slice(r);

	for (uint32_t i = 0; i < N_BLOCKS; i++)
		if (work(&r->blocks[r->turn++ % N_BLOCKS], r->node))
			return true;
	return has_worked;
}

void sw_reserve_open(struct sw_reserve *r)
{
	struct sw_reserve_block *b = &r->blocks[STOCK];

	want(b, SW_RESERVE_STOCK);
	while (work(b, r->node))
		;
}

static void unmap_all(struct sw_reserve *r, struct sw_reserve_dead *dead)
{
	atomic_store(&r->to_unmap, dead);
	while (unmap_slice(r))
		;
}

void sw_reserve_close(struct sw_reserve *r)
{
	for (uint32_t i = 0; i < N_BLOCKS; i++) {
		struct sw_reserve_block *b = &r->blocks[i];

		drop(r, b);
		/* unmaps a block that drop left UNWANTED */
		(void)!work(b, r->node);
	}
	unmap_all(r, atomic_load(&r->to_unmap));
	unmap_all(r, atomic_load(&r->leaving));
	unmap_all(r, r->dead);
	atomic_store(&r->leaving, NULL);
	r->dead = NULL;
}
