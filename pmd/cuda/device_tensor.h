/* device_tensor.h - tensors of a device.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CUDA_DEVICE_TENSOR_H
#define SW_PMD_CUDA_DEVICE_TENSOR_H

struct sw_device;

/* sw_device_free_tensors - unpin and free all tensors, after the pipeline was
 * closed. */
void sw_device_free_tensors(struct sw_device *d);

#endif
