/* sumwire.h - libsumwire: sum tensors over all ranks of a job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A rank is one training process. It attaches to the agent of its machine and
 * declares its tensors. For each tensor and step it calls sw_push_pull, after
 * which the tensor holds the sum over all ranks, or sw_broadcast, after which
 * it holds the content of one rank's tensor.
 *
 * Tensors live in shared memory that the agent creates. Several processes of a
 * machine may attach to one agent (option local_ranks), which sums their
 * tensors locally before it sends them. Each process writes its contribution to
 * sw_tensor_data, and all of them read the result in shared sw_tensor_result.
 * If a process is alone at its agent, the two addresses are the same.
 *
 * Collectives of groups of ranks, without names and of any size, are in coll.h,
 * which this file includes.
 *
 * Lifecycle:
 * 1. sw_settings_init
 * 2. sw_open
 * 3. sw_declare (once or more)
 * 4. for each step: fill sw_tensor_data, sw_push_pull, sw_wait, read
 *    sw_tensor_result
 * 5. sw_close
 *
 * Errors: every function that can fail returns 0 or a negative enum sw_error
 * (sumwire/error.h) and leaves a sentence in sw_last_error. doc/c-api.md has
 * causes and remedies. When the attachment has ended, every call returns the
 * code that ended it. It may be SW_ESERVER, SW_EPEER, SW_ESTALL, SW_ECLOSED or
 * SW_ETIMEDOUT. Less often it is:
 *   SW_EIO     full packets stopped passing between two nodes
 *   SW_EPROTO  agent, server or library do not fit together, or shared memory
 *              was overwritten
 *   SW_EREFUSED, SW_ENOMEM  a server or the agent cannot serve it further
 *   SW_EABORTED, SW_EDEVICE  after sw_abort, or after a device of this process
 *              failed
 * Thread: any thread may call, and several at once. Calls about one tensor or
 * group must come from one thread at a time, and sw_close must run alone.
 * Fork: a child does not inherit the attachment. Its calls return SW_ECLOSED,
 * and its sw_close frees only the child's memory. Tensors stay mapped in the
 * child and share memory with the parent. exec removes everything.
 *
 * A struct that the caller fills begins with its size, so that later releases
 * can append fields: {.size = sizeof(struct sw_tensor_desc), .name = "w", ...},
 * or struct sw_tensor_desc d = SW_TENSOR_DESC_INIT. The library reads 0 for
 * fields that an older caller's struct lacks. A newer caller must leave fields
 * that this library does not know at 0; else the call fails with SW_EINVAL.
 */
#ifndef SUMWIRE_SUMWIRE_H
#define SUMWIRE_SUMWIRE_H

#include <stddef.h>
#include <stdint.h>

#include <sumwire/dtype.h>
#include <sumwire/error.h>
#include <sumwire/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_API __attribute__((visibility("default")))

/* sw_version - return the SW_VERSION_NUMBER of the loaded library, which may
 * differ from the headers' number. Thread: any. */
SW_API uint32_t sw_version(void);

struct sw_client; /* one attachment to an agent */
struct sw_tensor; /* one declared tensor; belongs to its client */

#define SW_ANY_LOCAL_RANK UINT32_MAX

struct sw_settings {
	size_t size; /* set by sw_settings_init */
	/* Path of the agent's socket; borrowed by sw_open.  Default:
	 * SUMWIRE_AGENT of the environment (sumwire run sets it), else
	 * "agent.sock".  sw_open looks for a name without a slash in
	 * $XDG_RUNTIME_DIR/sumwire and in /run/sumwire. */
	const char *agent;
	/* A user, by name or number, whose agent is trusted besides this user's
	 * and root's; sw_open refuses agents of other users.  Borrowed by
	 * sw_open.  Default: SUMWIRE_AGENT_USER; NULL or "": no other user. */
	const char *agent_user;
	/* Local rank to take at the agent.  Default SW_ANY_LOCAL_RANK: the
	 * launcher's local rank (modulo the agent's local_ranks) if it is free,
	 * else the lowest free one. */
	uint32_t local_rank;
	uint32_t open_timeout_s; /* longest wait for the agent, the servers and
				    the other ranks, in seconds.  Default 60 */
	/* Longest sw_wait, and longest time that sw_group_abort and
	 * sw_group_close wait for the agent, in seconds.  Default 600; the
	 * agent reports dead members much earlier. */
	uint32_t wait_timeout_s;
	uint32_t pad; /* unused */
	/* Receives progress and warnings, one line each without newline.  The
	 * default writes to stderr.  Called inside a function of this library,
	 * or from its thread. */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
};

