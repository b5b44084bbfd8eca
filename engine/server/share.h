/* share.h - divide a server among jobs.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_SHARE_H
#define SW_ENGINE_SERVER_SHARE_H

#include "engine/server/server_int.h"

/* sw_share_open - set the share of a new job, by its name. */
void sw_share_open(struct sw_job *job, const char *name);
/* sw_share_take - take @need bytes of the server's quota and of the job's.  If
 * a quota is too small, returns false with the reason in @text. */
bool sw_share_take(struct sw_job *job, uint64_t need, char text[SW_TEXT_MAX]);
/* sw_share_give - return @bytes to both quotas. */
void sw_share_give(struct sw_job *job, uint64_t bytes);
/* sw_share_tick - find the active jobs, and divide the windows among them;
 * returns when to call again. */
uint64_t sw_share_tick(struct sw_server *srv);

/* sw_places_note - call after a session or JOIN has taken or left index @i:
 * update n_sessions, the bound of all loops over indices.
 * sw_sessions_note - do so for a session; count the open sessions, and divide
 * the grants again. */
void sw_places_note(struct sw_server *srv, uint32_t i);
void sw_sessions_note(struct sw_server *srv, uint32_t i);

/* sw_share_drop - drop the memory and quota reserved for a batch in
 * preparation.  Call when the batch will not be declared again. */
void sw_share_drop(struct sw_job *job);

#endif
