/* unit_stream_ops.c - how a stream's slot combines bytes, by operation.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/shard_rig.h"

#include "engine/sums/stream.h"

enum { A, B, C, MEMBERS = 3, LOG2 = SW_WINDOW_MIN_LOG2, ALL = 7 };

static struct fixture *open_stream(void)
{
	struct fixture *x = open_shard(MEMBERS, 0, 1);

	admit_item(x,
		&(struct sw_declare_item){
			.dtype = LOG2, .n_elems = ALL, .mode = SW_MODE_STREAM});
	return x;
}

/* Make the header of a full chunk of an all_reduce. */
static struct sw_header header_of(uint32_t op, enum sw_dtype dtype, uint32_t j)
{
	struct sw_header h = header(0, j, j, FULL);

	h.op = (uint8_t)(SW_ALL_REDUCE << 4 | op);
	h.dtype = (uint8_t)dtype;
	h.weight = 1;
	return h;
}

/* Fill the payload with elements that have these bits. */
static void fill(
	uint8_t bytes[PAYLOAD], const struct sw_header *h, uint64_t bits)
{
	uint32_t each = sw_dtype_bytes(h->dtype);

	for (uint32_t at = 0; at + each <= PAYLOAD; at += each)
		memcpy(bytes + at, &bits, each);
}

static enum sw_push_verdict push_bits(
	struct fixture *x, uint32_t member, struct sw_header h, uint64_t bits)
{
	uint8_t bytes[PAYLOAD];

	fill(bytes, &h, bits);
	h.payload_crc = sw_data_crc(0, &h, bytes, h.payload_len);
	return shard_push(&x->sh, member, &h, bytes, false);
}

/* Push as A, which lends @bytes and sends no CRC. */
static enum sw_push_verdict lend_bits(struct fixture *x, struct sw_header h,
	uint64_t bits, uint8_t bytes[PAYLOAD])
{
	x->sh.no_crc = 1ULL << A;
	fill(bytes, &h, bits);
	return shard_push(&x->sh, A, &h, bytes, true);
}

/* Take @member's next result; return the bits that all its elements have. */
static uint64_t take_bits(struct fixture *x, uint32_t member)
{
	const uint8_t *bytes =
		take_bytes(x, member, sw_bitmap_first(&x->sh.ready[member]));
	uint32_t each = sw_dtype_bytes(x->h.dtype);
	uint64_t bits = 0;

	memcpy(&bits, bytes, each);
	for (uint32_t at = 0; at < x->h.payload_len; at += each)
		assert_memory_equal(bytes + at, &bits, each);
	return bits;
}

/* --- results --- */

