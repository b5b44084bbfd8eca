/* copies.h - one direction of a pipeline: copies by urgency, in slices.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Thread: the pipeline's. */
#ifndef SW_PMD_CUDA_COPIES_H
#define SW_PMD_CUDA_COPIES_H

#include "pmd/cuda/back.h"

struct sw_pipeline;

enum {
	SW_PIPELINE_SLICES = 2, /* at the back end per direction */
	SW_GRAIN_MIN = 128 << 10,
	SW_GRAINS = 5,
};

/* A copy. The pipeline owns it until @end, which the pipeline's thread calls
 * without the lock. */
struct sw_pipeline_copy {
	struct sw_rows rows;
	enum sw_back_way way;
	uint32_t priority; /* lowest priority, then number, then at go first */
	uint64_t number, at;
	/* Called when more of the copy, but not all, has arrived; NULL:
	 * none. */
	void (*moved)(struct sw_pipeline *l, struct sw_pipeline_copy *c);
	void (*end)(struct sw_pipeline *l, struct sw_pipeline_copy *c, int err);
	void *of; /* for the caller */
	/* the pipeline's: */
	struct sw_pipeline_copy *next; /* in mail */
	bool is_open;
	uint64_t begun_ns;   /* when its first slice began; 0: none has */
	uint64_t put, there; /* bytes given to the back end; copied */
};

/* A heap of copies by urgency. */
struct sw_pipeline_queue {
	struct sw_pipeline_copy **heap;
	uint32_t n;
};

/* Bytes and times of a direction's slices by size: from SW_GRAIN_MIN, from
 * twice that, and so on. Zeroed: nothing measured. */
struct sw_grain {
	struct {
		uint64_t bytes, ns;
		uint32_t n;
	} of[SW_GRAINS];
	uint32_t n; /* slices since the sums were halved */
};

/* A slice of a copy. */
struct sw_pipeline_slot {
	struct sw_pipeline_copy *copy;
	uint64_t wanted, bytes; /* wanted per slice; in this slice */
	uint64_t begun_ns;
	void *event;
};

/* One direction: waiting copies, and slices at the back end, oldest first. */
struct sw_pipeline_lane {
	struct sw_pipeline_queue queue;
	struct sw_pipeline_slot slots[SW_PIPELINE_SLICES];
	uint32_t first, n;
	struct sw_grain grain;
	uint64_t ended_ns; /* when the last slice ended */
};

int sw_pipeline_lane_open(
	struct sw_pipeline *l, enum sw_back_way way, char *why);
void sw_pipeline_lane_close(struct sw_pipeline *l, enum sw_back_way way);

/* sw_pipeline_lane_put - queue @c. */
void sw_pipeline_lane_put(struct sw_pipeline *l, struct sw_pipeline_copy *c);

/* sw_pipeline_lane_move - end the copied slices, and begin as many as the
 * window has room for. Returns 1 if it ended or began a slice, otherwise 0 or
 * an error. */
int sw_pipeline_lane_move(struct sw_pipeline *l, enum sw_back_way way,
	uint64_t now_ns, char *why);

/* sw_pipeline_lane_slice - return the size of the slices of a copy of
 * @bytes. */
uint64_t sw_pipeline_lane_slice(
	const struct sw_pipeline *l, enum sw_back_way way, uint64_t bytes);

/* sw_pipeline_lane_end - end all copies with @err. */
void sw_pipeline_lane_end(struct sw_pipeline *l, enum sw_back_way way, int err);

#endif
