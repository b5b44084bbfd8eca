/* sumwire.h - libsumwire: sum tensors over all ranks of a job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A training process opens the agent of its machine, declares its tensors,
 * and for each tensor and step submits a push_pull: when it completes, the
 * tensor holds the sum over all ranks; or a broadcast, after which it holds
 * what one of them had in it.
 *
 * A rank is one training process.  Several of a machine may attach to one
 * agent (its option local_ranks), which sums them before anything is sent.
 * Each then writes what it contributes to its own sw_tensor_data, and all read
 * the result in the same memory, sw_tensor_result; where a process is alone,
 * the two are one.  Tensors live in shared memory that
 * the agent makes; they are pushed from there and results are written there.
 *
 * Collectives of groups of ranks, without names and of any size: coll.h, which
 * this file includes.
 *
 * Lifecycle: 1. sw_settings_init  2. sw_open  3. sw_declare (once or more)
 * 4. fill sw_tensor_data, sw_push_pull, sw_wait, read sw_tensor_data; repeat
 * 5. sw_close.
 *
 * Every function that can fail returns 0 or a negative enum sw_error
 * (sumwire/error.h) and leaves a sentence in sw_last_error.
 * Thread: any, several at once too; calls about one tensor or group come from
 * one at a time, sw_close when no other call is under way.
 * Fork: a child does not inherit the attachment.  Its calls return SW_ECLOSED
 * and its sw_close only frees what it has; tensors stay mapped in it, and are
 * the same memory.  After fork and exec nothing is left of it.
 *
 * Structs that a caller fills begin with their size, so that later releases can
 * append to them: {.size = sizeof(struct sw_tensor_desc), .name = "w", ...},
 * or, also before C++20, struct sw_tensor_desc d = SW_TENSOR_DESC_INIT.  What
 * an older caller's struct does not have is 0; what a newer one's has beyond
 * this library's must be 0, else SW_EINVAL says so.
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

/* sw_version - SW_VERSION_NUMBER of the library that is there now; that of the
 * headers may be another.  Thread: any. */
SW_API uint32_t sw_version(void);

struct sw_client; /* one attachment to an agent */
struct sw_tensor; /* one declared tensor; belongs to its client */

#define SW_ANY_LOCAL_RANK UINT32_MAX

struct sw_settings {
	size_t size;             /* sw_settings_init sets it */
	const char *agent;       /* path of the agent's socket; borrowed by
				    sw_open.  Default: the environment's
				    SUMWIRE_AGENT (sumwire run sets it), else
				    "agent.sock".  A name without a slash is
				    looked for where agents put it: in
				    $XDG_RUNTIME_DIR/sumwire, in /run/sumwire */
	const char *agent_user;  /* a user, by name or number, whose agent is
				    trusted beside this user's and root's; any
				    other is refused.  Borrowed by sw_open.
				    Default: SUMWIRE_AGENT_USER; NULL or "":
				    nobody else's */
	uint32_t local_rank;     /* which of the agent's local ranks to be;
				    default SW_ANY_LOCAL_RANK: what a
				    launcher says (modulo their number), if
				    that is free, else the lowest that is */
	uint32_t open_timeout_s; /* longest wait for the agent, the servers and
				    the other ranks.  Default 60 */
	uint32_t wait_timeout_s; /* longest sw_wait, and longest time that the
				    end of a group waits for the agent.
				    Default 600; the agent reports dead members
				    much earlier */
	uint32_t pad;            /* never read */
	/* Progress and warnings, one line without newline; default stderr.
	 * Called inside a function of this library, or in its thread. */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
};

/* sw_settings_init_sized - what sw_settings_init calls: @size is what the
 * caller takes for that of @s. */
SW_API void sw_settings_init_sized(struct sw_settings *s, size_t size);

/* sw_settings_init - fill @s with the defaults.  Thread: any. */
static inline void sw_settings_init(struct sw_settings *s)
{
	sw_settings_init_sized(s, sizeof(*s));
}

