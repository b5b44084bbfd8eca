/* hex.h - bytes as hexadecimal text.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_KEYS_HEX_H
#define SW_TEST_UNIT_KEYS_HEX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Read hexadecimal digits; return the number of bytes. */
static inline size_t from_hex(uint8_t *out, const char *hex)
{
	size_t n = 0;
	unsigned byte;

	for (; *hex && sscanf(hex, "%2x", &byte) == 1; hex += 2)
		out[n++] = (uint8_t)byte;
	return n;
}

#define assert_hex_equal(bytes, hex)                   \
	do {                                           \
		uint8_t want_[512];                    \
		size_t n_ = from_hex(want_, hex);      \
		assert_memory_equal(bytes, want_, n_); \
	} while (0)

#endif
