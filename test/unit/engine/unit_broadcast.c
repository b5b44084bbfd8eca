/* unit_broadcast.c - rounds whose operation is copy, in cell, shard and worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/shard_rig.h"
#include "test/support/worker_rig.h"

enum { A, B, C, ROOT = 1 };

/* --- shard: root B, requests in any order --- */

static enum sw_push_verdict copy_from(struct fixture *x, uint32_t member,
	uint32_t round, uint16_t root, const void *bytes, uint16_t n)
{
	struct sw_header h = header(0, round, 0, 0);

	h.op = SW_ROUND_COPY;
	h.aux = root;
	h.dtype = x->sh.tensors[0].dtype;
	h.payload_len = n;
	h.weight = n > 0;
	h.payload_crc = sw_data_crc(0, &h, bytes, n);
	return shard_push(&x->sh, member, &h, bytes, false);
}

/* Push @value in every element as the root. */
static enum sw_push_verdict give(
	struct fixture *x, uint32_t round, int32_t value)
{
	int32_t elems[FULL];

	for (uint32_t i = 0; i < FULL; i++)
		elems[i] = value;
	return copy_from(x, ROOT, round, ROOT, elems, sizeof(elems));
}

static enum sw_push_verdict ask(
	struct fixture *x, uint32_t member, uint32_t round)
{
	return copy_from(x, member, round, ROOT, NULL, 0);
}

static struct fixture *open_three(uint32_t dtype)
{
	struct fixture *x = open_shard(3, 0, 1);

	admit(x, 0, dtype, PAYLOAD / sw_dtype_bytes(dtype), 0);
	return x;
}

/* No member gets the bytes until all have asked. So a member that names another
 * root is detected before anyone has this root's bytes. */
static void copy__waits_for_all(void **state)
{
	struct fixture *x = open_three(SW_I32);

	assert_int_equal(ask(x, A, 1), SW_PUSH_FOLD);
	assert_int_equal(query(x, A, 1), 'W');
	assert_int_equal(give(x, 1, 42), SW_PUSH_FOLD);
	assert_int_equal(take(x, A), -1);
	assert_int_equal(take(x, ROOT), -1);
	assert_int_equal(query(x, A, 1), 'W');
	assert_int_equal(query(x, C, 1), 'N');
	assert_int_equal(x->sh.n_open, 1);
	assert_int_equal(ask(x, C, 1), SW_PUSH_COMPLETE);
	for (uint32_t m = 0; m < 3; m++)
		assert_int_equal(take(x, m), 42);
	assert_int_equal(x->h.weight, 1);
	assert_int_equal(x->h.op, SW_ROUND_COPY);
	assert_int_equal(x->sh.n_open, 0);
	assert_int_equal(x->stats.chunks_done, 1);
	assert_int_equal(x->stats.push_folded, 3);
	close_shard(x);
}

/* A repeated empty push, as after a loss, is answered by the bytes. */
static void copy__asked_twice(void **state)
{
	struct fixture *x = open_three(SW_I32);

	ask(x, A, 1);
	assert_int_equal(ask(x, A, 1), SW_PUSH_HAVE);
	ask(x, C, 1);
	give(x, 1, 42);
	assert_int_equal(take(x, A), 42);
	fate(x, A, true);
	assert_int_equal(take(x, A), 42);
	fate(x, A, false);
	assert_int_equal(ask(x, A, 1), SW_PUSH_DONE);
	assert_int_equal(take(x, A), 42);
	/* the result is known, so the push is not read */
	assert_int_equal(give(x, 1, 43), SW_PUSH_DONE);
	assert_int_equal(take(x, ROOT), 42);
	assert_int_equal(x->stats.push_folded, 3);
	close_shard(x);
}

/* While others ask for the next broadcast, a member that lacks this one still
 * gets it. */
