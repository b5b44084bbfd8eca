/* unit_server_stream.c - streams at a server: admission and mismatches.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/wire/coll.h"
#include "test/support/server_rig.h"

enum { QUOTA = 64 << 20, LOG2 = SW_WINDOW_MIN_LOG2, W = 1 << LOG2 };

static struct server_rig *open_joined(uint16_t n_members, bool is_async)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, QUOTA);
	r.params.mode = is_async ? SW_MODE_ASYNC : SW_MODE_SYNC;
	for (uint32_t i = 0; i < n_members; i++)
		rig_join(&r, i);
	return &r;
}

static const char *declare(struct server_rig *r, uint32_t i, uint64_t members,
	uint32_t window_log2, uint32_t priority)
{
	struct sw_declare_item item = {.n_elems = members,
		.priority = priority,
		.dtype = (uint8_t)window_log2,
		.mode = SW_MODE_STREAM};

	peer_declare(&r->w[i], item, "g");
	return r->text;
}

static uint32_t n_tensors(const struct server_rig *r)
{
	return r->srv->jobs[0].shard.n_tensors;
}

/* --- DECLARE --- */

static void declare__of_some_members(void **state)
{
	struct server_rig *r = open_joined(3, false);

	assert_string_equal(declare(r, 0, 5, LOG2, 0), "w0 DECLARED k0");
	assert_string_equal(declare(r, 2, 5, LOG2, 0), "w2 DECLARED k0");
	assert_string_equal(
		rig_declare(r, 1, "a", SW_I32, 1, 0), "w1 DECLARED k1");
	server_rig_close(r);
}

/* A stream takes the memory of its window once, whatever its traffic, and no
 * place on the line of tensors. */
static void declare__takes_its_window(void **state)
{
	struct server_rig *r = open_joined(2, false);
	const struct sw_shard *sh = &r->srv->jobs[0].shard;
	uint64_t before = r->srv->quota.used_bytes,
		 values = 3ULL * W * PEER_PAYLOAD;

	declare(r, 0, 3, LOG2, 0);
	assert_true(r->srv->quota.used_bytes - before == sh->mem_bytes);
	assert_true(sh->mem_bytes >= values);
	assert_true(sh->mem_bytes < values + 100 * W);
	assert_int_equal(sh->line_bytes, 0);
	server_rig_close(r);
}

static void declare__largest_window_beyond_the_quota(void **state)
{
	static struct server_rig r;
	uint64_t before;

	server_rig_open(&r, 1, 3 << 20);
	rig_join(&r, 0);
	before = r.srv->quota.used_bytes;
	assert_null(
		strstr(declare(&r, 0, 1, SW_WINDOW_MAX_LOG2, 0), "DECLARED"));
	rig_tick(&r, r.srv->params.retry_min);
	assert_contains(rig_tx(&r), "w0 DECLARED k-1 refused stream g: quota");
	assert_int_equal(r.srv->quota.used_bytes, before);
	server_rig_close(&r);
}

static void declare__bad_window(void **state)
{
	static const uint8_t logs[] = {
		0, 1, LOG2 - 1, SW_WINDOW_MAX_LOG2 + 1, 31, 32, 63, 64, 255};
	struct server_rig *r = open_joined(2, false);

	for (size_t i = 0; i < SW_ARRAY_SIZE(logs); i++) {
		assert_string_equal(
			declare(r, 0, 3, logs[i], 0), "w0 KEEPALIVE");
		assert_int_equal(r->srv->stats.rx_length, i + 1);
	}
	assert_string_equal(
		declare(r, 0, 0, LOG2, 0), "w0 KEEPALIVE"); /* no members */
	assert_int_equal(n_tensors(r), 0);
	server_rig_close(r);
}

static void declare__bad_members(void **state)
{
	static const uint64_t masks[] = {2, 4, 5, 1ULL << 63, ~0ULL};

	for (size_t i = 0; i < SW_ARRAY_SIZE(masks); i++) {
		struct server_rig *r = open_joined(2, false);

		assert_contains(declare(r, 0, masks[i], LOG2, 0),
			"ERROR SW_EINVAL stream g: its group is not one of the "
			"2 members of job job with member 0 in it");
		assert_int_equal(n_tensors(r), 0);
		server_rig_close(r);
	}
}