/* sw_open - attach to the agent and join the job; returns when all ranks
 * have joined.
 * @s        read only during the call; NULL: the defaults
 * @out      set on success; owned by the caller until sw_close
 * Waits at most open_timeout_s and meanwhile logs what is missing ("waiting
 * for agent 2 of 4 …").
 * Errors: SW_ETIMEDOUT ranks did not come, sw_last_error says which;
 * SW_ECLOSED no agent at that path; SW_EPERM the agent does not admit this
 * user, or its own user is not trusted (agent_user); SW_EBUSY another process
 * is attached, or all local ranks are; SW_EVERSION; SW_EREFUSED by a server,
 * with its reason; SW_EINVAL a path of more than 107 bytes; SW_ECONF variables
 * of a launcher (torchrun, OpenMPI, Slurm, …; conf/launch.def) contradict each
 * other, or the rank and size that the agent gives; SW_EIO, SW_ENOMEM,
 * SW_EPROTO. */
SW_API int sw_open(const struct sw_settings *s, struct sw_client **out);

/* sw_leave - leave the job, but keep the tensors' memory mapped until sw_close,
 * for callers that have given pointers into it away.  Open handles end with
 * SW_ECLOSED, as does every later call.  A second call does nothing. */
SW_API void sw_leave(struct sw_client *c);

/* sw_abort - leave the job as a process that has failed: the job ends at all
 * ranks, with "rank R: @text".  For a caller that gives up on a sum to which it
 * has added: without it, a late rank would go on with a sum that this process
 * never got.  Tensors stay mapped until sw_close.
 * @text  why, one line of at most 200 bytes; NULL: "aborted the job"
 * Errors: SW_ECLOSED the attachment is over already. */
SW_API int sw_abort(struct sw_client *c, const char *text);

/* sw_close - leave the job and free everything, tensors included; sets *@c to
 * NULL.  Open handles end with SW_ECLOSED.  *@c may be NULL. */
SW_API void sw_close(struct sw_client **c);

/* This rank (0 … size-1) and the number of ranks of the job; the same
 * among those on this machine, as the launcher says (without one: those of this
 * agent); the same among those that share this agent.  Fixed from sw_open
 * on. */
SW_API uint32_t sw_rank(const struct sw_client *c);
SW_API uint32_t sw_size(const struct sw_client *c);
SW_API uint32_t sw_local_rank(const struct sw_client *c);
SW_API uint32_t sw_local_size(const struct sw_client *c);
SW_API uint32_t sw_agent_rank(const struct sw_client *c);
SW_API uint32_t sw_agent_size(const struct sw_client *c);

/* sw_job - the name of the job, which belongs to the client, and in *@epoch_out
 * a number that no other job has: of two clients it is the same if, and only
 * if, they are in one job.  Fixed from sw_open on. */
SW_API const char *sw_job(const struct sw_client *c, uint64_t *epoch_out);

#define SW_PRIORITY_BY_USE UINT32_MAX

struct sw_tensor_desc {
	size_t size;      /* of this struct; alike in one sw_declare */
	const char *name; /* the same on all ranks; 1 to 127 bytes, no NUL */
	uint64_t n_elems; /* >= 1; n_elems * element size <= 64 GiB */
	enum sw_dtype dtype;
	uint32_t priority; /* 0 most urgent; order of use in the forward pass;
			      the same on all ranks.  SW_PRIORITY_BY_USE: the
			      order in which the job first saw its tensors
			      declared, whoever declared them */
	/* Asynchronous: the servers keep the tensor's value.  The first round
	 * is a broadcast of it by one rank; then sw_push_pull adds what is in
	 * sw_tensor_data to the value, without waiting for other ranks, and
	 * gives a copy of it back, as it is by then.  Local ranks of one agent
	 * still go together.  Only in a job of [job] mode asynchronous; the
	 * same on all ranks.  BytePS (OSDI'20) section 5. */
	uint32_t is_async;
	uint32_t pad; /* never read */
};

#define SW_TENSOR_DESC_INIT                                             \
	{                                                               \
		sizeof(struct sw_tensor_desc), NULL, 0, SW_F32, 0, 0, 0 \
	}

/* sw_declare - declare @n tensors in one batch; returns when every server has
 * admitted them and their memory is mapped.
 * @descs    read only during the call; names must be new to this client
 * @out      @n handles, owned by @c, valid until sw_close
 * Every rank declares the same tensors, in any order and any batches; at most
 * 4,096 tensors per client.
 * Errors: SW_EMISMATCH another rank declared one of the names with another
 * size, dtype or priority (both values in sw_last_error): the batch is declared
 * all the same, but push_pulls of that tensor end with SW_EMISMATCH, here and
 * at all ranks; SW_EREFUSED quota of a server (needed and left in
 * sw_last_error); SW_EINVAL a name twice, a size or dtype that cannot be, too
 * many; SW_ENOMEM the agent's memory or its quota; SW_ETIMEDOUT no answer in
 * open_timeout_s and a second per 64 MiB, which ends the attachment;
 * SW_ECLOSED; SW_EPEER. After another error none of the batch is declared. */
