/* admit.h - who and what is let in: HELLO, JOIN, DECLARE.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ADMIT_H
#define SW_ADMIT_H

#include "engine/server/server_int.h"

/* Handlers of admit.c and admit_declare.c; the header has been checked. */
void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f,
	const uint8_t *payload);
void sw_admit_join(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const uint8_t *payload);
void sw_admit_declare(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload);
/* sw_admit_check - may it join now?  Else it was told why not. */
bool sw_admit_check(struct sw_server *srv, const struct sw_pending *p);
/* sw_admit_refuse - tell whoever is behind a JOIN that it cannot be let in.
 * Returns false. */
bool sw_admit_refuse(struct sw_server *srv, const struct sw_pending *p, int err,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* admit_pending.c */
/* sw_pending_put - keep the JOIN and offer a session; the same one again: offer
 * the same.  False: all places are taken by sessions. */
bool sw_pending_put(struct sw_server *srv, const struct sw_pending *p);
/* sw_pending_drop - forget the JOIN at @i. */
void sw_pending_drop(struct sw_server *srv, uint32_t i);
/* sw_pending_confirm - the worker behind the JOIN at @i has spoken under the id
 * that it was offered: it is a member from now on.  NULL: it cannot be any
 * more, as it was told. */
struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i);
/* sw_pending_build - the ACCEPT that is owed at @i. */
void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out);
/* sw_pending_tick - timers; returns when to look again. */
uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i);

/* admit_limit.c: may @ip, which has shown a cookie, send one more JOIN?  If not
 * it is counted, and said in the log, seldom. */
bool sw_admit_allows(struct sw_server *srv, uint32_t ip);

#endif
