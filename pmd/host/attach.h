/* attach.h - the agent's side of attached training processes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Life of an attachment:
 *   on_attach -> sw_host_attached (or sw_host_refuse, which frees the id)
 *   on_declare -> sw_host_declared or sw_host_declare_failed, any number
 *   the lcore: sw_host_take, sw_host_complete, sw_host_idle_wait
 *   on_detach -> the lcore releases client and tensors -> sw_host_release
 *
 * This module checks all input from clients. Invalid input ends that client
 * alone, through on_detach.
 *
 * Ownership: the host owns clients, tensor tables and mappings. They stay valid
 * until sw_host_release of their id, even if the process has died.
 *
 * Threads: "control" functions and the callbacks belong to the one thread that
 * calls sw_host_poll; "lcore" functions to the one lcore that was given the
 * client. Callbacks may call every control function except poll and close.
 */
#ifndef SW_PMD_HOST_ATTACH_H
#define SW_PMD_HOST_ATTACH_H

#include <stdint.h>

#include "engine/base/log.h"
#include "pmd/client/edge.h"

struct sw_host;
struct sw_host_client; /* an lcore's view of one client */

/* A tensor that a client declares. */
struct sw_host_tensor {
	const char *name; /* 1 to 127 bytes of text (text.h) */
	uint64_t n_elems; /* stream: number of ranks */
	uint64_t bytes;   /* n_elems * element size, <= 64 GiB */
	uint32_t dtype;   /* valid enum sw_dtype */
	uint32_t priority;
	uint8_t kind;          /* enum sw_edge_item; never memory */
	const uint16_t *ranks; /* stream: its ranks, unchecked */
	void *base; /* address in this process, zeroed, 64-byte aligned; the
		       client may write the memory at any time */
	/* With several local ranks: address of the result, which all of them
	 * can read, and the tensor's id among all tensors that they have
	 * declared, matched by name. result is NULL if another local rank
	 * declared the tensor differently. With one local rank: NULL and 0. */
	void *result;
	uint32_t node_id;
	/* With several local ranks. is_new: no other rank has declared the
	 * tensor. is_again: it reuses the index of an ended stream
	 * (sw_host_gone). */
	bool is_new, is_again;
};

enum sw_host_why {
	SW_HOST_CLOSED,    /* the client called sw_close */
	SW_HOST_DIED,      /* its process ended, hung up or gave up */
	SW_HOST_VIOLATION, /* it broke the protocol */
	SW_HOST_FAILED,    /* the agent ran out of memory for it */
};

struct sw_host_events {
	/* A process asks to attach; answer now or later. @local_rank is the
	 * local rank that the process requires or, with SW_EDGE_IF_FREE,
	 * prefers; UINT32_MAX: any. */
	void (*on_attach)(void *ctx, uint32_t id, uint32_t pid, uint32_t uid,
		uint32_t local_rank);
	/* A client declares @n tensors (valid until release). Names are new to
	 * this client, and memory is reserved. Answer now or later; the next
	 * batch of this client (with several local ranks: of any client) comes
	 * after the answer. */
	void (*on_declare)(void *ctx, uint32_t id, uint32_t batch,
		const struct sw_host_tensor *tensors, uint32_t n);
	/* The client has detached; @text says why. No callback for @id follows.
	 * A pending batch must still be answered if other clients remain.
	 * Called once for every on_attach that was not refused; the agent then
	 * owes a sw_host_release. */
	void (*on_detach)(
		void *ctx, uint32_t id, enum sw_host_why why, const char *text);
	/* A client sets a tuning. Its value is unchecked; the policy's name is
	 * terminated. Answer now or later with sw_host_answer; the next request
	 * comes after that. */
	void (*on_tune)(
		void *ctx, uint32_t id, const struct sw_edge_tune *tune);
	/* A client ends a group. Its stream is an id as in sw_host_take; its
	 * text is valid text (text.h). Answer as for on_tune. */
	void (*on_end)(void *ctx, uint32_t id, const struct sw_edge_end *end);
	/* A client frees the item @item: memory, or a stream of a closed group.
	 * Have its lcore call sw_host_forget, and answer as for on_tune when no
	 * port refers to the memory; the host then unmaps it. */
	void (*on_free)(void *ctx, uint32_t id, uint32_t item);
};

