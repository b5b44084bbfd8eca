/* tune_text.h - parse partition and credit.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_TUNE_TEXT_H
#define SW_APPS_LAB_TUNE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* sw_tune_bytes_parse - read @text as bytes with a unit.  Refuses a bare
 * number, because other schedulers count parameters or partitions.
 * @why  on error, the cause and the remedy; @size bytes
 * Errors: SW_EINVAL. */
int sw_tune_bytes_parse(
	const char *text, uint64_t *bytes, char *why, size_t size);

#endif
