/* copies.c - one way of a pipeline: what is copied next, and how much at once.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "pmd/cuda/pipeline.h"

int sw_pipeline_lane_open(
	struct sw_pipeline *l, enum sw_back_way way, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	int err = sw_pipeline_queue_open(&lane->queue);

	for (uint32_t i = 0; i < SW_PIPELINE_SLICES && !err; i++)
		err = l->p.ops->event_open(
			l->p.back, &lane->slots[i].event, why);
	return err;
}

void sw_pipeline_lane_close(struct sw_pipeline *l, enum sw_back_way way)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];

	sw_pipeline_queue_close(&lane->queue);
	for (uint32_t i = 0; i < SW_PIPELINE_SLICES; i++)
		if (lane->slots[i].event)
			l->p.ops->event_close(l->p.back, lane->slots[i].event);
}

void sw_pipeline_lane_put(struct sw_pipeline *l, struct sw_pipeline_copy *c)
{
	c->is_open = true;
	c->put = c->there = 0;
	sw_pipeline_queue_put(&l->lanes[c->way].queue, c);
}

/* --- ends --- */

/* A copy may be with the back end twice. */
static void end_copy(struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	if (c->is_open) {
		c->is_open = false;
		c->end(l, c, err);
	}
}

/* The oldest slice is done, or never will be: @err. */
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
		 : sw_grain_bytes(&l->lanes[way].grain, bytes);
}

/* The next of it: rows, or, where they are long, some of one. */
static struct sw_rows slice(const struct sw_pipeline_copy *c, uint64_t most)
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
static int begin(
	struct sw_pipeline *l, enum sw_back_way way, uint64_t now_ns, char *why)
{
	struct sw_pipeline_lane *lane = &l->lanes[way];
	struct sw_pipeline_slot *s =
		&lane->slots[(lane->first + lane->n++) % SW_PIPELINE_SLICES];
	struct sw_pipeline_copy *c = lane->queue.heap[0];
	uint64_t wanted =
		sw_pipeline_lane_slice(l, way, c->rows.n * c->rows.bytes);
	struct sw_rows r = slice(c, wanted);

	s->copy = c;
	s->wanted = wanted;
	s->bytes = r.n * r.bytes;
	s->begun_ns = now_ns;
	c->put += s->bytes;
	if (c->put == c->rows.n * c->rows.bytes)
		sw_pipeline_queue_take(&lane->queue);
	return l->p.ops->copy(l->p.back, way, &r, s->event, why);
}

/* What it took, with all that delays a copy of ours: it began when the one
 * before it had ended. */
static void note(struct sw_pipeline_lane *lane, uint64_t now_ns)
{
	const struct sw_pipeline_slot *s = &lane->slots[lane->first];
	uint64_t from_ns =
		s->begun_ns > lane->ended_ns ? s->begun_ns : lane->ended_ns;

	sw_grain_note(&lane->grain, s->wanted, s->bytes, now_ns - from_ns);
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
		note(lane, now_ns);
		end_slice(l, lane, 0);
		did = 1;
	}
	while (lane->n < SW_PIPELINE_SLICES && lane->queue.n) {
		err = begin(l, way, now_ns, why);
		if (err)
			return err;
		did = 1;
	}
	return did;
}
