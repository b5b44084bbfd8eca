/* device.h - libsumwire: sum tensors that lie in a device's memory.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The library copies a device tensor piece by piece through pinned shared
 * memory (pmd/cuda/README.md). Calls return at once and never synchronize the
 * whole device.
 *
 * Lifecycle:
 * 1. sw_open
 * 2. sw_device_open
 * 3. sw_device_declare (once or more)
 * 4. for each step: sw_push_pull_device on the stream that computes the tensor,
 *    then sw_device_wait, or sw_device_hold on the stream that reads the result
 * 5. sw_device_close
 * 6. sw_close
 *
 * For collectives, steps 3 and 4 are sw_group_open, sw_coll_device, then
 * sw_wait or sw_coll_hold.
 *
 * All ranks declare the same tensors. If one rank of an agent declares a tensor
 * on a device, all ranks of that agent must; ranks of other agents may declare
 * it in host memory.
 *
 * If a device fails (a CUDA error after which nothing works), the job ends at
 * all ranks, and the error text names the rank and the device.
 *
 * Errors, threads and sized structs: as in sumwire.h. After fork, a child has
 * no devices. The back end "cuda" has not yet been run on a GPU.
 */
#ifndef SUMWIRE_DEVICE_H
#define SUMWIRE_DEVICE_H

#include <sumwire/coll.h>
#include <sumwire/sumwire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sw_device;        /* a device, opened by this process */
struct sw_device_tensor; /* belongs to its device */

struct sw_device_settings {
	size_t size;
	/* "cuda": a GPU, through CUDA runtime 12 or 13. sw_device_open loads
	 * the library that SUMWIRE_CUDART names, else uses the library already
	 * loaded in this process, else asks the dynamic linker. "fake":
	 * host memory as a device, for tests; options follow a colon
	 * (pmd/cuda/fake.h). NULL: SUMWIRE_DEVICE of the environment, else
	 * "cuda". Borrowed by sw_device_open. */
	const char *backend;
	/* Bytes of a piece, a multiple of 4,096 from 4 KiB to 64 MiB; a copy
	 * moves half a piece. Ranks may use different sizes. 0: choose 256 KiB
	 * to 4 MiB from the copies measured so far. */
	uint64_t piece_bytes;
	int32_t number; /* CUDA device number; -1: the current one */
	uint32_t pad;   /* unused */
};

#define SW_DEVICE_SETTINGS_INIT                                   \
	{                                                         \
		sizeof(struct sw_device_settings), NULL, 0, -1, 0 \
	}

/* sw_device_open - start to use a device; starts a thread. If the kernel knows
 * the device's NUMA node, the process's later declarations and allocations use
 * memory of that node.
 * @s        read only during the call; NULL: the defaults
 * @out      set on success; owned by the caller until sw_device_close, or until
 *           sw_close of @c, which closes the device
 * Errors: SW_EDEVICE the runtime, driver or device is missing, or the driver is
 * too old; SW_EINVAL the back end, number or piece is invalid; SW_ENOMEM. */
SW_API int sw_device_open(struct sw_client *c,
	const struct sw_device_settings *s, struct sw_device **out);

/* sw_device_close - close the device, free its tensors, and set *@d to NULL.
 * Waits for copies in progress; open calls end with SW_ECLOSED. *@d may be
 * NULL. */
SW_API void sw_device_close(struct sw_device **d);

/* sw_device_declare - like sw_declare, for tensors in device memory. It
 * declares the shared memory that the copies go through and pins it. If the
 * device cannot pin all of it, copies are slower and the log says so in one
 * line.
 * @descs    is_async must be 0
 * Errors: as for sw_declare. */
SW_API int sw_device_declare(struct sw_device *d,
	const struct sw_tensor_desc *descs, uint32_t n,
	struct sw_device_tensor **out);

struct sw_device_call {
	size_t size;
	/* Source and destination of the tensor's n_elems elements in device
	 * memory; may be equal. Until the call has ended, the caller must not
	 * free them, write either, or read @to. The back end "fake:check"
	 * detects if @from is written or freed before its sum is complete, or
	 * @to between then and the end. */
	const void *from;
	void *to;
	/* cudaStream_t: the call begins after the work that is now queued on
	 * this stream. NULL: the default stream. */
	void *stream;
	uint32_t step; /* as for sw_push_pull */
	uint32_t root; /* sw_broadcast_device: the sending rank */
};

#define SW_DEVICE_CALL_INIT                                           \
	{                                                             \
		sizeof(struct sw_device_call), NULL, NULL, NULL, 0, 0 \
	}

/* sw_push_pull_device - start to sum @t over all ranks; return at once. One
 * call per tensor may be open at a time.
 * Errors: SW_EBUSY the tensor's last call has not ended; SW_EINVAL the stream
 * is being captured into a CUDA graph or is invalid; the error of the tensor's
 * last call, if neither sw_device_wait nor sw_device_poll has reported it;
 * SW_EDEVICE; or as for sw_push_pull. */
SW_API int sw_push_pull_device(
	struct sw_device_tensor *t, const struct sw_device_call *call);

