/* unit_wrap.c - keyed jobs whose numbers are near their limits.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/session.h"
#include "engine/sums/rules.h"
#include "engine/wire/cipher.h"
#include "test/support/keyed_rig.h"

static uint64_t n_high; /* data frames with a number above 32 bits */
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

/* Let the data frames of both directions continue with number @next. */
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
	/* The rounds that are skipped would have replaced these hashes, or
	 * started another era. */
	if (!rig.srv->jobs[0].results->era)
		memset(rig.srv->jobs[0].results->rows, 0,
			sizeof(rig.srv->jobs[0].results->rows));
}

static void begin(void)
{
	run();
	sum(2); /* both cells of each chunk have been used */
	pass(100 * SW_MS);
	rig.seen = look;
	n_high = n_zero = 0;
}

/* Packet numbers have 48 bits, and each is accepted once across 2^32. */
static void number__passes_2_to_32(void **state)
{
	struct kept old;

	begin();
	set_numbers((1ULL << 32) - 3);
	for (uint32_t i = 0; i < 4; i++)
		sum(3 + i);
	/* 2 x 2 frames for each of 3 chunks, 4 times; the first 3 numbers of
	 * each space are below 2^32. */
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

/* After the last number receivers drop all frames, so no number repeats. */
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

/* Rounds count modulo 2^32. */
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

/* A result's nonce is key, round and chunk. Before a round repeats, another
 * encryption key is in use, which all members know. */
static void round__comes_again_in_another_era(void **state)
{
	uint8_t before[64];
	uint32_t era;

	begin();
	set_round(UINT32_MAX - 1);
	for (uint32_t i = 0; i < 3; i++)
		sum(3 + i);
	memcpy(before, rig.to_worker[0][SW_RESULT].bytes + SW_HEAD_BYTES,
		sizeof(before));
	rig.srv->jobs[0].params.era_folds = 1;
	era = rig.srv->jobs[0].results->era;
	for (uint32_t i = 0; i < 40; i++)
		sum(3 + i);
	assert_true(rig.srv->jobs[0].results->era >= era + 20);
	/* A member may learn of the newest era only from its next frame. */
	assert_true(rig.srv->jobs[0].results->era -
			    rig.w[0].links[0].peer.seal->era <=
		    1);
	set_round(UINT32_MAX - 1);
	for (uint32_t i = 0; i < 3; i++)
		sum(3 + i);
	assert_int_equal(rig.w[0].tensors[0].round, 0);
	assert_memory_not_equal(before,
		rig.to_worker[0][SW_RESULT].bytes + SW_HEAD_BYTES,
		sizeof(before));
	assert_int_equal(rig.w[0].stats.rx_tag + rig.w[1].stats.rx_tag, 0);
	close_all();
}

/* A member that does not confirm an era delays the next one. It is removed
 * before a nonce of this era could repeat. */
static void era__does_not_wait_for_a_silent_member(void **state)
{
	struct sw_result_keys *r;

	begin();
	rig.srv->jobs[0].params.era_folds = 1;
	rig.may_fail = true;
	/* it confirms no further era */
	rig.w[1].links[0].peer.seal->era = 1000;
	r = rig.srv->jobs[0].results;
	sum(3);
	sum(4);
	assert_in_range(r->era, 0, 1);
	for (uint32_t i = 0; i < 60 && rig.state[0] == SW_WORKER_RUNNING; i++) {
		for (uint32_t w = 0; w < N; w++)
			sw_worker_push(&rig.w[w], 0, 5 + i, 0);
		pass(250 * SW_MS);
	}
	assert_int_not_equal(rig.state[0], SW_WORKER_RUNNING);
	assert_contains(rig.text[0], "confirms no new key of results");
	close_all();
}

/* A result that was encrypted under a key too old for its name in the header is
 * encrypted again, once. */
static void era__of_an_old_result_is_renewed(void **state)
{
	struct sw_job *job;
	struct sw_stensor *t;
	struct sw_header h;
	struct kept *k = &rig.to_worker[0][SW_RESULT];
	int32_t got[288];

	begin();
	job = &rig.srv->jobs[0];
	t = &job->shard.tensors[sw_key_index(rig.w[0].tensors[0].key)];
	for (uint32_t ahead = 8; ahead <= 9; ahead++) {
		uint64_t n_ciphers = rig.srv->stats.result_ciphers;

		job->results->era = ahead;
		for (uint32_t i = 0; i < N; i++)
			session_of(i)->peer.seal->era =
				rig.w[i].links[0].peer.seal->era = ahead;
		for (uint32_t i = 0; i < 2; i++) {
			sw_marks_add(&job->shard, t, 0, 0);
			sw_session_touch(session_of(0));
			k->len = 0;
			pass(20 * SW_MS);
			assert_int_equal(k->len, SW_HEAD_BYTES + sizeof(got));
			memcpy(&h, k->bytes, SW_HEAD_BYTES);
			assert_int_equal(
				h.flags / SW_FLAG_ERA, ahead > 8 ? ahead : 0);
			sw_seal_crypt_result(sw_era_key(&job->results->ciphers,
						     ahead > 8 ? ahead : 0),
				&h.key, k->bytes + SW_HEAD_BYTES, sizeof(got),
				got);
			assert_memory_equal(got, rig.data[0], sizeof(got));
		}
		assert_int_equal(
			rig.srv->stats.result_ciphers - n_ciphers, ahead > 8);
	}
	assert_int_equal(rig.w[0].stats.rx_tag, 0);
	sum(3);
	close_all();
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
		cmocka_unit_test_setup(round__passes_2_to_32, encrypts),
		cmocka_unit_test_setup(
			round__comes_again_in_another_era, encrypts),
		cmocka_unit_test_setup(era__does_not_wait_for_a_silent_member,
			only_authenticates),
		cmocka_unit_test_setup(
			era__of_an_old_result_is_renewed, encrypts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
