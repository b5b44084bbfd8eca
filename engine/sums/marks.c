/* marks.c - which results wait for whom, and in which order they go.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/rules.h"

#include "engine/base/bytes.h"
#include "engine/sched/order.h"

/* Orders from @at on, of those by priority, move up by one, and so do the
 * tensors that have them.  Of a row of neighbours only the ends change. */
static void shift_up(struct sw_shard *sh, struct sw_bitmap *b, uint32_t at)
{
	uint32_t n = sh->n_tensors - 1;
	uint32_t from = sw_bitmap_next(b, at), end;

	for (; from < n; from = sw_bitmap_next(b, end + 1)) {
		for (end = from; end < n && sw_bitmap_has(b, end);) {
			end++;
			sh->tensors[sh->by_order[end]].order = end;
		}
		sw_bitmap_remove(b, from);
		sw_bitmap_add(b, end);
	}
}

/* The order before which no tensor is that goes behind @t. */
static uint32_t find_order(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	uint32_t low = 0, high = sh->n_tensors;

	while (low < high) {
		uint32_t mid = (low + high) / 2;
		const struct sw_stensor *b = &sh->tensors[sh->by_order[mid]];

		if (b->priority < t->priority ||
			(b->priority == t->priority && b->key < t->key))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Insert the tensor by (priority, key); of the others only those are touched
 * that have marks.  Marks that are set move along: a batch may be declared
 * while others are summed. */
void sw_marks_admit(struct sw_shard *sh, struct sw_stensor *t)
{
	uint32_t at = find_order(sh, t), n = sh->n_tensors++;

	memmove(&sh->by_order[at + 1], &sh->by_order[at],
		(n - at) * sizeof(*sh->by_order));
	sh->by_order[at] = t->key;
	sh->n_numbered = (uint32_t)sw_min64(sh->n_numbered, at);
	for (uint32_t m = 0; m < sh->n_members; m++)
		shift_up(sh, &sh->ready[m], at);
}

/* If it has marks and goes by number @from, it goes by @to. */
static bool move_order(void *ctx, uint32_t key, uint32_t from, uint32_t to)
{
	struct sw_shard *sh = ctx;
	struct sw_stensor *t = &sh->tensors[key];

	if (!t->n_ready || t->order != from)
		return false;
	for (uint32_t m = 0; m < sh->n_members; m++)
		sw_bitmap_move(&sh->ready[m], from, to);
	t->order = to;
	return true;
}

/* After a batch. */
static void number(struct sw_shard *sh)
{
	for (; sh->n_numbered < sh->n_tensors; sh->n_numbered++)
		sh->precedence[sh->by_order[sh->n_numbered]] = sh->n_numbered;
}

/* It has no marks: it goes by priority, or behind all that have some. */
static void take_place(struct sw_shard *sh, struct sw_stensor *t)
{
	number(sh);
	t->order = sh->precedence[t->key];
	t->class = sw_class_of(t->priority);
	if (!t->is_fifo)
		return;
	t->class = SW_N_CLASSES - 1;
	t->order = sw_order_take(sh->by_order, &sh->next_order, SW_MAX_TENSORS,
		t->key, move_order, sh);
}

void sw_marks_begin(struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	uint32_t local)
{
	if (!sw_bitmap_add_above_in(&t->marks, sw_marks_at(t, member), local))
		return;
	if (!t->n_ready++)
		take_place(sh, t);
	sw_bitmap_add(&sh->ready[member], t->order);
}

static void leave_order(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t member)
{
	sw_bitmap_remove(&sh->ready[member], t->order);
	t->n_ready--;
}

void sw_marks_end(struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	uint32_t local)
{
	if (sw_bitmap_remove_above_in(&t->marks, sw_marks_at(t, member), local))
		leave_order(sh, t, member);
}

void sw_marks_drop(struct sw_shard *sh, struct sw_stensor *t)
{
	for (uint32_t m = 0; m < sh->n_members && t->n_ready; m++)
		if (!sw_bitmap_is_empty_in(&t->marks, sw_marks_at(t, m)))
			leave_order(sh, t, m);
}
