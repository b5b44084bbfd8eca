/* quartiles.h - quartiles of measurements.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_QUARTILES_H
#define SW_APPS_CLI_QUARTILES_H

#include <stdint.h>

struct sw_quartiles {
	double least, low, middle, high;
};

/* sw_sort - sort @n values in ascending order. */
void sw_sort(double *values, uint32_t n);

/* sw_quartiles_of - return the quartiles of @n >= 1 values, and sort the values
 * in place.  Interpolates linearly between two values. */
struct sw_quartiles sw_quartiles_of(double *values, uint32_t n);

#endif
