/* tensors.c - the worker's tensors: declare, give keys, close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/worker/worker_int.h"
#include "sum/sum.h"

int sw_tensors_open(struct sw_worker *w)
{
	w->tensors = calloc(SW_TENSORS, sizeof(*w->tensors));
	w->by_order = calloc(SW_ORDERS, sizeof(*w->by_order));
	w->by_key = malloc(SW_TENSORS * sizeof(*w->by_key));
	if (!w->tensors || !w->by_order || !w->by_key)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < SW_TENSORS; i++)
		w->by_key[i] = SW_KEY_NONE;
	w->next_order = SW_TENSORS;
	if (sw_sched_open(&w->sched, w->params.policy, SW_TENSORS))
		return SW_ENOMEM;
	return sw_sched_set(&w->sched, w->params.policy, w->params.part_bytes,
		sw_tuning_credit(w, w->params.policy, w->params.credit_bytes));
}

void sw_tensors_close(struct sw_worker *w)
{
	for (uint32_t i = 0; w->tensors && i < w->n_tensors; i++)
		sw_wtensor_give(w, &w->tensors[i]);
	if (w->env && w->env->mem_drop)
		w->env->mem_drop(w->env->ctx, 0);
	free(w->tensors);
	free(w->by_order);
	free(w->by_key);
	sw_sched_close(&w->sched);
}

static bool is_valid(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t elem = sw_dtype_bytes(in->dtype);

	return in->name[0] && strlen(in->name) < SW_NAME_MAX && elem &&
	       in->n_elems > 0 && in->n_elems <= (64ULL << 30) / elem &&
	       (in->n_elems - 1) / (w->params.payload / elem) < SW_BITMAP_MAX;
}

static bool is_ready(const struct sw_worker *w, uint64_t need)
{
	return !w->env->mem_ready || w->env->mem_ready(w->env->ctx, 0, need);
}

static int shape(struct sw_worker *w, const struct sw_worker_tensor *in,
	struct sw_wtensor *t)
{
	uint32_t elem = sw_dtype_bytes(in->dtype);
	uint32_t per_chunk = w->params.payload / elem;
	uint32_t n_chunks = sw_wtensor_chunks(w, in);

	*t = (struct sw_wtensor){.worker = w,
		.key = SW_KEY_NONE,
		.priority = in->priority,
		.dtype = (uint8_t)in->dtype,
		.class = sw_class_of(in->priority),
		.n_chunks = n_chunks,
		.elem_bytes = elem,
		.chunk_bytes = per_chunk * elem,
		.last_bytes = (uint32_t)(in->n_elems -
					 (n_chunks - 1) * (uint64_t)per_chunk) *
			      elem,
		.n_elems = in->n_elems,
		.base = in->base,
		.is_async = in->is_async};
	snprintf(t->name, sizeof(t->name), "%s", in->name);
	if (sw_wtensor_take(w, t))
		return SW_ENOMEM;
	if (w->n_local == 1 && !w->lane_i)
		t->from[0] = t->base;
	return 0;
}

bool sw_tensors_are_admitted(const struct sw_worker *w)
{
	for (uint32_t l = 0; l < w->n_links; l++)
		if (w->links[l].n_declared != w->n_tensors)
			return false;
	return !w->n_lanes_declaring;
}

int sw_worker_declare(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint64_t need = 0;
	uint32_t done = 0;
	int err = 0;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (!sw_tensors_are_admitted(w))
		return SW_EBUSY;
	if (n == 0 || n > SW_TENSORS - w->n_tensors)
		return SW_EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_valid(w, &tensors[i]))
			return SW_EINVAL;
		need += sw_wtensor_need(w, &tensors[i]);
	}
	if (!is_ready(w, need))
		return SW_EAGAIN;
	for (; done < n && !err; done++)
		err = shape(
			w, &tensors[done], &w->tensors[w->n_tensors + done]);
	if (err) {
		while (done-- > 0)
			sw_wtensor_give(w, &w->tensors[w->n_tensors + done]);
		return err;
	}
	w->n_tensors += n;
	sw_todo_order(w, w->n_tensors - n);
	sw_link_request(w, &w->links[0]);
	return 0;
}

/* A set over no chunks is kept over one, which never enters. */
static uint32_t set_size(const struct sw_place *p)
{
	return p->n_local ? p->n_local : 1;
}

