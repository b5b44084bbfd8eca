/* unit_server_group.c - groups at a server: all their streams end together.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/wire/coll.h"
#include "test/support/server_rig.h"

enum { LOG2 = SW_WINDOW_MIN_LOG2, W = 1 << LOG2, ALL = 7 };

#define WHY "rank 1 aborted group 'g': enough"

static void open_stream(struct server_rig *r, uint32_t i, const char *name)
{
	peer_declare(&r->w[i],
		(struct sw_declare_item){
			.n_elems = ALL, .dtype = LOG2, .mode = SW_MODE_STREAM},
		name);
}

/* Open a server of three members. All have opened g/a, rank 0 also g/b and h/a;
 * their keys are 0, 1 and 2. */
static struct server_rig *open_groups(void)
{
	static struct server_rig r;

	server_rig_open(&r, 3, UINT64_MAX);
	for (uint32_t i = 0; i < 3; i++)
		rig_join(&r, i);
	for (uint32_t i = 0; i < 3; i++)
		open_stream(&r, i, "g/a");
	open_stream(&r, 0, "g/b");
	open_stream(&r, 0, "h/a");
	return &r;
}

static uint64_t used(const struct server_rig *r)
{
	return r->srv->quota.used_bytes;
}

static struct sw_header call(uint32_t key, uint32_t j)
{
	struct sw_header h = peer_push_header(key, j, 1);

	h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
	h.step = 5;
	h.payload_len = 4;
	h.weight = 1;
	return h;
}

static const char *push(struct server_rig *r, uint32_t i, uint32_t key)
{
	peer_fill(&r->w[i], call(key, 1), 1);
	return rig_tx(r);
}

/* Send END, or CLOSE if @round is 0; return the frames that the server
 * sends. */
static const char *say(struct server_rig *r, uint32_t i, uint32_t key,
	uint32_t round, int err, const char *text)
{
	struct sw_fault fault = {.err = (int16_t)err, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->w[i],
		(struct sw_header){.type = round ? SW_END : SW_CLOSE,
			.round = round,
			.payload_len = sizeof(fault)},
		&fault);
	return rig_tx(r);
}

static const char *close_group(struct server_rig *r, uint32_t i, uint32_t key)
{
	return say(r, i, key, 0, 0, "");
}

static int last_err(const struct server_rig *r)
{
	struct sw_fault fault;

	memcpy(&fault, r->last[SW_END].bytes + SW_HEAD_BYTES, sizeof(fault));
	return fault.err;
}

/* --- dead groups --- */

static void dead__all_streams_of_the_group(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_header h = call(0, 1);
	const char *text;

	push(r, 0, 1);
	push(r, 0, 2);
	push(r, 1, 0);
	h.dtype = SW_F32;
	peer_fill(&r->w[2], h, 1);
	text = rig_tx(r);
	for (uint32_t i = 0; i < 3; i++) {
		char line[80];

		snprintf(line, sizeof(line),
			"w%u END k0 r1 group k0: rank 2 calls", i);
		assert_contains(text, line);
	}
	assert_null(strstr(text, "k1"));
	assert_null(strstr(text, "k2"));
	assert_int_equal(r->srv->jobs[0].shard.n_open, 1);
	assert_string_equal(push(r, 0, 1), "");
	assert_string_equal(push(r, 1, 2), "");
	server_rig_close(r);
}

/* Return the error of the last DECLARED, which refused its only item. */
static int refusal(const struct server_rig *r)
{
	struct sw_fault fault;

	memcpy(&fault,
		r->last[SW_DECLARED].bytes + SW_HEAD_BYTES +
			sizeof(struct sw_declared) + 8,
		sizeof(fault));
	return fault.err;
}

static void dead__who_opens_a_stream_later_is_refused(void **state)
{
	struct server_rig *r = open_groups();

	say(r, 1, 0, 1, SW_EABORTED, WHY);
	assert_int_equal(last_err(r), SW_EABORTED);
	open_stream(r, 2, "g/c");
	assert_contains(r->text, "w2 DECLARED k-1 refused " WHY);
	assert_int_equal(refusal(r), SW_EABORTED);
	open_stream(r, 2, "g2/a");
	assert_contains(r->text, "w2 DECLARED k3");
	server_rig_close(r);
}

/* A group without room for its window is dead for every member that opens it,
 * even if there is room later. It takes no memory and does not affect other
 * groups. */
