/* worker_rx.c - take a worker's frames: results, and the fate of pushes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

#include "engine/base/bytes.h"
#include "engine/base/ticks.h"
#include "engine/worker/query.h"
#include "engine/worker/round.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"
#include "sum/sum.h"

/* A tensor of this size does not fit the caches. */
enum { STREAM_BYTES = 4 << 20 };

/* --- results --- */

/* Does the chunk wait for exactly this result?  Counts a duplicate. */
static bool is_wanted(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_wchunk *c, const struct sw_header *h)
{
	if (!t->is_open || !t->n_missing || h->round != t->round ||
		c->state == SW_HELD || !c->n_sent) {
		sw_count(&w->stats.result_again, 1);
		return false;
	}
	return true;
}

static bool is_well_formed(struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t record, const struct sw_header *h)
{
	/* A duplicate of an earlier round may have another operation, also
	 * while the next round waits for local ranks. */
	if (h->dtype != t->decl.dtype ||
		(h->op != t->result_op && h->round == t->round &&
			t->is_begun)) {
		sw_count(&w->stats.rx_dtype, 1);
		return false;
	}
	return sw_result_fits(w, h, sw_wtensor_bytes(t, record));
}

/* Write a result.  Only the local ranks read it, so for a tensor larger than
 * the caches, stores that bypass the caches are cheaper. */
static void write_result(const struct sw_worker *w, const struct sw_wtensor *t,
	void *to, const uint8_t *payload, uint32_t n)
{
	if (w->n_local > 1 && t->decl.n_elems * t->elem_bytes >= STREAM_BYTES)
		w->env->sum->stream(to, payload, n);
	else
		w->env->sum->copy(to, payload, n);
}

static void hold(struct sw_worker *w, struct sw_link *l, struct sw_wtensor *t,
	uint32_t record, const struct sw_header *h, const uint8_t *payload)
{
	struct sw_wchunk *c = &t->chunks[record];

	/* The chunk must be HELD before the first byte is written. */
	sw_todo_hold(l, t, record);
	sw_wtensor_folded(w, t, record, h->payload_len);
	sw_flow_resolve(
		&l->peer.flow, t->class, c->psn, c->n_sent == 1, w->now_ns);
	SW_TIMED(w->stats.ticks_fold,
		write_result(w, t,
			(uint8_t *)t->decl.base +
				(uint64_t)h->chunk * t->chunk_bytes,
			payload, h->payload_len));
	if (t->left)
		sw_granules_held(w, t, h->chunk);
	t->weight = h->weight;
	t->progress_ns = w->now_ns;
	sw_set_word(&t->awaited, 0);
	if (--t->n_missing == 0 && !t->busy_lanes)
		sw_round_end(w, t, 0);
}

/* Take a RESULT of @t, which is NULL if the key is unknown or retired. */
static inline enum sw_receipt on_result(struct sw_worker *w, struct sw_link *l,
	struct sw_wtensor *t, const struct sw_header *h, const uint8_t *payload)
{
	uint32_t record;

	if (!t)
		return sw_key_is_past(w, h->key) ? SW_HAD_IT : SW_NOT_TAKEN;
	if (t->stream)
		return sw_stream_on_result(l, t, h, payload);
	if (!sw_link_has(l, t, h->chunk, &record) ||
		!is_well_formed(w, t, record, h))
		return SW_NOT_TAKEN;
	if (!is_wanted(w, t, &t->chunks[record], h))
		return SW_HAD_IT;
	if (!sw_result_verify(l, h, payload))
		return SW_NOT_TAKEN; /* so the server retransmits it */
	hold(w, l, t, record, h, payload);
	return SW_TAKEN;
}

/* Acknowledge the @n results before @h, which were taken.  finish_burst does
 * the rest at the end of the burst. */
static inline void accept_before(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, uint32_t n)
{
	if (n)
		sw_flow_accept_run(&l->peer.flow, h - n, n, w->now_ns);
}

/* Take a run of RESULTs, which are within the grant. */
static inline void on_results(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, const struct sw_header *h, uint32_t n)
{
	struct sw_wtensor *t = NULL;
	uint32_t n_taken = 0, row = 0, bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		enum sw_receipt receipt;

		if (!t || t->key != h[i].key)
			t = sw_link_tensor(l, h[i].key);
		receipt = on_result(w, l, t, &h[i], f[i].payload);
		if (receipt == SW_TAKEN) {
			row++;
			n_taken++;
			bytes += h[i].payload_len;
			continue;
		}
		accept_before(w, l, &h[i], row);
		row = 0;
		if (receipt == SW_HAD_IT)
			sw_flow_accept_again(
				&l->peer.flow, h->class, h[i].psn, w->now_ns);
	}
	accept_before(w, l, &h[n], row);
	sw_link_touch(l);
	if (!n_taken)
		return;
	sw_link_came(l);
	sw_count(&w->stats.results, n_taken);
	sw_count(&w->stats.result_bytes, bytes);
	l->taken_bytes += bytes;
	sw_count(&w->stats.class_rx_frames[h->class], n_taken);
	sw_count(&w->stats.class_rx_bytes[h->class], bytes);
}

