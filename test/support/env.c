/* env.c - the environment that a unit test gives to the engine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sum/sum.h"
#include "test/support/alloc.h"
#include "test/support/unit.h"

static bool mem_ready(void *ctx, uint32_t owner, uint64_t bytes)
{
	struct test_env *e = ctx;

	assert_true(bytes > 0 && owner < SW_MEM_OWNERS);
	e->prepared[owner] = e->is_preparing ? bytes : 0;
	return !e->is_preparing;
}

static void mem_drop(void *ctx, uint32_t owner)
{
	struct test_env *e = ctx;

	assert_true(owner < SW_MEM_OWNERS);
	e->prepared[owner] = 0;
}

static void *mem_get(void *ctx, uint64_t bytes)
{
	struct test_env *e = ctx;
	void *mem =
		e->is_short ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (mem) {
		memset(mem, 0, bytes);
		e->live_bytes += bytes;
	}
	return mem;
}

static void mem_put(void *ctx, void *mem, uint64_t bytes)
{
	struct test_env *e = ctx;

	assert_true(e->live_bytes >= bytes);
	e->live_bytes -= bytes;
	free(mem);
}

static uint64_t next_random(void *ctx)
{
	return ++((struct test_env *)ctx)->rng;
}

static void keep_line(void *ctx, enum sw_log_level level, const char *text)
{
	struct test_env *e = ctx;
	size_t n = strlen(e->lines);

	(void)level;
	if (n + strlen(text) + 2 > sizeof(e->lines))
		n = 0; /* start over: tests read the last lines */
	snprintf(e->lines + n, sizeof(e->lines) - n, "%s\n", text);
}

void test_env_init(struct test_env *e)
{
	*e = (struct test_env){.live_blocks = alloc_live()};
	e->log = (struct sw_log){
		.line = keep_line, .ctx = e, .level = SW_LOG_DEBUG};
	e->env = (struct sw_env){.log = &e->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = e,
		.mem_ready = mem_ready,
		.mem_drop = mem_drop,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = next_random};
}

void test_env_fini(struct test_env *e)
{
	assert_int_equal(e->live_bytes, 0);
	for (uint32_t i = 0; i < SW_MEM_OWNERS; i++)
		assert_int_equal(e->prepared[i], 0);
	assert_int_equal(alloc_live(), e->live_blocks);
}
