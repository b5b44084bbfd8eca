/* bytes.h - little-endian loads and stores at any alignment.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_BYTES_H
#define SW_ENGINE_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

/* The wire is little-endian, as is every supported machine. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian only");

static inline uint32_t sw_load32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void sw_store32(void *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

#define SW_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t sw_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t sw_max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
