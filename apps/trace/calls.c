/* calls.c - find the calls of ranks in traces, with their ends and copies.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The agent's lcore notes when it took a call and when it reported its end to
 * the rank.  The rank's process notes when the call was ready, and its copies.
 * The cookie identifies the call of such a note.
 */
#include <stdlib.h>

#include "apps/trace/load.h"

static int compare_spans(const void *a, const void *b)
{
	const struct sw_trace_span *x = a, *y = b;
	int o = sw_trace_order(x->daemon, y->daemon);

	if (!o)
		o = sw_trace_order(x->key, y->key);
	if (!o)
		o = sw_trace_order(x->local, y->local);
	return o ? o : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* The job of an agent's calls: that of the last session of the lcore. */
static const struct sw_trace_peer *job_of(const struct sw_trace_lcore *l)
{
	for (uint32_t i = l->n_peers; i-- > 0;)
		if (l->peers[i].is_worker)
			return &l->peers[i];
	return NULL;
}

/* Order calls and ends by call, then as they were noted. */
static int compare_edges(const void *a, const void *b)
{
	const struct sw_trace_event *x =
		*(const struct sw_trace_event *const *)a;
	const struct sw_trace_event *y =
		*(const struct sw_trace_event *const *)b;
	int o = sw_trace_order(x->key, y->key);

	if (!o)
		o = sw_trace_order(x->peer, y->peer);
	if (!o)
		o = sw_trace_order(x->chunk, y->chunk);
	return o ? o : (x > y) - (x < y);
}

static bool is_same_call(
	const struct sw_trace_event *x, const struct sw_trace_event *y)
{
	return x->key == y->key && x->peer == y->peer && x->chunk == y->chunk;
}

/* Add a call that has ended; without its end it is still open. */
static void add_call(struct sw_trace_data *t, uint16_t daemon, uint16_t lcore,
	const struct sw_trace_event *call, const struct sw_trace_event *end)
{
	const struct sw_trace_daemon *d = &t->daemons[daemon];
	const struct sw_trace_peer *job = job_of(&d->lcores[lcore]);
	int64_t from_ns = sw_trace_time(t, d, call->t_ns);
	int64_t to_ns = sw_trace_time(t, d, end->t_ns);

	t->spans[t->n_spans++] =
		(struct sw_trace_span){.epoch = job ? job->epoch : 0,
			.member = job ? job->member : 0,
			.key = call->key,
			.number = call->round,
			.local = call->peer,
			.cookie = call->chunk,
			.daemon = daemon,
			.lcore = lcore,
			.has_failed = end->flags & SW_TRACE_ERROR,
			.from_ns = from_ns,
			.taken_ns = from_ns,
			.started_ns = SW_TRACE_UNSEEN,
			.to_ns = to_ns,
			.end_ns = to_ns};
}

/* Find the calls of an lcore.  An end is of the last open call that has its
 * key, rank and cookie; an end without one is dropped. */
static int find_calls(struct sw_trace_data *t, uint16_t daemon, uint16_t lcore)
{
	const struct sw_trace_lcore *l = &t->daemons[daemon].lcores[lcore];
	const struct sw_trace_event **edges =
		malloc((l->n_events + 1) * sizeof(*edges));
	uint32_t n = 0, n_open = 0; /* the open calls are kept in front */

	if (!edges)
		return 1;
	for (uint32_t i = 0; i < l->n_events; i++)
		if (l->events[i].kind == SW_TRACE_CALL ||
			l->events[i].kind == SW_TRACE_DONE)
			edges[n++] = &l->events[i];
	qsort(edges, n, sizeof(*edges), compare_edges);
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_trace_event *e = edges[i];

		if (n_open && !is_same_call(edges[n_open - 1], e))
			n_open = 0;
		if (e->kind == SW_TRACE_CALL)
			edges[n_open++] = e;
		else if (n_open)
			add_call(t, daemon, lcore, edges[--n_open], e);
	}
	free(edges);
	return 0;
}

