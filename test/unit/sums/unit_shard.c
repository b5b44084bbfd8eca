/* unit_shard.c - the sums of one job on one lcore: memory and pushes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/shard_rig.h"

#include <stdlib.h>

/* --- memory --- */

static uint64_t need(struct fixture *x, uint32_t dtype, uint64_t n_elems)
{
	struct sw_declare_item item = {
		.dtype = (uint8_t)dtype, .n_elems = n_elems};

	return sw_shard_need(&x->sh, &item);
}

/* The memory is 2 x the declared bytes (3 x for 16-bit types), 64 bytes per
 * chunk, and marks. */
static void need__by_dtype(void **state)
{
	struct fixture *x = open_shard(2, 0, 1);
	uint64_t marks = 2 * 8;

	assert_int_equal(need(x, SW_F32, FULL), 2 * PAYLOAD + 64 + marks);
	assert_int_equal(need(x, SW_F64, FULL / 2), 2 * PAYLOAD + 64 + marks);
	assert_int_equal(need(x, SW_U8, PAYLOAD), 2 * PAYLOAD + 64 + marks);
	assert_int_equal(need(x, SW_F16, 2 * FULL), 3 * PAYLOAD + 64 + marks);
	assert_int_equal(need(x, SW_BF16, 2 * FULL), 3 * PAYLOAD + 64 + marks);
	assert_int_equal(need(x, SW_F32, 1), 2 * 64 + 64 + marks);
	assert_int_equal(need(x, SW_F32, FULL + 1), 4 * PAYLOAD + 128 + marks);
	close_shard(x);
}

static void admit__counts_what_it_takes(void **state)
{
	static const uint8_t dtypes[] = {SW_F32, SW_F64, SW_F16, SW_U8, SW_I32,
		SW_I8, SW_I64, SW_BOOL, SW_BF16};
	struct fixture *x = open_shard(3, 1, 2);
	uint64_t tables = x->env.live_bytes;

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(dtypes); i++)
		for (uint32_t n = 0; n < 4; n++)
			admit(x, 4 * i + n, dtypes[i], 1 + n * 50000, 9 - n);
	assert_true(x->env.live_bytes - tables <= x->sh.mem_bytes);
	close_shard(x);
}

/* A server may own no chunk of a small tensor. */
static void admit__nothing_here(void **state)
{
	struct fixture *x = open_shard(2, 1, 2);
	uint64_t tables = x->env.live_bytes;

	admit(x, 0, SW_I32, FULL, 0);
	assert_int_equal(x->env.live_bytes, tables);
	assert_int_equal(push(x, 0, 1, 0, 5), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_chunk, 1);
	close_shard(x);
}

static void named__sparse_keys(void **state)
{
	struct fixture *x = open_shard(1, 0, 1);

	assert_null(sw_shard_named(&x->sh, "t0"));
	admit(x, SW_MAX_TENSORS - 1, SW_I32, 1, 0);
	admit(x, 17, SW_I32, 1, 0);
	assert_int_equal(sw_shard_named(&x->sh, "t17")->key, 17);
	assert_int_equal(sw_shard_named(&x->sh, "t4095")->key, 4095);
	assert_null(sw_shard_named(&x->sh, "t1"));
	assert_null(sw_shard_named(&x->sh, "t170"));
	assert_null(sw_shard_named(&x->sh, ""));
	close_shard(x);
}

/* Two names with the same FNV-1a hash are distinguished. */
static void named__same_hash(void **state)
{
	struct fixture *x = open_shard(1, 0, 1);
	struct sw_declare_item item = {.dtype = SW_I32, .n_elems = 1};

	sw_shard_admit(&x->sh, &item, "costarring", 0, true);
	assert_null(sw_shard_named(&x->sh, "liquid"));
	item.key = 1;
	sw_shard_admit(&x->sh, &item, "liquid", 0, true);
	assert_int_equal(sw_shard_named(&x->sh, "costarring")->key, 0);
	assert_int_equal(sw_shard_named(&x->sh, "liquid")->key, 1);
	close_shard(x);
}

/* --- push --- */

