/* aes.c - compare each AES kernel with its definition, byte by byte.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sum/aes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sum/arena.h"

enum { BLOCK = SW_AES_BLOCK, LONGEST = 1200, LINE = 64 };

/* --- FIPS 197 by the book --- */

static uint8_t doubled(uint8_t x)
{
	return (uint8_t)(x << 1 ^ (x >> 7) * 0x1b);
}

static uint8_t product(uint8_t a, uint8_t b)
{
	uint8_t sum = 0;

	for (; b; b >>= 1, a = doubled(a))
		if (b & 1)
			sum ^= a;
	return sum;
}

/* Apply the S-box; the inverse of x is x^254. */
static uint8_t substitute(uint8_t x)
{
	uint8_t inverse = 1, out = 0x63;

	for (int i = 0; i < 254; i++)
		inverse = product(inverse, x);
	for (int i = 0; i < 5; i++)
		out ^= (uint8_t)(inverse << i | inverse >> (8 - i));
	return out;
}

static void expand(const uint8_t key[BLOCK], uint8_t keys[SW_AES_KEYS][BLOCK])
{
	uint8_t *w = keys[0], constant = 1;

	memcpy(w, key, BLOCK);
	for (uint32_t i = BLOCK; i < SW_AES_KEYS * BLOCK; i += 4) {
		uint8_t word[4];

		memcpy(word, w + i - 4, 4);
		if (i % BLOCK == 0) {
			uint8_t first = word[0];

			for (int k = 0; k < 4; k++)
				word[k] =
					substitute(k < 3 ? word[k + 1] : first);
			word[0] ^= constant;
			constant = doubled(constant);
		}
		for (int k = 0; k < 4; k++)
			w[i + (uint32_t)k] =
				w[i + (uint32_t)k - BLOCK] ^ word[k];
	}
}

static void add(uint8_t s[BLOCK], const uint8_t *key)
{
	for (int i = 0; i < BLOCK; i++)
		s[i] ^= key[i];
}

static void encrypt(uint8_t keys[SW_AES_KEYS][BLOCK], uint8_t s[BLOCK])
{
	static uint8_t box[256];
	static bool has_box;

	for (int i = 0; i < 256 && !has_box; i++)
		box[i] = substitute((uint8_t)i);
	has_box = true;
	add(s, keys[0]);
	for (uint32_t r = 1; r < SW_AES_KEYS; r++) {
		uint8_t t[BLOCK];

		for (int i = 0; i < BLOCK; i++) /* rotate the rows */
			t[i] = box[s[(i + 4 * (i % 4)) % BLOCK]];
		for (int i = 0; i < BLOCK; i++) {
			const uint8_t *c = t + i / 4 * 4;
			uint8_t all = c[0] ^ c[1] ^ c[2] ^ c[3];

			s[i] = r == SW_AES_KEYS - 1
				       ? t[i]
				       : t[i] ^ all ^
						 doubled(t[i] ^ c[(i + 1) % 4]);
		}
		add(s, keys[r]);
	}
}

static void ctr(uint8_t keys[SW_AES_KEYS][BLOCK], const uint8_t *first,
	const uint8_t *p, size_t n, uint8_t *out)
{
	uint8_t block[BLOCK], s[BLOCK];

	memcpy(block, first, BLOCK);
	for (size_t i = 0; i < n; i++) {
		if (i % BLOCK == 0) {
			memcpy(s, block, BLOCK);
			encrypt(keys, s);
			for (int k = BLOCK - 1; !++block[k] && k > BLOCK - 4;)
				k--;
		}
		out[i] = p[i] ^ s[i % BLOCK];
	}
}

/* --- the checks --- */

static const uint8_t key[BLOCK] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2,
	0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};

bool aes_is_of_nist(void)
{
	static const uint8_t text[2 * BLOCK] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e,
		0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17,
		0x2a, 0xae, 0x2d, 0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c, 0x9e,
		0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51};
	static const uint8_t want[2 * BLOCK] = {0x87, 0x4d, 0x61, 0x91, 0xb6,
		0x20, 0xe3, 0x26, 0x1b, 0xef, 0x68, 0x64, 0x99, 0x0d, 0xb6,
		0xce, 0x98, 0x06, 0xf6, 0x6b, 0x79, 0x70, 0xfd, 0xff, 0x86,
		0x17, 0x18, 0x7b, 0xb9, 0xff, 0xfd, 0xff};
	uint8_t keys[SW_AES_KEYS][BLOCK], first[BLOCK], got[2 * BLOCK];

	for (int i = 0; i < BLOCK; i++)
		first[i] = (uint8_t)(0xf0 + i);
	expand(key, keys);
	ctr(keys, first, text, sizeof(text), got);
	return !memcmp(got, want, sizeof(want));
}

/* Compare the kernel's chain of every number of blocks, in one call and in
 * two. */
