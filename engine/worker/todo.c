/* todo.c - chunks to push and results to wait for, by link, in order.
 * SPDX-License-Identifier: BSD-3-Clause */

#include "engine/base/bytes.h"
#include "engine/sched/order.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"

enum {
	LATE_SCAN = 256,  /* chunks looked at for one QUERY */
	STREAM_SCAN = 64, /* tensors looked at, some of which are streams */
};

/* --- links by urgency --- */

/* Return a link's key in its class: order, then progress.  If links have made
 * equal progress, members that began together begin at different links. */
static uint64_t turn_key(
	const struct sw_wtensor *t, uint32_t order, uint32_t link)
{
	const struct sw_part *p = &t->parts[link];
	uint64_t local = sw_bitmap_first(&p->sets[SW_TODO]);

	return (uint64_t)order << 32 |
	       (local * p->turn_step + (link ^ t->worker->member));
}

static void refresh(struct sw_worker *w, struct sw_link *l)
{
	struct sw_due *due = &w->due[l->peer.path.port_i];
	uint32_t order = l->state == SW_LINK_OPEN
				 ? sw_bitmap_first(&l->sets[SW_TODO])
				 : SW_BITMAP_NONE;
	uint32_t class = SW_N_CLASSES;

	if (order != SW_BITMAP_NONE) {
		l->next = &w->tensors[sw_orders_at(&w->orders, order)];
		class = l->next->class;
		w->turn_keys[l->peer.index] =
			turn_key(l->next, order, l->peer.index);
	}
	sw_peer_offer(&l->peer, due, class);
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

/* Not inline: in the loop over sets compilers would compute every level of
 * every bitmap before they look at the first. */
__attribute__((noinline)) void sw_todo_begin(struct sw_link *l,
	const struct sw_wtensor *t, enum sw_todo_set set, uint32_t local)
{
	if (sw_bitmap_add_above_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		sw_bitmap_add(&l->sets[set], number_of(l, t));
}

__attribute__((noinline)) void sw_todo_end(struct sw_link *l,
	const struct sw_wtensor *t, enum sw_todo_set set, uint32_t local)
{
	if (sw_bitmap_remove_above_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		sw_bitmap_remove(&l->sets[set], number_of(l, t));
}

static void count_todo(struct sw_link *l, struct sw_part *p, uint32_t n)
{
	p->n_todo += n;
	l->n_todo += n;
	sw_link_touch(l);
}

void sw_todo_put(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record, uint32_t sets)
{
	struct sw_part *p = &t->parts[l->peer.index];
	struct sw_wchunk *c = &t->chunks[record];
	uint32_t local = record - p->from, change = c->waits ^ sets;

	c->waits = (uint8_t)(sets & ((1u << SW_N_TODO_SETS) - 1));
	if (change >> SW_TODO & 1)
		count_todo(l, p, sets >> SW_TODO & 1 ? 1 : UINT32_MAX);
	for (; change; change &= change - 1) {
		uint32_t s = (uint32_t)__builtin_ctz(change);

		if (sets >> s & 1)
			sw_todo_enter(l, t, s, local);
		else
			sw_todo_leave(l, t, s, local);
	}
}

uint32_t sw_todo_take(struct sw_link *l, struct sw_wtensor *t)
{
	struct sw_part *p = &t->parts[l->peer.index];
	enum sw_todo_set from =
		sw_bitmap_is_empty(&p->sets[SW_AGAIN]) ? SW_TODO : SW_AGAIN;
	uint32_t local = sw_bitmap_least_in(&p->sets[from], 0);
	uint32_t record = p->from + local;

	if (t->chunks[record].waits != 1u << SW_TODO) {
		sw_todo_put(l, t, record, 0);
		return record;
	}
	t->chunks[record].waits = 0;
	count_todo(l, p, UINT32_MAX);
	sw_todo_leave(l, t, SW_TODO, local);
	return record;
}

void sw_todo_start(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record, uint32_t n)
{
	struct sw_part *p = &t->parts[l->peer.index];

	for (uint32_t i = record; i < record + n; i++)
		t->chunks[i] = (struct sw_wchunk){.state = SW_GRAD,
			.is_charged = true,
			.waits = 1u << SW_TODO};
	sw_bitmap_add(&l->sets[SW_TODO], number_of(l, t));
	sw_bitmap_add_run(&p->sets[SW_TODO], record - p->from, n);
	count_todo(l, p, n);
}

void sw_todo_drop(struct sw_worker *w, struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];
		struct sw_part *p = &t->parts[i];

		count_todo(l, p, -p->n_todo);
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			if (!sw_bitmap_is_empty(&p->sets[s]))
				sw_bitmap_remove(&l->sets[s], number_of(l, t));
		sw_flow_expect(&l->peer.flow, -(int32_t)p->n_awaited);
		p->n_awaited = 0;
	}
}

/* --- late results --- */

/* Put a result into the next QUERY if it is late. */
static void ask_for(struct sw_worker *w, struct sw_link *l,
	const struct sw_wtensor *t, uint32_t local)
{
	const struct sw_part *p = &t->parts[l->peer.index];
	uint32_t record = p->from + local;
	struct sw_wchunk *c = &t->chunks[record];

	if (w->now_ns - c->t_ns < l->query_wait_ns)
		return;
	c->t_ns = w->now_ns;
	l->queries[l->n_queries++] = (struct sw_query){.key = t->key,
		.round = t->stream ? t->stream->pieces[record].j : t->round,
		.chunk = t->stream ? 0 : sw_place_global(&p->place, local)};
}

void sw_todo_ask(struct sw_worker *w, struct sw_link *l)
{
	const struct sw_bitmap *late = &l->sets[SW_LATE];
	uint32_t order = sw_bitmap_next(late, l->query_order);
	uint32_t i = order == l->query_order ? l->query_local : 0;

	for (uint32_t n = 0; order != SW_BITMAP_NONE;
		order = sw_bitmap_next(late, order + 1), i = 0) {
		const struct sw_wtensor *t =
			&w->tensors[sw_orders_at(&w->orders, order)];
		const struct sw_part *p = &t->parts[l->peer.index];

		while ((i = sw_bitmap_next(&p->sets[SW_LATE], i)) !=
			SW_BITMAP_NONE) {
			if (n++ == LATE_SCAN || l->n_queries == SW_QUERY_MAX) {
				l->query_order = order;
				l->query_local = i;
				return;
			}
			ask_for(w, l, t, i++);
		}
	}
	l->query_order = l->query_local = 0; /* the sweep is over */
}

static void ask_stream(
	struct sw_worker *w, struct sw_link *l, const struct sw_wtensor *t)
{
	const struct sw_stream_link *sl =
		t->stream ? &t->stream->links[l->peer.index] : NULL;
	uint32_t number = sw_stream_awaits(w, t);

	if (sl && (sl->is_blocked || number))
		l->queries[l->n_queries++] = (struct sw_query){
			.key = t->key, .round = sl->base - 1, .chunk = number};
}

void sw_streams_ask(struct sw_worker *w, struct sw_link *l)
{
	uint32_t i = sw_bitmap_next(&w->open, l->query_stream), first = 0;

	for (uint32_t n = 0; n < STREAM_SCAN && l->n_queries < SW_QUERY_MAX / 2;
		n++) {
		if (i == SW_BITMAP_NONE)
			i = sw_bitmap_first(&w->open);
		if (i == SW_BITMAP_NONE || (n && i == first))
			break;
		first = n ? first : i;
		ask_stream(w, l, &w->tensors[i]);
		l->query_stream = i + 1;
		i = sw_bitmap_next(&w->open, i + 1);
	}
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

static bool move_order(void *ctx, uint32_t index, uint32_t from, uint32_t to)
{
	struct sw_worker *w = ctx;

	for (uint32_t l = 0; l < w->n_links; l++)
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			sw_bitmap_move(&w->links[l].sets[s], from, to);
	return w->tensors[index].is_open;
}

void sw_todo_take_place(struct sw_worker *w, struct sw_wtensor *t)
{
	bool by_priority = sw_sched_policy(&w->sched)->by_priority;

	t->is_fifo = !by_priority;
	t->class =
		by_priority ? sw_class_of(t->decl.priority) : SW_N_CLASSES - 1;
	sw_orders_take(&w->orders, t->index, by_priority, move_order, w);
}
