/* unit_async.c - parameters that the server keeps: rules and bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/async.h"

#include "test/support/shard_rig.h"

static const enum sw_round_kind DELTA = SW_ROUND_SUM, COPY = SW_ROUND_COPY;

/* --- the rules --- */

struct kept {
	struct sw_kept k;
	uint32_t last[4];
};

static void judge_push__by_sequence(void **state)
{
	struct kept x = {.k = {.is_ready = true}, .last = {0, 7}};

	assert_int_equal(sw_kept_judge_push(&x.k, 8, 1, DELTA), SW_PUSH_FOLD);
	assert_int_equal(sw_kept_judge_push(&x.k, 8, 1, COPY), SW_PUSH_FOLD);
	assert_int_equal(sw_kept_judge_push(&x.k, 7, 1, DELTA), SW_PUSH_DONE);
	assert_int_equal(sw_kept_judge_push(&x.k, 6, 1, DELTA), SW_PUSH_OLD);
	assert_int_equal(sw_kept_judge_push(&x.k, 0, 1, DELTA), SW_PUSH_OLD);
	assert_int_equal(
		sw_kept_judge_push(&x.k, 9, 1, DELTA), SW_PUSH_VIOLATION);
	assert_int_equal(
		sw_kept_judge_push(&x.k, 8, 0, DELTA), SW_PUSH_VIOLATION);
}

static void judge_push__before_the_value(void **state)
{
	struct kept x = {.last = {0, 1}};

	assert_int_equal(
		sw_kept_judge_push(&x.k, 1, 0, DELTA), SW_PUSH_VIOLATION);
	assert_int_equal(sw_kept_judge_push(&x.k, 1, 0, COPY), SW_PUSH_FOLD);
	assert_int_equal(sw_kept_judge_push(&x.k, 1, 1, COPY), SW_PUSH_HAVE);
	assert_int_equal(
		sw_kept_judge_push(&x.k, 2, 1, DELTA), SW_PUSH_VIOLATION);
	assert_int_equal(sw_kept_judge_push(&x.k, 0, 0, COPY), SW_PUSH_OLD);
}

static void judge_query__four_answers(void **state)
{
	struct kept x = {.last = {0, 7}};

	assert_int_equal(sw_kept_judge_query(&x.k, 7, 1), SW_QUERY_WAIT);
	x.k.is_ready = true;
	assert_int_equal(sw_kept_judge_query(&x.k, 7, 1), SW_QUERY_RESULT);
	assert_int_equal(sw_kept_judge_query(&x.k, 8, 1), SW_QUERY_NEED);
	assert_int_equal(sw_kept_judge_query(&x.k, 6, 1), SW_QUERY_GONE);
	assert_int_equal(sw_kept_judge_query(&x.k, 1, 0), SW_QUERY_NEED);
	assert_int_equal(sw_kept_judge_query(&x.k, 0, 0), SW_QUERY_NEED);
}

/* --- values --- */

/* Open a shard of two members with one tensor of @n_elems i32. */
static struct fixture *open_async(uint64_t n_elems)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit_async(x, 0, SW_I32, n_elems);
	return x;
}

/* Push member @member's part of a broadcast of rank 0. */
static enum sw_push_verdict copy(
	struct fixture *x, uint32_t member, uint32_t round, int32_t value)
{
	struct sw_header h = header(0, round, 0, member ? 0 : FULL);
	int32_t elems[FULL];

	for (uint32_t i = 0; i < FULL; i++)
		elems[i] = value;
	h.op = SW_ROUND_COPY;
	h.weight = member ? 0 : 1;
	h.payload_crc = sw_data_crc(0, &h, elems, h.payload_len);
	return shard_push(&x->sh, member, &h, (uint8_t *)elems, false);
}

/* The same, after both members have got the first value, 100. */
static struct fixture *open_started(void)
{
	struct fixture *x = open_async(FULL);

	copy(x, 0, 1, 100);
	assert_int_equal(copy(x, 1, 1, 0), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, 0), 100);
	assert_int_equal(take(x, 1), 100);
	return x;
}

static uint32_t updates(const struct fixture *x)
{
	return x->h.step | (uint32_t)x->h.aux << 16;
}

/* The memory is one value, and 24 bytes plus 4 per member for each chunk.
 * 16-bit types are kept in f32. */
static void need__by_dtype(void **state)
{
	struct fixture *x = open_shard(3, 0, 1);
	struct sw_declare_item item = {
		.dtype = SW_F32, .n_elems = FULL, .mode = SW_MODE_ASYNC};
	uint64_t marks = 3 * 8;

	assert_int_equal(
		sw_shard_need(&x->sh, &item), PAYLOAD + 24 + 16 + marks);
	item.dtype = SW_BF16;
	item.n_elems = 2 * FULL;
	assert_int_equal(
		sw_shard_need(&x->sh, &item), 2 * PAYLOAD + 40 + marks);
	close_shard(x);
}

