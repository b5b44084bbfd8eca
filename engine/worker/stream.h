/* stream.h - streams of collectives at a worker: a window of chunks per link.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A stream is kept as a tensor whose chunks are the slots of its windows: slot
 * i of link l is its chunk l << window_log2 | i.  So what is to be pushed, sent
 * again or asked for is the same sets (todo.c), in the same order of urgency.
 * What a slot holds now, chunk j of the stream at that server, is struct
 * sw_piece.  The rules of the window are in engine/sums/stream.h.
 */
#ifndef SW_ENGINE_WORKER_STREAM_H
#define SW_ENGINE_WORKER_STREAM_H

#include "engine/base/bits.h"
#include "engine/wire/coll.h"
#include "engine/worker/group.h"
#include "engine/worker/worker_int.h"

enum {
	SW_COLLS = 64,        /* of a stream that may be open */
	SW_EMPTY_COST = 64,   /* credit that a push without bytes takes */
	SW_STREAM_BURST = 16, /* chunks that a link enters in its turn */
	/* Chunks of a collective that lie together: each takes so many places
	 * of the line.  A call of 512 KiB is so divided among all servers. */
	SW_COLL_STRIPE = 4,
	SW_COLL_PLACES = SW_STRIPE_CHUNKS / SW_COLL_STRIPE,
	/* Cells of struct sw_sent from this one on are WANTs of so many more
	 * chunks; those below are records. */
	SW_CELL_WANT = 1 << 30,
};

/* A local rank's side of a collective; its own from its submit to its end. */
struct sw_coll_local {
	const uint8_t *from;
	uint8_t *to;
	uint64_t stride; /* bytes from part to part */
	double scale;    /* SW_PREMUL_SUM: of what it gives */
	uint64_t cookie;
};

/* A collective from the first local rank's submit to its end. */
struct sw_coll {
	struct sw_worker_coll ask; /* the first one's, but for its buffers */
	struct sw_coll_local *locals;
	uint32_t n_asked; /* local ranks that have submitted it */
	bool is_open;
	bool is_edited;  /* its buffer changed under a push */
	uint32_t number; /* in the group, from 1, or in the stream */
	uint32_t turn;   /* in the stream, from 0; lane 0's */
	uint32_t first;  /* its place on the line */
	uint32_t n_chunks;
	uint32_t n_left; /* chunks of this lane, and other lanes with some */
	uint32_t n_per_part; /* chunks of a part: of all, or of a member's */
	uint32_t chunk_bytes;
	uint64_t part_bytes;
	uint32_t root; /* its place in the group; 0: it has none */
	uint16_t tag, weight;
};

/* The chunks of a collective that lie at one server: whole parts, or as chunks
 * of tensors do. */
struct sw_coll_share {
	uint32_t n;
	/* Numbers of the parts, borrowed; NULL: as place says.  Of each of them
	 * n_per_part chunks, from @from on every step-th. */
	const uint16_t *parts;
	uint32_t n_per_part, from, step;
	struct sw_place place;
};

/* Local ranks, borrowed. */
struct sw_local_list {
	const uint16_t *list;
	uint32_t n;
};

/* What a slot holds. */
struct sw_piece {
	struct sw_coll *coll;
	uint32_t j;
	uint32_t at;              /* chunk of its part */
	uint16_t part, bytes;     /* which part; of the chunk */
	uint16_t cost;            /* credit that its push takes */
	uint8_t root;             /* member that has its root */
	bool gives : 1, gets : 1; /* this member: bytes; its result */
};

/* Where the stream is at a server. */
struct sw_stream_link {
	uint32_t base; /* as the server said */
	uint32_t next; /* the next j to enter */
	uint32_t coll; /* whose chunks enter now, counted as n_colls */
	uint32_t at;   /* of those that lie at this server: */
	struct sw_coll_share share;
	bool is_blocked; /* chunks wait for the window to move */
};

