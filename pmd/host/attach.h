/* attach.h - the agent's side of attached training processes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Life of an attachment:
 *   on_attach -> sw_host_attached (or sw_host_refuse: the id is gone)
 *   on_declare -> sw_host_declared or sw_host_declare_failed, any number
 *   the lcore: sw_host_take, sw_host_complete, sw_host_idle_wait
 *   on_detach -> the lcore releases client and tensors -> sw_host_release
 * Whatever comes from a client is checked here; what is wrong ends that client
 * alone, through on_detach.
 *
 * Ownership: the host owns clients, tensor tables and mappings.  Those of an id
 * stay valid until sw_host_release of it, also when the process has long died.
 *
 * Threads: "control" functions and the callbacks belong to the one thread that
 * calls sw_host_poll; "lcore" functions to the one lcore that was given the
 * client.  Callbacks may call every control function but poll and close.
 */
#ifndef SW_PMD_HOST_ATTACH_H
#define SW_PMD_HOST_ATTACH_H

#include <stdint.h>

#include "engine/base/log.h"
#include "pmd/client/edge.h"

struct sw_host;
struct sw_host_client; /* what an lcore sees of one client */

/* A tensor that a client asks for. */
struct sw_host_tensor {
	const char *name; /* 1 to 127 bytes of text (text.h) */
	uint64_t n_elems; /* of a stream: ranks */
	uint64_t bytes;   /* n_elems * element size, <= 64 GiB */
	uint32_t dtype;   /* valid enum sw_dtype */
	uint32_t priority;
	uint8_t kind;          /* enum sw_edge_item; never memory */
	const uint16_t *ranks; /* of a stream; which ones is not checked */
	void *base; /* mapped here, zeroed, 64-byte aligned; the client may
		       write it at any time */
	/* Of several local ranks: where the result goes, which all of them can
	 * read, and the tensor's id among all that they have declared, by
	 * name; NULL: another local rank declared it otherwise.  Of one
	 * local rank NULL and 0. */
	void *result;
	uint32_t node_id;
	/* Of several local ranks: no other one has declared it; its index was
	 * that of a stream that has gone (sw_host_gone). */
	bool is_new, is_again;
};

enum sw_host_why {
	SW_HOST_CLOSED,    /* the client called sw_close */
	SW_HOST_DIED,      /* its process ended, hung up or gave up */
	SW_HOST_VIOLATION, /* it broke the protocol */
	SW_HOST_FAILED,    /* the agent ran out of memory for it */
};

struct sw_host_events {
	/* A process asks to attach: answer now or later.  @local_rank is the
	 * one that it must be, with SW_EDGE_IF_FREE the one that it would like
	 * to be, UINT32_MAX: any. */
	void (*on_attach)(void *ctx, uint32_t id, uint32_t pid, uint32_t uid,
		uint32_t local_rank);
	/* A client declares @n tensors (valid until release); names are new to
	 * this client, memory is reserved.  Answer now or later; the next
	 * batch of this client, with several local ranks of any, comes only
	 * after the answer. */
	void (*on_declare)(void *ctx, uint32_t id, uint32_t batch,
		const struct sw_host_tensor *tensors, uint32_t n);
	/* The client is gone, @text says why.  No callback for @id follows; a
	 * batch is still to be answered, as long as there are others.  Called
	 * once for every on_attach that was not refused; the agent owes a
	 * sw_host_release. */
	void (*on_detach)(
		void *ctx, uint32_t id, enum sw_host_why why, const char *text);
	/* A client sets a tuning (its value is not checked, the policy's name
	 * ends): answer now or later with sw_host_tuned; another comes only
	 * after that. */
	void (*on_tune)(
		void *ctx, uint32_t id, const struct sw_edge_tune *tune);
	/* A client ends a group; its stream is one of a declared batch, as
	 * sw_host_take calls it, its text is text (text.h).  Answer it as
	 * on_tune. */
	void (*on_end)(void *ctx, uint32_t id, const struct sw_edge_end *end);
	/* A client frees memory, or a stream of a group that it has closed,
	 * the item @item: have its lcore call sw_host_forget, and answer as
	 * on_tune when no port refers to that memory any more; it is then
	 * unmapped. */
	void (*on_free)(void *ctx, uint32_t id, uint32_t item);
};

struct sw_host_params {
	const char *path;     /* of the socket, at most 107 bytes; borrowed
				 until sw_host_close */
	const uint32_t *uids; /* users admitted besides our own; copied.
				 With any, the socket file lets all try */
	uint32_t n_uids;
	uint32_t n_local;     /* local ranks of one job, 1 to 1,023 */
	uint32_t max_clients; /* attached or not yet released, at most two jobs
				 of the most local ranks, and 8 */
	uint64_t quota_bytes; /* of shared memory, all clients together */
	int numa_node; /* that it comes from; SW_NUMA_ANY (nodes.h): any */
	struct sw_host_events events;
	void *ctx;                /* handed to the callbacks */
	const struct sw_log *log; /* borrowed; may be NULL */
};

