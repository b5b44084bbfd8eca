/* admit.h - admit workers to a server, and their tensors and streams.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_ADMIT_H
#define SW_ENGINE_SERVER_ADMIT_H

#include "engine/server/server_int.h"

/* sw_admit_hello, sw_admit_join - handle a HELLO or a JOIN.  The caller has
 * checked the header. */
void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f);
void sw_admit_join(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_pending_drop - forget the JOIN at @i. */
void sw_pending_drop(struct sw_server *srv, uint32_t i);
/* sw_pending_confirm - make the worker behind the JOIN at @i a member, because
 * a frame with the offered id has arrived.  Returns NULL if the worker was
 * refused and told why, or if the job's memory is not ready. */
struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i);
/* sw_pending_build - build the ACCEPT for the JOIN at @i. */
void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out);
/* sw_pending_tick - run the timers of a JOIN; returns when to look again. */
uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i);

/* --- admit_declare.c --- */

/* sw_admit_declare - handle a DECLARE.  The caller has checked the frame by
 * itself. */
void sw_admit_declare(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_admit_aside - retry the DECLAREs that were put aside, if the time has
 * come.  Returns when to call again; UINT64_MAX: none is aside. */
uint64_t sw_admit_aside(struct sw_server *srv);

#endif
