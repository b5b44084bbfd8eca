/* host_open.h - open a host that listens.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_HOST_HOST_OPEN_H
#define SW_TEST_UNIT_HOST_HOST_OPEN_H

#include "pmd/host/attach.h"

static inline int rig_host_open(
	const struct sw_host_params *p, struct sw_host **out)
{
	int err = sw_host_open(p, out);

	if (err)
		return err;
	err = sw_host_listen(*out);
	if (err)
		sw_host_close(out);
	return err;
}

#endif
