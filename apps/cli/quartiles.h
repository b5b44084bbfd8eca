/* quartiles.h - what lies in the middle of many measurements.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_QUARTILES_H
#define SW_APPS_CLI_QUARTILES_H

#include <stdint.h>

struct sw_quartiles {
	double least, low, middle, high;
};

/* sw_sort - the least first. */
void sw_sort(double *values, uint32_t n);

/* sw_quartiles_of - of @n >= 1 values, which are sorted in place; between
 * two values by their distance. */
struct sw_quartiles sw_quartiles_of(double *values, uint32_t n);

#endif
