/* pipeline.h - device to pinned memory, push_pull, and back, piece by piece.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor is one push_pull (net.push), which begins when the first of it has
 * landed in shared memory, and is told as more has (net.grow); and what has
 * come of its sum goes back while the rest has not: all stages work at once
 * within one tensor.
 *
 *     submit ─► event done? ─► OUT queue ─► net ─► IN queue ─► word, end
 *
 * Each way has a queue by priority, then by order of submits, and a window: at
 * most SW_PIPELINE_SLICES copies are with the back end, which are a piece
 * together, 256 KiB to 4 MiB: by what its copies cost each way finds out how
 * much is copied at once (copies.c), unless piece_bytes says it.  That is each
 * process's own affair, and may change at any time. An urgent tensor therefore
 * waits for at most one piece of other tensors on its way out and on its way
 * back. In between, the agent's scheduler decides, chunk by chunk. A tensor
 * enters the queue when its producer's event is done, not before: were it
 * waited for on the stream of copies, one that is late would hold up all that
 * is ready.
 *
 * The net reports sums by granules. Granules in a row go back as one copy, when
 * they reach the size of a piece or when no neighbour is left to join. Frames
 * come in any order, so it is looked for in the first SW_PIPELINE_AHEAD
 * granules that are not on their way back. Two copies of a tensor are, so that
 * the window is full when one ends.
 *
 * Collectives (device_coll.c) bring copies of their own, which queue with those
 * of tensors: what is urgent passes, whoever it belongs to.
 *
 * Threads: one of the pipeline's own makes all copies and calls of net; callers
 * come from any and block in wait alone.  A mutex guards what both see: the
 * mail, states of tensors.  No call of the back end is made while it is held: a
 * driver may let a call wait for a stream, which waits for a word that the
 * thread writes.  The thread owns copies, queues and windows.  It sleeps in
 * net.rest when all that is open is with the network, and naps 20 us when
 * copies are, 50 when producers are not done.
 *
 * Ownership: a tensor and the memory that it points to belong to the caller of
 * sw_pipeline_add and live longer than the pipeline.  from and to of a call are
 * the device's, and must not be freed, and to not be written or read, until the
 * call has ended.
 *
 * A device that fails ends everything: net.give_up is called, each open call
 * ends with SW_EDEVICE, each word is written, so that no stream waits for ever.
 */
#ifndef SW_PMD_CUDA_PIPELINE_H
#define SW_PMD_CUDA_PIPELINE_H

#include <pthread.h>

#include "pmd/client/edge.h"
#include "pmd/client/segment.h"
#include "pmd/cuda/copies.h"

struct sw_pipeline;

enum {
	SW_PIPELINE_TENSORS = 4096,
	SW_PIPELINE_BACK = 2,      /* copies of a tensor on their way back */
	SW_PIPELINE_AHEAD = 64,    /* granules */
	SW_PIPELINE_OTHERS = 1024, /* copies and words besides */
	SW_PIPELINE_NAME = 128,
	SW_PIPELINE_WHY = 640,
};

/* Where tensors are summed.  Thread: the pipeline's, but wake: any. */
struct sw_pipeline_net {
	void *ctx;
	/* Start to sum @tensor, or, @root being 1 + a rank, to copy that
	 * rank's, while its last @lacks bytes are not there yet.  Never blocks.
	 * Then so many are not, at last none.  Has this granule come, of the
	 * open call? Each has this many bytes, except the last. */
	int (*push)(void *ctx, void *tensor, uint32_t root, uint32_t step,
		uint64_t lacks, uint64_t *handle);
	void (*grow)(void *ctx, void *tensor, uint64_t lacks);
	bool (*is_summed)(void *ctx, void *tensor, uint32_t granule);
	uint64_t granule;
	int (*poll)(void *ctx, uint64_t handle); /* 0, SW_EAGAIN, an error */
	const char *(*why)(void *ctx);           /* this thread's last error */
	/* Note for a trace what the call @handle did since @from_ns; NULL:
	 * nobody traces. */
	void (*note)(void *ctx, uint64_t handle, enum sw_edge_note_kind kind,
		uint64_t from_ns, uint64_t bytes);
	/* Its conflict, as sw_last_conflict returns it, and the two ranks.
	 * NULL: no error has one. */
	void (*conflict)(void *ctx, uint32_t out[3]);
	/* Sleep until a handle may have ended or more has come, until wake, or
	 * @until_ns; not at all if *has_mail, which is set before wake. */
	void (*rest)(
		void *ctx, const _Atomic bool *has_mail, uint64_t until_ns);
	void (*wake)(void *ctx);
	/* Whatever else is to be done now; NULL: nothing.  Returns whether
	 * something was. */
	bool (*serve)(void *ctx);
	/* The job cannot go on. */
	void (*give_up)(void *ctx, const char *why);
};

