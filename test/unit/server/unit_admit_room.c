/* unit_admit_room.c - a server without room for another job or session.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

#include <stdio.h>

enum { QUOTA = 64 << 20, RANKS = 60 /* sessions of a 64-member job */ };

static struct server_rig *open_rig(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, QUOTA);
	return &r;
}

/* Send a JOIN of worker 0 to the @n-th job of its own. */
static const char *join_job(struct server_rig *r, uint32_t n)
{
	struct sw_join j;

	r->w[0].nonce++;
	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	snprintf(j.job, sizeof(j.job), "job%u", n);
	peer_say(&r->w[0], SW_JOIN, &j, sizeof(j));
	return rig_tx(r);
}

static void join__too_many_jobs(void **state)
{
	struct server_rig *r = open_rig(2);

	for (uint32_t n = 0; n < SW_MAX_JOBS; n++) {
		assert_contains(join_job(r, n), "w0 ACCEPT");
		peer_keepalive(&r->w[0]);
	}
	rig_tx(r);
	assert_contains(join_job(r, 99), "at most 8 jobs");
	/* When one job ends, its place is free. */
	r->w[0].nonce--;
	peer_leave(&r->w[0], 0, "");
	rig_tx(r);
	assert_contains(join_job(r, 99), "w0 ACCEPT");
	server_rig_close(r);
}

/* Another job takes the last place between JOIN and its confirmation. */
static void join__another_job_was_faster(void **state)
{
	struct server_rig *r = open_rig(2);
	uint32_t last;

	for (uint32_t n = 0; n + 1 < SW_MAX_JOBS; n++) {
		join_job(r, n);
		peer_keepalive(&r->w[0]);
	}
	rig_tx(r);
	join_job(r, 98);
	last = r->w[0].session;
	r->w[0].path.udp++;
	join_job(r, 99);
	peer_keepalive(&r->w[0]);
	assert_contains(rig_tx(r), "w0 STATUS forming 1");
	r->w[0].path.udp--;
	r->w[0].nonce--;
	peer_send(&r->w[0],
		(struct sw_header){.type = SW_KEEPALIVE, .session = last},
		NULL);
	assert_contains(rig_tx(r), "at most 8 jobs");
	server_rig_close(r);
}

/* Send a JOIN of @rank to @job as to the second server of its list, where a job
 * runs from its first session on. */
static void join_second(struct server_rig *r, const char *job, uint16_t rank)
{
	struct sw_join j;

	r->now_ns += SW_S; /* avoid the limit on the rate of JOINs */
	r->w[0].nonce++;
	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	j.member = rank;
	j.n_members = 64;
	j.server_i = 1;
	j.n_servers = 2;
	j.epoch = 7;
	snprintf(j.job, sizeof(j.job), "%s", job);
	peer_say(&r->w[0], SW_JOIN, &j, sizeof(j));
}

/* Take all sessions. */
static void fill_sessions(struct server_rig *r)
{
	for (uint32_t n = 0; n < SW_MAX_SESSIONS; n++) {
		char job[16];

		snprintf(job, sizeof(job), "big%u", n / RANKS);
		join_second(r, job, (uint16_t)(n % RANKS));
		rig_tx(r);
		peer_keepalive(&r->w[0]);
	}
	assert_int_equal(r->srv->stats.sessions_opened, SW_MAX_SESSIONS);
}

/* A JOIN that gets no session creates no job. */
static void join__too_many_sessions(void **state)
{
	struct server_rig *r = open_rig(2);

	fill_sessions(r);
	for (uint32_t n = 0; n < 2 * SW_MAX_JOBS; n++)
		join_second(r, "late", 0);
	assert_int_equal(r->srv->stats.joins_refused, 2 * SW_MAX_JOBS);
	assert_null(sw_job_find(r->srv, "late"));
	server_rig_close(r);
}

/* A JOIN that gets no session does not end the job that other members are
 * in. */
static void join__too_many_sessions_of_a_job(void **state)
{
	struct server_rig *r = open_rig(2);

	fill_sessions(r);
	join_second(r, "big0", RANKS);
	assert_int_equal(r->srv->stats.joins_refused, 1);
	assert_non_null(sw_job_find(r->srv, "big0"));
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(join__too_many_jobs),
		cmocka_unit_test(join__another_job_was_faster),
		cmocka_unit_test(join__too_many_sessions),
		cmocka_unit_test(join__too_many_sessions_of_a_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