/* sw_settings_init_sized - fill the first @size bytes of @s; called by
 * sw_settings_init with the caller's sizeof. */
SW_API void sw_settings_init_sized(struct sw_settings *s, size_t size);

/* sw_settings_init - fill @s with the defaults.  Thread: any. */
static inline void sw_settings_init(struct sw_settings *s)
{
	sw_settings_init_sized(s, sizeof(*s));
}

/* sw_open - attach to the agent and join the job. Returns when all ranks have
 * joined, and after open_timeout_s at the latest. While it waits, it logs the
 * missing agents ("waiting for agent 2 of 4 …").
 * @s        read only during the call; NULL: the defaults
 * @out      set on success; owned by the caller until sw_close
 * Errors:
 *   SW_ETIMEDOUT  ranks, servers or the agent did not answer; sw_last_error
 *                 says which
 *   SW_ECLOSED    no agent listens at that path
 *   SW_EPERM      the agent does not admit this user, or the agent's user is
 *                 not trusted (agent_user)
 *   SW_EBUSY      the local rank, or every local rank, is taken
 *   SW_EVERSION   library and agent have no version in common
 *   SW_EREFUSED   a server refused, with its reason
 *   SW_EMISMATCH  nodes differ in an option of [job]
 *   SW_EINVAL     the path has no or more than 107 bytes, or there is no such
 *                 local rank
 *   SW_ECONF      the launcher's variables (torchrun, OpenMPI, Slurm, …;
 *                 conf/launch.def) contradict each other, or the rank and size
 *                 that the agent reports
 *   SW_EIO        the agent's socket failed
 *   SW_EPROTO     the agent is no agent, or does not fit this library
 *   SW_ENOMEM     this process or the agent has no memory or descriptors left
 *   SW_EPEER, SW_ESERVER  a rank or a server failed while the job formed */
SW_API int sw_open(const struct sw_settings *s, struct sw_client **out);

/* sw_leave - leave the job, but keep the tensors' memory mapped until sw_close,
 * for callers that have passed on pointers into it. Open handles and all later
 * calls end with SW_ECLOSED. A second call does nothing. */
SW_API void sw_leave(struct sw_client *c);

/* sw_abort - leave the job as a failed process: the tensors and groups of this
 * rank, or the job if no group without it is left, end at the other ranks with
 * SW_EPEER and a sentence that ends with @text. Here all calls end with
 * SW_EABORTED. Call it after giving up on a sum to which this process has
 * contributed; otherwise a late rank continues with a sum that this process
 * never received. Tensors stay mapped until sw_close.
 * @text  the reason, one line of at most 200 bytes; NULL: "aborted the job"
 * Errors: SW_ECLOSED the attachment has already ended. */
SW_API int sw_abort(struct sw_client *c, const char *text);

/* sw_close - leave the job, free everything including tensors, and set *@c to
 * NULL. Open handles end with SW_ECLOSED. *@c may be NULL. */
SW_API void sw_close(struct sw_client **c);

/* Return this rank (0 … size-1) and the number of ranks in the job; then the
 * same among the ranks of this machine, as the launcher counts them (without a
 * launcher: among those of this agent); then the same among the ranks of this
 * agent. The values are fixed after sw_open. */
SW_API uint32_t sw_rank(const struct sw_client *c);
SW_API uint32_t sw_size(const struct sw_client *c);
SW_API uint32_t sw_local_rank(const struct sw_client *c);
SW_API uint32_t sw_local_size(const struct sw_client *c);
SW_API uint32_t sw_agent_rank(const struct sw_client *c);
SW_API uint32_t sw_agent_size(const struct sw_client *c);

/* sw_job - return the job's name, owned by the client, and store a number that
 * identifies the job in *@epoch_out. Two clients have the same number if, and
 * only if, they are in the same job. The values are fixed after sw_open. */
