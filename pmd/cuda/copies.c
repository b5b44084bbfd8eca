/* copies.c - one direction of a pipeline: order copies, size slices.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies wait in a heap by urgency.  The back end has at most
 * SW_PIPELINE_SLICES slices of them.
 *
 * Every copy has a fixed cost besides its bytes: the latency of the back end,
 * and the thread's polling. A slice cannot be interrupted, so it delays more
 * urgent copies. The best slice is therefore the smallest whose fixed cost is
 * at most a 20th of its time. Because devices differ, each size is tried, and
 * tried again when its measurements are old.
 */
#include "pmd/cuda/copies.h"

#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/cuda/pipeline.h"

enum {
	TRIES = 8,
	MEMORY = 1024, /* copies after which all measurements are halved */
	LOSS = 20,
};

/* --- the queue: a binary heap --- */

/* Order copies by priority, then by call, then by offset. */
static bool is_before(
	const struct sw_pipeline_copy *a, const struct sw_pipeline_copy *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->number != b->number)
		return a->number < b->number;
	return a->at < b->at;
}

static void queue_copy(struct sw_pipeline_queue *q, struct sw_pipeline_copy *c)
{
	uint32_t at = q->n++;

	while (at && is_before(c, q->heap[(at - 1) / 2])) {
		q->heap[at] = q->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	q->heap[at] = c;
}

/* Return where @c belongs in the heap below @at, which is free. */
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

static struct sw_pipeline_copy *dequeue(struct sw_pipeline_queue *q)
{
	struct sw_pipeline_copy *first = q->heap[0], *last = q->heap[--q->n];

	if (q->n)
		q->heap[sink(q, 0, last)] = last;
	return first;
}

/* --- the size of a slice --- */

static uint64_t grain_size(uint32_t i)
{
	return (uint64_t)SW_GRAIN_MIN << i;
}

static double grain_rate(const struct sw_grain *g, uint32_t i)
{
	return (double)g->of[i].bytes / (double)(g->of[i].ns + 1);
}

static uint64_t best_grain(const struct sw_grain *g, uint64_t of)
{
	double best = 0;
	uint32_t i;

	for (i = 0; i < SW_GRAINS && (!i || grain_size(i) <= of); i++) {
		if (g->of[i].n < TRIES)
			return grain_size(i);
		best = grain_rate(g, i) > best ? grain_rate(g, i) : best;
	}
	i = 0;
	while (grain_rate(g, i) < best - best / LOSS)
		i++;
	return grain_size(i);
}

/* Add a slice to the measurements of its size. A slice of whole rows may be
 * somewhat smaller than wanted, and counts as wanted. The last slice of a copy
 * may be far smaller, and counts by its own size. */
static void note_grain(
	struct sw_grain *g, uint64_t wanted, uint64_t bytes, uint64_t ns)
{
	uint64_t counts_as = 2 * bytes > wanted ? wanted : bytes;
	uint32_t i = 0;

	if (counts_as < grain_size(0))
		return;
	while (i < SW_GRAINS - 1 && counts_as >= grain_size(i + 1))
		i++;
	g->of[i].bytes += bytes;
	g->of[i].ns += ns;
	g->of[i].n++;
	if (++g->n < MEMORY)
		return;
	g->n = 0;
	for (i = 0; i < SW_GRAINS; i++) {
		g->of[i].bytes /= 2;
		g->of[i].ns /= 2;
		g->of[i].n /= 2;
	}
}

/* --- open and close --- */

int sw_pipeline_lane_open(
	struct sw_pipeline *l, enum sw_back_way way, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	int err;

	lane->queue.heap = calloc(
		SW_PIPELINE_BACK * SW_PIPELINE_TENSORS + SW_PIPELINE_OTHERS,
		sizeof(lane->queue.heap[0]));
	err = lane->queue.heap ? 0 : SW_ENOMEM;
	for (uint32_t i = 0; i < SW_PIPELINE_SLICES && !err; i++)
		err = l->p.ops->event_open(
			l->p.back, &lane->slots[i].event, why);
	return err;
}

void sw_pipeline_lane_close(struct sw_pipeline *l, enum sw_back_way way)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];

	free(lane->queue.heap);
	for (uint32_t i = 0; i < SW_PIPELINE_SLICES; i++)
		if (lane->slots[i].event)
			l->p.ops->event_close(l->p.back, lane->slots[i].event);
}

