/* env.h - what the engine is given in a unit test.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_ENV_H
#define SW_TEST_SUPPORT_ENV_H

#include <stdbool.h>

#include "engine/base/env.h"
#include "test/support/random.h"

struct test_env {
	struct sw_env env;
	struct sw_log log;
	char lines[4096];    /* the last lines of the log */
	uint64_t rng;        /* random() counts from here: 1, 2, … */
	int64_t live_blocks; /* alloc_live() at the start */
	uint64_t live_bytes; /* mem_get'ed, not put back */
	bool is_short;       /* mem_get has nothing to give */
	bool is_preparing;   /* mem_ready says no */
	uint64_t prepared[SW_MEM_OWNERS]; /* then: for whom, so much */
};

/* test_env_init - the best kernels, memory, a log that is kept in @e. */
void test_env_init(struct test_env *e);

/* test_env_fini - fail the test if anything was not given back. */
void test_env_fini(struct test_env *e);

#endif