static void copy__late_member_gets_its_round(void **state)
{
	struct fixture *x = open_three(SW_I32);

	give(x, 1, 1);
	ask(x, A, 1);
	/* no member holds round 1 */
	assert_int_equal(give(x, 2, 2), SW_PUSH_VIOLATION);
	assert_int_equal(x->stats.rx_round, 1);
	ask(x, C, 1);
	for (uint32_t m = 0; m < 3; m++)
		assert_int_equal(take(x, m), 1);
	assert_int_equal(give(x, 2, 2), SW_PUSH_FOLD);
	assert_int_equal(ask(x, A, 2), SW_PUSH_FOLD);
	x->h.round = 1;
	fate(x, C, true);
	assert_int_equal(take(x, C), 1);
	assert_int_equal(ask(x, C, 2), SW_PUSH_COMPLETE);
	assert_int_equal(take(x, C), 2);
	close_shard(x);
}

/* f16 has one result slot, which other members may still need. No bit of a copy
 * changes, and a sum may follow. */
static void copy__any_bits_in_16_bit_types(void **state)
{
	struct fixture *x = open_three(SW_F16);
	uint16_t odd[PAYLOAD / 2], ones[PAYLOAD / 2];
	struct sw_header h;
	const uint16_t *got;

	for (uint32_t i = 0; i < PAYLOAD / 2; i++) {
		/* signalling NaNs and others */
		odd[i] = (uint16_t)(0x7c01 + i);
		ones[i] = 0x3c00;
	}
	for (uint32_t m = 0; m < 3; m++) {
		h = header(0, 1, 0, FULL);
		h.dtype = SW_F16;
		h.payload_crc = sw_data_crc(0, &h, ones, PAYLOAD);
		shard_push(&x->sh, m, &h, (uint8_t *)ones, false);
	}
	copy_from(x, ROOT, 2, ROOT, odd, PAYLOAD);
	got = take_bytes(x, C, 0); /* C lacks round 1 */
	assert_int_equal(x->h.round, 1);
	assert_int_equal(got[5], 0x4200);
	ask(x, A, 2);
	ask(x, C, 2);
	for (uint32_t m = 0; m < 3; m++) {
		got = take_bytes(x, m, 0);
		assert_int_equal(x->h.round, 2);
		assert_memory_equal(got, odd, PAYLOAD);
	}
	h.round = 3;
	h.payload_crc = sw_data_crc(0, &h, ones, PAYLOAD);
	shard_push(&x->sh, A, &h, (uint8_t *)ones, false);
	fate(x, C, true); /* round 2 again, while round 3 accumulates */
	got = take_bytes(x, C, 0);
	assert_memory_equal(got, odd, PAYLOAD);
	close_shard(x);
}

static void copy__who_differs(void **state)
{
	struct fixture *x = open_three(SW_I32);
	int32_t elems[FULL] = {0};

	ask(x, A, 1);
	assert_int_equal(push(x, C, 1, 0, 5), SW_PUSH_DIFFERS);
	assert_int_equal(
		copy_from(x, C, 1, ROOT + 1, NULL, 0), SW_PUSH_DIFFERS);
	give(x, 1, 7);
	x->sh.ranked = 0; /* A has not pushed, so the root's node is unknown */
	assert_int_equal(copy_from(x, C, 1, ROOT, elems, sizeof(elems)),
		SW_PUSH_VIOLATION); /* a second root is refused */
	assert_int_equal(take(x, A), -1);
	assert_int_equal(copy_from(x, C, 1, ROOT, elems, 4), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_length, 1);
	close_shard(x);
}

