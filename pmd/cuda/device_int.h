/* device_int.h - inside of sw_device_*: a device, its tensors.
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

/* What one sw_device_declare allocates and pins. */
struct sw_device_batch {
	struct sw_device_batch *next;
	struct sw_device_tensor *tensors;
	uint32_t n;
	void *pinned[2]; /* what is pushed, where results come; NULL: is not */
};

/* Stages of collectives, which are pinned when the first one needs them. */
struct sw_device_stage {
	struct sw_device_stage *next;
	const void *base;
	void *pinned; /* NULL: is not */
};

struct sw_device_coll;

struct sw_device {
	struct sw_client_part part; /* the first: it is the device */
	struct sw_client *client;
	const struct sw_back_ops *ops;
	struct sw_back *back;
	struct sw_pipeline pipeline;
	uint64_t piece_bytes; /* as the caller chose; 0: it is found out */
	uint32_t n_summed;    /* as sw_client_rest has it */
	struct sw_device_batch *batches; /* the client's lock guards it */
	_Atomic uint32_t n_tensors;
	_Atomic bool has_warned;
	struct sw_device_coll *colls, *free_colls; /* all; to be used again */
	uint32_t n_colls;                          /* all */
	_Atomic uint32_t n_open;                   /* of those */
	struct sw_pipeline_copy *copies; /* by piece of the client's calls */
	struct sw_device_coll **copied;  /* whose they are */
	uint32_t n_copies;               /* so far */
	struct sw_device_stage *stages;
	char rank[SW_DEVICE_WHERE], where[2 * SW_DEVICE_WHERE];
};

/* sw_device_batch_free - unpin it and free it; the pipeline is closed, or does
 * not have its tensors yet. */
void sw_device_batch_free(struct sw_device *d, struct sw_device_batch *b);

/* sw_device_pin - the whole pages that hold @bytes at @at; what to unpin, or
 * NULL, and one line says so. */
void *sw_device_pin(
	struct sw_device *d, const void *at, uint64_t bytes, bool is_read_only);

/* sw_device_pin_stage - unless it was done before; sw_device_unpin_stage - if
 * it was, before its memory goes.  Both without the client's lock, as pins are
 * calls of the driver, which may wait for a stream that waits for us. */
void sw_device_pin_stage(struct sw_device *d, const void *base, uint64_t bytes);
void sw_device_unpin_stage(struct sw_device *d, const void *base);
void sw_device_unpin_stages(struct sw_device *d);

/* sw_device_serve - of the pipeline's thread: what collectives need besides
 * copies. */
bool sw_device_serve(void *ctx);

/* sw_device_free_colls - the pipeline is closed. */
void sw_device_free_colls(struct sw_device *d);

#endif
