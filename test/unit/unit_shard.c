/* unit_shard.c - the sums of one job on one lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>

#include "engine/shard.h"
#include "test/support/env.h"

enum { PAYLOAD = 1344, FULL = PAYLOAD / 4, BOTH = 3 };

/* A shard of two members, server 0 of 1 unless a test says otherwise. */
struct fixture {
	struct test_env env;
	struct sw_params params;
	struct sw_stats stats;
	struct sw_shard sh;
	struct sw_header h; /* of the last result taken */
	uint32_t cell;
};

static struct fixture *open_shard(
	uint32_t n_members, uint16_t server_i, uint16_t n_servers)
{
	static struct fixture x;

	memset(&x, 0, sizeof(x));
	test_env_init(&x.env);
	sw_params_init(&x.params);
	x.params.payload = PAYLOAD;
	assert_int_equal(sw_shard_open(&x.sh, &x.params, &x.env.env, &x.stats,
				 n_members, server_i, n_servers),
		0);
	return &x;
}

static void close_shard(struct fixture *x)
{
	sw_shard_close(&x->sh);
	test_env_fini(&x->env);
}

static void admit(struct fixture *x, uint32_t key, uint32_t dtype,
	uint64_t n_elems, uint32_t priority)
{
	struct sw_declare_item item = {.key = key,
		.dtype = (uint8_t)dtype,
		.n_elems = n_elems,
		.priority = priority};
	uint64_t before = x->sh.mem_bytes;

	assert_int_equal(sw_shard_admit(&x->sh, &item, "t", 1), 0);
	assert_int_equal(
		x->sh.mem_bytes - before, sw_shard_need(&x->sh, &item));
}

/* Two members and one tensor of @n_elems i32 elements with key 0. */
static struct fixture *open_one(uint64_t n_elems)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit(x, 0, SW_I32, n_elems, 0);
	return x;
}

static struct sw_header header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems)
{
	return (struct sw_header){.type = SW_PUSH,
		.key = key,
		.round = round,
		.chunk = chunk,
		.weight = 1,
		.dtype = SW_I32,
		.payload_len = (uint16_t)(4 * n_elems)};
}

static enum sw_shard_push push_n(struct fixture *x, uint32_t member,
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems,
	int32_t value)
{
	struct sw_header h = header(key, round, chunk, n_elems);
	int32_t elems[FULL];

	for (uint32_t i = 0; i < n_elems; i++)
		elems[i] = value;
	h.payload_crc = sw_data_crc(&h, elems, h.payload_len);
	return sw_shard_push(&x->sh, member, &h, (uint8_t *)elems);
}

static enum sw_shard_push push(struct fixture *x, uint32_t member,
	uint32_t round, uint32_t chunk, int32_t value)
{
	return push_n(x, member, 0, round, chunk, FULL, value);
}

/* Take the next result of @member: its only value, or -1 when there is none. */
static int32_t take(struct fixture *x, uint32_t member)
{
	const int32_t *elems =
		sw_shard_take(&x->sh, member, &x->h, &x->cell);

	if (!elems)
		return -1;
	for (uint32_t i = 1; i < x->h.payload_len / 4u; i++)
		assert_int_equal(elems[i], elems[0]);
	assert_int_equal(x->h.payload_crc,
		sw_data_crc(&x->h, elems, x->h.payload_len));
	return elems[0];
}

static void fate(struct fixture *x, uint32_t member, enum sw_fate what)
{
	struct sw_sent sent = {
		.key = x->h.key, .cell = x->cell, .round = x->h.round};

	sw_shard_fate(&x->sh, member, &sent, what);
}

/* What @member is told about (0, @round, 0): 'r' nothing, else the answer. */
static char pull(struct fixture *x, uint32_t member, uint32_t round)
{
	struct sw_pull p = {0, round, 0};
	struct sw_answer a;

	if (!sw_shard_pull(&x->sh, member, &p, &a))
		return 'r';
	assert_int_equal(a.round, round);
	return "WNG"[a.kind];
}

/* --- memory --- */

