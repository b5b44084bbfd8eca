/* todo.h - what is frequent of todo.c: a chunk among others changes a bit.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TODO_H
#define SW_TODO_H

#include "engine/worker/worker_int.h"

/* sw_todo_held - as sw_todo_put: it waits for nothing; sw_todo_late - for its
 * result alone. */
static inline void sw_todo_held(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_part *p = &t->parts[l->peer.index];
	struct sw_wchunk *c = &t->chunks[record];

	if (c->waits == 1u << SW_LATE &&
		sw_bitmap_part(&p->sets[SW_LATE], record - p->from))
		c->waits = 0;
	else if (c->waits)
		sw_todo_put(l, t, record, 0);
}

static inline void sw_todo_late(
	struct sw_link *l, struct sw_wtensor *t, uint32_t record)
{
	struct sw_part *p = &t->parts[l->peer.index];
	struct sw_wchunk *c = &t->chunks[record];

	if (!c->waits && sw_bitmap_join(&p->sets[SW_LATE], record - p->from))
		c->waits = 1u << SW_LATE;
	else
		sw_todo_put(l, t, record, 1u << SW_LATE);
}

#endif
