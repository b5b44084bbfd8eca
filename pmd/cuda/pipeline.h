/* pipeline.h - device to pinned memory, push_pull, and back, piece by piece.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor is one push_pull (net.push). It begins when the tensor's first bytes
 * have landed in shared memory, and net.grow reports further bytes. Parts of
 * the sum that have arrived are copied back while the rest is still missing, so
 * all stages work at once within one tensor.
 *
 *     submit ─► event done? ─► OUT queue ─► net ─► IN queue ─► word, end
 *
 * Each direction has a queue by priority, then by order of submits, and a
 * window: at most SW_PIPELINE_SLICES slices are at the back end, which together
 * form a piece of 256 KiB to 4 MiB. Each direction finds its slice size by
 * measuring its copies (copies.c), unless piece_bytes sets it. The size may
 * change at any time and differ between processes. An urgent tensor therefore
 * waits for at most one piece of other tensors on its way out and one on its
 * way back. In between, the agent's scheduler decides, chunk by chunk. A tensor
 * enters the queue only when its producer's event is done: if the stream of
 * copies waited for the event, a late producer would block all tensors that are
 * ready.
 *
 * The net reports sums by granules. Adjacent granules go back as one copy, when
 * they reach the size of a slice or when no neighbour is left to join. Frames
 * arrive in any order, so the thread searches the first SW_PIPELINE_AHEAD
 * granules that are not on their way back. Two copies of a tensor may be on
 * their way back, so that the window is full when one ends.
 *
 * Copies of collectives (device_coll.c) share the queues with copies of
 * tensors; a more urgent copy passes, whether of a collective or of a tensor.
 *
 * Threads: the pipeline's own thread makes all copies and calls of net. Callers
 * may be any thread, and block only in wait. A mutex guards the shared state:
 * mail and states of tensors. No call of the back end is made with the mutex
 * held, because a driver may let a call wait for a stream, which waits for a
 * word that the thread writes. The thread owns copies, queues and windows. It
 * sleeps in net.rest when only the network has work; it naps 20 us while copies
 * are open, and 50 us while producers are not done.
 *
 * Ownership: a tensor and the memory that it points to belong to the caller of
 * sw_pipeline_add and outlive the pipeline. from and to of a call are device
 * memory. Until the call has ended, they must not be freed, and to must not be
 * written or read.
 *
 * If the device fails, the thread calls net.give_up, ends each open call with
 * SW_EDEVICE, and writes each word, so that no stream waits forever.
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
	SW_PIPELINE_AHEAD = 64,    /* granules searched */
	SW_PIPELINE_OTHERS = 1024, /* copies and words of collectives */
	SW_PIPELINE_NAME = 128,
	SW_PIPELINE_WHY = 640,
};

/* The network that sums tensors. Thread: the pipeline's; wake: any. */
struct sw_pipeline_net {
	void *ctx;
	/* Start to sum @tensor or, if @root is 1 + a rank, to broadcast that
	 * rank's tensor. The last @lacks bytes may still be missing. Never
	 * blocks. */
	int (*push)(void *ctx, void *tensor, uint32_t root, uint32_t step,
		uint64_t lacks, uint64_t *handle);
	/* Report that only @lacks bytes are still missing, in the end 0. */
	void (*grow)(void *ctx, void *tensor, uint64_t lacks);
	/* Return whether this granule of the open call has arrived. */
	bool (*is_summed)(void *ctx, void *tensor, uint32_t granule);
	uint64_t granule; /* bytes of each granule, except the last */
	int (*poll)(void *ctx, uint64_t handle); /* 0, SW_EAGAIN, an error */
	const char *(*why)(void *ctx);           /* this thread's last error */
	/* Note for a trace a step of the call @handle since @from_ns; NULL: no
	 * trace. */
	void (*note)(void *ctx, uint64_t handle, enum sw_edge_note_kind kind,
		uint64_t from_ns, uint64_t bytes);
	/* Return the last error's conflict, as sw_last_conflict does, and its
	 * two ranks. NULL: errors have no conflict. */
	void (*conflict)(void *ctx, uint32_t out[3]);
	/* Sleep until a handle may have ended, more granules may have arrived,
	 * wake is called, or @until_ns. Return at once if *@has_mail, which is
	 * set before wake. */
	void (*rest)(
		void *ctx, const _Atomic bool *has_mail, uint64_t until_ns);
	void (*wake)(void *ctx);
	/* Do other work that is due now; return whether there was any. NULL:
	 * none. */
	bool (*serve)(void *ctx);
	/* Tell the job that it cannot continue. */
	void (*give_up)(void *ctx, const char *why);
};