static uint64_t need(struct fixture *x, uint32_t dtype, uint64_t n_elems)
{
	struct sw_declare_item item = {
		.dtype = (uint8_t)dtype, .n_elems = n_elems};

	return sw_shard_need(&x->sh, &item);
}

/* 2 x the declared bytes, 3 x for 16-bit types, 64 per chunk, marks. */
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
	assert_int_equal(
		need(x, SW_F32, FULL + 1), 4 * PAYLOAD + 128 + marks);
	close_shard(x);
}

static void admit__counts_what_it_takes(void **state)
{
	static const uint8_t dtypes[] = {SW_F32, SW_F64, SW_F16, SW_U8, SW_I32,
		SW_I8, SW_I64, SW_BOOL, SW_BF16};
	struct fixture *x = open_shard(3, 1, 2);

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(dtypes); i++)
		for (uint32_t n = 0; n < 4; n++)
			admit(x, 4 * i + n, dtypes[i], 1 + n * 50000, 9 - n);
	assert_true(x->env.live_bytes <= x->sh.mem_bytes);
	close_shard(x);
}

/* A server may have no chunk of a small tensor. */
static void admit__nothing_here(void **state)
{
	struct fixture *x = open_shard(2, 1, 2);

	admit(x, 0, SW_I32, FULL, 0);
	assert_int_equal(x->env.live_bytes, 0);
	assert_int_equal(push(x, 0, 1, 0, 5), SW_SHARD_DROP);
	assert_int_equal(x->stats.rx_chunk, 1);
	close_shard(x);
}

/* --- push --- */

static void push__in_order(void **state)
{
	struct fixture *x = open_one(FULL);

	for (uint32_t r = 1; r < 8; r++) {
		assert_int_equal(push(x, 0, r, 0, 10), SW_SHARD_TAKEN);
		assert_int_equal(x->sh.n_open, 1);
		assert_int_equal(take(x, 0), -1);
		assert_int_equal(
			push(x, 1, r, 0, (int32_t)r), SW_SHARD_COMPLETE);
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

	assert_int_equal(push_n(x, 0, 0, 1, 1, FULL, 1), SW_SHARD_DROP);
	assert_int_equal(push_n(x, 0, 0, 1, 0, 5, 1), SW_SHARD_DROP);
	assert_int_equal(x->stats.rx_length, 2);
	assert_int_equal(push_n(x, 0, 0, 1, 1, 5, 1), SW_SHARD_TAKEN);
	assert_int_equal(push_n(x, 1, 0, 1, 1, 5, 2), SW_SHARD_COMPLETE);
	assert_int_equal(take(x, 0), 3);
	assert_int_equal(x->h.payload_len, 20);
	close_shard(x);
}

static void push__duplicate(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 10);
	assert_int_equal(push(x, 0, 1, 0, 10), SW_SHARD_TAKEN);
	assert_int_equal(x->stats.push_again, 1);
	push(x, 1, 1, 0, 1);
	assert_int_equal(take(x, 0), 11); /* once */
	assert_int_equal(x->stats.push_folded, 2);
	close_shard(x);
}

/* A duplicate of a finished round asks for the result, which is sent unless it
 * is on its way (A5). */
static void push__duplicate_of_done_acts_as_pull(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 10);
	push(x, 1, 1, 0, 1);
	assert_int_equal(take(x, 0), 11);
	assert_int_equal(push(x, 0, 1, 0, 10), SW_SHARD_TAKEN);
	assert_int_equal(take(x, 0), -1); /* in flight */
	fate(x, 0, SW_ACKED);
	assert_int_equal(push(x, 0, 1, 0, 10), SW_SHARD_RESULT);
	assert_int_equal(take(x, 0), 11);
	close_shard(x);
}

static void push__past(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 10);
	push(x, 1, 1, 0, 1);
	push(x, 0, 2, 0, 20);
	/* It pushed round 2, so it held round 1: nothing to send. */
	assert_int_equal(push(x, 0, 1, 0, 10), SW_SHARD_TAKEN);
	assert_int_equal(take(x, 0), -1);
	push(x, 1, 2, 0, 2);
	push(x, 0, 3, 0, 30);
	assert_int_equal(push(x, 1, 1, 0, 1), SW_SHARD_TAKEN);
	assert_int_equal(take(x, 1), 22);
	close_shard(x);
}