SW_API const char *sw_job(const struct sw_client *c, uint64_t *epoch_out);

/* sw_is_async - return 1 if the job is asynchronous ([job] mode), so that it
 * accepts tensors with is_async but no groups, else 0. Fixed after sw_open. */
SW_API int sw_is_async(const struct sw_client *c);

#define SW_PRIORITY_BY_USE UINT32_MAX

struct sw_tensor_desc {
	size_t size; /* sizeof(struct sw_tensor_desc); the same in all @descs of
			one sw_declare */
	const char *name; /* the same on all ranks; 1 to 127 bytes without the
			     terminating NUL */
	uint64_t n_elems; /* >= 1; n_elems * element size <= 64 GiB */
	enum sw_dtype dtype;
	uint32_t priority; /* 0 is the most urgent; usually the order of use in
			      the forward pass. The same on all ranks.
			      SW_PRIORITY_BY_USE: the order in which the job
			      first declared its tensors, at any rank */
	/* 1: asynchronous, as in BytePS (OSDI'20) section 5. The servers keep
	 * the tensor's value. The first round must be a broadcast, which sets
	 * the value at all ranks. Each later sw_push_pull adds sw_tensor_data
	 * to the value without waiting for other ranks, and returns a copy of
	 * the current value. Local ranks of one agent still push together.
	 * Allowed only in a job with [job] mode = asynchronous; the same on all
	 * ranks. */
	uint32_t is_async;
	uint32_t pad; /* unused */
};

#define SW_TENSOR_DESC_INIT                                             \
	{                                                               \
		sizeof(struct sw_tensor_desc), NULL, 0, SW_F32, 0, 0, 0 \
	}

/* sw_declare - declare @n tensors in one batch. Returns when every server has
 * admitted them and their memory is mapped. Every rank declares the same
 * tensors, in any order and any batches, at most 4,096 per client.
 * @descs    read only during the call; names must be new to this client
 * @out      @n handles, owned by @c, valid until sw_close
 * Errors:
 *   SW_EMISMATCH  another rank declared one of the names with another size,
 *                 dtype or priority; sw_last_error has both values. The batch
 *                 is declared, but push_pulls of that tensor end with
 *                 SW_EMISMATCH at all ranks
 *   SW_EREFUSED   a server's quota is too small; sw_last_error says how much is
 *                 needed and left
 *   SW_EINVAL     a name occurs twice, a size or dtype is invalid, or there are
 *                 too many tensors
 *   SW_ENOMEM     the agent has too little memory or quota
 *   SW_ETIMEDOUT  no answer after open_timeout_s plus a second per 64 MiB; the
 *                 attachment has ended
 *   or the code that ended the attachment
 * After an error other than SW_EMISMATCH, no tensor of the batch is declared.
 */
SW_API int sw_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_tensor **out);

/* sw_tensor_data - return the tensor's n_elems elements in shared memory,
 * aligned to 64 bytes and initially zero. Owned by @t's client. The caller must
 * not write them between sw_push_pull and the end of its handle. */
SW_API void *sw_tensor_data(struct sw_tensor *t);

/* sw_tensor_result - return the address of the result, which is valid when a
 * handle has ended without an error, until this process pushes @t again. It is
 * the address of sw_tensor_data if sw_agent_size is 1; otherwise it is
 * read-only memory that the agent's local ranks share. */
SW_API const void *sw_tensor_result(struct sw_tensor *t);

/* sw_push_pull - start to sum @t over all ranks into sw_tensor_result; return
 * at once. One push_pull per tensor may be open at a time; all tensors may be
 * open together.
 * @step     training step, or any tag of this call that is the same at all
 *           ranks (only the low 16 bits are compared)
 * @handle   set on success; ends exactly once, through sw_poll or sw_wait
 * If the ranks' calls differ in @step, or one rank sums what another
 * broadcasts, the handles end with SW_EMISMATCH at all ranks, and the error
 * text names two of the ranks. The job continues, but later handles of @t end
 * with the same error.
 * Errors: SW_EBUSY the tensor's last handle has not ended; SW_EINVAL @t belongs
 * to another client; SW_ECLOSED, or the reason why the agent hung up.
 * Cost: one ring entry, and a system call if the agent sleeps. */
