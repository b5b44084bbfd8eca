/* tensors.c - the worker's tensors: declare, order, submit, end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/worker.h"
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
		sw_knobs_credit(w, w->params.policy, w->params.credit_bytes));
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

int sw_worker_end_of(const struct sw_worker *w)
{
	if (w->state != SW_WORKER_FAILED && w->state != SW_WORKER_LEFT &&
		!w->left_by_ns)
		return 0;
	return w->fault.err ? w->fault.err : SW_ECLOSED;
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

/* Is @order in the link's set exactly when the tensor's set has members?  One
 * that goes by readiness @is_here no more. */
static void carry_over(struct sw_bitmap *orders, uint32_t order,
	const struct sw_bitmap *chunks, bool is_here)
{
	/* A set without levels: the tensor has no key yet. */
	if (is_here && chunks->n_levels && !sw_bitmap_is_empty(chunks))
		sw_bitmap_add(orders, order);
	else
		sw_bitmap_remove(orders, order);
}

/* Number all by (priority, index), and the sets of the links with them; the
 * first @n are in order. */
static void order_all(struct sw_worker *w, uint32_t n)
{
	for (uint32_t i = n; i < w->n_tensors; i++) {
		uint32_t at = n++;

		for (; at > 0 && w->tensors[w->by_order[at - 1]].priority >
					 w->tensors[i].priority;
			at--)
			w->by_order[at] = w->by_order[at - 1];
		w->by_order[at] = i;
	}
	for (uint32_t at = 0; at < n; at++) {
		struct sw_wtensor *t = &w->tensors[w->by_order[at]];
		bool is_here = t->order < SW_TENSORS;

		t->rank = at;
		if (is_here)
			t->order = at;
		for (uint32_t l = 0; l < w->n_links; l++) {
			struct sw_link *link = &w->links[l];

			carry_over(&link->ready, at, &t->todo[l], is_here);
			carry_over(&link->again, at, &t->again[l], is_here);
			carry_over(&link->late, at, &t->late[l], is_here);
		}
	}
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
	order_all(w, w->n_tensors - n);
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
	order_all(w, first);
	sw_links_skip_refused(w);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_request(w, &w->links[l]);
	if (sw_tensors_are_admitted(w)) /* all were refused */
		sw_lane_admitted(w);
	return true;
}

void sw_tensors_order(struct sw_worker *w)
{
	order_all(w, 0);
}

/* --- push_pull --- */

static void put(struct sw_bitmap *orders, uint32_t order,
	struct sw_bitmap *chunks, uint32_t local, bool is_in)
{
	if (is_in) {
		sw_bitmap_add(chunks, local);
		sw_bitmap_add(orders, order);
		return;
	}
	if (!sw_bitmap_has(chunks, local))
		return;
	sw_bitmap_remove(chunks, local);
	if (sw_bitmap_is_empty(chunks))
		sw_bitmap_remove(orders, order);
}

void sw_tensors_set(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk,
	bool is_todo, bool is_late)
{
	uint32_t i = w->link_of[sw_place_owner(&w->map, t->first, chunk)];
	uint32_t local = sw_place_local(&t->places[i], chunk);
	struct sw_link *l = &w->links[i];

	l->n_todo += is_todo - sw_bitmap_has(&t->todo[i], local);
	put(&l->ready, t->order, &t->todo[i], local, is_todo);
	put(&l->again, t->order, &t->again[i], local,
		is_todo && t->chunks[chunk].n_sent);
	put(&l->late, t->order, &t->late[i], local, is_late);
}

static void start(struct sw_worker *w, struct sw_wtensor *t)
{
	t->is_edited = false;
	t->is_begun = true;
	t->weight = 0;
	t->n_missing = t->own.n_local;
	t->missing = 0;
	t->progress_ns = w->now_ns;
	t->n_lanes = sw_lanes_begin(w, t);
	for (uint32_t c = 0; c < t->n_missing;) {
		struct sw_wchunk *chunk =
			&t->chunks[sw_place_global(&t->own, c)];

		for (uint32_t n = sw_place_run(&t->own, c); n; n--, c++)
			*chunk++ = (struct sw_wchunk){.state = SW_GRAD};
	}
	if (t->n_missing)
		sw_tensors_ready(w, t);
}

void sw_tensors_start(struct sw_worker *w, struct sw_wtensor *t)
{
	t->round++;
	w->highest_round = (uint32_t)sw_max64(w->highest_round, t->round);
	start(w, t);
}

void sw_tensors_begin(struct sw_worker *w, const struct sw_lane_order *o)
{
	struct sw_wtensor *t = &w->tensors[o->tensor];

	if (sw_worker_end_of(w))
		return;
	t->is_open = true;
	t->op = o->op;
	t->step = o->step;
	t->root = o->root;
	t->asked = ~0ULL >> (64 - w->n_local);
	t->round++;
	w->n_open++;
	if (sw_wtensor_is_dead(t, t->round))
		sw_tensors_end(w, t, SW_EMISMATCH);
	else
		start(w, t);
}