static const struct {
	enum sw_reduce_op op;
	enum sw_dtype dtype;
	uint64_t given[MEMBERS], want;
} cases[] = {
	{SW_AVG, SW_F32, {0x3f800000, 0x40000000, 0x40c00000}, 0x40400000},
	/* (1 + 0 + 0) / 3: divided and rounded once */
	{SW_AVG, SW_F32, {0x3f800000, 0, 0}, 0x3eaaaaab},
	{SW_AVG, SW_F64, {0x3ff0000000000000, 0, 0}, 0x3fd5555555555555},
	{SW_AVG, SW_F16, {0x3c00, 0, 0}, 0x3555},
	{SW_AVG, SW_BF16, {0x3f80, 0x4000, 0x40c0}, 0x4040},
	/* the sum exceeds f16, but its average does not */
	{SW_AVG, SW_F16, {0x7bff, 0x7bff, 0x7bff}, 0x7bff},
	{SW_AVG, SW_I32, {-7u, 3, 0}, -1u},
	{SW_AVG, SW_I8, {0xf9, 0, 0}, 0xfe}, /* -7 / 3, rounded towards zero */
	/* 44 / 3, because the sum has wrapped */
	{SW_AVG, SW_U8, {200, 100, 0}, 14},
	{SW_AVG, SW_I64, {1ULL << 62, 1, 1}, ((1ULL << 62) + 2) / 3},
	{SW_MIN, SW_F32, {0x3f800000, 0xc0000000, 0}, 0xc0000000},
	{SW_MIN, SW_F32, {0x3f800000, 0x7fc12345, 0}, 0x7fc00000},
	{SW_MIN, SW_F16, {0x3c00, 0x8000, 0}, 0x8000},
	{SW_MIN, SW_I8, {5, 0xfb, 7}, 0xfb},
	{SW_MIN, SW_U8, {5, 0xfb, 7}, 5},
	{SW_MAX, SW_BF16, {0x3f80, 0xc000, 0x7f80}, 0x7f80},
	{SW_MAX, SW_F64, {0x3ff0000000000000, 0x7ff8000000000000, 0},
		0x7ff8000000000000},
	{SW_MAX, SW_I64, {-5ULL, -3ULL, -4ULL}, -3ULL},
	{SW_MAX, SW_BOOL, {0, 1, 0}, 1},
	{SW_PROD, SW_F32, {0x40000000, 0xc0400000, 0x3f000000}, 0xc0400000},
	{SW_PROD, SW_BF16, {0x4040, 0x4040, 0x4040}, 0x41d8},
	{SW_PROD, SW_U8, {16, 16, 3}, 0},
	{SW_PROD, SW_I32, {-3u, 5, 7}, -105u},
	{SW_PROD, SW_BOOL, {1, 1, 0}, 0},
	{SW_BAND, SW_I32, {0xff00ff, 0xfff, ~0u}, 0xff},
	{SW_BOR, SW_U8, {1, 2, 0x80}, 0x83},
	{SW_BXOR, SW_I64, {1ULL << 40 | 3, 5, 1ULL << 40}, 6},
	{SW_BXOR, SW_BOOL, {1, 1, 1}, 1},
	{SW_SUM, SW_BOOL, {0, 1, 1}, 1},
};

/* Push one chunk after another, in slots that held others before. */
static void fold__every_operation(void **state)
{
	struct fixture *x = open_stream();

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sw_header h =
			header_of(cases[i].op, cases[i].dtype, i + 1);

		for (uint32_t m = A; m <= C; m++)
			push_bits(x, m, h, cases[i].given[m]);
		for (uint32_t m = A; m <= C; m++) {
			uint64_t bits = take_bits(x, m);

			if (bits != cases[i].want)
				fail_msg("%s %s (row %u): %llx",
					sw_reduce_op_name(cases[i].op),
					sw_dtype_name(cases[i].dtype), i,
					(unsigned long long)bits);
			assert_int_equal(x->h.op, h.op);
			fate(x, m, false);
		}
	}
	close_shard(x);
}

/* A's lent bytes are read in place when the second contribution arrives, or
 * when they are kept. Later writes by A have no effect. */
static void lend(struct fixture *x, const struct sw_header *h,
	const uint64_t given[MEMBERS], bool is_kept)
{
	uint8_t bytes[PAYLOAD];

	assert_int_equal(lend_bits(x, *h, 0x55, bytes), SW_PUSH_FOLD);
	assert_int_equal(x->sh.n_lent, 1);
	fill(bytes, h, given[A]);
	if (is_kept)
		assert_true(sw_shard_keep_stream(&x->sh, 0));
	else
		push_bits(x, C, *h, given[C]);
	assert_int_equal(x->sh.n_lent, 0);
	fill(bytes, h, 0x77);
	if (is_kept)
		push_bits(x, C, *h, given[C]);
	assert_int_equal(push_bits(x, B, *h, given[B]), SW_PUSH_COMPLETE);
}

static void lend__every_operation(void **state)
{
	struct fixture *x = open_stream();
	uint32_t n = sizeof(cases) / sizeof(cases[0]);

	for (uint32_t i = 0; i < 2 * n; i++) {
		struct sw_header h =
			header_of(cases[i / 2].op, cases[i / 2].dtype, i + 1);

		lend(x, &h, cases[i / 2].given, i & 1);
		for (uint32_t m = A; m <= C; m++) {
			if (take_bits(x, m) != cases[i / 2].want)
				fail_msg("%s %s (row %u)",
					sw_reduce_op_name(cases[i / 2].op),
					sw_dtype_name(cases[i / 2].dtype),
					i / 2);
			fate(x, m, false);
		}
	}
	close_shard(x);
}

