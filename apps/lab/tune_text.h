/* tune_text.h - partition and credit as people write them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_TUNE_TEXT_H
#define SW_APPS_LAB_TUNE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* sw_tune_bytes_parse - @text as bytes, with a unit: other schedulers count
 * parameters or partitions, so a bare number is refused.
 * @why  on error what is wrong and what would be right; @size bytes
 * Errors: SW_EINVAL. */
int sw_tune_bytes_parse(
	const char *text, uint64_t *bytes, char *why, size_t size);

#endif
