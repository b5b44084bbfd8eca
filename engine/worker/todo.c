/* todo.c - the chunks of a link: to push, pushed, or waiting for results.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/todo.h"

#include "engine/base/bytes.h"
#include "engine/sched/order.h"
#include "engine/worker/stream.h"

/* --- links by urgency --- */

/* Find the tensor to push next at a link, and its order.  Chunks that started
 * under another order of the policy go first, so that they do not starve.
 * Returns false if the link has no chunk to push. */
static bool find_next(
	const struct sw_worker *w, struct sw_link *l, uint32_t *order)
{
	if (!l->n_todo)
		return false;
	if (l->oldest && (sw_sched_policy(&w->sched)->by_priority ||
				 sw_bitmap_is_empty(&l->sets[SW_TODO]))) {
		l->next = l->oldest;
		*order = (uint32_t)l->next->task.sequence;
	} else {
		*order = sw_bitmap_least_in(&l->sets[SW_TODO], 0);
		l->next = &w->tensors[sw_orders_at(&w->orders, *order)];
	}
	return true;
}

/* Offer a link by its key in its class: order, then progress.  Where progress
 * is equal, members that began together choose different links. */
static void refresh(struct sw_worker *w, struct sw_link *l)
{
	struct sw_due *due = &w->due[l->peer.path.port_i];
	uint32_t class = SW_N_CLASSES, order, i = l->peer.index;

	if (l->state == SW_LINK_OPEN && find_next(w, l, &order)) {
		const struct sw_part *p = &l->next->parts[i];
		uint64_t local = sw_bitmap_first(&p->sets[SW_TODO]);

		class = l->next->class;
		w->turn_keys[i] = (uint64_t)order << 32 |
				  (local * p->turn_step + (i ^ w->member));
	}
	sw_peer_offer(&l->peer, due, class);
	if (l->peer.due_class == SW_CLASS_STALLED &&
		sw_flow_block(&l->peer.flow, w->now_ns))
		sw_link_owe(l, SW_OWE_KEEPALIVE); /* it asks for a grant */
}

void sw_links_refresh(struct sw_worker *w)
{
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(w->touched); i++) {
		uint64_t links = w->touched[i];

		w->touched[i] = 0;
		for (; links; links &= links - 1)
			refresh(w, &w->links[64 * i +
					     (uint32_t)__builtin_ctzll(links)]);
	}
}

static uint32_t number_of(const struct sw_link *l, const struct sw_wtensor *t)
{
	return sw_orders_number(&l->worker->orders, t->index);
}

/* --- the tensors of a link --- */

/* Append a tensor to the link's list: without priorities, the link pushes
 * tensors in the order in which the scheduler starts them. */
static __attribute__((noinline)) void list(
	struct sw_link *l, struct sw_wtensor *t)
{
	uint32_t i = l->peer.index;

	t->parts[i].older = l->newest;
	*(l->newest ? &l->newest->parts[i].newer : &l->oldest) = t;
	l->newest = t;
}

static __attribute__((noinline)) void unlist(
	struct sw_link *l, const struct sw_wtensor *t)
{
	uint32_t i = l->peer.index;
	struct sw_part *p = &t->parts[i];

	*(p->older ? &p->older->parts[i].newer : &l->oldest) = p->newer;
	*(p->newer ? &p->newer->parts[i].older : &l->newest) = p->older;
	p->newer = NULL;
}

/* Add a tensor when its set gets the first chunk; link_remove removes it when
 * the set has lost the last one. */
static void link_add(
	struct sw_link *l, struct sw_wtensor *t, enum sw_todo_set set)
{
	if (set == SW_TODO && !sw_sched_policy(&l->worker->sched)->by_priority)
		list(l, t);
	else
		sw_bitmap_add(&l->sets[set], number_of(l, t));
}

static __attribute__((noinline)) void link_remove(
	struct sw_link *l, const struct sw_wtensor *t, enum sw_todo_set set)
{
	if (set == SW_TODO && l->newest &&
		(t->parts[l->peer.index].newer || l->newest == t))
		unlist(l, t);
	else
		sw_bitmap_remove(&l->sets[set], number_of(l, t));
}

/* Update the upper levels of a tensor's set, after one of its words got the
 * first chunk.  Not inline, so that the frequent part is small. */
