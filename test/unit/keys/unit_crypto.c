/* unit_crypto.c - the primitives give the bytes of their RFCs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/keys/crypto.h"
#include "test/unit/keys/hex.h"

static const char cmac_key[] = "2b7e151628aed2a6abf7158809cf4f3c";
static const char message[] =
	"6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
	"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";

/* RFC 4493, section 4 */
static void cmac__has_the_vectors_of_rfc_4493(void **state)
{
	static const struct {
		size_t n;
		const char *mac;
	} rows[] = {{0, "bb1d6929e95937287fa37d129b756746"},
		{16, "070a16b46b4d4144f79bdd9dd04a287c"},
		{40, "dfa66747de9ae63030ca32611497c827"},
		{64, "51f0bebf7e3b9d92fc49741779363cfe"}};
	uint8_t key[16], m[64], mac[16];

	from_hex(key, cmac_key);
	from_hex(m, message);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(sw_cmac(key, m, rows[i].n, mac));
		assert_hex_equal(mac, rows[i].mac);
	}
}

/* NIST SP 800-38A, F.5.1 and F.5.2; also in place and for any part. */
static void ctr__has_the_vectors_of_nist_sp_800_38a(void **state)
{
	static const char cipher[] = "874d6191b620e3261bef6864990db6ce9806f66b7"
				     "970fdff8617187bb9fffdff"
				     "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2"
				     "fbe03d1792170a0f3009cee";
	uint8_t key[16], block[16], m[64], want[64], out[64];
	struct sw_ctr ctr;

	from_hex(key, cmac_key);
	from_hex(block, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
	from_hex(m, message);
	from_hex(want, cipher);
	assert_true(sw_ctr_open(&ctr, key));
	for (size_t n = 0; n <= sizeof(m); n++) {
		memset(out, 0, sizeof(out));
		sw_ctr(&ctr, block, m, n, out);
		assert_memory_equal(out, want, n);
		sw_ctr(&ctr, block, out, n, out);
		assert_memory_equal(out, m, n);
	}
	sw_ctr_close(&ctr);
}

/* The PRF continues its chain from one MAC to the next, which must not change
 * the MACs. */
static void prf__is_the_cmac_again_and_again(void **state)
{
	uint8_t key[16], m[SW_PRF_BYTES], mac[16], all[11][SW_PRF_BYTES];
	uint64_t tags[11];
	struct sw_prf prf;

	from_hex(key, cmac_key);
	assert_true(sw_prf_open(&prf, key));
	for (int i = 0; i < 5; i++) {
		uint64_t first;

		from_hex(m, message);
		m[i] ^= (uint8_t)i;
		assert_true(sw_cmac(key, m, sizeof(m), mac));
		memcpy(&first, mac, sizeof(first));
		for (uint32_t k = 0; k < 11; k++)
			memcpy(all[k], m, sizeof(m));
		all[10][0] ^= 1;
		sw_prf_tags(
			&prf, (const uint8_t(*)[SW_PRF_BYTES])all, 11, tags);
		for (uint32_t k = 0; k < 10; k++)
			assert_int_equal(tags[k], first);
		assert_int_not_equal(tags[10], first);
	}
	sw_prf_close(&prf);
	sw_prf_close(&prf); /* closing twice is allowed */
}

/* RFC 5869, A.1: the info is passed as text, and 32 of the 42 bytes are
 * compared. */
static void hkdf__has_the_vector_of_rfc_5869(void **state)
{
	uint8_t prk[32], out[32];

	from_hex(prk, "077709362c2e32df0ddc3f0dc47bba63"
		      "90b6c73bb50f9c3122ec844ad7c2b3e5");
	assert_true(sw_hkdf_expand(prk,
		"\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9", out, sizeof(out)));
	assert_hex_equal(out, "3cb25f25faacd57a90434f64d0362f2a"
			      "2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

static void gcm__opens_what_it_sealed_and_nothing_else(void **state)
{
	uint8_t key[32] = {1}, sealed[37], out[21];
	const char aad[] = "aad";

	assert_true(sw_gcm_seal(
		key, 7, aad, sizeof(aad), "twenty-one bytes long", 21, sealed));
	assert_true(sw_gcm_open(
		key, 7, aad, sizeof(aad), sealed, sizeof(sealed), out));
	assert_memory_equal(out, "twenty-one bytes long", 21);
	assert_false(sw_gcm_open(
		key, 8, aad, sizeof(aad), sealed, sizeof(sealed), out));
	assert_false(sw_gcm_open(key, 7, aad, 2, sealed, sizeof(sealed), out));
	assert_false(sw_gcm_open(key, 7, aad, sizeof(aad), sealed, 15, out));
	for (size_t i = 0; i < 8 * sizeof(sealed); i++) {
		sealed[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(sw_gcm_open(
			key, 7, aad, sizeof(aad), sealed, sizeof(sealed), out));
		sealed[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

/* With a public key of small order the shared secret would be known to
 * everybody. */
static void x25519__refuses_a_shared_secret_of_zero(void **state)
{
	uint8_t ours[32] = {3}, theirs[32] = {5}, public[32], other[32];
	uint8_t a[32], b[32], zero[32] = {0}, one[32] = {1};

	assert_true(sw_x25519_public(ours, public));
	assert_true(sw_x25519_public(theirs, other));
	assert_true(sw_x25519(ours, other, a));
	assert_true(sw_x25519(theirs, public, b));
	assert_memory_equal(a, b, sizeof(a));
	assert_false(sw_x25519(ours, zero, a));
	assert_false(sw_x25519(ours, one, a));
}

static void memory_for_secrets__is_zeroed(void **state)
{
	uint8_t *p = sw_crypto_get(100);

	assert_non_null(p);
	for (int i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	assert_true(sw_crypto_random(p, 100));
	sw_crypto_put(p, 100);
	sw_crypto_put(NULL, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cmac__has_the_vectors_of_rfc_4493),
		cmocka_unit_test(ctr__has_the_vectors_of_nist_sp_800_38a),
		cmocka_unit_test(prf__is_the_cmac_again_and_again),
		cmocka_unit_test(hkdf__has_the_vector_of_rfc_5869),
		cmocka_unit_test(gcm__opens_what_it_sealed_and_nothing_else),
		cmocka_unit_test(x25519__refuses_a_shared_secret_of_zero),
		cmocka_unit_test(memory_for_secrets__is_zeroed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
