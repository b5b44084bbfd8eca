/* sum.c - the table of levels: their requirements, and the choice.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "sum/level.h"

#if SW_SUM_HAS_AVX2 || SW_SUM_HAS_AVX512
#include <cpuid.h>

/* The built-in also checks whether the operating system saves the registers. */
static bool has_avx2(void)
{
	unsigned int a, b, c = 0, d;

	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx512(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

static bool has_any(void)
{
	return true;
}

/* Lower levels first.  A new level is one file and one row. */
static const struct {
	const struct sw_sum *sum;
	bool (*runs)(void);
} rows[] = {
	{&sw_sum_scalar, has_any},
#if SW_SUM_HAS_AVX2
	{&sw_sum_avx2, has_avx2},
#endif
#if SW_SUM_HAS_AVX512
	{&sw_sum_avx512, has_avx512},
#endif
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct sw_sum *sw_sum_row(uint32_t i, bool *runs)
{
	if (i >= N_ROWS)
		return NULL;
	if (runs)
		*runs = rows[i].runs();
	return rows[i].sum;
}

const struct sw_sum *sw_sum_best(enum sw_sum_level max)
{
	const struct sw_sum *best = &sw_sum_scalar;

	for (uint32_t i = 0; i < N_ROWS; i++)
		if (rows[i].sum->level <= max && rows[i].runs())
			best = rows[i].sum;
	return best;
}

const struct sw_sum *sw_sum_find(const char *name)
{
	if (!strcmp(name, "auto"))
		return sw_sum_best(SW_SUM_AVX512);
	for (uint32_t i = 0; i < N_ROWS; i++)
		if (!strcmp(name, rows[i].sum->name) && rows[i].runs())
			return rows[i].sum;
	return NULL;
}

bool sw_sum_fold(const struct sw_sum_ops *ops,
	void (*fold)(void *acc, const void *src, size_t n), void *acc,
	const void *src, size_t n, uint32_t crc)
{
	if (sw_crc32c(0, src, n * ops->elem_bytes) != crc)
		return false;
	fold(acc, src, n);
	return true;
}
