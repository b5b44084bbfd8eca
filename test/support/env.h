/* env.h - the environment that a unit test gives to the engine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_ENV_H
#define SW_TEST_SUPPORT_ENV_H

#include <stdbool.h>

#include "engine/base/env.h"
#include "test/support/random.h"

struct test_env {
	struct sw_env env;
	struct sw_log log;
	char lines[4096]; /* the last lines of the log */
	/* the last value of random(), which returns 1, 2, … */
	uint64_t rng;
	int64_t live_blocks; /* alloc_live() at the start */
	/* taken by mem_get and not yet returned by mem_put */
	uint64_t live_bytes;
	bool is_short;     /* mem_get returns NULL */
	bool is_preparing; /* mem_ready returns false */
	/* bytes that mem_ready was asked for meanwhile */
	uint64_t prepared[SW_MEM_OWNERS];
};

/* test_env_init - set up @e: the best kernels, memory, a log that @e keeps. */
void test_env_init(struct test_env *e);

/* test_env_fini - fail the test if any memory has not been returned. */
void test_env_fini(struct test_env *e);

#endif