/* --- the fate of pushes --- */

/* Note the fate of a push.  A tensor's push can only be lost here, because
 * fold_run takes all acknowledged ones. */
static inline __attribute__((always_inline)) void chunk_fate(struct sw_link *l,
	struct sw_wtensor *t, uint32_t record, uint64_t psn, enum sw_fate fate)
{
	struct sw_wchunk *c = &t->chunks[record];

	if (c->state != SW_PUSHED || c->psn != psn)
		return;
	if (fate == SW_LOST) {
		sw_todo_again(l, t, record);
		return;
	}
	c->t_ns = l->worker->now_ns;
	sw_stream_folded(l, t, record);
}

static __attribute__((noinline)) void want_fate(struct sw_link *l,
	struct sw_wtensor *t, const struct sw_sent *sent, enum sw_fate fate)
{
	uint32_t record;

	for (uint32_t i = 0; i < sent->cell - SW_CELL_WANT; i++)
		if (sw_stream_find(t, l, sent->round + i, &record))
			chunk_fate(l, t, record, sent->psn, fate);
}

static void note_fate(struct sw_link *l, struct sw_wtensor *t,
	const struct sw_sent *sent, enum sw_fate fate)
{
	if (sent->cell >= SW_CELL_WANT)
		want_fate(l, t, sent, fate);
	else if (t->is_open && t->n_missing &&
		 (t->stream || t->round == sent->round))
		chunk_fate(l, t, sent->cell, sent->psn, fate);
}

/* Mark acknowledged pushes of @t that await results as FOLDED, from the first
 * of @n on, and return their credit at once.  Returns how many pushes it took.
 */
static uint32_t fold_run(struct sw_link *l, struct sw_wtensor *t,
	const struct sw_sent *const *sent, uint32_t n)
{
	const struct sw_piece *pieces = t->stream ? t->stream->pieces : NULL;
	struct sw_wchunk *chunks = t->chunks;
	uint64_t credit = 0, now_ns = l->worker->now_ns;
	uint32_t key = t->key, round = t->round, n_folded = 0, i = 0;

	if (!t->is_open || !t->n_missing)
		return 0;
	for (; i < n && sent[i]->key == key; i++) {
		const struct sw_sent *e = sent[i];
		uint32_t record = e->cell;
		struct sw_wchunk *c;

		if (pieces ? record >= SW_CELL_WANT || !pieces[record].gets
			   : e->round != round)
			break;
		c = &chunks[record];
		if (c->state != SW_PUSHED || c->psn != e->psn)
			continue;
		c->state = SW_FOLDED;
		c->t_ns = now_ns;
		if (c->is_charged)
			credit += pieces ? pieces[record].cost
					 : sw_wtensor_bytes(t, record);
		c->is_charged = false;
		n_folded++;
	}
	sw_todo_note_folded(l, t, n_folded);
	sw_wtensor_credit(l->worker, t, credit);
	return i;
}

void sw_worker_on_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate)
{
	struct sw_link *l = sw_link_of(ctx);
	struct sw_worker *w = l->worker;

	if (fate == SW_LOST)
		sw_count(&w->stats.lost, n);
	for (uint32_t i = 0, some; i < n; i += some) {
		struct sw_wtensor *t = sw_tensor_of_key(w, sent[i]->key);

		/* no tensor: the stream was closed */
		some = t && fate == SW_ACKED ? fold_run(l, t, &sent[i], n - i)
					     : 0;
		if (t && !some)
			note_fate(l, t, sent[i], fate);
		some += !some;
	}
}

static void on_ack(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload, bool is_newer)
{
	if (is_newer)
		sw_peer_on_control(&l->peer, h);
	sw_peer_on_ack(&l->peer, h, payload, is_newer);
	sw_peer_wake(&l->peer, sw_query_at(w, l));
	sw_link_touch(l);
}

/* --- received frames --- */

/* Find the link of a server that sends without a session, by its address. */
static struct sw_link *link_at(struct sw_worker *w, const struct sw_path *from,
	const struct sw_header *h)
{
	for (uint32_t i = 0; i < w->n_links; i++)
		if (sw_path_is_same(&w->links[i].peer.path, from) &&
			(h->type == SW_COOKIE || h->type == SW_LEFT ||
				(h->type == SW_ERROR && w->links[i].is_keyed)))
			return &w->links[i];
	sw_count(&w->stats.rx_session, 1);
	return NULL;
}

/* Find the link of a frame, by our session id, or without one by address.  A
 * COOKIE belongs to no session. */
static struct sw_link *link_of(
	struct sw_worker *w, const struct sw_rx_frame *f, struct sw_header *h)
{
	const struct sw_path *from = &f->from;
	uint32_t i = h->session >> 16;
	struct sw_link *l;

