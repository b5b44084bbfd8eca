/* client_device.h - what a client does for pmd/cuda.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_DEVICE_H
#define SW_PMD_CLIENT_CLIENT_DEVICE_H

#include "pmd/client/client.h"

/* sw_client_say - a line to the caller's log. */
void sw_client_say(const struct sw_client *c, const char *line);

/* sw_client_near - what is declared and allocated from now on is to lie on NUMA
 * node @node; -1: where the agent likes. */
void sw_client_near(struct sw_client *c, int node);

/* sw_client_adopt - @part, whose functions are set, is one of @c: sw_close
 * closes it first.  sw_client_disown - it is none: when this returns none of
 * its functions is called. */
void sw_client_adopt(struct sw_client *c, struct sw_client_part *part);
void sw_client_disown(struct sw_client *c, struct sw_client_part *part);

/* sw_client_unpin - let all parts unpin the stages at @base.  The lock is
 * released meanwhile. */
void sw_client_unpin(struct sw_client *c, const void *base);

/* sw_client_close_parts - at the end. */
void sw_client_close_parts(struct sw_client *c);

/* sw_client_rest - sleep until the agent has something, sw_client_wake, or
 * @until_ns; not at all if *@has_mail, which is set before sw_client_wake, or
 * if more is summed of a growing tensor than when @n_summed, the caller's, was
 * written by the last one. */
void sw_client_rest(struct sw_client *c, const _Atomic bool *has_mail,
	uint32_t *n_summed, uint64_t until_ns);
void sw_client_wake(struct sw_client *c);

/* --- growing tensors: they are pushed before all of them is there --- */

/* sw_client_declare_growing - as sw_declare. */
int sw_client_declare_growing(struct sw_client *c,
	const struct sw_tensor_desc *descs, uint32_t n, struct sw_tensor **out);

/* sw_client_push - as sw_push_pull, or with @root, which is 1 + a rank, as
 * sw_broadcast, while the last @lacks bytes of @t are not written yet.
 * sw_client_grow - now that many are, less than before, at last none: else it
 * never ends.  Errors: why the attachment is over. */
int sw_client_push(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t lacks, uint64_t *handle);
int sw_client_grow(struct sw_client *c, struct sw_tensor *t, uint64_t lacks);

/* sw_client_is_summed - of the open call of @t, is this granule's result
 * there, SW_GRANULE bytes of it?  Thread: who called sw_client_push. */
bool sw_client_is_summed(const struct sw_tensor *t, uint32_t granule);

/* sw_client_serve - what the agent has said, and pieces that may go.  Returns
 * whether there was any, or why the attachment is over. */
int sw_client_serve(struct sw_client *c);

/* sw_client_find_device - of the collective with that handle, which is one of
 * @owner; NULL: it has ended.  Errors: SW_EINVAL there is no such handle. */
int sw_client_find_device(struct sw_client *c, uint64_t handle,
	const void *owner, struct sw_call_device **out);

/* sw_client_await_call - until the collective has ended, which is not reported,
 * or was by another thread.  Errors: SW_ETIMEDOUT, why the attachment ended. */
int sw_client_await_call(struct sw_client *c, uint64_t handle);

/* sw_group_name - of a group, for sentences; sw_coll_priority - of all
 * collectives of @kind. */
const char *sw_group_name(const struct sw_group *g);
uint32_t sw_coll_priority(enum sw_coll_kind kind);

/* sw_client_abort - as sw_group_abort, with the lock; another thread may close
 * @g meanwhile. */
int sw_client_abort(struct sw_group *g, const char *text);

/* sw_client_drop_device - abort the groups whose open collectives are of
 * @owner, which is not called for them any more. */
void sw_client_drop_device(struct sw_client *c, const void *owner);

/* sw_client_give_up - this process cannot go on, so the job ends at all ranks,
 * with @why; here with @err.  The agent and we add which rank it is. */
void sw_client_give_up(struct sw_client *c, int err, const char *why);

#endif