static void declare__in_an_asynchronous_job(void **state)
{
	struct server_rig *r = open_joined(2, true);

	assert_contains(declare(r, 0, 3, LOG2, 0),
		"ERROR SW_EINVAL stream g: job job is asynchronous");
	assert_int_equal(n_tensors(r), 0);
	server_rig_close(r);
}

/* The server refuses a member that opens the stream differently, and tells
 * all. */
static void differs(uint64_t members, uint32_t window_log2, uint32_t priority)
{
	struct server_rig *r = open_joined(3, false);
	const char *text;

	declare(r, 0, 3, LOG2, 0);
	text = declare(r, 1, members, window_log2, priority);
	assert_contains(text, "w0 END k0 r1 group k0: the ranks, their "
			      "order, the window or the priority that rank 1 "
			      "opens it with are not those of rank 0");
	assert_contains(text, "w1 DECLARED k-1 refused group k0");
	assert_int_equal(r->srv->jobs[0].status.state, SW_JOB_RUNNING);
	assert_string_equal(
		rig_declare(r, 1, "a", SW_I32, 1, 0), "w1 DECLARED k1");
	server_rig_close(r);
}

static void declare__differs_from_the_first(void **state)
{
	differs(7, LOG2, 0);
	differs(2, LOG2, 0);
	differs(3, LOG2 + 1, 0);
	differs(3, LOG2, 1);
}

static void declare__a_tensor_of_that_name(void **state)
{
	struct server_rig *r = open_joined(2, false);

	rig_declare(r, 0, "g", SW_I32, 3, 0);
	assert_contains(
		declare(r, 1, 3, LOG2, 0), "w1 DECLARED k-1 refused group k0");
	server_rig_close(r);
}

/* --- calls that differ --- */

static struct server_rig *open_stream(void)
{
	struct server_rig *r = open_joined(3, false);

	for (uint32_t i = 0; i < 3; i++)
		declare(r, i, 7, LOG2, 0);
	return r;
}

static struct sw_header call(
	enum sw_coll_kind kind, uint32_t root, uint32_t n_elems)
{
	struct sw_header h = peer_push_header(0, 1, 1);

	h.op = sw_coll_op(kind, SW_ROUND_SUM);
	h.aux = (uint16_t)root;
	h.step = 5;
	h.payload_len = (uint16_t)(4 * n_elems);
	h.type = n_elems ? SW_PUSH : SW_WANT;
	return h;
}

/* Rank 1 begins, and rank 2 calls something else. All members get the same
 * sentence, also a later caller; the job continues. */
static void clash(
	struct sw_header first, struct sw_header other, const char *why)
{
	struct server_rig *r = open_stream();
	const char *text;

	peer_fill(&r->w[1], first, 1);
	rig_tx(r);
	peer_fill(&r->w[2], other, 1);
	text = rig_tx(r);
	for (uint32_t i = 0; i < 3; i++) {
		char line[256];

		snprintf(line, sizeof(line), "w%u END k0 r1 group k0: %s", i,
			why);
		assert_contains(text, line);
	}
	peer_fill(&r->w[0], call(SW_ALL_REDUCE, 0, 1), 1);
	peer_query(&r->w[1], 0, 1, 1);
	assert_null(strstr(rig_tx(r), "END")); /* END was already sent */
	assert_int_equal(r->srv->jobs[0].shard.n_open, 0);
	assert_int_equal(r->srv->jobs[0].status.state, SW_JOB_RUNNING);
	server_rig_close(r);
}

static void push__another_kind_or_type(void **state)
{
	struct sw_header h = call(SW_ALL_REDUCE, 0, 1);

	clash(call(SW_ALL_REDUCE, 0, 1), call(SW_REDUCE, 0, 1),
		"rank 2 calls reduce of sum i32, rank 1 all_reduce of sum i32 "
		"(collective 1)");
	h.dtype = SW_F32;
	clash(call(SW_ALL_REDUCE, 0, 1), h,
		"rank 2 calls all_reduce of sum f32, rank 1 all_reduce of sum "
		"i32 (collective 1)");
	h.op = sw_coll_op(SW_ALL_REDUCE, SW_MAX);
	clash(call(SW_ALL_REDUCE, 0, 1), h,
		"rank 2 calls all_reduce of max f32, rank 1 all_reduce of sum "
		"i32");
	h = call(SW_BCAST, 0, 0);
	clash(call(SW_ALL_REDUCE, 0, 1), h,
		"rank 2 calls broadcast of i32, rank 1 all_reduce of sum i32");
}

