/* bench_quartiles.h - what lies in the middle of many measurements.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_BENCH_QUARTILES_H
#define SW_BENCH_QUARTILES_H

#include <stdint.h>

struct bench_quartiles {
	double least, low, middle, high;
};

/* sw_bench_quartiles - of @n >= 1 values, which are sorted in place; between
 * two values by their distance. */
struct bench_quartiles sw_bench_quartiles(double *values, uint32_t n);

#endif