/* A lender that does not wait for the result may write its buffer once it is
 * folded. */
static void lend__by_who_does_not_wait(void **state)
{
	static const enum sw_coll_kind kinds[] = {
		SW_REDUCE, SW_REDUCE_SCATTER, SW_BCAST, SW_ALL_GATHER};
	struct fixture *x = open_stream();
	uint8_t bytes[PAYLOAD];

	for (uint32_t i = 0; i < 4; i++) {
		struct sw_header h = header_of(SW_SUM, SW_I32, i + 1);
		bool is_sum = sw_coll_is_sum(kinds[i]);

		h.op = sw_coll_op(kinds[i], SW_SUM);
		h.aux = is_sum ? B : A;
		lend_bits(x, h, 1, bytes);
		fill(bytes, &h, 77);
		h.payload_len = is_sum ? h.payload_len : 0;
		h.weight = is_sum;
		h.type = is_sum ? SW_PUSH : SW_WANT;
		push_bits(x, B, h, 20);
		push_bits(x, C, h, 300);
		assert_int_equal(take_bits(x, B), is_sum ? 321 : 1);
		assert_int_equal(x->sh.n_lent, 0);
	}
	close_shard(x);
}

/* In a group of one, in order of arrival or of ranks, nothing stays lent. */
static void lend__alone(void **state)
{
	struct sw_header h = header_of(SW_SUM, SW_BF16, 1);
	uint8_t bytes[PAYLOAD];

	for (uint32_t is_by_rank = 0; is_by_rank < 2; is_by_rank++) {
		struct fixture *x = open_shard(MEMBERS, 0, 1);

		x->params.is_by_rank = is_by_rank;
		admit_item(x, &(struct sw_declare_item){.dtype = LOG2,
				      .n_elems = 1 << A,
				      .mode = SW_MODE_STREAM});
		assert_int_equal(
			lend_bits(x, h, 0x3f80, bytes), SW_PUSH_COMPLETE);
		assert_int_equal(x->sh.n_lent, 0);
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(take_bits(x, A), 0x3f80);
		close_shard(x);
	}
}

/* Lent memory of a dead stream is not read. */
static void lend__to_the_dead(void **state)
{
	struct fixture *x = open_stream();
	struct sw_stensor *t = sw_shard_tensor(&x->sh, 0);
	struct sw_header h = header_of(SW_SUM, SW_I32, 1);
	uint8_t bytes[PAYLOAD];
	uint64_t n;

	assert_int_equal(lend_bits(x, h, 9, bytes), SW_PUSH_FOLD);
	assert_true(sw_sgroup_close(&x->sh, t->group, ALL, 0, &n));
	assert_int_equal(x->sh.n_lent, 0);
	assert_true(sw_shard_copy_lent(&x->sh));
	assert_int_equal(push_bits(x, B, h, 1), SW_PUSH_OLD);
	close_shard(x);
}

/* A has three ranks, so the average is over five values. */
static void avg__of_ranks(void **state)
{
	struct fixture *x = open_stream();
	struct sw_header h = header_of(SW_AVG, SW_I32, 1);

	x->sh.weights[A] = 3;
	push_bits(x, B, h, 10);
	push_bits(x, C, h, 10);
	h.weight = 3;
	push_bits(x, A, h, 30);
	assert_int_equal(take_bits(x, A), 10);
	assert_int_equal(x->h.weight, 5);
	close_shard(x);
}

/* --- in order of members --- */

static struct fixture *open_by_rank(uint64_t members)
{
	struct fixture *x = open_shard(MEMBERS, 0, 1);
	uint64_t plain;
	struct sw_declare_item item = {
		.dtype = LOG2, .n_elems = members, .mode = SW_MODE_STREAM};

	plain = sw_shard_need(&x->sh, &item);
	x->params.is_by_rank = true;
	assert_int_equal(sw_shard_need(&x->sh, &item) - plain,
		(uint64_t)__builtin_popcountll(members) * (PAYLOAD + 192)
			<< LOG2);
	admit_item(x, &item);
	return x;
}

