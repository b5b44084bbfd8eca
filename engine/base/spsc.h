/* spsc.h - ring of fixed-size entries from one producer to one consumer.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Between two lcores, or between two processes of which one may be hostile.
 * The shared part holds nothing but the two indices and the entries: size and
 * own index live in each side's private struct sw_spsc, and the other side's
 * index is checked whenever it is read.  Whatever the peer writes, no access
 * leaves the ring; an index that cannot be is reported as SW_EPROTO.
 *
 * Thread: a struct sw_spsc belongs to one thread.  Nothing here blocks,
 * allocates or makes a system call.
 */
#ifndef SW_SPSC_H
#define SW_SPSC_H

#include <assert.h>
#include <stdatomic.h>
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
	uint32_t peer; /* the other side's last index that could be right */
};

/* Bytes of shared memory of a ring; usable in a constant expression. */
#define SW_SPSC_BYTES(size, entry_bytes) \
	(sizeof(struct sw_spsc_shared) + (size_t)(size) * (entry_bytes))

/* sw_spsc_init - one side of the ring in @memory.
 * @memory    SW_SPSC_BYTES bytes, 64-byte aligned, zeroed before either side
 *            starts; borrowed as long as @s is used
 * @size      entries, a power of two <= 2^31; the same on both sides */
static inline void sw_spsc_init(
	struct sw_spsc *s, void *memory, uint32_t size, uint32_t entry_bytes);

/* sw_spsc_put - copy up to @n entries into the ring (producer).
 * Returns how many fitted (0: full), or SW_EPROTO when the consumer's index
 * cannot be right. */
static inline int sw_spsc_put(
	struct sw_spsc *s, const void *entries, uint32_t n);

/* sw_spsc_room - how many entries would fit now (producer); 0 also when the
 * consumer's index cannot be right. */
static inline uint32_t sw_spsc_room(const struct sw_spsc *s);

/* sw_spsc_take - copy up to @n entries out of the ring (consumer).
 * Returns how many there were (0: empty), or SW_EPROTO when the producer's
 * index cannot be right.  The caller checks the copies: the release store that
 * ends the call keeps the compiler from reading the shared entries again. */
static inline int sw_spsc_take(struct sw_spsc *s, void *entries, uint32_t n);

/* sw_spsc_is_empty - is there nothing to take?  False when the producer's
 * index cannot be right: the next take then says so. */
static inline int sw_spsc_is_empty(const struct sw_spsc *s);

/* sw_spsc_own - this side's index: entries that it has put or taken. */
static inline uint32_t sw_spsc_own(const struct sw_spsc *s)
{
	return s->own;
}

static inline void sw_spsc_init(
	struct sw_spsc *s, void *memory, uint32_t size, uint32_t entry_bytes)
{
	assert(size && !(size & (size - 1)));
	*s = (struct sw_spsc){
		.shared = memory, .size = size, .entry_bytes = entry_bytes};
}

/* Bytes from the ring's start to the entry of index @i. */
static inline size_t sw_spsc_at(const struct sw_spsc *s, uint32_t i)
{
	return (size_t)(i & (s->size - 1)) * s->entry_bytes;
}

/* Of @n entries from s->own on, how many lie before the ring's end. */
static inline uint32_t sw_spsc_straight(const struct sw_spsc *s, uint32_t n)
{
	uint32_t left = s->size - (s->own & (s->size - 1));

	return n < left ? n : left;
}

static inline int sw_spsc_put(
	struct sw_spsc *s, const void *entries, uint32_t n)
{
	uint32_t room = s->size - (s->own - s->peer), first;
	unsigned char *ring = s->shared->entries;

	if (room < n) {
		uint32_t peer = atomic_load_explicit(
			&s->shared->n_taken, memory_order_acquire);

		if (s->own - peer > s->size)
			return SW_EPROTO;
		s->peer = peer;
		room = s->size - (s->own - peer);
	}
	n = n < room ? n : room;
	first = sw_spsc_straight(s, n);
	memcpy(ring + sw_spsc_at(s, s->own), entries,
		(size_t)first * s->entry_bytes);
	memcpy(ring,
		(const unsigned char *)entries + (size_t)first * s->entry_bytes,
		(size_t)(n - first) * s->entry_bytes);
	s->own += n;
	atomic_store_explicit(&s->shared->n_put, s->own, memory_order_release);
	return (int)n;
}

static inline uint32_t sw_spsc_room(const struct sw_spsc *s)
{
	uint32_t used = s->own - atomic_load_explicit(&s->shared->n_taken,
					 memory_order_acquire);

	return used <= s->size ? s->size - used : 0;
}

static inline int sw_spsc_take(struct sw_spsc *s, void *entries, uint32_t n)
{
	uint32_t there = s->peer - s->own, first;
	const unsigned char *ring = s->shared->entries;

	if (there < n) {
		uint32_t peer = atomic_load_explicit(
			&s->shared->n_put, memory_order_acquire);

		if (peer - s->own > s->size)
			return SW_EPROTO;
		s->peer = peer;
		there = peer - s->own;
	}
	n = n < there ? n : there;
	if (!n)
		return 0;
	first = sw_spsc_straight(s, n);
	memcpy(entries, ring + sw_spsc_at(s, s->own),
		(size_t)first * s->entry_bytes);
	memcpy((unsigned char *)entries + (size_t)first * s->entry_bytes, ring,
		(size_t)(n - first) * s->entry_bytes);
	s->own += n;
	atomic_store_explicit(
		&s->shared->n_taken, s->own, memory_order_release);
	return (int)n;
}

static inline int sw_spsc_is_empty(const struct sw_spsc *s)
{
	return atomic_load_explicit(&s->shared->n_put, memory_order_acquire) ==
	       s->own;
}

#endif
