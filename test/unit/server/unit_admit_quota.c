/* unit_admit_quota.c - a server's quota and memory for tensors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

#include <string.h>

#include "engine/base/error.h"

enum { QUOTA = 64 << 20 };

/* Open a server that one member has joined, with no frame due. */
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

	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 100000, 0), "w0 DECLARED k0");
	assert_contains(rig_declare(r, 0, "b", SW_I32, 300000, 0),
		"SW_EREFUSED quota: the tensors need 3 MiB, 1 of 2 MiB");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 1);
	server_rig_close(r);
}

/* The job's own quota includes the memory that the job already has. */
static void declare__quota_of_the_job(void **state)
{
	static const struct sw_share shares[] = {
		{.job = "other", .weight = 1, .quota_bytes = 1 << 20},
		{.job = "job", .weight = 1, .quota_bytes = 2 << 20}};
	static struct server_rig rig, *r = &rig;

	server_rig_open(r, 1, 64 << 20);
	assert_int_equal(sw_server_share(r->srv, shares, 2), 0);
	rig_join(r, 0);
	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 100000, 0), "w0 DECLARED k0");
	assert_contains(rig_declare(r, 0, "b", SW_I32, 300000, 0),
		"SW_EREFUSED quota of job job: the tensors need 3 MiB, 1 of 2 "
		"MiB are left");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 1);
	server_rig_close(r);
}

/* Several lcores share a quota. Other lcores' use counts, memory that they
 * return is free again, and at its end the job returns all of its own. */
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
		all = of_job = 2 << 20; /* used by other lcores */
		server_rig_open(r, 1, 4 << 20);
		r->srv->quota.all_used = &all;
		assert_int_equal(sw_server_share(r->srv, &share, 1), 0);
		rig_join(r, 0);
		assert_string_equal(rig_declare(r, 0, "a", SW_I32, 60000, 0),
			"w0 DECLARED k0");
		mine = r->srv->quota.used_bytes;
		assert_true(mine > 480000);
		assert_int_equal(all, (2 << 20) + mine);
		assert_int_equal(of_job, all);
		of_job -= i << 20; /* another lcore returns some */
		if (i == 0)
			assert_contains(
				rig_declare(r, 0, "b", SW_I32, 100000, 0),
				"quota of job job: the tensors need 1 MiB, 0 "
				"of 3 MiB are left");
		else
			assert_string_equal(
				rig_declare(r, 0, "b", SW_I32, 100000, 0),
				"w0 DECLARED k1");
		assert_int_equal(all, (2 << 20) + r->srv->quota.used_bytes);
		server_rig_close(r);
		assert_int_equal(all, 2 << 20);
		assert_int_equal(of_job, (2 - i) << 20);
	}
}

/* A name that a batch has twice is one tensor, and the job returns exactly what
 * it took of the quota. */
static void declare__name_twice_gives_its_quota_back(void **state)
{
	static _Atomic uint64_t all, of_job;
	static const struct sw_share share = {.job = "job",
		.weight = 1,
		.quota_bytes = 4 << 20,
		.all_used = &of_job};
	static struct server_rig rig, *r = &rig;
	struct sw_declare_head head = {.n = 2, .payload = PEER_PAYLOAD};
	struct sw_declare_item item = {.n_elems = 60000,
		.key = SW_KEY_NONE,
		.dtype = SW_I32,
		.name_len = 1};
	uint8_t bytes[SW_PAYLOAD_MAX], *end = bytes;

	end = (uint8_t *)mempcpy(end, &head, sizeof(head));
	for (uint32_t i = 0; i < 2; i++) {
		end = (uint8_t *)mempcpy(end, &item, sizeof(item));
		*end++ = 'a';
	}
	server_rig_open(r, 1, 4 << 20);
	r->srv->quota.all_used = &all;
	assert_int_equal(sw_server_share(r->srv, &share, 1), 0);
	rig_join(r, 0);
	peer_say(&r->w[0], SW_DECLARE, bytes, (end - bytes));
	assert_string_equal(rig_tx(r), "w0 DECLARED k0 k0");
	assert_int_equal(all, r->srv->quota.used_bytes);
	assert_int_equal(of_job, r->srv->quota.used_bytes);
	server_rig_close(r);
	assert_int_equal(all, 0);
	assert_int_equal(of_job, 0);
}

static void declare__no_memory(void **state)
{
	struct server_rig *r = open_joined(QUOTA);

	r->env.is_short = true;
	assert_contains(rig_declare(r, 0, "a", SW_I32, 10, 0),
		"SW_ENOMEM tensor a: the server has no memory for it");
	assert_int_equal(r->srv->quota.used_bytes, 0);
	server_rig_close(r);
}

