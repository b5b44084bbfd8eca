/* unit_wrap.c - keyed jobs whose numbers have come near their end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wire/cipher.h"
#include "test/support/keyed_rig.h"

static uint64_t n_high; /* data frames whose number needs more than 32 bits */
static uint32_t n_zero; /* data frames of round 0 */

static void look(const struct kept *k)
{
	struct sw_header h;

	memcpy(&h, k->bytes, SW_HEAD_BYTES);
	if (!sw_type_is_data(h.type))
		return;
	n_high += h.psn_high != 0;
	n_zero += !h.round;
}

static struct sw_session *session_of(uint32_t i)
{
	return rig.srv->jobs[0].members[i].session;
}

/* Let all data frames of both directions have numbers from @next on. */
static void set_numbers(uint64_t next)
{
	for (uint32_t i = 0; i < N; i++) {
		struct sw_peer *ends[] = {
			&rig.w[i].links[0].peer, &session_of(i)->peer};

		for (uint32_t e = 0; e < 2; e++)
			for (uint32_t c = 0; c < SW_N_CLASSES; c++) {
				struct sw_space *s = &ends[e]->flow.space[c];

				s->next_psn = s->oldest = next;
				s->largest_acked = s->largest = next - 1;
				ends[e]->flow.rx_psn[c] = next - 1;
				ends[e]->seal->taken[c].largest = next - 1;
			}
	}
}

/* Let the next round of the tensor be @round. */
static void set_round(uint32_t round)
{
	const struct sw_stensor *t = sw_shard_tensor(
		&rig.srv->jobs[0].shard, rig.w[0].tensors[0].key);

	for (uint32_t i = 0; i < N; i++)
		rig.w[i].tensors[0].round = round - 1;
	for (uint32_t i = 0; i < 3; i++) {
		t->chunks[i].cell[(round - 1) & 1].round = round - 1;
		t->chunks[i].cell[round & 1].round = round - 2;
	}
	/* The rounds between would have taken the places of these hashes. */
	memset(rig.srv->jobs[0].results->rows, 0,
		sizeof(rig.srv->jobs[0].results->rows));
}

static void begin(void)
{
	run();
	sum(2); /* both cells of each chunk have a round */
	pass(100 * SW_MS);
	rig.seen = look;
	n_high = n_zero = 0;
}

/* Numbers have 48 bits; each is taken once across 2^32. */
static void number__passes_2_to_32(void **state)
{
	struct kept old;

	begin();
	set_numbers((1ULL << 32) - 3);
	for (uint32_t i = 0; i < 4; i++)
		sum(3 + i);
	/* 2 x 2 frames of 3 chunks, 4 times; the first 3 of a space are below
	 * 2^32 - 1. */
	assert_int_equal(n_high, 4 * (4 * 3) - 4 * 3);
	old = rig.to_server[0][SW_PUSH];
	give(server(), &old);
	assert_int_equal(rig.srv->stats.rx_replay, 1);
	old = rig.to_worker[0][SW_RESULT];
	give(worker(0), &old);
	assert_int_equal(rig.w[0].stats.rx_replay, 1);
	assert_int_equal(rig.w[0].stats.rx_tag, 0);
	close_all();
}

/* Behind the last number, receivers drop all: no number comes twice. */
static void number__ends_at_2_to_48(void **state)
{
	begin();
	set_numbers((1ULL << 48) - 3);
	sum(3);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(sw_worker_push(&rig.w[i], 0, 4, 0), 0);
	rig.n_done = 0;
	pass(100 * SW_MS);
	assert_int_equal(rig.n_done, 0);
	assert_true(rig.srv->stats.rx_replay >= 3 * N);
	close_all();
}

/* Rounds count modulo 2^32, where a nonce does not depend on them. */
static void round__passes_2_to_32(void **state)
{
	begin();
	set_round(UINT32_MAX - 1);
	for (uint32_t i = 0; i < 6; i++)
		sum(3 + i);
	assert_int_equal(rig.w[0].tensors[0].round, 3);
	assert_int_equal(n_zero, 2 * N * 3);
	close_all();
}

/* A result's nonce is key, round and chunk.  Before they come again under one
 * key, the job ends, and tells why. */
static void round__ends_an_encrypted_job(void **state)
{
	begin();
	set_round(UINT32_MAX - 1);
	sum(3);
	sum(4);
	rig.may_fail = true;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(sw_worker_push(&rig.w[i], 0, 5, 0), 0);
	rig.n_done = 0;
	pass(100 * SW_MS);
	assert_int_equal(rig.n_done, 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(sw_worker_end_of(&rig.w[i]), SW_EPROTO);
		assert_contains(rig.text[i], "has used all rounds that one key "
					     "encrypts: start it again");
	}
	/* Each has sent one frame of the round, of another nonce; the server
	 * has folded none. */
	assert_int_equal(rig.srv->stats.rx_round, n_zero);
	close_all();
}

/* A stream's chunks begin again within a run; the number of the collective
 * tells them apart until it begins again as well. */
static void collective__ends_an_encrypted_job(void **state)
{
	struct sw_header h = {.stream.collective = UINT32_MAX,
		.stream.op = sw_coll_op(SW_ALL_REDUCE, 0)};

	assert_false(sw_result_has_wrapped(&h));
	h.stream.collective++;
	h.stream.j = 7;
	assert_true(sw_result_has_wrapped(&h));
}

static int encrypts(void **state)
{
	rig_encrypts = true;
	return 0;
}

static int only_authenticates(void **state)
{
	rig_encrypts = false;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			number__passes_2_to_32, only_authenticates),
		cmocka_unit_test_setup(number__passes_2_to_32, encrypts),
		cmocka_unit_test_setup(number__ends_at_2_to_48, encrypts),
		cmocka_unit_test_setup(
			round__passes_2_to_32, only_authenticates),
		cmocka_unit_test_setup(round__ends_an_encrypted_job, encrypts),
		cmocka_unit_test(collective__ends_an_encrypted_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
