/* tensors.c - the worker's tensors: declare, order, submit, end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bytes.h"
#include "engine/error.h"
#include "engine/worker.h"

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
	w->knobs.kept[0] = (struct sw_knobs){.policy = w->params.policy,
		.part_bytes = w->params.part_bytes,
		.credit_bytes = w->params.credit_bytes};
	if (sw_sched_open(&w->sched, w->params.policy, SW_TENSORS))
		return SW_ENOMEM;
	return sw_sched_set(&w->sched, w->params.policy, w->params.part_bytes,
		sw_knobs_credit(w, w->params.policy, w->params.credit_bytes));
}

static void free_tensor(const struct sw_worker *w, struct sw_wtensor *t)
{
	free(t->chunks);
	free(t->cookies);
	if (!w->lane_i) /* else lane 0's */
		free(t->from);
	free(t->places);
	free(t->todo);
	free(t->again);
	free(t->late);
	free(t->words);
	*t = (struct sw_wtensor){0};
}

void sw_tensors_close(struct sw_worker *w)
{
	for (uint32_t i = 0; w->tensors && i < w->n_tensors; i++)
		free_tensor(w, &w->tensors[i]);
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

static int shape(struct sw_worker *w, const struct sw_worker_tensor *in,
	struct sw_wtensor *t)
{
	uint32_t elem = sw_dtype_bytes(in->dtype);
	uint32_t per_chunk = w->params.payload / elem;
	uint64_t n_chunks = (in->n_elems - 1) / per_chunk + 1;

	*t = (struct sw_wtensor){.worker = w,
		.key = SW_KEY_NONE,
		.priority = in->priority,
		.dtype = (uint8_t)in->dtype,
		.class = sw_class_of(in->priority),
		.n_chunks = (uint32_t)n_chunks,
		.elem_bytes = elem,
		.chunk_bytes = per_chunk * elem,
		.last_bytes =
			(uint32_t)(in->n_elems - (n_chunks - 1) * per_chunk) *
			elem,
		.n_elems = in->n_elems,
		.base = in->base,
		.is_async = in->is_async};
	snprintf(t->name, sizeof(t->name), "%s", in->name);
	t->chunks = calloc(n_chunks, sizeof(*t->chunks));
	t->cookies = calloc(w->n_local, sizeof(*t->cookies));
	if (!w->lane_i)
		t->from = calloc(w->n_local, sizeof(*t->from));
	t->places = calloc(w->n_links, sizeof(*t->places));
	t->todo = calloc(w->n_links, sizeof(*t->todo));
	t->again = calloc(w->n_links, sizeof(*t->again));
	t->late = calloc(w->n_links, sizeof(*t->late));
	if (t->chunks && t->cookies && (t->from || w->lane_i) && t->places &&
		t->todo && t->again && t->late) {
		if (w->n_local == 1 && !w->lane_i)
			t->from[0] = t->base;
		return 0;
	}
	free_tensor(w, t);
	return SW_ENOMEM;
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
	uint32_t done = 0;
	int err = 0;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (!sw_tensors_are_admitted(w))
		return SW_EBUSY;
	if (n == 0 || n > SW_TENSORS - w->n_tensors)
		return SW_EINVAL;
	for (; done < n && !err; done++)
		err = is_valid(w, &tensors[done])
			      ? shape(w, &tensors[done],
					&w->tensors[w->n_tensors + done])
			      : SW_EINVAL;
	if (err) {
		while (done-- > 0)
			free_tensor(w, &w->tensors[w->n_tensors + done]);
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
	size_t n_words = 0;
	uint64_t *words;

	if (key >= SW_TENSORS || w->by_key[key] != SW_KEY_NONE ||
		first >= sw_place_line(&w->map))
		return SW_EPROTO;
	for (uint32_t l = 0; l < w->n_links; l++) {
		t->places[l] = sw_place_init(
			&w->map, first, t->n_chunks, w->links[l].server_i);
		n_words += 3 * sw_bitmap_words(set_size(&t->places[l]));
	}
	t->own = sw_place_init(&w->lane_map, first, t->n_chunks, w->lane_i);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		if (sw_place_init(&w->lane_map, first, t->n_chunks, i).n_local)
			t->lanes |= 1u << i;
	words = t->words = calloc(n_words, sizeof(*words));
	if (!words)
		return SW_ENOMEM;
	for (uint32_t l = 0; l < w->n_links; l++) {
		uint32_t n = set_size(&t->places[l]);

		words = sw_bitmap_init(&t->todo[l], n, words);
		words = sw_bitmap_init(&t->again[l], n, words);
		words = sw_bitmap_init(&t->late[l], n, words);
	}
	t->key = key;
	t->first = first;
	t->priority = sw_priority_of(t->priority, key);
	t->class = sw_class_of(t->priority);
	w->by_key[key] = tensor;
	return 0;
}

void sw_tensors_copy(
	struct sw_worker *w, const struct sw_wtensor *from, uint32_t n)
{
	uint32_t first = w->n_tensors;
	int err = sw_worker_end_of(w);

	if (err)
		return;
	for (uint32_t i = first; i < n && !err; i++) {
		const struct sw_worker_tensor in = {.name = from[i].name,
			.n_elems = from[i].n_elems,
			.dtype = from[i].dtype,
			.priority = from[i].priority,
			.is_async = from[i].is_async,
			.base = from[i].base};

		err = shape(w, &in, &w->tensors[i]);
		if (err)
			break;
		w->tensors[i].from = from[i].from;
		w->n_tensors++;
		err = sw_tensors_keyed(w, i, from[i].key, from[i].first);
	}
	if (err) {
		sw_worker_fail(w, err, SW_KEY_NONE,
			"node %.64s: lcore %u cannot declare: %s", w->node_name,
			w->lane_i, sw_error_text(err));
		return;
	}
	order_all(w, first);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_request(w, &w->links[l]);
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

static void start(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_knobs *knobs)
{
	t->is_edited = false;
	t->knobs = knobs->number;
	t->weight = 0;
	t->n_missing = t->own.n_local;
	t->missing = 0;
	t->progress_ns = t->warned_ns = w->now_ns;
	t->n_lanes = sw_lanes_begin(w, t, knobs);
	for (uint32_t c = 0; c < t->n_missing;) {
		struct sw_wchunk *chunk =
			&t->chunks[sw_place_global(&t->own, c)];

		for (uint32_t n = sw_place_run(&t->own, c); n; n--, c++)
			*chunk++ = (struct sw_wchunk){.state = SW_GRAD};
	}
	if (t->n_missing)
		sw_tensors_ready(w, t, knobs->policy);
}

void sw_tensors_start(struct sw_worker *w, struct sw_wtensor *t)
{
	t->is_held = !sw_knobs_may_begin(w, t->round + 1);
	if (t->is_held)
		return;
	t->round++;
	start(w, t, sw_knobs_begin(w, t->round));
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
	sw_knobs_use(w, &o->knobs);
	start(w, t, &o->knobs);
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
	if ((w->n_local > 1 && !t->from[round->local]) ||
		(t->is_async && !t->round && round->op == SW_OPERATION_SUM))
		return SW_EINVAL;
	if (t->asked >> round->local & 1)
		return SW_EBUSY;
	err = sw_local_ask(w, t, round);
	if (!err && !sw_local_missing(w, t))
		sw_tensors_start(w, t);
	return err;
}

void sw_tensors_end(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	if (!err && t->is_edited)
		err = SW_ECORRUPT;
	t->is_open = t->is_held = false;
	w->n_open--;
	if (t->task.state != SW_TASK_IDLE) /* the job ends */
		sw_task_cancel(&w->sched, &t->task);
	if (!w->lane_i)
		sw_local_end(w, t, err);
	else if (!err || err == SW_ECORRUPT)
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
		t->is_held ? "the coordinator to commit knobs"
		: local    ? "local rank"
		: set      ? "rank"
			   : "a server");

	for (const char *comma = ""; set && n + 8 < size; set &= set - 1) {
		n += (size_t)snprintf(out + n, size - n, "%s %d", comma,
			__builtin_ctzll(set));
		comma = ",";
	}
}

static void warn(struct sw_worker *w, struct sw_wtensor *t)
{
	char who[64], text[SW_TEXT_MAX + SW_NAME_MAX];
	uint64_t still_ns = w->now_ns - t->progress_ns;

	t->warned_ns = w->now_ns;
	name_missing(w, t, who, sizeof(who));
	if (still_ns >= w->params.stall_limit) {
		sw_worker_fail(w, SW_ESTALL, t->key,
			"waited %llu s for %s, tensor %.64s",
			(unsigned long long)(still_ns / SW_S), who, t->name);
		return;
	}
	snprintf(text, sizeof(text), "waiting %llu s for %s, tensor %s",
		(unsigned long long)(still_ns / SW_S), who, t->name);
	sw_log(w->env->log, SW_LOG_WARN, "%s", text);
	sw_lane_say(w, 0, text);
}

void sw_tensors_tick(struct sw_worker *w)
{
	uint64_t every = sw_min64(w->params.stall_warn, w->params.stall_limit);

	for (uint32_t i = 0; w->n_open && i < w->n_tensors; i++) {
		struct sw_wtensor *t = &w->tensors[i];

		/* What other lanes wait for they see themselves. */
		if (!t->is_open || (!t->n_missing && !t->is_held &&
					   !sw_local_missing(w, t)))
			continue;
		t->warned_ns = sw_max64(t->warned_ns, t->progress_ns);
		if (w->now_ns - t->warned_ns >= every)
			warn(w, t);
	}
}
