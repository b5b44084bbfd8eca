/* wtensor.h - a worker's tensors and streams, and this lane's chunks.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_WTENSOR_H
#define SW_ENGINE_WORKER_WTENSOR_H

#include <assert.h>
#include <stddef.h>

#include "engine/base/bitmap.h"
#include "engine/worker/worker.h"

/* A chunk becomes HELD before the first byte of a result is written, and a PUSH
 * is built only in GRAD.  So a retransmission never carries a sum, although
 * source and destination are the same bytes. */
enum sw_chunk_state {
	SW_HELD,   /* its last sum is in the buffer */
	SW_GRAD,   /* the buffer holds a contribution to push */
	SW_PUSHED, /* its PUSH is in flight */
	SW_FOLDED, /* the server has folded it; its result is missing */
};

struct sw_wchunk {
	uint64_t psn;  /* packet number of the last PUSH */
	uint64_t t_ns; /* when it was last sent, acknowledged or asked for */
	uint32_t crc;  /* CRC of the first PUSH of this round */
	uint8_t state;
	uint8_t n_sent;         /* PUSHes of this round, at most 255 */
	uint8_t n_refused;      /* PUSHes among them refused by CRC */
	uint8_t is_charged : 1; /* takes credit: started, not folded yet */
	uint8_t is_todo : 1;    /* in the sets, and counted as to push */
};

/* sw_wchunk_is_unsent - is the chunk started, and was it never sent? */
static inline bool sw_wchunk_is_unsent(const struct sw_wchunk *c)
{
	return c->is_charged && c->state == SW_GRAD && !c->n_sent;
}

struct sw_coll; /* stream.h */
struct sw_link; /* link.h */
struct sw_wtensor;

/* The sets of a tensor's chunks at one link, by local index. */
enum sw_todo_set {
	SW_TODO,  /* waits to be pushed: in GRAD */
	SW_AGAIN, /* in SW_TODO, and sent before */
	SW_N_TODO_SETS,
};

/* The chunks of a tensor at one link.  Their records follow the previous link's
 * records: local chunk i has record from + i. */
struct sw_part {
	struct sw_place_near near; /* chunks of recent frames */
	struct sw_place place;     /* a stream's has only n_local: its slots */
	uint32_t from, n_awaited;  /* quanta of expected results */
	uint32_t turn_step; /* a local chunk's step in a turn key: 2^32 / all */
	uint32_t n_todo;    /* chunks in SW_TODO */
	uint32_t n_folded;  /* chunks in FOLDED */
	/* Number of the message with CLOSE of the group whose life lies here;
	 * 0: none was sent. */
	uint32_t close_number;
	struct sw_wtensor *older, *newer; /* neighbours in the link's list */
	struct sw_bitmap sets[SW_N_TODO_SETS];
};

/* A local rank's side of a tensor. */
struct sw_local {
	const uint8_t *from; /* its contributions; borrowed */
	uint64_t cookie;     /* the cookie of the open round */
	/* Bytes at its end that are not written yet, in the open round. */
	uint64_t lacks;
};

/* Functions that differ between tensors and streams.  The packet path does not
 * call them: it tests t->stream. */
struct sw_kind {
	bool is_group; /* a stream, which lives and ends with its group */
	/* In lane 0: return the ranks that it waits for, among the @i-th 64
	 * local ranks.  @which: the ranks to look at. */
	uint64_t (*lagging)(const struct sw_worker *w,
		const struct sw_wtensor *t, uint32_t i, uint64_t which);
	/* In another lane: begin or continue what lane 0 has begun. */
	void (*follow)(struct sw_worker *w, struct sw_wtensor *t,
		const struct sw_wtensor *zero);
	/* Close the group if all local ranks have closed it or are gone; NULL
	 * for a tensor. */
	void (*check_left)(struct sw_worker *w, struct sw_wtensor *t);
	/* Does the server have chunks of it, or a stream of its group, and has
	 * it answered our declaration? */
	bool (*is_known)(const struct sw_link *l, const struct sw_wtensor *t);
	/* Stop its open chunks when it has just ended. */
	void (*killed)(struct sw_worker *w, struct sw_wtensor *t);
};

