/* stream_window.c - admit chunks of a stream to its windows, and start them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "engine/base/bytes.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"

void sw_stream_block(
	struct sw_link *l, struct sw_stream_link *sl, bool is_blocked)
{
	if (is_blocked)
		sw_peer_wake(&l->peer, 0);
	l->n_blocked += is_blocked;
	l->n_blocked -= sl->is_blocked;
	sl->is_blocked = is_blocked;
}

/* Is there room for all chunks that one WANT asks for?  These are the ones of
 * the collective up to the next multiple of run. */
static bool fits(const struct sw_wtensor *t, const struct sw_stream_link *sl)
{
	uint32_t run = (uint32_t)sw_min64(SW_WANT_MAX, sw_stream_window(t) / 4);
	uint32_t more = (uint32_t)sw_min64(
		run - 1 - (sl->next & (run - 1)), sl->share.n - 1 - sl->at);

	return sl->next - sl->base + more < sw_stream_window(t);
}

static void enter_one(struct sw_wtensor *t, const struct sw_link *l,
	struct sw_stream_link *sl, struct sw_piece *p)
{
	struct sw_stream *s = t->stream;
	uint32_t chunk = l->peer.index << t->decl.window_log2 |
			 (sl->next & (sw_stream_window(t) - 1));

	sl->at++;
	p->j = sl->next++;
	s->pieces[chunk] = *p;
	t->chunks[chunk] = (struct sw_wchunk){.state = SW_GRAD};
	s->entered[s->head++ % s->n_entered] = chunk;
}

/* Let the next contiguous chunks of @c enter, up to @max and as far as the
 * window allows.  Returns how many; adds the credit that they take to *cost. */
static uint32_t enter(struct sw_worker *w, struct sw_wtensor *t,
	struct sw_link *l, struct sw_coll *c, uint32_t max, uint64_t *cost)
{
	struct sw_stream *s = t->stream;
	struct sw_stream_link *sl = &s->links[l->peer.index];
	uint32_t n = sw_stream_window(t) - (sl->next - sl->base);
	struct sw_piece p;

	n = n < max ? n : max;
	if (!n)
		return 0;
	p = sw_piece_of(w, s, c, sw_coll_share_at(c, &sl->share, sl->at));
	if (!p.gives && !fits(t, sl))
		return 0;
	max = p.gives ? sw_coll_share_run(&sl->share, &p, sl->at) : 1;
	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			sw_piece_go_on(&sl->share, &p);
		enter_one(t, l, sl, &p);
		*cost += p.cost;
	}
	return n;
}

/* Return the collective whose chunks enter next at @l; NULL: none. */
static struct sw_coll *coll_to_enter(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_link *l)
{
	struct sw_stream *s = t->stream;
	struct sw_stream_link *sl = &s->links[l->peer.index];

	for (; sl->coll != s->n_colls; sl->coll++, sl->at = 0) {
		struct sw_coll *c = &s->colls[sl->coll % SW_COLLS];

		if (!sl->at)
			sl->share = sw_coll_share(w, s, c, l->server_i);
		if (sl->at < sl->share.n)
			return c;
	}
	return NULL;
}

/* Let a few chunks of one link enter.  Returns the credit that they take. */
static uint64_t enter_some(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_link *l)
{
	struct sw_stream_link *sl = &t->stream->links[l->peer.index];
	uint64_t cost = 0;

	for (uint32_t left = SW_STREAM_BURST, n; left; left -= n) {
		struct sw_coll *c = coll_to_enter(w, t, l);

		n = c ? enter(w, t, l, c, left, &cost) : 0;
		sw_stream_block(l, sl, c && !n);
		if (!n)
			break;
	}
	return cost;
}

/* Return the next part in bytes: whole chunks, in the order in which they
 * entered. */
