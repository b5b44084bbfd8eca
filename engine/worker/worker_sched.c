/* worker_sched.c - push_pull as a method of the scheduler.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The scheduler decides which part of which tensor may go; its chunks are to
 * do then, and leave by class and order as the servers' grants allow.  So what
 * is started but not sent yet can still be overtaken.  Credit comes back as
 * chunks are folded.
 */
#include "engine/base/bytes.h"
#include "engine/sched/order.h"
#include "engine/worker/worker.h"

enum { CLASS_LAST = SW_N_CLASSES - 1 };

static struct sw_wtensor *tensor_of(const struct sw_task *t)
{
	return (struct sw_wtensor *)((char *)(uintptr_t)t -
				     offsetof(struct sw_wtensor, task));
}

/* Whole chunks. */
static uint64_t part_of(
	const struct sw_task *task, uint64_t from, uint64_t unit)
{
	const struct sw_wtensor *t = tensor_of(task);
	uint64_t left = task->bytes - from, n = unit / t->chunk_bytes;

	return sw_min64(left, (n ? n : 1) * t->chunk_bytes);
}

static void start_part(struct sw_task *task, uint64_t from, uint64_t bytes)
{
	struct sw_wtensor *t = tensor_of(task);
	struct sw_worker *w = t->worker;
	uint32_t c = (uint32_t)(from / t->chunk_bytes);
	uint32_t end = (uint32_t)((from + bytes - 1) / t->chunk_bytes) + 1;

	for (uint32_t chunk, n; c < end; c += n) { /* counted in this lane */
		chunk = sw_place_global(&t->own, c);
		n = sw_place_run(&t->own, c);
		n = n < end - c ? n : end - c;
		for (uint32_t i = chunk; i < chunk + n; i++) {
			t->chunks[i].is_charged = true;
			sw_tensors_set(w, t, i, true, false);
		}
	}
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_refresh(w, &w->links[l]);
}

/* Is chunk @i of this lane started, but has never left? */
static bool is_here(const struct sw_wtensor *t, uint32_t i)
{
	const struct sw_wchunk *c = &t->chunks[sw_place_global(&t->own, i)];

	return c->is_charged && c->state == SW_GRAD && !c->n_sent;
}

/* Chunks leave from the lowest on: those at the end are still here. */
static uint64_t take_back(struct sw_task *task, uint64_t bytes)
{
	struct sw_wtensor *t = tensor_of(task);
	struct sw_worker *w = t->worker;
	uint32_t i = (uint32_t)((task->started - 1) / t->chunk_bytes);
	uint64_t taken = 0;

	for (; i > 0 && taken < bytes && is_here(t, i) && is_here(t, i - 1);
		i--) {
		uint32_t chunk = sw_place_global(&t->own, i);

		t->chunks[chunk].is_charged = false;
		sw_tensors_set(w, t, chunk, false, false);
		taken += sw_wtensor_bytes(t, chunk);
	}
	for (uint32_t l = 0; l < w->n_links && taken; l++)
		sw_link_refresh(w, &w->links[l]);
	return taken;
}

static const struct sw_task_ops ops = {
	.partition = part_of, .start = start_part, .take_back = take_back};

/* --- the order of tensors that go as they become ready --- */

/* If it is open and goes by number @from, it goes by @to. */
static bool move_order(void *ctx, uint32_t index, uint32_t from, uint32_t to)
{
	struct sw_worker *w = ctx;
	struct sw_wtensor *t = &w->tensors[index];

	if (!t->is_open || t->order != from)
		return false;
	for (uint32_t l = 0; l < w->n_links; l++) {
		sw_bitmap_move(&w->links[l].ready, from, to);
		sw_bitmap_move(&w->links[l].again, from, to);
		sw_bitmap_move(&w->links[l].late, from, to);
	}
	t->order = to;
	return true;
}

/* By priority, or behind all that are ready.  No chunk is to do or late. */
static void take_place(struct sw_worker *w, struct sw_wtensor *t)
{
	t->order = t->rank; /* what it had by readiness is free */
	if (w->sched.policy->by_priority) {
		t->class = sw_class_of(t->priority);
		return;
	}
	t->class = CLASS_LAST;
	t->order = sw_order_take(w->by_order, &w->next_order, SW_TENSORS,
		(uint32_t)(t - w->tensors), move_order, w);
}

/* The tensor's last chunk, if it is ours, is the last of ours. */
static uint64_t own_bytes(const struct sw_wtensor *t)
{
	uint32_t last = t->own.n_local - 1;

	return (uint64_t)last * t->chunk_bytes +
	       sw_wtensor_bytes(t, sw_place_global(&t->own, last));
}

void sw_tensors_ready(struct sw_worker *w, struct sw_wtensor *t)
{
	take_place(w, t);
	t->task = (struct sw_task){.ops = &ops,
		.name = t->name,
		.bytes = own_bytes(t),
		.priority = t->priority};
	(void)!sw_task_ready(&w->sched, &t->task);
	sw_sched_run(&w->sched);
}

void sw_tensors_folded(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	struct sw_wchunk *c = &t->chunks[chunk];

	if (!c->is_charged)
		return;
	c->is_charged = false;
	(void)!sw_task_finish(&w->sched, &t->task, sw_wtensor_bytes(t, chunk));
}
