/* client_push.h - libsumwire: submit tensors.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_PUSH_H
#define SW_PMD_CLIENT_CLIENT_PUSH_H

#include "pmd/client/client.h"

/* sw_client_submit - submit @t, with the lock held; @root is 0 for a sum, else
 * 1 + the rank that broadcasts.
 * Errors: SW_EINVAL, SW_EBUSY, or the attachment is over. */
int sw_client_submit(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle);

#endif
