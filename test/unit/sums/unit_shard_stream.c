/* unit_shard_stream.c - a stream of collectives at a server, without frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/shard_rig.h"

#include "engine/sums/stream.h"

enum { A, B, C, LOG2 = SW_WINDOW_MIN_LOG2, W = 1 << LOG2 };

/* Open a shard of three members; the group of stream 0 has @members. */
static struct fixture *open_stream(uint64_t members)
{
	struct fixture *x = open_shard(3, 0, 1);

	admit_item(x, &(struct sw_declare_item){.dtype = LOG2,
			      .n_elems = members,
			      .mode = SW_MODE_STREAM});
	return x;
}

/* Make the push of chunk @j, in collective 1 of its stream. */
static struct sw_header header_of(
	enum sw_coll_kind kind, uint32_t j, uint32_t root, uint32_t n_elems)
{
	struct sw_header h = header(0, j, 1, n_elems);

	h.op = sw_coll_op(kind, SW_ROUND_SUM);
	h.aux = (uint16_t)root;
	h.step = 9;
	h.weight = n_elems > 0;
	h.type = n_elems ? SW_PUSH : SW_WANT;
	return h;
}

static enum sw_push_verdict push_bytes(struct fixture *x, uint32_t member,
	struct sw_header h, const void *bytes)
{
	h.payload_crc = sw_data_crc(0, &h, bytes, h.payload_len);
	return shard_push(&x->sh, member, &h, bytes, false);
}

static enum sw_push_verdict push_h(
	struct fixture *x, uint32_t member, struct sw_header h, int32_t value)
{
	int32_t elems[FULL];

	for (uint32_t i = 0; i < FULL; i++)
		elems[i] = value;
	return push_bytes(x, member, h, elems);
}

static enum sw_push_verdict push_sum(
	struct fixture *x, uint32_t member, uint32_t j, int32_t value)
{
	return push_h(x, member, header_of(SW_ALL_REDUCE, j, A, FULL), value);
}

static uint32_t base_of(const struct fixture *x)
{
	return sw_shard_answer(&x->sh, 0, 0, 0, SW_ANSWER_BASE).chunk;
}

/* Let all three push an all_reduce of chunk @j and get its result. */
static void whole_chunk(struct fixture *x, uint32_t j)
{
	for (uint32_t m = A; m <= C; m++)
		push_sum(x, m, j, 1);
	for (uint32_t m = A; m <= C; m++) {
		assert_int_equal(take(x, m), 3);
		assert_int_equal(x->h.round, j);
		fate(x, m, false);
	}
}

/* --- sums and copies --- */

static void push__all_reduce(void **state)
{
	struct fixture *x = open_stream(7);

	assert_int_equal(push_sum(x, B, 1, 2), SW_PUSH_FOLD);
	assert_int_equal(push_sum(x, A, 1, 1), SW_PUSH_FOLD);
	assert_int_equal(push_sum(x, A, 1, 1), SW_PUSH_HAVE);
	assert_int_equal(x->sh.n_open, 1);
	assert_int_equal(push_sum(x, C, 1, 4), SW_PUSH_COMPLETE);
	assert_int_equal(x->sh.n_open, 0);
	for (uint32_t m = A; m <= C; m++) {
		assert_int_equal(take(x, m), 7);
		assert_int_equal(x->h.round, 1);
		assert_int_equal(x->h.chunk, 1);
		assert_int_equal(x->h.step, 9);
		assert_int_equal(x->h.weight, 3);
		assert_int_equal(x->h.aux, 1);
		assert_int_equal(take(x, m), -1);
	}
	close_shard(x);
}

static void push__reduce_only_the_root_gets_it(void **state)
{
	struct fixture *x = open_stream(7);

	for (uint32_t m = A; m <= C; m++)
		push_h(x, m, header_of(SW_REDUCE, 1, B, FULL), 5);
	assert_int_equal(take(x, A), -1);
	assert_int_equal(take(x, C), -1);
	assert_int_equal(take(x, B), 15);
	assert_int_equal(base_of(x), 1);
	fate(x, B, false);
	assert_int_equal(base_of(x), 2);
	close_shard(x);
}

/* A receiver that asks after the chunk is ready gets it at once, by its own
 * empty push. */
