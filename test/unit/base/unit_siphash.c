/* unit_siphash.c - SipHash-2-4: the authors' vectors, and properties.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/base/siphash.h"
#include "test/support/env.h"

/* The authors' vectors with key 00 … 0f and message 00 01 02 …, where the
 * message is a whole number of words. */
static void siphash__vectors(void **state)
{
	static const uint64_t key[2] = {
		0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
	static const uint64_t words[2] = {
		0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};

	assert_true(sw_siphash(key, words, 0) == 0x726fdb47dd0e0e31ULL);
	assert_true(sw_siphash(key, words, 1) == 0x93f5f5799a932462ULL);
	assert_true(sw_siphash(key, words, 2) == 0x3f2acc7f57c29bdbULL);
}

/* A changed bit of key or message changes about half of the tag. */
static void siphash__avalanche(void **state)
{
	uint64_t rng = 5, in[5], min = 64, max = 0;

	for (int i = 0; i < 5; i++)
		in[i] = test_random(&rng);
	for (uint32_t bit = 0; bit < 320; bit++) {
		uint64_t before = sw_siphash(in, in + 2, 3), n;

		in[bit / 64] ^= 1ULL << bit % 64;
		n = (uint64_t)__builtin_popcountll(
			before ^ sw_siphash(in, in + 2, 3));
		min = n < min ? n : min;
		max = n > max ? n : max;
		in[bit / 64] ^= 1ULL << bit % 64;
	}
	assert_in_range(min, 12, 30);
	assert_in_range(max, 34, 52);
}

static void siphash__length_counts(void **state)
{
	static const uint64_t key[2] = {1, 2}, zeros[8] = {0};

	for (uint32_t a = 0; a < 8; a++)
		for (uint32_t b = 0; b < a; b++)
			assert_true(sw_siphash(key, zeros, a) !=
				    sw_siphash(key, zeros, b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash__vectors),
		cmocka_unit_test(siphash__avalanche),
		cmocka_unit_test(siphash__length_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
