/* client_device.h - libsumwire: the functions that pmd/cuda needs of a client.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_DEVICE_H
#define SW_PMD_CLIENT_CLIENT_DEVICE_H

#include "pmd/client/client.h"

/* sw_client_say - write a line to the caller's log. */
void sw_client_say(const struct sw_client *c, const char *line);

/* sw_client_near - place memory that is declared or allocated from now on at
 * NUMA node @node; -1: where the agent likes. */
void sw_client_near(struct sw_client *c, int node);

/* sw_client_give_up - end the job at all ranks with @why, because this process
 * cannot continue; here it ends with @err.  The agent and the client add the
 * rank to the sentence. */
void sw_client_give_up(struct sw_client *c, int err, const char *why);

/* sw_client_note_now - note for a trace that the call of @handle has done @kind
 * since @from_ns, or, with SW_EDGE_READY, was ready then.  Takes the lock. Does
 * nothing unless a trace is recorded. */
void sw_client_note_now(struct sw_client *c, enum sw_edge_note_kind kind,
	uint64_t handle, uint64_t from_ns, uint64_t bytes);

/* sw_client_adopt - make @part, whose functions are set, a part of @c, which
 * sw_close closes first. */
void sw_client_adopt(struct sw_client *c, struct sw_client_part *part);

/* sw_client_disown - undo sw_client_adopt.  When this returns, none of the
 * part's functions runs. */
void sw_client_disown(struct sw_client *c, struct sw_client_part *part);

/* sw_client_close_parts - close all parts, when the client is closed. */
void sw_client_close_parts(struct sw_client *c);

/* --- the thread of a device --- */

/* sw_client_rest - sleep until the agent has something, sw_client_wake, or
 * @until_ns.  Returns at once if *@has_mail, which is set before
 * sw_client_wake, or if more of a growing tensor is summed than when the last
 * call wrote *@n_summed. */
void sw_client_rest(struct sw_client *c, const _Atomic bool *has_mail,
	uint32_t *n_summed, uint64_t until_ns);
void sw_client_wake(struct sw_client *c);

/* sw_client_serve - receive completions, and put and copy pieces.  Returns
 * whether there were any, or why the attachment is over. */
int sw_client_serve(struct sw_client *c);

/* sw_client_declare_growing - as sw_declare, for tensors that are pushed before
 * all of them is written (client_push.h). */
int sw_client_declare_growing(struct sw_client *c,
	const struct sw_tensor_desc *descs, uint32_t n, struct sw_tensor **out);

/* --- collectives of a device --- */

/* sw_client_find_device - find the device of the open collective of @handle,
 * which is one of @owner; NULL if the collective has ended.
 * Errors: SW_EINVAL there is no such handle. */
int sw_client_find_device(struct sw_client *c, uint64_t handle,
	const void *owner, struct sw_call_device **out);

/* sw_client_await_call - wait until the collective has ended; it stays
 * unreported, or another thread has reported it.
 * Errors: SW_ETIMEDOUT, why the attachment ended. */
int sw_client_await_call(struct sw_client *c, uint64_t handle);

/* sw_client_drop_device - abort the groups that have open collectives of
 * @owner, and call its functions for none of them again. */
void sw_client_drop_device(struct sw_client *c, const void *owner);

#endif
