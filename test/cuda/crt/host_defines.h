/* host_defines.h - what NVIDIA's headers want of nvcc's, for a C compiler.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_CUDA_CRT_HOST_DEFINES_H
#define SW_TEST_CUDA_CRT_HOST_DEFINES_H

#define __host__
#define __device__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __builtin_align__(n) __align__(n)
#define __align__(n)         __attribute__((aligned(n)))
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDA_CB

#endif
