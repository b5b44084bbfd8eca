/* stream.h - streams of collectives at a worker: a window of chunks per link.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker keeps a stream as a tensor whose chunks are the slots of its
 * windows: slot i of link l is chunk l << window_log2 | i.  So the same sets
 * (todo.c) hold the chunks to push, to retransmit or to ask for, in the same
 * order of urgency. struct sw_piece is the present content of a slot: chunk j
 * of the stream at that server.  PROTOCOL.md, section 13, has the rules. */
#ifndef SW_ENGINE_WORKER_STREAM_H
#define SW_ENGINE_WORKER_STREAM_H

#include "engine/base/bits.h"
#include "engine/wire/coll.h"
#include "engine/worker/group.h"
#include "engine/worker/link.h"

enum {
	SW_COLLS = 64,        /* open collectives of a stream */
	SW_EMPTY_COST = 64,   /* credit that a push without bytes takes */
	SW_STREAM_BURST = 16, /* chunks that enter at a link in its turn */
	/* Chunks of a collective that lie together: each takes SW_COLL_PLACES
	 * places of the line, so a call of 512 KiB is divided among all
	 * servers. */
	SW_COLL_STRIPE = 4,
	SW_COLL_PLACES = SW_STRIPE_CHUNKS / SW_COLL_STRIPE,
	/* A cell of struct sw_sent from this value on is a WANT of cell -
	 * SW_CELL_WANT chunks; below it, a record. */
	SW_CELL_WANT = 1 << 30,
};

/* A local rank's side of a collective, valid from its submit to its end. */
struct sw_coll_local {
	const uint8_t *from;
	uint8_t *to;
	uint64_t stride; /* bytes from part to part */
	double scale;    /* SW_PREMUL_SUM: the factor of its contribution */
	uint64_t cookie;
};

/* A collective from the first local rank's submit to its end. */
struct sw_coll {
	/* The first local rank's request, without its buffers. */
	struct sw_worker_coll ask;
	struct sw_coll_local *locals;
	uint32_t n_asked; /* local ranks that have submitted it */
	bool is_open;
	bool is_edited;  /* its buffer changed under a push */
	uint32_t number; /* its number in the group from 1, or in the stream */
	uint32_t turn;   /* lane 0's count in the stream, from 0 */
	uint32_t first;  /* its place on the line */
	uint32_t n_chunks;
	/* Open chunks of this lane, plus other lanes that are not done. */
	uint32_t n_left;
	uint32_t n_per_part; /* chunks of a part */
	uint32_t chunk_bytes;
	uint64_t part_bytes;
	uint32_t root; /* the root's place in the group; 0: no root */
	uint16_t tag, weight;
	uint64_t opened_ns;
};

/* The chunks of a collective that lie at one server: whole parts, or placed as
 * a tensor's chunks are. */
struct sw_coll_share {
	uint32_t n;
	/* Numbers of the parts, borrowed, and the chunks of each: n_per_part
	 * from number from on, every step-th.  NULL: place gives the chunks. */
	const uint16_t *parts;
	uint32_t n_per_part, from, step;
	struct sw_place place;
};

/* A borrowed list of local ranks. */
struct sw_local_list {
	const uint16_t *list;
	uint32_t n;
};

/* The content of a slot: one chunk of a collective. */
struct sw_piece {
	struct sw_coll *coll;
	uint32_t j;
	uint32_t at;          /* the chunk's number in its part */
	uint16_t part, bytes; /* the part's number; the chunk's bytes */
	uint16_t cost;        /* credit that its push takes */
	uint8_t root;         /* the member that has the root */
	/* This member contributes bytes; it gets the result. */
	bool gives : 1, gets : 1;
};

/* The stream's state at one server. */
struct sw_stream_link {
	uint32_t base; /* the lowest open j, as the server reported */
	uint32_t next; /* the next j to enter */
	/* The collective whose chunks enter now, counted as n_colls. */
	uint32_t coll;
	uint32_t at; /* the next chunk in share to enter */
	struct sw_coll_share share;
	bool is_blocked; /* chunks wait for the window to move */
};

