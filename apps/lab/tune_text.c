/* tune_text.c - parse partition and credit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/tune_text.h"

#include <stdio.h>
#include <string.h>

#include "conf/value.h"
#include "engine/base/error.h"

int sw_tune_bytes_parse(
	const char *text, uint64_t *bytes, char *why, size_t size)
{
	const char *end = text + strspn(text, "0123456789.");
	uint64_t n;

	if (end > text && !*end && strcmp(text, "0")) {
		if (sw_value_parse(text, SW_UNIT_BYTES, &n, why, size))
			return SW_EINVAL;
		snprintf(why, size,
			"\"%s\" has no unit: partition and credit are bytes; "
			"write %sB, or %lluB if it counts f32 parameters",
			text, text, (unsigned long long)(4 * n));
		return SW_EINVAL;
	}
	if (sw_value_parse(text, SW_UNIT_BYTES, &n, why, size)) {
		size_t len = strlen(why);

		snprintf(why + len, size - len,
			"; partition and credit are bytes, such as 4MiB");
		return SW_EINVAL;
	}
	if (n < 1024 || n > UINT64_C(1) << 36) {
		snprintf(why, size,
			"\"%s\" is out of range: 1KiB to 64GiB (bytes, not "
			"partitions)",
			text);
		return SW_EINVAL;
	}
	*bytes = n;
	return 0;
}