static void push__another_count(void **state)
{
	struct sw_header h = call(SW_ALL_REDUCE, 0, 1);

	clash(h, call(SW_ALL_REDUCE, 0, 2),
		"rank 2 calls all_reduce with another count or root than rank "
		"1 "
		"(collective 1)");
	h.step = 6;
	clash(call(SW_ALL_REDUCE, 0, 1), h,
		"rank 2 calls all_reduce with another count or root than rank "
		"1");
	h.step = 5;
	h.chunk = 2; /* rank 2 has called another kind before */
	clash(call(SW_ALL_REDUCE, 0, 1), h,
		"rank 2 calls all_reduce as collective 2, rank 1 as 1");
}

static void push__another_root(void **state)
{
	clash(call(SW_REDUCE, 0, 1), call(SW_REDUCE, 2, 1),
		"rank 2 calls reduce with a root of rank 2's node, rank 1 with "
		"one of rank 0's "
		"(collective 1)");
	clash(call(SW_BCAST, 0, 0), call(SW_BCAST, 2, 1),
		"rank 2 calls broadcast with a root of rank 2's node, rank 1 "
		"with one of rank 0's");
}

/* A server that is not the coordinator knows a member's ranks only from that
 * member's JOIN, so it cannot name others. */
enum { KEY = 7 };

static struct server_rig *open_second(void)
{
	static struct server_rig r;

	server_rig_open(&r, 4, QUOTA);
	for (uint32_t i = 1; i < 3; i++) {
		struct sw_join j;

		peer_hello(&r.w[i]);
		j = rig_join_payload(&r, i);
		j.server_i = 1;
		j.n_servers = 2;
		j.epoch = r.w[i].epoch = 77;
		j.n_local = 3;
		j.first = (uint16_t)(1 + 3 * i);
		peer_say(&r.w[i], SW_JOIN, &j, sizeof(j));
		rig_tx(&r);
		peer_keepalive(&r.w[i]);
		rig_tx(&r);
		peer_declare(&r.w[i],
			(struct sw_declare_item){.n_elems = 15,
				.key = KEY,
				.first = KEY,
				.dtype = LOG2,
				.mode = SW_MODE_STREAM},
			"g");
	}
	return &r;
}

static const char *reduce_to(uint32_t one, uint32_t other)
{
	struct server_rig *r = open_second();
	struct sw_header h = call(SW_REDUCE, one, 1);
	static char text[1024];

	h.key = KEY;
	peer_fill(&r->w[1], h, 1);
	h.aux = (uint16_t)other;
	peer_fill(&r->w[2], h, 1);
	snprintf(text, sizeof(text), "%s", rig_tx(r));
	server_rig_close(r);
	return text;
}

static void push__names_ranks_before_all_have_joined(void **state)
{
	assert_contains(reduce_to(1, 2),
		"group k7: rank 6 calls reduce with a root of rank 6's node, "
		"rank 3 with one of rank 3's (collective 1)");
	assert_contains(reduce_to(0, 2), "group k7: rank 6 calls reduce with "
					 "another count or root than "
					 "rank 3 (collective 1)");
}

/* --- WANT --- */

static struct sw_header want(uint32_t j, uint16_t n)
{
	struct sw_header h = call(SW_BCAST, 0, 0);

	h.round = j;
	h.weight = n;
	return h;
}

/* Push chunk @j as the root. */
static void give(struct server_rig *r, uint32_t j)
{
	struct sw_header h = call(SW_BCAST, 0, 1);

	h.round = j;
	h.weight = 1;
	peer_fill(&r->w[0], h, (int32_t)j);
}

/* One WANT asks for many results. A repeated WANT causes no RESULT that is
 * already held or in flight. */
static void want__many_in_one(void **state)
{
	struct server_rig *r = open_stream();
	char line[64];
	const char *text;

	give(r, 2);
	rig_tx(r);
	peer_fill(&r->w[1], want(1, W), 0);
	assert_contains(rig_tx(r), "w1 RESULT k0 r2 c1 +4 w1");
	for (uint32_t j = 1; j <= W; j++)
		give(r, j);
	text = rig_tx(r);
	for (uint32_t j = 1; j <= W; j++) {
		snprintf(line, sizeof(line), "w1 RESULT k0 r%u c1", j);
		assert_true((strstr(text, line) != NULL) == (j != 2));
	}
	assert_int_equal(r->srv->stats.push_folded, 2 * W);
	peer_fill(&r->w[1], want(3, 7), 0);
	assert_null(strstr(rig_tx(r), "RESULT"));
	assert_int_equal(r->srv->stats.push_again, 8);
	server_rig_close(r);
}

