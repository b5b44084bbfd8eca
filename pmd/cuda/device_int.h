/* device_int.h - inside of sw_device_*: a device, its tensors.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CUDA_DEVICE_INT_H
#define SW_CUDA_DEVICE_INT_H

#include <sumwire/device.h>

#include "pmd/client/client.h"
#include "pmd/cuda/pipeline.h"

enum { SW_DEVICE_WHERE = 64, SW_DEVICE_PIECE_MAX = 4 << 20 };

struct sw_device_tensor {
	struct sw_pipeline_tensor t;
	struct sw_device *device;
};

/* What one sw_device_declare allocates and pins. */
struct sw_device_batch {
	struct sw_device_batch *next;
	struct sw_device_tensor *tensors;
	struct sw_pipeline_piece *pieces;
	void *pinned[2]; /* what is pushed, where results come; NULL: is not */
};

struct sw_device {
	struct sw_client_part part; /* the first: it is the device */
	struct sw_client *client;
	const struct sw_back_ops *ops;
	struct sw_back *back;
	struct sw_pipeline pipeline;
	uint64_t piece_bytes; /* as the caller chose; 0: by tensor */
	struct sw_device_batch *batches;
	uint32_t n_tensors;
	bool has_warned;
	char rank[SW_DEVICE_WHERE], where[2 * SW_DEVICE_WHERE];
};

/* sw_device_batch_free - unpin it and free it; the pipeline is closed, or does
 * not have its tensors yet. */
void sw_device_batch_free(struct sw_device *d, struct sw_device_batch *b);

#endif
