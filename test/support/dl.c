/* dl.c - libraries that are missing, or lack a function.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/dl.h"

#include <dlfcn.h>
#include <string.h>

bool dl_is_missing;
const char *dl_lacked;

void *__real_dlopen(const char *file, int mode);
void *__wrap_dlopen(const char *file, int mode);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

void *__wrap_dlopen(const char *file, int mode)
{
	return __real_dlopen(dl_is_missing ? "libnone.so.0" : file, mode);
}

void *__wrap_dlsym(void *handle, const char *name)
{
	if (dl_lacked && !strcmp(name, dl_lacked))
		return NULL;
	return __real_dlsym(handle, name);
}