SW_API int sw_push_pull(struct sw_client *c, struct sw_tensor *t, uint32_t step,
	uint64_t *handle);

/* sw_is_traced - return 1 if the agent records a trace (sumwire trace), so that
 * copies are worth noting; otherwise 0. Any thread. Cost: one load.
 * sw_note_copy - tell the trace that the caller copied into the memory of a
 * tensor or collective before its call of @handle, or with @is_out a result
 * out of it afterwards. The times are those of CLOCK_MONOTONIC. Does nothing if
 * no trace is recorded, or if @from_ns is after @to_ns. */
SW_API int sw_is_traced(const struct sw_client *c);
SW_API void sw_note_copy(struct sw_client *c, uint64_t handle, int is_out,
	uint64_t from_ns, uint64_t to_ns, uint64_t bytes);

/* sw_broadcast - start to copy @t of rank @root to sw_tensor_result of all
 * ranks, bit for bit and in any dtype; return at once. All ranks call it with
 * the same @root and @step. Sums and broadcasts of one tensor may follow each
 * other in any order. A rank receives its copy after all ranks have called.
 * @root     0 … size-1
 * @handle   as for sw_push_pull
 * Errors: as for sw_push_pull; SW_EINVAL @root is not below the size. A
 * handle also ends with SW_EMISMATCH if ranks name different roots.
 * Cost: as for sw_push_pull; only the root's bytes travel to the servers. */
SW_API int sw_broadcast(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle);

/* sw_poll - check whether @handle has ended, without blocking. Except after
 * SW_EAGAIN the handle is consumed; after an error the tensor's content is
 * undefined.
 * Returns:
 *   0             the result is complete
 *   SW_EAGAIN     the handle is still open
 *   SW_EMISMATCH  the ranks' calls differ
 *   SW_EABORTED, SW_EREFUSED, SW_EEXPIRED  the group has ended
 *   SW_EPEER      a rank has died or left, with the groups and tensors that it
 *                 belonged to; if no group without that rank is left, the
 *                 attachment also ends
 *   SW_ESERVER    a server is silent or was restarted
 *   SW_ESTALL     no progress although every member is alive
 *   SW_ECORRUPT   a tensor was written while it was pushed
 *   SW_ECLOSED    the agent has ended
 *   SW_EIO, SW_EPROTO, SW_EDEVICE  the attachment has ended; see the top of
 *                 this file
 *   SW_EINVAL     no such handle
 * Cost: memory reads; every 64th unsuccessful call also checks the socket. */
SW_API int sw_poll(struct sw_client *c, uint64_t handle);

/* sw_wait - block until @handle has ended; sleeps in the kernel and never
 * spins. Returns like sw_poll, or SW_ETIMEDOUT after wait_timeout_s, which
 * leaves the handle open. */
SW_API int sw_wait(struct sw_client *c, uint64_t handle);

/* sw_wait_for - like sw_wait, but wait at most @timeout_ms in place of
 * wait_timeout_s; 0: do the work that is possible at once, then return. For
 * callers that check signals between short waits. If several threads wait for
 * one handle, one of them gets its result and the others get SW_EINVAL. */
SW_API int sw_wait_for(
	struct sw_client *c, uint64_t handle, uint32_t timeout_ms);

/* sw_wait_any - like sw_wait, for the first of @n handles that ends; sets *@i
 * to its index. */
SW_API int sw_wait_any(
	struct sw_client *c, const uint64_t *handles, uint32_t n, uint32_t *i);

/* sw_wait_ended - like sw_wait, for the first collective to end that no other
 * thread waits for; sets *@handle. For a thread that dispatches completions; it
 * does the work of the library's thread while it waits. Collectives that ended
 * before the call come first, in order of completion. Each is reported once,
 * here or by another call.
 * Errors: the collective's error; SW_ETIMEDOUT after wait_timeout_s, and as for
 * sw_push_pull when the attachment has ended and all collectives have been
 * reported; the last two set *@handle to 0. */
SW_API int sw_wait_ended(struct sw_client *c, uint64_t *handle);

/* sw_wait_ended_for - like sw_wait_ended, but wait at most @timeout_ms. */
SW_API int sw_wait_ended_for(
	struct sw_client *c, uint32_t timeout_ms, uint64_t *handle);

