/* unit_admit.c - how a server admits workers and their JOINs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/alloc.h"
#include "test/support/server_rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUOTA = 64 << 20 };

static struct server_rig *open_rig(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, QUOTA);
	return &r;
}

/* --- HELLO --- */

static void hello(struct server_rig *r, uint32_t i)
{
	struct sw_hello h = {.nonce = r->w[i].nonce};

	peer_say(&r->w[i], SW_HELLO, &h, sizeof(h));
}

static void hello__stores_nothing(void **state)
{
	struct server_rig *r = open_rig(1);
	uint64_t calls = alloc_calls();

	hello(r, 0);
	assert_string_equal(rig_tx(r), "w0 COOKIE");
	assert_true(r->last[SW_COOKIE].len <=
		    SW_HEAD_BYTES + sizeof(struct sw_hello));
	assert_int_equal(r->srv->n_sessions, 0);
	assert_true(alloc_calls() == calls);
	assert_memory_equal(
		r->last[SW_COOKIE].bytes + SW_HEAD_BYTES, &r->w[0].nonce, 8);
	server_rig_close(r);
}

/* The server answers a flood of HELLOs as far as it has room for replies, and
 * later also answers other workers. */
static void hello__flood(void **state)
{
	struct server_rig *r = open_rig(1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		hello(r, 0);
	for (const char *p = rig_tx(r); (p = strstr(p, "COOKIE")); p++)
		n++;
	assert_int_equal(n, SW_REPLIES);
	hello(r, 1);
	assert_string_equal(rig_tx(r), "w1 COOKIE");
	server_rig_close(r);
}

/* Frames of unknown sessions from one worker do not keep another worker out. */
static void hello__beside_unknown_sessions(void **state)
{
	struct server_rig *r = open_rig(1);

	for (uint32_t i = 0; i < 1000; i++)
		peer_send(&r->w[1],
			(struct sw_header){.type = SW_KEEPALIVE, .session = 99},
			NULL);
	hello(r, 0);
	assert_non_null(strstr(rig_tx(r), "w0 COOKIE"));
	server_rig_close(r);
}

/* --- JOIN --- */

static const char *join(struct server_rig *r, uint32_t i, struct sw_join *j)
{
	peer_say(&r->w[i], SW_JOIN, j, sizeof(*j));
	return rig_tx(r);
}

static void join__in_order(void **state)
{
	struct server_rig *r = open_rig(2);

	assert_string_equal(rig_join(r, 1), "w1 ACCEPT; w1 STATUS forming 2");
	assert_int_equal(r->last[SW_ACCEPT].h.session, r->w[1].id);
	assert_string_equal(rig_join(r, 0),
		"w0 ACCEPT; w1 STATUS running 2; w0 STATUS running 2");
	assert_int_not_equal(r->w[0].session, r->w[1].session);
	assert_int_not_equal(r->w[0].session, 0);
	assert_int_not_equal(r->w[0].epoch, 0);
	assert_int_equal(r->w[0].epoch, r->w[1].epoch);
	assert_int_equal(r->srv->stats.sessions_opened, 2);
	server_rig_close(r);
}

/* If an ACCEPT was lost, or an attacker replays the JOIN, the server repeats
 * the same offer. It stops when the worker has taken the offer. */
static void join__replayed(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;
	uint32_t peer;

	rig_join_only(r, 0);
	peer = r->w[0].session;
	j = rig_join_payload(r, 0);
	assert_string_equal(join(r, 0, &j), "w0 ACCEPT");
	assert_int_equal(r->w[0].session, peer);
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "w0 STATUS forming 1");
	assert_string_equal(join(r, 0, &j), "");
	assert_int_equal(r->srv->stats.sessions_opened, 1);
	assert_int_equal(r->srv->stats.joins_refused, 0);
	server_rig_close(r);
}

static void join__without_the_cookie(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_join j;
	uint64_t calls;

	peer_hello(&r->w[0]);
	calls = alloc_calls();
	j = rig_join_payload(r, 0);
	j.cookie ^= 1;
	assert_string_equal(join(r, 0, &j), "");
	j.cookie ^= 1;
	j.nonce++; /* the cookie belongs to another nonce */
	assert_string_equal(join(r, 0, &j), "");
	j.nonce--;
	/* the cookie belongs to another address */
	assert_string_equal(join(r, 1, &j), "");
	assert_true(alloc_calls() == calls);
	assert_int_equal(r->srv->stats.rx_state, 3);
	server_rig_close(r);
}

