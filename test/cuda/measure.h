/* measure.h - what copies and sums of a device's memory cost.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_CUDA_MEASURE_H
#define SW_TEST_CUDA_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/quartiles.h"
#include "pmd/client/segment.h"
#include "pmd/cuda/back.h"

/* Pinned memory of shared pages, and the device's: half of each for either
 * way. */
struct measure_ground {
	const struct sw_back_ops *ops;
	struct sw_back *back;
	struct sw_segment pinned;
	char *device;
	uint64_t half; /* bytes */
};

/* measure_must - end the program, unless it is so. */
void measure_must(bool is_so, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* measure_open - open @backend, with memory of 2 * @half bytes on each side. */
void measure_open(struct measure_ground *g, const char *backend, uint64_t half);

void measure_close(struct measure_ground *g);

/* measure_hold - print how soon a stream goes on after its word was written,
 * and which calls of the runtime in another thread wait for a stream that is
 * held.
 */
void measure_hold(const char *backend);

/* measure_copies - print how long it takes to pin memory, and what the pipeline
 * carries beside bare copies, both ways at once, by tensors of 1 MiB to @mib.
 * @backend  of sumwire/device.h */
void measure_copies(const char *backend, uint32_t mib);

/* measure_sums - as a rank of the job at $SUMWIRE_AGENT: print what push_pulls
 * of @mib in the device's memory take beside those of this machine's, and small
 * ones of the highest priority under them beside those alone. */
void measure_sums(const char *backend, uint32_t mib);

#endif
