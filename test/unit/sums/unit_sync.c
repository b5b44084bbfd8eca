/* unit_sync.c - the bytes of contributions: copied, added, lent, kept.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/shard_rig.h"

enum { A, B, C };

static void fill(int32_t elems[FULL], int32_t value)
{
	for (uint32_t i = 0; i < FULL; i++)
		elems[i] = value;
}

/* Push @elems as @member, which lends them and sends no CRC. */
static enum sw_push_verdict lend_of(struct fixture *x, uint32_t member,
	uint32_t key, uint32_t round, const int32_t elems[FULL])
{
	struct sw_header h = header(key, round, 0, FULL);

	h.flags = SW_FLAG_NO_CRC;
	return shard_push(&x->sh, member, &h, (const uint8_t *)elems, true);
}

static enum sw_push_verdict lend(struct fixture *x, uint32_t member,
	uint32_t round, const int32_t elems[FULL])
{
	return lend_of(x, member, 0, round, elems);
}

static struct fixture *open_inner(uint32_t n_members, uint32_t dtype)
{
	struct fixture *x = open_shard(n_members, 0, 1);

	admit(x, 0, dtype, PAYLOAD / sw_dtype_bytes(dtype), 0);
	x->sh.no_crc = 1ULL << A;
	return x;
}

/* The lender's bytes are read when the second contribution arrives. */
static void sum__first_is_lent(void **state)
{
	struct fixture *x = open_inner(3, SW_I32);
	int32_t elems[FULL];

	fill(elems, 9);
	assert_int_equal(lend(x, A, 1, elems), SW_PUSH_FOLD);
	assert_int_equal(lend(x, A, 1, elems), SW_PUSH_HAVE); /* a duplicate */
	assert_int_equal(x->sh.n_lent, 1);
	assert_int_equal(x->sh.n_open, 1);
	assert_int_equal(query(x, A, 1), 'W');
	fill(elems, 1);
	assert_int_equal(push(x, C, 1, 0, 20), SW_PUSH_FOLD);
	assert_int_equal(x->sh.n_lent, 0);
	fill(elems, 99); /* no effect: they are in the cell now */
	assert_int_equal(push(x, B, 1, 0, 300), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, A), 321);
	assert_int_equal(take(x, B), 321);
	assert_int_equal(take(x, C), 321);
	close_shard(x);
}

static void sum__second_is_lent(void **state)
{
	struct fixture *x = open_inner(2, SW_I32);
	int32_t elems[FULL];

	fill(elems, 1);
	for (uint32_t round = 1; round < 5; round++) {
		assert_int_equal(push(x, B, round, 0, 20), SW_PUSH_FOLD);
		assert_int_equal(lend(x, A, round, elems), SW_PUSH_COMPLETE);
		assert_int_equal(x->sh.n_lent, 0);
		assert_int_equal(take(x, A), 21);
		assert_int_equal(take(x, B), 21);
	}
	close_shard(x);
}

static void sum__lent_alone(void **state)
{
	struct fixture *x = open_inner(1, SW_I32);
	int32_t elems[FULL];
	uint32_t order;

	fill(elems, 7);
	for (uint32_t round = 1; round < 4; round++) {
		assert_int_equal(lend(x, A, round, elems), SW_PUSH_COMPLETE);
		assert_int_equal(x->sh.n_lent, 0);
		order = sw_bitmap_first(&x->sh.ready[A]);
		assert_memory_equal(
			take_bytes(x, A, order), elems, sizeof(elems));
	}
	close_shard(x);
}

/* Lent bf16 is widened from its place, and the sum is rounded once. */
static void sum__lent_bf16(void **state)
{
	static const uint16_t one = 0x3f80, two = 0x4000, three = 0x4040;
	struct fixture *x = open_inner(2, SW_BF16);
	uint16_t ones[2 * FULL], twos[2 * FULL];
	struct sw_header h = header(0, 1, 0, FULL);
	const uint16_t *got;

	for (uint32_t i = 0; i < 2 * FULL; i++) {
		ones[i] = one;
		twos[i] = two;
	}
	h.dtype = SW_BF16;
	assert_int_equal(shard_push(&x->sh, A, &h, (const uint8_t *)ones, true),
		SW_PUSH_FOLD);
	h.payload_crc = sw_data_crc(0, &h, twos, sizeof(twos));
	assert_int_equal(
		shard_push(&x->sh, B, &h, (const uint8_t *)twos, false),
		SW_PUSH_COMPLETE);
	got = take_bytes(x, B, sw_bitmap_first(&x->sh.ready[B]));
	for (uint32_t i = 0; i < 2 * FULL; i++)
		assert_int_equal(got[i], three);
	close_shard(x);
}

