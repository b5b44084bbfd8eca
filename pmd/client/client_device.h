/* client_device.h - libsumwire: the functions of a client for pmd/cuda.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_DEVICE_H
#define SW_PMD_CLIENT_CLIENT_DEVICE_H

#include "pmd/client/client.h"

/* sw_client_say - write a line to the caller's log. */
void sw_client_say(const struct sw_client *c, const char *line);

/* sw_client_near - place memory declared or allocated from now on at NUMA node
 * @node; -1: let the agent choose. */
void sw_client_near(struct sw_client *c, int node);

/* sw_client_give_up - end the job at all ranks with @why, and here with @err.
 * Call when this process cannot continue.  The agent and the client add the
 * rank to the sentence. */
void sw_client_give_up(struct sw_client *c, int err, const char *why);

/* sw_client_note_now - note for a trace that @kind of the call of @handle
 * lasted from @from_ns until now, or, with SW_EDGE_READY, that the call was
 * ready at @from_ns.  Takes the lock.  Does nothing unless a trace is recorded.
 */
void sw_client_note_now(struct sw_client *c, enum sw_edge_note_kind kind,
	uint64_t handle, uint64_t from_ns, uint64_t bytes);

/* sw_client_adopt - make @part, with its functions set, a part of @c: sw_close
 * closes the part before the client. */
void sw_client_adopt(struct sw_client *c, struct sw_client_part *part);

/* sw_client_disown - undo sw_client_adopt.  After the return, none of the
 * part's functions runs. */
void sw_client_disown(struct sw_client *c, struct sw_client_part *part);

/* sw_client_close_parts - close all parts.  Call when the client is closed. */
void sw_client_close_parts(struct sw_client *c);

/* --- the thread of a device --- */

/* sw_client_rest - sleep until the agent has a message, completion or sum,
 * until sw_client_wake, or until @until_ns.  Returns at once if *@has_mail,
 * which must be set before sw_client_wake, or if a growing tensor has new sums
 * since the last call wrote *@n_summed. */
void sw_client_rest(struct sw_client *c, const _Atomic bool *has_mail,
	uint32_t *n_summed, uint64_t until_ns);
void sw_client_wake(struct sw_client *c);

/* sw_client_serve - receive completions, and put and copy pieces.  Returns
 * whether there were any, or the error that ended the attachment. */
int sw_client_serve(struct sw_client *c);

/* sw_client_declare_growing - as sw_declare, for tensors that are pushed before
 * they are complete (client_push.h). */
int sw_client_declare_growing(struct sw_client *c,
	const struct sw_tensor_desc *descs, uint32_t n, struct sw_tensor **out);

/* --- collectives of a device --- */

/* sw_client_find_device - find the device of @owner's open collective of
 * @handle; NULL if the collective has ended.  Errors: SW_EINVAL no such handle.
 */
int sw_client_find_device(struct sw_client *c, uint64_t handle,
	const void *owner, struct sw_call_device **out);

/* sw_client_await_call - wait until the collective has ended.  Does not report
 * it; another thread may have.  Errors: SW_ETIMEDOUT, or the error that ended
 * the attachment. */
int sw_client_await_call(struct sw_client *c, uint64_t handle);

/* sw_client_drop_device - abort the groups that have open collectives of
 * @owner.  Afterwards the library calls its functions for none of these
 * collectives. */
void sw_client_drop_device(struct sw_client *c, const void *owner);

#endif