struct sw_host_params {
	const char *path;     /* path of the socket, at most 107 bytes;
				 borrowed until sw_host_close */
	const uint32_t *uids; /* users admitted besides our own; copied. If
				 there are any, the socket file lets every user
				 connect */
	uint32_t n_uids;
	uint32_t n_local;     /* local ranks per job, 1 to 1,023 */
	uint32_t max_clients; /* attached or not yet released, at most two jobs
				 of the most local ranks, plus 8 */
	uint64_t quota_bytes; /* shared memory of all clients together */
	int numa_node; /* node of the memory; SW_NUMA_ANY (nodes.h): any */
	struct sw_host_events events;
	void *ctx;                /* passed to the callbacks */
	const struct sw_log *log; /* borrowed; may be NULL */
};

/* sw_host_open - make a host whose socket does not exist yet (control). Removes
 * a stale socket file.
 * Errors: SW_EBUSY another process listens there; SW_EINVAL; SW_EIO; SW_ENOMEM;
 * logged once. */
int sw_host_open(const struct sw_host_params *p, struct sw_host **out);

/* sw_host_listen - create the socket file and listen (control). Call it when
 * the agent can serve, because processes start to attach when they see the
 * file. If the agent ends earlier, only its log and exit code tell why.
 * Errors: as for sw_host_open. */
int sw_host_listen(struct sw_host *h);

/* sw_host_close - end every client ("the agent stops") without callbacks, free
 * everything, remove the socket file, set *@h to NULL (control). No lcore may
 * use a client. *@h may be NULL. */
void sw_host_close(struct sw_host **h);

/* sw_host_poll - handle messages and call back (control). Waits at most
 * @timeout_ms (0: not at all) for a message. Reserves the memory of a large
 * batch in slices of up to about 20 ms, one per call. */
void sw_host_poll(struct sw_host *h, uint32_t timeout_ms);

/* sw_host_job - set the job that clients are admitted to from now on (control).
 * @epoch  unique number, drawn by the job's coordinator */
void sw_host_job(
	struct sw_host *h, const char *name, uint64_t epoch, bool is_async);

/* sw_host_attached - admit a client; its lcore may use *@client_out from now on
 * (control).
 * @local_rank  also selects the stagger of its tensors; below @local_size,
 *              which is the n_local of sw_host_open
 * Errors: SW_ENOENT @id has detached; SW_ENOMEM, SW_EIO: it has been refused
 * with that error, and its id freed. */
int sw_host_attached(struct sw_host *h, uint32_t id, uint32_t rank,
	uint32_t size, uint32_t local_rank, uint32_t local_size,
	struct sw_host_client **client_out);

/* sw_host_refuse - refuse a client and free its @id (control).
 * @err, @text  the result of its sw_open; @text should name the ranks or
 *              processes in the way */
void sw_host_refuse(struct sw_host *h, uint32_t id, int err, const char *text);

/* sw_host_declared - admit a batch (control). Call it when the lcore knows the
 * tensors, because submits may follow at once.
 * @first    id of the batch's first tensor in sw_host_take; ids of the others
 *           follow. Unused with several local ranks: a tensor's id is its
 *           node_id
 * @err      0, or the error of a dead tensor, explained by @clash: its
 *           push_pulls and the client's sw_declare end with it
 * Errors: SW_ENOENT the client or the batch has ended. */
int sw_host_declared(struct sw_host *h, uint32_t id, uint32_t batch,
	uint32_t first, int err, const char *clash);