	if (!h->session) {
		l = link_at(w, from, h);
	} else if (i >= w->n_links || w->links[i].peer.id != h->session) {
		sw_count(&w->stats.rx_session, 1);
		return NULL;
	} else if (!sw_path_is_same(&w->links[i].peer.path, from)) {
		sw_count(&w->stats.rx_source, 1);
		return NULL;
	} else {
		l = &w->links[i];
	}
	if (l && w->secret)
		return sw_link_is_true(w, l, f, h) ? l : NULL;
	if (l && h->head_crc != (h->type == SW_COOKIE ? 0 : l->peer.seed)) {
		sw_count(&w->stats.rx_head_crc, 1);
		return NULL;
	}
	return l;
}

/* Handle a frame that is not part of the data path. */
static void on_control(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload, bool is_newer)
{
	sw_peer_wake(&l->peer, 0);
	if (sw_link_has_session(l) && h->type != SW_LEFT &&
		h->class == SW_CLASS_CTL &&
		((!is_newer && sw_peer_is_past(&l->peer, h)) ||
			!sw_peer_on_control(&l->peer, h)))
		return; /* stale, or not the next message */
	if (h->type == SW_ANSWER && l->state == SW_LINK_OPEN)
		sw_query_answered(w, l, h, payload);
	else if (!sw_link_rx(w, l, h, payload) && l->state == SW_LINK_OPEN)
		sw_count(&w->stats.rx_state, 1);
}

/* Handle a run of RESULTs. */
static void on_data(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, const struct sw_header *h, uint32_t n)
{
	for (uint32_t i = 0, some; i < n; i += some) {
		some = sw_flow_within(&l->peer.flow, &h[i], n - i);
		if (some) {
			on_results(w, l, &f[i], &h[i], some);
		} else {
			sw_peer_overdrew(&l->peer);
			some = 1;
		}
	}
}

/* Handle one frame, or a run of RESULTs. */
static void on_link(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, const struct sw_header *h, uint32_t n)
{
	bool is_newer = sw_flow_is_newer(&l->peer.flow, &h[n - 1]);

	if (sw_link_has_session(l)) {
		if (!h->session) { /* only LEFT has none */
			if (h->type == SW_LEFT)
				sw_link_rx(w, l, h, f->payload);
			return;
		}
		if (is_newer) /* an older one may be a replay */
			l->peer.rx_ns = w->now_ns;
		if (sw_flow_rx(&l->peer.flow, &h[n - 1]))
			sw_link_touch(l);
		if (f->is_marked) {
			sw_flow_mark(&l->peer.flow, h->class, n);
			sw_count(&w->stats.rx_marked, n);
		}
	}
	if (h->type == SW_RESULT && l->state == SW_LINK_OPEN)
		on_data(w, l, f, h, n);
	else if (h->type == SW_ACK && l->state == SW_LINK_OPEN)
		on_ack(w, l, h, f->payload, is_newer);
	else
		for (uint32_t i = 0; i < n; i++)
			on_control(w, l, &h[i], f[i].payload, is_newer);
}

/* Handle the first of @n frames, and the run that shares its lookup; returns
 * how many. */
static uint32_t rx_some(struct sw_worker *w, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n)
{
	struct sw_link *l;

	if (!h->type) /* dropped */
		return 1;
	w->is_misrouted = f->is_misrouted;
	l = link_of(w, f, h);
	if (!l || w->state == SW_WORKER_LEFT)
		return 1;
	if (l->is_keyed && sw_link_is_handshake(l, h)) {
		sw_link_on_handshake(w, l, h, f->payload);
		return 1;
	}
	n = w->secret
		    ? sw_peer_run_true(&l->peer, f, h, n, SW_RESULT, &w->stats)
		    : sw_peer_run(f, h, n, SW_RESULT);
	if (!n)
		return 1;
	on_link(w, l, f, h, n);
	return n;
}

/* Finish a burst, once for all its frames: start the chunks that the moved
 * window and the returned credit allow, and owe the ACKs that are due at once.
 */
static void finish_burst(struct sw_worker *w)
{
	sw_stream_settle(w);
	sw_sched_run(&w->sched);
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(w->touched); i++)
		for (uint64_t m = w->touched[i]; m; m &= m - 1) {
			struct sw_link *l =
				&w->links[64 * i +
					  (uint32_t)__builtin_ctzll(m)];

			if (l->state == SW_LINK_OPEN &&
				sw_flow_ack_at(&l->peer.flow) == 0)
				sw_link_owe(l, SW_OWE_ACK);
		}
	sw_peers_grant(&w->grants);
}

void sw_worker_frames(
	struct sw_worker *w, const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_header heads[SW_RX_BURST];

	sw_frames_open(frames, n, heads, w->secret != NULL, &w->stats);
	for (uint32_t i = 0; i < n;)
		i += rx_some(w, &frames[i], &heads[i], n - i);
	finish_burst(w);
}
