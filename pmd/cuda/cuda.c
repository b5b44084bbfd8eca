/* cuda.c - the back end "cuda": a GPU through the CUDA runtime.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Written from NVIDIA's documents, tested over a stand-in for the runtime
 * (test/cuda), and run on one H100 (test/cuda/run).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "pmd/cuda/back.h"
#include "pmd/cuda/pins.h"
#include "pmd/cuda/runtime.h"

struct sw_back {
	struct sw_cuda cuda;
	int device;
	void *streams[SW_BACK_WAYS];
	struct sw_pins pins;
	void *probe; /* a done event, queried to test whether the device still
			answers */
	/* The device has one queue: work that waits in it blocks all later
	 * work, including our copies. */
	bool has_one_connection;
	/* CUDA loads a kernel when it is first launched. The load waits for all
	 * streams, and all streams wait for the load: a stream that we hold,
	 * and our copies that would release it, then wait for each other. */
	bool is_lazy;
};

static int fail(const struct sw_back *b, const char *what, int error, char *why)
{
	sw_cuda_say(&b->cuda, what, error, why);
	b->cuda.GetLastError(); /* hide it from the program's own calls */
	return SW_EDEVICE;
}

/* A thread's CUDA state, saved while we make calls on the thread. */
struct own {
	int device;  /* current device, to whose default stream NULL refers */
	int capture; /* mode that limits the thread's calls while any thread
			captures a graph */
};

/* Switch the thread to our device and save its state in @own. Our calls do not
 * belong to graphs that the program captures, so a capture must neither refuse
 * them nor be invalidated by them. */
static int enter(struct sw_back *b, struct own *own, char *why)
{
	int err = b->cuda.GetDevice(&own->device);

	own->capture = SW_CUDA_RELAXED;
	if (!err && own->device != b->device)
		err = b->cuda.SetDevice(b->device);
	if (!err)
		err = b->cuda.ThreadExchangeStreamCaptureMode(&own->capture);
	return err ? fail(b, "cudaSetDevice", err, why) : 0;
}

static void leave(struct sw_back *b, struct own *own)
{
	b->cuda.ThreadExchangeStreamCaptureMode(&own->capture);
	if (own->device != b->device)
		b->cuda.SetDevice(own->device);
}

static int cuda_enter(struct sw_back *b, char *why)
{
	struct own own;

	return enter(b, &own, why);
}

static int event_open(struct sw_back *b, void **event, char *why)
{
	struct own own;
	int err = enter(b, &own, why);

	if (err)
		return err;
	err = b->cuda.EventCreateWithFlags(event, SW_CUDA_NO_TIMING);
	leave(b, &own);
	return err ? fail(b, "cudaEventCreateWithFlags", err, why) : 0;
}

static void event_close(struct sw_back *b, void *event)
{
	b->cuda.EventDestroy(event);
}

static int choose_device(struct sw_back *b, int32_t device, char *why)
{
	int n = 0, err = b->cuda.GetDeviceCount(&n);

	if (!err && device < 0)
		err = b->cuda.GetDevice(&b->device);
	else
		b->device = device;
	if (err)
		return fail(b, "cudaGetDevice", err, why);
	if (b->device < n)
		return 0;
	snprintf(why, SW_BACK_WHY,
		"device %d does not exist: there are %d, 0 to %d", b->device, n,
		n - 1);
	return SW_EINVAL;
}

/* Open streams of the highest priority: they do not share their queues to the
 * device with other streams. */
static int open_streams(struct sw_back *b, char *why)
{
	int lowest = 0, highest = 0, err;
	struct own own;

	err = enter(b, &own, why);
	if (err)
		return err;
	err = b->cuda.DeviceGetStreamPriorityRange(&lowest, &highest);
	for (uint32_t i = 0; i < SW_BACK_WAYS && !err; i++)
		err = b->cuda.StreamCreateWithPriority(
			&b->streams[i], SW_CUDA_NON_BLOCKING, highest);
	leave(b, &own);
	return err ? fail(b, "cudaStreamCreateWithPriority", err, why) : 0;
}

