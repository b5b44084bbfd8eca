/* bench_fill.c - the data that benchmarks sum, and the check of the sums.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/bench/bench.h"
#include "sum/half.h"

/* Encode @v, a small whole number, as an element of @dtype. */
static void encode(enum sw_dtype dtype, uint32_t v, void *out)
{
	float f = (float)v;
	double d = (double)v;
	uint64_t u = dtype == SW_BOOL ? v != 0 : v;
	uint16_t half = dtype == SW_F16 ? sw_f16_round(f) : sw_bf16_round(f);

	switch (dtype) {
	case SW_F32:
		memcpy(out, &f, sizeof(f));
		return;
	case SW_F64:
		memcpy(out, &d, sizeof(d));
		return;
	case SW_F16:
	case SW_BF16:
		memcpy(out, &half, sizeof(half));
		return;
	default: /* integers, little-endian */
		memcpy(out, &u, sw_dtype_bytes(dtype));
	}
}

static void patterns(
	const struct bench_options *o, uint32_t factor, char out[3][8])
{
	for (uint32_t i = 0; i < 3; i++)
		encode(o->dtype, factor * (1 + i), out[i]);
}

void sw_bench_fill(const struct bench_options *o, char *data, uint64_t first,
	uint64_t n, uint32_t factor)
{
	uint32_t size = sw_dtype_bytes(o->dtype);
	char pattern[3][8];

	patterns(o, factor, pattern);
	for (uint64_t i = 0; i < n; i++)
		memcpy(data + i * size, pattern[(first + i) % 3], size);
}

uint64_t sw_bench_wrong(const struct bench_options *o, const char *data,
	uint64_t first, uint64_t n, uint32_t factor)
{
	uint32_t size = sw_dtype_bytes(o->dtype);
	char pattern[3][8];
	uint64_t wrong = 0;

	patterns(o, factor, pattern);
	for (uint64_t i = 0; i < n; i++)
		wrong += memcmp(data + i * size, pattern[(first + i) % 3],
				 size) != 0;
	return wrong;
}
