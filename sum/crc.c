/* crc.c - the table of CRC-32C's kernels: their requirements, and the choice.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sum/clmul.h"
#include "sum/crc.h"
#include "sum/sum.h"

#if SW_CRC_HAS_CLMUL128_SLOW
/* Does a product take two cycles? It does on Haswell, and on AMD CPUs up to Zen
 * 2, the only AMD CPUs without wider products. */
static bool is_clmul128_slow(void)
{
	return __builtin_cpu_is("amd") || __builtin_cpu_is("haswell");
}
#endif

/* A new kernel is one file and one row; the widest last. */
static const struct {
	const struct sw_crc *crc;
	bool (*runs)(void);
} rows[] = {
	{&sw_crc_scalar, sw_has_any},
#if SW_CRC_HAS_CLMUL128_SLOW
	{&sw_crc_clmul128_slow, sw_has_clmul128},
#endif
#if SW_CRC_HAS_CLMUL128
	{&sw_crc_clmul128, sw_has_clmul128},
#endif
#if SW_CRC_HAS_CLMUL256
	{&sw_crc_clmul256, sw_has_clmul256},
#endif
#if SW_CRC_HAS_CLMUL512
	{&sw_crc_clmul512, sw_has_clmul512},
#endif
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct sw_crc *sw_crc_row(uint32_t i, bool *runs)
{
	if (i >= N_ROWS)
		return NULL;
	if (runs)
		*runs = rows[i].runs();
	return rows[i].crc;
}

/* Choose with one or two tests, because short headers also come here. */
static inline const struct sw_crc *best(void)
{
#if SW_CRC_HAS_CLMUL512
	if (sw_has_clmul512())
		return &sw_crc_clmul512;
#endif
#if SW_CRC_HAS_CLMUL256
	if (sw_has_clmul256())
		return &sw_crc_clmul256;
#endif
#if SW_CRC_HAS_CLMUL128_SLOW
	if (sw_has_clmul128() && is_clmul128_slow())
		return &sw_crc_clmul128_slow;
#endif
#if SW_CRC_HAS_CLMUL128
	if (sw_has_clmul128())
		return &sw_crc_clmul128;
#endif
	return &sw_crc_scalar;
}

uint32_t sw_crc32c(uint32_t crc, const void *p, size_t n)
{
	return best()->crc(crc, p, n);
}

uint32_t sw_crc32c_both(
	uint32_t crc, const void *p, size_t n, const void *q, size_t m)
{
	const struct sw_crc *row = best();

	return row->crc(row->crc(crc, p, n), q, m);
}

uint32_t sw_crc32c_both_far(
	uint32_t crc, const void *p, size_t n, const void *q, size_t m)
{
	const struct sw_crc *row = best();

	return row->far(row->crc(crc, p, n), q, m);
}