static bool is_note(const struct sw_trace_event *e)
{
	return e->kind >= SW_TRACE_READY && e->kind <= SW_TRACE_COPY_OUT;
}

/* Count calls and copies, and find the begin of the first event. */
static void count(struct sw_trace_data *t, uint32_t *n_calls, uint32_t *n_notes)
{
	*n_calls = *n_notes = 0;
	t->zero_ns = INT64_MAX;
	for (uint32_t i = 0; i < t->n_daemons; i++)
		for (uint32_t k = 0; k < SW_MAX_LCORES; k++) {
			const struct sw_trace_lcore *l =
				&t->daemons[i].lcores[k];

			for (uint32_t e = 0; e < l->n_events; e++) {
				int64_t at = sw_trace_time(t, &t->daemons[i],
						     l->events[e].t_ns) -
					     l->events[e].ns;

				*n_calls += l->events[e].kind == SW_TRACE_CALL;
				*n_notes += is_note(&l->events[e]);
				if (at < t->zero_ns)
					t->zero_ns = at;
			}
		}
}

/* --- notes of the ranks' processes --- */

static int compare_cookies(const void *a, const void *b)
{
	const struct sw_trace_span *x = *(struct sw_trace_span *const *)a;
	const struct sw_trace_span *y = *(struct sw_trace_span *const *)b;
	int o = sw_trace_order(x->daemon, y->daemon);

	if (!o)
		o = sw_trace_order(x->local, y->local);
	return o ? o : sw_trace_order(x->cookie, y->cookie);
}

static struct sw_trace_span *call_of(struct sw_trace_span **by_cookie,
	uint32_t n, uint16_t daemon, const struct sw_trace_event *e)
{
	struct sw_trace_span wanted = {
		.daemon = daemon, .local = e->peer, .cookie = e->chunk};
	struct sw_trace_span *key = &wanted, **at;

	at = n ? bsearch(&key, by_cookie, n, sizeof(key), compare_cookies)
	       : NULL;
	return at ? *at : NULL;
}

/* Call @fn for each note of a process.  @calls has the @n calls by cookie. */
static void each_note(struct sw_trace_data *t, struct sw_trace_span **calls,
	uint32_t n,
	void (*fn)(struct sw_trace_data *t, const struct sw_trace_copy *note))
{
	for (uint16_t i = 0; i < t->n_daemons; i++)
		for (uint32_t k = 0; k < t->daemons[i].lcores[0].n_events;
			k++) {
			const struct sw_trace_event *e =
				&t->daemons[i].lcores[0].events[k];
			int64_t to_ns =
				sw_trace_time(t, &t->daemons[i], e->t_ns);

			if (is_note(e))
				fn(t, &(struct sw_trace_copy){
					      .from_ns = to_ns - e->ns,
					      .to_ns = to_ns,
					      .bytes = e->round,
					      .daemon = i,
					      .local = e->peer,
					      .kind = e->kind,
					      .call = call_of(calls, n, i, e)});
		}
}

/* Extend a call to the time at which the rank submitted it or began to copy for
 * it, and to the end of the last copy of its results. */
static void stretch(struct sw_trace_data *t, const struct sw_trace_copy *note)
{
	struct sw_trace_span *s = note->call;

	(void)t;
	if (!s)
		return;
	if (note->from_ns < s->from_ns)
		s->from_ns = note->from_ns;
	if (note->kind == SW_TRACE_COPY_OUT && note->to_ns > s->end_ns)
		s->end_ns = note->to_ns;
}

static void keep_copy(struct sw_trace_data *t, const struct sw_trace_copy *note)
{
	if (note->kind != SW_TRACE_READY)
		t->copies[t->n_copies++] = *note;
}