/* sw_host_declare_failed - reject a batch and unmap its tensors, which the
 * lcore must not use (control).
 * @err, @text  the result of the client's sw_declare */
void sw_host_declare_failed(struct sw_host *h, uint32_t id, uint32_t batch,
	int err, const char *text);

/* sw_host_gone - note that stream @node_id of several local ranks has ended,
 * because all of them have closed it: its index may be reused (control). */
void sw_host_gone(struct sw_host *h, uint32_t node_id);

/* sw_host_answer - answer on_tune, on_end or on_free (control).
 * @err, @text  the result of the client's call; 0: done */
void sw_host_answer(struct sw_host *h, uint32_t id, int err, const char *text);

/* sw_host_status - send a line for the client's log, such as "waiting for rank
 * 2 of 4" (control). Dropped if the client does not read. */
void sw_host_status(struct sw_host *h, uint32_t id, const char *text);

/* sw_host_wake_watches - wake the threads of all clients that wait for
 * sw_host_note_failed (control). */
void sw_host_wake_watches(struct sw_host *h);

/* sw_host_end - hang up on a client, admitted or not, for example when its job
 * has failed (control). Its open handles and later calls, or its sw_open, end
 * with @err and @text, which is already in the log. on_detach is not called;
 * the agent owes a sw_host_release. */
void sw_host_end(struct sw_host *h, uint32_t id, int err, const char *text);

/* sw_host_release - unmap and free a client and its tensors, which no lcore may
 * use (control). Call it after on_detach or sw_host_end. */
void sw_host_release(struct sw_host *h, uint32_t id);

/* sw_host_trace - start or stop the notes of all clients for sw_host_take_notes
 * (control). Starting discards older notes. */
void sw_host_trace(struct sw_host *h, bool is_on);

/* A note of the client of a local rank; unchecked, except its kind. */
struct sw_host_note {
	struct sw_edge_note note;
	uint32_t local_rank;
};

/* sw_host_take_notes - take up to @max notes of all clients (control).
 * @n_lost  becomes the number of notes lost to full rings since
 *          sw_host_trace */
uint32_t sw_host_take_notes(struct sw_host *h, struct sw_host_note *out,
	uint32_t max, uint32_t *n_lost);

/* A push_pull or broadcast. */
struct sw_host_submit {
	uint64_t handle;
	uint64_t lacks; /* bytes at its end that are still missing; unchecked */
	uint32_t tensor;
	uint16_t step;
	uint16_t root; /* 0: sum; else 1 + root's rank */
};

/* sw_host_take - take up to @max new submits (lcore). .tensor is the id of a
 * declared tensor. The caller checks that this tensor has no other open submit
 * (sw_host_evict). Never blocks. A client that broke the protocol yields 0 from
 * then on. */
uint32_t sw_host_take(
	struct sw_host_client *p, struct sw_host_submit *out, uint32_t max);

/* sw_host_take_grown - take a report that only *@lacks bytes of a growing
 * tensor, unchecked, are still missing (lcore). The tensor may have no submit,
 * or one that has ended. Returns false if there is no report. */
bool sw_host_take_grown(
	struct sw_host_client *p, uint32_t *tensor, uint64_t *lacks);

/* sw_host_note_summed - note that granules of growing tensors are summed
 * (lcore). Returns whether the client slept. */
bool sw_host_note_summed(struct sw_host_client *p);

/* A checked collective: both buffers hold the bytes that it reads and writes in
 * its group. The stream may have ended since. */
struct sw_host_coll {
	uint64_t handle, count, whole, stride; /* as the client gave them */
	uint32_t stream;                       /* id, as in sw_host_take */
	uint16_t root;
	uint8_t kind, dtype, op;
	double scale;
	uint32_t call;
	const void *from;
	void *to;
	uint64_t from_bytes, to_bytes; /* from there to the end of its memory */
	uint32_t from_item, to_item;   /* index of its memory */
};

