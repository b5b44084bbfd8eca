/* histogram.h - counts of times by their length.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bucket i counts times of at most 2^(10 + i) ns, above the bound of bucket i -
 * 1: 1 us, 2 us, and so on up to 17 s.  The last bucket counts all longer
 * times.  All histograms have these bounds, so that they can be added up. */
#ifndef SW_ENGINE_BASE_HISTOGRAM_H
#define SW_ENGINE_BASE_HISTOGRAM_H

#include <stdint.h>

enum { SW_HISTOGRAM_FIRST_LOG2 = 10, SW_HISTOGRAM_BUCKETS = 26 };

/* One lcore writes it, by sw_histogram_note.  Other threads read each word by
 * sw_word. */
struct sw_histogram {
	uint64_t sum_ns;
	uint64_t n[SW_HISTOGRAM_BUCKETS];
};

/* sw_histogram_bucket - return the bucket of @ns. */
static inline uint32_t sw_histogram_bucket(uint64_t ns)
{
	uint32_t i;

	if (ns <= 1u << SW_HISTOGRAM_FIRST_LOG2)
		return 0;
	i = 64 - (uint32_t)__builtin_clzll(ns - 1) - SW_HISTOGRAM_FIRST_LOG2;
	return i < SW_HISTOGRAM_BUCKETS ? i : SW_HISTOGRAM_BUCKETS - 1;
}

/* sw_histogram_bound - return the longest time in @bucket; UINT64_MAX: any. */
static inline uint64_t sw_histogram_bound(uint32_t bucket)
{
	return bucket + 1 < SW_HISTOGRAM_BUCKETS
		       ? UINT64_C(1) << (SW_HISTOGRAM_FIRST_LOG2 + bucket)
		       : UINT64_MAX;
}

/* sw_histogram_count - return how many times were counted.  Thread: any, on its
 * own copy. */
static inline uint64_t sw_histogram_count(const struct sw_histogram *h)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++)
		n += h->n[i];
	return n;
}

/* sw_histogram_note - count a time.  Thread: the owner. */
static inline void sw_histogram_note(struct sw_histogram *h, uint64_t ns)
{
	uint64_t *n = &h->n[sw_histogram_bucket(ns)];

	__atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&h->sum_ns, h->sum_ns + ns, __ATOMIC_RELAXED);
}

#endif