/* Lent bytes of several tensors and both rounds are copied, and nothing else is
 * touched. The lender may write afterwards. */
static void keep__copies_what_is_lent(void **state)
{
	struct fixture *x = open_inner(2, SW_I32);
	int32_t elems[FULL];

	fill(elems, 1);
	for (uint32_t round = 1; round < 4; round++) {
		assert_int_equal(lend(x, A, round, elems), SW_PUSH_FOLD);
		assert_true(sw_shard_copy_lent(&x->sh));
		assert_int_equal(x->sh.n_lent, 0);
		fill(elems, 77);
		assert_true(sw_shard_copy_lent(&x->sh)); /* nothing is lent */
		assert_int_equal(push(x, B, round, 0, 20), SW_PUSH_COMPLETE);
		assert_int_equal(take(x, A), 21);
		assert_int_equal(take(x, B), 21);
		fill(elems, 1);
	}
	close_shard(x);
}

/* Asynchronous tensors never borrow. The search for lent bytes skips them, at
 * any place among the keys. */
static void keep__beside_asynchronous_tensors(void **state)
{
	struct fixture *x = open_shard(2, 0, 1);
	int32_t elems[FULL];

	admit_async(x, 0, SW_I32, 3 * FULL);
	admit(x, 1, SW_I32, FULL, 0);
	admit_async(x, 2, SW_I32, FULL);
	x->sh.no_crc = 1ULL << A;
	fill(elems, 1);
	assert_int_equal(lend_of(x, A, 1, 1, elems), SW_PUSH_FOLD);
	assert_true(sw_shard_copy_lent(&x->sh));
	assert_int_equal(x->sh.n_lent, 0);
	fill(elems, 77);
	assert_int_equal(push_n(x, B, 1, 1, 0, FULL, 20), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, A), 21);
	close_shard(x);
}

/* A member has a CRC if its path can damage data, and none otherwise. */
static void crc__by_member(void **state)
{
	struct fixture *x = open_inner(2, SW_I32);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL];

	fill(elems, 1);
	h.payload_crc = 1; /* a wrong CRC */
	assert_int_equal(
		shard_push(&x->sh, B, &h, (const uint8_t *)elems, false),
		SW_PUSH_CRC);
	assert_int_equal(
		shard_push(&x->sh, A, &h, (const uint8_t *)elems, false),
		SW_PUSH_FOLD);
	x->sh.no_crc = 0;
	assert_true(sw_shard_has_crc(&x->sh, A));
	x->params.has_crc = false;
	assert_false(sw_shard_has_crc(&x->sh, A));
	assert_false(sw_shard_has_crc(&x->sh, B));
	close_shard(x);
}

/* The root's bytes came without a CRC; other members get them with one. */
static void copy__crc_is_made(void **state)
{
	struct fixture *x = open_inner(2, SW_I32);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL];

	fill(elems, 5);
	h.op = SW_ROUND_COPY;
	assert_int_equal(
		shard_push(&x->sh, A, &h, (const uint8_t *)elems, true),
		SW_PUSH_FOLD);
	fill(elems, 6); /* a broadcast is copied at once */
	h.payload_len = h.weight = 0;
	h.payload_crc = sw_data_crc(0, &h, NULL, 0);
	assert_int_equal(
		shard_push(&x->sh, B, &h, NULL, false), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, B), 5); /* also checks the CRC */
	close_shard(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sum__first_is_lent),
		cmocka_unit_test(sum__second_is_lent),
		cmocka_unit_test(sum__lent_alone),
		cmocka_unit_test(sum__lent_bf16),
		cmocka_unit_test(keep__copies_what_is_lent),
		cmocka_unit_test(keep__beside_asynchronous_tensors),
		cmocka_unit_test(crc__by_member),
		cmocka_unit_test(copy__crc_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
