/* numa_rig.h - the NUMA node from which the kernel takes a page.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_HOST_NUMA_RIG_H
#define SW_TEST_UNIT_HOST_NUMA_RIG_H

#include "test/support/unit.h"

#include <errno.h>
#include <numaif.h>

/* Skip the test if a container's system call filter forbids get_mempolicy. */
static inline void rig_skip_if_forbidden(void)
{
	if (get_mempolicy(NULL, NULL, 0, NULL, 0)) {
		assert_true(errno == EPERM || errno == ENOSYS);
		print_message("SKIP: get_mempolicy is forbidden here\n");
		skip();
	}
}

/* Return the preferred nodes of the page at @p as bits; 0: any node. */
static inline unsigned long rig_nodes_of(const void *p)
{
	unsigned long mask = 0;
	int mode;

	assert_int_equal(
		get_mempolicy(&mode, &mask, 64, (void *)p, MPOL_F_ADDR), 0);
	return mode == MPOL_PREFERRED ? mask : 0;
}

#endif