int sw_tensors_keyed(
	struct sw_worker *w, uint32_t tensor, uint32_t key, uint32_t first)
{
	struct sw_wtensor *t = &w->tensors[tensor];
	uint64_t *words = t->words;

	if (key >= SW_TENSORS || w->by_key[key] != SW_KEY_NONE ||
		first >= sw_place_line(&w->map))
		return SW_EPROTO;
	t->own = sw_place_init(&w->lane_map, first, t->n_chunks, w->lane_i);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		if (sw_place_init(&w->lane_map, first, t->n_chunks, i).n_local)
			t->lanes |= 1u << i;
	for (uint32_t l = 0; l < w->n_links; l++) {
		uint32_t n;

		t->places[l] = sw_place_init(
			&w->map, first, t->n_chunks, w->links[l].server_i);
		n = set_size(&t->places[l]);
		words = sw_bitmap_init(&t->todo[l], n, words);
		words = sw_bitmap_init(&t->again[l], n, words);
		words = sw_bitmap_init(&t->late[l], n, words);
	}
	assert(words <= (uint64_t *)((char *)t->mem + t->mem_bytes));
	t->key = key;
	t->first = first;
	t->priority = sw_priority_of(t->priority, key);
	t->class = sw_class_of(t->priority);
	w->by_key[key] = tensor;
	return 0;
}

static struct sw_worker_tensor declaration_of(const struct sw_wtensor *t)
{
	return (struct sw_worker_tensor){.name = t->name,
		.n_elems = t->n_elems,
		.dtype = t->dtype,
		.priority = t->priority,
		.is_async = t->is_async,
		.base = t->base};
}

static int copy_one(struct sw_worker *w, const struct sw_wtensor *from)
{
	const struct sw_worker_tensor in = declaration_of(from);
	uint32_t i = w->n_tensors, dead_from = w->tensors[i].dead_from;
	int err = shape(w, &in, &w->tensors[i]);

	if (err)
		return err;
	w->tensors[i].from = from->from;
	w->n_tensors++;
	if (from->key == SW_KEY_NONE) { /* it was refused */
		w->tensors[i].dead_from = 1;
		return 0;
	}
	err = sw_tensors_keyed(w, i, from->key, from->first);
	if (!err && dead_from)
		sw_tensor_kill(w, &w->tensors[i], dead_from, from->why);
	return err;
}

static bool is_ready_to_copy(
	const struct sw_worker *w, const struct sw_wtensor *from)
{
	uint64_t need = 0;

	for (uint32_t i = w->n_tensors; i < w->n_wanted; i++) {
		const struct sw_worker_tensor in = declaration_of(&from[i]);

		need += sw_wtensor_need(w, &in);
	}
	return is_ready(w, need);
}

bool sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *from)
{
	uint32_t first = w->n_tensors, n = w->n_wanted;
	int err = 0;

	if (sw_worker_end_of(w)) {
		w->n_wanted = first;
		return true;
	}
	if (!is_ready_to_copy(w, from))
		return false;
	for (uint32_t i = first; i < n && !err; i++)
		err = copy_one(w, &from[i]);
	w->n_wanted = w->n_tensors;
	if (err) {
		sw_worker_fail(w, err, SW_KEY_NONE,
			"node %.64s: lcore %u cannot declare: %s", w->node_name,
			w->lane_i, sw_error_text(err));
		return true;
	}
	sw_todo_order(w, first);
	sw_links_skip_refused(w);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_request(w, &w->links[l]);
	if (sw_tensors_are_admitted(w)) /* all were refused */
		sw_lane_admitted(w);
	return true;
}
