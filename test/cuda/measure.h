/* measure.h - what copies and sums of a device's memory cost.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_CUDA_MEASURE_H
#define SW_TEST_CUDA_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/quartiles.h"

/* measure_must - end the program, unless it is so. */
void measure_must(bool is_so, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* measure_copies - print how long it takes to pin memory, and what the pipeline
 * carries beside bare copies, both ways at once, by tensors of 1 MiB to @mib.
 * @backend  of sumwire/device.h */
void measure_copies(const char *backend, uint32_t mib);

/* measure_sums - as a rank of the job at $SUMWIRE_AGENT: print what push_pulls
 * of @mib in the device's memory take beside those of this machine's, and small
 * ones of the highest priority under them beside those alone. */
void measure_sums(const char *backend, uint32_t mib);

#endif