static void push__future(void **state)
{
	struct fixture *x = open_one(FULL);

	assert_int_equal(push(x, 0, 2, 0, 1), SW_SHARD_DROP);
	push(x, 0, 1, 0, 1);
	assert_int_equal(push(x, 0, 2, 0, 1), SW_SHARD_DROP);
	assert_int_equal(push(x, 0, 3, 0, 1), SW_SHARD_DROP);
	assert_int_equal(x->stats.rx_round, 3);
	assert_int_equal(x->sh.n_open, 1);
	close_shard(x);
}

/* Rounds that never were: nothing is marked that cannot be sent. */
static void push__round_before_the_first(void **state)
{
	struct fixture *x = open_one(FULL);

	assert_int_equal(push(x, 0, 0, 0, 1), SW_SHARD_TAKEN);
	assert_int_equal(push(x, 0, UINT32_MAX, 0, 1), SW_SHARD_TAKEN);
	assert_int_equal(pull(x, 0, 0), 'G');
	assert_int_equal(pull(x, 0, UINT32_MAX), 'G');
	assert_int_equal(sw_shard_class(&x->sh, 0), SW_N_CLASSES);
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

static void push__unknown_key(void **state)
{
	struct fixture *x = open_one(FULL);

	assert_int_equal(push_n(x, 0, 1, 1, 0, FULL, 1), SW_SHARD_DROP);
	assert_int_equal(
		push_n(x, 0, SW_MAX_TENSORS, 1, 0, FULL, 1), SW_SHARD_DROP);
	assert_int_equal(
		push_n(x, 0, SW_KEY_NONE, 1, 0, FULL, 1), SW_SHARD_DROP);
	assert_int_equal(x->stats.rx_key, 3);
	close_shard(x);
}

static void push__unknown_chunk(void **state)
{
	struct fixture *x = open_one(3 * FULL);

	assert_int_equal(push(x, 0, 1, 3, 1), SW_SHARD_DROP);
	assert_int_equal(push(x, 0, 1, UINT32_MAX, 1), SW_SHARD_DROP);
	assert_int_equal(x->stats.rx_chunk, 2);
	close_shard(x);
}

static void push__wrong_dtype_or_op(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	uint8_t payload[PAYLOAD] = {0};

	h.dtype = SW_F32;
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, payload), SW_SHARD_DROP);
	h.dtype = 255;
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, payload), SW_SHARD_DROP);
	h.dtype = SW_I32;
	h.op = 1;
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, payload), SW_SHARD_DROP);
	assert_int_equal(x->stats.rx_dtype, 3);
	assert_int_equal(x->sh.n_open, 0);
	close_shard(x);
}

/* Intact elsewhere, or damaged: not folded, nothing changed (I4). */
static void push__corrupted_payload(void **state)
{
	struct fixture *x = open_one(2 * FULL);
	struct sw_header h = header(0, 1, 0, FULL), elsewhere;
	uint8_t payload[PAYLOAD] = {0};

	h.payload_crc = sw_data_crc(&h, payload, PAYLOAD);
	payload[700] ^= 4;
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, payload), SW_SHARD_CRC);
	payload[700] ^= 4;
	elsewhere = h;
	elsewhere.chunk = 1;
	assert_int_equal(
		sw_shard_push(&x->sh, 0, &elsewhere, payload), SW_SHARD_CRC);
	assert_int_equal(x->stats.rx_payload_crc, 2);
	assert_int_equal(x->sh.n_open, 0);
	assert_int_equal(pull(x, 0, 1), 'N');
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, payload), SW_SHARD_TAKEN);
	close_shard(x);
}

/* A duplicate is told before its payload is looked at: that of an in-place
 * buffer has changed since (A6). */