static void start__together(void **state)
{
	struct fixture *x = open_async(FULL);

	assert_int_equal(copy(x, 1, 1, 0), SW_PUSH_FOLD);
	assert_int_equal(x->sh.n_open, 1);
	assert_int_equal(query(x, 1, 1), 'W');
	assert_int_equal(query(x, 0, 1), 'N');
	assert_int_equal(take(x, 1), -1);
	assert_int_equal(copy(x, 0, 1, 5), SW_PUSH_COMPLETE);
	assert_int_equal(x->sh.n_open, 0);
	for (uint32_t m = 0; m < 2; m++) {
		assert_int_equal(take(x, m), 5);
		assert_int_equal(x->h.round, 1);
		assert_int_equal(x->h.op, SW_ROUND_COPY);
		assert_int_equal(x->h.weight, 1);
		assert_int_equal(updates(x), 1);
	}
	close_shard(x);
}

/* The member that gives the value may come first; it waits for the others. */
static void start__root_first(void **state)
{
	struct fixture *x = open_async(FULL);

	assert_int_equal(copy(x, 0, 1, 5), SW_PUSH_FOLD);
	assert_int_equal(query(x, 0, 1), 'W');
	assert_int_equal(push(x, 1, 1, 0, 3), SW_PUSH_VIOLATION); /* a delta */
	assert_int_equal(x->stats.rx_round, 1);
	assert_int_equal(copy(x, 1, 1, 0), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, 1), 5);
	close_shard(x);
}

static void start__two_roots(void **state)
{
	struct fixture *x = open_async(FULL);
	struct sw_header h = header(0, 1, 0, 0);

	copy(x, 0, 1, 5);
	h.op = SW_ROUND_COPY;
	h.weight = 0;
	h.aux = 1;
	h.payload_crc = sw_data_crc(0, &h, NULL, 0);
	assert_int_equal(
		shard_push(&x->sh, 1, &h, NULL, false), SW_PUSH_DIFFERS);
	close_shard(x);
}

/* Bytes from another rank than the root would be a second value. */
static void start__whose_root(void **state)
{
	struct fixture *x = open_async(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL] = {0};

	copy(x, 0, 1, 5);
	h.op = SW_ROUND_COPY;
	h.payload_crc = sw_data_crc(0, &h, elems, h.payload_len);
	assert_int_equal(shard_push(&x->sh, 1, &h, (uint8_t *)elems, false),
		SW_PUSH_DIFFERS);
	assert_int_equal(copy(x, 1, 1, 0), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, 1), 5);
	assert_int_equal(updates(x), 1);
	close_shard(x);
}

/* A fast member continues; the slow member later gets a value with all
 * updates. */
static void push__waits_for_nobody(void **state)
{
	struct fixture *x = open_started();

	for (uint32_t r = 2; r < 10; r++) {
		assert_int_equal(push(x, 0, r, 0, 1), SW_PUSH_FOLD);
		assert_int_equal(take(x, 0), 100 + (int32_t)r - 1);
		assert_int_equal(x->h.round, r);
		assert_int_equal(updates(x), r);
		assert_int_equal(take(x, 1), -1);
	}
	push(x, 1, 2, 0, 1000);
	assert_int_equal(take(x, 1), 1108);
	assert_int_equal(updates(x), 10);
	assert_int_equal(x->stats.push_folded, 11);
	assert_int_equal(x->stats.rx_round, 0);
	close_shard(x);
}

static void push__duplicate(void **state)
{
	struct fixture *x = open_started();

	push(x, 0, 2, 0, 1);
	assert_int_equal(take(x, 0), 101);
	/* the answer is in flight */
	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_DONE);
	fate(x, 0, false);
	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_DONE);
	assert_int_equal(take(x, 0), 101);
	assert_int_equal(push(x, 0, 1, 0, 1), SW_PUSH_OLD);
	assert_int_equal(x->stats.push_again, 3);
	assert_int_equal(x->stats.push_folded, 3);
	close_shard(x);
}

static void push__gap(void **state)
{
	struct fixture *x = open_started();

	assert_int_equal(push(x, 0, 3, 0, 1), SW_PUSH_VIOLATION);
	assert_int_equal(x->stats.rx_round, 1);
	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_FOLD);
	assert_int_equal(push(x, 0, 3, 0, 1), SW_PUSH_FOLD);
	assert_int_equal(take(x, 0), 102);
	close_shard(x);
}

static void push__damaged(void **state)
{
	struct fixture *x = open_started();
	struct sw_header h = header(0, 2, 0, FULL);
	int32_t elems[FULL] = {1};

	h.payload_crc = 17;
	assert_int_equal(shard_push(&x->sh, 0, &h, (uint8_t *)elems, false),
		SW_PUSH_CRC);
	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_FOLD);
	assert_int_equal(take(x, 0), 101);
	close_shard(x);
}