/* Work to do when an event has happened: by the pipeline's thread, without the
 * lock; @err: it never will. */
struct sw_pipeline_start {
	struct sw_pipeline_start *next; /* in mail, or waiting */
	void *event;
	uint64_t number; /* in the order of all that were posted */
	void (*fn)(struct sw_pipeline *l, struct sw_pipeline_start *s, int err);
};

struct sw_pipeline_call {
	const void *from; /* on the device; NULL: a broadcast of another rank */
	void *to;         /* the same as from: nothing is copied back at a
			     broadcast's root */
	uint32_t root;    /* 0: sum; else 1 + the rank that broadcasts */
	uint32_t step;
	bool is_root;
};

struct sw_pipeline_tensor {
	struct sw_pipeline_start start; /* the first: it is the tensor */
	char name[SW_PIPELINE_NAME];
	uint32_t priority; /* 0 most urgent */
	void *net;         /* what net.push takes */
	char *out;         /* pinned, to be pushed */
	const char *in;    /* pinned, where its result comes */
	uint64_t bytes;
	/* the pipeline's: */
	bool is_open; /* a call has not ended */
	struct sw_pipeline_call call;
	_Atomic uint32_t *word; /* calls that have ended */
	uint32_t n_calls;       /* so far */
	struct sw_pipeline_copy copy_out, copies_in[SW_PIPELINE_BACK];
	uint64_t handle;   /* of net */
	uint64_t ready_ns; /* when its producer was done */
	bool is_pushed;    /* net has it */
	bool is_summed;    /* and has done with it, with no error */
	uint32_t n_open;   /* copies, and whether it is one of those in open */
	uint32_t n_granules;
	uint32_t first;    /* granule that is not on its way back; of those: */
	uint64_t are_back; /* from there on, a bit each */
	/* By granule, if the back end has them: of what is pushed, then of what
	 * came back, of how many. */
	uint64_t *digests;
	bool has_digests;
	uint32_t n_results;
	int status;    /* result of the last call that ended */
	bool is_known; /* the caller knows it */
	char why[SW_PIPELINE_WHY];
	uint32_t conflict[3]; /* the conflict in the net's error */
};

struct sw_pipeline_params {
	const struct sw_back_ops *ops;
	struct sw_back *back; /* owned by the caller */
	struct sw_pipeline_net net;
	const char *where;    /* "rank 1: cuda device 0"; owned by the caller */
	uint64_t piece_bytes; /* two slices; 0: how much is copied at once is
				 found out */
	/* One line without newline. */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
};

struct sw_pipeline {
	struct sw_pipeline_params p;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	_Atomic bool has_mail; /* mail, or the end */
	bool is_ending;
	_Atomic bool has_warned;
	int failed; /* error that every call returns, or 0 */
	char why[SW_PIPELINE_WHY];
	bool is_lost; /* a caller saw the device fail, and why: */
	char lost_why[SW_BACK_WHY];
	struct sw_pipeline_start *mail;
	struct sw_pipeline_copy *copies; /* mail, too */
	uint64_t n_calls;
	struct sw_pipeline_tensor **tensors; /* all */
	uint32_t n_tensors;
	struct sw_segment shared;
	_Atomic uint32_t *words; /* in it, of each, and others */
	_Atomic uint32_t n_words;
	bool has_pinned; /* those */
	/* the thread's: */
	struct sw_pipeline_start *waiting; /* for events */
	struct sw_pipeline_lane lanes[SW_BACK_WAYS];
	struct sw_pipeline_tensor **open; /* pushed, and not all on its way
					     back */
	uint32_t n_open;
};

