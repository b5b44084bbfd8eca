/* queue.c - pieces by urgency: a binary heap.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/cuda/pipeline.h"

int sw_pipeline_queue_open(struct sw_pipeline_queue *q)
{
	q->heap = calloc(SW_PIPELINE_TENSORS, sizeof(q->heap[0]));
	return q->heap ? 0 : SW_ENOMEM;
}

void sw_pipeline_queue_close(struct sw_pipeline_queue *q)
{
	free(q->heap);
}

/* By priority, then by the order of calls, then by place. */
static bool is_before(
	const struct sw_pipeline_piece *a, const struct sw_pipeline_piece *b)
{
	if (a->tensor->priority != b->tensor->priority)
		return a->tensor->priority < b->tensor->priority;
	if (a->tensor->number != b->tensor->number)
		return a->tensor->number < b->tensor->number;
	return a->i < b->i;
}

void sw_pipeline_queue_put(
	struct sw_pipeline_queue *q, struct sw_pipeline_piece *p)
{
	uint32_t at = q->n++;

	while (at && is_before(p, q->heap[(at - 1) / 2])) {
		q->heap[at] = q->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	q->heap[at] = p;
}

/* Where @p belongs in the heap below @at, which is free. */
static uint32_t sink(struct sw_pipeline_queue *q, uint32_t at,
	const struct sw_pipeline_piece *p)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= q->n)
			return at;
		if (child + 1 < q->n &&
			is_before(q->heap[child + 1], q->heap[child]))
			child++;
		if (!is_before(q->heap[child], p))
			return at;
		q->heap[at] = q->heap[child];
		at = child;
	}
}

struct sw_pipeline_piece *sw_pipeline_queue_take(struct sw_pipeline_queue *q)
{
	struct sw_pipeline_piece *first = q->heap[0], *last = q->heap[--q->n];

	if (q->n)
		q->heap[sink(q, 0, last)] = last;
	return first;
}