/* Of one stream, between lane 0 and another one: collectives by their place in
 * lane 0's colls.  Who adds one to an empty set says so by an entry of its
 * ring. The other one reads ask, locals, number, turn and first of those that
 * are begun, which stay as they are until it has added them to done. */
struct sw_stream_lane {
	_Atomic uint64_t begun, done; /* and not taken by the other side yet */
	/* Of those that are done: */
	uint16_t weights[SW_COLLS]; /* 0: it had no result */
	bool are_edited[SW_COLLS];
	atomic_bool has_gone; /* the other one does not know it any more */
};

struct sw_stream {
	struct sw_wgroup group;
	struct sw_wtensor *kin[SW_KIN_CHAINS]; /* behind it in each */
	struct sw_stream_lane *lanes; /* lane 0's; w->n_others of them */
	/* By turn; of another lane than 0 those that it has chunks of, one
	 * behind the other. */
	struct sw_coll colls[SW_COLLS];
	struct sw_coll_local *locals; /* of all of these */
	uint32_t *n_asked;            /* submitted in all, by local rank */
	/* Local ranks that are through with the group, and whether there are
	 * any; lane 0's. */
	uint64_t closed[SW_LOCAL_WORDS];
	bool has_closed;
	uint32_t n_newest; /* the same of the one that is ahead of them */
	uint32_t n_colls;  /* submitted by all of them */
	uint32_t n_open;
	uint32_t first; /* where the next one begins on the line */
	/* If all ranks of the group are here (stream_local.c): the next such
	 * stream, and the chunk and the collective that are next. */
	struct sw_wtensor *next_here;
	uint32_t here_coll, here_at;
	struct sw_piece *pieces; /* by chunk of the tensor */
	/* Those not started yet: a ring, whose size is a power of two since its
	 * ends count on over 2^32. */
	uint32_t *entered;
	uint32_t n_entered, head, tail;
	struct sw_stream_link links[];
};

/* sw_stream_lane - another lane than 0: its side of a stream, by index. */
static inline struct sw_stream_lane *sw_stream_lane(
	const struct sw_worker *w, uint32_t tensor)
{
	const struct sw_stream *s = w->lanes->zero->tensors[tensor].stream;

	return &s->lanes[w->lane_i - 1];
}

/* sw_stream_build - @t has ranks and window_log2, which are valid, and zeroed
 * memory for all of its stream; from then on it has the ranks.
 * Errors: SW_EINVAL, its group has SW_GROUP_STREAMS.
 * sw_stream_add, sw_stream_remove - the lcore has it, no more. */
int sw_stream_build(struct sw_worker *w, struct sw_wtensor *t);
void sw_stream_add(struct sw_worker *w, struct sw_wtensor *t);
void sw_stream_remove(struct sw_worker *w, struct sw_wtensor *t);

/* --- group.c: the streams of one group --- */

/* sw_kin_put, sw_kin_remove - @t is in a chain, is so no more.
 * sw_kin_has_room - it is built: not behind SW_GROUP_STREAMS of its group? */
void sw_kin_put(struct sw_wtensor *t, enum sw_kin_chain chain);
void sw_kin_remove(struct sw_wtensor *t, enum sw_kin_chain chain);
bool sw_kin_has_room(const struct sw_wtensor *t);

/* sw_wtensor_kin - those of the group of stream @t, itself among them: the one
 * behind @last, or the first one for NULL; NULL: there is no more.  None of a
 * tensor. */
struct sw_wtensor *sw_wtensor_kin(const struct sw_worker *w,
	const struct sw_wtensor *t, const struct sw_wtensor *last);

/* --- piece.c: how a collective divides --- */

/* Is its root the caller's to say? */
bool sw_coll_has_root(enum sw_coll_kind kind);
/* sw_piece_of - chunk @chunk of it. */
struct sw_piece sw_piece_of(const struct sw_worker *w,
	const struct sw_stream *s, struct sw_coll *c, uint32_t chunk);
/* sw_coll_share - its chunks that lie at @server_i; sw_coll_share_at - which
 * one is number @i of them. */
