/* todo.h - the frequent part of todo.c: moving one chunk in or out of a set.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_TODO_H
#define SW_ENGINE_WORKER_TODO_H

#include "engine/worker/worker_int.h"

/* sw_todo_enter, sw_todo_leave - put a chunk at @l, by its local index, into a
 * set of its tensor, or take it out.  If it is the only one in its word,
 * sw_todo_begin or sw_todo_end updates the levels above, which is rare. */
void sw_todo_begin(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local);
void sw_todo_end(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local);

static inline void sw_todo_enter(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local)
{
	if (!sw_bitmap_add_word_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		sw_todo_begin(l, t, set, local);
}

static inline void sw_todo_leave(struct sw_link *l, const struct sw_wtensor *t,
	enum sw_todo_set set, uint32_t local)
{
	if (!sw_bitmap_remove_word_in(
		    &t->parts[l->peer.index].sets[set], 0, local))
		sw_todo_end(l, t, set, local);
}

/* sw_todo_held - take a chunk out of all sets, as sw_todo_put.
 * sw_todo_late - let it wait only for its result. */
static inline void sw_todo_held(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_wchunk *c = &t->chunks[record];

	if (c->waits == 1u << SW_LATE) {
		c->waits = 0;
		sw_todo_leave(
			l, t, SW_LATE, record - t->parts[l->peer.index].from);
	} else if (c->waits) {
		sw_todo_put(l, t, record, 0);
	}
}

static inline void sw_todo_late(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_wchunk *c = &t->chunks[record];

	if (c->waits) {
		sw_todo_put(l, t, record, 1u << SW_LATE);
		return;
	}
	c->waits = 1u << SW_LATE;
	sw_todo_enter(l, t, SW_LATE, record - t->parts[l->peer.index].from);
}

#endif
