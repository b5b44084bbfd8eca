/* unit_handshake.c - the handshake follows Noise and refuses forgeries.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/keys/noise.h"
#include "test/unit/keys/hex.h"

static const char prologue[] = "sumwire 1 test prologue";

static void count_up(uint8_t out[32], uint8_t from)
{
	for (int i = 0; i < 32; i++)
		out[i] = (uint8_t)(from + i);
}

static void begin(struct sw_noise *s, bool is_worker)
{
	uint8_t secret[32], e[32];

	count_up(secret, 0x40);
	count_up(e, is_worker ? 0x01 : 0xa1);
	assert_true(sw_noise_init(s, prologue, strlen(prologue), secret, e));
}

/* The messages equal those of the Python package noiseprotocol 0.3.1. */
static void handshake__has_the_bytes_of_another_implementation(void **state)
{
	uint8_t one[65], two[62], text[32], keys[4][32];
	struct sw_noise worker, server;

	begin(&worker, true);
	begin(&server, false);
	assert_true(sw_noise_ask(&worker, "the first payload", 17, one));
	assert_hex_equal(one,
		"07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c"
		"7c645b71726b53423e667319f7220d0f92fa889ecfb5592e28fc60e02c0002"
		"c3bc17");
	assert_true(sw_noise_asked(&server, one, sizeof(one), text));
	assert_memory_equal(text, "the first payload", 17);
	assert_true(sw_noise_answer(&server, "and the second", 14, two));
	assert_hex_equal(two,
		"ad438bfae31f6c093d61d4339255ea798092c9fadd07b97827f4b0ae9dee7c"
		"1c30df519bae2b9e4340762c92f208cd6e33de2e3f0d32ea6b0dd7d4d4158"
		"e");
	assert_true(sw_noise_answered(&worker, two, sizeof(two), text));
	assert_memory_equal(text, "and the second", 14);
	assert_true(sw_noise_split(&worker, keys[0], keys[1]));
	assert_true(sw_noise_split(&server, keys[2], keys[3]));
	assert_memory_equal(keys[0], keys[2], 64);
	assert_hex_equal(keys[0], "4061cf6902a79f906ffefe3de096567d"
				  "e3ec6d8ef628bf714edf5c17fafdefdc");
	assert_hex_equal(keys[1], "56b80f714397d96f9ed816d54b6546f8"
				  "3b4475ba306d37e664974496cd869a28");
}

static void handshake__needs_the_secret_and_the_prologue(void **state)
{
	uint8_t one[65], text[32], secret[32], e[32];
	struct sw_noise worker, server;

	begin(&worker, true);
	assert_true(sw_noise_ask(&worker, "the first payload", 17, one));
	count_up(secret, 0x41);
	count_up(e, 0xa1);
	assert_true(
		sw_noise_init(&server, prologue, strlen(prologue), secret, e));
	assert_false(sw_noise_asked(&server, one, sizeof(one), text));
	count_up(secret, 0x40);
	assert_true(sw_noise_init(
		&server, prologue, strlen(prologue) - 1, secret, e));
	assert_false(sw_noise_asked(&server, one, sizeof(one), text));
	begin(&server, false);
	assert_false(sw_noise_asked(&server, one, 47, text));
}

/* A flip of any bit in either message is detected. */
static void handshake__refuses_each_flipped_bit(void **state)
{
	uint8_t one[65], two[62], text[32];
	struct sw_noise worker, server, copy;

	begin(&worker, true);
	begin(&server, false);
	assert_true(sw_noise_ask(&worker, "the first payload", 17, one));
	for (size_t i = 0; i < 8 * sizeof(one); i++) {
		copy = server;
		one[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(sw_noise_asked(&copy, one, sizeof(one), text));
		one[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_true(sw_noise_asked(&server, one, sizeof(one), text));
	assert_true(sw_noise_answer(&server, "and the second", 14, two));
	for (size_t i = 0; i < 8 * sizeof(two); i++) {
		copy = worker;
		two[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(sw_noise_answered(&copy, two, sizeof(two), text));
		two[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

/* The receiver of an ephemeral key of small order refuses it. */
static void handshake__refuses_a_key_of_small_order(void **state)
{
	uint8_t one[49] = {0}, two[48];
	struct sw_noise server;

	begin(&server, false);
	assert_false(sw_noise_asked(&server, one, sizeof(one), two));
	memset(server.far_e, 0, sizeof(server.far_e));
	assert_false(sw_noise_answer(&server, "", 0, two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			handshake__has_the_bytes_of_another_implementation),
		cmocka_unit_test(handshake__needs_the_secret_and_the_prologue),
		cmocka_unit_test(handshake__refuses_each_flipped_bit),
		cmocka_unit_test(handshake__refuses_a_key_of_small_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
