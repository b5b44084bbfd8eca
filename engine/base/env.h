/* env.h - services for the engine: log, kernels, memory, randomness.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_ENV_H
#define SW_ENGINE_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"

enum { SW_MEM_OWNERS = 8 }; /* jobs per server */

struct sw_sum; /* the kernels: sum/sum.h */

struct sw_env {
	const struct sw_log *log;
	const struct sw_sum *sum;
	/* Map the pages of tables only as they are used, to save memory in a
	 * simulation of many nodes, where no lcore waits for page faults.
	 * mem_get also gives the memory of links then. */
	bool is_lazy;
	void *ctx; /* first argument of the functions below */
	/* Return whether @bytes of memory for a batch of @owner are ready.
	 * False: the memory is being prepared, call again.  After true, take
	 * the memory in the same turn.  An owner prepares one batch at a time;
	 * owners do not wait for each other.  NULL: always ready.  Must not
	 * block.
	 * @owner  0 … SW_MEM_OWNERS - 1 */
	bool (*mem_ready)(void *ctx, uint32_t owner, uint64_t bytes);
	/* Release memory that was prepared for @owner and not taken.  NULL if
	 * mem_ready is NULL. */
	void (*mem_drop)(void *ctx, uint32_t owner);
	/* Allocate @bytes of zeroed memory, 64-byte aligned, pages present;
	 * NULL: no memory.  Called only at admission, never on the packet path,
	 * for the batch of the last mem_ready. */
	void *(*mem_get)(void *ctx, uint64_t bytes);
	void (*mem_put)(void *ctx, void *mem, uint64_t bytes);
	/* Return 64 unpredictable bits (seeded in the simulator). */
	uint64_t (*random)(void *ctx);
};

#endif