/* round.c, group_end.c */
extern const struct sw_kind sw_tensor_kind, sw_stream_kind;

/* How far this lane has released a group. */
enum sw_life_step {
	SW_LIFE_USED,
	SW_LIFE_RELEASED,  /* it has ended: nothing here borrows its buffers */
	SW_LIFE_FORGOTTEN, /* it is closed: no set here has its streams */
};

/* The life of a tensor, or of a group, whose streams end and are closed
 * together.  It is live or has ended (faults.c); a group is freed when its
 * members have closed it (group_end.c).  Each lane has its own copy.  Other
 * lanes read the atomic fields and the faults of lane 0's copy; lane 0 reads
 * these of all copies. */
struct sw_life {
	/* A group: its first stream's key at the coordinator, SW_KEY_NONE until
	 * it is known; its streams here, in the order of declaration. */
	uint32_t key;
	/* Live: 0.  Ended: rounds from this one on fail; in a stream, all
	 * fail.  Once set, it never rises. */
	_Atomic uint32_t from;
	struct sw_wtensor *streams;
	_Atomic uint8_t step; /* enum sw_life_step; never falls */
	/* This member has closed it: all local ranks have closed it, left or
	 * died.  Set after from.  Lane 0: the local ranks that have closed it.
	 */
	atomic_bool is_closed;
	uint32_t n_closed;
	uint64_t closed[SW_LOCAL_WORDS];
	/* Why it has ended; while it is live, the fault proposed to the
	 * coordinator.  The second fault is the coordinator's answer, or has
	 * lowered from.  Other lanes read both, so neither is rewritten. */
	_Atomic uint8_t n_whys;
	struct sw_fault whys[2];
};

struct sw_wtensor {
	/* Read with each frame of it. */
	const struct sw_kind *kind;
	struct sw_stream *stream; /* the windows; NULL: a tensor */
	struct sw_wchunk *chunks; /* this lane's chunks, by record */
	struct sw_part *parts;    /* by link */
	uint32_t key; /* SW_KEY_NONE until the coordinator gives one */
	uint32_t round;
	uint8_t class, mode; /* enum sw_mode */
	uint8_t op;          /* this round's operation, enum sw_round_kind */
	uint8_t result_op;   /* its results' operation */
	uint16_t step;
	uint16_t weight; /* weight of this round's results */
	uint16_t root;   /* copy: the rank that gives the bytes */
	uint16_t gives;  /* local ranks in its pushes; 0: they are empty */
	bool is_open;    /* a local rank has asked for a round */
	bool is_edited;  /* its buffer changed under a push */
	bool is_begun;   /* all local ranks have asked: the round has begun */
	uint32_t n_chunks;
	uint32_t n_missing; /* chunks of this lane that are not HELD */
	/* Record of the tensor's last chunk, if this lane has it. */
	uint32_t last;
	uint32_t elem_bytes, chunk_bytes, last_bytes;
	uint16_t lanes;       /* other lanes that have chunks of it, as bits */
	uint16_t busy_lanes;  /* lanes among them that are not done */
	uint64_t progress_ns; /* time of the last result, or of the submit */
	/* By granule of a growing tensor.  left: chunks of this lane that it
	 * does not hold yet, 0 if it holds none.  held: chunks of the lanes
	 * that hold all of their chunks (lane 0's, shared). */
	uint16_t *left;
	_Atomic uint32_t *held;
	struct sw_worker *worker; /* the worker that has it */
	/* Its life.  A stream has the life of its group, which lies in the
	 * group's first stream here, the same stream in all lanes. */
	struct sw_life *life;
	struct sw_local *locals; /* by local rank; lane 0's */
	struct sw_task task;     /* the scheduler's task, while it is open */

