/* unit_share.c - each job's share of a server.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "engine/server/share.h"
#include "test/support/server_rig.h"

/* Open a server with worker 0 in job "job" and worker 1 in job "other", which
 * has weight 3. */
static struct server_rig *open_rig(void)
{
	static const struct sw_share shares[] = {
		{.job = "other", .weight = 3, .quota_bytes = 5 << 20}};
	static struct server_rig r;
	struct sw_join j;

	server_rig_open(&r, 1, 64 << 20);
	assert_int_equal(sw_server_share(r.srv, shares, 1), 0);
	rig_join(&r, 0);
	rig_declare(&r, 0, "a", SW_I32, 4 * PEER_CHUNK, 0);
	peer_hello(&r.w[1]);
	j = rig_join_payload(&r, 1);
	strcpy(j.job, "other");
	j.member = 0;
	peer_say(&r.w[1], SW_JOIN, &j, sizeof(j));
	rig_tx(&r);
	peer_keepalive(&r.w[1]);
	rig_tx(&r);
	rig_declare(&r, 1, "a", SW_I32, 4 * PEER_CHUNK, 0);
	return &r;
}

static uint32_t window_of(const struct server_rig *r, uint32_t i)
{
	return r->srv->sessions[r->w[i].session >> 16]->peer.flow.window;
}

static void share__by_name(void **state)
{
	struct server_rig *r = open_rig();

	assert_int_equal(sw_job_find(r->srv, "job")->weight, 1);
	assert_true(sw_job_find(r->srv, "job")->quota.bytes == UINT64_MAX);
	assert_int_equal(sw_job_find(r->srv, "other")->weight, 3);
	assert_int_equal(sw_job_find(r->srv, "other")->quota.bytes, 5 << 20);
	server_rig_close(r);
}

/* A changed share applies to open jobs; a job above its new quota keeps its
 * memory. */
static void share__changes_while_jobs_run(void **state)
{
	static struct sw_share shares[] = {
		{.job = "job", .weight = 5, .quota_bytes = 1}};
	struct server_rig *r = open_rig();
	const struct sw_job *job = sw_job_find(r->srv, "job");
	uint64_t used = job->quota.used_bytes;
	char text[SW_TEXT_MAX];

	assert_true(used > 1);
	assert_int_equal(sw_server_share(r->srv, shares, 1), 0);
	sw_server_reshare(r->srv);
	assert_int_equal(job->weight, 5);
	assert_int_equal(r->srv->drr[0].weight[sw_job_index(job)], 5);
	assert_int_equal(sw_job_find(r->srv, "other")->weight, 1);
	assert_false(sw_share_take(sw_job_find(r->srv, "job"), 1 << 20, text));
	assert_contains(text, "0 of 0 MiB are left");
	assert_int_equal(job->quota.used_bytes, used);
	server_rig_close(r);
}

static void share__weight_out_of_range(void **state)
{
	struct sw_share share = {.job = "job", .weight = 0};
	struct server_rig *r = open_rig();

	assert_int_equal(sw_server_share(r->srv, &share, 1), SW_EINVAL);
	share.weight = SW_MAX_WEIGHT + 1;
	assert_int_equal(sw_server_share(r->srv, &share, 1), SW_EINVAL);
	assert_int_equal(sw_job_find(r->srv, "other")->weight, 3);
	server_rig_close(r);
}

/* A lone job has the whole window for any weight. Two busy jobs have windows by
 * weight, until one of them is idle. */
static void tick__windows_of_the_busy(void **state)
{
	struct server_rig *r = open_rig();
	uint32_t whole = r->params.window_bytes / SW_QUANTUM;

	peer_push(&r->w[0], 0, 1, 0, 5);
	rig_tick(r, SW_MS);
	assert_int_equal(window_of(r, 0), whole);
	peer_push(&r->w[1], 0, 1, 0, 5);
	rig_tick(r, SW_MS);
	assert_int_equal(window_of(r, 0), whole / 3);
	assert_int_equal(window_of(r, 1), whole);
	assert_true(sw_share_tick(r->srv) <= r->now_ns + SW_MS);
	for (uint32_t ms = 0; ms < 25; ms++) {
		peer_push(&r->w[0], 0, 2 + ms, 0, 5);
		rig_tick(r, SW_MS);
		rig_tx(r);
	}
	assert_int_equal(window_of(r, 0), whole);
	server_rig_close(r);
}

/* The check for active jobs wakes the server only if there are several. */
static void tick__never_for_a_lone_job(void **state)
{
	struct server_rig *r = open_rig();

	peer_leave(&r->w[1], 0, "");
	peer_push(&r->w[0], 0, 1, 0, 5);
	rig_tick(r, SW_MS);
	assert_true(r->srv->active);
	assert_true(sw_share_tick(r->srv) == UINT64_MAX);
	server_rig_close(r);
}

/* A busy job takes the index of another one that was busy, before the next
 * tick. The windows follow the new job's weight. */
static void tick__windows_of_who_came(void **state)
{
	struct server_rig *r = open_rig();
	uint32_t whole = r->params.window_bytes / SW_QUANTUM;
	struct sw_join j;

	peer_push(&r->w[0], 0, 1, 0, 5);
	peer_push(&r->w[1], 0, 1, 0, 5);
	rig_tick(r, SW_MS);
	assert_int_equal(window_of(r, 0), whole / 3);
	peer_leave(&r->w[1], 0, "");
	peer_hello(&r->w[2]);
	j = rig_join_payload(r, 2);
	strcpy(j.job, "third");
	j.member = 0;
	peer_say(&r->w[2], SW_JOIN, &j, sizeof(j));
	rig_tx(r);
	peer_keepalive(&r->w[2]);
	rig_tx(r);
	rig_declare(r, 2, "a", SW_I32, 4 * PEER_CHUNK, 0);
	peer_push(&r->w[2], 0, 1, 0, 5);
	peer_push(&r->w[0], 0, 2, 0, 5);
	rig_tick(r, SW_MS);
	assert_int_equal(sw_job_index(sw_job_find(r->srv, "third")), 1);
	assert_int_equal(window_of(r, 0), whole);
	assert_int_equal(window_of(r, 2), whole);
	server_rig_close(r);
}

/* A grant is never reduced. */
static void tick__a_grant_stays(void **state)
{
	struct server_rig *r = open_rig();
	uint32_t grant;

	peer_push(&r->w[0], 0, 1, 0, 5);
	assert_contains(rig_tx(r), "RESULT");
	grant = r->last[SW_RESULT].h.grant;
	peer_push(&r->w[1], 0, 1, 0, 5);
	rig_tick(r, SW_MS);
	rig_tx(r);
	peer_push(&r->w[0], 0, 2, 0, 5);
	assert_contains(rig_tx(r), "RESULT");
	assert_true(r->last[SW_RESULT].h.grant >= grant);
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__by_name),
		cmocka_unit_test(share__changes_while_jobs_run),
		cmocka_unit_test(share__weight_out_of_range),
		cmocka_unit_test(tick__windows_of_the_busy),
		cmocka_unit_test(tick__never_for_a_lone_job),
		cmocka_unit_test(tick__windows_of_who_came),
		cmocka_unit_test(tick__a_grant_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