static void push__broadcast_to_a_late_receiver(void **state)
{
	struct fixture *x = open_stream(7);

	push_h(x, A, header_of(SW_BCAST, 1, B, 0), 0);
	assert_int_equal(take(x, A), -1);
	assert_int_equal(push_h(x, B, header_of(SW_BCAST, 1, B, FULL), 6),
		SW_PUSH_COMPLETE);
	assert_int_equal(take(x, A), 6);
	fate(x, A, false);
	assert_int_equal(take(x, B), -1);
	assert_int_equal(take(x, C), -1); /* C has not asked */
	assert_int_equal(base_of(x), 1);
	assert_int_equal(
		push_h(x, C, header_of(SW_BCAST, 1, B, 0), 0), SW_PUSH_FOLD);
	assert_int_equal(take(x, C), 6);
	assert_int_equal(x->h.weight, 1);
	fate(x, C, false);
	assert_int_equal(base_of(x), 2);
	close_shard(x);
}

/* In a group of one the push completes the chunk. */
static void push__group_of_one(void **state)
{
	struct fixture *x = open_stream(1 << B);

	assert_int_equal(push_h(x, B, header_of(SW_ALL_GATHER, 1, B, 1), 6),
		SW_PUSH_COMPLETE);
	assert_int_equal(base_of(x), 2);
	assert_int_equal(take(x, B), -1);
	close_shard(x);
}

/* --- refused pushes --- */

static void dropped(struct fixture *x, uint32_t member, struct sw_header h,
	const uint64_t *counter)
{
	uint64_t before = *counter;

	assert_int_equal(push_h(x, member, h, 1), SW_PUSH_DROP);
	assert_int_equal(*counter, before + 1);
	assert_int_equal(x->sh.n_open, 0);
}

static void push__not_a_collective(void **state)
{
	struct fixture *x = open_stream(3);
	const uint64_t *n = &x->stats.rx_dtype;
	struct sw_header good = header_of(SW_ALL_REDUCE, 1, A, FULL), h = good;

	h.op = sw_coll_op(SW_COLL_NONE, SW_ROUND_SUM);
	dropped(x, A, h, n);
	h.op = sw_coll_op(SW_N_COLL_KINDS, SW_ROUND_SUM);
	dropped(x, A, h, n);
	h.op = 0xf0;
	dropped(x, A, h, n);
	h = good;
	h.dtype = 0xff;
	dropped(x, A, h, n);
	h = good;
	h.aux = C; /* a rank of the job, not of the group */
	dropped(x, A, h, n);
	h.aux = 3;
	dropped(x, A, h, n);
	h.aux = 0xffff;
	dropped(x, A, h, n);
	dropped(x, C, good, n); /* not a member of the group */
	close_shard(x);
}

static void push__wrong_length(void **state)
{
	struct fixture *x = open_stream(3);
	const uint64_t *n = &x->stats.rx_length;
	struct sw_header h = header_of(SW_ALL_REDUCE, 1, A, FULL);

	h.payload_len = 6;
	dropped(x, A, h, n);
	h.payload_len = 0;
	h.weight = 0;
	dropped(x, A, h, n); /* it must have data */
	h = header_of(SW_ALL_REDUCE, 1, A, FULL);
	x->params.payload = PAYLOAD - 4;
	dropped(x, A, h, n);
	close_shard(x);
}

static void push__bytes_of_who_gives_none(void **state)
{
	struct fixture *x = open_stream(3);
	const uint64_t *n = &x->stats.rx_length;

	dropped(x, A, header_of(SW_BCAST, 1, B, FULL), n);
	dropped(x, A, header_of(SW_ALL_GATHER, 1, B, FULL), n);
	dropped(x, B, header_of(SW_BCAST, 1, B, 0), n);
	dropped(x, B, header_of(SW_REDUCE_SCATTER, 1, A, 0), n);
	close_shard(x);
}

static void push__weight_beyond_its_ranks(void **state)
{
	struct fixture *x = open_stream(3);
	struct sw_header h = header_of(SW_ALL_REDUCE, 1, A, FULL);

	h.weight = 2;
	dropped(x, A, h, &x->stats.rx_weight);
	close_shard(x);
}

static void push__damaged(void **state)
{
	struct fixture *x = open_stream(3);
	struct sw_header h = header_of(SW_ALL_REDUCE, 1, A, 1);
	int32_t value = 1;

	h.payload_crc = sw_data_crc(0, &h, &value, 4) ^ 1;
	assert_int_equal(shard_push(&x->sh, A, &h, (uint8_t *)&value, false),
		SW_PUSH_CRC);
	assert_int_equal(x->sh.n_open, 0);
	close_shard(x);
}

