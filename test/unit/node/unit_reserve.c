/* unit_reserve.c - memory that the control thread prepares for an lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The test plays both threads.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "apps/node/reserve.h"
#include "pmd/host/nodes.h"
#include "test/support/random.h"
#include "test/support/unit.h"

enum { MIB = 1 << 20, LARGE = 256 * MIB };

/* Return the number of this process's mapped or present pages. */
static uint64_t pages(bool is_present)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long long mapped, present;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu %llu", &mapped, &present), 2);
	fclose(f);
	return is_present ? present : mapped;
}

static uint64_t mapped_bytes(void)
{
	return pages(false) * 4096;
}

static uint64_t present_bytes(void)
{
	return pages(true) * 4096;
}

static struct sw_reserve *open_reserve(void)
{
	static struct sw_reserve r;

	r = (struct sw_reserve){.node = SW_NUMA_ANY};
	sw_reserve_open(&r);
	return &r;
}

/* Let all ports pass a turn, and let the control thread finish its work. */
static void settle(struct sw_reserve *r)
{
	for (uint32_t i = 0; i < 3; i++) {
		sw_reserve_turn(r);
		sw_reserve_pass(r);
		while (sw_reserve_work(r))
			;
	}
}

/* Call sw_reserve_work until @owner has its batch, at most @max times; return
 * the number of calls. */
static uint32_t await(
	struct sw_reserve *r, uint32_t owner, uint64_t bytes, uint32_t max)
{
	uint32_t n = 0;

	for (; !sw_reserve_ready(r, owner, bytes) && n < max; n++)
		sw_reserve_work(r);
	return n;
}

static void ready__small_batches_at_once(void **state)
{
	struct sw_reserve *r = open_reserve();

	for (uint32_t i = 0; i < SW_RESERVE_STOCK / 4096; i++) {
		assert_true(sw_reserve_ready(r, i % 8, 4000));
		assert_non_null(sw_reserve_get(r, 4000));
	}
	/* The batch is used up, and the next one is prepared. */
	assert_false(sw_reserve_ready(r, 0, 4000));
	assert_true(await(r, 0, 4000, 10) < 10);
	assert_non_null(sw_reserve_get(r, 4000));
	sw_reserve_close(r);
}

static void work__makes_a_slice(void **state)
{
	struct sw_reserve *r = open_reserve();
	uint64_t before;

	assert_false(sw_reserve_ready(r, 0, LARGE));
	for (uint64_t made = 0; made < LARGE; made += SW_RESERVE_SLICE) {
		assert_false(sw_reserve_ready(r, 0, LARGE));
		before = present_bytes();
		assert_true(sw_reserve_work(r));
		assert_in_range(
			present_bytes() - before, 0, SW_RESERVE_SLICE + MIB);
	}
	assert_true(sw_reserve_ready(r, 0, LARGE));
	assert_false(sw_reserve_work(r));
	sw_reserve_close(r);
}

/* One owner wants much, and later owners want little: each waits for its own
 * slices and for one slice of each other owner per turn. */
static void work__takes_turns(void **state)
{
	struct sw_reserve *r = open_reserve();
	uint64_t small = 2 * SW_RESERVE_SLICE;

	assert_false(sw_reserve_ready(r, 0, LARGE));
	sw_reserve_work(r);
	assert_false(sw_reserve_ready(r, 1, small));
	assert_in_range(await(r, 2, small, 100), 2, 8);
	assert_in_range(await(r, 1, small, 100), 0, 2);
	assert_true(sw_reserve_ready(r, 3, 4000));
	assert_false(sw_reserve_ready(r, 0, LARGE));
	assert_in_range(await(r, 0, LARGE, 1000), 1, LARGE / SW_RESERVE_SLICE);
	sw_reserve_close(r);
}

/* Memory prepared for one batch serves no other batch. */
static void ready__takes_no_block_of_another(void **state)
{
	struct sw_reserve *r = open_reserve();
	char *mem;

	await(r, 0, 16 * MIB, 100);
	sw_reserve_drop(r, 0);
	sw_reserve_ready(r, 0, 8 * MIB);
	while (sw_reserve_work(r))
		;
	assert_false(sw_reserve_ready(r, 1, 6 * MIB));
	assert_true(sw_reserve_ready(r, 1, 4000));
	assert_non_null(sw_reserve_get(r, 4000));
	assert_null(sw_reserve_get(r, 8 * MIB));
	sw_reserve_turn(r);
	assert_true(sw_reserve_ready(r, 0, 8 * MIB));
	mem = sw_reserve_get(r, 8 * MIB);
	assert_non_null(mem);
	assert_null(sw_reserve_get(r, 4096)); /* not more than requested */
	sw_reserve_close(r);
}

/* The rest of a batch is released at its end. */
static void turn__drops_the_rest(void **state)
{
	struct sw_reserve *r = open_reserve();
	uint64_t before = mapped_bytes();
	void *mem;

	await(r, 0, 16 * MIB, 100);
	mem = sw_reserve_get(r, 4 * MIB);
	assert_non_null(mem);
	settle(r);
	assert_int_equal(mapped_bytes(), before + 4 * MIB);
	assert_null(sw_reserve_get(r, 4096));
	sw_reserve_put(r, mem, 4 * MIB);
	settle(r);
	assert_int_equal(mapped_bytes(), before);
	sw_reserve_close(r);
}