/* sw_host_open - make a host, at whose socket nobody can attach yet (control).
 * Remove a socket file that nobody listens at.
 * Errors: SW_EBUSY somebody listens there; SW_EINVAL; SW_EIO; SW_ENOMEM;
 * logged once. */
int sw_host_open(const struct sw_host_params *p, struct sw_host **out);

/* sw_host_listen - make the socket file and listen there (control).  Call it
 * when the agent can serve: processes take the file as a sign of that, and what
 * ends the agent before is told by its log and exit code alone.
 * Errors: as sw_host_open. */
int sw_host_listen(struct sw_host *h);

/* sw_host_close - end every client ("the agent stops") without callbacks, free
 * everything, remove the socket file (control).  No lcore may use a client
 * any more.  *@h may be NULL; it is set to NULL. */
void sw_host_close(struct sw_host **h);

/* sw_host_poll - handle what has come, call back (control).
 * Waits at most @timeout_ms (0: not at all) for something to come.  Reserving
 * the memory of a large batch is spread over calls, about 10 ms each. */
void sw_host_poll(struct sw_host *h, uint32_t timeout_ms);

/* sw_host_job - the job that clients are admitted to from now on (control).
 * @epoch  as the job's coordinator has drawn it: no other job has it */
void sw_host_job(struct sw_host *h, const char *name, uint64_t epoch);

/* sw_host_attached - admit a client; its lcore may use *@client_out from now on
 * (control).
 * @local_rank  also chooses the stagger of its tensors; below @local_size,
 *              which is the n_local of sw_host_open
 * Errors: SW_ENOENT @id is gone; SW_ENOMEM, SW_EIO: it has been refused with
 * that error, and is gone. */
int sw_host_attached(struct sw_host *h, uint32_t id, uint32_t rank,
	uint32_t size, uint32_t local_rank, uint32_t local_size,
	struct sw_host_client **client_out);

/* sw_host_refuse - do not admit a client; @id is gone (control).
 * @err, @text  what its sw_open returns; @text should name who is attached,
 *              missing or full */
void sw_host_refuse(struct sw_host *h, uint32_t id, int err, const char *text);

/* sw_host_declared - a batch is admitted (control).  Call it when the lcore
 * knows the tensors: submits may follow at once.
 * @first    what sw_host_take calls the batch's first tensor: an id; those of
 * the others follow. Not read with several local ranks: it calls a tensor by
 * its node_id
 * @err      0, or one of them is dead, as @clash says: its push_pulls end with
 *           it, and so does the client's sw_declare
 * Errors: SW_ENOENT the client or the batch is gone. */
int sw_host_declared(struct sw_host *h, uint32_t id, uint32_t batch,
	uint32_t first, int err, const char *clash);

/* sw_host_declare_failed - a batch is not admitted; its tensors are unmapped
 * here, so the lcore must not use them (control).
 * @err, @text  what the client's sw_declare returns */
void sw_host_declare_failed(struct sw_host *h, uint32_t id, uint32_t batch,
	int err, const char *text);

/* sw_host_gone - the stream @node_id of several local ranks, which all of them
 * have closed, has gone: its index may be another one's (control). */
void sw_host_gone(struct sw_host *h, uint32_t node_id);

/* sw_host_tuned - the answer to on_tune, on_end or on_free (control).
 * @err, @text  what the client's call returns; 0: it is done */
void sw_host_tuned(struct sw_host *h, uint32_t id, int err, const char *text);

/* sw_host_status - a line for the client's log, such as "waiting for rank 2
 * of 4" (control).  Dropped when the client does not read. */
void sw_host_status(struct sw_host *h, uint32_t id, const char *text);

/* sw_host_end - hang up on a client, admitted or not, say when its job has
 * failed (control).  Its open handles and all later calls, or its sw_open, end
 * with @err and @text, which is in the log already.  on_detach is not called;
 * the agent owes a sw_host_release. */
void sw_host_end(struct sw_host *h, uint32_t id, int err, const char *text);

/* sw_host_release - no lcore uses the client and its tensors any more:
 * unmap and free them (control).  After on_detach or sw_host_end. */
void sw_host_release(struct sw_host *h, uint32_t id);

/* A push_pull or broadcast. */
struct sw_host_submit {
	uint64_t handle;
	uint64_t lacks; /* bytes at its end that are not there yet; unchecked */
	uint32_t tensor;
	uint16_t step;
	uint16_t root; /* 0: sum; else 1 + the rank that broadcasts */
};

