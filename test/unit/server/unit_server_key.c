/* unit_server_key.c - keys at a server: an index serves one key after another.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/wire/coll.h"
#include "test/support/server_rig.h"

enum {
	LOG2 = SW_WINDOW_MIN_LOG2,
	REUSED = 10000,
	/* difference between a key and the next one at the same index */
	NEXT = SW_KEY_INDICES,
};

/* A DECLARE with several streams of all members, or tensors. */
struct batch {
	uint8_t bytes[SW_PAYLOAD_MAX];
	struct sw_declare_head head;
	size_t len;
};

static void put(struct batch *b, uint8_t mode, uint32_t key, uint64_t n,
	const char *name)
{
	struct sw_declare_item it = {.n_elems = n,
		.key = key,
		.first = mode == SW_MODE_STREAM ? key : 0,
		.dtype = mode == SW_MODE_STREAM ? LOG2 : SW_I32,
		.mode = mode,
		.name_len = (uint16_t)strlen(name)};
	uint8_t *at = b->bytes + sizeof(b->head) + b->len;

	memcpy(at, &it, sizeof(it));
	memcpy(at + sizeof(it), name, it.name_len);
	b->len += sizeof(it) + it.name_len;
	b->head.n++;
	b->head.payload = PEER_PAYLOAD;
}

static const char *send(struct server_rig *r, uint32_t i, struct batch *b)
{
	memcpy(b->bytes, &b->head, sizeof(b->head));
	peer_say(&r->w[i], SW_DECLARE, b->bytes, sizeof(b->head) + b->len);
	return rig_tx(r);
}

static const char *open_stream(
	struct server_rig *r, uint32_t i, uint32_t key, const char *name)
{
	struct batch b = {.len = 0};

	put(&b, SW_MODE_STREAM, key, ~0ULL >> (64 - r->n_members), name);
	return send(r, i, &b);
}

static const char *say(struct server_rig *r, uint32_t i, uint32_t key,
	uint32_t round, const char *text)
{
	struct sw_fault fault = {.err = SW_EABORTED, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->w[i],
		(struct sw_header){.type = round ? SW_END : SW_CLOSE,
			.round = round,
			.payload_len = sizeof(fault)},
		&fault);
	return rig_tx(r);
}

static const char *close_stream(struct server_rig *r, uint32_t i, uint32_t key)
{
	return say(r, i, key, 0, "");
}

static struct sw_shard *shard(struct server_rig *r)
{
	return &r->srv->jobs[0].shard;
}

static struct server_rig *open_joined(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, UINT64_MAX);
	for (uint32_t i = 0; i < n_members; i++)
		rig_join(&r, i);
	return &r;
}

/* Open a server of two members that is not the coordinator. */
static struct server_rig *open_second(void)
{
	static struct server_rig r;

	server_rig_open(&r, 2, UINT64_MAX);
	for (uint32_t i = 0; i < 2; i++) {
		struct sw_join j;

		peer_hello(&r.w[i]);
		j = rig_join_payload(&r, i);
		j.server_i = 1;
		j.n_servers = 2;
		j.epoch = 77;
		peer_say(&r.w[i], SW_JOIN, &j, sizeof(j));
		rig_tx(&r);
		peer_keepalive(&r.w[i]);
		rig_tx(&r);
	}
	return &r;
}

/* A member may reopen a group any number of times; the server's memory does not
 * grow. */
static void key__of_a_group_that_is_opened_again(void **state)
{
	struct server_rig *r = open_joined(1);
	uint64_t used = 0;
	char name[32], line[64];

	rig_declare(r, 0, "t", SW_I32, 10, 0);
	for (uint32_t n = 0; n < REUSED; n++) {
		/* the tensor has index 0 */
		uint32_t key = n / (NEXT - 1) * NEXT + 1 + n % (NEXT - 1);

		snprintf(name, sizeof(name), "g#%u/a", n);
		snprintf(line, sizeof(line), "w0 DECLARED k%u", key);
		assert_string_equal(open_stream(r, 0, SW_KEY_NONE, name), line);
		used = n ? used : r->srv->quota.used_bytes;
		assert_int_equal(r->srv->quota.used_bytes, used);
		assert_string_equal(close_stream(r, 0, key), "w0 KEEPALIVE");
	}
	assert_int_equal(shard(r)->n_tensors, 1);
	assert_true(sw_bitmap_is_empty(&shard(r)->streams));
	assert_non_null(sw_shard_named(shard(r), "t"));
	assert_null(sw_shard_named(shard(r), name));
	server_rig_close(r);
}

/* Each open stream has exactly one key. When all indices are taken, the next
 * stream gets the index of a released key. */
