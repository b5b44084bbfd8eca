/* stream.c - streams of collectives at a worker: a window of chunks per link.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stream.h"

#include <assert.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/piece.h"
#include "engine/worker/todo.h"

/* --- chunks enter the windows --- */

static void block(struct sw_link *l, struct sw_stream_link *sl, bool is_blocked)
{
	if (is_blocked)
		sw_peer_wake(&l->peer, 0);
	l->n_blocked += is_blocked;
	l->n_blocked -= sl->is_blocked;
	sl->is_blocked = is_blocked;
}

/* Does the window have room for all chunks that one WANT asks for?  A WANT asks
 * for the chunks of the collective up to the next multiple of run. */
static bool fits(const struct sw_wtensor *t, const struct sw_stream_link *sl)
{
	uint32_t run = (uint32_t)sw_min64(SW_WANT_MAX, sw_stream_window(t) / 4);
	uint32_t more = (uint32_t)sw_min64(
		run - 1 - (sl->next & (run - 1)), sl->share.n - 1 - sl->at);

	return sl->next - sl->base + more < sw_stream_window(t);
}

/* Let the next contiguous chunks of @c enter, up to @max and as far as the
 * window allows.  Returns how many; adds the credit that they take to *cost. */
static uint32_t enter(struct sw_worker *w, struct sw_wtensor *t,
	struct sw_link *l, struct sw_coll *c, uint32_t max, uint64_t *cost)
{
	struct sw_stream *s = t->stream;
	struct sw_stream_link *sl = &s->links[l->peer.index];
	uint32_t n = sw_stream_window(t) - (sl->next - sl->base), chunk;
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
		chunk = l->peer.index << t->decl.window_log2 |
			(sl->next & (sw_stream_window(t) - 1));
		sl->at++;
		p.j = sl->next++;
		s->pieces[chunk] = p;
		t->chunks[chunk] = (struct sw_wchunk){.state = SW_GRAD};
		s->entered[s->head++ % s->n_entered] = chunk;
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
		block(l, sl, c && !n);
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

/* Return the slot to start next; there must be one. */
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

/* Return the slot that was started @n slots before the last one; UINT32_MAX if
 * the ring has already reused its entry. */
static uint32_t started(const struct sw_stream *s, uint32_t n)
{
	return s->head - s->tail + n < s->n_entered
		       ? s->entered[(s->tail - 1 - n) % s->n_entered]
		       : UINT32_MAX;
}

static bool is_here(const struct sw_wtensor *t, uint32_t chunk)
{
	return chunk != UINT32_MAX && sw_wchunk_is_unsent(&t->chunks[chunk]);
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

static const struct sw_task_ops task_ops = {
	.partition = part_of, .start = start_part, .take_back = take_back};

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

/* --- a stream's life --- */

void sw_stream_drop(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_stream *s = t->stream;

	s->head = s->tail;
	for (uint32_t l = 0; l < w->n_links; l++)
		block(&w->links[l], &s->links[l], false);
}

void sw_stream_build(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_stream *s = t->stream;

	sw_bitmap_add(&w->new_streams, t->index);
	sw_wgroup_fill(w, t->decl.ranks, &s->group);
	t->decl.ranks = NULL; /* the caller may free its list */
	for (uint32_t l = 0; l < w->n_links; l++)
		s->links[l] = (struct sw_stream_link){.base = 1, .next = 1};
	for (uint32_t i = 0; i < SW_COLLS; i++)
		s->colls[i].locals = s->locals + i * w->n_local;
}

void sw_stream_add(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_bitmap_remove(&w->new_streams, t->index);
	sw_life_enter(w, t);
	if (w->deaths.n_gone)
		sw_bitmap_add(&w->lacking, t->index);
}

/* --- the end of a collective --- */

static void note_done(
	struct sw_worker *w, struct sw_stream *s, const struct sw_coll *c)
{
	uint64_t ns = w->now_ns - c->opened_ns;

	sw_histogram_note(&w->stats.coll_ns, ns);
	s->n_done++;
	s->done_bytes += c->ask.n_elems * sw_dtype_bytes(c->ask.dtype);
	s->done_ns += ns;
}

void sw_coll_end(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_coll *c, int err)
{
	const struct sw_wgroup *g = &t->stream->group;
	uint32_t at = c->turn % SW_COLLS;

	c->is_open = false;
	sw_wtensor_set_open(t, --t->stream->n_open > 0);
	w->n_open--;
	if (w->deaths.n_gone && !t->is_open)
		sw_bitmap_add(&w->lacking, t->index);
	if (w->lane_i && !err) { /* this lane holds all its chunks */
		struct sw_stream_lane *l = sw_stream_lane(w, t->index);

		l->weights[at] = c->weight;
		l->are_edited[at] = c->is_edited;
		atomic_fetch_or(&l->done, 1ULL << at);
		sw_lane_tell(w, t);
	}
	if (!err && c->is_edited)
		err = SW_ECORRUPT;
	if (!err && !w->lane_i)
		note_done(w, t->stream, c);
	for (uint32_t i = 0; i < g->n_here; i++)
		if (sw_coll_has_asked(t->stream, c, g->here[i]))
			w->events.done(w->events.ctx, t->id, g->here[i],
				c->locals[g->here[i]].cookie, err, c->weight);
}

static void finish(struct sw_link *l, struct sw_wtensor *t, uint32_t chunk)
{
	struct sw_worker *w = l->worker;
	struct sw_piece *p = &t->stream->pieces[chunk];

	sw_todo_hold(l, t, chunk);
	t->progress_ns = w->now_ns;
	sw_set_word(&t->awaited, 0);
	t->n_missing--;
	if (!p->gets && !sw_coll_is_sum(p->coll->ask.kind))
		sw_piece_copy_own(t->stream, p);
	if (--p->coll->n_left == 0)
		sw_coll_end(w, t, p->coll, 0);
}

/* --- frames --- */

const uint8_t *sw_stream_fill(const struct sw_wtensor *t, uint32_t chunk,
	struct sw_header *h, bool *is_stable)
{
	struct sw_worker *w = t->worker;
	const struct sw_piece *p = &t->stream->pieces[chunk];
	const struct sw_coll *c = p->coll;
	const uint8_t *bytes = NULL;

	h->stream.j = p->j;
	h->stream.collective = c->number;
	h->stream.tag = c->tag;
	h->weight = p->gives ? sw_piece_give(w, t->stream, p, &bytes) : 0;
	*is_stable = bytes != w->made_at;
	if (!*is_stable)
		sw_worker_make(w);
	h->dtype = (uint8_t)c->ask.dtype;
	h->op = sw_coll_op(c->ask.kind, c->ask.op);
	h->stream.root = p->root;
	h->payload_len = p->gives ? p->bytes : 0;
	return bytes;
}

struct sw_wchunk *sw_stream_find(const struct sw_wtensor *t,
	const struct sw_link *l, uint32_t j, uint32_t *chunk)
{
	struct sw_wchunk *c;

	*chunk = l->peer.index << t->decl.window_log2 |
		 (j & (sw_stream_window(t) - 1));
	c = &t->chunks[*chunk];
	return t->n_missing && t->stream->pieces[*chunk].j == j &&
			       c->state != SW_HELD
		       ? c
		       : NULL;
}

/* Does chunk @j wait to be pushed, with the same collective and root as @p? */
static bool goes_with(const struct sw_wtensor *t, const struct sw_link *l,
	const struct sw_piece *p, uint32_t j, uint32_t *chunk)
{
	const struct sw_wchunk *c = sw_stream_find(t, l, j, chunk);
	const struct sw_piece *other = &t->stream->pieces[*chunk];

	return c && c->is_todo && other->coll == p->coll &&
	       other->root == p->root;
}

void sw_stream_widen(
	struct sw_link *l, struct sw_wtensor *t, struct sw_header *h)
{
	const struct sw_piece *p;
	uint32_t chunk;

	sw_stream_find(t, l, h->stream.j, &chunk);
	p = &t->stream->pieces[chunk];
	for (h->stream.n = 1; h->stream.n < SW_WANT_MAX; h->stream.n++) {
		if (goes_with(t, l, p, h->stream.j - 1, &chunk))
			h->stream.j--;
		else if (!goes_with(t, l, p, h->stream.j + h->stream.n, &chunk))
			break;
		sw_todo_remove(l, t, chunk);
	}
}

static void give_credit(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	sw_wtensor_folded(w, t, chunk, t->stream->pieces[chunk].cost);
}

void sw_stream_folded(struct sw_link *l, struct sw_wtensor *t, uint32_t chunk)
{
	struct sw_worker *w = l->worker;

	give_credit(w, t, chunk);
	if (t->stream->pieces[chunk].gets)
		sw_todo_fold(l, t, chunk);
	else
		finish(l, t, chunk);
}

void sw_stream_on_base(struct sw_link *l, struct sw_wtensor *t, uint32_t base)
{
	struct sw_worker *w = l->worker;
	struct sw_stream_link *sl = &t->stream->links[l->peer.index];
	uint32_t chunk;

	if ((int32_t)(base - sl->base) <= 0 || t->life->from)
		return;
	for (; sl->base != base; sl->base++) {
		if (sl->base == sl->next)
			break; /* impossible: that chunk has not entered */
		if (!sw_stream_find(t, l, sl->base, &chunk))
			continue;
		if (t->stream->pieces[chunk].gets || !t->chunks[chunk].n_sent)
			/* Also impossible: we lack its result, or never pushed.
			 */
			break;
		give_credit(w, t, chunk);
		finish(l, t, chunk);
	}
	sw_count(&w->stats.rx_state, sl->base != base);
	sw_link_came(l);
	if (w->moved != t || w->moved_at != l)
		sw_stream_settle(w);
	w->moved = t;
	w->moved_at = l;
}

static bool is_well_formed(struct sw_worker *w, const struct sw_piece *p,
	const struct sw_header *h)
{
	const struct sw_coll *c = p->coll;

	if (h->stream.collective != c->number || h->dtype != c->ask.dtype ||
		h->op != sw_coll_op(c->ask.kind, c->ask.op)) {
		sw_count(&w->stats.rx_dtype, 1);
		return false;
	}
	return sw_result_fits(w, h, p->bytes);
}

enum sw_receipt sw_stream_on_result(struct sw_link *l, struct sw_wtensor *t,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_worker *w = l->worker;
	uint32_t base = h->stream.j - (uint16_t)(h->stream.j - h->stream.base);
	uint32_t chunk;
	struct sw_wchunk *c = sw_stream_find(t, l, h->stream.j, &chunk);
	struct sw_piece *p = &t->stream->pieces[chunk];
	bool is_new = c && c->n_sent && p->gets;

	if (is_new) {
		if (!is_well_formed(w, p, h) ||
			!sw_result_verify(l, h, payload))
			return SW_NOT_TAKEN;
		sw_todo_hold(l, t, chunk);
		give_credit(w, t, chunk);
		if (p->gives) /* one WANT covers several */
			sw_flow_resolve(&l->peer.flow, t->class, c->psn,
				c->n_sent == 1, w->now_ns);
		sw_piece_take(t->stream, p, payload);
		p->coll->weight = h->weight;
		finish(l, t, chunk);
	} else {
		sw_count(&w->stats.result_again, 1);
	}
	sw_stream_on_base(l, t, base);
	return is_new ? SW_TAKEN : SW_HAD_IT;
}
