/* groups.h - tensors and groups end, and groups are closed.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_GROUPS_H
#define SW_ENGINE_SERVER_GROUPS_H

#include "engine/server/server_int.h"

/* sw_group_end - fail rounds of @g from @round on for @why.  Every member that
 * has not closed it is owed END; later declarations are refused. */
void sw_group_end(struct sw_job *job, struct sw_sgroup *g, uint32_t round,
	const struct sw_fault *why);
/* sw_job_close_left - close some groups, from job->close_at on, for members
 * that have left the job.  Returns whether all are done. */
bool sw_job_close_left(struct sw_job *job);
/* sw_group_awaits_closed - end @g: member @who waits for member @closed, which
 * has closed it. */
void sw_group_awaits_closed(
	struct sw_job *job, struct sw_sgroup *g, uint32_t who, uint32_t closed);
/* sw_session_differs - end the group: the push @h differs from another rank's.
 * The fault names both ranks. */
void sw_session_differs(struct sw_session *s, const struct sw_header *h);
/* sw_session_check_call - end the group of stream @t if another rank calls
 * another kind as its number @number.  Returns false if @t is no stream, or has
 * ended. */
bool sw_session_check_call(
	struct sw_session *s, const struct sw_stensor *t, uint32_t number);
/* sw_group_on_end - handle END or CLOSE from a member. */
void sw_group_on_end(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);

#endif
