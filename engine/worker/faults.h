/* faults.h - faults that end tensors, groups and the job, and their reports.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_FAULTS_H
#define SW_ENGINE_WORKER_FAULTS_H

#include "engine/worker/link.h"

/* sw_worker_end - note that the worker leaves, for the fault @why, which LEAVE
 * carries. */
void sw_worker_end(struct sw_worker *w, const struct sw_fault *why);

/* sw_worker_fail_for - note that the job fails: every open push_pull ends with
 * the fault's error, and LEAVE tells the servers.
 * sw_worker_fail - the same, with @err and the sentence @fmt. */
void sw_worker_fail_for(struct sw_worker *w, const struct sw_fault *why);
void sw_worker_fail(struct sw_worker *w, int err, uint32_t key, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* sw_tensor_kill - note that the life of @t ends from @round on for @why: these
 * rounds of the tensor fail, or all streams of the group.  Tells the other
 * lanes and the servers. */
void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	const struct sw_fault *why);

/* sw_group_failed - tell the user if @err means that ranks of a group did not
 * call or called differently. */
void sw_group_failed(struct sw_worker *w, int err);

/* sw_stream_propose - ask the coordinator to end the group of stream @t.  The
 * coordinator may name another reason that arrived first; the group ends with
 * the reason that the coordinator sends. */
void sw_stream_propose(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_fault *why);

/* sw_stream_compare - if stream @t makes no progress, kill its group if local
 * ranks wait in another of its streams under the same number.  Returns whether
 * @t makes no progress; then QUERY asks the servers to compare (w->is_still).
 */
bool sw_stream_compare(struct sw_worker *w, struct sw_wtensor *t);

/* sw_link_declared - note that @l knows the first @n tensors.
 * sw_link_close - owe the server CLOSE of the group whose life lies in @slot.
 * sw_link_knows_closed - has the server acknowledged that CLOSE, or does it not
 * know the group? */
void sw_link_declared(struct sw_link *l, uint32_t n);
void sw_link_close(struct sw_link *l, const struct sw_wtensor *slot);
bool sw_link_knows_closed(
	const struct sw_link *l, const struct sw_wtensor *slot);

/* sw_link_on_end - handle END, in which a server reports the end of a tensor or
 * group. */
void sw_link_on_end(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);
/* sw_link_build_end - build the next END or CLOSE; returns 0 if none is due. */
uint32_t sw_link_build_end(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);

/* sw_lane_say - report a state or a line to the user; another lane does so
 * through lane 0. */
void sw_lane_say(struct sw_worker *w, int err, const char *text);

/* --- deaths.c: end work that needs ranks that have died or left --- */

/* sw_deaths_check_local - end the open round of @t if it needs a local rank
 * that has left or died.
 * sw_deaths_miss - the same; @t must be open and a local rank gone.
 * sw_deaths_work - check some of the tensors in w->lacking; returns the work
 * done. */
void sw_deaths_miss(struct sw_worker *w, struct sw_wtensor *t);
static inline void sw_deaths_check_local(
	struct sw_worker *w, struct sw_wtensor *t)
{
	if (t->is_open && w->deaths.n_gone)
		sw_deaths_miss(w, t);
}

uint32_t sw_deaths_work(struct sw_worker *w);

/* sw_deaths_learn - take the members that are gone from STATUS, and the reason
 * of the last one.
 * sw_deaths_check_members - end tensor @t, or the group of stream @t, if it
 * needs a gone member.  A stream needs its whole group; a tensor needs the
 * members @awaited, which servers have named. */
void sw_deaths_learn(struct sw_worker *w, const struct sw_status *st);
void sw_deaths_check_members(
	struct sw_worker *w, struct sw_wtensor *t, uint64_t awaited);
/* For asynchronous jobs, where a death ends only workers that wait for the dead
 * member:
 * sw_deaths_on_wait - fail the worker if the server of @l waits in @t for the
 * members @awaited, and one of these members is gone for so long that none of
 * its frames can arrive.  Any lane calls it.
 * sw_deaths_tick - note the members that are gone for so long. */
void sw_deaths_on_wait(struct sw_worker *w, const struct sw_link *l,
	const struct sw_wtensor *t, uint64_t awaited);
void sw_deaths_tick(struct sw_worker *w);

#endif
