/* unit_nomem.c - let the nth allocation fail, for every n.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each sweep repeats an action with one more successful allocation, until no
 * allocation fails. A failed action reports the failure, releases all that it
 * took, and does not keep later ones from succeeding.
 */
#include "test/support/alloc.h"
#include "test/support/server_rig.h"
#include "test/support/worker_rig.h"

#include <stdlib.h>

/* More allocations than any of these actions makes. */
enum { SWEEP_MAX = 100 };

/* --- server --- */

/* A server without jobs is one block of memory. */
static void server_open__sweep(void **state)
{
	static struct server_rig r;
	uint64_t calls;

	server_rig_open(&r, 1, 64 << 20);
	sw_server_close(r.srv);
	alloc_fail_at(1);
	assert_int_equal(sw_server_open(&r.srv, &r.params, &r.env.env, r.ports,
				 1, 64 << 20),
		SW_ENOMEM);
	alloc_fail_at(0);
	assert_null(r.srv);
	calls = alloc_calls();
	assert_int_equal(sw_server_open(&r.srv, &r.params, &r.env.env, r.ports,
				 1, 64 << 20),
		0);
	assert_true(alloc_calls() == calls + 1);
	server_rig_close(&r);
}

static const char *try_join(struct server_rig *r, uint32_t nth)
{
	uint64_t calls = alloc_calls();

	rig_join_only(r, 0);
	assert_true(alloc_calls() == calls); /* the JOIN is not confirmed yet */
	alloc_fail_at(nth);
	peer_keepalive(&r->w[0]);
	alloc_fail_at(0);
	return rig_tx(r);
}

static void join__sweep(void **state)
{
	uint32_t nth = 1;

	for (; nth < SWEEP_MAX; nth++) {
		static struct server_rig r;
		uint64_t calls;

		server_rig_open(&r, 1, 64 << 20);
		calls = alloc_calls();
		if (strstr(try_join(&r, nth), "STATUS")) {
			assert_true(alloc_calls() - calls < nth);
			server_rig_close(&r);
			break;
		}
		assert_contains(r.text,
			"SW_EREFUSED the server has no memory for agent 0 of "
			"job job");
		assert_null(sw_job_find(r.srv, "job"));
		assert_int_equal(r.srv->quota.used_bytes, 0);
		assert_contains(rig_join(&r, 0), "w0 ACCEPT");
		server_rig_close(&r);
	}
	assert_in_range(nth, 3, SWEEP_MAX - 1);
}

static void declare__sweep(void **state)
{
	static const uint8_t dtypes[] = {SW_I32, SW_F16};

	for (size_t i = 0; i < SW_ARRAY_SIZE(dtypes); i++) {
		uint32_t nth = 1;

		for (; nth < SWEEP_MAX; nth++) {
			static struct server_rig r;
			const char *text;
			uint64_t tables;

			server_rig_open(&r, 1, 64 << 20);
			rig_join(&r, 0);
			tables = r.env.live_bytes;
			alloc_fail_at(nth);
			text = rig_declare(&r, 0, "a", dtypes[i], 5000, 0);
			alloc_fail_at(0);
			if (strstr(text, "DECLARED")) {
				server_rig_close(&r);
				break;
			}
			assert_contains(text, "SW_ENOMEM tensor a");
			assert_int_equal(r.srv->jobs[0].shard.n_tensors, 0);
			assert_int_equal(r.srv->quota.used_bytes, 0);
			assert_int_equal(r.env.live_bytes, tables);
			/* The worker leaves, joins again, and gets its
			 * tensor. */
			peer_leave(&r.w[0], SW_ENOMEM, "no memory");
			rig_tx(&r);
			r.w[0].nonce++;
			rig_join(&r, 0);
			assert_contains(
				rig_declare(&r, 0, "a", dtypes[i], 5000, 0),
				"DECLARED");
			server_rig_close(&r);
		}
		/* all memory of the job is one block */
		assert_int_equal(nth, 2);
	}
}

/* --- worker --- */

