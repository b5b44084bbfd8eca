/* unit_vectors.c - test/vectors/keys.txt, written by another implementation.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/keys/keyring.h"
#include "engine/keys/noise.h"
#include "engine/keys/seal.h"
#include "sum/polyval.h"
#include "test/support/seal_tag.h"

enum { HEAD_BYTES = 46, ROWS = 256, BYTES_MAX = 512 };

static struct row {
	char name[32];
	uint8_t bytes[BYTES_MAX];
	size_t n;
} rows[ROWS];
static uint32_t n_rows;

static void row_read(const char *line)
{
	struct row *row = &rows[n_rows++];
	static char digits[2 * BYTES_MAX + 1];
	unsigned byte;

	assert_true(n_rows < ROWS);
	assert_int_equal(sscanf(line, "%31s %1024s", row->name, digits), 2);
	for (const char *s = digits; *s && *s != '-'; s += 2) {
		assert_int_equal(sscanf(s, "%2x", &byte), 1);
		row->bytes[row->n++] = (uint8_t)byte;
	}
}

static int rows_read(void **state)
{
	static char line[4 * BYTES_MAX], path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/test/vectors/keys.txt",
		(const char *)*state);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (*line != '#')
			row_read(line);
	fclose(f);
	return 0;
}

/* Return the only row of this name, and check that it has @n bytes; 0: any
 * number. */
static const struct row *row_of(const char *name, size_t n)
{
	const struct row *found = NULL;

	for (uint32_t i = 0; i < n_rows; i++)
		if (!strcmp(rows[i].name, name)) {
			assert_null(found);
			found = &rows[i];
		}
	if (!found || (n && found->n != n))
		fail_msg("%s: missing, or of another length", name);
	return found;
}

static void assert_row(const char *name, const void *bytes, size_t n)
{
	assert_memory_equal(row_of(name, n)->bytes, bytes, n);
}

static void vectors__keys_of_the_secret(void **state)
{
	const uint8_t *bytes = row_of("secret", 32)->bytes;
	uint8_t key[16], mac[16], text[154];
	struct sw_secret secret;

	for (uint8_t i = 0; i < sizeof(text); i++)
		text[i] = i;
	assert_true(sw_secret_init(&secret, bytes));
	assert_row("key_id", secret.id, sizeof(secret.id));
	assert_true(sw_hkdf_expand(bytes, "sumwire hello", key, sizeof(key)));
	assert_row("hello_key", key, sizeof(key));
	assert_true(sw_cmac(key, text, sizeof(text), mac));
	assert_row("hello_mac", mac, sizeof(mac));
	assert_true(sw_hkdf_expand(bytes, "sumwire cookie", key, sizeof(key)));
	assert_row("cookie_key", key, sizeof(key));
	assert_true(sw_cmac(key, text, sizeof(text), mac));
	assert_row("cookie_mac", mac, sizeof(mac));
}

static void vectors__handshake(void **state)
{
	const struct row *prologue = row_of("prologue", 0);
	const struct row *ask = row_of("ask_payload", 0);
	const struct row *answer = row_of("answer_payload", 0);
	const uint8_t *secret = row_of("secret", 32)->bytes;
	uint8_t message[BYTES_MAX], text[BYTES_MAX], keys[2][2][32];
	struct sw_noise worker, server;

	assert_true(sw_noise_init(&worker, prologue->bytes, prologue->n, secret,
		row_of("worker_e", 32)->bytes));
	assert_true(sw_noise_init(&server, prologue->bytes, prologue->n, secret,
		row_of("server_e", 32)->bytes));
	assert_true(sw_noise_ask(&worker, ask->bytes, ask->n, message));
	assert_row("ask", message, ask->n + SW_NOISE_MORE_BYTES);
	assert_true(sw_noise_asked(
		&server, message, ask->n + SW_NOISE_MORE_BYTES, text));
	assert_memory_equal(text, ask->bytes, ask->n);
	assert_true(
		sw_noise_answer(&server, answer->bytes, answer->n, message));
	assert_row("answer", message, answer->n + SW_NOISE_MORE_BYTES);
	assert_true(sw_noise_answered(
		&worker, message, answer->n + SW_NOISE_MORE_BYTES, text));
	assert_memory_equal(text, answer->bytes, answer->n);
	assert_true(sw_noise_split(&worker, keys[0][0], keys[0][1]));
	assert_true(sw_noise_split(&server, keys[1][0], keys[1][1]));
	for (int i = 0; i < 2; i++) {
		assert_row("to_server", keys[i][0], 32);
		assert_row("to_worker", keys[i][1], 32);
	}
}

static const char *const ways[] = {"to_server", "to_worker"};

/* Return the name of a row of direction @way. */
static const char *name_of(int way, const char *what)
{
	static char names[4][32];
	static uint32_t i;
	char *name = names[i++ % 4];

	snprintf(name, sizeof(names[0]), "%s_%s", ways[way], what);
	return name;
}

