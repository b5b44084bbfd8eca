/* polyval.c - compare each POLYVAL kernel with its definition, bit by bit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sum/polyval.h"

#include "test/sum/arena.h"
#include "test/sum/data.h"

enum {
	LONGEST = 20000,
	ALL_LENGTHS = 2200, /* try every length up to here */
	LINE = 64,
	BLOCK = SW_POLYVAL_BLOCK,
};

typedef unsigned __int128 poly;

/* The hash of each prefix of data[0 .. LONGEST). */
struct truth {
	struct sw_polyval_key key;
	uint8_t data[LONGEST], want[LONGEST + 1][BLOCK];
	uint8_t src[LONGEST + LINE];
};

/* Return a * b * x^-128: each step adds one bit's product and divides by x. */
static poly dot(poly a, poly b)
{
	const poly modulus = (poly)0xc200000000000000 << 64 | 1;
	poly sum = 0;

	for (int i = 0; i < 128; i++) {
		if (b >> i & 1)
			sum ^= a;
		sum = sum & 1 ? (sum ^ modulus) >> 1 | (poly)1 << 127
			      : sum >> 1;
	}
	return sum;
}

static poly block(const uint8_t *p, size_t n)
{
	poly x = 0;

	for (size_t i = 0; i < n; i++)
		x |= (poly)p[i] << 8 * i;
	return x;
}

static void truth_fill(struct truth *t, const struct sw_polyval *k)
{
	uint8_t bytes[BLOCK];
	uint64_t seed = 3;
	poly key, sum = 0;

	for (size_t i = 0; i < BLOCK; i++)
		bytes[i] = (uint8_t)random_u64(&seed);
	for (size_t i = 0; i < LONGEST; i++)
		t->data[i] = (uint8_t)random_u64(&seed);
	key = block(bytes, BLOCK);
	sw_polyval_prepare_for(&t->key, bytes, k);
	for (size_t n = 0; n <= LONGEST; n++) {
		size_t rest = n % BLOCK;
		poly last = sum;

		if (rest)
			last = dot(last ^ block(t->data + n - rest, rest), key);
		last = dot(last ^ (poly)(8 * n) << 64, key);
		for (size_t i = 0; i < BLOCK; i++)
			t->want[n][i] = (uint8_t)(last >> 8 * i);
		if (rest == BLOCK - 1 && n < LONGEST)
			sum = dot(sum ^ block(t->data + n - rest, BLOCK), key);
	}
}

static bool is_right(
	const struct truth *t, const uint8_t *got, size_t n, const char *what)
{
	if (!memcmp(got, t->want[n], BLOCK))
		return true;
	printf("# %s: hash of %zu bytes, %s, is wrong\n", t->key.kernel->name,
		n, what);
	return false;
}

/* Hash the bytes at @p with both functions; the address of the next input,
 * which sw_polyval_far gets, need not be valid. */
static bool hashes(
	const struct truth *t, const uint8_t *p, size_t n, const char *what)
{
	uint8_t got[BLOCK], far[BLOCK];

	sw_polyval(&t->key, p, n, got);
	sw_polyval_far(&t->key, p, n, n & 1 ? NULL : p + n, far);
	return is_right(t, got, n, what) && is_right(t, far, n, "far");
}

static bool reads(struct truth *t, size_t place, size_t n)
{
	memcpy(t->src + place, t->data, n);
	return hashes(t, t->src + place, n, "read");
}

/* Place the data at both ends of a page whose neighbours are inaccessible. */
static bool ends(const struct truth *t, size_t n)
{
	static const int places[] = {AT_START, AT_END};
	struct arena src;
	bool is_ok = true;

	if (arena_open(&src))
		return false;
	for (int i = 0; i < 2; i++)
		is_ok &= hashes(t, arena_place(&src, places[i], t->data, n), n,
			"at an end of a page");
	arena_close(&src);
	return is_ok;
}

/* The first vector of appendix C.1 that has a plaintext. */
static bool vector_is_right(const struct sw_polyval *k)
{
	static const uint8_t bytes[BLOCK] = {0xd9, 0xb3, 0x60, 0x27, 0x96, 0x94,
		0x94, 0x1a, 0xc5, 0xdb, 0xc6, 0x98, 0x7a, 0xda, 0x73, 0x77};
	static const uint8_t want[BLOCK] = {0xeb, 0x93, 0xb7, 0x74, 0x09, 0x62,
		0xc5, 0xe4, 0x9d, 0x2a, 0x90, 0xa7, 0xdc, 0x5c, 0xec, 0x74};
	static const uint8_t text[8] = {1};
	struct sw_polyval_key key;
	uint8_t got[BLOCK];

	sw_polyval_prepare_for(&key, bytes, k);
	sw_polyval(&key, text, sizeof(text), got);
	return !memcmp(got, want, BLOCK);
}

static bool row_is_right(struct truth *t, bool is_quick)
{
	size_t step = is_quick ? 7 : 1;
	bool is_ok = vector_is_right(t->key.kernel);

	for (size_t n = 0; is_ok && n <= ALL_LENGTHS; n++)
		for (size_t at = n % step; is_ok && at < LINE; at += 9 * step)
			is_ok = reads(t, at, n);
	for (size_t n = ALL_LENGTHS; is_ok && n <= LONGEST; n += 61 * step)
		is_ok = reads(t, n % LINE, n);
	for (size_t n = 0; is_ok && n <= 2900; n += n < 700 ? step : 97)
		is_ok = ends(t, n);
	return is_ok;
}

bool polyval_row_is_right(const struct sw_polyval *polyval, bool is_quick)
{
	struct truth *t =
		aligned_alloc(LINE, (sizeof(*t) + LINE - 1) / LINE * LINE);
	bool is_ok;

	if (!t)
		return false;
	truth_fill(t, polyval);
	is_ok = row_is_right(t, is_quick);
	free(t);
	return is_ok;
}

bool polyval_is_of_rfc(void)
{
	static const uint8_t key[BLOCK] = {0x25, 0x62, 0x93, 0x47, 0x58, 0x92,
		0x42, 0x76, 0x1d, 0x31, 0xf8, 0x26, 0xba, 0x4b, 0x75, 0x7b},
			     first[BLOCK] = {0x4f, 0x4f, 0x95, 0x66, 0x8c, 0x83,
				     0xdf, 0xb6, 0x40, 0x17, 0x62, 0xbb, 0x2d,
				     0x01, 0xa2, 0x62},
			     second[BLOCK] = {0xd1, 0xa2, 0x4d, 0xdd, 0x27,
				     0x21, 0xd0, 0x06, 0xbb, 0xe4, 0x5f, 0x20,
				     0xd3, 0xc9, 0xf3, 0x62},
			     want[BLOCK] = {0xf7, 0xa3, 0xb4, 0x7b, 0x84, 0x61,
				     0x19, 0xfa, 0xe5, 0xb7, 0x86, 0x6c, 0xf5,
				     0xe5, 0xb7, 0x7e};
	uint64_t h[2], x[2], sum[2];

	memcpy(h, key, BLOCK);
	memcpy(sum, first, BLOCK);
	sw_polyval_dot(sum, h);
	memcpy(x, second, BLOCK);
	sum[0] ^= x[0];
	sum[1] ^= x[1];
	sw_polyval_dot(sum, h);
	return !memcmp(sum, want, BLOCK);
}
