/* client_call.h - libsumwire: collectives, their pieces and channels.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_CALL_H
#define SW_PMD_CLIENT_CLIENT_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "pmd/client/edge.h"
#include "pmd/client/rows.h"
#include <sumwire/coll.h>

struct sw_client;
struct sw_tensor;
struct sw_group;
struct sw_call;

/* State of a push_pull or a collective. */
enum sw_tensor_state {
	SW_TENSOR_IDLE,
	SW_TENSOR_OPEN,  /* pushed */
	SW_TENSOR_ENDED, /* completed, not yet reported to the caller */
};

/* Shared memory of the library through which a piece is copied. */
struct sw_stage {
	char *base; /* NULL: not allocated yet */
	struct sw_edge_place_at at;
	bool is_used;
};

enum {
	SW_STAGES_SMALL = 16, /* stages of SW_STAGE_SMALL bytes */
	SW_STAGES_LARGE = 3,  /* stages of a whole piece */
	SW_STAGE_SMALL = 16 << 10,
};

/* A stream of a group, and the collectives called on it. */
struct sw_channel {
	struct sw_tensor *stream;     /* NULL: not opened yet */
	struct sw_call *first, **end; /* calls with pieces to put, in order */
	uint32_t n_pieces;            /* pieces at the agent */
	struct sw_stage small[SW_STAGES_SMALL], large[SW_STAGES_LARGE];
	uint64_t large_bytes; /* bytes of each large stage */
	/* Pieces in order; each is put once its copy is complete. */
	struct sw_call_piece *filling, **filling_end;
	struct sw_channel *next; /* next of the client */
};

/* The copier for buffers of a collective that memcpy cannot reach; pmd/cuda
 * embeds it.  The library calls the functions with the lock held.  They return
 * at once, and make no driver call. */
struct sw_call_device {
	const struct sw_call_device_ops {
		/* Begin a copy into a stage or out of it.  Call
		 * sw_client_copied with @piece when the copy is done. */
		void (*copy)(struct sw_call_device *d, uint32_t piece,
			const struct sw_rows *rows, bool is_into);
		/* Note that the piece sent from @rows is summed, but not copied
		 * back yet. */
		void (*sum)(
			struct sw_call_device *d, const struct sw_rows *rows);
		/* Note that the call has ended: none of its copies runs.
		 * Return 0; for a call without an error, possibly an error. */
		int (*end)(struct sw_call_device *d);
	} * ops;
	const void *owner; /* the owner, if there are several devices */
	bool is_ready;     /* the call's pieces may be put */
	uint64_t ready_ns; /* since then */
	/* Sent bytes, set when the call begins; 0 bytes: none. */
	const char *sent;
	uint64_t sent_bytes;
	/* Place of the result, set when the call begins; 0 bytes: none. */
	const char *received;
	uint64_t received_bytes;
};

/* A collective, from sw_coll until its end is reported.  It consists of pieces;
 * each is a collective of its own at the agent. */
struct sw_call {
	uint64_t handle;
	enum sw_tensor_state state;
	int status;
	struct sw_group *group;
	struct sw_channel *channel;
	uint64_t number;      /* number in its group, from 1 */
	uint64_t deadline_ns; /* when to abort the group; 0: never */
	uint64_t ready_ns;    /* begin; 0: not traced */
	struct sw_coll_args args;
	uint64_t piece;  /* elements of each part in a piece */
	uint64_t stride; /* bytes between parts; 0: not constant */
	uint64_t next;   /* first element not put yet */
	uint64_t first_piece, last_piece; /* handles, if ready_ns is set */
	uint32_t n_open;                  /* unfinished pieces */
	/* Whether the buffers lie in memory of sw_alloc, and where. */
	bool has_from, has_to;
	struct sw_edge_place_at from, to;
	bool is_begun;   /* begun; until then sw_coll may still fail */
	bool is_counted; /* counted in n_unfinished */
	struct sw_call_device
		*device;       /* NULL: memcpy copies, or it has ended */
	uint32_t n_copying;    /* pieces that the device copies */
	uint32_t n_waits;      /* threads that wait for the call */
	struct sw_call *later; /* next of its channel, or next ended call */
	char token[8];         /* token of a barrier */
};

/* A piece that fills its stage, is at the agent, or is copied out. */
struct sw_call_piece {
	uint64_t handle; /* the agent's; 0: none */
	struct sw_call *call;
	uint64_t at, n;         /* elements of each part */
	struct sw_stage *stage; /* NULL: both buffers are shared */
	int status;
	bool is_full;                /* its stage is filled: ready to put */
	bool is_back;                /* the agent has completed it */
	struct sw_call_piece *later; /* next to be put, or next to be copied
					out */
};

struct sw_calls {
	struct sw_call calls[SW_EDGE_COLLS];
	struct sw_call_piece pieces[SW_EDGE_COLLS];
	struct sw_call_piece *ended, **ended_end; /* to be copied out */
	struct sw_call *done, **done_end;         /* ended, unreported */
	struct sw_channel *channels, *turn;       /* all; the next in turn */
	uint64_t n_calls, n_pieces;               /* handles so far */
	uint32_t n_open;
	uint32_t n_unfinished;          /* calls with pieces to put or copy */
	uint64_t expire_ns;             /* no call expires earlier */
	bool is_moving;                 /* a thread copies, without the lock */
	const struct sw_group *copying; /* group whose buffers are being
					   copied; NULL: none */
	uint32_t n_releasing;           /* threads that wait for the end of
					   that copy */
};

/* sw_call_end_device - tell the device of @k that the call has ended, unless it
 * has no device, or was told before.  Returns the error of ops->end. */
int sw_call_end_device(struct sw_call *k);

/* sw_client_count_work - update calls.n_unfinished after a change of @k. */
void sw_client_count_work(struct sw_client *c, struct sw_call *k);

/* sw_client_find_call - return the collective of @handle, open or unreported;
 * NULL: unknown. */
struct sw_call *sw_client_find_call(struct sw_client *c, uint64_t handle);

/* sw_calls_piece - return the agent's handle of the first or last piece of the
 * collective of @handle, which may have been reported already.  0: unknown, or
 * its begin was not traced. */
static inline uint64_t sw_calls_piece(
	const struct sw_calls *s, uint64_t handle, bool is_last)
{
	const struct sw_call *k = &s->calls[handle & (SW_EDGE_COLLS - 1)];

	if (k->handle != handle)
		return 0;
	return is_last ? k->last_piece : k->first_piece;
}

/* sw_client_end_piece - end the piece that the agent has completed.  Returns
 * false if the agent has no such piece. */
bool sw_client_end_piece(struct sw_client *c, const struct sw_completion *done);

/* sw_client_move - put pieces and copy staged pieces, @bytes at most.  Releases
 * the lock during a copy.  Returns whether it did anything. */
bool sw_client_move(struct sw_client *c, uint64_t bytes);

/* sw_client_copied - note that a copy begun by sw_call_device_ops.copy, and by
 * the device at @from_ns, is complete, or has failed with @err.  Takes the
 * lock. */
void sw_client_copied(
	struct sw_client *c, uint32_t piece, uint64_t from_ns, int err);

/* sw_client_drop_call - end @k with @status; do not put pieces that the agent
 * does not have yet. */
void sw_client_drop_call(struct sw_client *c, struct sw_call *k, int status);

#endif
