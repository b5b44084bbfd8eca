/* sized.c - structs of callers from an older or newer release.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/sized.h"

#include <stdio.h>
#include <string.h>

/* Forbid holes: a later release could put a field there, and an older caller's
 * hole holds arbitrary bytes. */
#pragma GCC diagnostic error "-Wpadded"
#include <sumwire/coll.h>

enum { LONGEST = 4096 }; /* a larger size is uninitialized memory */

static int refuse(char why[SW_SIZED_WHY_BYTES], const char *name, size_t size,
	const char *text)
{
	snprintf(why, SW_SIZED_WHY_BYTES, "struct %s of size %zu: %s", name,
		size, text);
	return SW_EINVAL;
}

int sw_sized_take(void *to, size_t bytes, const void *from, size_t first,
	const char *name, char why[SW_SIZED_WHY_BYTES])
{
	const unsigned char *p = from;
	size_t size;

	memcpy(&size, from, sizeof(size));
	if (size < first || size > LONGEST)
		return refuse(why, name, size, "set .size to its sizeof");
	for (size_t i = bytes; i < size; i++)
		if (p[i])
			return refuse(why, name, size,
				"it has something set that this libsumwire "
				"does "
				"not know; install that of its headers");
	sw_sized_give(to, bytes, from, size);
	return 0;
}

void sw_sized_give(void *to, size_t size, const void *from, size_t bytes)
{
	size_t common = size < bytes ? size : bytes;

	memcpy(to, from, common);
	memset((char *)to + common, 0, size - common);
}