SW_API int sw_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_tensor **out);

/* sw_tensor_data - the tensor's n_elems elements, in shared memory, aligned to
 * 64 bytes; starts as zeros.  Owned by @t's client.  The caller may write it
 * except between sw_push_pull and the end of its handle. */
SW_API void *sw_tensor_data(struct sw_tensor *t);

/* sw_tensor_result - where the result is when a handle has ended without an
 * error, until this process pushes @t again: the address of sw_tensor_data if
 * sw_agent_size is 1, else memory of all local ranks that cannot be written. */
SW_API const void *sw_tensor_result(struct sw_tensor *t);

/* sw_push_pull - start to sum @t over all ranks, into sw_tensor_result.
 * @step     training step, or any tag of this call that is the same at all
 *           ranks (low 16 bits go on the wire)
 * @handle   set on success; ends exactly once, through sw_poll or sw_wait
 * Returns at once.  One push_pull per tensor is open at a time; all tensors can
 * be open together.
 * A handle ends with SW_EMISMATCH at all ranks, and a sentence that names two
 * of them, when their calls differ in @step, or one sums what another
 * broadcasts.  The job goes on, but @t is dead: all its later handles end so.
 * Errors: SW_EBUSY the tensor's last handle has not ended; SW_EINVAL @t belongs
 * to another client; SW_ECLOSED, or why the agent hung up.
 * Cost: one ring entry; a system call only when the agent sleeps. */
SW_API int sw_push_pull(struct sw_client *c, struct sw_tensor *t, uint32_t step,
	uint64_t *handle);

/* sw_broadcast - start to copy what rank @root has in @t to sw_tensor_result of
 * all ranks, bit for bit and in any dtype.  All ranks call it, with the
 * same @root and @step; sums and broadcasts of one tensor may follow one
 * another in any order.
 * @root     0 … size-1
 * @handle   as of sw_push_pull
 * Returns at once.  A rank has its copy when all have asked.
 * Errors: those of sw_push_pull; SW_EINVAL @root is not below the size.  A
 * handle ends with SW_EMISMATCH, as there, also when ranks name different
 * roots.
 * Cost: as of sw_push_pull; only the root's bytes travel to the servers. */
SW_API int sw_broadcast(struct sw_client *c, struct sw_tensor *t, uint32_t root,
	uint32_t step, uint64_t *handle);

/* sw_poll - has @handle ended?  Never blocks.
 * Returns 0: the tensor holds the sum (the handle is now gone); SW_EAGAIN: not
 * yet; else the error it ended with (the handle is gone and the tensor's
 * content undefined): SW_EMISMATCH, SW_EABORTED, SW_EREFUSED and SW_EEXPIRED
 * (of a group),
 * SW_EPEER a rank is gone, with the groups and tensors that it was in; where no
 * group is without it the attachment ends, too; SW_ESERVER, SW_ESTALL,
 * SW_ECORRUPT, SW_ECLOSED the agent is gone; SW_EINVAL no such handle.
 * Cost: memory reads; every 64th fruitless call a look at the socket. */
SW_API int sw_poll(struct sw_client *c, uint64_t handle);

/* sw_wait - block until @handle has ended; sleeps in the kernel, spins never.
 * Returns like sw_poll, and SW_ETIMEDOUT after wait_timeout_s (the handle then
 * stays open). */
SW_API int sw_wait(struct sw_client *c, uint64_t handle);

/* sw_wait_for - like sw_wait, but for @timeout_ms at most instead of
 * wait_timeout_s; 0: look, and do what can be done at once.  For callers that
 * wait in slices, to look at signals in between.  Several threads may wait for
 * one handle: one of them gets its end, the others SW_EINVAL. */
SW_API int sw_wait_for(
	struct sw_client *c, uint64_t handle, uint32_t timeout_ms);

/* sw_wait_any - like sw_wait, for the first of @n handles that has ended; *@i
 * is which. */
SW_API int sw_wait_any(
	struct sw_client *c, const uint64_t *handles, uint32_t n, uint32_t *i);