static void join__old_cookie(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_join j;

	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	r->now_ns += 2 * r->params.cookie_life;
	assert_string_equal(join(r, 0, &j), "");
	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	/* the previous secret is still valid */
	r->now_ns += r->params.cookie_life;
	assert_contains(join(r, 0, &j), "w0 ACCEPT");
	server_rig_close(r);
}

/* A cookie is valid only for the server that made it. */
static void join__cookie_of_another_server(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_join j;

	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	r->srv->secret[0]++;
	assert_string_equal(join(r, 0, &j), "");
	server_rig_close(r);
}

struct refusal {
	const char *part; /* the returned text must contain this */
	int err;
	void (*spoil)(struct sw_join *);
};

static void version_high(struct sw_join *j)
{
	j->version_min = SW_VERSION_MAX + 1;
	j->version_max = 9;
}
static void version_low(struct sw_join *j)
{
	j->version_min = j->version_max = 0;
}
static void version_reversed(struct sw_join *j)
{
	j->version_min = 9;
	j->version_max = 0;
}
static void rank_high(struct sw_join *j)
{
	j->member = j->n_members;
}
static void rank_max(struct sw_join *j)
{
	j->member = UINT16_MAX;
}
static void no_members(struct sw_join *j)
{
	j->n_members = 0;
}
static void many_members(struct sw_join *j)
{
	j->n_members = SW_MAX_MEMBERS + 1;
}
static void no_local(struct sw_join *j)
{
	j->n_local = 0;
}
static void many_local(struct sw_join *j)
{
	j->n_local = UINT16_MAX;
}
static void odd_crc(struct sw_join *j)
{
	j->has_crc = 2;
}
static void no_servers(struct sw_join *j)
{
	j->n_servers = 0;
}
static void many_servers(struct sw_join *j)
{
	j->n_servers = SW_MAX_SERVERS + 1;
}
static void server_high(struct sw_join *j)
{
	j->server_i = j->n_servers;
	j->epoch = 1;
}
static void epoch_at_the_coordinator(struct sw_join *j)
{
	j->epoch = 5;
}
static void second_without_epoch(struct sw_join *j)
{
	j->n_servers = 2;
	j->server_i = 1;
}
static void other_lcores(struct sw_join *j)
{
	j->n_servers = 4;
	j->n_lcores = 4;
}
static void colocated_some(struct sw_join *j)
{
	j->n_servers = 3;
	j->n_colocated = 1;
}
static void policy_high(struct sw_join *j)
{
	j->policy = SW_N_POLICIES;
}
static void credit_tiny(struct sw_join *j)
{
	j->credit_bytes = 4;
}
static void credit_fixed(struct sw_join *j)
{
	j->policy = SW_POLICY_P3;
	j->credit_bytes = 1 << 20;
}
static void odd_order(struct sw_join *j)
{
	j->is_by_rank = 2;
}
static void first_low(struct sw_join *j)
{
	j->member = 1;
	j->first = 1;
}
static void payload_odd(struct sw_join *j)
{
	j->payload = 1000;
}
static void payload_zero(struct sw_join *j)
{
	j->payload = 0;
}