static void push__in_order(void **state)
{
	struct fixture *x = open_one(FULL);

	for (uint32_t r = 1; r < 8; r++) {
		assert_int_equal(push(x, 0, r, 0, 10), SW_PUSH_FOLD);
		assert_int_equal(x->sh.n_open, 1);
		assert_int_equal(take(x, 0), -1);
		assert_int_equal(
			push(x, 1, r, 0, (int32_t)r), SW_PUSH_COMPLETE);
		assert_int_equal(x->sh.n_open, 0);
		assert_int_equal(take(x, 0), 10 + (int32_t)r);
		assert_int_equal(x->h.round, r);
		assert_int_equal(x->h.weight, 2);
		assert_int_equal(take(x, 1), 10 + (int32_t)r);
		assert_int_equal(take(x, 1), -1);
	}
	assert_int_equal(x->stats.chunks_done, 7);
	close_shard(x);
}

static void push__last_chunk_is_short(void **state)
{
	struct fixture *x = open_one(FULL + 5);

	assert_int_equal(push_n(x, 0, 0, 1, 1, FULL, 1), SW_PUSH_DROP);
	assert_int_equal(push_n(x, 0, 0, 1, 0, 5, 1), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_length, 2);
	assert_int_equal(push_n(x, 0, 0, 1, 1, 5, 1), SW_PUSH_FOLD);
	assert_int_equal(push_n(x, 1, 0, 1, 1, 5, 2), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, 0), 3);
	assert_int_equal(x->h.payload_len, 20);
	close_shard(x);
}

static void push__duplicate(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 10);
	assert_int_equal(push(x, 0, 1, 0, 10), SW_PUSH_HAVE);
	assert_int_equal(x->stats.push_again, 1);
	push(x, 1, 1, 0, 1);
	assert_int_equal(take(x, 0), 11); /* only once */
	assert_int_equal(x->stats.push_folded, 2);
	close_shard(x);
}

/* A duplicate of a finished round asks for the result, which is sent unless it
 * is in flight (A5). */
static void push__duplicate_of_done_acts_as_query(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 10);
	push(x, 1, 1, 0, 1);
	assert_int_equal(take(x, 0), 11);
	assert_int_equal(push(x, 0, 1, 0, 10), SW_PUSH_DONE);
	assert_int_equal(take(x, 0), -1); /* in flight */
	fate(x, 0, false);
	assert_int_equal(push(x, 0, 1, 0, 10), SW_PUSH_DONE);
	assert_int_equal(take(x, 0), 11);
	close_shard(x);
}

static void push__past(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 10);
	push(x, 1, 1, 0, 1);
	push(x, 0, 2, 0, 20);
	/* It pushed round 2, so it held round 1: there is nothing to send. */
	assert_int_equal(push(x, 0, 1, 0, 10), SW_PUSH_DONE);
	assert_int_equal(take(x, 0), -1);
	push(x, 1, 2, 0, 2);
	push(x, 0, 3, 0, 30);
	assert_int_equal(push(x, 1, 1, 0, 1), SW_PUSH_OLD);
	assert_int_equal(take(x, 1), 22);
	close_shard(x);
}

static void push__future(void **state)
{
	struct fixture *x = open_one(FULL);

	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_VIOLATION);
	push(x, 0, 1, 0, 1);
	assert_int_equal(push(x, 0, 2, 0, 1), SW_PUSH_VIOLATION);
	assert_int_equal(push(x, 0, 3, 0, 1), SW_PUSH_VIOLATION);
	assert_int_equal(x->stats.rx_round, 3);
	assert_int_equal(x->sh.n_open, 1);
	close_shard(x);
}

/* For rounds before the first nothing is marked, because there is nothing to
 * send. */
