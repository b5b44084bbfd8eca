/* marks.c - the results to send to each member, and their order.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/rules.h"

/* Shift the ready bits of the orders behind the new one, because members may
 * declare a batch while other tensors are summed. */
void sw_marks_admit(struct sw_shard *sh, struct sw_stensor *t)
{
	uint32_t at =
		sw_orders_admit(&sh->orders, sw_key_index(t->key), t->priority);

	sh->n_tensors++;
	for (uint32_t m = 0; m < sh->n_members; m++)
		if (!sw_bitmap_is_empty(&sh->ready[m]))
			sw_orders_shift(&sh->orders, &sh->ready[m], at);
}

void sw_marks_forget(struct sw_shard *sh, const struct sw_stensor *t)
{
	uint32_t at = sw_orders_remove(&sh->orders, sw_key_index(t->key));

	sh->n_tensors--;
	for (uint32_t m = 0; m < sh->n_members; m++)
		sw_orders_shift_down(&sh->orders, &sh->ready[m], at);
}

void sw_marks_begin(struct sw_shard *sh, struct sw_stensor *t, uint64_t members,
	uint32_t local)
{
	uint32_t i = sw_key_index(t->key);

	for (; members; members &= members - 1) {
		uint32_t m = (uint32_t)__builtin_ctzll(members);

		if (!sw_bitmap_add_above_in(
			    &t->marks, sw_marks_at(t, m), local))
			continue;
		t->n_ready++;
		sw_bitmap_add(&sh->ready[m], sw_orders_update(&sh->orders, i));
	}
}

static void leave_order(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t member)
{
	sw_bitmap_remove(&sh->ready[member],
		sw_orders_number(&sh->orders, sw_key_index(t->key)));
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