static void join__impossible(void **state)
{
	static const struct refusal rows[] = {
		{"versions 2 to 9, server 1 to 1", SW_EVERSION, version_high},
		{"versions 0 to 0", SW_EVERSION, version_low},
		{"versions 9 to 0", SW_EVERSION, version_reversed},
		{"agent 2 of 2 with", SW_EINVAL, rank_high},
		{"agent 65535 of 2", SW_EINVAL, rank_max},
		{"of 0 with", SW_EINVAL, no_members},
		{"of 65 with", SW_EINVAL, many_members},
		{"with 0 local ranks", SW_EINVAL, no_local},
		{"with 65535 local ranks", SW_EINVAL, many_local},
		{"agent 1 has ranks from 0 on", SW_EINVAL, first_low},
		{"crc 2, mode 0, order 0, encrypt 0: 0 or 1 expected",
			SW_EINVAL, odd_crc},
		{"crc 1, mode 0, order 2, encrypt 0: 0 or", SW_EINVAL,
			odd_order},
		{"server 0 of 0", SW_EINVAL, no_servers},
		{"server 0 of 129", SW_EINVAL, many_servers},
		{"server 1 of 1", SW_EINVAL, server_high},
		{"server 0 of 1", SW_EINVAL, epoch_at_the_coordinator},
		{"server 1 of 2", SW_EINVAL, second_without_epoch},
		{"servers of 4 polling cores; this one has 1", SW_EMISMATCH,
			other_lcores},
		{"1 of 3 servers are colocated", SW_EINVAL, colocated_some},
		{"unknown policy", SW_EINVAL, policy_high},
		{"credit 4: a credit has 1 KiB", SW_EINVAL, credit_tiny},
		{"credit are fixed", SW_EINVAL, credit_fixed},
		{"payload 1000: a multiple of 64 from 1152 to 8192", SW_EINVAL,
			payload_odd},
		{"payload 0: ", SW_EINVAL, payload_zero}};
	struct server_rig *r = open_rig(2);

	peer_hello(&r->w[0]);
	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct sw_join j = rig_join_payload(r, 0);
		const char *text;

		rows[i].spoil(&j);
		text = join(r, 0, &j);
		assert_contains(text, sw_error_name(rows[i].err));
		assert_contains(text, rows[i].part);
		assert_int_equal(r->srv->stats.joins_refused, i + 1);
		/* The ERROR is addressed by the worker's number and nonce. */
		assert_int_equal(r->last[SW_ERROR].h.session, r->w[0].id);
	}
	assert_int_equal(r->srv->n_sessions, 0);
	server_rig_close(r);
}

/* ACCEPT has the payload that the port carries, so the worker probes nothing
 * larger. */
static void join__more_than_the_port_carries(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_accept a;
	struct sw_join j;

	r->srv->max_payload[0] = 1344;
	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	j.payload = 8192;
	assert_contains(join(r, 0, &j), "ACCEPT");
	memcpy(&a, r->last[SW_ACCEPT].bytes + SW_HEAD_BYTES, sizeof(a));
	assert_int_equal(a.payload, 1344);
	server_rig_close(r);
}

static void join__oversized_names(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_join j;

	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	memset(j.job, 'x', sizeof(j.job)); /* not terminated */
	assert_string_equal(join(r, 0, &j), "");
	j = rig_join_payload(r, 0);
	memset(j.node, 'x', sizeof(j.node));
	assert_string_equal(join(r, 0, &j), "");
	j = rig_join_payload(r, 0);
	j.job[0] = 0;
	assert_string_equal(join(r, 0, &j), "");
	j = rig_join_payload(r, 0);
	strcpy(j.node, "a\nb");
	assert_string_equal(join(r, 0, &j), "");
	j = rig_join_payload(r, 0);
	strcpy(j.node, "a\xc2\x9b"
		       "2J"); /* clears a terminal */
	assert_string_equal(join(r, 0, &j), "");
	j = rig_join_payload(r, 0);
	strcpy(j.job, "\xe2\x80\xae"
		      "boj"); /* is displayed as "job" */
	assert_string_equal(join(r, 0, &j), "");
	assert_int_equal(r->srv->stats.rx_state, 6);
	j = rig_join_payload(r, 0);
	memset(j.job, 'x', sizeof(j.job) - 1); /* 127 bytes are a valid name */
	assert_contains(join(r, 0, &j), "w0 ACCEPT");
	server_rig_close(r);
}

/* If both names are long, the refusal shortens them and still fits into its
 * frame. */
static void join__long_names_in_a_refusal(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	peer_hello(&r->w[0]);
	j = rig_join_payload(r, 0);
	memset(j.job, 'x', sizeof(j.job) - 1);
	memset(j.node, 'y', sizeof(j.node) - 1);
	join(r, 0, &j);
	peer_keepalive(&r->w[0]);
	rig_tx(r);
	peer_hello(&r->w[1]);
	j.nonce = r->w[1].nonce;
	j.cookie = r->w[1].cookie;
	assert_contains(join(r, 1, &j), "SW_EBUSY agent 0 of job xxx");
	server_rig_close(r);
}

/* If a second agent has the rank of the first one, the first one stays. */
static void join__rank_is_taken(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	rig_join(r, 0);
	peer_hello(&r->w[1]);
	j = rig_join_payload(r, 1);
	j.member = 0;
	assert_string_equal(join(r, 1, &j),
		"w1 ERROR SW_EBUSY agent 0 of job job is node node0 "
		"at 10.0.0.0: give each agent its own [job] agent");
	assert_int_equal(r->srv->stats.sessions_opened, 1);
	rig_tick(r, 0);
	assert_string_equal(rig_join(r, 1),
		"w1 ACCEPT; w0 STATUS running 2; w1 STATUS running 2");
	server_rig_close(r);
}