static void push__round_before_the_first(void **state)
{
	struct fixture *x = open_one(FULL);

	assert_int_equal(push(x, 0, 0, 0, 1), SW_PUSH_OLD);
	assert_int_equal(push(x, 0, UINT32_MAX, 0, 1), SW_PUSH_OLD);
	assert_int_equal(query(x, 0, 0), 'G');
	assert_int_equal(query(x, 0, UINT32_MAX), 'G');
	assert_int_equal(class_for(x, 0), SW_N_CLASSES);
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

static void push__unknown_key(void **state)
{
	struct fixture *x = open_one(FULL);

	assert_int_equal(push_n(x, 0, 1, 1, 0, FULL, 1), SW_PUSH_DROP);
	assert_int_equal(
		push_n(x, 0, SW_MAX_TENSORS, 1, 0, FULL, 1), SW_PUSH_DROP);
	assert_int_equal(
		push_n(x, 0, SW_KEY_NONE, 1, 0, FULL, 1), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_key, 3);
	close_shard(x);
}

static void push__unknown_chunk(void **state)
{
	struct fixture *x = open_one(3 * FULL);

	assert_int_equal(push(x, 0, 1, 3, 1), SW_PUSH_DROP);
	assert_int_equal(push(x, 0, 1, UINT32_MAX, 1), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_chunk, 2);
	close_shard(x);
}

static void push__wrong_dtype_or_op(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	uint8_t payload[PAYLOAD] = {0};

	h.dtype = SW_F32;
	assert_int_equal(
		shard_push(&x->sh, 0, &h, payload, false), SW_PUSH_DROP);
	h.dtype = 255;
	assert_int_equal(
		shard_push(&x->sh, 0, &h, payload, false), SW_PUSH_DROP);
	h.dtype = SW_I32;
	h.op = SW_N_ROUND_KINDS;
	assert_int_equal(
		shard_push(&x->sh, 0, &h, payload, false), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_dtype, 3);
	assert_int_equal(x->sh.n_open, 0);
	close_shard(x);
}

/* The weight must be the one that the member declared in its JOIN. */
static void push__wrong_weight(void **state)
{
	static const uint16_t wrong[] = {0, 2, 4, UINT16_MAX};
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t payload[FULL] = {0};

	x->sh.weights[0] = 3;
	h.payload_crc = sw_data_crc(0, &h, payload, sizeof(payload));
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(wrong); i++) {
		h.weight = wrong[i];
		assert_int_equal(
			shard_push(&x->sh, 0, &h, (uint8_t *)payload, false),
			SW_PUSH_DROP);
		assert_int_equal(x->stats.rx_weight, i + 1);
	}
	assert_int_equal(x->sh.n_open, 0);
	h.weight = 3;
	assert_int_equal(shard_push(&x->sh, 0, &h, (uint8_t *)payload, false),
		SW_PUSH_FOLD);
	assert_int_equal(push(x, 1, 1, 0, 1), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, 0), 1);
	assert_int_equal(x->h.weight, 4);
	close_shard(x);
}

/* A payload that is damaged, or intact for another chunk, is not folded and
 * changes nothing (I4). */
static void push__corrupted_payload(void **state)
{
	struct fixture *x = open_one(2 * FULL);
	struct sw_header h = header(0, 1, 0, FULL), elsewhere;
	uint8_t payload[PAYLOAD] = {0};

	h.payload_crc = sw_data_crc(0, &h, payload, PAYLOAD);
	payload[700] ^= 4;
	assert_int_equal(
		shard_push(&x->sh, 0, &h, payload, false), SW_PUSH_CRC);
	payload[700] ^= 4;
	elsewhere = h;
	elsewhere.chunk = 1;
	assert_int_equal(
		shard_push(&x->sh, 0, &elsewhere, payload, false), SW_PUSH_CRC);
	assert_int_equal(x->stats.rx_payload_crc, 2);
	assert_int_equal(x->sh.n_open, 0);
	assert_int_equal(query(x, 0, 1), 'N');
	assert_int_equal(
		shard_push(&x->sh, 0, &h, payload, false), SW_PUSH_FOLD);
	close_shard(x);
}

/* A duplicate is detected before its payload is checked, because an in-place
 * buffer has changed since (A6). */
static void push__duplicate_with_other_bytes(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	uint8_t payload[PAYLOAD];

	push(x, 0, 1, 0, 10);
	memset(payload, 0x77, sizeof(payload));
	assert_int_equal(
		shard_push(&x->sh, 0, &h, payload, false), SW_PUSH_HAVE);
	push(x, 1, 1, 0, 1);
	assert_int_equal(take(x, 0), 11);
	close_shard(x);
}

static void push__without_crc(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL] = {0};

	x->params.has_crc = false;
	h.payload_crc = 1234;
	assert_int_equal(shard_push(&x->sh, 0, &h, (uint8_t *)elems, false),
		SW_PUSH_FOLD);
	close_shard(x);
}

static void push__another_step(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL] = {0};

	h.payload_crc = sw_data_crc(0, &h, elems, PAYLOAD);
	h.step = 6;
	assert_int_equal(shard_push(&x->sh, 0, &h, (uint8_t *)elems, false),
		SW_PUSH_FOLD);
	h.step = 7;
	assert_int_equal(shard_push(&x->sh, 1, &h, (uint8_t *)elems, false),
		SW_PUSH_DIFFERS);
	assert_int_equal(query(x, 1, 1), 'N');
	h.step = 6;
	assert_int_equal(shard_push(&x->sh, 1, &h, (uint8_t *)elems, false),
		SW_PUSH_COMPLETE);
	close_shard(x);
}