/* --- members that differ from the first push --- */

/* Check that B's @other mismatches A's @first. */
static void differs(struct sw_header first, struct sw_header other)
{
	struct fixture *x = open_stream(3);

	push_h(x, A, first, 1);
	assert_int_equal(push_h(x, B, other, 1), SW_PUSH_DIFFERS);
	assert_int_equal(sw_shard_begun(&x->sh, &other).got, 1 << A);
	close_shard(x);
}

static void push__differs_from_the_first(void **state)
{
	const struct sw_header first = header_of(SW_ALL_REDUCE, 1, A, FULL);
	struct sw_header h = first;

	h.chunk = 2;
	differs(first, h);
	h = first;
	h.op = sw_coll_op(SW_REDUCE, SW_ROUND_SUM);
	differs(first, h);
	h = first;
	h.dtype = SW_F32;
	differs(first, h);
	h = first;
	h.step = 8; /* another count with the same bytes in this chunk */
	differs(first, h);
	h = first;
	h.payload_len -= 4;
	differs(first, h);
	h = first;
	h.aux = B;
	differs(first, h);
}

/* Two broadcasts with different roots mismatch; each root's bytes are known
 * only to itself. */
static void push__differs_in_the_root_of_a_broadcast(void **state)
{
	differs(header_of(SW_BCAST, 1, A, FULL),
		header_of(SW_BCAST, 1, B, FULL));
	differs(header_of(SW_BCAST, 1, B, 0), header_of(SW_BCAST, 1, A, 0));
}

/* A slot's previous chunk is not compared with the next one. */
static void push__another_kind_a_window_later(void **state)
{
	struct fixture *x = open_stream(7);
	struct sw_header h = header_of(SW_REDUCE, 1 + W, B, 3);

	for (uint32_t j = 1; j <= W; j++)
		whole_chunk(x, j);
	h.chunk = 2;
	h.step = 3;
	assert_int_equal(push_h(x, A, h, 1), SW_PUSH_FOLD);
	close_shard(x);
}

static void kill__nothing_is_folded_any_more(void **state)
{
	struct fixture *x = open_stream(3);

	push_sum(x, A, 1, 1);
	assert_true(sw_sgroup_end(&x->sh, sw_shard_group(&x->sh, 0), 1,
		&(struct sw_fault){.err = SW_EMISMATCH}));
	assert_int_equal(x->sh.n_open, 0);
	assert_int_equal(push_sum(x, B, 1, 1), SW_PUSH_DEAD);
	assert_int_equal(push_sum(x, B, 2, 1), SW_PUSH_DEAD);
	assert_false(sw_sgroup_end(&x->sh, sw_shard_group(&x->sh, 0), 5,
		&(struct sw_fault){.err = SW_EMISMATCH}));
	close_shard(x);
}

static void drain__no_chunk_begins(void **state)
{
	struct fixture *x = open_stream(3);

	push_sum(x, A, 1, 1);
	x->sh.is_draining = true;
	assert_int_equal(push_sum(x, A, 2, 1), SW_PUSH_DROP);
	assert_int_equal(push_sum(x, B, 1, 1), SW_PUSH_COMPLETE);
	close_shard(x);
}

/* --- types in one slot --- */

enum { TWO = 0x4000, FOUR = 0x4080 }; /* as bf16 */

/* A slot has f32 in one chunk and a 16-bit type in the next one, and f32 again.
 * No chunk sees another one's data. */
static void push__types_change_in_a_slot(void **state)
{
	struct fixture *x = open_stream(7);
	uint16_t half[2 * FULL];
	struct sw_header h = header_of(SW_ALL_REDUCE, 1 + W, A, FULL);
	const uint16_t *sum;
	float one[FULL];

	for (uint32_t i = 0; i < FULL; i++)
		one[i] = 1;
	for (uint32_t i = 0; i < 2 * FULL; i++)
		half[i] = TWO;
	h.round = 1;
	h.dtype = SW_F32;
	for (uint32_t m = A; m <= C; m++)
		push_bytes(x, m, h, one);
	for (uint32_t m = A; m <= C; m++) {
		float three = 3;
		int32_t bits;

		memcpy(&bits, &three, sizeof(bits));
		assert_int_equal(take(x, m), bits);
		fate(x, m, false);
	}
	for (uint32_t j = 2; j <= W; j++)
		whole_chunk(x, j);
	h.round = 1 + W;
	h.dtype = SW_BF16;
	push_bytes(x, A, h, half);
	push_bytes(x, B, h, half);
	for (uint32_t i = 0; i < 2 * FULL; i++)
		half[i] = 0;
	push_bytes(x, C, h, half);
	sum = take_bytes(x, A, sw_bitmap_first(&x->sh.ready[A]));
	assert_int_equal(x->h.payload_len, 4 * FULL);
	for (uint32_t i = 0; i < 2 * FULL; i++)
		assert_int_equal(sum[i], FOUR);
	close_shard(x);
}

