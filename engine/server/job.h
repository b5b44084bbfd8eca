/* job.h - members and state of a job; the coordinator's part.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_JOB_H
#define SW_JOB_H

#include "engine/server/server_int.h"

struct sw_job *sw_job_find(struct sw_server *srv, const char *name);
/* sw_job_unused - a place for one more, or NULL. */
struct sw_job *sw_job_unused(struct sw_server *srv);
struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join);

/* sw_join_place - the facts in a JOIN that decide where chunks lie. */
struct sw_place_job sw_join_place(const struct sw_join *join);
/* sw_job_enter - the worker behind @s is the member of @join's rank. */
void sw_job_enter(struct sw_server *srv, struct sw_job *job,
	struct sw_session *s, const struct sw_join *join);
/* sw_job_leave - a member is gone; err != 0 fails the job of a coordinator;
 * the last one closes the job. */
void sw_job_leave(struct sw_server *srv, struct sw_job *job, uint16_t rank,
	int err, const char *text);
/* sw_job_left - one of @members that has left without an error (of any other
 * the coordinator says why, if it ends the job), SW_MAX_MEMBERS when none. */
uint32_t sw_job_left(const struct sw_job *job, uint64_t members);
void sw_job_close(struct sw_server *srv, struct sw_job *job);
/* sw_job_announce - something changed: every member is told until it has
 * acknowledged it. */
void sw_job_announce(struct sw_server *srv, struct sw_job *job);
/* sw_job_status - the state as member @rank is told it. */
void sw_job_status(
	const struct sw_job *job, uint16_t rank, struct sw_status *out);

/* sw_job_note_refused - a worker that the job may wait for was refused. */
void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why);

/* job_wait.c: whom a job that forms waits for */
/* sw_job_describe - what is known of those that are missing, and the addresses
 * of those that are here; cut to @size. */
void sw_job_describe(const struct sw_job *job, char *text, size_t size);
/* sw_job_wait - it forms from now on; sw_job_tell_waiting - say so in the log,
 * ever more seldom; called when now_ns has come to wait_at_ns. */
void sw_job_wait(struct sw_server *srv, struct sw_job *job);
void sw_job_tell_waiting(struct sw_server *srv);

/* job_tuning.c: the coordinator's part of tuning.h */
/* sw_job_tune - a member asks for other tuning: they are numbered once, and all
 * are told. */
void sw_job_tune(
	struct sw_server *srv, struct sw_session *s, const uint8_t *payload);

#endif
