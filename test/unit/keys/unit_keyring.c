/* unit_keyring.c - find secrets by id, and check their job and time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/keys/keyring.h"
#include "test/unit/keys/hex.h"

/* Computed by hmac.new(bytes(range(32)), b"sumwire key id\x01", "sha256") in
 * Python. */
static void secret__has_the_id_of_its_bytes(void **state)
{
	uint8_t bytes[32];
	struct sw_secret s;

	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_true(sw_secret_init(&s, bytes));
	assert_memory_equal(s.bytes, bytes, sizeof(bytes));
	assert_hex_equal(s.id, "86b9bfd5fa83ed91");
}

static void keyring__knows_jobs_and_times(void **state)
{
	struct sw_keyring_entry entries[] = {
		{.job = "a"}, {.job = ""}, {.job = "a", .until_ns = 10}};
	struct sw_keyring k = {.entries = entries, .n = 3};
	uint8_t bytes[32] = {0};
	struct sw_secret other;

	for (uint8_t i = 0; i < 3; i++) {
		bytes[0] = i;
		assert_true(sw_secret_init(&entries[i].secret, bytes));
	}
	bytes[0] = 3;
	assert_true(sw_secret_init(&other, bytes));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(sw_keyring_find(&k, entries[i].secret.id),
			&entries[i].secret);
	assert_null(sw_keyring_find(&k, other.id));
	assert_null(sw_keyring_find(NULL, other.id));
	assert_true(sw_keyring_has(&k, &entries[0].secret, "a", 5));
	assert_false(sw_keyring_has(&k, &entries[0].secret, "b", 5));
	assert_true(sw_keyring_has(&k, &entries[1].secret, "b", 5));
	assert_false(sw_keyring_has(&k, &entries[1].secret, "a", 5));
	assert_true(sw_keyring_has(&k, &entries[2].secret, "a", 9));
	assert_false(sw_keyring_has(&k, &entries[2].secret, "a", 10));
	assert_false(sw_keyring_has(&k, &other, "a", 5));
	assert_true(sw_keyring_has_job(&k, "a"));
	assert_false(sw_keyring_has_job(&k, "b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret__has_the_id_of_its_bytes),
		cmocka_unit_test(keyring__knows_jobs_and_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