struct sw_coll_share sw_coll_share(const struct sw_worker *w,
	const struct sw_stream *s, const struct sw_coll *c, uint32_t server_i);
uint32_t sw_coll_share_at(
	const struct sw_coll *c, const struct sw_coll_share *share, uint32_t i);
/* sw_coll_share_run - how many of the share's chunks from number @i on, which
 * is
 * @p, follow each other in one part; sw_piece_go_on - the next one of them. */
uint32_t sw_coll_share_run(const struct sw_coll_share *share,
	const struct sw_piece *p, uint32_t i);
void sw_piece_go_on(const struct sw_coll_share *share, struct sw_piece *p);
/* sw_coll_divide - how many of its chunks are this lane's; *lanes: which other
 * lanes have some, a bit each. */
uint32_t sw_coll_divide(const struct sw_worker *w, const struct sw_stream *s,
	const struct sw_coll *c, uint32_t *lanes);
/* Of this member, which gives: the local ranks whose bytes are in it; where
 * each has them. */
struct sw_local_list sw_piece_givers(
	const struct sw_stream *s, const struct sw_piece *p);
const uint8_t *sw_piece_source(const struct sw_piece *p, uint32_t local);
/* sw_piece_give - what this member gives of a piece, which does: a local rank's
 * bytes, or in w->payload what is made of several, or of a factor (combine.c);
 * returns of how many it is.
 * sw_piece_take - write its result where it goes.  sw_piece_copy_own - the same
 * with what one of its local ranks alone gave, which no server sends back. */
uint16_t sw_piece_give(struct sw_worker *w, const struct sw_stream *s,
	const struct sw_piece *p, const uint8_t **bytes);
void sw_piece_take(const struct sw_stream *s, const struct sw_piece *p,
	const uint8_t *bytes);
void sw_piece_copy_own(const struct sw_stream *s, const struct sw_piece *p);

/* --- stream_window.c: chunks enter the window --- */

/* sw_stream_window - its slots at each link. */
static inline uint32_t sw_stream_window(const struct sw_wtensor *t)
{
	return 1u << t->decl.window_log2;
}

/* sw_stream_enter - collectives have come: what the windows allow enters, and
 * starts as the scheduler says; nothing where all ranks are here.
 * sw_stream_settle - the same of the window that has moved (w->moved). */
void sw_stream_enter(struct sw_worker *w, struct sw_wtensor *t);
void sw_stream_settle(struct sw_worker *w);

/* sw_stream_block - do chunks wait for the window at @l to move? */
void sw_stream_block(
	struct sw_link *l, struct sw_stream_link *sl, bool is_blocked);

/* --- stream.c: what is in the window --- */

/* sw_coll_end - a collective ends: all local ranks that have submitted it are
 * told. */
void sw_coll_end(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_coll *c, int err);

/* sw_stream_drop - no more chunks enter or start. */
void sw_stream_drop(struct sw_worker *w, struct sw_stream *s);

/* sw_stream_fill - what @h says of the piece in a slot; returns the bytes to
 * push, NULL where this member gives none: a local rank's, or the sum of
 * several or times a factor in w->payload (*is_stable false). */
const uint8_t *sw_stream_fill(const struct sw_wtensor *t, uint32_t chunk,
	struct sw_header *h, bool *is_stable);

/* sw_stream_widen - WANT @h of one chunk asks for those before and behind it,
 * too, that are to be pushed: of the same collective and root, SW_WANT_MAX in
 * all.  They are not to be pushed any more. */
void sw_stream_widen(
	struct sw_link *l, struct sw_wtensor *t, struct sw_header *h);

/* sw_stream_folded - the server has the push of a slot for good.
 * sw_sched_run is to follow. */
void sw_stream_folded(struct sw_link *l, struct sw_wtensor *t, uint32_t chunk);

/* sw_stream_find - the slot that waits for chunk @j of link @l, NULL when none
 * does; *chunk is its. */
