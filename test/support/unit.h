/* unit.h - the includes and helpers of every unit test.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_UNIT_H
#define SW_TEST_SUPPORT_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "engine/base/bytes.h"
#include "engine/base/error.h"

#define ASSERT_TEXT(actual, expected) assert_string_equal(actual, expected)

/* Fail with both texts unless @text contains @part. */
static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

#endif
