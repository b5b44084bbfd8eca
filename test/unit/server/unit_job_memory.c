/* unit_job_memory.c - a server takes the memory that its formula predicts.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/alloc.h"
#include "test/support/server_rig.h"

enum { CHUNKS = 300, N_TENSORS = 4 };

static const struct {
	const char *name;
	uint32_t dtype;
	uint64_t n_elems;
	uint64_t slots_bytes; /* of a chunk; R is rounded up to 64 */
} tensors[N_TENSORS] = {
	{"f32", SW_F32, CHUNKS *PEER_PAYLOAD / 4, 2 * PEER_PAYLOAD},
	{"f16", SW_F16, CHUNKS *PEER_PAYLOAD / 2 - 7, 3 * PEER_PAYLOAD},
	{"tiny", SW_I32, 3, 2 * 64},
	{"i32", SW_I32, PEER_CHUNK, 2 * PEER_PAYLOAD},
};

static uint32_t n_chunks(uint32_t i)
{
	return i < 2 ? CHUNKS : 1;
}

/* "2 x declared bytes, 3 x for 16-bit types, 64 B per chunk and rank bits" */
static uint64_t formula(uint32_t n_members)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < N_TENSORS; i++)
		sum += n_chunks(i) * (tensors[i].slots_bytes + 64) +
		       n_members * 8 * sw_bitmap_words(n_chunks(i));
	return sum;
}

/* Sum one round of the last tensor over all members. */
static void sum_once(struct server_rig *r)
{
	for (uint32_t i = 0; i < r->n_members; i++)
		peer_push(&r->w[i], N_TENSORS - 1, 1, 0, 1);
	rig_tx(r);
	assert_true(rig_result_is(r, (int32_t)r->n_members));
}

static void check_members(uint32_t n)
{
	static struct server_rig r;
	uint64_t before, taken, calls;

	server_rig_open(&r, (uint16_t)n, 1 << 30);
	before = alloc_bytes();
	for (uint32_t i = 0; i < n; i++)
		rig_join(&r, i);
	for (uint32_t i = 0; i < n; i++)
		/* makes room in the window for the last STATUS */
		peer_keepalive(&r.w[i]);
	rig_tx(&r);
	assert_int_equal(r.srv->jobs[0].status.state, SW_JOB_RUNNING);
	taken = alloc_bytes() - before;
	/* the test rounds blocks up to whole cache lines */
	assert_in_range(taken, sw_job_bytes(n), sw_job_bytes(n) + 2 * 63);
	before = alloc_bytes();
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t t = 0; t < N_TENSORS; t++)
			assert_contains(rig_declare(&r, i, tensors[t].name,
						tensors[t].dtype,
						tensors[t].n_elems, 0),
				"DECLARED");
	taken = alloc_bytes() - before;
	/* the test rounds blocks up to whole cache lines */
	assert_in_range(taken, formula(n), formula(n) + 63 * N_TENSORS);
	assert_int_equal(r.srv->quota.used_bytes, formula(n));
	calls = alloc_calls();
	sum_once(&r);
	assert_int_equal(alloc_calls(), calls);
	server_rig_close(&r);
}

static void memory__is_what_is_printed(void **state)
{
	for (uint32_t n = 2; n <= SW_MAX_MEMBERS; n *= 2)
		check_members(n);
}

/* So the log line at the start can give one part per job and one per member. */
static void job_bytes__is_linear(void **state)
{
	uint64_t job = sw_job_bytes(0), member = sw_job_bytes(1) - job;

	assert_int_equal(sw_job_bytes(64), job + 64 * member);
	assert_in_range(member, sizeof(struct sw_session), 128 << 10);
	assert_in_range(job, 1 << 20, 13 << 18);
}

/* The control thread prepares a job's memory. Until it is ready, the first
 * worker's frames do not count, and the server repeats its offer. Afterwards
 * nothing allocates, also for workers that return: the memory includes the
 * sessions. */
static void join__memory_in_preparation(void **state)
{
	static struct server_rig rig, *r = &rig;
	uint64_t calls;

	server_rig_open(r, 3, 1 << 20);
	r->env.is_preparing = true;
	assert_string_equal(rig_join(r, 0), "w0 ACCEPT");
	assert_int_equal(r->env.prepared[0], sw_job_bytes(3) + 2 * 4096);
	assert_null(sw_job_find(r->srv, "job"));
	rig_tick(r, r->params.retry_min);
	assert_string_equal(rig_tx(r), "w0 ACCEPT");
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "");
	r->env.is_preparing = false;
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "w0 STATUS forming 1");
	calls = alloc_calls();
	rig_join(r, 1);
	peer_leave(&r->w[1], 0, "");
	rig_tx(r);
	r->w[1].nonce++;
	assert_contains(rig_join(r, 1), "w1 STATUS forming");
	assert_true(alloc_calls() == calls);
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__is_what_is_printed),
		cmocka_unit_test(job_bytes__is_linear),
		cmocka_unit_test(join__memory_in_preparation)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