/* One stream's channel between lane 0 and another lane: sets of places in lane
 * 0's colls.  A lane that adds to a set also raises the stream's flag.  The
 * other lane reads ask, locals, number, turn and first of each collective in
 * begun; lane 0 keeps them until the collective is in done. */
struct sw_stream_lane {
	/* Sets that the other side has not taken yet. */
	_Atomic uint64_t begun, done;
	/* The results of the collectives in done: */
	uint16_t weights[SW_COLLS]; /* 0: it had no result */
	bool are_edited[SW_COLLS];
};

struct sw_stream {
	struct sw_wgroup group;
	struct sw_wtensor *next; /* the next stream of the group */
	/* Lane 0's channels, one to each of w->n_others lanes. */
	struct sw_stream_lane *lanes;
	/* By turn, modulo SW_COLLS.  Another lane keeps only collectives in
	 * which it has chunks, in a row. */
	struct sw_coll colls[SW_COLLS];
	struct sw_coll_local *locals; /* memory of the locals of all colls */
	uint32_t *n_asked;            /* collectives submitted, by local rank */
	/* Collectives that the furthest local rank has submitted. */
	uint32_t n_newest;
	uint32_t n_colls; /* collectives that all local ranks have submitted */
	uint32_t n_open;
	/* Lane 0's: collectives that ended without an error, the bytes of each
	 * rank's buffer or part, and the time that they took. */
	uint64_t n_done, done_bytes, done_ns;
	uint32_t first; /* the next collective's place on the line */
	/* If all ranks of the group are local (coll.c): the collective and
	 * chunk to do next. */
	uint32_t here_coll, here_at;
	struct sw_piece *pieces; /* by slot */
	/* Slots that entered but have not started: a ring, whose size is a
	 * power of two because head and tail wrap at 2^32. */
	uint32_t *entered;
	uint32_t n_entered, head, tail;
	struct sw_stream_link links[];
};

/* sw_group_of - return the group of a stream, NULL for a tensor. */
static inline const struct sw_wgroup *sw_group_of(const struct sw_wtensor *t)
{
	return t->kind->is_group ? &t->stream->group : NULL;
}

/* sw_stream_lane - return another lane's channel of a stream, by index. */
static inline struct sw_stream_lane *sw_stream_lane(
	const struct sw_worker *w, uint32_t tensor)
{
	const struct sw_stream *s = w->lanes->zero->tensors[tensor].stream;

	return &s->lanes[w->lane_i - 1];
}

/* sw_stream_build - build stream @t from valid ranks and window_log2, in zeroed
 * memory that lay_stream (tensors.c) has laid out; copies the ranks.
 * sw_stream_add - add the stream to the lcore's structures. */
void sw_stream_build(struct sw_worker *w, struct sw_wtensor *t);
void sw_stream_add(struct sw_worker *w, struct sw_wtensor *t);

/* --- the streams of one group --- */

/* sw_wtensor_next - return the stream behind @last in the life of @t, which
 * includes @t; if @last is NULL, the first stream.  Returns NULL at the end,
 * and for a tensor. */
static inline struct sw_wtensor *sw_wtensor_next(
	const struct sw_wtensor *t, const struct sw_wtensor *last)
{
	return last ? last->stream->next : t->life->streams;
}

/* --- stream.c: chunks enter the window --- */

/* sw_stream_window - return the number of slots at each link. */
static inline uint32_t sw_stream_window(const struct sw_wtensor *t)
{
	return 1u << t->decl.window_log2;
}

/* sw_stream_enter - let the chunks of new collectives enter the windows, as far
 * as the windows have room, and give the chunks to the scheduler.  Does nothing
 * if all ranks are local.
 * sw_stream_settle - the same, at the window that has moved (w->moved). */
void sw_stream_enter(struct sw_worker *w, struct sw_wtensor *t);
void sw_stream_settle(struct sw_worker *w);

/* sw_stream_drop - forget the chunks that wait to enter or to start. */
void sw_stream_drop(struct sw_worker *w, struct sw_wtensor *t);

/* --- stream.c: the slots of the windows --- */

