/* device.h - libsumwire: sum tensors that lie in a device's memory.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor of a device goes through shared memory, which is pinned, in pieces
 * (pmd/cuda/README.md); a call returns at once, and the device is never
 * waited for as a whole.
 *
 * Lifecycle: 1. sw_open  2. sw_device_open  3. sw_device_declare (once or more)
 * 4. sw_push_pull_device behind what computes the tensor; sw_device_wait or
 * sw_device_hold before what reads it; repeat  5. sw_device_close  6. sw_close.
 *
 * Or, instead of 3 and 4: sw_group_open, sw_coll_device, sw_wait or
 * sw_coll_hold.
 *
 * All ranks declare the same tensors; those of one agent all so, those of
 * other agents may have them in memory.
 *
 * A device that fails (an error of CUDA's after which nothing works any more)
 * ends the job at all ranks, with a sentence that names rank and device.
 *
 * Errors, threads and structs with a size: as sumwire.h says.  After fork, a
 * child has no devices.  The back end "cuda" has not been run on a GPU yet.
 */
#ifndef SUMWIRE_DEVICE_H
#define SUMWIRE_DEVICE_H

#include <sumwire/coll.h>
#include <sumwire/sumwire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sw_device;        /* a device as this process copies from and to it */
struct sw_device_tensor; /* belongs to its device */

struct sw_device_settings {
	size_t size;
	/* "cuda": a GPU, by the CUDA runtime 12 or 13, which is loaded now:
	 * what SUMWIRE_CUDART names, else what this process has loaded already,
	 * else what the linker finds.  "fake": no device, any memory, for
	 * tests; options behind a colon (pmd/cuda/fake.h).  NULL: the
	 * environment's SUMWIRE_DEVICE, else "cuda".  Borrowed by
	 * sw_device_open. */
	const char *backend;
	/* Bytes of a piece, a multiple of 4,096: 4 KiB to 64 MiB; half of it is
	 * copied at once.  Ranks may have others.  0: 256 KiB to 4 MiB, as the
	 * copies so far say. */
	uint64_t piece_bytes;
	int32_t number; /* of the device; -1: the thread's current one */
	uint32_t pad;   /* never read */
};

#define SW_DEVICE_SETTINGS_INIT                                   \
	{                                                         \
		sizeof(struct sw_device_settings), NULL, 0, -1, 0 \
	}

/* sw_device_open - start to use a device.
 * @s        read only during the call; NULL: the defaults
 * @out      set on success; owned by the caller until sw_device_close, or
 *           sw_close of @c, which does the same
 * Starts a thread.  What the process declares and allocates from now on lies on
 * the NUMA node that the device is near, where the kernel says which that is.
 * Errors: SW_EDEVICE no runtime, no driver, one that is too old, no device;
 * SW_EINVAL no such back end, number or piece; SW_ENOMEM. */
SW_API int sw_device_open(struct sw_client *c,
	const struct sw_device_settings *s, struct sw_device **out);

/* sw_device_close - give it up, its tensors too; sets *@d to NULL.  Open calls
 * end with SW_ECLOSED; waits for what is being copied.  *@d may be NULL. */
SW_API void sw_device_close(struct sw_device **d);

/* sw_device_declare - as sw_declare, for tensors in device memory; the shared
 * memory that they go through is declared, and pinned as far as the device
 * lets us: else copies are slower, and one line says so.
 * @descs    is_async is 0
 * Errors: those of sw_declare. */
SW_API int sw_device_declare(struct sw_device *d,
	const struct sw_tensor_desc *descs, uint32_t n,
	struct sw_device_tensor **out);

struct sw_device_call {
	size_t size;
	/* The tensor's n_elems elements in the device's memory, and where the
	 * result is to come; may be the same.  The caller does not free them,
	 * write from or to, or read to, until the call has ended: the back end
	 * "fake:check" finds writes and frees of from before its sum is there,
	 * and of to between that and the end. */
	const void *from;
	void *to;
	/* cudaStream_t: the call begins when what this stream has been given
	 * so far is done.  NULL: the default stream. */
	void *stream;
	uint32_t step; /* as of sw_push_pull */
	uint32_t root; /* of sw_broadcast_device: a rank */
};

#define SW_DEVICE_CALL_INIT                                           \
	{                                                             \
		sizeof(struct sw_device_call), NULL, NULL, NULL, 0, 0 \
	}

/* sw_push_pull_device - start to sum @t over all ranks; returns at once.
 * One call per tensor is open at a time.
 * Errors: SW_EBUSY the last one has not ended; SW_EINVAL the stream is being
 * captured into a CUDA graph, or is none; the error that the last call ended
 * with, if neither sw_device_wait nor sw_device_poll has said it; SW_EDEVICE;
 * those of sw_push_pull. */
SW_API int sw_push_pull_device(
	struct sw_device_tensor *t, const struct sw_device_call *call);

