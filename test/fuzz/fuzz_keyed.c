/* fuzz_keyed.c - forge frames of a keyed job, without the secret and with it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: steps of STEP bytes. A step takes the last frame of a type in one
 * direction, patches it, and gives it to its receiver: with the old tag, with
 * CRCs as an attacker without the secret seals it, or with a new tag as a lying
 * member does. If no member lies, the job's next sum must be right. Half of the
 * jobs are encrypted. */
#include <assert.h>

#include "test/fuzz/fuzz.h"
#include "test/support/keyed_rig.h"
#include "test/support/seal_tag.h"

enum { STEP = 12, STEPS_MAX = 64 };

enum kind { OLD_TAG, NEW_TAG, CRCS, TIME, SUM, N_KINDS };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return setenv("CMOCKA_TEST_ABORT", "1", 1);
}

/* Seal the frame with its sender's keys and the packet number that it has. */
static void tag(struct kept *k, bool is_to_server, uint32_t i)
{
	struct sw_seal *seal =
		is_to_server ? rig.w[i].links[0].peer.seal
			     : rig.srv->jobs[0].members[i].session->peer.seal;
	const struct sw_polyval_key *key = &seal->tx_hash;
	uint8_t hash[SW_POLYVAL_BLOCK];
	uint64_t t;

	if (k->bytes[3] == SW_RESULT && !is_to_server &&
		rig.srv->jobs[0].results)
		key = &rig.srv->jobs[0].results->hash;
	sw_polyval(key, k->bytes + SW_HEAD_BYTES, k->len - SW_HEAD_BYTES, hash);
	t = seal_tag(&seal->tx, k->bytes, !is_to_server, hash);
	memcpy(k->bytes + SW_SEAL_HEAD_BYTES, &t, sizeof(t));
}

static void crcs(struct kept *k, uint32_t i)
{
	uint32_t crc =
		sw_crc32c(0, k->bytes + SW_HEAD_BYTES, k->len - SW_HEAD_BYTES);
	uint32_t seed = k->bytes[3] == SW_HELLO || k->bytes[3] == SW_JOIN ||
					k->bytes[3] == SW_COOKIE
				? 0
				: rig.w[i].links[0].peer.seed;

	memcpy(k->bytes + 46, &crc, sizeof(crc));
	crc = sw_crc32c(0, k->bytes, 50) ^ seed;
	memcpy(k->bytes + 50, &crc, sizeof(crc));
}

static bool has_keys(bool is_to_server, uint32_t i)
{
	const struct sw_session *s =
		rig.srv->jobs[0].n_sessions
			? rig.srv->jobs[0].members[i].session
			: NULL;

	return is_to_server ? rig.w[i].links && rig.w[i].links[0].peer.seal
			    : s && s->peer.seal;
}

/* The bytes of @s are: kind, type, direction and worker, flags, then a length
 * and patches: offset, value. */
static bool forge(const uint8_t *s)
{
	static struct kept k;
	bool is_to_server = s[2] & 1, lies = false;
	uint32_t i = s[2] >> 1 & 1;
	struct kept *from = is_to_server ? rig.to_server[i] : rig.to_worker[i];
	uint64_t psn;

	k = from[s[1] % SW_N_TYPES];
	if (k.len < SW_HEAD_BYTES)
		return false;
	if (s[3] & 1) { /* change the length, also in the header */
		uint16_t n = (uint16_t)(s[4] | s[5] << 8);

		n %= SW_PAYLOAD_MAX + 1;
		k.len = SW_HEAD_BYTES + n;
		memcpy(k.bytes + 6, &n, sizeof(n));
	}
	for (int p = 6; p < STEP; p += 3)
		k.bytes[(s[p] | s[p + 1] << 8) % k.len] ^= s[p + 2];
	if (s[3] & 2) /* change the type */
		k.bytes[3] = s[4] % 32;
	if (s[0] % N_KINDS == CRCS) {
		crcs(&k, i);
	} else if (s[0] % N_KINDS == NEW_TAG && has_keys(is_to_server, i)) {
		memcpy(&psn, k.bytes + 12, 4);
		psn += 40 + s[3];
		memcpy(k.bytes + 12, &psn, 4);
		tag(&k, is_to_server, i);
		lies = true;
	}
	give(is_to_server ? server() : worker(i), &k);
	return lies;
}

static bool try_sum(uint32_t step)
{
	rig.n_done = 0;
	for (uint32_t i = 0; i < N; i++) {
		for (uint32_t e = 0; e < ELEMS; e++)
			rig.data[i][e] = (int32_t)(e + 1000 * i + step);
		if (sw_worker_push(&rig.w[i], 0, step, 0))
			return false;
	}
	pass(20 * SW_MS);
	return rig.n_done == N;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool lies = false, is_right = true;
	uint32_t step = 1;

	rig_encrypts = size && data[0] & 2;
	init();
	rig.keyring.is_required = true;
	rig.may_fail = true;
	open_all();
	/* odd: the job runs first; even: it is still forming */
	if (size && data[0] & 1) {
		pass(40 * SW_MS);
		declare();
		is_right = try_sum(step++);
		assert(is_right);
	} else {
		pass(200 * SW_US);
	}
	for (size_t at = 1; at + STEP <= size && at / STEP < STEPS_MAX;
		at += STEP) {
		const uint8_t *s = data + at;

		if (s[0] % N_KINDS == TIME)
			pass((1 + s[1]) * 50 * SW_US);
		else if (s[0] % N_KINDS == SUM && data[0] & 1)
			is_right &= try_sum(step++) || lies;
		else
			lies |= forge(s);
	}
	if (data[0] & 1 && !lies)
		is_right &= try_sum(step);
	assert(is_right || lies);
	close_all();
	return 0;
}