static void cuda_close(struct sw_back *b)
{
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		if (b->streams[i])
			b->cuda.StreamDestroy(b->streams[i]);
	if (b->probe)
		event_close(b, b->probe);
	sw_pins_fini(&b->pins);
	sw_cuda_unload(&b->cuda);
	free(b);
}

static int cuda_open(
	const char *options, int32_t device, struct sw_back **out, char *why)
{
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	const char *loading = getenv("CUDA_MODULE_LOADING");
	struct sw_back *b;
	int err;

	if (options) {
		snprintf(
			why, SW_BACK_WHY, "the back end 'cuda' has no options");
		return SW_EINVAL;
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		snprintf(why, SW_BACK_WHY, "out of memory");
		return SW_EDEVICE;
	}
	sw_pins_init(&b->pins);
	b->has_one_connection = connections && !strcmp(connections, "1");
	b->is_lazy = !loading || strcmp(loading, "EAGER");
	err = sw_cuda_load(&b->cuda, why);
	if (!err)
		err = choose_device(b, device, why);
	if (!err)
		err = open_streams(b, why);
	if (!err)
		err = event_open(b, &b->probe, why);
	if (err)
		cuda_close(b);
	else
		*out = b;
	return err;
}

/* Pin a range. A range that another device of this process has pinned already
 * counts as pinned. */
static int pin_range(
	struct sw_back *b, struct sw_pin *pin, bool is_read_only, char *why)
{
	unsigned int flags = SW_CUDA_PIN_PORTABLE | SW_CUDA_PIN_MAPPED;
	int err;

	if (is_read_only)
		flags |= SW_CUDA_PIN_READ_ONLY;
	err = b->cuda.HostRegister(
		(void *)pin->first, pin->end - pin->first, flags);
	if (err == SW_CUDA_PINNED_BEFORE) {
		b->cuda.GetLastError();
		pin->is_ours = false;
		return 0;
	}
	if (!err)
		return 0;
	fail(b, "cudaHostRegister", err, why);
	return SW_ENOMEM;
}

static int pin_ranges(struct sw_back *b, uintptr_t at, size_t bytes,
	bool is_read_only, char *why)
{
	uintptr_t from = at;
	struct sw_pin *pin;
	bool has_memory;
	int err = 0;

	while (!err &&
		(pin = sw_pins_add(&b->pins, at, bytes, &from, &has_memory))) {
		err = pin_range(b, pin, is_read_only, why);
		if (err)
			sw_pins_drop(&b->pins, pin);
	}
	if (!err && !has_memory) {
		snprintf(why, SW_BACK_WHY, "out of memory");
		err = SW_ENOMEM;
	}
	return err;
}

static void unpin_ranges(struct sw_back *b, uintptr_t at)
{
	struct sw_pin *pin;

	while ((pin = sw_pins_take(&b->pins, at))) {
		if (pin->is_ours)
			b->cuda.HostUnregister((void *)pin->first);
		free(pin);
	}
}

static int cuda_pin(
	struct sw_back *b, void *p, size_t bytes, bool is_read_only, char *why)
{
	struct own own;
	int err = enter(b, &own, why);

	if (err)
		return err;
	err = pin_ranges(b, (uintptr_t)p, bytes, is_read_only, why);
	if (err)
		unpin_ranges(b, (uintptr_t)p);
	leave(b, &own);
	return err;
}

/* Unpin the memory at @p, even if the device does not answer. */
static void cuda_unpin(struct sw_back *b, void *p)
{
	char why[SW_BACK_WHY];
	struct own own;
	int err = enter(b, &own, why);

	unpin_ranges(b, (uintptr_t)p);
	if (!err)
		leave(b, &own);
}

/* Return SW_EINVAL if the device still answers, because the failure was then
 * the caller's fault; otherwise SW_EDEVICE. Call it between enter and leave. */