static void push__duplicate_with_other_bytes(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	uint8_t payload[PAYLOAD];

	push(x, 0, 1, 0, 10);
	memset(payload, 0x77, sizeof(payload));
	assert_int_equal(
		sw_shard_push(&x->sh, 0, &h, payload), SW_SHARD_TAKEN);
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
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, (uint8_t *)elems),
		SW_SHARD_TAKEN);
	close_shard(x);
}

static void push__another_step(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_header h = header(0, 1, 0, FULL);
	int32_t elems[FULL] = {0};

	h.payload_crc = sw_data_crc(&h, elems, PAYLOAD);
	h.step = 6;
	assert_int_equal(sw_shard_push(&x->sh, 0, &h, (uint8_t *)elems),
		SW_SHARD_TAKEN);
	h.step = 7;
	assert_int_equal(sw_shard_push(&x->sh, 1, &h, (uint8_t *)elems),
		SW_SHARD_STEP);
	assert_int_equal(pull(x, 1, 1), 'N');
	h.step = 6;
	assert_int_equal(sw_shard_push(&x->sh, 1, &h, (uint8_t *)elems),
		SW_SHARD_COMPLETE);
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
			h.payload_crc = sw_data_crc(&h, &values[m], 2);
			sw_shard_push(&x->sh, m, &h, (uint8_t *)&values[m]);
		}
		for (uint32_t m = 0; m < 3; m++) {
			const uint16_t *sum = sw_shard_take(
				&x->sh, m, &x->h, &x->cell);

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
		h.payload_crc = sw_data_crc(&h, elems, PAYLOAD);
		sw_shard_push(&x->sh, 0, &h, room + at);
		sw_shard_push(&x->sh, 1, &h, room + at);
		assert_int_equal(take(x, 0), 2 * (int32_t)at);
		free(room);
	}
	close_shard(x);
}

/* --- results --- */

static void take__most_urgent_first(void **state)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit(x, 0, SW_I32, 2 * FULL, 9);
	admit(x, 1, SW_I32, FULL, 0);
	for (uint32_t m = 0; m < 2; m++) {
		push_n(x, m, 0, 1, 1, FULL, 1);
		push_n(x, m, 0, 1, 0, FULL, 2);
		push_n(x, m, 1, 1, 0, FULL, 3);
	}
	assert_int_equal(sw_shard_class(&x->sh, 0), 0);
	assert_int_equal(take(x, 0), 6);
	assert_int_equal(sw_shard_class(&x->sh, 0), sw_class_of(9));
	assert_int_equal(take(x, 0), 4);
	assert_int_equal(take(x, 0), 2);
	assert_int_equal(sw_shard_class(&x->sh, 0), SW_N_CLASSES);
	assert_int_equal(sw_shard_class(&x->sh, 1), 0);
	close_shard(x);
}

/* What is marked moves along when a more urgent tensor is admitted. */
static void admit__while_results_wait(void **state)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit(x, 0, SW_I32, FULL, 9);
	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 1);
	for (uint32_t key = 1; key < 100; key++)
		admit(x, key, SW_I32, FULL, key % 20);
	assert_int_equal(sw_shard_class(&x->sh, 0), sw_class_of(9));
	assert_int_equal(take(x, 0), 2);
	assert_int_equal(x->h.key, 0);
	assert_int_equal(take(x, 0), -1);
	assert_int_equal(take(x, 1), 2);
	close_shard(x);
}

static void fate__lost_is_sent_again(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 2);
	assert_int_equal(take(x, 0), 3);
	fate(x, 0, SW_LOST);
	assert_int_equal(x->stats.retransmissions, 1);
	assert_int_equal(take(x, 0), 3);
	fate(x, 0, SW_ACKED);
	fate(x, 0, SW_LOST); /* the first copy's fate, too late */
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