static uint64_t part_of(
	const struct sw_task *task, uint64_t from, uint64_t unit)
{
	const struct sw_wtensor *t = sw_wtensor_of(task);
	const struct sw_stream *s = t->stream;
	uint64_t bytes = 0;

	for (uint32_t i = s->tail; i != s->head; i++) {
		uint32_t cost = s->pieces[s->entered[i % s->n_entered]].cost;

		if (bytes && bytes + cost > unit)
			break;
		bytes += cost;
	}
	return bytes;
}

/* Return the slot to start next, of which there must be one. */
static uint32_t next_entered(const struct sw_stream *s)
{
	return s->entered[s->tail % s->n_entered];
}

static void start_part(struct sw_task *task, uint64_t from, uint64_t bytes)
{
	struct sw_wtensor *t = sw_wtensor_of(task);
	struct sw_worker *w = t->worker;
	struct sw_stream *s = t->stream;

	for (uint64_t sum = 0; sum < bytes && s->tail != s->head;) {
		uint32_t first = next_entered(s), n = 0;

		do { /* slots in a row */
			sum += s->pieces[first + n++].cost;
			s->tail++;
		} while (sum < bytes && s->tail != s->head &&
			 next_entered(s) == first + n &&
			 (first + n) & (sw_stream_window(t) - 1));
		sw_todo_start(
			&w->links[first >> t->decl.window_log2], t, first, n);
	}
}

/* Return the chunk that was started @n before the last one, while the ring
 * still has it. */
static uint32_t started(const struct sw_stream *s, uint32_t n)
{
	return s->head - s->tail + n < s->n_entered
		       ? s->entered[(s->tail - 1 - n) % s->n_entered]
		       : UINT32_MAX;
}

/* Is the chunk started, and was it never sent? */
static bool is_here(const struct sw_wtensor *t, uint32_t chunk)
{
	return chunk != UINT32_MAX && t->chunks[chunk].is_charged &&
	       t->chunks[chunk].state == SW_GRAD && !t->chunks[chunk].n_sent;
}

static uint64_t take_back(struct sw_task *task, uint64_t bytes)
{
	struct sw_wtensor *t = sw_wtensor_of(task);
	struct sw_worker *w = t->worker;
	struct sw_stream *s = t->stream;
	uint64_t taken = 0;

	for (; taken < bytes && is_here(t, started(s, 0)) &&
		is_here(t, started(s, 1));
		s->tail--) {
		uint32_t chunk = started(s, 0);

		t->chunks[chunk].is_charged = false;
		sw_todo_remove(
			&w->links[chunk >> t->decl.window_log2], t, chunk);
		taken += s->pieces[chunk].cost;
	}
	return taken;
}

static const struct sw_task_ops task_ops = {.has_rows = true,
	.partition = part_of,
	.start = start_part,
	.take_back = take_back};

/* Let chunks enter as the windows of @n links from @first on allow, in turns.
 * Does nothing if all ranks are local. */
static void enter_links(struct sw_worker *w, struct sw_wtensor *t,
	struct sw_link *first, uint32_t n)
{
	uint64_t cost = 0, more = !sw_stream_is_here(w, t->stream);
	int err;

	while (more) {
		more = 0;
		for (uint32_t l = 0; l < n; l++)
			more += enter_some(w, t, &first[l]);
		cost += more;
	}
	if (!cost)
		return;
	t->task.ops = &task_ops;
	t->task.priority = t->decl.priority;
	err = sw_task_extend(&w->sched, &t->task, cost);
	assert(!err);
	(void)err;
	sw_sched_run(&w->sched);
}

void sw_stream_enter(struct sw_worker *w, struct sw_wtensor *t)
{
	enter_links(w, t, w->links, w->n_links);
}

void sw_stream_settle(struct sw_worker *w)
{
	struct sw_wtensor *t = w->moved;

	w->moved = NULL;
	if (t && t->is_open && !t->life->from)
		enter_links(w, t, w->moved_at, 1);
}
