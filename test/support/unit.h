/* unit.h - what every unit test starts with.
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

/* Does @text contain @part?  Shows both when it does not. */
static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

#endif