static void key__when_all_are_taken(void **state)
{
	struct server_rig *r = open_joined(1);
	struct batch b = {.len = 0};
	char name[16];
	uint32_t n = 0;

	while (n < SW_KEY_INDICES) {
		b = (struct batch){.len = 0};
		for (uint32_t i = 0; i < 32; i++) {
			snprintf(name, sizeof(name), "g%u/a", n++);
			put(&b, SW_MODE_STREAM, SW_KEY_NONE, 1, name);
		}
		assert_contains(send(r, 0, &b), "DECLARED");
	}
	close_stream(r, 0, 77);
	b = (struct batch){.len = 0};
	put(&b, SW_MODE_STREAM, SW_KEY_NONE, 1, "h/a");
	assert_contains(send(r, 0, &b), "k4173"); /* 4096 + 77 */
	close_stream(r, 0, 78);
	b = (struct batch){.len = 0};
	put(&b, SW_MODE_STREAM, SW_KEY_NONE, 1, "h/b");
	put(&b, SW_MODE_STREAM, SW_KEY_NONE, 1, "h/c");
	assert_contains(send(r, 0, &b), "SW_EREFUSED tensor h/c");
	assert_int_equal(shard(r)->n_tensors, SW_KEY_INDICES - 1);
	server_rig_close(r);
}

/* When the generations are exhausted, the server refuses streams instead of
 * reusing a key. */
static void key__of_the_last_generation(void **state)
{
	struct server_rig *r = open_joined(1);

	shard(r)->last_key = SW_KEY_NONE - SW_KEY_INDICES - 1;
	assert_contains(open_stream(r, 0, SW_KEY_NONE, "a/a"),
		"k-4097"); /* the key below the limit */
	assert_contains(open_stream(r, 0, SW_KEY_NONE, "b/a"), "SW_EREFUSED");
	server_rig_close(r);
}

static struct sw_header call(uint8_t type, uint32_t key)
{
	struct sw_header h = peer_push_header(key, 1, 1);

	h.type = type;
	h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
	h.payload_len = type == SW_PUSH ? 4 : 0;
	h.weight = 1;
	return h;
}

/* Frames with an older key at an index are acknowledged and have no effect. */
static void key__of_the_past(void **state)
{
	struct server_rig *r = open_joined(1);
	const struct sw_stensor *t;

	shard(r)->last_key = 6;
	open_stream(r, 0, SW_KEY_NONE, "g/a");
	peer_fill(&r->w[0], call(SW_PUSH, 7), 1);
	assert_contains(rig_tx(r), "RESULT k7");
	assert_contains(close_stream(r, 0, 7), "w0 KEEPALIVE");
	shard(r)->last_key = NEXT + 6;
	assert_contains(open_stream(r, 0, SW_KEY_NONE, "g#2/a"), "k4103");
	t = sw_shard_tensor(shard(r), NEXT + 7);
	peer_fill(&r->w[0], call(SW_PUSH, 7), 1);
	peer_send(&r->w[0], call(SW_WANT, 7), NULL);
	assert_string_equal(rig_tx(r), "");
	rig_tick(r, SW_MS);
	assert_contains(rig_tx(r), "w0 ACK 0:1-3");
	peer_ack(&r->w[0], 7, 1); /* the ACK of the RESULT */
	peer_query(&r->w[0], 7, 1, 0);
	assert_string_equal(rig_tx(r), "");
	assert_string_equal(say(r, 0, 7, 1, "late"), "w0 KEEPALIVE");
	assert_string_equal(close_stream(r, 0, 7), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_key, 0);
	assert_int_equal(r->srv->stats.push_folded, 1);
	assert_int_equal(t->base, 1);
	assert_false(t->group->from || t->group->closed);
	peer_fill(&r->w[0], call(SW_PUSH, NEXT + 7), 1);
	assert_contains(rig_tx(r), "RESULT k4103");
	/* a future key is an error */
	peer_fill(&r->w[0], call(SW_PUSH, 2 * NEXT + 7), 1);
	assert_int_equal(r->srv->stats.rx_key, 1);
	server_rig_close(r);
}

/* A lost result is not retransmitted when another key has its index. */
static void key__of_a_result_that_was_lost(void **state)
{
	struct server_rig *r = open_joined(1);

	open_stream(r, 0, SW_KEY_NONE, "g/a");
	peer_fill(&r->w[0], call(SW_PUSH, 0), 1);
	assert_contains(rig_tx(r), "RESULT k0");
	close_stream(r, 0, 0);
	shard(r)->last_key = NEXT - 1;
	rig_declare(r, 0, "t", SW_I32, 10, 0);
	assert_non_null(sw_shard_tensor(shard(r), NEXT));
	rig_tick(r, SW_S);
	assert_null(strstr(rig_tx(r), "RESULT"));
	assert_int_equal(r->srv->stats.retransmissions, 0);
	server_rig_close(r);
}

/* At a server that is not the coordinator some members may not have closed the
 * index's previous group yet. The server admits the batch's items before it and
 * then waits. */