void sw_pipeline_lane_put(struct sw_pipeline *l, struct sw_pipeline_copy *c)
{
	c->is_open = true;
	c->put = c->there = c->begun_ns = 0;
	queue_copy(&l->lanes[c->way].queue, c);
}

/* --- ends --- */

/* End a copy once: two of its slices may be at the back end. */
static void end_copy(struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	if (c->is_open) {
		c->is_open = false;
		c->end(l, c, err);
	}
}

/* End the oldest slice, which is done or, with @err, never will be. */
static void end_slice(
	struct sw_pipeline *l, struct sw_pipeline_lane *lane, int err)
{
	struct sw_pipeline_copy *c = lane->slots[lane->first].copy;

	c->there += lane->slots[lane->first].bytes;
	lane->first = (lane->first + 1) % SW_PIPELINE_SLICES;
	lane->n--;
	if (err || c->there == c->rows.n * c->rows.bytes)
		end_copy(l, c, err);
	else if (c->moved && c->is_open)
		c->moved(l, c);
}

void sw_pipeline_lane_end(struct sw_pipeline *l, enum sw_back_way way, int err)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];

	while (lane->n)
		end_slice(l, lane, err);
	for (uint32_t i = 0; i < lane->queue.n; i++)
		end_copy(l, lane->queue.heap[i], err);
	lane->queue.n = 0;
}

/* --- slices --- */

uint64_t sw_pipeline_lane_slice(
	const struct sw_pipeline *l, enum sw_back_way way, uint64_t bytes)
{
	uint64_t n = (l->p.piece_bytes + SW_PIPELINE_SLICES - 1) /
		     SW_PIPELINE_SLICES;

	return n ? (n + 4095) / 4096 * 4096
		 : best_grain(&l->lanes[way].grain, bytes);
}

/* Return the next slice: whole rows, or, if rows are long, a part of one. */
static struct sw_rows next_slice(
	const struct sw_pipeline_copy *c, uint64_t most)
{
	uint64_t row = c->put / c->rows.bytes, in = c->put % c->rows.bytes;
	struct sw_rows r = c->rows;

	r.to += row * r.to_stride + in;
	r.from += row * r.from_stride + in;
	r.n = in || c->rows.bytes > most ? 1 : most / c->rows.bytes;
	if (r.n > c->rows.n - row)
		r.n = c->rows.n - row;
	r.bytes -= in;
	if (r.bytes > most)
		r.bytes = most;
	return r;
}

/* Begin the next slice of the most urgent copy. */
static int begin_slice(
	struct sw_pipeline *l, enum sw_back_way way, uint64_t now_ns, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	struct sw_pipeline_slot *s =
		&lane->slots[(lane->first + lane->n++) % SW_PIPELINE_SLICES];
	struct sw_pipeline_copy *c = lane->queue.heap[0];
	uint64_t wanted =
		sw_pipeline_lane_slice(l, way, c->rows.n * c->rows.bytes);
	struct sw_rows r = next_slice(c, wanted);

	s->copy = c;
	s->wanted = wanted;
	s->bytes = r.n * r.bytes;
	s->begun_ns = now_ns;
	if (!c->put)
		c->begun_ns = now_ns;
	c->put += s->bytes;
	if (c->put == c->rows.n * c->rows.bytes)
		dequeue(&lane->queue);
	return l->p.ops->copy(l->p.back, way, &r, s->event, why);
}

/* Measure a slice with everything that delays it. Its time starts when the
 * previous slice ended, if that was later than its own beginning. */
static void note_slice(struct sw_pipeline_lane *lane, uint64_t now_ns)
{
	const struct sw_pipeline_slot *s = &lane->slots[lane->first];
	uint64_t from_ns =
		s->begun_ns > lane->ended_ns ? s->begun_ns : lane->ended_ns;

	note_grain(&lane->grain, s->wanted, s->bytes, now_ns - from_ns);
	lane->ended_ns = now_ns;
}

int sw_pipeline_lane_move(
	struct sw_pipeline *l, enum sw_back_way way, uint64_t now_ns, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	int did = 0, err = 0;

	while (lane->n) {
		err = l->p.ops->poll(
			l->p.back, lane->slots[lane->first].event, why);
		if (err == SW_EAGAIN)
			break;
		if (err)
			return err;
		note_slice(lane, now_ns);
		end_slice(l, lane, 0);
		did = 1;
	}
	while (lane->n < SW_PIPELINE_SLICES && lane->queue.n) {
		err = begin_slice(l, way, now_ns, why);
		if (err)
			return err;
		did = 1;
	}
	return did;
}
