/* truth.h - the oracle: the values that ranks push, and the expected sums.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All values are whole numbers that f32 holds exactly.  They come from a table
 * of random numbers that repeats; tensor, round and rank determine where a
 * buffer begins in the table.  A missing, duplicate or foreign contribution
 * changes the sum of nearly every element, so a comparison with the table of
 * sums detects it.
 */
#ifndef SW_APPS_LAB_SIM_TRUTH_H
#define SW_APPS_LAB_SIM_TRUTH_H

#include <stdint.h>

enum {
	SW_SIM_PERIOD = 4099, /* period of the values, in elements; a prime */
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

/* sw_sim_truth_fill - write the values that @rank pushes. */
void sw_sim_truth_fill(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, float *to, uint64_t n);

/* sw_sim_truth_wrong - count the wrong ones of @n elements at @at.  The first
 * is element @first of the tensor.  The right values are those that @rank
 * pushed, or for SW_SIM_ALL_RANKS the sum. */
uint64_t sw_sim_truth_wrong(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, uint64_t first, const float *at,
	uint64_t n);

/* An asynchronous job has no sums of a round.  A server's values contain at
 * least everything that the agent has pushed, and at most everything that all
 * agents have pushed.  Both repeat.
 *
 * sw_sim_truth_add - add the values that @rank pushes of a tensor of @n
 * elements to @sums.
 * sw_sim_truth_outside - count the elements of @n at @at that are not between
 * the sums @low and @high. */
void sw_sim_truth_add(const struct sw_sim_truth *t, uint32_t rank,
	uint32_t tensor, uint32_t round, float *sums, uint64_t n);
uint64_t sw_sim_truth_outside(
	const float *low, const float *high, const float *at, uint64_t n);

#endif
