/* stream_gone.c - free the streams that all local ranks have closed.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each lane forgets a stream when nothing of it is open there and all its
 * servers have confirmed that it is closed; lane 0 does so last.  Then the
 * control thread frees the stream's memory, and another stream may take its
 * index and that of its key.  Frames that still come under the old key are
 * acknowledged and ignored.
 */
#include "engine/worker/stream.h"

enum { LOOK_MAX = 16 }; /* streams that a turn looks at */

void sw_tensor_closed(struct sw_worker *w, struct sw_wtensor *t)
{
	t->is_closed = true;
	sw_bitmap_add(&w->closing, t->index);
	sw_tensor_tell(w, t);
}

/* Have all local ranks closed it?  Ranks that are gone count as closed. */
static bool is_left(const struct sw_worker *w, const struct sw_stream *s)
{
	uint64_t in = 0;

	for (uint32_t i = 0; i < SW_LOCAL_WORDS; i++)
		in |= s->group.has_local[i] & ~s->closed[i] &
		      ~w->deaths.gone[i];
	return !in;
}

/* Has the check for dead ranks not reached this stream yet? */
static bool is_judged(const struct sw_worker *w, const struct sw_wtensor *t)
{
	return w->deaths.step == SW_DEATHS_JUDGED ||
	       sw_bitmap_has(&w->lacking, t->index);
}

void sw_stream_check_left(struct sw_worker *w, struct sw_wtensor *t)
{
	if (!t->stream || t->is_closed || (t->is_open && !t->dead_from) ||
		sw_worker_end_of(w) || is_judged(w, t) ||
		!is_left(w, t->stream))
		return;
	sw_tensor_closed(w, t);
	sw_lane_closed(w, t);
}

void sw_stream_close(struct sw_worker *w, struct sw_wtensor *t, uint32_t local)
{
	struct sw_stream *s = t->stream;

	if (sw_wgroup_has_local(&s->group, local)) {
		sw_bits_add(s->closed, local);
		s->has_closed = true;
	}
	sw_stream_check_left(w, t);
}

/* Has this lane nothing to do with it any more? */
static bool is_through(const struct sw_worker *w, const struct sw_wtensor *t)
{
	if (t->is_open || t->n_lanes || sw_bitmap_has(&w->dying, t->index))
		return false;
	for (uint32_t i = 0; i < w->n_links; i++) {
		const struct sw_link *l = &w->links[i];

		if (t->number >= l->n_declared ||
			sw_bitmap_has(&l->dead, t->index))
			return false;
	}
	return true;
}

/* Have the others forgotten it, and has all been taken that they said before?
 */
static bool have_others(const struct sw_worker *w, const struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		if (!atomic_load(&t->stream->lanes[i].has_gone) ||
			!sw_spsc_is_empty(&w->lanes[i].reports_out))
			return false;
	return true;
}

static void forget(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t i = t->index;

	if (t->key != SW_KEY_NONE) {
		w->by_key[sw_key_index(t->key)] = SW_KEY_NONE;
		sw_todo_forget(w, t);
	}
	sw_stream_remove(w, t);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_bitmap_remove(&w->links[l].told, i);
	w->n_dead -= t->dead_from != 0;
	sw_bitmap_remove(&w->closing, i);
	sw_bitmap_remove(&w->lacking, i);
	sw_bitmap_remove(&w->added, i);
	if (w->look.worst == i)
		w->look.worst = SW_TENSORS;
	if (w->lane_i)
		atomic_store(&sw_stream_lane(w, i)->has_gone, true);
	else if (w->events.gone)
		w->events.gone(w->events.ctx, t->id);
}

uint32_t sw_stream_gone_work(struct sw_worker *w)
{
	uint32_t n = 0;

	for (uint32_t looks = 0; looks < LOOK_MAX; looks++) {
		uint32_t i = sw_bitmap_next(&w->closing, w->close_turn);
		struct sw_wtensor *t;

		w->close_turn = i == SW_BITMAP_NONE ? 0 : i + 1;
		if (i == SW_BITMAP_NONE)
			break;
		t = &w->tensors[i];
		if (is_through(w, t) && have_others(w, t)) {
			forget(w, t);
			n++;
		}
	}
	if (n)
		sw_todo_renumber(w);
	return n;
}