/* sw_pipeline_open - @p is copied.
 * Errors: SW_ENOMEM, SW_EDEVICE, and @why, of SW_BACK_WHY bytes. */
int sw_pipeline_open(
	struct sw_pipeline *l, const struct sw_pipeline_params *p, char *why);

/* sw_pipeline_close - end open calls with SW_ECLOSED; when it returns, all
 * copies have ended, and no stream waits for a word. May follow a failed
 * open. */
void sw_pipeline_close(struct sw_pipeline *l);

/* sw_pipeline_add - a tensor, whose fields down to bytes are set.
 * Errors: SW_EINVAL too many, SW_ENOMEM, SW_EDEVICE.  @why as above. */
int sw_pipeline_add(
	struct sw_pipeline *l, struct sw_pipeline_tensor *t, char *why);

/* sw_pipeline_submit - start @call when what @stream has so far is done.
 * Returns at once.  @why, of SW_PIPELINE_WHY bytes, is its sentence.
 * Errors: SW_EBUSY the last one has not ended; SW_EINVAL the stream is being
 * captured; SW_EDEVICE; the error of the last call, if nobody knows it. */
int sw_pipeline_submit(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	const struct sw_pipeline_call *call, void *stream, char *why);

/* sw_pipeline_wait - until the last call of @t has ended, or @until_ns; 0: do
 * not wait.  Returns its status, 0 where there was none; SW_EAGAIN: it has not
 * ended. */
int sw_pipeline_wait(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	uint64_t until_ns, char *why);

/* sw_pipeline_hold - let @stream wait for it instead; where that cannot be, as
 * sw_pipeline_wait, and one line says so.  0 says nothing of how it ends.
 * Errors: SW_EPERM the stream is being captured. */
int sw_pipeline_hold(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	void *stream, uint64_t until_ns, char *why);

/* --- for others than tensors --- */

/* sw_pipeline_word - a word that streams can wait for; at most
 * SW_PIPELINE_OTHERS are asked for.  Thread: any. */
_Atomic uint32_t *sw_pipeline_word(struct sw_pipeline *l);

/* sw_pipeline_event - one of the back end's; @why as below. */
int sw_pipeline_event(struct sw_pipeline *l, void **event, char *why);

/* sw_pipeline_record - @event is done when what @stream has so far is; @what is
 * the subject of @why, of SW_PIPELINE_WHY bytes.  Errors: as of submit. */
int sw_pipeline_record(struct sw_pipeline *l, void *event, void *stream,
	const char *what, char *why);

/* sw_pipeline_post - do @s when its event, which was recorded, is done.
 * sw_pipeline_copy - copy @c, whose fields down to end are set. After either,
 * the caller wakes the net. Thread: any, with the net's lock or without. */
void sw_pipeline_post(struct sw_pipeline *l, struct sw_pipeline_start *s);
void sw_pipeline_copy(struct sw_pipeline *l, struct sw_pipeline_copy *c);

/* sw_pipeline_hold_word - let @stream wait until *@word is @value or more;
 * @what is the subject of @why, of SW_PIPELINE_WHY bytes.  Errors: SW_ENOENT it
 * cannot, and one line says so; SW_EPERM the stream is being captured. */
int sw_pipeline_hold_word(struct sw_pipeline *l, _Atomic uint32_t *word,
	uint32_t value, void *stream, const char *what, char *why);

/* sw_pipeline_can_hold - the same, until what is there already: can it wait? */
int sw_pipeline_can_hold(struct sw_pipeline *l, void *stream, char *why);

#endif
