/* numa_rig.h - where the kernel takes a page from.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_HOST_NUMA_RIG_H
#define SW_TEST_UNIT_HOST_NUMA_RIG_H

#include "test/support/unit.h"

#include <errno.h>
#include <numaif.h>

/* By a container's filter of system calls. */
static inline void rig_skip_if_forbidden(void)
{
	if (get_mempolicy(NULL, NULL, 0, NULL, 0)) {
		assert_true(errno == EPERM || errno == ENOSYS);
		print_message("SKIP: get_mempolicy is forbidden here\n");
		skip();
	}
}

/* The nodes (bits) that the page at @p is to come from; 0: any. */
static inline unsigned long rig_nodes_of(const void *p)
{
	unsigned long mask = 0;
	int mode;

	assert_int_equal(
		get_mempolicy(&mode, &mask, 64, (void *)p, MPOL_F_ADDR), 0);
	return mode == MPOL_PREFERRED ? mask : 0;
}

#endif