/* sw_broadcast_device - start to copy what rank root has in from to all
 * ranks' to, bit for bit; from may be NULL at the others.
 * Errors: as above; SW_EINVAL there is no such rank. */
SW_API int sw_broadcast_device(
	struct sw_device_tensor *t, const struct sw_device_call *call);

/* sw_device_poll - has the last call of @t ended?  Never blocks.
 * Returns 0: the result is in to, for every stream, or there was no call;
 * SW_EAGAIN; else the error it ended with: those of sw_poll, SW_EDEVICE. */
SW_API int sw_device_poll(struct sw_device_tensor *t);

/* sw_device_wait - the same, but waits, for wait_timeout_s at most
 * (SW_ETIMEDOUT: it stays open). */
SW_API int sw_device_wait(struct sw_device_tensor *t);

/* sw_device_wait_for - the same, for @timeout_ms at most. */
SW_API int sw_device_wait_for(struct sw_device_tensor *t, uint32_t timeout_ms);

/* sw_device_hold - what @stream is given from now on waits until the call has
 * ended; this thread goes on.  How it ended, sw_device_poll, sw_device_wait or
 * the next call of @t says; after an error the stream goes on, too.
 * Where a stream cannot wait (cuStreamWaitValue32 is missing, or
 * CUDA_DEVICE_MAX_CONNECTIONS is 1, with which it would hold up the copies that
 * it waits for), this thread does, as in sw_device_wait, and one line says so.
 * Errors: SW_EPERM the stream is being captured into a CUDA graph. */
SW_API int sw_device_hold(struct sw_device_tensor *t, void *stream);

/* sw_device_can_hold - can @stream wait, as sw_device_hold and sw_coll_hold
 * have it do?  Puts a wait to it that is over at once.
 * Errors: SW_ENOENT no, their thread would wait, and one line says why;
 * SW_EPERM the stream is being captured into a CUDA graph; SW_ECLOSED after
 * fork. */
SW_API int sw_device_can_hold(struct sw_device *d, void *stream);

/* sw_device_alloc - memory of the device, for programs that have no other way
 * to it; what is in it is not said.  The caller frees it before the device is
 * closed.
 * @out     at a multiple of 256
 * Errors: SW_ENOMEM the device has too little; SW_EINVAL bytes is 0;
 * SW_EDEVICE; SW_ECLOSED after fork. */
SW_API int sw_device_alloc(struct sw_device *d, uint64_t bytes, void **out);

/* sw_device_free - no call that is open has it; may wait for the device.  NULL:
 * nothing. */
SW_API void sw_device_free(struct sw_device *d, void *p);

/* sw_device_copy - copy from and to the device's memory, this process's, or
 * from one to the other; returns when it is done.  Behind what the default
 * stream was given so far, beside other streams.
 * Errors: SW_EINVAL an address that is neither's; SW_EDEVICE; SW_ECLOSED. */
SW_API int sw_device_copy(
	struct sw_device *d, void *to, const void *from, uint64_t bytes);

/* sw_coll_device - as sw_coll, with send and recv in the device's memory: one
 * in the order of the group's, whether others call it so or by sw_coll.
 * @args     coll.h; of both buffers, which the caller does not free, write from
 *           or to, or read recv, until the handle has ended: with "fake:check"
 *           SW_ECORRUPT ends it if send is written or freed before its sum is
 *           there, or recv between that and the end
 * @stream   cudaStream_t: it begins when what this stream has been given so far
 *           is done, a barrier, too; NULL: the default stream
 * @handle   ends exactly once, through sw_poll or sw_wait, when the result is
 *           in recv for every stream
 * Returns at once, but for the first of its kind, which waits for the servers
 * and pins memory, some 3 MiB for each kind of a group.  What is called later
 * on the group with the same kind comes behind it, however long the stream
 * takes. Thread: as sw_coll. Errors: those of sw_coll; SW_EINVAL the stream is
 * being captured into a CUDA graph, or is none, or the group is of another
 * client; SW_EDEVICE.  A device that fails ends the job, as of tensors; one
 * that is closed aborts the groups whose collectives on it are open. */
SW_API int sw_coll_device(struct sw_device *d, struct sw_group *g,
	const struct sw_coll_args *args, void *stream, uint64_t *handle);

/* sw_coll_hold - what @stream is given from now on waits until the collective
 * has ended, as by sw_device_hold; how it ended, sw_poll and sw_wait still say.
 * One that has ended lets it go on.
 * @handle  of sw_coll_device on @d
 * Errors: SW_EINVAL there is no such handle; SW_EPERM the stream is being
 * captured into a CUDA graph.  Where this thread waits:
 * SW_ETIMEDOUT, or why the attachment ended. */
SW_API int sw_coll_hold(struct sw_device *d, uint64_t handle, void *stream);

#ifdef __cplusplus
}
#endif

#endif
