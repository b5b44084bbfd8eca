/* bench_crc.c - the kernels of CRC-32C beside ISA-L's, where that is installed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <string.h>

#include "sum/bench_crc.h"

#define LIBRARY "libisal.so.2"

/* A wider row has crc32_iscsi beside it, which chooses for this CPU; the others
 * what it takes where there is no AVX-512. */
bool sw_isal_open(struct sw_isal *isal)
{
	isal->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!isal->library)
		return false;
	/* POSIX lets a function's address be kept in a pointer to data. */
	*(void **)&isal->best = dlsym(isal->library, "crc32_iscsi");
	*(void **)&isal->narrow = dlsym(isal->library, "crc32_iscsi_01");
	return isal->best && isal->narrow;
}

void sw_isal_close(struct sw_isal *isal)
{
	if (isal->library)
		dlclose(isal->library);
	isal->library = NULL;
}

sw_isal_fn *sw_isal_beside(const struct sw_isal *isal, const struct sw_crc *crc)
{
	if (crc == &sw_crc_scalar)
		return NULL;
	return strcmp(crc->name, "clmul512") ? isal->narrow : isal->best;
}
