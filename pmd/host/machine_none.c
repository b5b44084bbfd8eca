/* machine_none.c - replaces machine.c in a build without hwloc.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/machine.h"

#include <stdio.h>

#include "engine/base/error.h"

int sw_machine_read(
	struct sw_machine *m, const char *xml, char *why, size_t size)
{
	(void)m;
	(void)xml;
	snprintf(why, size,
		"this sumwire was built without hwloc (Debian: libhwloc-dev), "
		"so a machine has to be described: --bare --conf FILE");
	return SW_ENOENT;
}
