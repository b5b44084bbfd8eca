/* truth.c - the oracle: the values that ranks push, and the expected sums.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/truth.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/random.h"

enum { RANK_STEP = 61 };

void sw_sim_truth_init(struct sw_sim_truth *t, uint64_t seed, uint32_t n_ranks)
{
	uint64_t rng = seed ^ 0x7275746874ULL;

	t->seed = seed;
	t->n_ranks = n_ranks;
	for (uint32_t i = 0; i < SW_SIM_PERIOD; i++)
		t->values[i] = (float)(1 + sw_random_next(&rng) % 255);
	for (uint32_t i = 0; i < SW_SIM_PERIOD; i++) {
		t->sums[i] = 0;
		for (uint32_t r = 0; r < n_ranks; r++)
			t->sums[i] +=
				t->values[(i + r * RANK_STEP) % SW_SIM_PERIOD];
	}
}

static uint32_t start_of(
	const struct sw_sim_truth *t, uint32_t tensor, uint32_t round)
{
	uint64_t x = t->seed ^ (uint64_t)tensor << 32 ^ round;

	return (uint32_t)(sw_random_next(&x) % SW_SIM_PERIOD);
}

void sw_sim_truth_fill(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, float *to, uint64_t n)
{
	uint64_t from =
		(start_of(t, tensor, round) + rank * RANK_STEP) % SW_SIM_PERIOD;

	for (uint64_t i = 0, k; i < n; i += k, from = 0) {
		k = sw_min64(n - i, SW_SIM_PERIOD - from);
		memcpy(to + i, t->values + from, k * sizeof(*to));
	}
}

/* Compare bytes: no value is 0, so equal values have equal bytes. */
uint64_t sw_sim_truth_wrong(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, uint64_t first, const float *at,
	uint64_t n)
{
	bool is_sum = rank == SW_SIM_ALL_RANKS;
	const float *right = is_sum ? t->sums : t->values;
	uint64_t skip = first + (is_sum ? 0 : (uint64_t)rank * RANK_STEP);
	uint64_t from = (start_of(t, tensor, round) + skip) % SW_SIM_PERIOD;
	uint64_t wrong = 0;

	for (uint64_t i = 0, k; i < n; i += k, from = 0) {
		k = sw_min64(n - i, SW_SIM_PERIOD - from);
		if (!memcmp(at + i, right + from, k * sizeof(*at)))
			continue;
		for (uint64_t e = 0; e < k; e++)
			wrong += memcmp(at + i + e, right + from + e,
					 sizeof(*at)) != 0;
	}
	return wrong;
}

void sw_sim_truth_add(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, float *sums, uint64_t n)
{
	uint64_t from = start_of(t, tensor, round) + rank * RANK_STEP;

	n = sw_min64(n, SW_SIM_PERIOD);
	for (uint64_t i = 0; i < n; i++)
		sums[i] += t->values[(from + i) % SW_SIM_PERIOD];
}

uint64_t sw_sim_truth_outside(
	const float *low, const float *high, const float *at, uint64_t n)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++)
		wrong += !(at[i] >= low[i % SW_SIM_PERIOD] &&
			   at[i] <= high[i % SW_SIM_PERIOD]);
	return wrong;
}