/* sw_host_take - up to @max new submits (lcore).
 * .tensor is the id of one of a declared batch; that no other
 * submit of this tensor is open is for the caller to check (sw_host_evict).
 * Never blocks.  A client that broke the protocol yields 0 from then on. */
uint32_t sw_host_take(
	struct sw_host_client *p, struct sw_host_submit *out, uint32_t max);

/* sw_host_take_grown - of a growing tensor only *@lacks bytes, unchecked, are
 * not there yet (lcore); it may be none that sw_host_take has given, or one
 * that has ended.  False: of none. */
bool sw_host_take_grown(
	struct sw_host_client *p, uint32_t *tensor, uint64_t *lacks);

/* sw_host_note_summed - granules of growing tensors are (lcore).  Returns
 * whether the client slept. */
bool sw_host_note_summed(struct sw_host_client *p);

/* A collective, checked: both buffers hold what it reads and writes in the
 * group that the item was opened with.  The stream may have gone since. */
struct sw_host_coll {
	uint64_t handle, count, whole, stride; /* as the client says */
	uint32_t stream; /* id, as sw_host_take calls tensors */
	uint16_t root;
	uint8_t kind, dtype, op;
	double scale;
	uint32_t call;
	const void *from;
	void *to;
	uint64_t from_bytes, to_bytes; /* from there to the end of the memory */
	uint32_t from_item, to_item;   /* index of the memory */
};

/* sw_host_take_coll - one new collective (lcore), or one that was put back and
 * of whose stream one has ended since.  Returns whether there was one.  As
 * sw_host_take.
 * @n_left  counted down by those that were looked at, which may have to wait;
 * with 0 there is none */
bool sw_host_take_coll(
	struct sw_host_client *p, struct sw_host_coll *out, uint32_t *n_left);

/* sw_host_put_back - the stream of what was taken last has no room (lcore): it
 * waits, and all of that stream behind it, until one of it is completed. */
void sw_host_put_back(
	struct sw_host_client *p, const struct sw_host_coll *coll);

/* sw_host_forget - nothing new is taken whose buffers lie in the memory @item,
 * an id, or of the stream @item, and nothing waits that does (lcore).  @base
 * and
 * @bytes are what it is; of a stream NULL and 0. False: a collective that waits
 * does; the client was evicted. */
bool sw_host_forget(struct sw_host_client *p, uint32_t item, const void **base,
	uint64_t *bytes);

/* sw_host_complete - end one submit and wake its client (lcore).
 * Returns whether it slept.  Never blocks.  A ring that is full, which takes
 * more submits than tensors, or corrupt is a violation by this client. */
bool sw_host_complete(struct sw_host_client *p, const struct sw_completion *c);

/* sw_host_explain - why the submit of @handle ends with its error; before
 * sw_host_complete (lcore). */
void sw_host_explain(
	struct sw_host_client *p, uint64_t handle, const char *why);

/* The tuning in use, for the client to read. */
struct sw_host_tuning {
	uint64_t partition_bytes, credit_bytes, rate_bit_s;
	uint32_t number, round;
	const char *policy; /* at most 15 characters */
};

/* sw_host_show_tuning - this is what they are now (lcore). */
void sw_host_show_tuning(
	struct sw_host_client *p, const struct sw_host_tuning *tuning);

/* sw_host_evict - this client broke the protocol (lcore); the control thread
 * detaches it.
 * @reason   static text, such as "pushed a tensor twice"; @value goes behind */
void sw_host_evict(
	struct sw_host_client *p, const char *reason, uint64_t value);

/* sw_host_are_awaited - do all @n clients wait for a push_pull, asleep or in
 * sw_wait_polling (lcore)?  Else one computes. */
bool sw_host_are_awaited(struct sw_host_client *const *clients, uint32_t n);

/* sw_host_nap - sleep until a client begins to wait for a push_pull, or
 * @timeout_us (lcore); submits and frames gather meanwhile.  Returns at once
 * when all wait. */
void sw_host_nap(struct sw_host_client *const *clients, uint32_t n_clients,
	uint32_t timeout_us);

/* sw_host_kick - end the sleep of sw_host_poll (any thread).  One system call.
 */
void sw_host_kick(const struct sw_host *h);

enum { SW_HOST_WAKE_FDS = 16 };

/* sw_host_idle_wait - sleep until a client submits or @timeout_us (lcore).
 * Returns at once when there is a submit.
 * @clients  at most as many as sw_host_open allows are looked at
 * @fds      @n_fds descriptors that end the sleep when readable, such as
 *           sockets of ports; not read; at most SW_HOST_WAKE_FDS.  A
 *           socket's error ends one sleep, and is forgotten
 * Cost: one system call, or two when woken. */
void sw_host_idle_wait(struct sw_host_client *const *clients,
	uint32_t n_clients, const int *fds, uint32_t n_fds,
	uint32_t timeout_us);

#endif
