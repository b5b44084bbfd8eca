/* headers.c - our declarations beside NVIDIA's; compiled, never linked.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "pmd/cuda/runtime.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(SW_CUDA_NOT_READY, cudaErrorNotReady);
SAME(SW_CUDA_PINNED_BEFORE, cudaErrorHostMemoryAlreadyRegistered);
SAME(SW_CUDA_CAPTURE_FIRST, cudaErrorStreamCaptureUnsupported);
SAME(SW_CUDA_CAPTURE_LAST, cudaErrorStreamCaptureWrongThread);
SAME(SW_CUDA_NON_BLOCKING, cudaStreamNonBlocking);
SAME(SW_CUDA_RELAXED, cudaStreamCaptureModeRelaxed);
SAME(SW_CUDA_NO_TIMING, cudaEventDisableTiming);
SAME(SW_CUDA_TO_HOST, cudaMemcpyDeviceToHost);
SAME(SW_CUDA_TO_DEVICE, cudaMemcpyHostToDevice);
SAME(SW_CUDA_AS_IT_IS, cudaMemcpyDefault);
SAME(SW_CUDA_PIN_PORTABLE, cudaHostRegisterPortable);
SAME(SW_CUDA_PIN_MAPPED, cudaHostRegisterMapped);
SAME(SW_CUDA_PIN_READ_ONLY, cudaHostRegisterReadOnly);
SAME(SW_CUDA_GEQ, CU_STREAM_WAIT_VALUE_GEQ);
SAME(0, cudaStreamCaptureStatusNone);
SAME(0, cudaDriverEntryPointSuccess);
SAME(0, cudaEnableDefault);
SAME(sizeof(int), sizeof(cudaError_t));
SAME(sizeof(int), sizeof(enum cudaMemcpyKind));
SAME(sizeof(int), sizeof(enum cudaStreamCaptureStatus));
SAME(sizeof(int), sizeof(enum cudaStreamCaptureMode));
SAME(sizeof(int), sizeof(enum cudaDriverEntryPointQueryResult));
SAME(sizeof(uint64_t), sizeof(CUdeviceptr));
SAME(sizeof(uint32_t), sizeof(cuuint32_t));

/* There is each of ours. */
#define THERE(name, arguments) __typeof__(cuda##name) *name##_is_there;
SW_CUDA_FUNCTIONS(THERE)

/* Each takes as many arguments as we give it, of types like ours. */
void call_all(struct sw_cuda *c);

void call_all(struct sw_cuda *c)
{
	cudaStream_t stream = NULL;
	cudaEvent_t event = NULL;
	enum cudaStreamCaptureStatus is;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	char bus[32];
	int n;
	void *p;

	c->library = NULL;
	cudaGetDeviceCount(&n);
	cudaGetDevice(&n);
	cudaSetDevice(n);
	cudaDriverGetVersion(&n);
	cudaRuntimeGetVersion(&n);
	cudaGetLastError();
	cudaDeviceGetStreamPriorityRange(&n, &n);
	cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, n);
	cudaStreamDestroy(stream);
	cudaStreamIsCapturing(stream, &is);
	cudaThreadExchangeStreamCaptureMode(&mode);
	cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	cudaEventDestroy(event);
	cudaEventRecord(event, stream);
	cudaEventQuery(event);
	cudaMemcpyAsync(NULL, NULL, 1, cudaMemcpyHostToDevice, stream);
	cudaMemcpy2DAsync(
		NULL, 1, NULL, 1, 1, 1, cudaMemcpyHostToDevice, stream);
	cudaHostRegister(NULL, 1, 0);
	cudaHostUnregister(NULL);
	cudaHostGetDevicePointer(&p, NULL, 0);
	cudaDeviceGetPCIBusId(bus, sizeof(bus), n);
	cudaMalloc(&p, 1);
	cudaMemcpy(p, NULL, 1, cudaMemcpyDefault);
	cudaFree(p);
}

const char *(*error_string)(cudaError_t) = cudaGetErrorString;
CUresult (*wait_value)(
	CUstream, CUdeviceptr, cuuint32_t, unsigned int) = cuStreamWaitValue32;
cudaError_t (*by_version)(const char *, void **, unsigned int,
	unsigned long long, enum cudaDriverEntryPointQueryResult *) =
	cudaGetDriverEntryPointByVersion;