	/* Read with each round, or less often. */
	/* As declared, with the name below.  Once the key is known, the
	 * priority is the effective one. */
	struct sw_worker_tensor decl;
	struct sw_place own; /* placement of this lane's chunks */
	/* In the open round: the chunks that all local ranks have written (lane
	 * 0's, which other lanes read), and the chunks of this lane that the
	 * scheduler was given. */
	_Atomic uint32_t n_ready;
	uint32_t n_given;
	uint64_t before; /* bytes given before the scheduler's task began */
	/* Its id; kept when freed, for the next tensor at the index. */
	uint32_t id;
	uint32_t index;  /* its index among the worker's, as in the id */
	uint32_t number; /* its number in the order of declaration */
	uint32_t first;  /* its place on the line, given with the key */
	/* Lane 0: the round that it has begun; another lane: the last round
	 * that has ended there. */
	_Atomic uint32_t said_round;
	/* Lane 0's: local ranks that have asked for this round of a tensor. */
	uint32_t n_asked;
	uint64_t *asked;
	uint64_t opened_ns; /* when the first local rank asked (lane 0) */
	/* Members that the last WAIT named, and when it arrived; lane 0 reads
	 * both. */
	uint64_t awaited, awaited_ns;
	uint64_t lacks; /* lane 0's: the most that a local rank lacks */
	uint64_t *words, n_words; /* memory of the sets */
	void *mem; /* memory of the block, if this tensor owns it (tensors.c) */
	uint64_t mem_bytes;
	struct sw_life own_life;
	char name[SW_NAME_MAX];
};

/* sw_wtensor_slot - return the tensor that a life lies in: itself, or its
 * group's first stream. */
static inline struct sw_wtensor *sw_wtensor_slot(const struct sw_wtensor *t)
{
	return (struct sw_wtensor *)((char *)t->life -
				     offsetof(struct sw_wtensor, own_life));
}

/* sw_wtensor_why - return the last fault of the tensor; err 0: none.  Thread:
 * any lane that was told of the end.
 * sw_wtensor_blame - note a fault; a third fault changes nothing. */
static inline const struct sw_fault *sw_wtensor_why(const struct sw_wtensor *t)
{
	const struct sw_life *g = t->life;

	return &g->whys[atomic_load_explicit(&g->n_whys, memory_order_acquire) >
			1];
}

static inline void sw_wtensor_blame(
	struct sw_wtensor *t, const struct sw_fault *why)
{
	struct sw_life *g = t->life;
	uint8_t n = atomic_load_explicit(&g->n_whys, memory_order_relaxed);

	if (n == 2)
		return;
	g->whys[n] = *why;
	atomic_store_explicit(
		&g->n_whys, (uint8_t)(n + 1), memory_order_release);
}

/* sw_wtensor_of - return the tensor that a task belongs to. */
static inline struct sw_wtensor *sw_wtensor_of(const struct sw_task *t)
{
	return (struct sw_wtensor *)((char *)(uintptr_t)t -
				     offsetof(struct sw_wtensor, task));
}

/* sw_wtensor_credit - return @bytes of credit that chunks took.  Call
 * sw_sched_run next.
 * sw_wtensor_folded - return the @cost that a chunk took, when the server has
 * its push.  Does nothing if the chunk takes no credit. */
static inline void sw_wtensor_credit(
	struct sw_worker *w, struct sw_wtensor *t, uint64_t bytes)
{
	int err = bytes ? sw_task_finish(&w->sched, &t->task, bytes) : 0;

	assert(!err);
	(void)err;
}

static inline void sw_wtensor_folded(struct sw_worker *w, struct sw_wtensor *t,
	uint32_t record, uint64_t cost)
{
	struct sw_wchunk *c = &t->chunks[record];

	if (!c->is_charged)
		return;
	c->is_charged = false;
	sw_wtensor_credit(w, t, cost);
}

/* sw_wtensor_bytes - return the bytes of a record's chunk. */
static inline uint32_t sw_wtensor_bytes(
	const struct sw_wtensor *t, uint32_t record)
{
	return record == t->last ? t->last_bytes : t->chunk_bytes;
}

/* sw_tensor_of_key - look up a tensor by wire key; NULL if unknown or already
 * freed. */
static inline struct sw_wtensor *sw_tensor_of_key(
	const struct sw_worker *w, uint32_t key)
{
	uint32_t i = w->by_key[sw_key_index(key)];

	return i != SW_KEY_NONE && w->tensors[i].key == key ? &w->tensors[i]
							    : NULL;
}