/* Every fourth round is a sample. A tensor waits from its first contribution
 * on. */
static void late__who_was_last(void **state)
{
	struct fixture *x = open_one(2 * FULL);
	struct sw_shard_look at = {0};
	struct sw_shard_wait wait;
	uint32_t budget = 100;

	for (uint32_t round = 1; round <= 8; round++)
		for (uint32_t chunk = 0; chunk < 2; chunk++) {
			x->now_ns = 1000 * round;
			push(x, round == 8, round, chunk, 1);
			x->now_ns += 300;
			push(x, round != 8, round, chunk, 1);
		}
	/* both chunks of rounds 4 and 8, because none was open before them */
	assert_int_equal(sw_histogram_count(&x->sh.late[0]), 2);
	assert_int_equal(x->sh.late[0].sum_ns, 600);
	assert_int_equal(sw_histogram_count(&x->sh.late[1]), 2);
	x->now_ns = 20000;
	push(x, 0, 9, 1, 1);
	x->now_ns = 30000;
	push(x, 0, 9, 0, 1);
	assert_true(sw_shard_next_wait(&x->sh, &at, &budget, &wait));
	assert_int_equal(wait.n_open, 2);
	assert_int_equal(wait.lacks, 2);
	assert_int_equal(wait.number, 9);
	assert_int_equal(wait.since_ns, 20000);
	assert_int_equal(wait.kind, SW_COLL_NONE);
	assert_false(sw_shard_next_wait(&x->sh, &at, &budget, &wait));
	close_shard(x);
}

/* f16: 2048 + 1 + 1 is 2050 when summed in f32, 2048 when rounded each time. */
static void push__f16_is_rounded_once(void **state)
{
	struct fixture *x = open_shard(3, 0, 1);
	static const uint16_t values[] = {0x6800, 0x3c00, 0x3c00};
	struct sw_header h = header(0, 1, 0, 1);

	admit(x, 0, SW_F16, 1, 0);
	for (uint32_t r = 1; r < 5; r++) {
		h.dtype = SW_F16;
		h.payload_len = 2;
		h.round = r;
		for (uint32_t m = 0; m < 3; m++) {
			h.payload_crc = sw_data_crc(0, &h, &values[m], 2);
			shard_push(&x->sh, m, &h, (uint8_t *)&values[m], false);
		}
		for (uint32_t m = 0; m < 3; m++) {
			const uint16_t *sum = take_bytes(x, m, 0);

			assert_int_equal(*sum, 0x6801);
		}
	}
	close_shard(x);
}

static void push__any_alignment(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL];

	for (uint32_t at = 0; at < 8; at++) {
		uint8_t *room = malloc(PAYLOAD + at);

		for (uint32_t i = 0; i < FULL; i++)
			elems[i] = (int32_t)at;
		memcpy(room + at, elems, PAYLOAD);
		h.round = at + 1;
		h.payload_crc = sw_data_crc(0, &h, elems, PAYLOAD);
		shard_push(&x->sh, 0, &h, room + at, false);
		shard_push(&x->sh, 1, &h, room + at, false);
		assert_int_equal(take(x, 0), 2 * (int32_t)at);
		free(room);
	}
	close_shard(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(need__by_dtype),
		cmocka_unit_test(admit__counts_what_it_takes),
		cmocka_unit_test(admit__nothing_here),
		cmocka_unit_test(named__sparse_keys),
		cmocka_unit_test(named__same_hash),
		cmocka_unit_test(push__in_order),
		cmocka_unit_test(push__last_chunk_is_short),
		cmocka_unit_test(push__duplicate),
		cmocka_unit_test(push__duplicate_of_done_acts_as_query),
		cmocka_unit_test(push__past),
		cmocka_unit_test(push__future),
		cmocka_unit_test(push__round_before_the_first),
		cmocka_unit_test(push__unknown_key),
		cmocka_unit_test(push__unknown_chunk),
		cmocka_unit_test(push__wrong_dtype_or_op),
		cmocka_unit_test(push__wrong_weight),
		cmocka_unit_test(push__corrupted_payload),
		cmocka_unit_test(push__duplicate_with_other_bytes),
		cmocka_unit_test(push__without_crc),
		cmocka_unit_test(push__another_step),
		cmocka_unit_test(late__who_was_last),
		cmocka_unit_test(push__f16_is_rounded_once),
		cmocka_unit_test(push__any_alignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