static int compare_copies(const void *a, const void *b)
{
	const struct sw_trace_copy *x = a, *y = b;
	int o = sw_trace_order(x->daemon, y->daemon);

	if (!o)
		o = sw_trace_order(x->local, y->local);
	return o ? o : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void sort_calls(struct sw_trace_data *t, struct sw_trace_span **calls,
	int (*compare)(const void *, const void *))
{
	for (uint32_t i = 0; i < t->n_spans; i++)
		calls[i] = &t->spans[i];
	if (t->n_spans)
		qsort(calls, t->n_spans, sizeof(*calls), compare);
}

static void join_notes(struct sw_trace_data *t, struct sw_trace_span **calls)
{
	sort_calls(t, calls, compare_cookies);
	each_note(t, calls, t->n_spans, stretch);
	if (t->n_spans)
		qsort(t->spans, t->n_spans, sizeof(*t->spans), compare_spans);
	sort_calls(t, calls, compare_cookies);
	each_note(t, calls, t->n_spans, keep_copy);
	if (t->n_copies)
		qsort(t->copies, t->n_copies, sizeof(*t->copies),
			compare_copies);
}

/* --- the first frame of a call --- */

static int compare_numbers(const void *a, const void *b)
{
	const struct sw_trace_span *x = *(struct sw_trace_span *const *)a;
	const struct sw_trace_span *y = *(struct sw_trace_span *const *)b;
	int o = sw_trace_order(x->epoch, y->epoch);

	if (!o)
		o = sw_trace_order(x->key, y->key);
	if (!o)
		o = sw_trace_order(x->number, y->number);
	return o ? o : sw_trace_order(x->member, y->member);
}

static int compare_wanted(const void *call, const void *wanted)
{
	const struct sw_trace_span *of = wanted;

	return compare_numbers(call, &of);
}

/* A frame goes out for all calls that a piece is of: the first of these keeps
 * the earliest one for the others. */
static void note_start(struct sw_trace_span **calls, uint32_t n,
	const struct sw_trace_span *of, int64_t at_ns)
{
	uint32_t at =
		sw_trace_first(of, calls, n, sizeof(*calls), compare_wanted);

	if (at < n && !compare_wanted(&calls[at], of) &&
		(calls[at]->started_ns == SW_TRACE_UNSEEN ||
			at_ns < calls[at]->started_ns))
		calls[at]->started_ns = at_ns;
}

static void find_starts(struct sw_trace_data *t, struct sw_trace_span **calls)
{
	sort_calls(t, calls, compare_numbers);
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		const struct sw_trace_piece *p = &t->pieces[i];
		const struct sw_trace_name *n =
			sw_trace_named(t, p->epoch, p->key);
		struct sw_trace_span of = {.epoch = p->epoch,
			.key = p->key,
			.number = n && n->is_stream ? p->chunk : p->round,
			.member = p->member};

		if (p->stages[SW_STAGE_PUSH].event)
			note_start(calls, t->n_spans, &of,
				p->stages[SW_STAGE_PUSH].from_ns);
	}
	for (uint32_t i = 1; i < t->n_spans; i++)
		if (!compare_numbers(&calls[i - 1], &calls[i]))
			calls[i]->started_ns = calls[i - 1]->started_ns;
}

int sw_trace_join_calls(struct sw_trace_data *t)
{
	uint32_t n_calls, n_notes;
	struct sw_trace_span **calls;
	int err = 0;

	count(t, &n_calls, &n_notes);
	t->spans = malloc((n_calls + 1) * sizeof(*t->spans));
	t->copies = malloc((n_notes + 1) * sizeof(*t->copies));
	calls = malloc((n_calls + 1) * sizeof(struct sw_trace_span *));
	if (!t->spans || !t->copies || !calls) {
		free(calls);
		return 1;
	}
	for (uint16_t i = 0; i < t->n_daemons; i++)
		for (uint16_t k = 0; k < SW_MAX_LCORES; k++)
			err |= find_calls(t, i, k);
	join_notes(t, calls);
	find_starts(t, calls);
	free(calls);
	return err;
}
