/* client_coll.h - libsumwire: begin a collective.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_COLL_H
#define SW_PMD_CLIENT_CLIENT_COLL_H

#include "pmd/client/client_group.h"

/* sw_client_ready - open the stream and the stages for a collective of a
 * device.  Call before sw_client_coll, with the lock held.  Sets *@base and
 * *@bytes to the memory to pin; 0 bytes: none.  Errors: as for sw_client_coll.
 */
int sw_client_ready(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, void **base, uint64_t *bytes);

/* sw_client_coll - as sw_coll, with the lock of @c held.  @device copies the
 * buffers; NULL: the buffers are in host memory.
 * Errors: SW_EINVAL @g is of another client, and those of sw_coll. */
int sw_client_coll(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, struct sw_call_device *device,
	uint64_t *handle);

#endif
