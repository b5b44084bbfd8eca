/* kernels.c - kernels that do nothing, for frames without payloads.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/kernels.h"

static void none(void *to, const void *from, size_t n)
{
	(void)to;
	(void)from;
	(void)n;
}

static void *no_copy(void *to, const void *from, size_t n)
{
	none(to, from, n);
	return to;
}

static void none_sum(
	void *acc, const void *const *src, uint32_t n_src, size_t n)
{
	(void)acc;
	(void)src;
	(void)n_src;
	(void)n;
}

struct sw_sum sw_sim_kernels(void)
{
	struct sw_sum k = *sw_sum_best(SW_SUM_SCALAR);

	k.name = "none";
	k.stream = none;
	k.copy = no_copy;
	for (uint32_t i = 0; i < SW_N_DTYPES; i++) {
		k.ops[i].put = k.ops[i].add = k.ops[i].copy = none;
		k.ops[i].sum = none_sum;
		if (k.ops[i].round)
			k.ops[i].round = none;
	}
	return k;
}