/* sw_key_is_past - is @key retired, so that a freed stream had it? */
static inline bool sw_key_is_past(const struct sw_worker *w, uint32_t key)
{
	uint32_t i = sw_key_index(key), newest = w->newest[i];

	return newest != SW_KEY_NONE &&
	       key + (w->by_key[i] != SW_KEY_NONE) <= newest;
}

/* sw_wtensor_at - look up tensor or stream @id; NULL if this lane does not have
 * it.  Reads nothing of an index that is not added: the control thread may be
 * building another tensor there. */
static inline struct sw_wtensor *sw_wtensor_at(
	const struct sw_worker *w, uint32_t id)
{
	struct sw_wtensor *t = &w->tensors[sw_id_index(id)];

	return sw_bitmap_has(&w->added, sw_id_index(id)) && t->id == id ? t
									: NULL;
}

/* sw_tensor_at, sw_stream_at - look up a tensor, a stream; NULL also if @id is
 * of the other kind. */
static inline struct sw_wtensor *sw_tensor_at(
	const struct sw_worker *w, uint32_t id)
{
	struct sw_wtensor *t = sw_wtensor_at(w, id);

	return t && t->mode != SW_MODE_STREAM ? t : NULL;
}

static inline struct sw_wtensor *sw_stream_at(
	const struct sw_worker *w, uint32_t id)
{
	struct sw_wtensor *t = sw_wtensor_at(w, id);

	return t && t->mode == SW_MODE_STREAM ? t : NULL;
}

/* sw_wtensor_numbered - look up one of the last SW_TENSORS declared by its
 * number. */
static inline struct sw_wtensor *sw_wtensor_numbered(
	const struct sw_worker *w, uint32_t number)
{
	return &w->tensors[w->by_number[number % SW_TENSORS]];
}

/* sw_part_record - return the record of a tensor's chunk, SW_PLACE_NONE if it
 * does not lie at the link. */
static inline uint32_t sw_part_record(struct sw_part *p, uint32_t chunk)
{
	uint32_t local = sw_place_find_near(&p->near, &p->place, chunk);

	return local == SW_PLACE_NONE ? SW_PLACE_NONE : p->from + local;
}

static inline bool sw_wtensor_is_dead(
	const struct sw_wtensor *t, uint32_t round)
{
	uint32_t from = t->life->from;

	return from && (int32_t)(round - from) >= 0;
}

/* sw_wtensor_lags - return the lowest local rank in set @who that the tensor
 * waits for, SW_LOCAL_RANKS if none.  In other lanes a tensor waits for none,
 * because lane 0 has begun its rounds. */
static inline uint32_t sw_wtensor_lags(const struct sw_worker *w,
	const struct sw_wtensor *t, const uint64_t who[SW_LOCAL_WORDS])
{
	for (uint32_t i = 0; !w->lane_i && 64 * i < w->n_local; i++) {
		uint64_t lags = t->kind->lagging(w, t, i, who[i]);

		if (lags)
			return 64 * i + (uint32_t)__builtin_ctzll(lags);
	}
	return SW_LOCAL_RANKS;
}

/* --- work on many tensors, a bounded part of it in each turn --- */

/* sw_wtensor_set_open - note whether something of the tensor is open. */
static inline void sw_wtensor_set_open(struct sw_wtensor *t, bool is_open)
{
	t->is_open = is_open;
	if (is_open)
		sw_bitmap_add(&t->worker->open, t->index);
	else
		sw_bitmap_remove(&t->worker->open, t->index);
}

/* sw_sweep - call @one for the tensors in @set, lowest index first, up to a
 * turn's share of work.  Returns the work of all calls.  @one returns its own
 * work, and removes the tensor from the set when nothing is left. */
enum { SW_SWEEP_BURST = 64 };
static inline uint32_t sw_sweep(struct sw_worker *w,
	const struct sw_bitmap *set,
	uint32_t (*one)(struct sw_worker *w, struct sw_wtensor *t))
{
	uint32_t n = 0, i;

	while (n < SW_SWEEP_BURST &&
		(i = sw_bitmap_first(set)) != SW_BITMAP_NONE)
		n += one(w, &w->tensors[i]);
	return n;
}

#endif
