/* env.h - what the engine is given: log, kernels, memory, randomness.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_ENV_H
#define SW_ENGINE_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"

enum { SW_MEM_OWNERS = 8 }; /* jobs of a server */

struct sw_sum; /* the kernels: sum/sum.h */

struct sw_env {
	const struct sw_log *log;
	const struct sw_sum *sum;
	void *ctx; /* first argument of the functions below */
	/* Is there memory for a batch of @owner that takes @bytes in all?
	 * False: it is being prepared, ask again.  After true it is taken in
	 * the same turn.  An owner has one batch prepared at a time; owners do
	 * not wait for each other.  NULL: always true.  Must not block.
	 * @owner  0 … SW_MEM_OWNERS - 1 */
	bool (*mem_ready)(void *ctx, uint32_t owner, uint64_t bytes);
	/* What is being prepared for @owner, or is there and was not taken, is
	 * not wanted any more.  NULL as mem_ready. */
	void (*mem_drop)(void *ctx, uint32_t owner);
	/* @bytes of zeroed memory, 64-byte aligned, pages present; NULL when
	 * there is none.  Called at admission only, never on the packet path,
	 * for the batch that mem_ready was asked about last. */
	void *(*mem_get)(void *ctx, uint64_t bytes);
	void (*mem_put)(void *ctx, void *mem, uint64_t bytes);
	/* 64 bits that nobody can guess (the simulator's are seeded). */
	uint64_t (*random)(void *ctx);
};

#endif
