/* unit_stream.c - copy past the caches, or through them, at each level.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "sum/sum.h"

enum { ROOM = 1024 };

/* Copy at every place of source and destination within a line, with lengths
 * from 0 to some lines. Check the bytes and that no others are written. */
static void check(const struct sw_sum *sum)
{
	static _Alignas(64) uint8_t src[ROOM], dst[ROOM], want[ROOM];

	for (uint32_t i = 0; i < ROOM; i++)
		src[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
	for (uint32_t at = 0; at < 64; at++)
		for (uint32_t from = 0; from < 64; from += 7)
			for (uint32_t n = 0; n < 400; n += n < 140 ? 1 : 37) {
				memset(dst, 0xee, ROOM);
				memset(want, 0xee, ROOM);
				memcpy(want + 64 + at, src + from, n);
				sum->stream(dst + 64 + at, src + from, n);
				assert_memory_equal(dst, want, ROOM);
				memset(dst, 0xee, ROOM);
				sum->copy(dst + 64 + at, src + from, n);
				assert_memory_equal(dst, want, ROOM);
			}
}

static void stream__is_a_copy(void **state)
{
	const struct sw_sum *sum;
	bool runs;

	for (uint32_t i = 0; (sum = sw_sum_row(i, &runs)); i++)
		if (runs)
			check(sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream__is_a_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
