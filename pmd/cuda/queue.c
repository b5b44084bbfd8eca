/* queue.c - copies by urgency: a binary heap.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/cuda/pipeline.h"

int sw_pipeline_queue_open(struct sw_pipeline_queue *q)
{
	q->heap = calloc(
		SW_PIPELINE_BACK * SW_PIPELINE_TENSORS + SW_PIPELINE_OTHERS,
		sizeof(q->heap[0]));
	return q->heap ? 0 : SW_ENOMEM;
}

void sw_pipeline_queue_close(struct sw_pipeline_queue *q)
{
	free(q->heap);
}

/* By priority, then by the order of calls, then by place. */
static bool is_before(
	const struct sw_pipeline_copy *a, const struct sw_pipeline_copy *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->number != b->number)
		return a->number < b->number;
	return a->at < b->at;
}

void sw_pipeline_queue_put(
	struct sw_pipeline_queue *q, struct sw_pipeline_copy *c)
{
	uint32_t at = q->n++;

	while (at && is_before(c, q->heap[(at - 1) / 2])) {
		q->heap[at] = q->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	q->heap[at] = c;
}

/* Where @c belongs in the heap below @at, which is free. */
static uint32_t sink(struct sw_pipeline_queue *q, uint32_t at,
	const struct sw_pipeline_copy *c)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= q->n)
			return at;
		if (child + 1 < q->n &&
			is_before(q->heap[child + 1], q->heap[child]))
			child++;
		if (!is_before(q->heap[child], c))
			return at;
		q->heap[at] = q->heap[child];
		at = child;
	}
}

struct sw_pipeline_copy *sw_pipeline_queue_take(struct sw_pipeline_queue *q)
{
	struct sw_pipeline_copy *first = q->heap[0], *last = q->heap[--q->n];

	if (q->n)
		q->heap[sink(q, 0, last)] = last;
	return first;
}