static bool chains(const struct sw_aes *aes)
{
	uint8_t keys[SW_AES_KEYS][BLOCK], text[9 * BLOCK], want[BLOCK] = {0};
	struct sw_aes_key prepared;
	bool is_ok = true;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 31);
	expand(key, keys);
	sw_aes_prepare(&prepared, key);
	for (size_t n = 0; n <= sizeof(text) / BLOCK; n++) {
		uint8_t got[BLOCK] = {0};

		aes->chain(&prepared, got, text, n / 2);
		aes->chain(&prepared, got, text + n / 2 * BLOCK, n - n / 2);
		is_ok &= !memcmp(got, want, BLOCK);
		if (n == sizeof(text) / BLOCK)
			break;
		add(want, text + n * BLOCK);
		encrypt(keys, want);
	}
	if (!is_ok)
		printf("# %s: a chain is wrong\n", aes->name);
	return is_ok;
}

/* Compare the kernel's MACs of up to 19 messages per call. */
static bool macs(const struct sw_aes *aes)
{
	enum { MOST = 19 };
	uint8_t keys[SW_AES_KEYS][BLOCK], last[BLOCK];
	uint8_t text[MOST * SW_AES_MESSAGE];
	uint64_t want[MOST], got[MOST + 1];
	struct sw_aes_key prepared;
	bool is_ok = true;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 151 + i / 64);
	for (int i = 0; i < BLOCK; i++)
		last[i] = (uint8_t)(i * 7 + 1);
	expand(key, keys);
	sw_aes_prepare(&prepared, key);
	for (uint32_t i = 0; i < MOST; i++) {
		uint8_t mac[BLOCK] = {0};

		for (uint32_t b = 0; b < SW_AES_MESSAGE; b += BLOCK) {
			add(mac, text + i * SW_AES_MESSAGE + b);
			if (b + BLOCK == SW_AES_MESSAGE)
				add(mac, last);
			encrypt(keys, mac);
		}
		memcpy(&want[i], mac, sizeof(want[i]));
	}
	for (uint32_t n = 0; n <= MOST; n++) {
		got[n] = 1;
		aes->macs(&prepared, last, text, n, got);
		is_ok &= !memcmp(got, want, n * sizeof(*got)) && got[n] == 1;
	}
	if (!is_ok)
		printf("# %s: a MAC is wrong\n", aes->name);
	return is_ok;
}

struct truth {
	struct sw_aes_key key;
	/* The low byte of this counter overflows within the text. */
	uint8_t first[BLOCK], text[LONGEST], want[LONGEST];
	uint8_t src[LONGEST + LINE], dst[LONGEST + 3 * LINE];
};

static void truth_fill(struct truth *t)
{
	uint8_t keys[SW_AES_KEYS][BLOCK];

	for (size_t i = 0; i < LONGEST; i++)
		t->text[i] = (uint8_t)(i * 73 + i / 256);
	memcpy(t->first, "a nonce of 12\0\xff\xf0", BLOCK);
	expand(key, keys);
	sw_aes_prepare(&t->key, key);
	ctr(keys, t->first, t->text, LONGEST, t->want);
}

static bool is_right(const struct sw_aes *aes, const struct truth *t,
	const uint8_t *got, size_t n, const char *what)
{
	if (!memcmp(got, t->want, n))
		return true;
	printf("# %s: %zu bytes, %s, are wrong\n", aes->name, n, what);
	return false;
}

/* Check that the kernel writes no byte outside the output. */
static bool writes(
	const struct sw_aes *aes, struct truth *t, size_t at, size_t n)
{
	uint8_t *out = t->dst + LINE + at;
	bool is_ok;

	memset(t->dst, CANARY, sizeof(t->dst));
	memcpy(t->src + at, t->text, n);
	aes->ctr(&t->key, t->first, t->src + at, n, out);
	is_ok = is_right(aes, t, out, n, "copied");
	for (size_t i = 0; i < LINE; i++)
		is_ok &= out[-1 - (ptrdiff_t)i] == CANARY &&
			 out[n + i] == CANARY;
	memcpy(out, t->text, n);
	aes->ctr(&t->key, t->first, out, n, out);
	return is_ok & is_right(aes, t, out, n, "in place");
}

/* Place the text at both ends of a page whose neighbours are inaccessible. */
static bool ends(const struct sw_aes *aes, struct truth *t, size_t n)
{
	static const int places[] = {AT_START, AT_END};
	struct arena src;
	bool is_ok = true;

	if (arena_open(&src))
		return false;
	for (int i = 0; i < 2; i++) {
		uint8_t *p = arena_place(&src, places[i], t->text, n);

		aes->ctr(&t->key, t->first, p, n, p);
		is_ok &= is_right(aes, t, p, n, "at an end of a page");
		is_ok &= arena_is_clean(&src, p, n);
		arena_wipe(&src);
	}
	arena_close(&src);
	return is_ok;
}

bool aes_row_is_right(const struct sw_aes *aes)
{
	struct truth *t =
		aligned_alloc(LINE, (sizeof(*t) + LINE - 1) / LINE * LINE);
	bool is_ok = true;

	if (!t)
		return false;
	truth_fill(t);
	for (size_t n = 0; n <= LONGEST; n++)
		is_ok &= writes(aes, t, n % 17, n);
	for (size_t n = 1; n <= 600; n += n < 140 ? 1 : 53)
		is_ok &= ends(aes, t, n);
	free(t);
	return is_ok & chains(aes) & macs(aes);
}