/* Of two workers that JOIN with one rank or with different terms, the first to
 * confirm its JOIN counts. The server refuses the second one. */
static void join__who_speaks_first(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	assert_string_equal(rig_join_only(r, 0), "w0 ACCEPT");
	assert_null(sw_job_find(r->srv, "job"));
	peer_hello(&r->w[1]);
	j = rig_join_payload(r, 1);
	j.member = 0;
	assert_string_equal(join(r, 1, &j), "w1 ACCEPT");
	peer_hello(&r->w[2]);
	j = rig_join_payload(r, 2);
	j.member = 1;
	j.n_members = 3;
	assert_string_equal(join(r, 2, &j), "w2 ACCEPT");
	peer_keepalive(&r->w[1]);
	assert_string_equal(rig_tx(r), "w1 STATUS forming 1");
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r),
		"w0 ERROR SW_EBUSY agent 0 of job job is node node1 "
		"at 10.0.0.1: give each agent its own [job] agent");
	peer_keepalive(&r->w[2]);
	assert_contains(rig_tx(r),
		"w2 ERROR SW_EMISMATCH agent 1 has agents = 3, job job has 2");
	/* a higher number than ACCEPT's, or the worker would ignore the
	 * ERROR */
	assert_true(r->last[SW_ERROR].h.psn > r->last[SW_ACCEPT].h.psn);
	peer_keepalive(&r->w[2]);
	assert_string_equal(rig_tx(r), "w2 LEFT");
	assert_int_equal(r->srv->stats.sessions_opened, 1);
	server_rig_close(r);
}

/* A worker that leaves before its first frame gives up its offer. */
static void join__left_before_it_spoke(void **state)
{
	struct server_rig *r = open_rig(2);

	rig_join_only(r, 0);
	peer_leave(&r->w[0], SW_EPEER, "no");
	assert_string_equal(rig_tx(r), "w0 LEFT");
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "w0 LEFT");
	assert_int_equal(r->srv->stats.sessions_opened, 0);
	assert_string_equal(r->env.lines, "");
	server_rig_close(r);
}

/* A frame with the offered id from another address confirms nothing. */
static void join__confirmed_from_elsewhere(void **state)
{
	struct server_rig *r = open_rig(2);

	rig_join_only(r, 0);
	peer_send(&r->w[1],
		(struct sw_header){
			.type = SW_KEEPALIVE, .session = r->w[0].session},
		NULL);
	peer_send(&r->w[1],
		(struct sw_header){.type = SW_LEAVE,
			.session = r->w[0].session,
			.payload_len = sizeof(struct sw_fault)},
		&(struct sw_fault){0});
	assert_string_equal(rig_tx(r), "");
	assert_int_equal(r->srv->stats.rx_source, 2);
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "w0 STATUS forming 1");
	server_rig_close(r);
}

/* The server repeats ACCEPT until the worker's first frame arrives. */
static void join__accept_is_repeated(void **state)
{
	struct server_rig *r = open_rig(2);

	rig_join_only(r, 0);
	rig_tick(r, r->params.retry_min);
	assert_string_equal(rig_tx(r), "w0 ACCEPT");
	rig_tick(r, 2 * r->params.retry_min - 1);
	assert_string_equal(rig_tx(r), "");
	rig_tick(r, 1);
	assert_string_equal(rig_tx(r), "w0 ACCEPT");
	peer_keepalive(&r->w[0]);
	assert_string_equal(rig_tx(r), "w0 STATUS forming 1");
	/* Without such a frame the session is dropped; no member hears of
	 * it. */
	rig_join_only(r, 1);
	for (uint32_t i = 0; i < 10; i++) {
		rig_tick(r, r->params.dead_after / 10);
		peer_keepalive(&r->w[0]);
	}
	assert_int_equal(r->srv->stats.sessions_dropped, 1);
	assert_int_equal(r->srv->stats.sessions_dead, 0);
	assert_int_equal(
		sw_job_find(r->srv, "job")->status.state, SW_JOB_FORMING);
	server_rig_close(r);
}

