/* truth.h - the oracle: what ranks push, and what the sums must be.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All values are whole numbers that f32 holds exactly, from a table of random
 * ones that repeats. Tensor, round and rank choose where a buffer begins in the
 * table. A missing, duplicate or foreign contribution changes the sum of nearly
 * every element, so comparing the result with the table of sums finds it.
 */
#ifndef SW_APPS_LAB_SIM_TRUTH_H
#define SW_APPS_LAB_SIM_TRUTH_H

#include <stdint.h>

enum {
	SW_SIM_PERIOD = 4099, /* elements after which values repeat; a prime */
	SW_SIM_ALL_RANKS = UINT32_MAX,
};

struct sw_sim_truth {
	uint64_t seed;
	uint32_t n_ranks;
	float values[SW_SIM_PERIOD]; /* rank r begins at r * 61 */
	float sums[SW_SIM_PERIOD];
};

/* sw_sim_truth_init - draw the values of a job with @n_ranks ranks. */
void sw_sim_truth_init(struct sw_sim_truth *t, uint64_t seed, uint32_t n_ranks);

/* sw_sim_truth_fill - write what @rank pushes. */
void sw_sim_truth_fill(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, float *to, uint64_t n);

/* sw_sim_truth_wrong - count those of @n elements at @at, the first of which is
 * element @first of the tensor, that differ from what @rank pushed, or from the
 * sum of SW_SIM_ALL_RANKS. */
uint64_t sw_sim_truth_wrong(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, uint64_t first, const float *at,
	uint64_t n);

/* An asynchronous job has no sums of a round: its servers' values have at least
 * all that the agent has pushed, and at most what all have. Both repeat.
 *
 * sw_sim_truth_add - add to @sums what @rank pushes of a tensor of @n elements.
 * sw_sim_truth_outside - count those of @n elements at @at that are not between
 * the sums @low and @high. */
void sw_sim_truth_add(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, float *sums, uint64_t n);
uint64_t sw_sim_truth_outside(
	const float *low, const float *high, const float *at, uint64_t n);

#endif
