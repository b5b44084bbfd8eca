/* runtime.h - the functions of the CUDA runtime that sumwire uses
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Our own declarations of the functions that runtimes 12 and 13 share: enums
 * are ints, streams and events are pointers. test/cuda compares them with
 * NVIDIA's headers if it finds them. The library is loaded when a device is
 * opened.
 */
#ifndef SW_PMD_CUDA_RUNTIME_H
#define SW_PMD_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* name, arguments */
#define SW_CUDA_FUNCTIONS(F)                                                   \
	F(GetDeviceCount, (int *n))                                            \
	F(GetDevice, (int *device))                                            \
	F(SetDevice, (int device))                                             \
	F(DriverGetVersion, (int *version))                                    \
	F(RuntimeGetVersion, (int *version))                                   \
	F(GetLastError, (void))                                                \
	F(DeviceGetStreamPriorityRange, (int *lowest, int *highest))           \
	F(StreamCreateWithPriority,                                            \
		(void **stream, unsigned int flags, int priority))             \
	F(StreamDestroy, (void *stream))                                       \
	F(StreamIsCapturing, (void *stream, int *is))                          \
	F(ThreadExchangeStreamCaptureMode, (int *mode))                        \
	F(EventCreateWithFlags, (void **event, unsigned int flags))            \
	F(EventDestroy, (void *event))                                         \
	F(EventRecord, (void *event, void *stream))                            \
	F(EventQuery, (void *event))                                           \
	F(MemcpyAsync, (void *to, const void *from, size_t bytes, int kind,    \
			       void *stream))                                  \
	F(Memcpy2DAsync, (void *to, size_t to_pitch, const void *from,         \
				 size_t from_pitch, size_t bytes, size_t rows, \
				 int kind, void *stream))                      \
	F(HostRegister, (void *p, size_t bytes, unsigned int flags))           \
	F(HostUnregister, (void *p))                                           \
	F(HostGetDevicePointer, (void **out, void *p, unsigned int flags))     \
	F(DeviceGetPCIBusId, (char *out, int bytes, int device))               \
	F(Malloc, (void **out, size_t bytes))                                  \
	F(Free, (void *p))                                                     \
	F(Memcpy, (void *to, const void *from, size_t bytes, int kind))

/* A function of the driver, looked up through the runtime; it takes an address
 * as a number. */
typedef int sw_cuda_wait_value(
	void *stream, uint64_t at, uint32_t value, unsigned int flags);

struct sw_cuda {
	void *library;
#define SW_CUDA_FIELD(name, arguments) int(*name) arguments;
	SW_CUDA_FUNCTIONS(SW_CUDA_FIELD)
#undef SW_CUDA_FIELD
	const char *(*GetErrorString)(int error);
	sw_cuda_wait_value *wait_value; /* NULL: the driver has none */
};

enum {
	SW_CUDA_NOT_READY = 600,     /* cudaErrorNotReady */
	SW_CUDA_PINNED_BEFORE = 712, /* cudaErrorHostMemoryAlreadyRegistered */
	SW_CUDA_CAPTURE_FIRST = 900, /* cudaErrorStreamCaptureUnsupported */
	SW_CUDA_CAPTURE_LAST = 908,  /* cudaErrorStreamCaptureWrongThread */
	SW_CUDA_NON_BLOCKING = 1,    /* cudaStreamNonBlocking */
	SW_CUDA_RELAXED = 2,         /* cudaStreamCaptureModeRelaxed */
	SW_CUDA_NO_TIMING = 2,       /* cudaEventDisableTiming */
	SW_CUDA_TO_HOST = 2,         /* cudaMemcpyDeviceToHost */
	SW_CUDA_TO_DEVICE = 1,       /* cudaMemcpyHostToDevice */
	SW_CUDA_AS_IT_IS = 4,        /* cudaMemcpyDefault: by the addresses */
	SW_CUDA_PIN_PORTABLE = 1,    /* cudaHostRegisterPortable */
	SW_CUDA_PIN_MAPPED = 2,      /* cudaHostRegisterMapped */
	SW_CUDA_PIN_READ_ONLY = 8,   /* cudaHostRegisterReadOnly */
	SW_CUDA_PITCH_MAX = 0x7fffffff, /* cudaDevAttrMaxPitch */
	SW_CUDA_GEQ = 0,                /* CU_STREAM_WAIT_VALUE_GEQ */
};

/* sw_cuda_load - load a runtime: the one that SUMWIRE_CUDART names; otherwise
 * one that this process has already loaded, as PyTorch does; otherwise one that
 * the dynamic linker finds. Tries 13 before 12, and takes the first that finds
 * a device and a driver new enough for it.
 * Errors: SW_EDEVICE and @why, of SW_BACK_WHY bytes. */
int sw_cuda_load(struct sw_cuda *c, char *why);
void sw_cuda_unload(struct sw_cuda *c);

/* sw_cuda_node - return the NUMA node near a device, which the kernel knows by
 * the device's PCIe address; -1: unknown.
 * @sys  path of sysfs: "/sys" */
int sw_cuda_node(const struct sw_cuda *c, int device, const char *sys);

/* sw_cuda_say - write to @why that the call @what failed with @error. */
void sw_cuda_say(
	const struct sw_cuda *c, const char *what, int error, char *why);

#endif
