/* dl.c - make dlopen load another library than the requested one.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/dl.h"

#include <dlfcn.h>

const char *dl_instead, *dl_found;

void *__real_dlopen(const char *file, int mode);
void *__wrap_dlopen(const char *file, int mode);

void *__wrap_dlopen(const char *file, int mode)
{
	if (dl_found && !(mode & RTLD_NOLOAD))
		file = dl_found;
	return __real_dlopen(dl_instead ? dl_instead : file, mode);
}
