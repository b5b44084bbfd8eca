/* bench_crc.c - CRC-32C kernels compared with ISA-L's, if it is installed.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <string.h>

#include "sum/bench_crc.h"

#define LIBRARY "libisal.so.2"

/* Compare a wider row with crc32_iscsi, which chooses for this CPU. Compare the
 * others with the function that it chooses without AVX-512. */
bool sw_isal_open(struct sw_isal *isal)
{
	isal->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!isal->library)
		return false;
	/* POSIX allows a data pointer to hold a function's address. */
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
