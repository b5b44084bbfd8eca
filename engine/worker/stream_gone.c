/* stream_gone.c - free the streams that all local ranks have closed.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each lane forgets a stream when nothing of it is open there and its servers
 * have acknowledged CLOSE.  Lane 0 does so last, and tells the coordinator
 * then: the coordinator may give the index of the key to another stream, and a
 * lane or a server that still had the old one could not take it.  The control
 * thread frees the stream's memory.  Frames that still come under the old key
 * are acknowledged and ignored.
 */
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"

enum { LOOK_MAX = 16 }; /* streams that a turn looks at */

void sw_tensor_closed(struct sw_worker *w, struct sw_wtensor *t)
{
	t->is_closed = true;
	sw_bitmap_add(&w->closing, t->index);
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].server_i)
			sw_link_close(&w->links[i], t);
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

/* Is this lane done with the stream, and do its servers, except the
 * coordinator, know that it is closed? */
static bool is_through(const struct sw_worker *w, const struct sw_wtensor *t)
{
	if (!t->is_closed || t->is_open || t->n_lanes ||
		sw_bitmap_has(&w->dying, t->index))
		return false;
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].server_i &&
			!sw_link_knows_closed(&w->links[i], t))
			return false;
	return true;
}

/* Have the other lanes forgotten the stream, and has lane 0 taken all their
 * earlier reports? */
static bool have_others(const struct sw_worker *w, const struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		if (!atomic_load(&t->stream->lanes[i].has_gone) ||
			!sw_spsc_is_empty(&w->lanes[i].reports_out))
			return false;
	return true;
}

/* Is the group of @t closed at the coordinator?  Lane 0 asks this last, since
 * the coordinator may then reuse the indices of the group's keys. */
static bool is_closed_last(struct sw_worker *w, const struct sw_wtensor *t)
{
	struct sw_link *l = &w->links[0];
	const struct sw_wtensor *u = NULL;

	if (t->parts[0].close_number)
		return true;
	while ((u = sw_wtensor_kin(w, t, u)))
		if (!is_through(w, u) || !have_others(w, u))
			return false;
	sw_link_close(l, t);
	return sw_link_knows_closed(l, t);
}

static void forget(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t i = t->index;

	if (t->key != SW_KEY_NONE) {
		/* lane 0 dropped the key when it told the coordinator */
		if (w->lane_i)
			w->by_key[sw_key_index(t->key)] = SW_KEY_NONE;
		if (w->by_group[sw_key_index(t->first)] == t->index)
			w->by_group[sw_key_index(t->first)] = SW_KEY_NONE;
		sw_todo_forget(w, t);
	}
	sw_stream_remove(w, t);
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

/* Close a stream while this member leaves the job.  The coordinator then need
 * not be told last. */
static bool close_to_leave(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_link *l = &w->links[0];

	sw_link_close(l, t);
	if (sw_bitmap_has(&l->closes, t->index))
		return false;
	sw_bitmap_remove(&w->closing, t->index);
	sw_peer_wake(&l->peer, 0); /* LEAVE may wait for this */
	return true;
}

/* Forget a closed stream if nothing needs it.  Returns whether it did. */
static bool work_on(struct sw_worker *w, struct sw_wtensor *t)
{
	if (w->left_by_ns && !w->lane_i)
		return close_to_leave(w, t);
	if (!is_through(w, t) || !have_others(w, t) ||
		(!w->lane_i && !is_closed_last(w, t)))
		return false;
	forget(w, t);
	return true;
}

uint32_t sw_stream_gone_work(struct sw_worker *w)
{
	uint32_t n = 0;

	for (uint32_t looks = 0; looks < LOOK_MAX; looks++) {
		uint32_t i = sw_bitmap_next(&w->closing, w->close_turn);

		w->close_turn = i == SW_BITMAP_NONE ? 0 : i + 1;
		if (i == SW_BITMAP_NONE)
			break;
		n += work_on(w, &w->tensors[i]);
	}
	if (n)
		sw_todo_renumber(w);
	return n;
}
