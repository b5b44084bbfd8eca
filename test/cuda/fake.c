/* fake.c - a stand-in for the CUDA runtime: streams that do as they are asked.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/cuda/fake.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum {
	OPS = 64,
	NON_BLOCKING = 1,
	NO_TIMING = 2,
	HIGHEST = -5,
	SHIFT = 4096,
	RELAXED = 2
};

/* In addresses of memory of cudaMalloc, which so are nobody's. */
#define FAR (UINT64_C(1) << 47)

struct stream {
	struct op {
		char *to;
		const char *from;
		size_t bytes, rows, to_pitch, from_pitch;
	} ops[OPS];
	uint64_t n, done;
};

struct event {
	int device;
	struct stream *stream;
	uint64_t at; /* ops of it that must be done */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake f = {.driver = FAKE_VERSION, .n_devices = 2};
static _Thread_local int capture_mode; /* 0: strict */

API struct fake *fake_state(void)
{
	return &f;
}

/* Unlock and return the error. An error stays until cudaGetLastError reads
 * it; a lost device stays lost. */
static int end(int error)
{
	if (f.is_lost)
		error = FAKE_LOST;
	if (error)
		f.error = error;
	pthread_mutex_unlock(&lock);
	return error;
}

static void begin(void)
{
	if (f.on_call)
		f.on_call(f.on_call_arg);
	pthread_mutex_lock(&lock);
}

/* Refuse calls that are unsafe while another thread captures, unless its mode
 * is relaxed. */
static int end_unsafe(int error)
{
	if (f.is_capturing_elsewhere && capture_mode != RELAXED) {
		f.n_spoiled++;
		error = FAKE_CAPTURE;
	}
	return end(error);
}

static int check_driver(void)
{
	return f.driver < FAKE_VERSION / 1000 * 1000 ? FAKE_OLD_DRIVER : 0;
}

API int cudaGetDeviceCount(int *n)
{
	begin();
	*n = f.n_devices;
	return end(check_driver());
}

API int cudaGetDevice(int *device)
{
	begin();
	*device = f.current;
	return end(0);
}

API int cudaSetDevice(int device)
{
	begin();
	f.current = device;
	return end(device < 0 || device >= f.n_devices ? 101 : 0);
}

API int cudaDriverGetVersion(int *version)
{
	*version = f.driver;
	return 0;
}

API int cudaRuntimeGetVersion(int *version)
{
	*version = FAKE_VERSION;
	return 0;
}

API int cudaGetLastError(void)
{
	int error;

	begin();
	error = f.error;
	f.error = 0;
	f.n_cleared++;
	pthread_mutex_unlock(&lock);
	return error;
}

API const char *cudaGetErrorString(int error)
{
	switch (error) {
	case FAKE_MEMORY:
		return "out of memory";
	case FAKE_OLD_DRIVER:
		return "CUDA driver version is insufficient for CUDA runtime "
		       "version";
	case FAKE_LOST:
		return "unspecified launch failure";
	default:
		return "an error";
	}
}

API int cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
	begin();
	*lowest = 0;
	*highest = HIGHEST;
	return end(0);
}

API int cudaStreamCreateWithPriority(
	void **stream, unsigned int flags, int priority)
{
	begin();
	f.bad_calls += flags != NON_BLOCKING || priority != HIGHEST;
	*stream = calloc(1, sizeof(struct stream));
	f.n_streams++;
	return end(0);
}

API int cudaStreamDestroy(void *stream)
{
	begin();
	free(stream);
	f.n_streams--;
	return end(0);
}

API int cudaStreamIsCapturing(void *stream, int *is)
{
	begin();
	*is = f.capture;
	return end(f.is_capture_error ? 906 : 0);
}

API int cudaThreadExchangeStreamCaptureMode(int *mode)
{
	int old = capture_mode;

	begin();
	f.bad_calls += *mode < 0 || *mode > RELAXED;
	f.n_relaxed += *mode == RELAXED;
	f.n_relaxed -= old == RELAXED;
	capture_mode = *mode;
	*mode = old;
	return end(0);
}

API int cudaEventCreateWithFlags(void **event, unsigned int flags)
{
	begin();
	f.bad_calls += flags != NO_TIMING;
	*event = calloc(1, sizeof(struct event));
	((struct event *)*event)->device = f.current;
	f.n_events++;
	return end(0);
}

API int cudaEventDestroy(void *event)
{
	begin();
	free(event);
	f.n_events--;
	return end(0);
}

/* A stream of the program is NULL, the current device's, with nothing to do; or
 * 1: invalid. */
API int cudaEventRecord(void *event, void *stream)
{
	struct event *e = event;

	begin();
	if (stream == (void *)1 || (!stream && e->device != f.current))
		return end(FAKE_BAD_HANDLE);
	e->stream = stream;
	e->at = e->stream ? e->stream->n : 0;
	return end(0);
}

static char *at(const void *p)
{
	return (char *)((uintptr_t)p & ~FAR);
}

static void step(struct stream *s)
{
	const struct op *o = &s->ops[s->done++ % OPS];

	for (size_t i = 0; i < o->rows; i++)
		memcpy(at(o->to) + i * o->to_pitch,
			at(o->from) + i * o->from_pitch, o->bytes);
}

API int cudaEventQuery(void *event)
{
	struct event *e = event;

	begin();
	if (f.is_lost || !e->stream || e->stream->done >= e->at)
		return end_unsafe(0);
	step(e->stream);
	return end_unsafe(FAKE_NOT_READY);
}