/* sw_coll_end - end a collective, and tell all local ranks that have submitted
 * it. */
void sw_coll_end(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_coll *c, int err);

/* sw_stream_fill - fill @h for the piece in a slot.  Returns the bytes to push,
 * NULL if this member gives none. *is_stable is false if they lie in a made
 * payload, combined or scaled. */
const uint8_t *sw_stream_fill(const struct sw_wtensor *t, uint32_t chunk,
	struct sw_header *h, bool *is_stable);

/* sw_stream_widen - widen the one-chunk WANT in @h by neighbours of the same
 * collective and root that wait to be pushed, up to SW_WANT_MAX chunks in all.
 * Takes the neighbours out of the sets. */
void sw_stream_widen(
	struct sw_link *l, struct sw_wtensor *t, struct sw_header *h);

/* sw_stream_folded - note that the server has folded the push of a slot.  Call
 * sw_sched_run next. */
void sw_stream_folded(struct sw_link *l, struct sw_wtensor *t, uint32_t chunk);

/* sw_stream_find - return the slot that waits for chunk @j of link @l, NULL if
 * none does; *chunk is the slot's number in either case. */
struct sw_wchunk *sw_stream_find(const struct sw_wtensor *t,
	const struct sw_link *l, uint32_t j, uint32_t *chunk);

/* sw_stream_on_result - take a RESULT of the stream. */
enum sw_receipt sw_stream_on_result(struct sw_link *l, struct sw_wtensor *t,
	const struct sw_header *h, const uint8_t *payload);

/* sw_stream_on_base - note that all chunks below @base are done at the server.
 * Call sw_stream_settle next. */
void sw_stream_on_base(struct sw_link *l, struct sw_wtensor *t, uint32_t base);

/* sw_stream_oldest - return the oldest open collective; there must be one. */
static inline struct sw_coll *sw_stream_oldest(struct sw_stream *s)
{
	uint32_t i = s->n_newest;

	while (!s->colls[i % SW_COLLS].is_open)
		i++;
	return &s->colls[i % SW_COLLS];
}

/* sw_stream_awaits - return the group's number of the oldest open collective,
 * if the stream has made no progress for SW_STILL_NS; else 0. */
enum { SW_STILL_NS = 1000000000 };
static inline uint32_t sw_stream_awaits(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	if (!t->is_open || t->life->from ||
		w->now_ns - t->progress_ns < SW_STILL_NS)
		return 0;
	return sw_stream_oldest(t->stream)->ask.call;
}

/* --- coll.c: the lanes --- */

/* sw_colls_take - begin, in another lane, the collectives @begun, places in
 * @zero's colls.
 * sw_colls_done - note, in lane 0, that another lane holds its chunks of the
 * collectives in lane->done. */
void sw_colls_take(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_stream *zero, uint64_t begun);
void sw_colls_done(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_stream_lane *lane);

/* sw_call_of - return a local rank's call as a fault names it. */
static inline struct sw_fault_call sw_call_of(
	const struct sw_worker *w, const struct sw_worker_coll *c)
{
	return (struct sw_fault_call){
		.n_elems = c->whole ? c->whole : c->n_elems,
		.number = c->call,
		.rank = (uint16_t)(w->first + c->local),
		.op = sw_coll_op(c->kind, c->op),
		.dtype = (uint8_t)c->dtype};
}

/* sw_coll_has_asked - has local rank @local of the group submitted @c? */
static inline bool sw_coll_has_asked(
	const struct sw_stream *s, const struct sw_coll *c, uint32_t local)
{
	return c->n_asked && (int32_t)(s->n_asked[local] - c->turn) > 0;
}

/* --- coll.c: a group at this member alone --- */

/* sw_stream_local_work - do some chunks of a stream whose ranks are all local,
 * of a different stream in each turn; returns the work done. */
uint32_t sw_stream_local_work(struct sw_worker *w);

/* sw_stream_is_here - are all ranks of the stream's group at this member? */
static inline bool sw_stream_is_here(
	const struct sw_worker *w, const struct sw_stream *s)
{
	return s->group.members == 1ULL << w->member;
}

#endif
