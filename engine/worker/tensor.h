/* tensor.h - the tensors of a worker: their record, declaration and memory.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A chunk is HELD (its last sum is in the buffer), GRAD (the buffer holds a
 * contribution that is to be pushed) or PUSHED (it is on its way or folded).
 * It becomes HELD before the first byte of a result is written, and a PUSH is
 * built only in GRAD: so a retransmission can never carry a sum, although
 * source and destination are the same bytes.
 */
#ifndef SW_TENSOR_H
#define SW_TENSOR_H

#include "engine/base/bitmap.h"
#include "engine/worker/worker.h"

enum sw_chunk_state { SW_HELD, SW_GRAD, SW_PUSHED };

struct sw_wchunk {
	uint64_t psn;  /* of the last PUSH */
	uint64_t t_ns; /* PUSHED: when it was sent, or asked for */
	uint32_t crc;  /* of the first PUSH of this round */
	uint8_t state;
	uint8_t n_sent;    /* PUSHes of this round, stops at 255 */
	uint8_t n_refused; /* of them refused by CRC */
	bool is_charged;   /* takes credit: started, not folded yet */
};

struct sw_wtensor {
	uint32_t key;        /* SW_KEY_NONE until the coordinator gave one */
	uint32_t first;      /* then also its place on the line */
	uint32_t precedence; /* among all by (priority, index) */
	uint32_t order; /* in which it goes: its precedence, or by readiness */
	uint32_t priority;
	uint8_t dtype, class;
	uint8_t op;     /* of this round, enum sw_operation */
	uint16_t root;  /* copy: the rank whose bytes it is */
	bool is_async;  /* pushes deltas, gets copies (async.h) */
	bool is_open;   /* a local rank has asked for a round */
	bool is_edited; /* its buffer changed under a push */
	bool is_begun;  /* its round is counted */
	uint16_t step;
	uint16_t weight; /* of the results of this round */
	uint32_t round;
	/* Members call it differently: rounds from this one on fail, 0: none
	 * does. */
	uint32_t dead_from;
	uint32_t n_chunks;
	uint32_t n_missing; /* of this lane's chunks, not HELD */
	uint32_t lanes;     /* lane 0: which others have chunks of it */
	uint32_t n_lanes;   /* and how many of them are not done */
	uint32_t elem_bytes, chunk_bytes, last_bytes;
	uint64_t n_elems;
	uint8_t *base;        /* of results; borrowed until sw_worker_close */
	uint64_t asked;       /* local ranks that have asked for this round */
	uint64_t *cookies;    /* by local rank */
	const uint8_t **from; /* by local rank: its contributions; lane 0's */
	uint64_t progress_ns; /* last result, or the submit */
	uint64_t missing;     /* members that a WAIT named */
	struct sw_wchunk *chunks;
	struct sw_place own;     /* this lane's chunks */
	struct sw_place *places; /* by link */
	struct sw_bitmap *todo;  /* by link, local indices: in GRAD */
	struct sw_bitmap *again; /* the same: those of todo that were sent */
	struct sw_bitmap *late;  /* the same: acknowledged, no result yet */
	uint64_t *words;         /* of these sets */
	void *mem;               /* all of these, from chunks to words */
	uint64_t mem_bytes;
	struct sw_worker *worker; /* and its */
	struct sw_task task;      /* while it is open */
	char name[SW_NAME_MAX];
	char why[SW_TEXT_MAX]; /* it is dead */
};

static inline uint32_t sw_wtensor_bytes(
	const struct sw_wtensor *t, uint32_t chunk)
{
	return chunk + 1 == t->n_chunks ? t->last_bytes : t->chunk_bytes;
}

static inline bool sw_wtensor_is_dead(
	const struct sw_wtensor *t, uint32_t round)
{
	return t->dead_from && (int32_t)(round - t->dead_from) >= 0;
}

/* tensor_memory.c: chunks of a declared tensor; what it takes, in whole pages;
 * take it (SW_ENOMEM), n_chunks being known; give it back. */
uint32_t sw_wtensor_chunks(
	const struct sw_worker *w, const struct sw_worker_tensor *in);
uint64_t sw_wtensor_need(
	const struct sw_worker *w, const struct sw_worker_tensor *in);
int sw_wtensor_take(struct sw_worker *w, struct sw_wtensor *t);
void sw_wtensor_give(const struct sw_worker *w, struct sw_wtensor *t);

/* tensors.c */
int sw_tensors_open(struct sw_worker *w);
void sw_tensors_close(struct sw_worker *w);
/* sw_tensors_keyed - link 0 gave the tensor its key and its place. */
int sw_tensors_keyed(
	struct sw_worker *w, uint32_t tensor, uint32_t key, uint32_t first);
/* sw_tensors_are_admitted - by all servers, in all lanes. */
bool sw_tensors_are_admitted(const struct sw_worker *w);
/* sw_tensors_copy - another lane declares what lane 0 has: n_wanted tensors.
 * False: memory for them is being prepared, call it again. */
bool sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *from);

/* mismatch.c: sw_tensor_kill - rounds from @round on fail, as @why says: the
 * open one ends, the other lanes and the servers are told. */
void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	const char *why);

#endif
