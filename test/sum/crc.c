/* crc.c - compare each CRC-32C kernel with its definition, bit by bit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sum/sum.h"
#include "test/sum/crc.h"

#include "test/sum/arena.h"
#include "test/sum/data.h"

enum {
	LONGEST = 20000,
	/* shorter lengths are tried at each place in a line */
	ALL_PLACES = 1500,
	LINE = 64,
	ROOM = LONGEST + 3 * LINE,
};

/* The CRC of each prefix of data[0 .. LONGEST), continued from START. */
struct truth {
	uint8_t data[LONGEST];
	uint32_t want[LONGEST + 1];
	uint8_t src[ROOM];
};

static const uint32_t START = 0x12345678;

/* Compute the CRCs bit by bit. */
static void truth_fill(struct truth *t)
{
	uint32_t crc = ~START;
	uint64_t seed = 1;

	for (size_t i = 0; i < LONGEST; i++) {
		t->data[i] = (uint8_t)random_u64(&seed);
		t->want[i] = ~crc;
		crc ^= t->data[i];
		for (int b = 0; b < 8; b++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	t->want[LONGEST] = ~crc;
}

static bool is_right(const struct sw_crc *crc, uint32_t got, uint32_t want,
	size_t n, const char *what)
{
	if (got != want)
		printf("# %s: CRC of %zu bytes, %s: 0x%08x, not 0x%08x\n",
			crc->name, n, what, got, want);
	return got == want;
}

/* Check all lengths with the source at @place in a line. */
static bool reads(const struct sw_crc *crc, struct truth *t, size_t place,
	size_t longest, size_t by)
{
	bool is_ok = true;

	memcpy(t->src + place, t->data, longest);
	for (size_t n = 0; is_ok && n <= longest; n += by)
		is_ok = is_right(crc, crc->crc(START, t->src + place, n),
				t->want[n], n, "read") &&
			is_right(crc, crc->far(START, t->src + place, n),
				t->want[n], n, "read from afar");
	return is_ok;
}

/* Place the data at both ends of a page whose neighbours are inaccessible. */
static bool ends(const struct sw_crc *crc, struct truth *t, size_t n)
{
	static const int places[] = {AT_START, AT_END};
	struct arena src;
	bool is_ok = true;

	if (arena_open(&src))
		return false;
	for (int i = 0; i < 2; i++) {
		const uint8_t *p = arena_place(&src, places[i], t->data, n);

		is_ok &= is_right(
			crc, crc->crc(START, p, n), t->want[n], n, "page");
		is_ok &= is_right(
			crc, crc->far(START, p, n), t->want[n], n, "page");
	}
	arena_close(&src);
	if (!is_ok)
		printf("# %s: %zu bytes at an end of a page\n", crc->name, n);
	return is_ok;
}

static bool row_is_right(
	const struct sw_crc *crc, struct truth *t, bool is_quick)
{
	size_t step = is_quick ? 7 : 1;
	bool is_ok = crc->crc(0, "123456789", 9) == 0xe3069283;

	for (size_t at = 0; is_ok && at < LINE; at += step)
		is_ok = reads(crc, t, at, ALL_PLACES, 1);
	for (size_t at = 0; is_ok && at < LINE; at += step * 9)
		is_ok = reads(crc, t, at, LONGEST, is_quick ? 61 : 1);
	for (size_t n = 0; is_ok && n <= 2900; n += n < 300 ? step : 97)
		is_ok = ends(crc, t, n);
	return is_ok;
}

/* Check the CRC function that callers use, and that a second call continues the
 * first one's CRC. */
bool crc_in_parts(void)
{
	uint8_t data[2500];
	uint64_t seed = 2;
	uint32_t whole;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)random_u64(&seed);
	whole = sw_crc32c(0, data, sizeof(data));
	for (size_t n = 0; n <= sizeof(data); n += 13) {
		uint32_t crc = sw_crc32c(0, data, n);

		if (sw_crc32c(crc, data + n, sizeof(data) - n) != whole)
			return false;
	}
	return sw_crc32c(0, "123456789", 9) == 0xe3069283;
}

bool crc_row_is_right(const struct sw_crc *crc, bool is_quick)
{
	struct truth *t = malloc(sizeof(*t));
	bool is_ok;

	if (!t)
		return false;
	truth_fill(t);
	is_ok = row_is_right(crc, t, is_quick);
	free(t);
	return is_ok;
}