/* Some chunks of a WANT are complete before it arrives; their numbers wrap. */
static void want__over_the_base(void **state)
{
	struct server_rig *r = open_stream();

	sw_shard_tensor(&r->srv->jobs[0].shard, 0)->base = (uint32_t)-2;
	peer_fill(&r->w[1], want((uint32_t)-7, 10), 0);
	assert_int_equal(r->srv->stats.push_again, 5);
	assert_int_equal(r->srv->stats.push_folded, 5);
	rig_tick(r, SW_MS);
	assert_contains(rig_tx(r), "w1 ACK");
	give(r, (uint32_t)-3);
	give(r, 2);
	assert_contains(rig_tx(r), "w1 RESULT k0 r2 c1");
	server_rig_close(r);
}

/* Check that the server neither takes nor acknowledges a malformed frame. */
static void not_wanted(
	struct server_rig *r, struct sw_header h, const uint64_t *counter)
{
	uint64_t before = *counter;

	peer_fill(&r->w[1], h, 0);
	rig_tick(r, SW_MS);
	assert_null(strstr(rig_tx(r), "ACK"));
	assert_int_equal(*counter, before + 1);
	assert_int_equal(r->srv->stats.push_folded, 0);
	assert_int_equal(r->srv->stats.push_again, 0);
}

static void want__of_what_there_is_not(void **state)
{
	struct server_rig *r = open_stream();
	const struct sw_stats *st = &r->srv->stats;
	struct sw_header h = want(1, 1);

	rig_declare(r, 1, "a", SW_I32, 1, 0);
	not_wanted(r, want(2, W), &st->rx_round);
	not_wanted(r, want(1 + W, 1), &st->rx_round);
	not_wanted(r, want((uint32_t)-30, 64), &st->rx_round);
	not_wanted(r, want(1, 0), &st->rx_weight);
	not_wanted(r, want((uint32_t)-70, SW_WANT_MAX + 1), &st->rx_weight);
	not_wanted(r, want(1, UINT16_MAX), &st->rx_weight);
	h.key = 1; /* the key of a tensor */
	h.op = SW_ROUND_COPY;
	not_wanted(r, h, &st->rx_key);
	h.key = 2;
	not_wanted(r, h, &st->rx_key);
	not_wanted(r, call(SW_ALL_REDUCE, 0, 0), &st->rx_length);
	h = want(1, 1);
	h.type = SW_PUSH; /* a PUSH without a payload */
	h.weight = 0;
	not_wanted(r, h, &st->rx_length);
	server_rig_close(r);
}

/* --- telling the base --- */

/* Let each result be acknowledged; members hear of the base at every quarter of
 * a window. */
static void fate__members_are_told(void **state)
{
	struct server_rig *r = open_stream();
	struct sw_header h = call(SW_REDUCE, 0, 1);
	uint32_t n_told = 0;

	for (uint32_t j = 1; j <= W; j++) {
		h.round = j;
		for (uint32_t i = 0; i < 3; i++)
			peer_fill(&r->w[i], h, 1);
		assert_contains(rig_tx(r), "w0 RESULT k0");
		peer_ack(&r->w[0], r->last[SW_RESULT].h.class,
			r->last[SW_RESULT].h.psn);
		if (strstr(rig_tx(r), "w2 ANSWER"))
			n_told++;
	}
	assert_int_equal(n_told, 4);
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__of_some_members),
		cmocka_unit_test(declare__takes_its_window),
		cmocka_unit_test(declare__largest_window_beyond_the_quota),
		cmocka_unit_test(declare__bad_window),
		cmocka_unit_test(declare__bad_members),
		cmocka_unit_test(declare__in_an_asynchronous_job),
		cmocka_unit_test(declare__differs_from_the_first),
		cmocka_unit_test(declare__a_tensor_of_that_name),
		cmocka_unit_test(push__another_kind_or_type),
		cmocka_unit_test(push__another_count),
		cmocka_unit_test(push__another_root),
		cmocka_unit_test(push__names_ranks_before_all_have_joined),
		cmocka_unit_test(want__many_in_one),
		cmocka_unit_test(want__over_the_base),
		cmocka_unit_test(want__of_what_there_is_not),
		cmocka_unit_test(fate__members_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
