/* unit_seal.c - tags follow PROTOCOL.md and cover all that they must.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/keys/seal.h"
#include "test/support/seal_tag.h"
#include "test/unit/keys/hex.h"

enum { BYTES = 54 + 100 };

static uint8_t keys[2][32];

static struct sw_seal *open_end(bool is_server)
{
	for (int i = 0; i < 64; i++)
		keys[i / 32][i % 32] = (uint8_t)(3 * i);
	return sw_seal_new(keys[0], keys[1], is_server, false);
}

/* Seal a frame as the worker: header, tag, payload. */
static void seal(struct sw_seal *worker, uint8_t frame[BYTES])
{
	uint8_t hash[16];
	uint64_t tag;

	for (int i = 0; i < BYTES; i++)
		frame[i] = (uint8_t)(7 * i);
	sw_polyval(&worker->tx_hash, frame + 54, 100, hash);
	tag = seal_tag(&worker->tx, frame, 0, hash);
	memcpy(frame + SW_SEAL_HEAD_BYTES, &tag, sizeof(tag));
}

static bool has_tag(struct sw_seal *s, const uint8_t *frame,
	const struct sw_polyval_key *key, size_t n)
{
	uint8_t hash[16];

	sw_polyval(key, frame + 54, n, hash);
	return sw_seal_is_good(
		seal_tag(&s->rx, frame, !s->direction, hash), frame);
}

static bool is_good(struct sw_seal *s, const uint8_t *frame, size_t n)
{
	return has_tag(s, frame, &s->rx_hash, n);
}

/* Keys, h and tag were computed in Python by HMAC, a bitwise POLYVAL that
 * passes the vector of RFC 8452, and CMAC of the package cryptography. */
static void tag__is_that_of_the_protocol(void **state)
{
	struct sw_seal *worker = open_end(false);
	uint8_t frame[BYTES], hash[16];

	seal(worker, frame);
	sw_polyval(&worker->tx_hash, frame + 54, 100, hash);
	assert_hex_equal(hash, "cf7ea09407ba315a0bc9e3d40bff6df3");
	assert_hex_equal(frame + SW_SEAL_HEAD_BYTES, "212ed0af8787dab4");
	sw_seal_free(worker);
}

static void tag__binds_each_bit_of_header_and_payload(void **state)
{
	struct sw_seal *worker = open_end(false), *server = open_end(true);
	uint8_t frame[BYTES];

	seal(worker, frame);
	assert_true(is_good(server, frame, 100));
	for (size_t i = 0; i < 8 * BYTES; i++) {
		frame[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(is_good(server, frame, 100));
		frame[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_true(is_good(server, frame, 100));
	for (size_t n = 0; n < 100; n++)
		assert_false(is_good(server, frame, n));
	memset(frame + SW_SEAL_HEAD_BYTES, 0, 8);
	assert_false(is_good(server, frame, 100));
	sw_seal_free(worker);
	sw_seal_free(server);
}

/* A worker refuses results until it knows their key, and a server always does:
 * anybody could forge them. */
static void result__is_refused_without_its_key(void **state)
{
	struct sw_seal *ends[] = {open_end(false), open_end(true)};
	uint8_t frame[BYTES];

	seal(ends[0], frame);
	for (int i = 0; i < 2; i++) {
		assert_false(
			has_tag(ends[i], frame, &ends[i]->result_hash, 100));
		sw_seal_free(ends[i]);
	}
}

/* A frame is refused if it returns to its sender or arrives in another
 * session. */
static void tag__binds_direction_and_session(void **state)
{
	struct sw_seal *worker = open_end(false), *server = open_end(true);
	struct sw_seal *other;
	uint8_t frame[BYTES];

	seal(worker, frame);
	assert_false(is_good(worker, frame, 100));
	keys[0][31] ^= 1;
	other = sw_seal_new(keys[0], keys[1], true, false);
	assert_false(is_good(other, frame, 100));
	sw_seal_free(other);
	/* Even if both directions had one key, the direction byte differs. */
	other = sw_seal_new(keys[0], keys[0], false, false);
	seal(other, frame);
	assert_false(is_good(other, frame, 100));
	sw_seal_free(other);
	sw_seal_free(worker);
	sw_seal_free(server);
}

/* An empty payload has another tag than zeros, and lengths matter. */
static void tag__binds_the_length(void **state)
{
	struct sw_seal *worker = open_end(false);
	uint8_t zeros[32] = {0}, hash[3][16];

	sw_polyval(&worker->tx_hash, zeros, 0, hash[0]);
	sw_polyval(&worker->tx_hash, zeros, 16, hash[1]);
	sw_polyval(&worker->tx_hash, zeros, 17, hash[2]);
	assert_memory_not_equal(hash[0], hash[1], 16);
	assert_memory_not_equal(hash[1], hash[2], 16);
	sw_seal_free(worker);
}

static void taken__takes_each_number_once(void **state)
{
	struct sw_taken t = {0};

	assert_true(sw_taken_add(&t, 5));
	assert_false(sw_taken_add(&t, 5));
	assert_true(sw_taken_add(&t, 3));
	assert_false(sw_taken_add(&t, 3));
	assert_true(sw_taken_add(&t, 260));
	assert_false(sw_taken_add(&t, 5)); /* 255 behind, and a duplicate */
	assert_false(sw_taken_add(&t, 4)); /* 256 behind */
	assert_true(sw_taken_add(&t, 6));
	assert_true(sw_taken_add(&t, 1ULL << 47));
	assert_false(sw_taken_add(&t, 259));
	assert_true(sw_taken_add(&t, (1ULL << 47) - 255));
	assert_false(sw_taken_add(&t, (1ULL << 47) - 256));
	assert_false(sw_taken_add(&t, 1ULL << 47));
}

/* Compare with a set of all numbers, while numbers are reordered by up to
 * 300. */
static void taken__agrees_with_a_set(void **state)
{
	enum { N = 20000 };
	static bool has[N + 400];
	struct sw_taken t = {0};
	uint64_t largest = 0, x = 1;

	for (int i = 0; i < 3 * N; i++) {
		uint64_t psn = (uint64_t)(i / 3);
		bool is_new;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		psn += 1 + (x >> 33) % 300;
		is_new = !has[psn] && psn + 255 >= largest;
		assert_int_equal(sw_taken_add(&t, psn), is_new);
		has[psn] |= is_new;
		largest = psn > largest ? psn : largest;
	}
}

static void results__keep_their_secret(void **state)
{
	uint8_t secret[32];
	struct sw_result_keys *r;

	for (int i = 0; i < 32; i++)
		secret[i] = (uint8_t)i;
	r = sw_result_keys_new(secret, false);
	assert_memory_equal(r->secret, secret, sizeof(secret));
	for (uint32_t i = 0; i < 100000; i++) {
		const struct sw_result_row *row =
			sw_result_keys_row(r, i, 7 * i, 13 * i);

		assert_true(row >= r->rows && row < r->rows + SW_RESULT_ROWS);
	}
	sw_result_keys_free(r);
	sw_result_keys_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tag__is_that_of_the_protocol),
		cmocka_unit_test(tag__binds_each_bit_of_header_and_payload),
		cmocka_unit_test(tag__binds_direction_and_session),
		cmocka_unit_test(tag__binds_the_length),
		cmocka_unit_test(result__is_refused_without_its_key),
		cmocka_unit_test(taken__takes_each_number_once),
		cmocka_unit_test(taken__agrees_with_a_set),
		cmocka_unit_test(results__keep_their_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
