/* bench_kernel.c - the n-source kernel alone, to compare with local ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/bench/bench.h"
#include "apps/cli/clock.h"
#include "pmd/client/edge.h"
#include "pmd/host/memory.h"
#include "sum/sum.h"

enum { FRAME = 8192, ROUNDS = 5, SOURCE_MAX = 64 << 20 };

struct sources {
	char *memory[64];
	const void *at[64]; /* staggered like an agent's sources */
	uint64_t sizes[64];
};

static bool open_sources(struct sources *s, uint32_t n, uint64_t bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t end = 0, start = sw_edge_place(i, bytes, &end);

		s->sizes[i] = end;
		s->memory[i] = sw_memory_get(end, SW_NUMA_ANY);
		if (!s->memory[i])
			return false;
		s->at[i] = s->memory[i] + start;
	}
	return true;
}

/* Return the seconds of one pass over all sources. */
static double pass(
	const struct bench_options *o, const struct sources *s, uint64_t bytes)
{
	const struct sw_sum_ops *ops =
		&sw_sum_best(SW_SUM_AVX512)->ops[o->dtype];
	_Alignas(64) char frame[2 * FRAME];
	uint64_t from = sw_now_ns();

	for (uint64_t at = 0; at < bytes; at += FRAME) {
		uint64_t n = bytes - at < FRAME ? bytes - at : FRAME;
		const void *src[64];

		for (uint32_t i = 0; i < o->local_ranks; i++)
			src[i] = (const char *)s->at[i] + at;
		ops->sum(frame, src, o->local_ranks, n / ops->elem_bytes);
	}
	return (double)(sw_now_ns() - from) / 1e9;
}

double sw_bench_kernel(const struct bench_options *o, uint64_t bytes)
{
	struct sources s = {0};
	double best = 0;

	bytes = bytes < SOURCE_MAX ? bytes : SOURCE_MAX;
	if (open_sources(&s, o->local_ranks, bytes))
		for (int i = 0; i < ROUNDS; i++) {
			double rate = (double)bytes * 8e-9 / pass(o, &s, bytes);

			best = rate > best ? rate : best;
		}
	for (uint32_t i = 0; i < o->local_ranks; i++)
		if (s.memory[i])
			sw_memory_put(s.memory[i], s.sizes[i]);
	return best;
}
