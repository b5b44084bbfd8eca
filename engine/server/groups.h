/* groups.h - end tensors and groups, and close groups for members.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_GROUPS_H
#define SW_ENGINE_SERVER_GROUPS_H

#include "engine/server/server_int.h"

/* sw_group_end - fail the rounds of @g from @round on, for @why.  Owe END to
 * every member that has not closed the group; refuse later declarations. */
void sw_group_end(struct sw_job *job, struct sw_sgroup *g, uint32_t round,
	const struct sw_fault *why);
/* sw_job_close_left - close some groups, from job->close_at on, for members
 * that have left the job.  Returns whether all groups are done. */
bool sw_job_close_left(struct sw_job *job);
/* sw_group_awaits_closed - end @g, because member @who waits for member
 * @closed, which has closed the group. */
void sw_group_awaits_closed(
	struct sw_job *job, struct sw_sgroup *g, uint32_t who, uint32_t closed);
/* sw_session_differs - end the group, because the push @h differs from another
 * rank's push.  The fault names both ranks. */
void sw_session_differs(struct sw_session *s, const struct sw_header *h);
/* sw_session_check_call - end the group of stream @t if another rank calls a
 * different collective as number @number.  Returns false if @t is no stream, or
 * has ended. */
bool sw_session_check_call(
	struct sw_session *s, const struct sw_stensor *t, uint32_t number);
/* sw_group_on_end - handle END or CLOSE from a member. */
void sw_group_on_end(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);

#endif