/* sw_event_fd - return an eventfd for poll and epoll. It is readable when
 * collectives have ended since its 8 bytes were last read; sw_poll tells which.
 * From this call on, a thread of the library completes collectives that no
 * caller waits for.
 * @fd  owned by @c until sw_close
 * Errors: SW_ENOMEM; or as for sw_push_pull. */
SW_API int sw_event_fd(struct sw_client *c, int *fd);

/* sw_wait_polling - like sw_wait, but spin (yielding the core) instead of
 * sleeping: lowest latency, at the cost of a core. */
SW_API int sw_wait_polling(struct sw_client *c, uint64_t handle);

/* --- tuning, while the job runs --- */

struct sw_tuning {
	char policy[16]; /* "bytescheduler", "p3", "fifo" */
	/* Bytes of a tensor that the scheduler starts at once, and bytes that
	 * may be sent and not yet summed. */
	uint64_t partition_bytes, credit_bytes;
	uint64_t rate_bit_s; /* limit in bit/s for the payload that all ports of
				this rank's agent send; 0: no limit, or a port
				has none */
	uint32_t number; /* number of times that sw_tune has changed the job */
	uint32_t round; /* highest round that any tensor has begun; rounds count
			   from 1 */
};

/* sw_get_tuning_sized - fill the first @size bytes of @out; called by
 * sw_get_tuning with the caller's sizeof. */
SW_API void sw_get_tuning_sized(
	const struct sw_client *c, struct sw_tuning *out, size_t size);

/* sw_get_tuning - read the current tuning of this agent. Thread: the user of
 * @c. Cost: memory reads. */
static inline void sw_get_tuning(
	const struct sw_client *c, struct sw_tuning *out)
{
	sw_get_tuning_sized(c, out, sizeof(*out));
}

/* sw_set_partition, sw_set_credit - set partition (1 KiB to 64 GiB) or credit
 * (1 KiB to 1 TiB) of this agent alone, in bytes; 0: the policy's default. The
 * value applies from the next partition on, until it or the job's tuning is set
 * again. Handles may be open.
 * Errors: SW_EINVAL out of range, or the policy fixes the value, sw_last_error
 * says why; SW_ETIMEDOUT the agent has not answered in open_timeout_s; those of
 * sw_push_pull.
 * Cost: a round trip to the agent, 10 us to 10 ms. */
SW_API int sw_set_partition(struct sw_client *c, uint64_t bytes);
SW_API int sw_set_credit(struct sw_client *c, uint64_t bytes);

/* sw_set_rate - limit the payload that all ports of this rank's agent send
 * together, for all jobs, to @bit_s: 1 Mb/s to 10 Tb/s; 0: the links' rate.
 * Several ports share the limit in proportion to their [port] rate, or equally
 * if a port has none.
 * Errors and cost: as for sw_set_partition. */
SW_API int sw_set_rate(struct sw_client *c, uint64_t bit_s);

/* sw_tune - change the tuning of all ranks of the job. One rank calls it, any
 * rank may. Each rank switches when the change arrives, about a round trip
 * later (PROTOCOL.md 5), and its sw_get_tuning then returns a higher number.
 * @policy  name of a policy; NULL: keep the current one
 * @partition_bytes, @credit_bytes  as for sw_set_partition and sw_set_credit
 * Errors and cost: as for sw_set_partition; SW_EINVAL also for an unknown
 * policy. */
SW_API int sw_tune(struct sw_client *c, const char *policy,
	uint64_t partition_bytes, uint64_t credit_bytes);

/* sw_last_error - return a sentence about this thread's last error, of any
 * client; "" if there was none. @c may be NULL. Owned by the library, valid
 * until the thread's next call. */
SW_API const char *sw_last_error(const struct sw_client *c);

/* sw_last_conflict - return how the calls of ranks *@rank and *@other
 * contradict each other, if this thread's last error is SW_EMISMATCH;
 * SW_CONFLICT_NONE after other errors, or if sw_declare found the
 * contradiction. */
SW_API enum sw_conflict sw_last_conflict(
	const struct sw_client *c, uint32_t *rank, uint32_t *other);

#ifdef __cplusplus
}
#endif

#include <sumwire/coll.h>

#endif
