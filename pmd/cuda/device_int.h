/* device_int.h - a device, its tensors, pinned stages and collectives.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CUDA_DEVICE_INT_H
#define SW_PMD_CUDA_DEVICE_INT_H

#include <sumwire/device.h>

#include "pmd/client/client_device.h"
#include "pmd/cuda/pipeline.h"

enum { SW_DEVICE_WHERE = 64 };

struct sw_device_tensor {
	struct sw_pipeline_tensor t;
	struct sw_device *device;
};

/* The tensors and pinned memory of one sw_device_declare. */
struct sw_device_batch {
	struct sw_device_batch *next;
	struct sw_device_tensor *tensors;
	uint32_t n;
	void *pinned[2]; /* gradients, results; NULL: not pinned */
};

/* Stages of collectives, pinned when the first collective needs them. */
struct sw_device_stage {
	struct sw_device_stage *next;
	const void *base;
	void *pinned; /* NULL: not pinned */
};

struct sw_device_coll;

struct sw_device {
	struct sw_client_part part; /* first member: cast to the device */
	struct sw_client *client;
	const struct sw_back_ops *ops;
	struct sw_back *back;
	struct sw_pipeline pipeline;
	uint64_t piece_bytes;            /* as the caller chose; 0: measured */
	uint32_t n_summed;               /* as sw_client_rest last set it */
	struct sw_device_batch *batches; /* guarded by the client's lock */
	_Atomic uint32_t n_tensors;
	_Atomic bool has_warned;
	struct sw_device_coll *colls, *free_colls; /* all calls; free ones */
	uint32_t n_colls;                          /* calls in colls */
	_Atomic uint32_t n_open;                   /* of those, open */
	struct sw_pipeline_copy *copies; /* by piece of the client's calls */
	struct sw_device_coll **copied;  /* the call of each copy */
	uint32_t n_copies;               /* copies so far */
	struct sw_device_stage *stages;
	char rank[SW_DEVICE_WHERE], where[2 * SW_DEVICE_WHERE];
};

#endif