/* The job ends before, while and after its memory is prepared. */
static void drop__gives_all_back(void **state)
{
	struct sw_reserve *r = open_reserve();
	uint32_t n_slices = 64 * MIB / SW_RESERVE_SLICE;
	uint64_t before = mapped_bytes();

	for (uint32_t n = 0; n <= n_slices; n += n_slices / 4) {
		assert_false(sw_reserve_ready(r, 5, 64 * MIB));
		for (uint32_t i = 0; i < n; i++)
			assert_true(sw_reserve_work(r));
		sw_reserve_drop(r, 5);
		sw_reserve_drop(r, 5); /* a second drop has no effect */
		settle(r);
		assert_int_equal(mapped_bytes(), before);
	}
	assert_true(await(r, 5, 64 * MIB, 100) < 100);
	sw_reserve_close(r);
}

/* The daemon closes between two slices. */
static void close__while_memory_is_made(void **state)
{
	uint64_t before = mapped_bytes();
	struct sw_reserve *r = open_reserve();

	sw_reserve_ready(r, 0, LARGE);
	sw_reserve_ready(r, 1, LARGE);
	sw_reserve_work(r);
	sw_reserve_close(r);
	assert_int_equal(mapped_bytes(), before);
}

/* A lack of memory is logged once, and the next batch is tried again. */
static void ready__no_memory(void **state)
{
	struct sw_reserve *r = open_reserve();
	struct rlimit before, limit;

	getrlimit(RLIMIT_AS, &before);
	limit = before;
	limit.rlim_cur = mapped_bytes() + 64 * MIB;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(await(r, 0, LARGE, 100), 1);
	assert_null(sw_reserve_get(r, 4096));
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_true(await(r, 0, LARGE, 1000) < 1000);
	assert_non_null(sw_reserve_get(r, LARGE));
	sw_reserve_close(r);
}

static int64_t faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_minflt;
}

/* Touch every page, but no page of a sanitizer's shadow. */
__attribute__((no_sanitize("address", "thread"))) static void touch(
	volatile char *mem, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 4096)
		mem[i] = 1;
}

/* Getting prepared memory, the lcore's part of an admission, takes no page
 * fault. */
static void get__costs_no_page_fault(void **state)
{
	static const uint64_t sizes[] = {4000, 64 * MIB};
	struct sw_reserve *r = open_reserve();

	for (uint32_t i = 0; i < 2; i++) {
		int64_t before;
		char *mem;

		await(r, 0, sizes[i], 100);
		before = faults();
		mem = sw_reserve_get(r, sizes[i]);
		assert_non_null(mem);
		touch(mem, sizes[i]);
		sw_reserve_put(r, mem, sizes[i]);
		sw_reserve_turn(r);
		assert_in_range(faults() - before, 0, 8);
	}
	sw_reserve_close(r);
}

/* --- both threads, in any order --- */

struct owner {
	uint64_t wanted; /* bytes that the owner asks for; 0: none */
	char *mem;       /* memory of that size */
};

/* One step of the lcore for one owner: ask, take, or put back. */
static void step_owner(
	struct sw_reserve *r, uint32_t i, struct owner *o, uint64_t *rng)
{
	if (o->mem) {
		sw_reserve_put(r, o->mem, o->wanted);
		*o = (struct owner){0};
		return;
	}
	if (!o->wanted)
		o->wanted = 1 + test_random(rng) % (12 * MIB);
	if (!sw_reserve_ready(r, i, o->wanted))
		return;
	o->mem = sw_reserve_get(r, o->wanted);
	assert_non_null(o->mem);
	assert_int_equal(o->mem[0] | o->mem[o->wanted - 1], 0);
	memset(o->mem, 1 + (int)i, o->wanted);
}

static void step(struct sw_reserve *r, struct owner *owners, uint64_t *rng)
{
	uint32_t i = (uint32_t)(test_random(rng) % SW_MEM_OWNERS);

	switch (test_random(rng) % 8) {
	case 0:
		sw_reserve_turn(r);
		break;
	case 1:
		sw_reserve_pass(r);
		break;
	case 2:
		if (owners[i].mem)
			break;
		sw_reserve_drop(r, i);
		owners[i].wanted = 0;
		break;
	case 3:
	case 4:
		step_owner(r, i, &owners[i], rng);
		break;
	default:
		sw_reserve_work(r);
	}
	for (i = 0; i < SW_MEM_OWNERS; i++) /* no owner has another's memory */
		if (owners[i].mem)
			assert_int_equal(
				owners[i].mem[owners[i].wanted - 1], 1 + i);
}

static void threads__in_any_order(void **state)
{
	enum { SEEDS = 20, STEPS = 300 };
	uint64_t before = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct owner owners[SW_MEM_OWNERS] = {0};
		struct sw_reserve *r;
		uint64_t rng = seed;

		/* by now the libraries have made their first allocations */
		if (seed == 1)
			before = mapped_bytes();
		r = open_reserve();
		for (uint32_t i = 0; i < STEPS; i++)
			step(r, owners, &rng);
		for (uint32_t i = 0; i < SW_MEM_OWNERS; i++)
			if (owners[i].mem)
				sw_reserve_put(
					r, owners[i].mem, owners[i].wanted);
		sw_reserve_close(r);
	}
	assert_in_range(mapped_bytes(), 0, before + MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready__small_batches_at_once),
		cmocka_unit_test(work__makes_a_slice),
		cmocka_unit_test(work__takes_turns),
		cmocka_unit_test(ready__takes_no_block_of_another),
		cmocka_unit_test(turn__drops_the_rest),
		cmocka_unit_test(drop__gives_all_back),
		cmocka_unit_test(close__while_memory_is_made),
		cmocka_unit_test(ready__no_memory),
		cmocka_unit_test(get__costs_no_page_fault),
		cmocka_unit_test(threads__in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
