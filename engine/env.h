/* env.h - what the engine is given: log, kernels, memory, randomness.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENV_H
#define SW_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/log.h"
#include "sum/sum.h"

struct sw_env {
	const struct sw_log *log;
	const struct sw_sum *sum;
	void *ctx; /* first argument of the functions below */
	/* Is there memory for a batch that takes @bytes in all?  False: it is
	 * being prepared, the same batch will be declared again.  NULL: always
	 * true.  Must not block. */
	bool (*mem_ready)(void *ctx, uint64_t bytes);
	/* @bytes of zeroed memory, 64-byte aligned, pages present; NULL when
	 * there is none.  Called at admission only, never on the packet path.
	 */
	void *(*mem_get)(void *ctx, uint64_t bytes);
	void (*mem_put)(void *ctx, void *mem, uint64_t bytes);
	/* 64 bits that nobody can guess (the simulator's are seeded). */
	uint64_t (*random)(void *ctx);
};

#endif
