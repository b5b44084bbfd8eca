/* sized.h - structs of callers, from older or newer releases.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_SIZED_H
#define SW_PMD_CLIENT_SIZED_H

#include <stddef.h>

enum { SW_SIZED_WHY_BYTES = 200 };

/* Bytes of a struct up to the end of @field. */
#define SW_UP_TO(type, field) \
	(offsetof(type, field) + sizeof(((type *)NULL)->field))

/* sw_sized_take - copy a caller's struct, which begins with its size.
 * @to, @bytes  this library's struct; fields beyond the caller's size become 0
 * @first    smallest valid size: the struct of the first release
 * @name     of the struct, for @why
 * @why  on error, a sentence
 * Errors: SW_EINVAL the size is invalid, or bytes beyond this library's struct
 * are not 0. */
int sw_sized_take(void *to, size_t bytes, const void *from, size_t first,
	const char *name, char why[SW_SIZED_WHY_BYTES]);

/* sw_sized_give - fill a caller's struct of @size, which may be longer or
 * shorter than @from of @bytes. */
void sw_sized_give(void *to, size_t size, const void *from, size_t bytes);

#endif