static int judge(struct sw_back *b, const char *what, int error, char *why)
{
	int now;

	fail(b, what, error, why);
	now = b->cuda.EventQuery(b->probe);
	return now && now != SW_CUDA_NOT_READY ? SW_EDEVICE : SW_EINVAL;
}

/* Return true if @stream is being captured into a graph, which cannot take our
 * work. Otherwise *@err is CUDA's error or 0. */
static bool is_captured(struct sw_back *b, void *stream, int *err, char *why)
{
	int is = 0;

	*err = b->cuda.StreamIsCapturing(stream, &is);
	if (!is &&
		(*err < SW_CUDA_CAPTURE_FIRST || *err > SW_CUDA_CAPTURE_LAST))
		return false;
	b->cuda.GetLastError();
	snprintf(why, SW_BACK_WHY,
		"its stream is being captured into a CUDA graph, which cannot "
		"have a collective");
	return true;
}

static int record(struct sw_back *b, void *event, void *stream, char *why)
{
	int err;

	if (is_captured(b, stream, &err, why))
		return SW_EINVAL;
	if (!err)
		err = b->cuda.EventRecord(event, stream);
	return err ? judge(b, "cudaEventRecord", err, why) : 0;
}

static int cuda_record(struct sw_back *b, void *event, void *stream, char *why)
{
	struct own own;
	int err = enter(b, &own, why);

	if (err)
		return err;
	err = record(b, event, stream, why);
	leave(b, &own);
	return err;
}

static int copy_in_one(struct sw_back *b, enum sw_back_way way, int kind,
	const struct sw_rows *r, char *why)
{
	int err = b->cuda.Memcpy2DAsync(r->to, r->to_stride, r->from,
		r->from_stride, r->bytes, r->n, kind, b->streams[way]);

	return err ? fail(b, "cudaMemcpy2DAsync", err, why) : 0;
}

/* Copy a row, in parts that end at the borders of pins. */
static int copy_row(struct sw_back *b, enum sw_back_way way, char *to,
	const char *from, uint64_t bytes)
{
	int kind = way == SW_BACK_OUT ? SW_CUDA_TO_HOST : SW_CUDA_TO_DEVICE;
	int err = 0;

	while (bytes && !err) {
		uint64_t n = sw_pins_run(
			&b->pins, way == SW_BACK_OUT ? to : from, bytes);

		err = b->cuda.MemcpyAsync(to, from, n, kind, b->streams[way]);
		to += n;
		from += n;
		bytes -= n;
	}
	return err;
}

static int copy_each(struct sw_back *b, enum sw_back_way way,
	const struct sw_rows *r, char *why)
{
	int err = 0;

	for (uint64_t i = 0; i < r->n && !err; i++)
		err = copy_row(b, way, r->to + i * r->to_stride,
			r->from + i * r->from_stride, r->bytes);
	return err ? fail(b, "cudaMemcpyAsync", err, why) : 0;
}

/* Return whether all rows lie between two adjacent borders of pins. */
static bool is_in_one_pin(
	struct sw_back *b, enum sw_back_way way, const struct sw_rows *r)
{
	bool is_out = way == SW_BACK_OUT;
	const char *at = is_out ? r->to : r->from;
	uint64_t all = (r->n - 1) * (is_out ? r->to_stride : r->from_stride) +
		       r->bytes;

	return sw_pins_run(&b->pins, at, all) == all;
}

/* Copy all rows in one call, unless they are too far apart for it or cross the
 * border of a pin. */
static int copy_rows(struct sw_back *b, enum sw_back_way way,
	const struct sw_rows *r, char *why)
{
	int kind = way == SW_BACK_OUT ? SW_CUDA_TO_HOST : SW_CUDA_TO_DEVICE;

	return r->n > 1 && r->to_stride <= SW_CUDA_PITCH_MAX &&
			       r->from_stride <= SW_CUDA_PITCH_MAX &&
			       is_in_one_pin(b, way, r)
		       ? copy_in_one(b, way, kind, r, why)
		       : copy_each(b, way, r, why);
}

