/* grain.c - how much is copied at once: as little as is about as fast as can
 * be. SPDX-License-Identifier: BSD-3-Clause
 *
 * Every copy costs something beside its bytes: the back end's latency, our
 * thread's look at it.  What is copied at once is held up by nothing, and holds
 * up what is more urgent, so the least is wanted of which this is a 20th at
 * most.  Nothing is known of a device; so each size is tried, and again when
 * its measurements have become old.
 */
#include "pmd/cuda/pipeline.h"

enum {
	TRIES = 8,
	MEMORY = 1024, /* copies, after which what is known counts half */
	LOSS = 20,
};

static uint64_t size(uint32_t i)
{
	return (uint64_t)SW_GRAIN_MIN << i;
}

static double rate(const struct sw_grain *g, uint32_t i)
{
	return (double)g->of[i].bytes / (double)(g->of[i].ns + 1);
}

uint64_t sw_grain_bytes(const struct sw_grain *g, uint64_t of)
{
	double best = 0;
	uint32_t i;

	for (i = 0; i < SW_GRAINS && (!i || size(i) <= of); i++) {
		if (g->of[i].n < TRIES)
			return size(i);
		best = rate(g, i) > best ? rate(g, i) : best;
	}
	i = 0;
	while (rate(g, i) < best - best / LOSS)
		i++;
	return size(i);
}

/* Whole rows may be somewhat less than was wanted, the rest of a copy is far
 * less. */
void sw_grain_note(
	struct sw_grain *g, uint64_t wanted, uint64_t bytes, uint64_t ns)
{
	uint64_t counts_as = 2 * bytes > wanted ? wanted : bytes;
	uint32_t i = 0;

	if (counts_as < size(0))
		return;
	while (i < SW_GRAINS - 1 && counts_as >= size(i + 1))
		i++;
	g->of[i].bytes += bytes;
	g->of[i].ns += ns;
	g->of[i].n++;
	if (++g->n < MEMORY)
		return;
	g->n = 0;
	for (i = 0; i < SW_GRAINS; i++) {
		g->of[i].bytes /= 2;
		g->of[i].ns /= 2;
		g->of[i].n /= 2;
	}
}
