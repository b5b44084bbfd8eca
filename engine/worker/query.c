/* query.c - ask servers for late results, and take their answers.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A result is late if its chunk has been FOLDED for some round-trip times.  No
 * set holds such chunks: a cursor of each link searches the open tensors for
 * them, some in each tick, and continues behind the last QUERY, so that 64 late
 * results never hold up other results. */
#include "engine/worker/query.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"

enum {
	LOOKS = 256,      /* chunks that a tick looks at */
	TENSOR_LOOKS = 4, /* a tensor costs as many looks */
};

/* Ask about a tensor from local chunk query_local on.  If a stream is blocked
 * or stalled, first ask for the base; if it is stalled, also name the number
 * that it waits for (faults.c).  Returns false if *looks are used up or the
 * QUERY is full. */
static bool ask_about(struct sw_worker *w, struct sw_link *l,
	const struct sw_wtensor *t, uint32_t *looks)
{
	const struct sw_part *p = &t->parts[l->peer.index];
	uint32_t left = p->n_folded, i, end, number;
	const struct sw_stream_link *sl;
	struct sw_query *q;

	if (*looks < TENSOR_LOOKS || l->n_queries == SW_QUERY_MAX)
		return false;
	*looks -= TENSOR_LOOKS;
	i = l->query_local;
	if (t->kind->is_group && !i) {
		sl = &t->stream->links[l->peer.index];
		number = sw_stream_awaits(w, t);
		if (sl->is_blocked || number)
			l->queries[l->n_queries++] =
				(struct sw_query){.key = t->key,
					.round = sl->base - 1,
					.chunk = number};
	}
	end = (uint32_t)sw_min64(p->place.n_local, i + *looks);
	*looks += i;
	for (; left && i < end && l->n_queries < SW_QUERY_MAX; i++) {
		struct sw_wchunk *c = &t->chunks[p->from + i];

		if (c->state != SW_FOLDED)
			continue;
		left--;
		if (w->now_ns - c->t_ns < l->query_wait_ns)
			continue; /* it is not late */
		c->t_ns = w->now_ns;
		q = &l->queries[l->n_queries++];
		*q = (struct sw_query){.key = t->key, .round = t->round};
		if (t->kind->is_group)
			q->round = t->stream->pieces[p->from + i].j;
		else
			q->chunk = sw_place_global(&p->place, i);
	}
	*looks -= i;
	l->query_local = i;
	return !left || i == p->place.n_local;
}

/* Continue the search.  Returns whether it has reached its end. */
static bool search(struct sw_worker *w, struct sw_link *l)
{
	uint32_t looks = LOOKS, i;

	while ((i = sw_bitmap_next(&w->open, l->query_tensor)) !=
		SW_BITMAP_NONE) {
		if (i != l->query_tensor)
			l->query_local = 0;
		l->query_tensor = i;
		if (!ask_about(w, l, &w->tensors[i], &looks))
			return false;
		l->query_tensor++;
		l->query_local = 0;
	}
	l->query_tensor = l->query_local = 0;
	return true;
}

uint64_t sw_query_tick(struct sw_worker *w, struct sw_link *l)
{
	uint64_t at = sw_query_at(w, l);
	bool has_ended;

	if (l->peer.owed & 1u << SW_OWE_QUERY)
		return UINT64_MAX; /* until the QUERY has left */
	if (w->now_ns < at)
		return at;
	l->n_queries = 0;
	has_ended = search(w, l);
	if (l->n_queries) {
		sw_link_owe(l, SW_OWE_QUERY);
		l->query_wait_ns = sw_max64(l->query_wait_ns,
			sw_min64(2 * l->query_wait_ns, w->params.query_max));
	}
	if (l->n_queries || has_ended) /* else the next tick continues */
		l->query_from_ns = w->now_ns;
	return sw_query_at(w, l);
}

uint32_t sw_query_build(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	uint32_t bytes = l->n_queries * (uint32_t)sizeof(*l->queries);

	memcpy(w->payload, l->queries, bytes);
	sw_count(&w->stats.queries, l->n_queries);
	return bytes;
}

/* --- answers --- */

/* Find the chunk that an ANSWER is about; NULL if no chunk waits for it.  Each
 * ANSWER about a stream carries the stream's base. */
static struct sw_wchunk *find(struct sw_link *l, struct sw_wtensor *t,
	const struct sw_answer *a, uint32_t *record)
{
	if (t->kind->is_group) {
		sw_stream_on_base(l, t, a->chunk);
		return sw_stream_find(t, l, a->round, record);
	}
	return sw_link_has(l, t, a->chunk, record) && t->is_open &&
			       t->n_missing && t->round == a->round
		       ? &t->chunks[*record]
		       : NULL;
}

static void on_answer(
	struct sw_worker *w, struct sw_link *l, const struct sw_answer *a)
{
	struct sw_wtensor *t = sw_link_tensor(l, a->key);
	struct sw_wchunk *c;
	uint32_t record;

	c = t ? find(l, t, a, &record) : NULL;
	if (!c || c->state < SW_PUSHED)
		return; /* stale */
	switch (a->kind) {
	case SW_ANSWER_WAIT:
		sw_set_word(&t->awaited, a->missing);
		sw_set_word(&t->awaited_ns, w->now_ns);
		sw_count(&w->stats.query_wait, 1);
		sw_deaths_on_wait(w, l, t, a->missing);
		return;
	case SW_ANSWER_NEED:
		sw_count(&w->stats.query_need, 1);
		sw_todo_again(l, t, record);
		return;
	case SW_ANSWER_CRC:
		sw_count(&w->stats.push_refused, 1);
		c->n_refused += c->n_refused < UINT8_MAX;
		sw_todo_again(l, t, record);
		return;
	case SW_ANSWER_GONE:
		sw_count(&w->stats.query_gone, 1);
		sw_worker_fail(w, SW_EPROTO, a->key,
			"server %.64s no longer has the result of tensor %.64s",
			l->name, t->name);
		return;
	case SW_ANSWER_BASE:
		return;
	default:
		sw_count(&w->stats.rx_type, 1);
	}
}

void sw_query_answered(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_answer a;

	for (uint32_t at = 0; at < h->payload_len; at += sizeof(a)) {
		memcpy(&a, payload + at, sizeof(a));
		on_answer(w, l, &a);
	}
}
