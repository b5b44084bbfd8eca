/* local.c - the local ranks of a worker: who has asked, and their sum.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/ticks.h"
#include "engine/worker/worker.h"
#include "sum/sum.h"

void sw_worker_source(
	struct sw_worker *w, uint32_t tensor, uint32_t local, const void *base)
{
	w->tensors[tensor].from[local] = base;
}

uint64_t sw_local_missing(const struct sw_worker *w, const struct sw_wtensor *t)
{
	return ~0ULL >> (64 - w->n_local) & ~t->asked;
}

/* The first to ask says what is to be done. */
static void open_round(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round)
{
	t->is_open = true;
	t->step = (uint16_t)round->step;
	t->op = (uint8_t)round->op;
	t->root = round->op == SW_OPERATION_COPY ? round->root : 0;
	t->progress_ns = w->now_ns;
	w->n_open++;
}

/* A local rank asks for something else than one before it: the tensor is dead,
 * for it and for all. */
static int kill_differs(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round)
{
	static const char *const ops[] = {"a sum", "a broadcast"};
	uint32_t first = w->first + (uint32_t)__builtin_ctzll(t->asked);
	uint32_t rank = w->first + round->local;
	char text[SW_TEXT_MAX];

	if (t->op != round->op)
		snprintf(text, sizeof(text),
			"tensor %.64s: rank %u takes part in %s, rank %u in %s",
			t->name, rank, ops[round->op], first, ops[t->op]);
	else if (t->op == SW_OPERATION_COPY && t->root != round->root)
		snprintf(text, sizeof(text),
			"tensor %.64s: rank %u broadcasts from rank %u, rank "
			"%u from rank %u",
			t->name, rank, round->root, first, t->root);
	else
		snprintf(text, sizeof(text),
			"tensor %.64s: rank %u pushes step %u, rank %u pushes "
			"step %u",
			t->name, rank, (uint16_t)round->step, first, t->step);
	sw_tensor_kill(w, t, t->round + 1, text);
	return SW_EMISMATCH;
}

static void fail_left(
	struct sw_worker *w, const struct sw_wtensor *t, uint64_t who)
{
	sw_worker_fail(w, SW_EPEER, t->key,
		"node %.40s: local rank %d left; tensor %.64s cannot complete",
		w->node_name, __builtin_ctzll(who), t->name);
}

int sw_local_ask(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round)
{
	uint64_t left;

	if (!t->asked)
		open_round(w, t, round);
	else if (t->op != round->op || t->step != (uint16_t)round->step ||
		 (t->op == SW_OPERATION_COPY && t->root != round->root))
		return kill_differs(w, t, round);
	t->asked |= 1ULL << round->local;
	t->cookies[round->local] = round->cookie;
	left = w->gone & ~t->asked;
	if (!left)
		return 0;
	fail_left(w, t, left);
	return 0; /* its round has ended, as all have */
}

void sw_worker_local_left(struct sw_worker *w, uint32_t local)
{
	w->gone |= 1ULL << local;
	for (uint32_t i = 0; i < w->n_tensors; i++) {
		struct sw_wtensor *t = &w->tensors[i];

		if (t->is_open && w->gone & ~t->asked) {
			fail_left(w, t, w->gone & ~t->asked);
			return;
		}
	}
}

void sw_local_end(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	uint64_t asked = t->asked;

	t->asked = 0; /* who is told may ask anew at once */
	for (; asked; asked &= asked - 1) {
		uint32_t local = (uint32_t)__builtin_ctzll(asked);

		w->events.done(w->events.ctx, (uint32_t)(t - w->tensors), local,
			t->cookies[local], err, t->weight);
	}
}

const uint8_t *sw_local_bytes(struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t chunk, bool *is_stable)
{
	const struct sw_sum_ops *ops = &w->env->sum->ops[t->dtype];
	uint64_t at = (uint64_t)chunk * t->chunk_bytes;
	uint32_t n = sw_wtensor_bytes(t, chunk) / t->elem_bytes;
	const void *from[SW_LOCAL_RANKS];

	*is_stable = w->n_local == 1 || t->op == SW_OPERATION_COPY;
	if (t->op == SW_OPERATION_COPY)
		return t->from[t->root - w->first] + at;
	if (w->n_local == 1)
		return t->from[0] + at;
	for (uint32_t i = 0; i < w->n_local; i++)
		from[i] = t->from[i] + at;
	if (!ops->round) {
		SW_TIMED(w->stats.ticks_sum,
			ops->sum(w->payload, from, w->n_local, n));
		return w->payload;
	}
	SW_TIMED(w->stats.ticks_sum, ops->sum(w->sums, from, w->n_local, n);
		 ops->round(w->payload, w->sums, n));
	return w->payload;
}