static bool overlaps(const struct fake_pin *pin, const char *p, uint64_t bytes)
{
	return pin->bytes && p < pin->at + pin->bytes && pin->at < p + bytes;
}

static bool is_within(const struct fake_pin *pin, const char *p, uint64_t bytes)
{
	return p >= pin->at && p + bytes <= pin->at + pin->bytes;
}

/* Some of it is in a pin, and some is not. */
static bool is_over_border(const char *p, uint64_t bytes)
{
	for (uint32_t i = 0; i < FAKE_PINS; i++)
		if (overlaps(&f.pins[i], p, bytes) &&
			!is_within(&f.pins[i], p, bytes))
			return true;
	return false;
}

static uint64_t bytes_of(const struct op *op, size_t pitch)
{
	return (op->rows - 1) * pitch + op->bytes;
}

static int copy(const struct op *op, int kind, void *stream)
{
	struct stream *s = stream;

	begin();
	f.bad_calls += kind != 1 && kind != 2;
	f.bad_calls +=
		kind == 1
			? is_over_border(op->from, bytes_of(op, op->from_pitch))
			: is_over_border(op->to, bytes_of(op, op->to_pitch));
	f.n_copies[kind == 2]++;
	if (f.lost_after && f.n_copies[0] + f.n_copies[1] > f.lost_after)
		f.is_lost = 1;
	if (s->n - s->done == OPS)
		step(s);
	s->ops[s->n++ % OPS] = *op;
	return end(0);
}

API int cudaMemcpyAsync(
	void *to, const void *from, size_t bytes, int kind, void *stream)
{
	return copy(
		&(struct op){.to = to, .from = from, .bytes = bytes, .rows = 1},
		kind, stream);
}

/* Neither pitch may be smaller than a row. */
API int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
	size_t from_pitch, size_t bytes, size_t rows, int kind, void *stream)
{
	f.n_wide++;
	f.bad_calls += to_pitch < bytes || from_pitch < bytes || rows < 2;
	return copy(&(struct op){to, from, bytes, rows, to_pitch, from_pitch},
		kind, stream);
}

static int note_pin(const char *p, uint64_t bytes)
{
	struct fake_pin *room = NULL;

	for (uint32_t i = 0; i < FAKE_PINS; i++) {
		if (overlaps(&f.pins[i], p, bytes))
			return FAKE_PINNED;
		if (!f.pins[i].bytes)
			room = &f.pins[i];
	}
	f.bad_calls += !room;
	if (room)
		*room = (struct fake_pin){p, bytes};
	return 0;
}

API int cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
	int error;

	begin();
	f.bad_calls += (uintptr_t)p % 4096 || bytes % 4096 || !bytes;
	f.pin_flags = flags;
	f.n_pins++;
	error = f.pin_error ? f.pin_error : note_pin(p, bytes);
	f.n_pinned += !error;
	return end_unsafe(error);
}

API int cudaHostUnregister(void *p)
{
	begin();
	f.bad_calls += (uintptr_t)p % 4096 != 0;
	for (uint32_t i = 0; i < FAKE_PINS; i++)
		if (f.pins[i].at == p)
			f.pins[i].bytes = 0;
	f.n_pinned--;
	return end_unsafe(0);
}

/* Somewhere else than the host has it. */
API int cudaHostGetDevicePointer(void **out, void *p, unsigned int flags)
{
	begin();
	f.bad_calls += flags != 0;
	*out = (char *)p + SHIFT;
	return end(0);
}

API int cudaDeviceGetPCIBusId(char *out, int bytes, int device)
{
	begin();
	snprintf(out, (size_t)bytes, "%s", device ? "0000:AF:00.0" : FAKE_BUS);
	return end(f.has_no_bus ? FAKE_INVALID : 0);
}

API int cudaMalloc(void **out, size_t bytes)
{
	int no = bytes > FAKE_ROOM;

	begin();
	*out = no ? NULL
		  : (char *)aligned_alloc(256, (bytes + 255) / 256 * 256) + FAR;
	f.n_blocks += !no;
	return end_unsafe(no ? FAKE_MEMORY : 0);
}

API int cudaFree(void *p)
{
	begin();
	f.bad_calls += !((uintptr_t)p & FAR);
	free(at(p));
	f.n_blocks--;
	return end_unsafe(0);
}

/* In the order of the default stream, which is never behind. */
API int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	begin();
	f.bad_calls += kind != 4;
	if (!to || !from)
		return end(FAKE_INVALID);
	memcpy(at(to), at(from), bytes);
	return end_unsafe(0);
}

static int wait_value(
	void *stream, uint64_t at, uint32_t value, unsigned int flags)
{
	begin();
	f.n_waits++;
	f.wait_at = at - SHIFT;
	f.wait_value = value;
	f.wait_flags = flags;
	return end(0);
}

static int find(const char *name, void **function, int *status)
{
	int (*const it)(void *, uint64_t, uint32_t, unsigned int) = wait_value;

	begin();
	f.bad_calls += strcmp(name, "cuStreamWaitValue32") != 0;
	*status = f.has_no_wait_value;
	if (!*status)
		memcpy(function, &it, sizeof(it));
	return end(0);
}

#if FAKE_VERSION >= 13000
API int cudaGetDriverEntryPointByVersion(const char *name, void **function,
	unsigned int version, unsigned long long flags, int *status)
{
	f.bad_calls += version != 12000 || flags;
	return find(name, function, status);
}
#else
API int cudaGetDriverEntryPoint(const char *name, void **function,
	unsigned long long flags, int *status)
{
	f.bad_calls += flags != 0;
	return find(name, function, status);
}
#endif
