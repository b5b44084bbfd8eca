/* piece.h - how a collective divides into chunks, and their bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_PIECE_H
#define SW_ENGINE_WORKER_PIECE_H

#include "engine/worker/stream.h"

/* sw_coll_has_root - does the caller name a root?
 * sw_coll_is_by_part - do the ranks' parts lie one behind the other in one of
 * its buffers? */
bool sw_coll_has_root(enum sw_coll_kind kind);
bool sw_coll_is_by_part(enum sw_coll_kind kind);
/* sw_piece_of - return chunk @chunk of collective @c. */
struct sw_piece sw_piece_of(const struct sw_worker *w,
	const struct sw_stream *s, struct sw_coll *c, uint32_t chunk);
/* sw_coll_share - return the chunks of @c that lie at @server_i.
 * sw_coll_share_at - return the number, in the collective, of chunk @i of the
 * share. */
struct sw_coll_share sw_coll_share(const struct sw_worker *w,
	const struct sw_stream *s, const struct sw_coll *c, uint32_t server_i);
uint32_t sw_coll_share_at(
	const struct sw_coll *c, const struct sw_coll_share *share, uint32_t i);
/* sw_coll_share_run - return how many chunks of the share, from chunk @i on,
 * which is @p, follow each other in one part.
 * sw_piece_go_on - advance @p to the next chunk of such a run. */
uint32_t sw_coll_share_run(const struct sw_coll_share *share,
	const struct sw_piece *p, uint32_t i);
void sw_piece_go_on(const struct sw_coll_share *share, struct sw_piece *p);
/* sw_coll_divide - return how many chunks of @c are this lane's; *lanes: the
 * lanes behind lane 0 that have chunks, a bit each. */
uint32_t sw_coll_divide(const struct sw_worker *w, const struct sw_stream *s,
	const struct sw_coll *c, uint32_t *lanes);
/* sw_piece_give - set *bytes to this member's contribution: a local rank's
 * memory, or w->made_at if several are combined or scaled.  Returns the number
 * of givers.
 * sw_piece_take - write the result to the local ranks that get it.
 * sw_piece_copy_own - write the root's own bytes to these local ranks, since no
 * server sends them back. */
uint16_t sw_piece_give(struct sw_worker *w, const struct sw_stream *s,
	const struct sw_piece *p, const uint8_t **bytes);
void sw_piece_take(const struct sw_stream *s, const struct sw_piece *p,
	const uint8_t *bytes);
void sw_piece_copy_own(const struct sw_stream *s, const struct sw_piece *p);

#endif