static int cuda_copy(struct sw_back *b, enum sw_back_way way,
	const struct sw_rows *rows, void *event, char *why)
{
	int err = copy_rows(b, way, rows, why);

	if (err)
		return err;
	err = b->cuda.EventRecord(event, b->streams[way]);
	return err ? fail(b, "cudaEventRecord", err, why) : 0;
}

static int cuda_poll(struct sw_back *b, void *event, char *why)
{
	int err = b->cuda.EventQuery(event);

	if (!err)
		return 0;
	if (err != SW_CUDA_NOT_READY)
		return fail(b, "cudaEventQuery", err, why);
	b->cuda.GetLastError();
	return SW_EAGAIN;
}

static int no_hold(const char *text, char *why)
{
	snprintf(why, SW_BACK_WHY, "%s", text);
	return SW_ENOENT;
}

static int hold(struct sw_back *b, void *stream, _Atomic uint32_t *word,
	uint32_t value, char *why)
{
	void *at = NULL;
	int err;

	if (is_captured(b, stream, &err, why))
		return SW_EPERM;
	if (b->has_one_connection)
		return no_hold("CUDA_DEVICE_MAX_CONNECTIONS is 1, so that it "
			       "would hold up the copies, too",
			why);
	if (b->is_lazy)
		return no_hold("CUDA_MODULE_LOADING is not EAGER, so that the "
			       "first launch of a kernel could hang",
			why);
	if (!b->cuda.wait_value)
		return no_hold("the driver has no cuStreamWaitValue32", why);
	if (!err)
		err = b->cuda.HostGetDevicePointer(&at, (void *)word, 0);
	if (!err)
		err = b->cuda.wait_value(
			stream, (uintptr_t)at, value, SW_CUDA_GEQ);
	if (!err)
		return 0;
	fail(b, "cuStreamWaitValue32", err, why);
	return SW_ENOENT;
}

static int cuda_hold(struct sw_back *b, void *stream, _Atomic uint32_t *word,
	uint32_t value, char *why)
{
	struct own own;
	int err = enter(b, &own, why);

	if (err)
		return SW_ENOENT;
	err = hold(b, stream, word, value, why);
	leave(b, &own);
	return err;
}

static int cuda_node(const struct sw_back *b)
{
	return sw_cuda_node(&b->cuda, b->device, "/sys");
}

static int cuda_alloc(struct sw_back *b, uint64_t bytes, void **out, char *why)
{
	struct own own;
	int err = enter(b, &own, why);

	if (err)
		return err;
	err = b->cuda.Malloc(out, bytes);
	if (err)
		err = judge(b, "cudaMalloc", err, why);
	leave(b, &own);
	return err == SW_EINVAL ? SW_ENOMEM : err;
}

static void cuda_release(struct sw_back *b, void *p)
{
	char why[SW_BACK_WHY];
	struct own own;
	int err = enter(b, &own, why);

	b->cuda.Free(p);
	if (!err)
		leave(b, &own);
}

static int cuda_move(struct sw_back *b, void *to, const void *from,
	uint64_t bytes, char *why)
{
	struct own own;
	int err = enter(b, &own, why);

	if (err)
		return err;
	err = b->cuda.Memcpy(to, from, bytes, SW_CUDA_AS_IT_IS);
	if (err)
		err = judge(b, "cudaMemcpy", err, why);
	leave(b, &own);
	return err;
}

const struct sw_back_ops sw_back_cuda = {
	.name = "cuda",
	.open = cuda_open,
	.close = cuda_close,
	.enter = cuda_enter,
	.pin = cuda_pin,
	.unpin = cuda_unpin,
	.event_open = event_open,
	.event_close = event_close,
	.record = cuda_record,
	.copy = cuda_copy,
	.poll = cuda_poll,
	.hold = cuda_hold,
	.node = cuda_node,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.move = cuda_move,
};