static void worker_open__sweep(void **state)
{
	struct sw_worker_server servers[2] = {
		{.name = "a", .path = {.ip = sw_ip_v4(1)}},
		{.name = "b", .path = {.ip = sw_ip_v4(2)}}};
	struct sw_worker_job job = {.job = "job",
		.node = "node",
		.n_members = 1,
		.n_local = 1,
		.servers = servers,
		.n_servers = 2};
	struct sw_worker_events events = {0};
	struct sw_params params;
	struct sw_port wire = {0}, *port = &wire;
	uint32_t nth = 1;
	int err = SW_ENOMEM;

	sw_params_init(&params);
	for (; nth < SWEEP_MAX && err; nth++) {
		static struct sw_worker w;
		struct test_env e;

		test_env_init(&e);
		alloc_fail_at(nth);
		err = sw_worker_open(
			&w, &params, &e.env, &events, &job, &port, 1, 1);
		assert_int_equal(err, alloc_has_failed() ? SW_ENOMEM : 0);
		alloc_fail_at(0);
		if (!err)
			sw_worker_close(&w);
		test_env_fini(&e);
	}
	assert_in_range(nth, 4, SWEEP_MAX - 1);
}

static void worker_declare__sweep(void **state)
{
	struct sw_worker_tensor list[2] = {
		{.name = "a", .n_elems = 1000, .dtype = SW_I32},
		{.name = "b", .n_elems = 1000, .dtype = SW_I32}};
	static struct worker_rig r;
	uint32_t nth = 1;

	wrig_open(&r, 0, 2, 2);
	wrig_run(&r);
	for (; nth < SWEEP_MAX; nth++) {
		int64_t live = alloc_live();
		int err;

		alloc_fail_at(nth);
		err = sw_worker_declare(&r.w, list, 2);
		alloc_fail_at(0);
		if (!err)
			break;
		assert_int_equal(err, SW_ENOMEM);
		assert_int_equal(alloc_live(), live);
		assert_int_equal(r.w.n_tensors, 0);
		assert_string_equal(wrig_tx(&r), "");
	}
	assert_int_equal(nth, 2); /* one block serves both tensors */
	assert_string_equal(wrig_tx(&r), "s0 DECLARE a b");
	wrig_close(&r);
}

/* The key arrives later and needs no memory. */
static void worker_declared__allocates_nothing(void **state)
{
	static struct worker_rig r;
	struct sw_worker_tensor t = {
		.name = "a", .n_elems = 1000, .dtype = SW_I32};
	uint64_t calls;

	wrig_open(&r, 0, 2, 1);
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), 0);
	wrig_tx(&r);
	calls = alloc_calls();
	peer_declared(&r.s[0]);
	assert_true(alloc_calls() == calls);
	assert_string_equal(wrig_events(&r), "declared");
	wrig_close(&r);
}

/* Rounds allocate nothing, because every pool was filled in advance. */
static void rounds__allocate_nothing(void **state)
{
	static struct server_rig s;
	static struct worker_rig w;
	uint64_t calls;

	server_rig_open(&s, 2, 64 << 20);
	rig_run(&s, 4 * PEER_CHUNK);
	wrig_open(&w, 0, 2, 1);
	wrig_run(&w);
	wrig_declare(&w, "a", 4 * PEER_CHUNK, 0);
	calls = alloc_calls();
	for (uint32_t round = 1; round < 50; round++) {
		for (uint32_t c = 0; c < 4; c++)
			for (uint32_t i = 0; i < 2; i++)
				peer_push(&s.w[i], 0, round, c, 1);
		rig_tick(&s, SW_MS);
		rig_tx(&s);
		sw_worker_push(&w.w, 0, round, 1);
		wrig_tick(&w, SW_MS);
		wrig_tx(&w);
		for (uint32_t c = 0; c < 4; c++)
			peer_result(&w.s[0], 0, round, c, 1);
		wrig_events(&w);
	}
	assert_true(alloc_calls() == calls);
	assert_true(s.srv->stats.chunks_done == 4 * 49);
	assert_true(w.w.stats.results == 4 * 49);
	wrig_close(&w);
	server_rig_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_open__sweep),
		cmocka_unit_test(join__sweep),
		cmocka_unit_test(declare__sweep),
		cmocka_unit_test(worker_open__sweep),
		cmocka_unit_test(worker_declare__sweep),
		cmocka_unit_test(worker_declared__allocates_nothing),
		cmocka_unit_test(rounds__allocate_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
