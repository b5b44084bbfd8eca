/* wtensor.h - the tensors and streams of a worker, its lane's chunks of them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_WTENSOR_H
#define SW_ENGINE_WORKER_WTENSOR_H

#include <assert.h>
#include <stddef.h>

#include "engine/base/bitmap.h"
#include "engine/worker/worker.h"

/* A chunk becomes HELD before the first byte of a result is written, and a PUSH
 * is built only in GRAD: so a retransmission can never carry a sum, although
 * source and destination are the same bytes. */
enum sw_chunk_state {
	SW_HELD,   /* its last sum is in the buffer */
	SW_GRAD,   /* the buffer holds a contribution that is to be pushed */
	SW_PUSHED, /* it is on its way or folded */
};

struct sw_wchunk {
	uint64_t psn;  /* of the last PUSH */
	uint64_t t_ns; /* PUSHED: when it was sent, or asked for */
	uint32_t crc;  /* of the first PUSH of this round */
	uint8_t state;
	uint8_t n_sent;         /* PUSHes of this round, stops at 255 */
	uint8_t n_refused;      /* of them refused by CRC */
	uint8_t is_charged : 1; /* takes credit: started, not folded yet */
	uint8_t waits : 7;      /* in which sets it is, by enum sw_todo_set */
};

struct sw_coll; /* stream.h */

/* What the chunks of a tensor wait for at one link, by local index. */
enum sw_todo_set {
	SW_TODO,  /* to be pushed: in GRAD */
	SW_AGAIN, /* those of them that were sent before */
	SW_LATE,  /* acknowledged, without a result yet */
	SW_N_TODO_SETS,
};

/* The chunks of a tensor at one link.  Their records lie behind those of the
 * link before: record from + i is that of local chunk i. */
struct sw_part {
	struct sw_place place;
	uint32_t from, n_awaited; /* quanta of results that are to come */
	uint32_t turn_step; /* of a local chunk in its key, 2^32 over all */
	uint32_t n_todo;    /* in SW_TODO */
	/* Of the message with CLOSE of the stream's group; 0: it has not left.
	 */
	uint32_t close_number;
	struct sw_bitmap sets[SW_N_TODO_SETS];
};

/* A local rank's side of a tensor. */
struct sw_local {
	const uint8_t *from; /* its contributions; borrowed */
	uint64_t cookie;     /* of the open round */
	uint64_t lacks; /* bytes at its end that are not there yet, the same */
};

struct sw_wtensor {
	/* With the name below; after the key came, the priority is that by
	 * which it goes. */
	struct sw_worker_tensor decl;
	uint32_t id;         /* also of the last one that was here */
	uint32_t index;      /* among the worker's: that of the id */
	uint32_t number;     /* in the order of declaration */
	uint32_t key;        /* SW_KEY_NONE until the coordinator gave one */
	uint32_t first;      /* then also its place on the line */
	uint8_t class, mode; /* enum sw_mode */
	uint8_t op;          /* of this round, enum sw_round_kind */
	uint16_t root;       /* copy: the rank whose bytes it is */
	bool is_open;        /* a local rank has asked for a round */
	bool is_edited;      /* its buffer changed under a push */
	bool is_begun;       /* its round is counted */
	bool is_fifo;        /* it goes by readiness, not by priority */
	uint16_t step;
	uint16_t weight; /* of the results of this round */
	uint32_t round;
	/* Rounds from this one on fail, 0: none does; with this error
	 * (sw_fault_death). */
	uint32_t dead_from;
	int death;
	bool is_closed; /* a stream: this member is through with its group */
	bool is_kept;   /* a dead stream: nothing of it is lent any more */
	uint32_t n_chunks;
	uint32_t n_missing; /* of this lane's chunks, not HELD */
	uint32_t last;    /* record of the tensor's last chunk, if it is here */
	uint32_t lanes;   /* which others have chunks of it */
	uint32_t n_lanes; /* and how many of them are not done; of a dead
			   * stream, have not released it */
	uint32_t elem_bytes, chunk_bytes, last_bytes;
	/* Of a tensor: local ranks that have asked for this round; lane 0's. */
	uint32_t n_asked;
	uint64_t *asked;
	uint64_t progress_ns; /* last result, or the submit */
	/* Members that the last WAIT named, and when it came; lane 0 reads
	 * both. */
	uint64_t awaited, awaited_ns;
	struct sw_place own;      /* this lane's chunks */
	struct sw_local *locals;  /* by local rank; lane 0's */
	struct sw_wchunk *chunks; /* this lane's, by record */
	struct sw_part *parts;    /* by link */
	/* Of a growing tensor, by granule: of its chunks here, those that this
	 * lane does not hold yet, 0: it holds none; of all, those in lanes that
	 * hold all of theirs, lane 0's. */
	uint16_t *left;
	_Atomic uint32_t *held;
	/* Of the open round, in chunks: those that are there, of all local
	 * ranks, lane 0's, which the others read; of this lane's, those that
	 * the scheduler was given, and those before its task began. */
	_Atomic uint32_t n_ready;
	uint32_t n_given;
	uint64_t before; /* bytes of those */
	uint64_t lacks;  /* the most that a local rank does; lane 0's */
	uint64_t *words, n_words; /* of their sets */
	void *mem; /* all of these, of all that were declared with it */
	uint64_t mem_bytes;
	struct sw_stream *stream; /* its windows; NULL: it is a tensor */
	struct sw_worker *worker; /* and its */
	struct sw_task task;      /* while it is open */
	char name[SW_NAME_MAX];
	char why[SW_TEXT_MAX]; /* it is dead */
};