static __attribute__((noinline)) void begin_word(struct sw_link *l,
	struct sw_wtensor *t, enum sw_todo_set set, uint32_t local)
{
	if (sw_bitmap_add_above_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		link_add(l, t, set);
}

void sw_todo_end_word(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local)
{
	if (sw_bitmap_remove_above_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		link_remove(l, t, set);
}

static inline void enter(struct sw_link *l, struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local)
{
	if (!sw_bitmap_add_word_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		begin_word(l, t, set, local);
}

static inline void leave(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local)
{
	if (!sw_bitmap_remove_word_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		sw_todo_end_word(l, t, set, local);
}

static void count_todo(struct sw_link *l, struct sw_part *p, uint32_t n)
{
	p->n_todo += n;
	l->n_todo += n;
	sw_link_touch(l);
}

void sw_todo_remove(struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_part *p = &t->parts[l->peer.index];
	struct sw_wchunk *c = &t->chunks[record];

	c->is_todo = false;
	count_todo(l, p, UINT32_MAX);
	leave(l, t, SW_TODO, record - p->from);
	if (c->n_sent)
		leave(l, t, SW_AGAIN, record - p->from);
}

void sw_todo_again(struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_part *p = &t->parts[l->peer.index];
	struct sw_wchunk *c = &t->chunks[record];

	sw_todo_unwait(l, t, record);
	c->state = SW_GRAD;
	c->is_todo = true;
	count_todo(l, p, 1);
	enter(l, t, SW_TODO, record - p->from);
	enter(l, t, SW_AGAIN, record - p->from);
}

uint32_t sw_todo_take_again(struct sw_link *l, struct sw_wtensor *t)
{
	const struct sw_part *p = &t->parts[l->peer.index];
	uint32_t record = p->from + sw_bitmap_least_in(&p->sets[SW_AGAIN], 0);

	sw_todo_remove(l, t, record);
	return record;
}

void sw_todo_start(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record, uint32_t n)
{
	struct sw_part *p = &t->parts[l->peer.index];

	for (uint32_t i = record; i < record + n; i++)
		t->chunks[i] = (struct sw_wchunk){
			.state = SW_GRAD, .is_charged = true, .is_todo = true};
	sw_bitmap_add_run(&p->sets[SW_TODO], record - p->from, n);
	count_todo(l, p, n);
	if (p->n_todo == n)
		link_add(l, t, SW_TODO);
}

void sw_todo_drop(struct sw_worker *w, struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];
		struct sw_part *p = &t->parts[i];

		count_todo(l, p, -p->n_todo);
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			if (!sw_bitmap_is_empty(&p->sets[s]))
				link_remove(l, t, s);
		sw_flow_expect(&l->peer.flow, -(int32_t)p->n_awaited);
		p->n_awaited = 0;
		l->n_folded -= p->n_folded;
		p->n_folded = 0;
	}
}

void sw_todo_expect(struct sw_link *l, const struct sw_wtensor *t,
	uint32_t record, bool is_away)
{
	const struct sw_piece *p =
		t->stream ? &t->stream->pieces[record] : NULL;
	uint32_t n = sw_flow_quanta(&l->peer.flow,
		p ? p->gets * p->bytes : sw_wtensor_bytes(t, record));

	n = is_away ? n : -n;
	t->parts[l->peer.index].n_awaited += n;
	sw_flow_expect(&l->peer.flow, (int32_t)n);
}

/* --- the order of tensors --- */

void sw_todo_admit(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t at = sw_orders_admit(&w->orders, t->index, t->decl.priority);

	for (uint32_t l = 0; l < w->n_links; l++)
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			sw_orders_shift(&w->orders, &w->links[l].sets[s], at);
}

void sw_todo_forget(struct sw_worker *w, const struct sw_wtensor *t)
{
	uint32_t at = sw_orders_remove(&w->orders, t->index);

	for (uint32_t l = 0; l < w->n_links; l++)
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			sw_orders_shift_down(
				&w->orders, &w->links[l].sets[s], at);
}

void sw_todo_renumber(struct sw_worker *w)
{
	sw_orders_renumber(&w->orders);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_touch(&w->links[l]);
}

void sw_todo_set_class(const struct sw_worker *w, struct sw_wtensor *t)
{
	t->class = sw_sched_policy(&w->sched)->by_priority
			   ? sw_class_of(t->decl.priority)
			   : SW_N_CLASSES - 1;
}