/* In all slots, sums of full 16-bit chunks take twice the payload without
 * overlap. */
static void push__sums_of_16_bits_do_not_overlap(void **state)
{
	struct fixture *x = open_stream(1 << A);
	struct sw_header h = header_of(SW_ALL_REDUCE, 1, A, FULL);
	uint16_t half[2 * FULL];
	const uint16_t *sum;

	h.dtype = SW_BF16;
	for (uint32_t j = 1; j <= W; j++) {
		for (uint32_t i = 0; i < 2 * FULL; i++)
			half[i] = (uint16_t)(TWO + j);
		h.round = j;
		push_bytes(x, A, h, half);
	}
	for (uint32_t j = 1; j <= W; j++) {
		sum = take_bytes(x, A, sw_bitmap_first(&x->sh.ready[A]));
		for (uint32_t i = 0; i < 2 * FULL; i++)
			assert_int_equal(sum[i], TWO + x->h.round);
	}
	close_shard(x);
}

/* --- base --- */

static void fate__acknowledgements_move_base(void **state)
{
	struct fixture *x = open_stream(7);

	for (uint32_t m = A; m <= C; m++)
		push_sum(x, m, 1, 1);
	for (uint32_t m = A; m <= C; m++) {
		assert_int_equal(base_of(x), 1);
		take(x, m);
		fate(x, m, false);
	}
	assert_int_equal(base_of(x), 2);
	assert_int_equal(push_sum(x, A, 1, 1), SW_PUSH_OLD);
	close_shard(x);
}

/* Chunk 2 is complete before chunk 1, so the base passes both at once. */
static void fate__base_waits_for_the_oldest(void **state)
{
	struct fixture *x = open_stream(7);

	push_sum(x, A, 1, 1);
	whole_chunk(x, 2);
	assert_int_equal(base_of(x), 1);
	push_sum(x, B, 1, 1);
	push_sum(x, C, 1, 1);
	for (uint32_t m = A; m <= C; m++) {
		take(x, m);
		fate(x, m, false);
	}
	assert_int_equal(base_of(x), 3);
	close_shard(x);
}

static void fate__lost_result_is_sent_again(void **state)
{
	struct fixture *x = open_stream(3);

	push_sum(x, A, 1, 1);
	push_sum(x, B, 1, 2);
	assert_int_equal(take(x, A), 3);
	fate(x, A, true);
	assert_int_equal(take(x, A), 3);
	assert_int_equal(take(x, A), -1);
	assert_int_equal(push_sum(x, A, 1, 1), SW_PUSH_DONE); /* in flight */
	assert_int_equal(take(x, A), -1);
	fate(x, A, false);
	fate(x, A, true); /* a second fate is ignored */
	assert_int_equal(take(x, A), -1);
	assert_int_equal(x->stats.retransmissions, 1);
	close_shard(x);
}

/* A fate that arrives when the slot has another chunk has no effect. */
static void fate__of_an_older_chunk(void **state)
{
	struct fixture *x = open_stream(7);

	for (uint32_t j = 1; j <= W; j++)
		whole_chunk(x, j);
	push_sum(x, A, 1 + W, 1);
	assert_false(fate_of(x, A, 1, 1, true));
	assert_false(fate_of(x, A, 1, 1, false));
	assert_int_equal(take(x, A), -1);
	assert_int_equal(base_of(x), 1 + W);
	close_shard(x);
}

/* Members are told the base at every quarter of a window. */
static void fate__tells_of_a_quarter(void **state)
{
	struct fixture *x = open_stream(1 << A);

	for (uint32_t j = 1; j <= 4 * W; j++) {
		bool is_told;

		push_sum(x, A, j, 1);
		take(x, A);
		is_told = fate_of(x, A, x->cell, j, false);
		assert_int_equal(is_told, (j + 1) % (W / 4) == 0);
	}
	close_shard(x);
}

