/* share.h - what each job gets of a server: memory, and a share under load.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SHARE_H
#define SW_SHARE_H

#include "engine/server/server_int.h"

struct sw_share sw_share_of(const struct sw_server *srv, const char *job);
/* sw_share_check - are @need bytes left of the server's quota and of the job's?
 * Else @text says what is missing. */
bool sw_share_check(const struct sw_server *srv, const struct sw_job *job,
	uint64_t need, char text[SW_TEXT_MAX]);
/* sw_share_take - they are this lcore's.  False: another one took them since
 * they were there; then the worker asks again, and the check says no. */
bool sw_share_take(struct sw_server *srv, struct sw_job *job, uint64_t need);
/* sw_share_give - they come back. */
void sw_share_give(struct sw_server *srv, struct sw_job *job, uint64_t bytes);
/* sw_share_tick - look who is active and divide the windows; returns when to
 * look again. */
uint64_t sw_share_tick(struct sw_server *srv);

/* sw_share_drop - the batch whose memory is being prepared for the job will not
 * be declared again: its memory and its part of the quotas go back. */
void sw_share_drop(struct sw_server *srv, struct sw_job *job);

#endif