static void dead__no_room_for_its_window(void **state)
{
	static const char why[] =
		"stream i/a: quota: the tensors need 1 MiB, 0 of 0 MiB are "
		"left";
	struct server_rig *r = open_groups();
	uint64_t before = used(r), bytes = r->srv->quota.bytes;

	r->srv->quota.bytes = before + 4096;
	open_stream(r, 0, "i/a");
	assert_null(strstr(r->text, "DECLARED")); /* the server defers it */
	rig_tick(r, r->srv->params.retry_min);
	rig_tx(r);
	for (uint32_t i = 0; i < 2; i++) {
		if (i)
			open_stream(r, i, "i/a");
		assert_contains(r->text, why);
		assert_int_equal(refusal(r), SW_EREFUSED);
	}
	r->srv->quota.bytes = bytes;
	open_stream(r, 2, "i/a");
	assert_contains(r->text, why);
	assert_int_equal(used(r), before);
	for (uint32_t i = 0; i < 3; i++)
		close_group(r, i, 3);
	assert_null(sw_shard_group(&r->srv->jobs[0].shard, 3));
	assert_string_equal(push(r, 0, 0), "");
	open_stream(r, 2, "j/a");
	assert_contains(r->text, "w2 DECLARED k4");
	server_rig_close(r);
}

/* Of two streams in a batch only the first has room: the server admits it and
 * refuses the second. */
static void dead__no_room_for_the_last_of_a_batch(void **state)
{
	struct sw_declare_head head = {.n = 2, .payload = PEER_PAYLOAD};
	struct sw_declare_item item = {.n_elems = ALL,
		.key = SW_KEY_NONE,
		.dtype = LOG2,
		.mode = SW_MODE_STREAM,
		.name_len = 3};
	struct server_rig *r = open_groups();
	uint8_t bytes[SW_PAYLOAD_MAX], *end = bytes;
	uint64_t each = used(r) / 3;

	end = (uint8_t *)mempcpy(end, &head, sizeof(head));
	for (uint32_t i = 0; i < 2; i++) {
		end = (uint8_t *)mempcpy(end, &item, sizeof(item));
		end = (uint8_t *)mempcpy(end, i ? "j/a" : "i/a", 3);
	}
	r->srv->quota.bytes = used(r) + each;
	peer_say(&r->w[0], SW_DECLARE, bytes, (end - bytes));
	assert_null(strstr(rig_tx(r), "DECLARED")); /* the server defers it */
	rig_tick(r, r->srv->params.retry_min);
	assert_contains(
		rig_tx(r), "w0 DECLARED k4 k-1 refused stream j/a: quota");
	assert_int_equal(used(r), 4 * each);
	server_rig_close(r);
}

/* An END with an unexpected error code counts as a mismatch. */
static void dead__by_a_strange_error(void **state)
{
	struct server_rig *r = open_groups();

	say(r, 1, 0, 1, -300, WHY);
	assert_int_equal(last_err(r), SW_EMISMATCH);
	server_rig_close(r);
}

/* --- a group is closed --- */

static void closed__by_all_frees_the_windows(void **state)
{
	struct server_rig *r = open_groups();
	uint64_t all = used(r), each = r->srv->jobs[0].shard.mem_bytes / 3;

	assert_string_equal(close_group(r, 0, 0), "w0 KEEPALIVE");
	assert_string_equal(close_group(r, 1, 0), "w1 KEEPALIVE");
	assert_int_equal(used(r), all);
	assert_string_equal(close_group(r, 0, 0), "w0 KEEPALIVE");
	assert_string_equal(close_group(r, 2, 0), "w2 KEEPALIVE");
	assert_int_equal(used(r), all - 2 * each);
	assert_int_equal(r->srv->jobs[0].shard.mem_bytes, each);
	assert_int_equal(r->srv->jobs[0].shard.n_open, 0);
	server_rig_close(r);
}

