/* job.h - members and state of a job at a server; the coordinator's part.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_JOB_H
#define SW_ENGINE_SERVER_JOB_H

#include "engine/server/server_int.h"

struct sw_job *sw_job_find(struct sw_server *srv, const char *name);
/* sw_job_unused - return a free place for a job, or NULL. */
struct sw_job *sw_job_unused(struct sw_server *srv);
/* sw_job_is_ready - return whether memory for @join's job is ready; if not,
 * call again later.
 * sw_job_open - open the job, in the same turn in which its memory is ready.
 * NULL: no place or no memory. */
bool sw_job_is_ready(struct sw_server *srv, const struct sw_join *join);
struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join);

/* sw_join_place - return the fields of a JOIN that decide where chunks lie. */
struct sw_place_job sw_join_place(const struct sw_join *join);
/* sw_job_settle - set the job's payload to @payload, once for all.  Returns
 * false if @payload is invalid, or differs from the settled one.
 * sw_job_on_paths - handle PATHS. */
bool sw_job_settle(struct sw_job *job, uint32_t payload);
void sw_job_on_paths(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_job_enter - make the worker behind @s the member that @join names. */
void sw_job_enter(
	struct sw_job *job, struct sw_session *s, const struct sw_join *join);
/* sw_job_leave - end the session of a member that has died or left.  At the
 * coordinator, @why fails the job, unless a group has lost no member; NULL: the
 * member left without an error.  After its last session the job closes. */
void sw_job_leave(struct sw_session *s, const struct sw_fault *why);

/* sw_job_close - free a job without members, some of it in later turns. */
void sw_job_close(struct sw_job *job);
/* sw_jobs_end - free some state of members and jobs that have ended.  Call
 * while srv->is_ending; returns whether more is left. */
bool sw_jobs_end(struct sw_server *srv);
/* sw_job_status - fill *out with the state for @member. */
void sw_job_status(
	const struct sw_job *job, uint16_t member, struct sw_status *out);

/* sw_job_note_refused - note that the server refused a worker for which a
 * FORMING job may wait. */
void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why);

/* sw_member_text - name @member for a log line: "ranks 4-7 (node gpu1)". */
const char *sw_member_text(
	const struct sw_job *job, uint32_t member, char out[SW_MEMBER_TEXT]);

/* sw_member_gone - return the fault that @member has left (SW_FAULT_GONE) or
 * fell silent (SW_FAULT_SILENT; the caller adds the duration). */
struct sw_fault sw_member_gone(
	const struct sw_job *job, uint32_t member, enum sw_fault_kind kind);

/* sw_job_tell_waiting - log the members that FORMING jobs wait for, with
 * growing pauses.  Call at wait_at_ns. */
void sw_job_tell_waiting(struct sw_server *srv);

/* sw_job_tune - handle a member's TUNE, which replaces its earlier TUNE.  When
 * all members know the last state, number the TUNE and tell all members.
 * sw_job_on_acked - number the next TUNE if all members know the last state.
 * Call when a member has acknowledged a message. */
void sw_job_tune(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
void sw_job_on_acked(struct sw_job *job);

#endif