/* sw_wtensor_of - whose task it is. */
static inline struct sw_wtensor *sw_wtensor_of(const struct sw_task *t)
{
	return (struct sw_wtensor *)((char *)(uintptr_t)t -
				     offsetof(struct sw_wtensor, task));
}

/* sw_wtensor_folded - a chunk's push has arrived for good: the @cost bytes of
 * credit that it took come back.  sw_sched_run is to follow. */
static inline void sw_wtensor_folded(struct sw_worker *w, struct sw_wtensor *t,
	uint32_t record, uint64_t cost)
{
	struct sw_wchunk *c = &t->chunks[record];
	int err;

	if (!c->is_charged)
		return;
	c->is_charged = false;
	err = sw_task_finish(&w->sched, &t->task, cost);
	assert(!err);
	(void)err;
}

/* sw_wtensor_bytes - of the chunk of a record. */
static inline uint32_t sw_wtensor_bytes(
	const struct sw_wtensor *t, uint32_t record)
{
	return record == t->last ? t->last_bytes : t->chunk_bytes;
}

/* sw_tensor_of_key - that a frame is about; NULL: it is not here, or no more.
 */
static inline struct sw_wtensor *sw_tensor_of_key(
	const struct sw_worker *w, uint32_t key)
{
	uint32_t i = w->by_key[sw_key_index(key)];

	return i != SW_KEY_NONE && w->tensors[i].key == key ? &w->tensors[i]
							    : NULL;
}

/* sw_key_is_past - was @key that of a stream that has gone? */
static inline bool sw_key_is_past(const struct sw_worker *w, uint32_t key)
{
	uint32_t i = sw_key_index(key), newest = w->newest[i];

	return newest != SW_KEY_NONE &&
	       key + (w->by_key[i] != SW_KEY_NONE) <= newest;
}

/* sw_wtensor_at - the tensor or stream @id; NULL: this lane does not have it.
 * What it does not have it does not look at: the control thread may be building
 * another one there. */
static inline struct sw_wtensor *sw_wtensor_at(
	const struct sw_worker *w, uint32_t id)
{
	struct sw_wtensor *t = &w->tensors[sw_id_index(id)];

	return sw_bitmap_has(&w->added, sw_id_index(id)) && t->id == id ? t
									: NULL;
}

/* sw_wtensor_numbered - one of those that were declared last. */
static inline struct sw_wtensor *sw_wtensor_numbered(
	const struct sw_worker *w, uint32_t number)
{
	return &w->tensors[w->by_number[number % SW_TENSORS]];
}

/* sw_part_record - of a chunk of a tensor, if it lies at the link; else
 * SW_PLACE_NONE. */
static inline uint32_t sw_part_record(const struct sw_part *p, uint32_t chunk)
{
	uint32_t local = sw_place_find(&p->place, chunk);

	return local == SW_PLACE_NONE ? SW_PLACE_NONE : p->from + local;
}

static inline bool sw_wtensor_is_dead(
	const struct sw_wtensor *t, uint32_t round)
{
	return t->dead_from &&
	       (t->stream || (int32_t)(round - t->dead_from) >= 0);
}

#endif