int sw_worker_begin(struct sw_worker *w, const struct sw_worker_round *round)
{
	struct sw_wtensor *t;
	int err;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (round->tensor >= w->n_tensors || round->local >= w->n_local ||
		(round->op == SW_OPERATION_COPY && round->root >= w->size))
		return SW_EINVAL;
	t = &w->tensors[round->tensor];
	if (round->tensor >= w->n_admitted)
		return SW_EAGAIN;
	if ((w->n_local > 1 && !t->from[round->local] && !t->dead_from) ||
		(t->is_async && !t->round && round->op == SW_OPERATION_SUM))
		return SW_EINVAL;
	if (t->asked >> round->local & 1)
		return SW_EBUSY;
	if (!t->is_begun && sw_wtensor_is_dead(t, t->round + 1))
		return SW_EMISMATCH;
	err = sw_local_ask(w, t, round);
	if (!err && !sw_local_missing(w, t))
		sw_tensors_start(w, t);
	return err;
}

void sw_tensors_end(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	if (!err && sw_wtensor_is_dead(t, t->round))
		err = SW_EMISMATCH;
	if (!err && t->is_edited)
		err = SW_ECORRUPT;
	t->is_open = t->is_begun = false;
	w->n_open--;
	if (t->task.state != SW_TASK_IDLE) /* the job ends */
		sw_task_cancel(&w->sched, &t->task);
	if (!w->lane_i)
		sw_local_end(w, t, err);
	else if (!err || err == SW_ECORRUPT || err == SW_EMISMATCH)
		sw_lane_done(w, t);
}

void sw_tensors_held(struct sw_worker *w, struct sw_wtensor *t)
{
	if (!t->n_lanes)
		sw_tensors_end(w, t, 0);
}

void sw_tensors_lane_done(struct sw_worker *w, const struct sw_lane_news *news)
{
	struct sw_wtensor *t = &w->tensors[news->tensor];

	if (!t->is_open)
		return; /* the job has ended */
	t->weight = news->weight;
	t->is_edited |= news->is_edited;
	if (--t->n_lanes == 0 && !t->n_missing)
		sw_tensors_end(w, t, 0);
}

void sw_tensors_end_all(struct sw_worker *w, int err)
{
	for (uint32_t i = 0; i < w->n_tensors; i++)
		if (w->tensors[i].is_open)
			sw_tensors_end(w, &w->tensors[i], err);
}

/* "local rank 2", "rank 1, 3" of a set of members, or "a server" when nobody
 * was named. */
static void name_missing(const struct sw_worker *w, const struct sw_wtensor *t,
	char *out, size_t size)
{
	uint64_t local = sw_local_missing(w, t);
	uint64_t set = local ? local : t->missing;
	size_t n = (size_t)snprintf(out, size, "%s",
		local ? "local rank"
		: set ? "rank"
		      : "a server");

	for (const char *comma = ""; set && n + 8 < size; set &= set - 1) {
		n += (size_t)snprintf(out + n, size - n, "%s %d", comma,
			__builtin_ctzll(set));
		comma = ",";
	}
}

/* The tensor that has stood still the longest, for @ns at least, or NULL; *n:
 * how many have.  What other lanes wait for they see themselves. */
static const struct sw_wtensor *find_stalled(
	const struct sw_worker *w, uint64_t ns, uint32_t *n)
{
	const struct sw_wtensor *worst = NULL;

	*n = 0;
	for (uint32_t i = 0; i < w->n_tensors; i++) {
		const struct sw_wtensor *t = &w->tensors[i];

		if (!t->is_open || w->now_ns - t->progress_ns < ns ||
			(!t->n_missing && !sw_local_missing(w, t)))
			continue;
		++*n;
		if (!worst || t->progress_ns < worst->progress_ns)
			worst = t;
	}
	return worst;
}

/* One line for all, since they mostly wait for the same one. */
static void warn(struct sw_worker *w, const struct sw_wtensor *t, uint32_t n)
{
	char who[64], text[SW_TEXT_MAX + SW_NAME_MAX], more[40] = "";
	uint64_t still_ns = w->now_ns - t->progress_ns;

	name_missing(w, t, who, sizeof(who));
	if (still_ns >= w->params.stall_limit) {
		sw_worker_fail(w, SW_ESTALL, t->key,
			"waited %llu s for %s, tensor %.64s",
			(unsigned long long)(still_ns / SW_S), who, t->name);
		return;
	}
	if (n > 1)
		snprintf(more, sizeof(more), "; %u more tensor%s", n - 1,
			n > 2 ? "s wait" : " waits");
	snprintf(text, sizeof(text), "waiting %llu s for %s, tensor %s%s",
		(unsigned long long)(still_ns / SW_S), who, t->name, more);
	sw_log(w->env->log, SW_LOG_WARN, "%s", text);
	sw_lane_say(w, 0, text);
}

void sw_tensors_tick(struct sw_worker *w)
{
	uint64_t every = sw_min64(w->params.stall_warn, w->params.stall_limit);
	uint32_t n;
	const struct sw_wtensor *t = find_stalled(w, every, &n);

	if (!t || (w->now_ns < w->warn_at_ns &&
			  w->now_ns - t->progress_ns < w->params.stall_limit))
		return;
	w->warn_at_ns = w->now_ns + every;
	warn(w, t, n);
}