static void push__draining(void **state)
{
	struct fixture *x = open_started();

	x->sh.is_draining = true;
	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_DROP);
	assert_int_equal(x->stats.push_folded, 2);
	close_shard(x);
}

/* While the server stops, a member that waits for the first value still gets
 * it; no other value begins. */
static void start__draining(void **state)
{
	struct fixture *x = open_async(2 * FULL);
	struct sw_header h = header(0, 1, 1, 0);

	assert_int_equal(copy(x, 0, 1, 5), SW_PUSH_FOLD);
	x->sh.is_draining = true;
	assert_int_equal(copy(x, 1, 1, 0), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, 0), 5);
	h.op = SW_ROUND_COPY;
	h.weight = 0;
	assert_int_equal(shard_push(&x->sh, 1, &h, NULL, false), SW_PUSH_DROP);
	assert_int_equal(x->sh.n_open, 0);
	close_shard(x);
}

/* A later broadcast sets a new value; the other members only fetch it. */
static void copy__later(void **state)
{
	struct fixture *x = open_started();

	push(x, 1, 2, 0, 1);
	assert_int_equal(take(x, 1), 101);
	assert_int_equal(copy(x, 0, 2, 7), SW_PUSH_FOLD);
	assert_int_equal(take(x, 0), 7);
	assert_int_equal(copy(x, 1, 3, 0), SW_PUSH_FOLD);
	assert_int_equal(take(x, 1), 7);
	assert_int_equal(updates(x), 3);
	close_shard(x);
}

/* A retransmission has the value at its own time. The fate of an older answer
 * has no effect. */
static void fate__lost_is_built_anew(void **state)
{
	struct fixture *x = open_started();
	struct sw_header old;

	push(x, 0, 2, 0, 1);
	assert_int_equal(take(x, 0), 101);
	push(x, 1, 2, 0, 10);
	old = x->h;
	fate(x, 0, true);
	assert_int_equal(x->stats.retransmissions, 1);
	assert_int_equal(take(x, 0), 111);
	push(x, 0, 3, 0, 1);
	take(x, 0);
	x->h = old;
	fate(x, 0, true);
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

static void query__four_answers(void **state)
{
	struct fixture *x = open_started();

	push(x, 0, 2, 0, 1);
	assert_int_equal(take(x, 0), 101);
	assert_int_equal(query(x, 0, 2), 'r');
	assert_int_equal(take(x, 0), -1); /* the answer is in flight */
	fate(x, 0, false);
	assert_int_equal(query(x, 0, 2), 'r');
	assert_int_equal(take(x, 0), 101);
	assert_int_equal(query(x, 0, 3), 'N');
	assert_int_equal(query(x, 0, 1), 'G');
	close_shard(x);
}

/* 16-bit types are kept in f32, so small updates add up. */
static void take__rounds_once(void **state)
{
	struct fixture *x = open_shard(1, 0, 1);
	struct sw_header h = header(0, 1, 0, 0);
	uint16_t value = 0x3f80, small = 0x3a80; /* as bf16: 1 and 2^-10 */
	uint32_t order;
	const uint16_t *got = NULL;

	admit_async(x, 0, SW_BF16, 1);
	h.dtype = SW_BF16;
	h.payload_len = 2;
	for (h.round = 1; h.round < 10; h.round++) {
		uint16_t v = h.round == 1 ? value : small;

		h.op = h.round == 1 ? COPY : DELTA;
		h.payload_crc = sw_data_crc(0, &h, &v, 2);
		shard_push(&x->sh, 0, &h, (uint8_t *)&v, false);
		order = sw_bitmap_first(&x->sh.ready[0]);
		got = take_bytes(x, 0, order);
		assert_int_equal(
			x->h.payload_crc, sw_data_crc(0, &x->h, got, 2));
	}
	assert_int_equal(*got, 0x3f81); /* 1 + 8 * 2^-10 */
	close_shard(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge_push__by_sequence),
		cmocka_unit_test(judge_push__before_the_value),
		cmocka_unit_test(judge_query__four_answers),
		cmocka_unit_test(need__by_dtype),
		cmocka_unit_test(start__together),
		cmocka_unit_test(start__root_first),
		cmocka_unit_test(start__two_roots),
		cmocka_unit_test(start__whose_root),
		cmocka_unit_test(start__draining),
		cmocka_unit_test(push__waits_for_nobody),
		cmocka_unit_test(push__duplicate),
		cmocka_unit_test(push__gap),
		cmocka_unit_test(push__damaged),
		cmocka_unit_test(push__draining),
		cmocka_unit_test(copy__later),
		cmocka_unit_test(fate__lost_is_built_anew),
		cmocka_unit_test(query__four_answers),
		cmocka_unit_test(take__rounds_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