struct sw_wchunk *sw_stream_find(const struct sw_wtensor *t,
	const struct sw_link *l, uint32_t j, uint32_t *chunk);

/* sw_stream_on_result - take a RESULT of the stream; false: it is not to be
 * acknowledged.  *is_new: a chunk waited for it. */
bool sw_stream_on_result(struct sw_link *l, struct sw_wtensor *t,
	const struct sw_header *h, const uint8_t *payload, bool *is_new);

/* sw_stream_on_base - all chunks below @base are done at the server.
 * sw_stream_settle is to follow. */
void sw_stream_on_base(struct sw_link *l, struct sw_wtensor *t, uint32_t base);

/* sw_streams_ask - put streams that wait for their window into the link's next
 * QUERY, in turn, up to half of it, so that late results do not keep them out
 * nor they those: a chunk that is done is answered with base.  And those that
 * stand still, with the number of what they wait with (mismatch.c). */
void sw_streams_ask(struct sw_worker *w, struct sw_link *l);

/* sw_stream_oldest - the oldest collective that is open, of which there are. */
static inline struct sw_coll *sw_stream_oldest(struct sw_stream *s)
{
	uint32_t i = s->n_newest;

	while (!s->colls[i % SW_COLLS].is_open)
		i++;
	return &s->colls[i % SW_COLLS];
}

/* sw_stream_awaits - the number of the oldest collective that is open, if
 * nothing has gone on for long; 0: something has, or it has none. */
enum { SW_STILL_NS = 1000000000 };
static inline uint32_t sw_stream_awaits(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	if (!t->stream || !t->is_open || t->dead_from ||
		w->now_ns - t->progress_ns < SW_STILL_NS)
		return 0;
	return sw_stream_oldest(t->stream)->ask.call;
}

/* --- coll.c: the lanes --- */

/* sw_colls_take - another lane than 0 begins collectives that lane 0 has begun,
 * places in @zero's colls.  sw_colls_done - lane 0: another lane holds its
 * chunks of what it has added to @lane. */
void sw_colls_take(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_stream *zero, uint64_t begun);
void sw_colls_done(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_stream_lane *lane);

/* sw_coll_has_asked - has local rank @local of the group submitted it? */
static inline bool sw_coll_has_asked(
	const struct sw_stream *s, const struct sw_coll *c, uint32_t local)
{
	return c->n_asked && (int32_t)(s->n_asked[local] - c->turn) > 0;
}

/* --- stream_gone.c --- */

/* sw_stream_close - local rank @local is through with the stream; when all of
 * its group are, or are gone, the servers and the other lanes are told.
 * sw_stream_check_left - are they, and is nothing open?  @t may be a tensor. */
void sw_stream_close(struct sw_worker *w, struct sw_wtensor *t, uint32_t local);
void sw_stream_check_left(struct sw_worker *w, struct sw_wtensor *t);

/* --- group_end.c --- */

/* sw_stream_has_closed - has local rank @local? */
static inline bool sw_stream_has_closed(
	const struct sw_stream *s, uint32_t local)
{
	return sw_bits_has(s->closed, local);
}

/* --- stream_local.c --- */

/* sw_stream_is_here - has its group no rank at another member? */
static inline bool sw_stream_is_here(
	const struct sw_worker *w, const struct sw_stream *s)
{
	return s->group.members == 1ULL << w->rank;
}

/* sw_link_expect - the result of a chunk is to come, or (@is_away false) is not
 * any more: its server is granted what it needs for it. */
void sw_link_expect(struct sw_link *l, const struct sw_wtensor *t,
	uint32_t record, bool is_away);

/* sw_link_end_wait - the chunk of a record leaves SW_PUSHED, if it is there. */
static inline void sw_link_end_wait(
	struct sw_link *l, const struct sw_wtensor *t, uint32_t record)
{
	if (sw_flow_is_shared(&l->peer.flow) &&
		t->chunks[record].state == SW_PUSHED)
		sw_link_expect(l, t, record, false);
}

#endif