/* sw_wait_ended - like sw_wait, for the collective, whichever it is, that ends
 * first and that no thread waits for; *@handle is which, 0: none.  For a thread
 * that tells others of ends.  Those that ended before it was called come first,
 * in the order of their ends; each is reported once, here or by another call.
 * While it waits it does the work of the library's thread.
 * Errors: of the collective; SW_ETIMEDOUT after wait_timeout_s, with *@handle
 * 0; when the attachment is over and all were reported those of sw_push_pull,
 * with *@handle 0. */
SW_API int sw_wait_ended(struct sw_client *c, uint64_t *handle);

/* sw_wait_ended_for - the same, but for @timeout_ms at most. */
SW_API int sw_wait_ended_for(
	struct sw_client *c, uint32_t timeout_ms, uint64_t *handle);

/* sw_event_fd - a descriptor for poll and epoll: readable when collectives have
 * ended since it was last read (8 bytes, an eventfd).  Which, sw_poll says.
 * @fd  owned by @c until sw_close
 * From now on a thread of the library looks after what nobody waits for.
 * Errors: SW_ENOMEM; those of sw_push_pull. */
SW_API int sw_event_fd(struct sw_client *c, int *fd);

/* sw_wait_polling - like sw_wait, but spins (yielding the core) instead of
 * sleeping: the lowest latency, for the price of a core. */
SW_API int sw_wait_polling(struct sw_client *c, uint64_t handle);

/* --- tuning, while the job runs --- */

struct sw_tuning {
	char policy[16]; /* "bytescheduler", "p3", "fifo" */
	/* Bytes of a part of a tensor that the scheduler starts at once, and of
	 * all that is under way and not summed yet. */
	uint64_t partition_bytes, credit_bytes;
	uint64_t rate_bit_s; /* payload that all ports of this rank's agent
				may send; 0: no limit, or a port has none */
	uint32_t number;     /* how many times sw_tune has changed the job */
	uint32_t round;      /* the highest of any tensor that has begun: they
				are counted from 1 */
};

/* sw_get_tuning_sized - what sw_get_tuning calls: @size is what the caller
 * takes for that of @out. */
SW_API void sw_get_tuning_sized(
	const struct sw_client *c, struct sw_tuning *out, size_t size);

/* sw_get_tuning - the tuning that this agent has now.  Thread: that of @c.
 * Cost: memory reads. */
static inline void sw_get_tuning(
	const struct sw_client *c, struct sw_tuning *out)
{
	sw_get_tuning_sized(c, out, sizeof(*out));
}

/* sw_set_partition, sw_set_credit - for this agent alone, in bytes: 1 KiB to
 * 64 GiB and to 1 TiB; 0: what the policy says.  From the next part on, until
 * they or the job's tuning are set again; may be called while push_pulls are
 * open.
 * Errors: SW_EINVAL out of range, or the policy has fixed them, with the reason
 * in sw_last_error; SW_ETIMEDOUT the agent has not answered in open_timeout_s;
 * those of sw_push_pull.
 * Cost: a message to the agent and its answer, some 10 us to 10 ms. */
SW_API int sw_set_partition(struct sw_client *c, uint64_t bytes);
SW_API int sw_set_credit(struct sw_client *c, uint64_t bytes);

/* sw_set_rate - limit what all ports of this rank's agent send together, for
 * all jobs, to @bit_s of payload; 1 Mb/s to 10 Tb/s; 0: what the links carry.
 * Several ports share it in proportion to their [port] rate, or equally if a
 * port has none.
 * Errors and cost: as above. */
SW_API int sw_set_rate(struct sw_client *c, uint64_t bit_s);

/* sw_tune - other tuning for all ranks of the job.  Any of them may call it,
 * one is enough: each goes over when it receives it (PROTOCOL.md 5), a round
 * trip from now; number of sw_get_tuning has then grown.
 * @policy  by its name; NULL: the one in use
 * @partition_bytes, @credit_bytes  as above
 * Errors and cost: as above, and SW_EINVAL there is no such policy. */
SW_API int sw_tune(struct sw_client *c, const char *policy,
	uint64_t partition_bytes, uint64_t credit_bytes);

/* sw_last_error - a sentence about the last error that this thread got, of any
 * client; "" when there was none.  @c may be NULL.  Owned by the library, valid
 * until the thread's next call. */
SW_API const char *sw_last_error(const struct sw_client *c);

#ifdef __cplusplus
}
#endif

#include <sumwire/coll.h>

#endif