/* Retry the deferred DECLARE; return the frames that the server sends then. */
static const char *look_again(struct server_rig *r)
{
	rig_tick(r, r->srv->params.retry_min);
	return rig_tx(r);
}

/* The server defers the DECLARE while the control thread prepares memory. */
static void declare__memory_in_preparation(void **state)
{
	struct server_rig *r = open_joined(QUOTA);

	r->env.is_preparing = true;
	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 10, 0), "w0 KEEPALIVE");
	for (uint32_t n = 0; n < 3; n++)
		assert_string_equal(look_again(r), "");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	assert_true(r->srv->quota.used_bytes > 0); /* the bytes are reserved */
	assert_true(r->env.prepared[0] >= r->srv->quota.used_bytes);
	r->env.is_preparing = false;
	assert_string_equal(look_again(r), "w0 DECLARED k0");
	assert_int_equal(
		r->srv->quota.used_bytes, r->srv->jobs[0].shard.mem_bytes);
	server_rig_close(r);
}

/* The ranks of a job mostly declare the same tensors, so the server prepares
 * memory for one batch of a job at a time. Another rank's batch waits. */
static void declare__one_batch_of_a_job_is_prepared(void **state)
{
	static struct server_rig rig, *r = &rig;
	uint64_t bytes;

	server_rig_open(r, 3, QUOTA);
	for (uint32_t i = 0; i < 3; i++)
		rig_join(r, i);
	r->env.is_preparing = true;
	rig_declare(r, 0, "a", SW_I32, 100000, 0);
	bytes = r->env.prepared[0];
	rig_declare(r, 1, "b", SW_I32, 10, 0);
	assert_true(r->env.prepared[0] == bytes);
	r->env.is_preparing = false;
	assert_string_equal(
		rig_declare(r, 2, "a", SW_I32, 100000, 0), "w2 DECLARED k0");
	peer_keepalive(&r->w[2]);
	assert_string_equal(look_again(r), "w0 DECLARED k0; w1 DECLARED k1");
	assert_int_equal(
		r->srv->quota.used_bytes, r->srv->jobs[0].shard.mem_bytes);
	server_rig_close(r);
}

/* If another rank declares part of a batch while its memory is prepared, the
 * batch needs less memory and the rest is returned. */
static void declare__a_part_of_a_batch_that_is_prepared(void **state)
{
	static struct server_rig rig, *r = &rig;
	uint64_t used;

	server_rig_open(r, 2, QUOTA);
	rig_join(r, 0);
	rig_join(r, 1);
	rig_declare(r, 0, "a", SW_I32, 10, 0);
	used = r->srv->quota.used_bytes;
	r->env.is_preparing = true;
	rig_declare(r, 0, "b", SW_I32, 100000, 0);
	assert_true(r->srv->quota.used_bytes > used + 800000);
	r->env.is_preparing = false;
	assert_string_equal(
		rig_declare(r, 1, "b", SW_I32, 100000, 0), "w1 DECLARED k1");
	peer_keepalive(&r->w[1]);
	r->env.is_preparing = true;
	used = r->srv->jobs[0].shard.mem_bytes;
	assert_string_equal(look_again(r), "w0 DECLARED k1");
	assert_int_equal(r->srv->quota.used_bytes, used);
	assert_int_equal(r->env.prepared[0], 0);
	server_rig_close(r);
}

/* If the worker leaves during preparation, all memory is returned, whether or
 * not the job ends. */
static void leave__while_memory_is_prepared(void **state)
{
	static _Atomic uint64_t all;

	for (uint16_t n = 1; n <= 2; n++) {
		static struct server_rig rig, *r = &rig;

		server_rig_open(r, n, QUOTA);
		r->srv->quota.all_used = &all;
		for (uint32_t i = 0; i < n; i++)
			rig_join(r, i);
		r->env.is_preparing = true;
		rig_declare(r, 0, "a", SW_I32, 100000, 0);
		assert_true(all > 800000);
		peer_leave(&r->w[0], SW_EPEER, "it died");
		assert_int_equal(r->srv->jobs[0].n_sessions, n > 1);
		assert_int_equal(all, 0);
		assert_int_equal(r->srv->quota.used_bytes, 0);
		assert_int_equal(r->env.prepared[0], 0);
		server_rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__quota),
		cmocka_unit_test(declare__quota_of_the_job),
		cmocka_unit_test(declare__quota_of_several_lcores),
		cmocka_unit_test(declare__name_twice_gives_its_quota_back),
		cmocka_unit_test(declare__no_memory),
		cmocka_unit_test(declare__memory_in_preparation),
		cmocka_unit_test(declare__one_batch_of_a_job_is_prepared),
		cmocka_unit_test(declare__a_part_of_a_batch_that_is_prepared),
		cmocka_unit_test(leave__while_memory_is_prepared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
