/* todo.h - the chunks of a link: to push, pushed, or waiting for results.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_TODO_H
#define SW_ENGINE_WORKER_TODO_H

#include "engine/worker/link.h"

/* sw_links_refresh - offer each touched link by its most urgent push, once per
 * burst.  In a class the more urgent tensor goes first, and its links by
 * progress, so all servers get their last chunk at about the same time. */
void sw_links_refresh(struct sw_worker *w);

/* sw_todo_take - take the lowest record to push out of the sets of @p, the part
 * of @t at @l, retransmissions first.  Touch @l next.
 * sw_todo_take_again - the same, if there are retransmissions.
 * sw_todo_end_word - finish the removal of the last chunk in a word of a set.
 * sw_todo_remove - take a record out of the sets, which must have it.  Touches
 * @l. */
uint32_t sw_todo_take_again(struct sw_link *l, struct sw_wtensor *t);
void sw_todo_end_word(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local);
void sw_todo_remove(struct sw_link *l, struct sw_wtensor *t, uint32_t record);

static inline uint32_t sw_todo_take(
	struct sw_link *l, struct sw_wtensor *t, struct sw_part *p)
{
	uint32_t local;

	if (!sw_bitmap_is_empty(&p->sets[SW_AGAIN]))
		return sw_todo_take_again(l, t);
	local = sw_bitmap_least_in(&p->sets[SW_TODO], 0);
	t->chunks[p->from + local].is_todo = false;
	p->n_todo--;
	l->n_todo--;
	if (!sw_bitmap_remove_word_in(&p->sets[SW_TODO], 0, local))
		sw_todo_end_word(l, t, SW_TODO, local);
	return p->from + local;
}

/* sw_todo_start - start @n chunks in a row at @l, which are in no set: put them
 * into SW_TODO.  Touches @l.
 * sw_todo_again - queue a pushed chunk for retransmission.  Touches @l. */
void sw_todo_start(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record, uint32_t n);
void sw_todo_again(struct sw_link *l, struct sw_wtensor *t, uint32_t record);

/* sw_todo_expect - reserve (@is_away) or release the grant that the server
 * needs to send the result of a record. */
void sw_todo_expect(struct sw_link *l, const struct sw_wtensor *t,
	uint32_t record, bool is_away);

/* sw_todo_fold - note that the server has folded a pushed chunk, whose result
 * is missing.  sw_todo_note_folded - count @n chunks that have become FOLDED.
 * sw_todo_unwait - stop waiting for the result of a chunk, if it was pushed.
 * sw_todo_hold - make a chunk HELD, from any state. */
static inline void sw_todo_note_folded(
	struct sw_link *l, struct sw_wtensor *t, uint32_t n)
{
	t->parts[l->peer.index].n_folded += n;
	l->n_folded += n;
}

static inline void sw_todo_fold(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	t->chunks[record].state = SW_FOLDED;
	sw_todo_note_folded(l, t, 1);
}

static inline void sw_todo_unwait(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	const struct sw_wchunk *c = &t->chunks[record];

	if (c->state == SW_FOLDED) {
		t->parts[l->peer.index].n_folded--;
		l->n_folded--;
	}
	if (sw_flow_is_shared(&l->peer.flow) && c->state >= SW_PUSHED)
		sw_todo_expect(l, t, record, false);
}

static inline void sw_todo_hold(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_wchunk *c = &t->chunks[record];

	sw_todo_unwait(l, t, record);
	c->state = SW_HELD;
	if (c->is_todo)
		sw_todo_remove(l, t, record);
}

/* sw_todo_drop - remove the tensor from the sets of all links, when its round
 * is dropped; its own sets and records stay as they are.  Touches all links. */
void sw_todo_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_todo_admit - give the tensor, which has just got its key, its place in the
 * order.
 * sw_todo_forget - remove the tensor, which has nothing open, from the order.
 * sw_todo_renumber - finish a series of these calls.  Touches all links. */
void sw_todo_admit(struct sw_worker *w, struct sw_wtensor *t);
void sw_todo_forget(struct sw_worker *w, const struct sw_wtensor *t);
void sw_todo_renumber(struct sw_worker *w);

/* sw_todo_set_class - set the class of the tensor's pushes: by its priority, or
 * the last one if the policy ignores priorities.  None of its chunks may be in
 * a set. */
void sw_todo_set_class(const struct sw_worker *w, struct sw_wtensor *t);

#endif