static void vectors__keys_of_the_session(void **state)
{
	for (int way = 0; way < 2; way++) {
		const uint8_t *key = row_of(ways[way], 32)->bytes;
		uint8_t out[16];

		assert_true(sw_hkdf_expand(key, "sumwire tag", out, 16));
		assert_row(name_of(way, "tag_key"), out, 16);
		assert_true(sw_hkdf_expand(key, "sumwire hash", out, 16));
		assert_row(name_of(way, "hash_key"), out, 16);
		assert_true(sw_hkdf_expand(key, "sumwire encrypt", out, 16));
		assert_row(name_of(way, "cipher_key"), out, 16);
	}
}

static void vectors__keys_of_eras(void **state)
{
	static const uint32_t eras[] = {1, 2, 0x12345678, 1};
	const uint8_t nonce[SW_BLOCK_BYTES] = {7};
	struct sw_era_keys keys = {0};

	assert_true(sw_era_keys_open(
		&keys, row_of("to_server_cipher_key", 16)->bytes));
	for (int i = 0; i < 4; i++) {
		uint8_t got[32] = {0}, want[32] = {0};
		struct sw_ctr ctr;
		char name[32];

		snprintf(name, sizeof(name), "era_%u_key", eras[i]);
		assert_true(sw_ctr_open(&ctr, row_of(name, 16)->bytes));
		sw_ctr(&ctr, nonce, want, sizeof(want), want);
		sw_ctr(sw_era_key(&keys, eras[i]), nonce, got, sizeof(got),
			got);
		assert_memory_equal(got, want, sizeof(got));
		sw_ctr_close(&ctr);
	}
	assert_true(sw_era_key(&keys, 0) == &keys.first);
	sw_era_keys_close(&keys);
}

/* A frame carries the era's low 4 bits, which cover one era ahead and 14
 * behind. */
static void era__is_found_from_its_lowest_bits(void **state)
{
	for (uint32_t newest = 0; newest < 100; newest++)
		for (uint32_t era = newest < 14 ? 0 : newest - 14;
			era <= newest + 1; era++)
			assert_int_equal(sw_era_near(newest, era & 15), era);
}

/* Encrypt the @n bytes as a frame and as a result; compare with rows @i and @i
 * + 1. */
static void cipher_check(
	uint32_t i, int way, const uint8_t *payload, uint32_t n)
{
	uint8_t out[64], place[SW_NONCE_BYTES];
	struct sw_ctr ctr;

	for (uint32_t k = 0; k < sizeof(place); k++)
		place[k] = (uint8_t)(n + k);
	assert_true(sw_ctr_open(
		&ctr, row_of(name_of(way, "cipher_key"), 16)->bytes));
	assert_string_equal(rows[i].name, name_of(way, "cipher"));
	assert_int_equal(rows[i].n, n);
	sw_seal_crypt(
		&ctr, (uint8_t)(n % 9), (uint64_t)n << 30, payload, n, out);
	assert_memory_equal(out, rows[i].bytes, n);
	assert_string_equal(rows[i + 1].name, name_of(way, "result"));
	sw_seal_crypt_result(&ctr, place, payload, n, out);
	assert_memory_equal(out, rows[i + 1].bytes, n);
	sw_ctr_close(&ctr);
}

/* Check the tag of rows @i to @i + 3: payload_bytes, head, hash, tag. */
static void tag_check(uint32_t i, int way)
{
	static _Alignas(64) uint8_t payload[8192];
	uint8_t hash[16];
	struct sw_polyval_key key;
	struct sw_prf prf;
	uint32_t n;
	uint64_t tag;

	memcpy(&n, rows[i].bytes, sizeof(n));
	assert_true(n <= sizeof(payload));
	for (uint32_t k = 0; k < n; k++)
		payload[k] = (uint8_t)(n + (uint32_t)way + k);
	sw_polyval_prepare(&key, row_of(name_of(way, "hash_key"), 16)->bytes);
	sw_polyval(&key, payload, n, hash);
	assert_string_equal(rows[i + 2].name, name_of(way, "hash"));
	assert_memory_equal(hash, rows[i + 2].bytes, sizeof(hash));

	assert_int_equal(rows[i + 1].n, HEAD_BYTES);
	assert_true(
		sw_prf_open(&prf, row_of(name_of(way, "tag_key"), 16)->bytes));
	tag = seal_tag(&prf, rows[i + 1].bytes, (uint8_t)way, hash);
	sw_prf_close(&prf);
	assert_string_equal(rows[i + 3].name, name_of(way, "tag"));
	assert_memory_equal(&tag, rows[i + 3].bytes, sizeof(tag));
	if (n <= 64)
		cipher_check(i + 4, way, payload, n);
}

static void vectors__tags(void **state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 3 < n_rows; i++)
		if (!strcmp(rows[i].name, "payload_bytes"))
			tag_check(i, (int)(n++ % 2));
	assert_int_equal(n, 18);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors__keys_of_the_secret),
		cmocka_unit_test(vectors__handshake),
		cmocka_unit_test(vectors__keys_of_the_session),
		cmocka_unit_test(vectors__keys_of_eras),
		cmocka_unit_test(era__is_found_from_its_lowest_bits),
		cmocka_unit_test(vectors__tags),
	};
	void *root = argv[1];

	assert_int_equal(argc, 2);
	if (rows_read(&root))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