/* All orders in which three members can push. */
static const uint32_t orders[][MEMBERS] = {
	{A, B, C}, {A, C, B}, {B, A, C}, {B, C, A}, {C, A, B}, {C, B, A}};

enum { N_ORDERS = sizeof(orders) / sizeof(orders[0]) };

/* With order = rank the result always has the bits of (a + b) + c. */
static void order__does_not_show(void **state)
{
	static const struct {
		enum sw_reduce_op op;
		enum sw_dtype dtype;
		uint64_t given[MEMBERS], want;
	} sums[] = {
		/* 1e8 + 1 - 1e8 */
		{SW_SUM, SW_F32, {0x4cbebc20, 0x3f800000, 0xccbebc20}, 0},
		{SW_AVG, SW_F32, {0x4cbebc20, 0xccbebc20, 0x40400000},
			0x3f800000},
		/* the largest value twice gives infinity, which stays */
		{SW_PROD, SW_F32, {0x7f7fffff, 0x7f7fffff, 0x00800000},
			0x7f800000},
		{SW_SUM, SW_F64,
			{0x4340000000000000, 0x3ff0000000000000,
				0xc340000000000000},
			0},
		/* 2^24 + 1 - 2^24, as bf16 */
		{SW_SUM, SW_BF16, {0x4b80, 0x3f80, 0xcb80}, 0},
		{SW_MIN, SW_I32, {3, -4u, 5}, -4u},
		{SW_SUM, SW_BOOL, {0, 1, 0}, 1},
	};
	struct fixture *x = open_by_rank(ALL);
	uint32_t j = 0;

	for (uint32_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		for (uint32_t o = 0; o < N_ORDERS; o++) {
			struct sw_header h =
				header_of(sums[i].op, sums[i].dtype, ++j);

			for (uint32_t k = 0; k < MEMBERS; k++)
				push_bits(x, orders[o][k], h,
					sums[i].given[orders[o][k]]);
			for (uint32_t m = A; m <= C; m++) {
				assert_int_equal(take_bits(x, m), sums[i].want);
				fate(x, m, false);
			}
		}
	close_shard(x);
}

/* Without that option the order of arrival affects the result. */
static void order__shows_otherwise(void **state)
{
	static const uint64_t given[] = {0x4cbebc20, 0x3f800000, 0xccbebc20};
	struct fixture *x = open_stream();
	uint64_t bits[N_ORDERS];

	for (uint32_t o = 0; o < N_ORDERS; o++) {
		struct sw_header h = header_of(SW_SUM, SW_F32, o + 1);

		for (uint32_t k = 0; k < MEMBERS; k++)
			push_bits(x, orders[o][k], h, given[orders[o][k]]);
		bits[o] = take_bits(x, A);
	}
	assert_int_equal(bits[0], 0);          /* A, B, C */
	assert_int_equal(bits[1], 0x3f800000); /* A, C, B */
	close_shard(x);
}

/* Members are numbered within the group, and copies need no order. */
static void order__of_some_members(void **state)
{
	struct fixture *x = open_by_rank(1 << A | 1 << C);
	struct sw_header h = header_of(SW_SUM, SW_I32, 1);

	push_bits(x, C, h, 40);
	push_bits(x, A, h, 2);
	assert_int_equal(take_bits(x, A), 42);
	assert_int_equal(take_bits(x, C), 42);
	h.round = h.chunk = 2;
	h.op = sw_coll_op(SW_BCAST, SW_SUM);
	h.aux = C;
	push_bits(x, C, h, 7);
	h.payload_len = 0;
	h.weight = 0;
	h.type = SW_WANT;
	push_bits(x, A, h, 0);
	assert_int_equal(take_bits(x, A), 7);
	close_shard(x);
}

/* --- refused pushes --- */

static void dropped(
	struct fixture *x, struct sw_header h, const uint64_t *counter)
{
	uint64_t before = *counter;

	assert_int_equal(push_bits(x, A, h, 1), SW_PUSH_DROP);
	assert_int_equal(*counter, before + 1);
	assert_int_equal(x->sh.n_open, 0);
}

static void push__operation_that_is_none(void **state)
{
	struct fixture *x = open_stream();
	const uint64_t *n = &x->stats.rx_dtype;
	struct sw_header h;

	for (uint32_t op = SW_PREMUL_SUM; op < 16; op++)
		dropped(x, header_of(op, SW_I32, 1), n);
	for (uint32_t op = SW_BAND; op <= SW_BXOR; op++) {
		dropped(x, header_of(op, SW_F32, 1), n);
		dropped(x, header_of(op, SW_F64, 1), n);
		dropped(x, header_of(op, SW_F16, 1), n);
		dropped(x, header_of(op, SW_BF16, 1), n);
	}
	dropped(x, header_of(SW_AVG, SW_BOOL, 1), n);
	for (uint32_t op = SW_AVG; op < 16; op++) {
		h = header_of(op, SW_I32, 1);
		h.op = (uint8_t)(SW_BCAST << 4 | op);
		dropped(x, h, n);
		h.op = (uint8_t)(SW_ALL_GATHER << 4 | op);
		dropped(x, h, n);
	}
	close_shard(x);
}

/* An average of no members would divide by 0. */
static void push__bytes_of_nobody(void **state)
{
	struct fixture *x = open_stream();
	struct sw_header h = header_of(SW_AVG, SW_I32, 1);

	h.weight = 0;
	dropped(x, h, &x->stats.rx_weight);
	h.op = sw_coll_op(SW_BCAST, SW_SUM);
	h.aux = B;
	h.payload_len = 0;
	h.type = SW_WANT;
	h.weight = 1; /* no bytes come from no member */
	dropped(x, h, &x->stats.rx_weight);
	close_shard(x);
}

static void push__another_operation(void **state)
{
	struct fixture *x = open_stream();
	struct sw_header h = header_of(SW_MIN, SW_I32, 1);

	push_bits(x, A, h, 1);
	h.op = sw_coll_op(SW_ALL_REDUCE, SW_MAX);
	assert_int_equal(push_bits(x, B, h, 1), SW_PUSH_DIFFERS);
	close_shard(x);
}

/* --- names and codes --- */

static void op__travels_as_a_sum(void **state)
{
	assert_int_equal(sw_coll_op(SW_REDUCE, SW_PREMUL_SUM),
		sw_coll_op(SW_REDUCE, SW_SUM));
	assert_int_equal(
		sw_coll_op_of(sw_coll_op(SW_REDUCE, SW_BXOR)), SW_BXOR);
}

static void name__all_have_one(void **state)
{
	for (uint32_t i = 0; i < SW_N_COLL_KINDS; i++)
		assert_true(strlen(sw_coll_name(i)) > 1);
	for (uint32_t i = 0; i < SW_N_REDUCE_OPS; i++)
		assert_true(strlen(sw_reduce_op_name(i)) > 1);
	assert_string_equal(sw_coll_name(SW_N_COLL_KINDS), "?");
	assert_string_equal(sw_reduce_op_name(UINT32_MAX), "?");
	assert_string_equal(sw_reduce_op_name(SW_PREMUL_SUM), "premul_sum");
	assert_string_equal(sw_coll_name(SW_REDUCE), "reduce");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fold__every_operation),
		cmocka_unit_test(lend__every_operation),
		cmocka_unit_test(lend__by_who_does_not_wait),
		cmocka_unit_test(lend__alone),
		cmocka_unit_test(lend__to_the_dead),
		cmocka_unit_test(avg__of_ranks),
		cmocka_unit_test(order__does_not_show),
		cmocka_unit_test(order__shows_otherwise),
		cmocka_unit_test(order__of_some_members),
		cmocka_unit_test(push__operation_that_is_none),
		cmocka_unit_test(push__bytes_of_nobody),
		cmocka_unit_test(push__another_operation),
		cmocka_unit_test(op__travels_as_a_sum),
		cmocka_unit_test(name__all_have_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