/* The server acknowledges and ignores late frames of a closed group. */
static void closed__late_frames(void **state)
{
	struct server_rig *r = open_groups();
	uint64_t folded;

	for (uint32_t i = 0; i < 3; i++)
		peer_fill(&r->w[i], call(0, 1), 1);
	rig_tx(r); /* results are in flight */
	for (uint32_t i = 0; i < 3; i++)
		/* and results are marked to be sent */
		peer_fill(&r->w[i], call(0, 2), 1);
	for (uint32_t i = 0; i < 3; i++)
		close_group(r, i, 0);
	folded = r->srv->stats.push_folded;
	assert_null(strstr(push(r, 0, 0), "END"));
	rig_tick(r, SW_MS);
	assert_contains(rig_tx(r), "w0 ACK");
	peer_query(&r->w[1], 0, 2, 1);
	assert_null(strstr(rig_tx(r), "w1"));
	assert_string_equal(close_group(r, 1, 0), "w1 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_key, 0);
	peer_ack(&r->w[0], 0, 2);
	rig_tick(r, SW_S); /* the other results are lost */
	assert_null(strstr(rig_tx(r), "RESULT"));
	assert_int_equal(r->srv->stats.push_folded, folded);
	server_rig_close(r);
}

/* If a member has closed the group, the server does not let others wait for
 * it. */
static void closed__by_one_that_others_wait_for(void **state)
{
	struct server_rig *r = open_groups();
	const char *text;

	close_group(r, 1, 0);
	text = push(r, 0, 1); /* this stream was opened before the close */
	assert_contains(text,
		"w0 END k0 r1 group k0: rank 0 waits for rank 1, which "
		"has closed the group");
	assert_contains(text, "w2 END k0 r1 group k0");
	assert_int_equal(last_err(r), SW_EABORTED);
	server_rig_close(r);
}

static void closed__before_a_stream_was_opened(void **state)
{
	struct server_rig *r = open_groups();

	close_group(r, 1, 0);
	open_stream(r, 2, "g/c");
	assert_contains(
		push(r, 2, 3), "k0 r1 group k0: rank 2 waits for rank 1");
	server_rig_close(r);
}

/* A member closes the group while another member waits for it. */
static void closed__when_others_wait(void **state)
{
	struct server_rig *r = open_groups();

	push(r, 2, 0);
	assert_contains(close_group(r, 1, 0),
		"w2 END k0 r1 group k0: rank 2 waits for rank 1, which "
		"has closed the group");
	assert_int_equal(r->srv->stats.push_folded, 1);
	server_rig_close(r);
}

/* The same holds for a member that only receives: if it never acknowledged, the
 * sender's window could not move. */
static void closed__when_it_was_to_get(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_header h = call(0, 1);

	h.op = sw_coll_op(SW_BCAST, SW_ROUND_SUM);
	h.aux = 2;
	peer_fill(&r->w[2], h, 1);
	assert_contains(
		close_group(r, 1, 0), "group k0: rank 2 waits for rank 1");
	server_rig_close(r);
}

/* A member that has pushed its part of every call may close without ending the
 * group. */
static void closed__when_others_only_lag(void **state)
{
	struct server_rig *r = open_groups();

	push(r, 1, 0);
	push(r, 2, 0);
	assert_null(strstr(close_group(r, 1, 0), "waits"));
	assert_null(strstr(push(r, 0, 0), "END"));
	server_rig_close(r);
}

/* The server sends nothing more about a dead group to a member that has closed
 * it. */
static void closed__when_it_was_dead(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_fault fault = {.err = SW_EABORTED, .text = WHY};
	const char *text;

	peer_send(&r->w[1],
		(struct sw_header){.type = SW_END,
			.round = 1,
			.payload_len = sizeof(fault)},
		&fault);
	text = close_group(r, 1, 0); /* before the server sends END */
	assert_contains(text, "w0 END k0 r1 " WHY);
	assert_null(strstr(text, "w1 END"));
	close_group(r, 0, 0);
	assert_int_equal(r->srv->jobs[0].shard.mem_bytes, used(r));
	close_group(r, 2, 0);
	assert_int_equal(r->srv->jobs[0].shard.tensors[2].mem_bytes, used(r));
	server_rig_close(r);
}

static void closed__by_who_leaves(void **state)
{
	struct server_rig *r = open_groups();
	uint64_t each = r->srv->jobs[0].shard.tensors[0].mem_bytes;

	close_group(r, 0, 0);
	peer_leave(&r->w[1], 0, "");
	assert_int_equal(used(r), 3 * each);
	close_group(r, 2, 0);
	assert_int_equal(used(r), each);
	server_rig_close(r);
}

/* A tensor cannot be closed. */
static void closed__a_tensor(void **state)
{
	struct server_rig *r = open_groups();

	rig_declare(r, 0, "a", SW_I32, 1, 0);
	assert_string_equal(close_group(r, 0, 3), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_state, 1);
	server_rig_close(r);
}

/* A repeated END or CLOSE changes nothing: the first reason stays, and the
 * windows stay until the other members have closed the group. */
static void end__and_close_again(void **state)
{
	struct server_rig *r = open_groups();

	assert_contains(say(r, 1, 0, 1, SW_EABORTED, WHY), "w0 END k0 r1 " WHY);
	assert_null(strstr(say(r, 1, 0, 1, SW_EPEER, "later"), "END"));
	for (uint32_t i = 0; i < 3; i++)
		close_group(r, 1, 0);
	assert_int_equal(r->srv->jobs[0].shard.mem_bytes, used(r));
	assert_null(strstr(say(r, 1, 0, 1, SW_EPEER, "closed"), "END"));
	open_stream(r, 2, "g/c");
	assert_contains(r->text, "w2 DECLARED k-1 refused " WHY);
	server_rig_close(r);
}

/* The server refuses an END or CLOSE of an unknown kind or without a reason. */
static void end__forged(void **state)
{
	static const uint8_t types[] = {SW_END, SW_CLOSE};
	struct server_rig *r = open_groups();
	struct sw_fault fault = {.err = SW_EABORTED, .kind = SW_N_FAULT_KINDS};

	for (uint32_t i = 0; i < 2; i++) {
		peer_send(&r->w[1],
			(struct sw_header){.type = types[i],
				.round = 1,
				.payload_len = sizeof(fault)},
			&fault);
		assert_int_equal(r->srv->stats.rx_state, i + 1);
	}
	fault.kind = SW_FAULT_SAID;
	peer_send(&r->w[1],
		(struct sw_header){.type = SW_END,
			.round = 1,
			.payload_len = sizeof(fault)},
		&fault);
	assert_int_equal(r->srv->stats.rx_state, 3);
	assert_null(strstr(rig_tx(r), "END"));
	assert_null(strstr(push(r, 0, 0), "END")); /* the group lives */
	server_rig_close(r);
}

/* A stream's key that is not the group's first one names no group. A member
 * cannot end a group that it does not belong to. */
static void end__of_no_group_of_ours(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_declare_item item = {
		.n_elems = 1, .dtype = LOG2, .mode = SW_MODE_STREAM};

	say(r, 1, 1, 1, SW_EABORTED, WHY);
	close_group(r, 1, 1);
	assert_int_equal(r->srv->stats.rx_key, 2);
	peer_declare(&r->w[0], item, "own/a");
	assert_contains(r->text, "w0 DECLARED k3");
	say(r, 1, 3, 1, SW_EABORTED, WHY);
	close_group(r, 1, 3);
	assert_int_equal(r->srv->stats.rx_state, 2);
	assert_null(strstr(push(r, 0, 0), "END"));
	assert_int_equal(r->srv->jobs[0].shard.tensors[3].own.closed, 0);
	assert_int_equal(r->srv->jobs[0].shard.tensors[3].own.from, 0);
	close_group(r, 0, 3);
	assert_null(sw_shard_tensor(&r->srv->jobs[0].shard, 3));
	server_rig_close(r);
}

/* A stream ends at once, even if END names a future round. */
static void end__from_a_round_of_the_future(void **state)
{
	struct server_rig *r = open_groups();

	assert_contains(
		say(r, 1, 0, 1u << 31, SW_EABORTED, WHY), "w0 END k0 r1 " WHY);
	assert_null(strstr(say(r, 0, 0, 0, 0, ""), "END"));
	server_rig_close(r);
}

/* When all members have closed a group, its identifier is retired, even if a
 * new group has the index. */
static void end__after_the_group_was_freed(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_shard *sh = &r->srv->jobs[0].shard;

	for (uint32_t i = 0; i < 3; i++)
		close_group(r, i, 0);
	assert_null(sw_shard_group(sh, 0));
	sh->last_key = SW_KEY_INDICES - 1;
	open_stream(r, 0, "n/a");
	assert_contains(r->text, "w0 DECLARED k4096");
	say(r, 1, 0, 1, SW_EABORTED, WHY);
	close_group(r, 1, 0);
	assert_int_equal(r->srv->stats.rx_key + r->srv->stats.rx_state, 0);
	assert_int_equal(sw_shard_group(sh, SW_KEY_INDICES)->from, 0);
	assert_int_equal(sw_shard_group(sh, SW_KEY_INDICES)->closed, 0);
	server_rig_close(r);
}

/* --- streams that enter a group --- */

static void open__by_who_has_closed_it(void **state)
{
	struct server_rig *r = open_groups();

	close_group(r, 1, 0);
	assert_null(strstr(say(r, 1, 0, 1, SW_EABORTED, WHY), "END"));
	open_stream(r, 1, "g/c");
	assert_contains(r->text, "w1 DECLARED k-1 refused");
	assert_int_equal(refusal(r), SW_EABORTED);
	assert_null(strstr(push(r, 2, 2), "END"));
	open_stream(r, 2, "g/c");
	assert_contains(r->text, "w2 DECLARED k3");
	server_rig_close(r);
}

/* All streams of a group must have the same ranks. */
static void open__with_other_ranks(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_declare_item item = {
		.n_elems = ALL, .dtype = LOG2, .mode = SW_MODE_STREAM};

	item.stream.ranks_crc = 5;
	peer_declare(&r->w[1], item, "g/c");
	assert_contains(r->text, "w1 DECLARED k-1 refused");
	assert_int_equal(refusal(r), SW_EMISMATCH);
	assert_contains(r->text, "w0 END k0 r1 group k0: the ranks");
	server_rig_close(r);
}

/* A group has at most 16 streams; another one ends the group and nothing
 * else. */
static void open__too_many(void **state)
{
	struct server_rig *r = open_groups();
	char name[16];

	for (uint32_t i = 2; i <= SW_GROUP_STREAMS; i++) {
		snprintf(name, sizeof(name), "g/%u", i);
		open_stream(r, 1, name);
	}
	assert_contains(r->text, "w1 DECLARED k-1 refused stream g/16: its "
				 "group has 16 already");
	assert_int_equal(refusal(r), SW_EREFUSED);
	assert_contains(r->text, "w0 END k0 r1 stream g/16");
	assert_null(strstr(push(r, 0, 2), "END"));
	server_rig_close(r);
}

/* --- other kinds, under one number --- */

/* Let rank @i wait on stream @key for collective @number. */
static const char *waits(
	struct server_rig *r, uint32_t i, uint32_t key, uint32_t number)
{
	peer_query(&r->w[i], key, 0, number);
	return rig_tx(r);
}

static void kinds__other_ones_under_one_number(void **state)
{
	struct server_rig *r = open_groups();
	struct sw_header h = call(1, 1);

	h.chunk = 7;
	peer_fill(&r->w[0], h, 1);
	h = call(0, 1);
	h.chunk = 6;
	peer_fill(&r->w[1], h, 1);
	assert_null(strstr(waits(r, 1, 0, 6), "END"));
	assert_null(strstr(waits(r, 1, 0, 8), "END"));
	assert_null(strstr(waits(r, 0, 1, 7), "END"));
	/* a stream of another group */
	assert_null(strstr(waits(r, 0, 2, 7), "END"));
	assert_contains(waits(r, 1, 0, 7),
		"w1 END k0 r1 group k0: rank 1 calls a, rank 0 "
		"all_reduce (collective 7)");
	assert_contains(r->text, "w0 END k0 r1 group k0: rank 1");
	assert_contains(r->text, "w2 END k0 r1 group k0: rank 1");
	assert_null(strstr(r->text, "k2"));
	server_rig_close(r);
}

/* In a tensor the same field is a chunk, not a collective. */
static void kinds__not_of_tensors(void **state)
{
	struct server_rig *r = open_groups();

	rig_declare(r, 0, "g/d", SW_I32, PEER_CHUNK * 9, 0);
	push(r, 0, 0);
	peer_query(&r->w[0], 3, 1, 1);
	assert_null(strstr(rig_tx(r), "END"));
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead__all_streams_of_the_group),
		cmocka_unit_test(dead__who_opens_a_stream_later_is_refused),
		cmocka_unit_test(dead__no_room_for_its_window),
		cmocka_unit_test(dead__no_room_for_the_last_of_a_batch),
		cmocka_unit_test(dead__by_a_strange_error),
		cmocka_unit_test(closed__by_all_frees_the_windows),
		cmocka_unit_test(closed__late_frames),
		cmocka_unit_test(closed__by_one_that_others_wait_for),
		cmocka_unit_test(closed__before_a_stream_was_opened),
		cmocka_unit_test(closed__when_others_wait),
		cmocka_unit_test(closed__when_it_was_to_get),
		cmocka_unit_test(closed__when_others_only_lag),
		cmocka_unit_test(closed__when_it_was_dead),
		cmocka_unit_test(closed__by_who_leaves),
		cmocka_unit_test(closed__a_tensor),
		cmocka_unit_test(end__and_close_again),
		cmocka_unit_test(end__forged),
		cmocka_unit_test(end__of_no_group_of_ours),
		cmocka_unit_test(end__from_a_round_of_the_future),
		cmocka_unit_test(end__after_the_group_was_freed),
		cmocka_unit_test(open__by_who_has_closed_it),
		cmocka_unit_test(open__with_other_ranks),
		cmocka_unit_test(open__too_many),
		cmocka_unit_test(kinds__other_ones_under_one_number),
		cmocka_unit_test(kinds__not_of_tensors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