static void push__the_window_closes(void **state)
{
	struct fixture *x = open_stream(3);

	for (uint32_t j = 1; j <= W; j++)
		assert_int_equal(push_sum(x, A, j, 1), SW_PUSH_FOLD);
	assert_int_equal(push_sum(x, A, 1 + W, 1), SW_PUSH_VIOLATION);
	assert_int_equal(x->stats.rx_round, 1);
	push_sum(x, B, 1, 1);
	assert_int_equal(push_sum(x, A, 1 + W, 1), SW_PUSH_VIOLATION);
	for (uint32_t m = A; m <= B; m++) {
		take(x, m);
		fate(x, m, false);
	}
	assert_int_equal(push_sum(x, A, 1 + W, 1), SW_PUSH_FOLD);
	close_shard(x);
}

/* After 2^32 chunks numbers start over, 0 included. */
static void push__numbers_wrap_around(void **state)
{
	struct fixture *x = open_stream(7);
	struct sw_stensor *t = sw_shard_tensor(&x->sh, 0);
	uint32_t j = UINT32_MAX - W;

	t->base = j;
	for (uint32_t n = 0; n < W; n++)
		whole_chunk(x, j++);
	for (uint32_t n = 0; n < 2 * W; n++) {
		whole_chunk(x, j++);
		assert_int_equal(base_of(x), j);
	}
	assert_int_equal(j, 2 * W - 1);
	close_shard(x);
}

/* --- queries --- */

static char query_of(struct fixture *x, uint32_t member, uint32_t j)
{
	struct sw_query p = {0, j, 0};
	struct sw_answer a;

	if (!sw_shard_query(&x->sh, member, &p, &a))
		return 'r';
	assert_int_equal(a.round, j);
	assert_int_equal(a.chunk, base_of(x));
	return a.kind == SW_ANSWER_BASE ? 'B' : "WNG"[a.kind];
}

static void query__what_is_answered(void **state)
{
	struct fixture *x = open_stream(3);

	assert_int_equal(query_of(x, A, 1), 'N');
	push_sum(x, A, 1, 1);
	assert_int_equal(query_of(x, A, 1), 'W');
	assert_int_equal(query_of(x, B, 1), 'N');
	push_sum(x, B, 1, 1);
	assert_int_equal(query_of(x, A, 1), 'r');
	assert_int_equal(take(x, A), 2);
	assert_int_equal(query_of(x, A, 1), 'r'); /* in flight */
	assert_int_equal(take(x, A), -1);
	fate(x, A, false);
	assert_int_equal(query_of(x, A, 1), 'G');
	close_shard(x);
}

static void query__how_far_the_window_is(void **state)
{
	struct fixture *x = open_stream(7);

	assert_int_equal(query_of(x, A, 0), 'B');
	assert_int_equal(query_of(x, A, 1 + W), 'B');
	whole_chunk(x, 1);
	assert_int_equal(query_of(x, A, 1), 'B');
	assert_int_equal(query_of(x, A, 0), 'B');
	close_shard(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push__all_reduce),
		cmocka_unit_test(push__reduce_only_the_root_gets_it),
		cmocka_unit_test(push__broadcast_to_a_late_receiver),
		cmocka_unit_test(push__group_of_one),
		cmocka_unit_test(push__not_a_collective),
		cmocka_unit_test(push__wrong_length),
		cmocka_unit_test(push__bytes_of_who_gives_none),
		cmocka_unit_test(push__weight_beyond_its_ranks),
		cmocka_unit_test(push__damaged),
		cmocka_unit_test(push__differs_from_the_first),
		cmocka_unit_test(push__differs_in_the_root_of_a_broadcast),
		cmocka_unit_test(push__another_kind_a_window_later),
		cmocka_unit_test(kill__nothing_is_folded_any_more),
		cmocka_unit_test(drain__no_chunk_begins),
		cmocka_unit_test(push__types_change_in_a_slot),
		cmocka_unit_test(push__sums_of_16_bits_do_not_overlap),
		cmocka_unit_test(fate__acknowledgements_move_base),
		cmocka_unit_test(fate__base_waits_for_the_oldest),
		cmocka_unit_test(fate__lost_result_is_sent_again),
		cmocka_unit_test(fate__of_an_older_chunk),
		cmocka_unit_test(fate__tells_of_a_quarter),
		cmocka_unit_test(push__the_window_closes),
		cmocka_unit_test(push__numbers_wrap_around),
		cmocka_unit_test(query__what_is_answered),
		cmocka_unit_test(query__how_far_the_window_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