/* sw_broadcast_device - start to copy @from of rank @root to @to of all ranks,
 * bit for bit; return at once. @from may be NULL at other ranks.
 * Errors: as for sw_push_pull_device; SW_EINVAL there is no such rank. */
SW_API int sw_broadcast_device(
	struct sw_device_tensor *t, const struct sw_device_call *call);

/* sw_device_poll - check whether the last call of @t has ended, without
 * blocking.
 * Returns 0 if the result is in @to, visible to every stream, or if there was
 * no call; SW_EAGAIN; else the error of the call: as for sw_poll, or
 * SW_EDEVICE. */
SW_API int sw_device_poll(struct sw_device_tensor *t);

/* sw_device_wait - like sw_device_poll, but wait for at most wait_timeout_s;
 * then return SW_ETIMEDOUT and leave the call open. */
SW_API int sw_device_wait(struct sw_device_tensor *t);

/* sw_device_wait_for - like sw_device_wait, for at most @timeout_ms. */
SW_API int sw_device_wait_for(struct sw_device_tensor *t, uint32_t timeout_ms);

/* sw_device_hold - make @stream wait for the last call of @t before it runs
 * work that is queued from now on. The calling thread does not wait.
 * sw_device_poll, sw_device_wait or the next call of @t reports how the call
 * ended; the stream continues even after an error.
 * Streams wait only if CUDA_MODULE_LOADING is EAGER in the environment: CUDA
 * otherwise loads a kernel at its first launch, which waits for all streams and
 * holds up the copies that a waiting stream needs. Streams cannot wait either
 * if cuStreamWaitValue32 is missing, or with CUDA_DEVICE_MAX_CONNECTIONS=1.
 * Then the calling thread waits as in sw_device_wait, and the log says so in
 * one line. Errors: SW_EPERM the stream is being captured into a CUDA graph. */
SW_API int sw_device_hold(struct sw_device_tensor *t, void *stream);

/* sw_device_can_hold - check whether sw_device_hold and sw_coll_hold can make
 * @stream wait, by queuing a wait that is already satisfied.
 * Errors: SW_ENOENT neither can, so the calling thread would wait; the log
 * says why in one line; SW_EPERM the stream is being captured into a CUDA
 * graph; SW_ECLOSED after fork. */
SW_API int sw_device_can_hold(struct sw_device *d, void *stream);

/* sw_device_alloc - allocate uninitialized device memory, for programs that
 * have no other allocator. The caller frees it before the device is closed.
 * @out     set on success; aligned to 256 bytes
 * Errors: SW_ENOMEM the device has too little memory; SW_EINVAL @bytes is 0;
 * SW_EDEVICE; SW_ECLOSED after fork. */
SW_API int sw_device_alloc(struct sw_device *d, uint64_t bytes, void **out);

/* sw_device_free - free memory of sw_device_alloc, which no open call may use;
 * may wait for the device. @p may be NULL. */
SW_API void sw_device_free(struct sw_device *d, void *p);

/* sw_device_copy - copy @bytes within or between device memory and this
 * process's memory; return when the copy is complete. It runs after the work
 * queued on the default stream, concurrently with other streams.
 * Errors: SW_EINVAL an address belongs to neither memory; SW_EDEVICE;
 * SW_ECLOSED. */
SW_API int sw_device_copy(
	struct sw_device *d, void *to, const void *from, uint64_t bytes);

/* sw_coll_device - like sw_coll, with send and recv in device memory. It takes
 * its place in the group's order; other members may call either function.
 * @args     as in coll.h. Until the handle has ended, the caller must not free
 *           the buffers, write them, or read recv. The back end "fake:check"
 *           ends the handle with SW_ECORRUPT if send is written or freed before
 *           its sum is complete, or recv between then and the end
 * @stream   cudaStream_t: the collective, also a barrier, begins after the work
 *           that is now queued on this stream; NULL: the default stream
 * @handle   set on success; ends exactly once, through sw_poll or sw_wait, when
 *           the result is in recv, visible to every stream
 * Returns at once, except that the first collective of a kind waits for the
 * servers and pins memory, about 3 MiB per kind and group. Later collectives of
 * that kind run after this one, however long the stream takes.
 * Thread: as for sw_coll.
 * Errors: as for sw_coll; SW_EINVAL the stream is being captured into a CUDA
 * graph or is invalid, or the group belongs to another client; SW_EDEVICE. A
 * device that fails ends the job, as with tensors; closing a device aborts the
 * groups that have open collectives on it. */
SW_API int sw_coll_device(struct sw_device *d, struct sw_group *g,
	const struct sw_coll_args *args, void *stream, uint64_t *handle);

/* sw_coll_hold - make @stream wait for a collective, as sw_device_hold does.
 * sw_poll and sw_wait still report how the collective ended. If it has already
 * ended, the stream does not wait.
 * @handle  of sw_coll_device on @d
 * Errors: SW_EINVAL there is no such handle; SW_EPERM the stream is being
 * captured into a CUDA graph. If the calling thread has to wait: SW_ETIMEDOUT,
 * or the reason why the attachment ended. */
SW_API int sw_coll_hold(struct sw_device *d, uint64_t handle, void *stream);

#ifdef __cplusplus
}
#endif

#endif
