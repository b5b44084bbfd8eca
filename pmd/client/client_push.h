/* client_push.h - libsumwire: push tensors that grow, for pmd/cuda.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A growing tensor is pushed before all its bytes are written. */
#ifndef SW_PMD_CLIENT_CLIENT_PUSH_H
#define SW_PMD_CLIENT_CLIENT_PUSH_H

#include "pmd/client/client.h"

/* sw_client_push - as sw_push_pull, or with @root, which is 1 + a rank, as
 * sw_broadcast, while the last @lacks bytes of @t are not written yet. */
int sw_client_push(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t lacks, uint64_t *handle);

/* sw_client_grow - tell the agent that all but the last @lacks bytes are
 * written; @lacks must decrease.  The push ends only after a call with 0.
 * Errors: the error that ended the attachment. */
int sw_client_grow(struct sw_client *c, struct sw_tensor *t, uint64_t lacks);

/* sw_client_is_summed - return whether the open call's result of this granule
 * (SW_GRANULE bytes) has arrived.  Thread: the caller of sw_client_push. */
bool sw_client_is_summed(const struct sw_tensor *t, uint32_t granule);

#endif
