/* todo.c - what each link has to push, what it waits for, and in which order.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/order.h"
#include "engine/worker/worker_int.h"

/* --- links by urgency --- */

static uint64_t turn_key(const struct sw_wtensor *t, uint32_t link)
{
	uint64_t local = sw_bitmap_first(&t->todo[link]);

	return (uint64_t)t->order << 32 |
	       (local << 32) / t->places[link].n_local;
}

void sw_link_refresh(struct sw_worker *w, struct sw_link *l)
{
	struct sw_due *due = &w->due[l->peer.path.port_i];
	uint32_t order = l->state == SW_LINK_OPEN ? sw_bitmap_first(&l->ready)
						  : SW_BITMAP_NONE;
	uint32_t class = SW_N_CLASSES;

	if (order != SW_BITMAP_NONE) {
		const struct sw_wtensor *t = &w->tensors[w->by_order[order]];

		class = t->class;
		w->turn_keys[l->peer.index] = turn_key(t, l->peer.index);
	}
	sw_peer_offer(&l->peer, due, class);
}

/* --- chunks --- */

static void enter(struct sw_bitmap *orders, uint32_t order,
	struct sw_bitmap *chunks, uint32_t local)
{
	sw_bitmap_add(chunks, local);
	sw_bitmap_add(orders, order);
}

static void leave(struct sw_bitmap *orders, uint32_t order,
	struct sw_bitmap *chunks, uint32_t local)
{
	if (!sw_bitmap_has(chunks, local))
		return;
	sw_bitmap_remove(chunks, local);
	if (sw_bitmap_is_empty(chunks))
		sw_bitmap_remove(orders, order);
}

static struct sw_link *link_of(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t chunk)
{
	return &w->links[w->link_of[sw_place_owner(&w->map, t->first, chunk)]];
}

void sw_todo_push(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	struct sw_link *l = link_of(w, t, chunk);
	uint32_t i = l->peer.index;
	uint32_t local = sw_place_local(&t->places[i], chunk);

	l->n_todo += !sw_bitmap_has(&t->todo[i], local);
	enter(&l->ready, t->order, &t->todo[i], local);
	if (t->chunks[chunk].n_sent)
		enter(&l->again, t->order, &t->again[i], local);
	leave(&l->late, t->order, &t->late[i], local);
}

void sw_todo_nothing(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	struct sw_link *l = link_of(w, t, chunk);
	uint32_t i = l->peer.index;
	uint32_t local = sw_place_local(&t->places[i], chunk);

	l->n_todo -= sw_bitmap_has(&t->todo[i], local);
	leave(&l->ready, t->order, &t->todo[i], local);
	leave(&l->again, t->order, &t->again[i], local);
	leave(&l->late, t->order, &t->late[i], local);
}

void sw_todo_wait(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	struct sw_link *l = link_of(w, t, chunk);
	uint32_t i = l->peer.index;

	enter(&l->late, t->order, &t->late[i],
		sw_place_local(&t->places[i], chunk));
}

void sw_todo_drop(struct sw_worker *w, struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_links && t->words; i++) {
		struct sw_link *l = &w->links[i];

		l->n_todo -= sw_bitmap_clear(&t->todo[i]);
		sw_bitmap_clear(&t->again[i]);
		sw_bitmap_clear(&t->late[i]);
		sw_bitmap_remove(&l->ready, t->order);
		sw_bitmap_remove(&l->again, t->order);
		sw_bitmap_remove(&l->late, t->order);
	}
}

/* --- the order of tensors --- */

/* Is @order in the link's set exactly when the tensor's set has members?  One
 * that goes by readiness @is_here no more. */
static void carry_over(struct sw_bitmap *orders, uint32_t order,
	const struct sw_bitmap *chunks, bool is_here)
{
	/* No set: the tensor has no key yet. */
	if (is_here && sw_bitmap_is_init(chunks) && !sw_bitmap_is_empty(chunks))
		sw_bitmap_add(orders, order);
	else
		sw_bitmap_remove(orders, order);
}

void sw_todo_order(struct sw_worker *w, uint32_t n)
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

		t->precedence = at;
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

void sw_todo_take_place(struct sw_worker *w, struct sw_wtensor *t)
{
	t->order = t->precedence; /* what it had by readiness is free */
	if (sw_sched_policy(&w->sched)->by_priority) {
		t->class = sw_class_of(t->priority);
		return;
	}
	t->class = SW_N_CLASSES - 1;
	t->order = sw_order_take(w->by_order, &w->next_order, SW_TENSORS,
		(uint32_t)(t - w->tensors), move_order, w);
}
