/* spsc.h - ring of fixed-size entries from one producer to one consumer.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ring works between two lcores, or between two processes, one of which may
 * be hostile.  The shared part holds only the two indices and the entries.
 * Each side keeps the size and its own index in a private struct sw_spsc, and
 * checks the other side's index whenever it reads it.  So for all writes of the
 * peer, no access leaves the ring; an impossible index returns SW_EPROTO.
 *
 * Thread: a struct sw_spsc belongs to one thread.  No function here blocks,
 * allocates or makes a system call. */
#ifndef SW_ENGINE_BASE_SPSC_H
#define SW_ENGINE_BASE_SPSC_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/error.h"

/* Indices count entries since the start, modulo 2^32. */
struct sw_spsc_shared {
	_Alignas(64) _Atomic uint32_t n_put;   /* written by the producer */
	_Alignas(64) _Atomic uint32_t n_taken; /* written by the consumer */
	_Alignas(64) unsigned char entries[];
};

/* One side of a ring. */
struct sw_spsc {
	struct sw_spsc_shared *shared; /* borrowed */
	uint32_t size;                 /* entries, a power of two */
	uint32_t entry_bytes;
	uint32_t own;  /* entries that this side has put or taken */
	uint32_t peer; /* the other side's last valid index */
};

/* Bytes of shared memory of a ring; usable in a constant expression. */
#define SW_SPSC_BYTES(size, entry_bytes) \
	(sizeof(struct sw_spsc_shared) + (size_t)(size) * (entry_bytes))

/* sw_spsc_init - init one side of the ring in @memory.
 * @memory    SW_SPSC_BYTES bytes, 64-byte aligned, zeroed before either side
 *            starts; borrowed as long as @s is used
 * @size      entries, a power of two <= 2^31; the same on both sides */
static inline void sw_spsc_init(
	struct sw_spsc *s, void *memory, uint32_t size, uint32_t entry_bytes)
{
	assert(size && !(size & (size - 1)));
	*s = (struct sw_spsc){
		.shared = memory, .size = size, .entry_bytes = entry_bytes};
}

/* Return how many of @n entries this side may put or take, if its index may be
 * @ahead of the other side's @index; SW_EPROTO: an impossible index.  Reads the
 * index only if its last seen value does not suffice. */
static inline int sw_spsc_may(struct sw_spsc *s, const _Atomic uint32_t *index,
	uint32_t ahead, uint32_t n)
{
	uint32_t may = s->peer + ahead - s->own;

	if (may < n) {
		uint32_t peer =
			atomic_load_explicit(index, memory_order_acquire);

		may = peer + ahead - s->own;
		if (may > s->size)
			return SW_EPROTO;
		s->peer = peer;
	}
	return (int)(n < may ? n : may);
}

/* Return the address of entry s->own; set *bytes to the size of @n entries, cut
 * at the ring's end. */
static inline unsigned char *sw_spsc_at(
	const struct sw_spsc *s, uint32_t n, size_t *bytes)
{
	uint32_t i = s->own & (s->size - 1);

	*bytes = (size_t)(n < s->size - i ? n : s->size - i) * s->entry_bytes;
	return s->shared->entries + (size_t)i * s->entry_bytes;
}

/* sw_spsc_put - copy up to @n entries into the ring (producer).  Returns how
 * many fit (0: full), or SW_EPROTO if the consumer's index is impossible. */
static inline int sw_spsc_put(
	struct sw_spsc *s, const void *entries, uint32_t n)
{
	int fits = sw_spsc_may(s, &s->shared->n_taken, s->size, n);
	unsigned char *to;
	size_t first;

	if (fits <= 0)
		return fits;
	to = sw_spsc_at(s, (uint32_t)fits, &first);
	memcpy(to, entries, first);
	memcpy(s->shared->entries, (const unsigned char *)entries + first,
		(size_t)fits * s->entry_bytes - first);
	s->own += (uint32_t)fits;
	atomic_store_explicit(&s->shared->n_put, s->own, memory_order_release);
	return fits;
}

/* sw_spsc_room - return how many entries fit now (producer); 0 also if the
 * consumer's index is impossible. */
static inline uint32_t sw_spsc_room(const struct sw_spsc *s)
{
	uint32_t used = s->own - atomic_load_explicit(&s->shared->n_taken,
					 memory_order_acquire);

	return used <= s->size ? s->size - used : 0;
}

/* sw_spsc_take - copy up to @n entries out of the ring (consumer).  Returns how
 * many were copied (0: empty), or SW_EPROTO if the producer's index is
 * impossible.  The caller checks the copies: the release store that ends the
 * call keeps the compiler from reading the shared entries again. */
static inline int sw_spsc_take(struct sw_spsc *s, void *entries, uint32_t n)
{
	int there = sw_spsc_may(s, &s->shared->n_put, 0, n);
	const unsigned char *from;
	size_t first;

	if (there <= 0)
		return there;
	from = sw_spsc_at(s, (uint32_t)there, &first);
	memcpy(entries, from, first);
	memcpy((unsigned char *)entries + first, s->shared->entries,
		(size_t)there * s->entry_bytes - first);
	s->own += (uint32_t)there;
	atomic_store_explicit(
		&s->shared->n_taken, s->own, memory_order_release);
	return there;
}

/* sw_spsc_used - return how many entries there are to take (consumer); more
 * than its size if the producer's index is impossible. */
static inline uint32_t sw_spsc_used(const struct sw_spsc *s)
{
	return atomic_load_explicit(&s->shared->n_put, memory_order_acquire) -
	       s->own;
}

/* sw_spsc_is_empty - return whether the ring has no entry to take.  False also
 * for an impossible producer's index: the next take reports it. */
static inline int sw_spsc_is_empty(const struct sw_spsc *s)
{
	return !sw_spsc_used(s);
}

/* sw_spsc_own - return this side's index: the number of entries that it has put
 * or taken. */
static inline uint32_t sw_spsc_own(const struct sw_spsc *s)
{
	return s->own;
}

#endif