/* Work that the pipeline's thread does, without the lock, when an event is
 * done; with @err if the event never will be. */
struct sw_pipeline_start {
	struct sw_pipeline_start *next; /* in mail, or waiting */
	void *event;
	uint64_t number; /* order of posting */
	void (*fn)(struct sw_pipeline *l, struct sw_pipeline_start *s, int err);
};

struct sw_pipeline_call {
	const void *from; /* on the device; NULL: another rank broadcasts */
	void *to; /* on the device; if it equals from, a broadcast's root copies
		     nothing back */
	uint32_t root; /* 0: sum; else 1 + the rank that broadcasts */
	uint32_t step;
	bool is_root;
};

struct sw_pipeline_tensor {
	struct sw_pipeline_start start; /* first member: cast to the tensor */
	char name[SW_PIPELINE_NAME];
	uint32_t priority; /* 0 most urgent */
	void *net;         /* the tensor for net.push */
	char *out;         /* pinned, to be pushed */
	const char *in;    /* pinned, receives the result */
	uint64_t bytes;
	/* the pipeline's: */
	bool is_open; /* a call has not ended */
	struct sw_pipeline_call call;
	_Atomic uint32_t *word; /* calls that have ended */
	uint32_t n_calls;       /* calls so far */
	struct sw_pipeline_copy copy_out, copies_in[SW_PIPELINE_BACK];
	uint64_t handle;   /* of the push_pull */
	uint64_t ready_ns; /* when its producer was done */
	bool is_pushed;    /* net has it and has not ended it */
	bool is_summed;    /* net has summed it, without error */
	uint32_t n_open;   /* open copies, plus 1 while it is in open */
	uint32_t n_granules;
	uint32_t first;    /* first granule not on its way back */
	uint64_t are_back; /* granules on their way back, a bit each, from first
			      on */
	/* Digest of each granule, if the back end digests: of the pushed data,
	 * then of the n_results results that were copied back. */
	uint64_t *digests;
	bool has_digests;
	uint32_t n_results;
	int status;    /* result of the last call that ended */
	bool is_known; /* the caller was told the status */
	char why[SW_PIPELINE_WHY];
	uint32_t conflict[3]; /* the conflict in the net's error */
};

struct sw_pipeline_params {
	const struct sw_back_ops *ops;
	struct sw_back *back; /* owned by the caller */
	struct sw_pipeline_net net;
	const char *where;    /* "rank 1: cuda device 0"; owned by the caller */
	uint64_t piece_bytes; /* bytes of two slices; 0: the slice size is
				 measured */
	/* Log one line, without newline. */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
};

struct sw_pipeline {
	struct sw_pipeline_params p;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	_Atomic bool has_mail; /* there is mail, or the end */
	bool is_ending;
	_Atomic bool has_warned;
	int failed; /* error that every call returns, or 0 */
	char why[SW_PIPELINE_WHY];
	bool is_lost; /* a caller saw the device fail, and why: */
	char lost_why[SW_BACK_WHY];
	struct sw_pipeline_start *mail;
	struct sw_pipeline_copy *copies; /* also mail */
	uint64_t n_calls;
	struct sw_pipeline_tensor **tensors; /* all */
	uint32_t n_tensors;
	struct sw_segment shared;
	_Atomic uint32_t *words; /* in shared: of each tensor and collective */
	_Atomic uint32_t n_words;
	bool has_pinned; /* words are pinned */
	/* the thread's: */
	struct sw_pipeline_start *waiting; /* for events */
	struct sw_pipeline_lane lanes[SW_BACK_WAYS];
	struct sw_pipeline_tensor **open; /* with net, or with granules that are
					     not on their way back */
	uint32_t n_open;
};

