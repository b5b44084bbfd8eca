/* unit_huge.c - the work on a tensor does not depend on its size.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor has the maximum number of chunks, in memory without pages behind it.
 * Code that walks over the memory, or over its chunks' records, takes a page
 * fault per page.
 */
#include "engine/worker/faults.h"
#include "engine/worker/tuning.h"
#include "test/support/server_rig.h"
#include "test/support/worker_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
	/* Maximum number of faults in one call, including a sanitizer's own.
	 * The records of 64 GiB alone would take 131,000. */
	FAULTS_MAX = 500,
	/* The same for code that would fault once per tensor, in SW_TENSORS
	 * calls, if its memory lacked pages. */
	STRAY_MAX = 16,
	FRAMES = 8,
};

static const uint64_t n_elems = (uint64_t)SW_BITMAP_MAX * PEER_CHUNK;

static void *map(void *ctx, uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)ctx;
	if (mem == MAP_FAILED)
		return NULL;
	madvise(mem, bytes, MADV_NOHUGEPAGE);
	return mem;
}

static void unmap(void *ctx, void *mem, uint64_t bytes)
{
	(void)ctx;
	munmap(mem, bytes);
}

static void use(struct test_env *e)
{
	e->env.mem_get = map;
	e->env.mem_put = unmap;
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt;
}

/* Check that there were few faults since @before, and set @before to now. */
static void check_few(long *before, const char *what)
{
	long n = faults() - *before;

	if (n > FAULTS_MAX)
		fail_msg("%s: %ld page faults", what, n);
	*before = faults();
}

static void walk_worker(const struct sw_policy *policy)
{
	static struct worker_rig rig, *r = &rig;
	uint64_t bytes = n_elems * 4;
	struct sw_worker_tensor t = {
		.name = "huge", .n_elems = n_elems, .dtype = SW_I32};
	long before;

	wrig_open(r, 0, 2, 1);
	use(&r->env);
	assert_int_equal(sw_tuning_use(&r->w, policy, 0, 0), 0);
	wrig_run(r);
	t.base = map(NULL, bytes);
	assert_non_null(t.base);
	wrig_tx(r);
	before = faults();
	assert_int_equal(sw_worker_declare(&r->w, &t, 1), 0);
	wrig_tx(r);
	check_few(&before, "declare");
	peer_declared(&r->s[0]);
	wrig_tx(r);
	check_few(&before, "declared");
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 1), 0);
	check_few(&before, "submit");
	for (uint32_t i = 0; i < FRAMES; i++)
		wrig_tx_one(r);
	check_few(&before, "pushes");
	peer_result(&r->s[0], 0, 1, 0, 5);
	wrig_tick(r, SW_MS);
	check_few(&before, "result");
	sw_tensor_kill(&r->w, &r->w.tensors[0], 1,
		&(struct sw_fault){.err = SW_EMISMATCH});
	wrig_tick(r, 0);
	check_few(&before, "kill");
	/* Later frames of the round are stale. */
	peer_result(&r->s[0], 0, 1, 1, 5);
	assert_int_equal(r->w.stats.result_again, 1);
	assert_int_equal(r->w.stats.results, 1);
	sw_worker_fail(&r->w, SW_ESERVER, SW_KEY_NONE, "the server is silent");
	wrig_tick(r, 0);
	check_few(&before, "fail");
	wrig_close(r);
	check_few(&before, "close");
	unmap(NULL, t.base, bytes);
}

static void worker__few_pages(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SW_N_POLICIES; i++)
		walk_worker(&sw_policies[i]);
}

static void *map_present(void *ctx, uint64_t bytes)
{
	void *mem = map(ctx, bytes);

	return mem && !madvise(mem, bytes, MADV_POPULATE_WRITE) ? mem : NULL;
}

static void wait_for_keys(struct worker_rig *r)
{
	while (r->w.n_admitted < r->w.n_tensors) {
		wrig_tx(r);
		for (uint32_t i = 0; i < r->n_servers; i++)
			peer_declared(&r->s[i]);
	}
}

/* Open and build make all pages present, so an lcore takes no fault for
 * them. */
static void worker__opened_with_all_pages(void **state)
{
	static struct sw_worker_tensor list[SW_TENSORS];
	static char names[SW_TENSORS][16];
	static struct worker_rig rig, *r = &rig;
	long before;

	(void)state;
	wrig_open(r, 0, 2, WRIG_SERVERS);
	use(&r->env);
	r->env.env.mem_get = map_present;
	wrig_run(r);
	for (uint32_t i = 0; i < SW_TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.n_elems = 1 + i % 2 * 64 * PEER_CHUNK,
			.dtype = SW_I32,
			.priority = i,
			.base = r->data};
	}
	assert_int_equal(sw_worker_build(&r->w, list, SW_TENSORS), 0);
	assert_int_equal(sw_worker_add(&r->w), 0);
	wait_for_keys(r);
	before = faults();
	for (uint32_t i = 0; i < SW_TENSORS; i++)
		assert_int_equal(sw_worker_push(&r->w, i, 0, 1), 0);
	assert_in_range(faults() - before, 0, STRAY_MAX);
	sw_worker_fail(&r->w, SW_ESERVER, SW_KEY_NONE, "the server is silent");
	while (sw_worker_take(&r->w))
		;
	wrig_close(r);
}

static void server__few_pages(void **state)
{
	static struct server_rig rig, *r = &rig;
	long before;

	(void)state;
	server_rig_open(r, 2, UINT64_MAX / 2);
	use(&r->env);
	for (uint32_t i = 0; i < 2; i++)
		rig_join(r, i);
	before = faults();
	assert_string_equal(rig_declare(r, 0, "huge", SW_I32, n_elems, 0),
		"w0 DECLARED k0");
	rig_declare(r, 1, "huge", SW_I32, n_elems, 0);
	check_few(&before, "declare");
	for (uint32_t i = 0; i < 2; i++)
		peer_push(&r->w[i], 0, 1, 0, 7);
	rig_tx(r);
	assert_true(rig_result_is(r, 14));
	check_few(&before, "sum");
	peer_leave(&r->w[1], SW_EPEER, "it died");
	rig_tx(r);
	check_few(&before, "leave");
	server_rig_close(r);
	check_few(&before, "close");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker__few_pages),
		cmocka_unit_test(worker__opened_with_all_pages),
		cmocka_unit_test(server__few_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
