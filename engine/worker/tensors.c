/* tensors.c - the worker's tensors: declare, give keys, close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/zeros.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"
#include "engine/worker/sweep.h"

/* --- open, close --- */

int sw_tensors_open(struct sw_worker *w)
{
	uint64_t *words = w->set_words;

	w->tensors = sw_zeros_new(SW_TENSORS * sizeof(*w->tensors));
	if (!w->tensors)
		return SW_ENOMEM;
	words = sw_bitmap_init(&w->open, SW_TENSORS, words);
	words = sw_bitmap_init(&w->dying, SW_TENSORS, words);
	words = sw_bitmap_init(&w->lacking, SW_TENSORS, words);
	words = sw_bitmap_init(&w->closing, SW_TENSORS, words);
	words = sw_bitmap_init(&w->added, SW_TENSORS, words);
	sw_bitmap_init(&w->new_streams, SW_TENSORS, words);
	for (uint32_t i = 0; i < SW_KEY_INDICES; i++)
		w->by_key[i] = w->newest[i] = w->by_group[i] = SW_KEY_NONE;
	sw_orders_open(&w->orders, SW_TENSORS, w->order_words);
	if (sw_sched_open(&w->sched, w->params.policy, SW_TENSORS))
		return SW_ENOMEM;
	return sw_sched_set(&w->sched, w->params.policy, w->params.part_bytes,
		sw_tuning_credit(w, w->params.policy, w->params.credit_bytes));
}

void sw_tensors_close(struct sw_worker *w)
{
	for (uint32_t i = 0; w->tensors && i < w->n_places; i++)
		sw_tensors_give(w, &w->tensors[i]);
	if (w->env && w->env->mem_drop)
		w->env->mem_drop(w->env->ctx, 0);
	free(w->tensors);
	sw_sched_close(&w->sched);
}

/* --- lane 0 declares, the others follow --- */

bool sw_tensors_are_admitted(const struct sw_worker *w)
{
	for (uint32_t l = 0; l < w->n_links; l++)
		if (w->links[l].n_declared != w->n_tensors)
			return false;
	return !w->n_declaring;
}

/* Return why nothing can be declared now; 0: it can. */
static int why_not(const struct sw_worker *w)
{
	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	return sw_tensors_are_admitted(w) ? 0 : SW_EBUSY;
}

static void add_all(struct sw_worker *w)
{
	uint32_t i;

	for (; w->n_tensors != w->n_built; w->n_tensors++)
		sw_bitmap_add(
			&w->added, w->by_number[w->n_tensors % SW_TENSORS]);
	while ((i = sw_bitmap_first(&w->new_streams)) != SW_BITMAP_NONE)
		sw_stream_add(w, &w->tensors[i]);
	sw_link_declare(w, &w->links[0]);
}

int sw_worker_add(struct sw_worker *w)
{
	int err = why_not(w);

	if (!err)
		add_all(w);
	return err;
}

int sw_worker_declare(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	int err = why_not(w);

	if (!err)
		err = sw_worker_build(w, tensors, n);
	if (!err)
		add_all(w);
	return err;
}

/* Return the size of a set.  A set over no chunks gets one, which never enters.
 */
static uint32_t set_size(const struct sw_place *p)
{
	return p->n_local ? p->n_local : 1;
}

int sw_tensors_keyed(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t key, uint32_t first)
{
	uint32_t at = sw_key_index(key);
	uint64_t *words = t->words;
	uint32_t from = 0;

	if (key == SW_KEY_NONE || w->by_key[at] != SW_KEY_NONE ||
		sw_key_is_past(w, key) || t->kind->divide(w, t, first))
		return SW_EPROTO;
	t->first = first;
	for (uint32_t l = 0; l < w->n_links; l++) {
		struct sw_part *p = &t->parts[l];

		p->place = t->kind->place_at(w, t, &w->links[l]);
		p->from = from;
		from += p->place.n_local;
		p->turn_step = UINT32_MAX / set_size(&p->place);
		if (t->last == SW_PLACE_NONE)
			t->last = sw_part_record(p, t->n_chunks - 1);
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			words = sw_bitmap_init(
				&p->sets[s], set_size(&p->place), words);
	}
	assert(words <= t->words + t->n_words);
	t->key = key;
	if (!sw_life_identify(w, t, t->kind->life_key(key, first)))
		return SW_EPROTO;
	t->decl.priority = sw_priority_of(t->decl.priority, key);
	t->class = sw_class_of(t->decl.priority);
	w->by_key[at] = t->index;
	w->newest[at] = key;
	sw_todo_admit(w, t);
	return 0;
}

void sw_tensor_follow(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_wtensor *slot = sw_wtensor_slot(t);
	const struct sw_wtensor *zero = w->lanes->zero->tensors;
	const struct sw_said *said = &zero[slot->index].said;
	uint32_t dead_from = atomic_load(&said->dead_from);

	if (dead_from && dead_from != t->life->from)
		sw_tensor_kill(
			w, t, dead_from, sw_wtensor_why(&zero[slot->index]));
	if (!sw_worker_end_of(w))
		t->kind->follow(w, t, &zero[t->index]);
	if (atomic_load(&said->is_closed) && !t->life->is_closed)
		sw_life_closed(w, slot);
}

static int copy_one(struct sw_worker *w, const struct sw_wtensor *zero)
{
	struct sw_wtensor *t = sw_wtensor_numbered(w, w->n_tensors++);
	const struct sw_wtensor *from = &zero[t->index];
	int err = 0;

	sw_bitmap_add(&w->added, t->index);
	if (t->kind->add)
		t->kind->add(w, t);
	t->locals = from->locals;
	t->held = from->held;
	if (from->key != SW_KEY_NONE) /* else the coordinator refused it */
		err = sw_tensors_keyed(w, t, from->key, from->first);
	if (!err)
		sw_tensor_follow(w, t);
	return err;
}

/* Has the coordinator refused the tensor?  A tensor that died here before the
 * answer does not count; another lane learns only of answered ones. */
static bool is_refused(const struct sw_worker *w, const struct sw_wtensor *t)
{
	return t->life->from && t->key == SW_KEY_NONE &&
	       (w->lane_i || t->number < w->links[0].n_declared);
}

void sw_links_skip_refused(struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];

		while (!l->n_asked && l->n_declared < w->n_tensors &&
			is_refused(w, sw_wtensor_numbered(w, l->n_declared)))
			sw_link_declared(l, l->n_declared + 1);
	}
}

static void end_copy(struct sw_worker *w)
{
	sw_links_skip_refused(w);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_declare(w, &w->links[l]);
	if (sw_tensors_are_admitted(w)) /* all were refused */
		sw_lane_admitted(w);
}

uint32_t sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *zero)
{
	uint32_t n = 0;
	int err = 0;

	if (sw_worker_end_of(w))
		w->n_wanted = w->n_tensors;
	for (; n < sw_keys_some(w) && w->n_tensors < w->n_wanted && !err; n++)
		err = copy_one(w, zero);
	if (err)
		sw_worker_fail(w, err, SW_KEY_NONE,
			"node %.64s: lcore %u cannot declare: %s", w->node_name,
			w->lane_i, sw_error_text(err));
	if (!n || err)
		return n;
	sw_todo_renumber(w);
	if (w->n_tensors == w->n_wanted)
		end_copy(w);
	return n;
}