/* Only the node of the root may push bytes. */
static void copy__whose_root(void **state)
{
	struct fixture *x = open_three(SW_I32);
	int32_t elems[FULL] = {0};
	uint16_t n = sizeof(elems);

	x->sh.weights[B] = 3; /* ranks: A 0, B 1 to 3, C 4 */
	x->sh.ranked = 0;
	sw_shard_rank(&x->sh, 1 << A | 1 << C);
	assert_int_equal(x->sh.ranked, 1 << A);
	assert_int_equal(copy_from(x, A, 1, 1, elems, n), SW_PUSH_DIFFERS);
	assert_int_equal(copy_from(x, A, 1, 0, NULL, 0), SW_PUSH_DIFFERS);
	sw_shard_rank(&x->sh, x->sh.expected);
	assert_int_equal(x->sh.ranked, x->sh.expected);
	assert_int_equal(copy_from(x, C, 1, 3, elems, n), SW_PUSH_DIFFERS);
	assert_int_equal(copy_from(x, B, 1, 3, NULL, 0), SW_PUSH_DIFFERS);
	assert_int_equal(copy_from(x, B, 1, 4, elems, n), SW_PUSH_DIFFERS);
	assert_int_equal(x->stats.push_folded, 0);
	assert_int_equal(copy_from(x, C, 1, 3, NULL, 0), SW_PUSH_FOLD);
	assert_int_equal(copy_from(x, B, 1, 3, elems, n), SW_PUSH_FOLD);
	close_shard(x);
}

/* All members ask for the bytes of a rank that does not exist. */
static void copy__root_that_nobody_has(void **state)
{
	struct fixture *x = open_three(SW_I32);

	sw_shard_rank(&x->sh, 1 << A | 1 << B); /* C has not joined */
	assert_int_equal(copy_from(x, A, 1, 3, NULL, 0), SW_PUSH_FOLD);
	sw_shard_rank(&x->sh, x->sh.expected);
	assert_int_equal(copy_from(x, B, 1, 3, NULL, 0), SW_PUSH_DIFFERS);
	assert_int_equal(copy_from(x, C, 1, 3, NULL, 0), SW_PUSH_DIFFERS);
	assert_int_equal(take(x, A), -1);
	close_shard(x);
}

/* An empty contribution to a sum is refused. */
static void sum__empty_is_refused(void **state)
{
	struct fixture *x = open_three(SW_I32);
	struct sw_header h = header(0, 1, 0, 0);

	assert_int_equal(shard_push(&x->sh, A, &h, NULL, false), SW_PUSH_DROP);
	assert_int_equal(x->stats.rx_length, 1);
	close_shard(x);
}

/* --- worker: rank 0 of 2 --- */

static struct worker_rig *open_rig(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	wrig_run(&r);
	wrig_declare(&r, "a", PEER_CHUNK, 0);
	return &r;
}

static int begin(struct worker_rig *r, uint16_t root)
{
	return sw_worker_begin(&r->w,
		&(struct sw_worker_round){.op = SW_ROUND_COPY, .root = root});
}

static void begin__only_the_root_has_bytes(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_header h = peer_result_header(0, 1, 0, PEER_CHUNK);
	int32_t elems[PEER_CHUNK] = {[3] = 33};

	assert_int_equal(begin(r, 2), SW_EINVAL);
	assert_int_equal(begin(r, 1), 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r1 c0 +0");
	assert_int_equal(r->last[SW_PUSH].h.aux, 1);
	assert_int_equal(r->last[SW_PUSH].h.weight, 0);
	/* a sum, not the broadcast that the worker waits for */
	peer_send(&r->s[0], h, elems);
	assert_string_equal(wrig_events(r), "");
	h.op = SW_ROUND_COPY;
	peer_send(&r->s[0], h, elems);
	assert_non_null(strstr(wrig_events(r), "done"));
	assert_int_equal(r->data[0][3], 33);
	wrig_tx(r);
	assert_int_equal(begin(r, 0), 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k0 r2 c0 +1344");
	assert_int_equal(r->last[SW_PUSH].h.weight, 1);
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__waits_for_all),
		cmocka_unit_test(copy__asked_twice),
		cmocka_unit_test(copy__late_member_gets_its_round),
		cmocka_unit_test(copy__any_bits_in_16_bit_types),
		cmocka_unit_test(copy__who_differs),
		cmocka_unit_test(copy__whose_root),
		cmocka_unit_test(copy__root_that_nobody_has),
		cmocka_unit_test(sum__empty_is_refused),
		cmocka_unit_test(begin__only_the_root_has_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