static void join__does_not_fit_the_job(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	rig_join(r, 0);
	peer_hello(&r->w[1]);
	j = rig_join_payload(r, 1);
	j.n_members = 3;
	assert_contains(join(r, 1, &j),
		"SW_EMISMATCH agent 1 has agents = 3, job job has 2: all its "
		"nodes need the same");
	j = rig_join_payload(r, 1);
	j.has_crc = 0;
	assert_contains(join(r, 1, &j), "crc = 0, job job has 1");
	j = rig_join_payload(r, 1);
	j.n_servers = 2;
	assert_contains(join(r, 1, &j), "servers = 2, job job has 1");
	j = rig_join_payload(r, 1);
	j.policy = SW_POLICY_FIFO;
	assert_contains(
		join(r, 1, &j), "policy = fifo, job job has bytescheduler");
	j = rig_join_payload(r, 1);
	j.credit_bytes = 1 << 20;
	assert_contains(join(r, 1, &j),
		"credit (0: the policy's) = 1048576, job job has 0");
	j = rig_join_payload(r, 1);
	j.mode = SW_MODE_ASYNC;
	assert_contains(
		join(r, 1, &j), "mode = asynchronous, job job has synchronous");
	j = rig_join_payload(r, 1);
	j.is_by_rank = 1;
	assert_contains(join(r, 1, &j), "order = rank, job job has arrival");
	assert_contains(rig_join(r, 1), "w1 ACCEPT");
	server_rig_close(r);
}

/* A running job does not readmit a member that has left. */
static void join__after_the_member_left(void **state)
{
	struct server_rig *r = open_rig(2);
	struct sw_join j;

	rig_join(r, 0);
	rig_join(r, 1);
	peer_leave(&r->w[0], 0, "");
	rig_tx(r);
	j = rig_join_payload(r, 0);
	assert_contains(join(r, 0, &j), "SW_EBUSY job job of an earlier run");
	server_rig_close(r);
}

static void join__server_is_stopping(void **state)
{
	struct server_rig *r = open_rig(1);

	sw_server_stop(r->srv);
	assert_contains(rig_join(r, 0), "SW_EREFUSED the server is stopping");
	server_rig_close(r);
}

static void join__not_a_guest(void **state)
{
	struct server_rig *r = open_rig(1);
	struct sw_ip at = r->w[0].path.ip;
	const struct sw_net elsewhere = {sw_ip_v4(0x0b000000), 8};
	const struct sw_net here[] = {elsewhere, {sw_ip_mask(at, 24), 24}};
	struct sw_guests g = {.jobs = "", .nets = &elsewhere, .n_nets = 1};

	sw_server_limit(r->srv, &g);
	assert_contains(rig_join(r, 0),
		"SW_EREFUSED the server takes no agents at 10.0.");
	g.nets = here;
	g.n_nets = 2;
	g.jobs = "jo,jobs*,job-*";
	assert_contains(rig_join(r, 0),
		"SW_EREFUSED the server does not serve job job");
	g.jobs = "other,jo*";
	assert_contains(rig_join(r, 0), "w0 ACCEPT");
	server_rig_close(r);
}

static void join__a_guest_by_name(void **state)
{
	static const char *const lists[] = {"job", "a,job", "*", "job*,b"};

	for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++) {
		struct server_rig *r = open_rig(1);
		struct sw_guests g = {.jobs = lists[i]};

		sw_server_limit(r->srv, &g);
		assert_contains(rig_join(r, 0), "w0 ACCEPT");
		server_rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__stores_nothing),
		cmocka_unit_test(hello__flood),
		cmocka_unit_test(hello__beside_unknown_sessions),
		cmocka_unit_test(join__in_order),
		cmocka_unit_test(join__replayed),
		cmocka_unit_test(join__without_the_cookie),
		cmocka_unit_test(join__old_cookie),
		cmocka_unit_test(join__cookie_of_another_server),
		cmocka_unit_test(join__impossible),
		cmocka_unit_test(join__more_than_the_port_carries),
		cmocka_unit_test(join__oversized_names),
		cmocka_unit_test(join__long_names_in_a_refusal),
		cmocka_unit_test(join__rank_is_taken),
		cmocka_unit_test(join__who_speaks_first),
		cmocka_unit_test(join__left_before_it_spoke),
		cmocka_unit_test(join__confirmed_from_elsewhere),
		cmocka_unit_test(join__accept_is_repeated),
		cmocka_unit_test(join__does_not_fit_the_job),
		cmocka_unit_test(join__after_the_member_left),
		cmocka_unit_test(join__server_is_stopping),
		cmocka_unit_test(join__not_a_guest),
		cmocka_unit_test(join__a_guest_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
