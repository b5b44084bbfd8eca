/* quartiles.c - quartiles of measurements.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/quartiles.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void sw_sort(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), compare);
}

/* Return the value at @quarters quarters of the sorted values. */
static double at(const double *sorted, uint32_t n, uint32_t quarters)
{
	uint32_t i = (n - 1) * quarters / 4, rest = (n - 1) * quarters % 4;

	return rest ? sorted[i] + (sorted[i + 1] - sorted[i]) * rest / 4
		    : sorted[i];
}

struct sw_quartiles sw_quartiles_of(double *values, uint32_t n)
{
	sw_sort(values, n);
	return (struct sw_quartiles){.least = values[0],
		.low = at(values, n, 1),
		.middle = at(values, n, 2),
		.high = at(values, n, 3)};
}
