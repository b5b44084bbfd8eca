/* run.h - the pipeline's thread.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CUDA_RUN_H
#define SW_PMD_CUDA_RUN_H

#include "pmd/cuda/pipeline.h"

/* sw_pipeline_start - begin the call of a tensor whose event is done: copy it
 * out, or, as a receiver of a broadcast, push at once. */
void sw_pipeline_start(
	struct sw_pipeline *l, struct sw_pipeline_start *s, int err);

/* sw_pipeline_digest - digest as sw_back_ops.digest does. Returns false if the
 * back end does not digest. */
bool sw_pipeline_digest(const struct sw_pipeline *l, const void *at,
	uint64_t bytes, uint64_t *out);

/* sw_pipeline_run - run the thread; @arg is the pipeline. */
void *sw_pipeline_run(void *arg);

#endif