/* A2: a queued or lost result of v must not go out as v + 1 or v + 2. */
static void fate__lost_after_recycle(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_sent old;

	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 2);
	take(x, 0);
	take(x, 1);
	old = (struct sw_sent){.key = 0, .cell = 0, .round = 1};
	push(x, 0, 2, 0, 1);
	push(x, 1, 2, 0, 2);
	take(x, 0);
	take(x, 1);
	push(x, 0, 3, 0, 70); /* recycles the cell of round 1 */
	sw_shard_fate(&x->sh, 1, &old, SW_LOST);
	assert_int_equal(take(x, 1), -1);
	sw_shard_fate(&x->sh, 0, &old, SW_LOST);
	assert_int_equal(take(x, 0), -1);
	close_shard(x);
}

/* A push of v + 1 says that v is held: its mark goes. */
static void push__clears_the_mark_of_the_round_before(void **state)
{
	struct fixture *x = open_one(FULL);

	push(x, 0, 1, 0, 1);
	push(x, 1, 1, 0, 2);
	push(x, 0, 2, 0, 5);
	assert_int_equal(take(x, 0), -1);
	assert_int_equal(take(x, 1), 3);
	assert_int_equal(x->h.round, 1);
	close_shard(x);
}

/* --- pull --- */

static void pull__four_answers(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_pull p = {0, 1, 0};
	struct sw_answer a;

	assert_int_equal(pull(x, 0, 1), 'N');
	push(x, 0, 1, 0, 1);
	assert_true(sw_shard_pull(&x->sh, 0, &p, &a));
	assert_int_equal(a.kind, SW_ANSWER_WAIT);
	assert_int_equal(a.missing, 2);
	assert_int_equal(pull(x, 1, 1), 'N');
	push(x, 1, 1, 0, 1);
	take(x, 0);
	assert_int_equal(pull(x, 0, 1), 'r');
	assert_int_equal(take(x, 0), -1); /* it is on its way */
	fate(x, 0, SW_ACKED);
	assert_int_equal(pull(x, 0, 1), 'r');
	assert_int_equal(take(x, 0), 2);
	push(x, 0, 2, 0, 1);
	assert_int_equal(pull(x, 0, 1), 'G');
	assert_int_equal(x->stats.pull_need, 2);
	assert_int_equal(x->stats.pull_wait, 1);
	assert_int_equal(x->stats.pull_gone, 1);
	close_shard(x);
}

static void pull__unknown(void **state)
{
	struct fixture *x = open_one(FULL);
	struct sw_pull p = {9, 1, 0};
	struct sw_answer a;

	assert_false(sw_shard_pull(&x->sh, 0, &p, &a));
	p = (struct sw_pull){0, 1, 1};
	assert_false(sw_shard_pull(&x->sh, 0, &p, &a));
	assert_int_equal(x->stats.rx_key, 1);
	assert_int_equal(x->stats.rx_chunk, 1);
	close_shard(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(need__by_dtype),
		cmocka_unit_test(admit__counts_what_it_takes),
		cmocka_unit_test(admit__nothing_here),
		cmocka_unit_test(push__in_order),
		cmocka_unit_test(push__last_chunk_is_short),
		cmocka_unit_test(push__duplicate),
		cmocka_unit_test(push__duplicate_of_done_acts_as_pull),
		cmocka_unit_test(push__past),
		cmocka_unit_test(push__future),
		cmocka_unit_test(push__round_before_the_first),
		cmocka_unit_test(push__unknown_key),
		cmocka_unit_test(push__unknown_chunk),
		cmocka_unit_test(push__wrong_dtype_or_op),
		cmocka_unit_test(push__corrupted_payload),
		cmocka_unit_test(push__duplicate_with_other_bytes),
		cmocka_unit_test(push__without_crc),
		cmocka_unit_test(push__another_step),
		cmocka_unit_test(push__f16_is_rounded_once),
		cmocka_unit_test(push__any_alignment),
		cmocka_unit_test(take__most_urgent_first),
		cmocka_unit_test(admit__while_results_wait),
		cmocka_unit_test(fate__lost_is_sent_again),
		cmocka_unit_test(fate__lost_after_recycle),
		cmocka_unit_test(push__clears_the_mark_of_the_round_before),
		cmocka_unit_test(pull__four_answers),
		cmocka_unit_test(pull__unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