/* sw_pipeline_open - open a pipeline; copies @p.
 * Errors: SW_ENOMEM; SW_EDEVICE. @why, of SW_BACK_WHY bytes, receives the
 * reason. */
int sw_pipeline_open(
	struct sw_pipeline *l, const struct sw_pipeline_params *p, char *why);

/* sw_pipeline_close - end open calls with SW_ECLOSED; when it returns, all
 * copies have ended, and no stream waits for a word. May follow a failed
 * open. */
void sw_pipeline_close(struct sw_pipeline *l);

/* sw_pipeline_add - add @t, whose fields down to bytes are set.
 * Errors: SW_EINVAL too many, SW_ENOMEM, SW_EDEVICE.  @why as above. */
int sw_pipeline_add(
	struct sw_pipeline *l, struct sw_pipeline_tensor *t, char *why);

/* sw_pipeline_submit - start @call when the work that @stream has so far is
 * done. Returns at once. @why, of SW_PIPELINE_WHY bytes, receives a sentence on
 * an error.
 * Errors: SW_EBUSY the last call has not ended; SW_EINVAL the stream is being
 * captured; SW_EDEVICE; the error of the last call, if no function has returned
 * it yet. */
int sw_pipeline_submit(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	const struct sw_pipeline_call *call, void *stream, char *why);

/* sw_pipeline_wait - wait until the last call of @t has ended, or @until_ns; 0:
 * do not wait. Returns the call's status, 0 if there was no call, or SW_EAGAIN
 * if it has not ended. */
int sw_pipeline_wait(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	uint64_t until_ns, char *why);

/* sw_pipeline_hold - make @stream wait for the last call of @t instead. If
 * streams cannot wait, log that once and do as sw_pipeline_wait. If @stream
 * waits, returns 0, however the call ends.
 * Errors: SW_EPERM the stream is being captured. */
int sw_pipeline_hold(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	void *stream, uint64_t until_ns, char *why);

/* --- for collectives --- */

/* sw_pipeline_word - return a new word that streams can wait for; call it at
 * most SW_PIPELINE_OTHERS times. Thread: any. */
_Atomic uint32_t *sw_pipeline_word(struct sw_pipeline *l);

/* sw_pipeline_event - open an event of the back end; @why as below. */
int sw_pipeline_event(struct sw_pipeline *l, void **event, char *why);

/* sw_pipeline_record - make @event done when the work that @stream has so far
 * is done; @what is the subject of @why, of SW_PIPELINE_WHY bytes. Errors: as
 * of sw_pipeline_submit. */
int sw_pipeline_record(struct sw_pipeline *l, void *event, void *stream,
	const char *what, char *why);

/* sw_pipeline_post - do @s when its recorded event is done.
 * sw_pipeline_copy - copy @c, whose fields down to end are set. After either,
 * the caller wakes the net. Thread: any, with the net's lock or without. */
void sw_pipeline_post(struct sw_pipeline *l, struct sw_pipeline_start *s);
void sw_pipeline_copy(struct sw_pipeline *l, struct sw_pipeline_copy *c);

/* sw_pipeline_hold_word - make @stream wait until *@word is @value or more;
 * @what is the subject of @why, of SW_PIPELINE_WHY bytes. Errors: SW_ENOENT
 * streams cannot wait, which is logged once; SW_EPERM the stream is being
 * captured. */
int sw_pipeline_hold_word(struct sw_pipeline *l, _Atomic uint32_t *word,
	uint32_t value, void *stream, const char *what, char *why);

/* sw_pipeline_can_hold - test whether @stream can wait, by a wait that has
 * already ended; errors as of sw_pipeline_hold_word. */
int sw_pipeline_can_hold(struct sw_pipeline *l, void *stream, char *why);

#endif
