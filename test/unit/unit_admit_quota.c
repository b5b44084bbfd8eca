/* unit_admit_quota.c - memory for tensors at a server.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

enum { QUOTA = 64 << 20 };

/* One member has joined, nothing is due. */
static struct server_rig *open_joined(uint64_t quota_bytes)
{
	static struct server_rig r;

	server_rig_open(&r, 1, quota_bytes);
	rig_join(&r, 0);
	return &r;
}

static void declare__quota(void **state)
{
	struct server_rig *r = open_joined(2 << 20);

	assert_string_equal(rig_declare(r, 0, 0, "a", SW_I32, 100000, 0),
		"w0 DECLARED b0 k0");
	assert_contains(rig_declare(r, 0, 1, "b", SW_I32, 300000, 0),
		"SW_EREFUSED quota: the tensors need 3 MiB, 1 of 2 MiB");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 1);
	server_rig_close(r);
}

/* The job's own quota counts what it has by now. */
static void declare__quota_of_the_job(void **state)
{
	static const struct sw_share shares[] = {
		{.job = "other", .weight = 1, .quota_bytes = 1 << 20},
		{.job = "job", .weight = 1, .quota_bytes = 2 << 20}};
	static struct server_rig rig, *r = &rig;

	server_rig_open(r, 1, 64 << 20);
	assert_int_equal(sw_server_share(r->srv, shares, 2), 0);
	rig_join(r, 0);
	assert_string_equal(rig_declare(r, 0, 0, "a", SW_I32, 100000, 0),
		"w0 DECLARED b0 k0");
	assert_contains(rig_declare(r, 0, 1, "b", SW_I32, 300000, 0),
		"SW_EREFUSED quota of job job: the tensors need 3 MiB, 1 of 2 "
		"MiB are left");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 1);
	server_rig_close(r);
}

/* Several lcores share a quota: what the others have counts, what came back is
 * free, and the job's end gives all of its own back. */
static void declare__quota_of_several_lcores(void **state)
{
	static _Atomic uint64_t all, of_job;
	static const struct sw_share share = {.job = "job",
		.weight = 1,
		.quota_bytes = 3 << 20,
		.all_used = &of_job};
	static struct server_rig rig, *r = &rig;
	uint64_t mine;

	for (uint32_t i = 0; i < 2; i++) {
		all = of_job = 2 << 20; /* the others' */
		server_rig_open(r, 1, 4 << 20);
		r->srv->all_used = &all;
		assert_int_equal(sw_server_share(r->srv, &share, 1), 0);
		rig_join(r, 0);
		assert_string_equal(rig_declare(r, 0, 0, "a", SW_I32, 60000, 0),
			"w0 DECLARED b0 k0");
		mine = r->srv->used_bytes;
		assert_true(mine > 480000);
		assert_int_equal(all, (2 << 20) + mine);
		assert_int_equal(of_job, all);
		of_job -= i << 20; /* another lcore gives back */
		if (i == 0)
			assert_contains(
				rig_declare(r, 0, 1, "b", SW_I32, 100000, 0),
				"quota of job job: the tensors need 1 MiB, 0 "
				"of 3 MiB are left");
		else
			assert_string_equal(
				rig_declare(r, 0, 1, "b", SW_I32, 100000, 0),
				"w0 DECLARED b1 k1");
		assert_int_equal(all, (2 << 20) + r->srv->used_bytes);
		server_rig_close(r);
		assert_int_equal(all, 2 << 20);
		assert_int_equal(of_job, (2 - i) << 20);
	}
}

static void declare__no_memory(void **state)
{
	struct server_rig *r = open_joined(QUOTA);

	r->env.is_short = true;
	assert_contains(rig_declare(r, 0, 0, "a", SW_I32, 10, 0),
		"SW_ENOMEM tensor a: the server has no memory for it");
	assert_int_equal(r->srv->used_bytes, 0);
	server_rig_close(r);
}

/* Memory is made beside the lcore: no answer until it is there, and the same
 * batch is admitted when it comes again. */
static void declare__memory_in_preparation(void **state)
{
	struct server_rig *r = open_joined(QUOTA);

	r->env.is_preparing = true;
	for (uint32_t n = 0; n < 3; n++)
		assert_string_equal(
			rig_declare(r, 0, 0, "a", SW_I32, 10, 0), "");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	assert_int_equal(r->srv->used_bytes, 0);
	r->env.is_preparing = false;
	assert_string_equal(
		rig_declare(r, 0, 0, "a", SW_I32, 10, 0), "w0 DECLARED b0 k0");
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__quota),
		cmocka_unit_test(declare__quota_of_the_job),
		cmocka_unit_test(declare__quota_of_several_lcores),
		cmocka_unit_test(declare__no_memory),
		cmocka_unit_test(declare__memory_in_preparation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