/* sw_host_take_coll - take one new collective, or one that was put back and
 * whose stream has room again (lcore). Returns whether there was one. Otherwise
 * as sw_host_take.
 * @n_left  decremented for each collective examined; 0: take none */
bool sw_host_take_coll(
	struct sw_host_client *p, struct sw_host_coll *out, uint32_t *n_left);

/* sw_host_put_back - put back the collective taken last, because its stream has
 * no room (lcore). It waits, with all later collectives of that stream, until
 * one of the stream completes. */
void sw_host_put_back(
	struct sw_host_client *p, const struct sw_host_coll *coll);

/* sw_host_forget - stop taking collectives whose buffers lie in memory @item,
 * or that belong to stream @item (lcore). @base and @bytes are set to the
 * memory; NULL and 0 for a stream. Returns false if a waiting collective uses
 * it: the client is then evicted. */
bool sw_host_forget(struct sw_host_client *p, uint32_t item, const void **base,
	uint64_t *bytes);

/* sw_host_complete - end one submit and wake its client (lcore). Returns
 * whether it slept. Never blocks. A full ring, possible only with more submits
 * than tensors, or a corrupt ring is a violation by this client. */
bool sw_host_complete(struct sw_host_client *p, const struct sw_completion *c);

/* sw_host_explain - store why the submit of @handle fails; call it before
 * sw_host_complete (lcore). */
void sw_host_explain(struct sw_host_client *p, uint64_t handle,
	const struct sw_edge_why *why);

/* sw_host_note_failed - count a failed group of the job (lcore).  Have the
 * control thread call sw_host_wake_watches next. */
void sw_host_note_failed(struct sw_host_client *p);

/* Current tuning, for the client to read. */
struct sw_host_tuning {
	uint64_t partition_bytes, credit_bytes, rate_bit_s;
	uint32_t number, round;
	const char *policy; /* at most 15 characters */
};

/* sw_host_show_tuning - publish the current tuning (lcore). */
void sw_host_show_tuning(
	struct sw_host_client *p, const struct sw_host_tuning *tuning);

/* sw_host_evict - report that this client broke the protocol (lcore); the
 * control thread detaches it.
 * @reason   static text, such as "pushed a tensor twice"; @value is appended */
void sw_host_evict(
	struct sw_host_client *p, const char *reason, uint64_t value);

/* sw_host_are_awaited - return whether all @n clients wait for a push_pull,
 * asleep or in sw_wait_polling (lcore). Otherwise one of them computes. */
bool sw_host_are_awaited(struct sw_host_client *const *clients, uint32_t n);

/* sw_host_are_computing - return whether none of @n clients waits (lcore). */
bool sw_host_are_computing(struct sw_host_client *const *clients, uint32_t n);

/* sw_host_nap - sleep until a client begins to wait for a push_pull, at most
 * @timeout_us (lcore); submits and frames accumulate meanwhile. Returns at once
 * if all clients wait. */
void sw_host_nap(struct sw_host_client *const *clients, uint32_t n_clients,
	uint32_t timeout_us);

/* sw_host_kick - end the sleep of sw_host_poll (any thread).  One system call.
 */
void sw_host_kick(const struct sw_host *h);

enum { SW_HOST_WAKE_FDS = 16 };

/* sw_host_idle_wait - sleep until a client submits, at most @timeout_us
 * (lcore). Returns at once if there is a submit.
 * @clients  only as many as sw_host_open allows are watched
 * @fds      @n_fds descriptors that end the sleep when readable, such as
 *           sockets of ports; at most SW_HOST_WAKE_FDS; not read. A socket's
 *           error ends one sleep and is then forgotten
 * Cost: one system call, or two when woken. */
void sw_host_idle_wait(struct sw_host_client *const *clients,
	uint32_t n_clients, const int *fds, uint32_t n_fds,
	uint32_t timeout_us);

#endif