static void key__that_is_early(void **state)
{
	struct server_rig *r = open_second();
	struct batch b = {.len = 0};

	open_stream(r, 0, 7, "g/a");
	open_stream(r, 1, 7, "g/a");
	close_stream(r, 0, 7);
	put(&b, SW_MODE_SYNC, 8, 10, "t");
	put(&b, SW_MODE_STREAM, NEXT + 7, 3, "g#2/a");
	assert_string_equal(send(r, 0, &b), "w0 DECLARED k8");
	assert_string_equal(
		open_stream(r, 0, NEXT + 7, "g#2/a"), "w0 KEEPALIVE");
	peer_keepalive(&r->w[1]);
	for (uint32_t i = 0; i < 2; i++) {
		rig_tick(r, r->srv->params.retry_min);
		assert_string_equal(rig_tx(r), "");
	}
	/* this CLOSE follows the DECLARE of another member */
	close_stream(r, 1, 7);
	rig_tick(r, r->srv->params.retry_min);
	assert_string_equal(rig_tx(r), "w0 DECLARED k4103");
	server_rig_close(r);
}

/* The server answers a DECLARE of a group that all members have closed here,
 * and reserves nothing. */
static void key__that_is_declared_late(void **state)
{
	struct server_rig *r = open_second();
	uint64_t used;

	open_stream(r, 0, 7, "g/a");
	close_stream(r, 0, 7);
	close_stream(r, 1, 7);
	used = r->srv->quota.used_bytes;
	assert_string_equal(open_stream(r, 1, 7, "g/a"), "w1 DECLARED k7");
	assert_int_equal(r->srv->quota.used_bytes, used);
	assert_null(sw_shard_tensor(shard(r), 7));
	server_rig_close(r);
}

/* A server may have a group's later stream before or without its first one.
 * Members still end and close the group by its identifier, which is then
 * retired. */
static void key__of_a_first_stream_that_is_not_here(void **state)
{
	struct server_rig *r = open_second();
	struct sw_declare_item item = {.n_elems = 3,
		.key = 9,
		.first = 7,
		.dtype = LOG2,
		.mode = SW_MODE_STREAM};
	struct batch b = {.len = 0};

	peer_declare(&r->w[0], item, "g/b");
	assert_contains(r->text, "w0 DECLARED k9");
	put(&b, SW_MODE_SYNC, 7, 10, "t"); /* its index is the group's */
	assert_contains(send(r, 0, &b), "ERROR");
	server_rig_close(r);
	r = open_second();
	peer_declare(&r->w[0], item, "g/b");
	assert_contains(say(r, 1, 7, 1, "enough"), "w0 END k7 r1 enough");
	assert_string_equal(close_stream(r, 0, 7), "w0 KEEPALIVE");
	assert_string_equal(close_stream(r, 1, 7), "w1 KEEPALIVE");
	assert_null(sw_shard_tensor(shard(r), 9));
	assert_string_equal(say(r, 0, 7, 1, "late"), "w0 KEEPALIVE");
	assert_string_equal(open_stream(r, 1, 7, "g/a"), "w1 DECLARED k7");
	assert_int_equal(r->srv->stats.rx_key, 0);
	assert_null(sw_shard_tensor(shard(r), 7));
	server_rig_close(r);
}

/* A member that already knows of the death gets no END. */
static void key__of_a_dead_stream(void **state)
{
	struct server_rig *r = open_joined(3);
	struct batch b = {.len = 0};

	shard(r)->last_key = 20 * NEXT + 6;
	open_stream(r, 0, SW_KEY_NONE, "g/a");
	put(&b, SW_MODE_STREAM, SW_KEY_NONE, 3, "g/a"); /* with other ranks */
	assert_contains(send(r, 1, &b), "w1 DECLARED");
	assert_contains(open_stream(r, 2, SW_KEY_NONE, "g/a"),
		"w2 DECLARED"); /* refused */
	rig_tick(r, 0);
	rig_tx(r);
	rig_tick(r, SW_S);
	assert_null(strstr(rig_tx(r), "w2 END"));
	server_rig_close(r);
}

/* The server acknowledges a CLOSE of a retired or unknown key; it has no
 * effect. */
static void key__closed_that_is_unknown(void **state)
{
	struct server_rig *r = open_joined(1);

	open_stream(r, 0, SW_KEY_NONE, "g/a");
	assert_string_equal(close_stream(r, 0, 0), "w0 KEEPALIVE");
	assert_string_equal(close_stream(r, 0, 0), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_key, 0);
	assert_string_equal(close_stream(r, 0, 1), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_key, 1);
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key__of_a_group_that_is_opened_again),
		cmocka_unit_test(key__when_all_are_taken),
		cmocka_unit_test(key__of_the_last_generation),
		cmocka_unit_test(key__of_the_past),
		cmocka_unit_test(key__of_a_result_that_was_lost),
		cmocka_unit_test(key__that_is_early),
		cmocka_unit_test(key__that_is_declared_late),
		cmocka_unit_test(key__of_a_first_stream_that_is_not_here),
		cmocka_unit_test(key__of_a_dead_stream),
		cmocka_unit_test(key__closed_that_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
