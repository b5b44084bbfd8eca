/* heap.c - frames in flight, ordered by time; and seeded randomness.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "test/sim/net.h"

void *sim_zeros(uint64_t bytes)
{
	uint64_t whole = (bytes + 63) / 64 * 64;
	void *mem = aligned_alloc(64, whole);

	return mem ? memset(mem, 0, whole) : NULL;
}

uint64_t sim_below(uint64_t *rng, uint64_t n)
{
	return n ? test_random(rng) % n : 0;
}

bool sim_chance(uint64_t *rng, uint32_t ppm)
{
	return ppm && sim_below(rng, 1000000) < ppm;
}

static void swap(struct sim_net *net, uint32_t a, uint32_t b)
{
	struct sim_frame *f = net->heap[a];

	net->heap[a] = net->heap[b];
	net->heap[b] = f;
}

void sim_heap_put(struct sim_net *net, struct sim_frame *f)
{
	uint32_t i = net->n_heap++;

	if (net->n_heap > net->heap_size) {
		net->heap_size = 2 * net->heap_size + 64;
		net->heap =
			realloc(net->heap, net->heap_size * sizeof(*net->heap));
		if (!net->heap)
			abort();
	}
	net->heap[i] = f;
	for (; i && net->heap[(i - 1) / 2]->at_ns > net->heap[i]->at_ns;
		i = (i - 1) / 2)
		swap(net, i, (i - 1) / 2);
}

struct sim_frame *sim_heap_take(struct sim_net *net)
{
	struct sim_frame *first = net->heap[0];
	uint32_t i = 0;

	net->heap[0] = net->heap[--net->n_heap];
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= net->n_heap)
			return first;
		if (c + 1 < net->n_heap &&
			net->heap[c + 1]->at_ns < net->heap[c]->at_ns)
			c++;
		if (net->heap[i]->at_ns <= net->heap[c]->at_ns)
			return first;
		swap(net, i, c);
		i = c;
	}
}
