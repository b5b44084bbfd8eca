/* lapack.c - the three functions of LAPACK that the tuner calls.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/tuner/lapack.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "liblapacke.so.3"

const char *sw_lapack_open(struct sw_lapack *l)
{
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
		{"LAPACKE_dpotrf", offsetof(struct sw_lapack, dpotrf)},
		{"LAPACKE_dpotrs", offsetof(struct sw_lapack, dpotrs)},
		{"LAPACKE_dtrtrs", offsetof(struct sw_lapack, dtrtrs)},
	};

	*l = (struct sw_lapack){.library = dlopen(LIBRARY, RTLD_NOW)};
	if (!l->library)
		return dlerror();
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *f = dlsym(l->library, functions[i].name);

		if (!f) {
			sw_lapack_close(l);
			return LIBRARY " lacks LAPACKE_dpotrf, LAPACKE_dpotrs "
				       "or LAPACKE_dtrtrs";
		}
		memcpy((char *)l + functions[i].offset, &f, sizeof(f));
	}
	return NULL;
}

void sw_lapack_close(struct sw_lapack *l)
{
	if (l->library)
		dlclose(l->library);
	*l = (struct sw_lapack){0};
}
