/* chrome.c - a trace as Chrome's JSON, which Perfetto opens.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each daemon is a process.  Its tracks are the lcores, with the bursts that
 * they handled; the links, with a slice for each chunk; the tensors, with a
 * slice for each call and its states inside; and the ranks, with their copies.
 * Except for states, slices of a track do not overlap, and they come in the
 * order of their begin.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/chrome.h"
#include "apps/trace/load.h"
#include "engine/base/bytes.h"
#include "engine/base/text.h"

enum {
	TID_LCORE = 1,    /* + lcore */
	TID_LINK = 100,   /* + lcore x SW_TRACE_PEERS + peer */
	TID_CALL = 10000, /* + number of the track: calls first, then copies */
	NAME = 2 * SW_NAME_MAX
};

struct out {
	const struct sw_trace_data *t;
	struct sw_chrome c;
};

static const char *tensor_name(
	const struct out *o, uint64_t epoch, uint32_t key, char out[NAME])
{
	const struct sw_trace_name *n = sw_trace_named(o->t, epoch, key);

	if (n && n->name[0])
		return sw_chrome_escape(n->name, out, NAME);
	snprintf(out, NAME, "key %u", key);
	return out;
}

/* Name a track.  A daemon is a process. */
static void track_name(struct out *o, uint32_t daemon, uint32_t tid,
	const char *what, const char *name)
{
	sw_chrome_name(&o->c, daemon + 1, tid, what, name);
}

static void slice_begin(struct out *o, uint32_t daemon, uint32_t tid,
	int64_t from_ns, int64_t to_ns)
{
	sw_chrome_slice(&o->c, daemon + 1, tid, from_ns, to_ns);
}

/* --- lcores and links --- */

static uint32_t link_tid(uint32_t lcore, uint32_t peer)
{
	return TID_LINK + lcore * SW_TRACE_PEERS + peer;
}

static void burst_put(struct out *o, uint32_t daemon, uint32_t lcore,
	const struct sw_trace_event *e, int64_t to_ns)
{
	slice_begin(o, daemon, TID_LCORE + lcore, to_ns - e->ns, to_ns);
	fprintf(o->c.to, ",\"name\":\"%s\",\"args\":{\"frames\":%u}}",
		e->kind == SW_TRACE_RX ? "receive" : "send", e->chunk);
}

static void chunk_put(struct out *o, uint32_t daemon, uint32_t lcore,
	const struct sw_trace_peer *p, const struct sw_trace_event *e,
	int64_t to_ns)
{
	static const char *const verbs[SW_TRACE_KINDS] = {
		[SW_TRACE_PUSH] = "push",
		[SW_TRACE_FOLD] = "fold",
		[SW_TRACE_RESULT] = "result",
		[SW_TRACE_HOLD] = "hold",
		[SW_TRACE_AGAIN] = "duplicate"};
	const struct sw_trace_name *n = sw_trace_named(o->t, p->epoch, e->key);
	bool is_stream = n && n->is_stream;
	char name[NAME];

	slice_begin(o, daemon, link_tid(lcore, e->peer), to_ns - e->ns, to_ns);
	fprintf(o->c.to,
		",\"name\":\"%s\",\"cat\":\"chunk\",\"args\":{\"tensor\":"
		"\"%s\",\"%s\":%u,\"chunk\":%u,\"bytes\":%u",
		verbs[e->kind], tensor_name(o, p->epoch, e->key, name),
		is_stream ? "collective" : "round",
		is_stream ? e->chunk : e->round,
		is_stream ? e->round : e->chunk, e->bytes);
	if (!is_stream)
		fprintf(o->c.to, ",\"step\":%u", e->step);
	if (e->flags & SW_TRACE_COMPLETE)
		fprintf(o->c.to, ",\"complete\":true");
	if (e->flags & SW_TRACE_RETX)
		fprintf(o->c.to, ",\"retransmission\":true");
	fprintf(o->c.to, "}}");
}

static void lcore_put(struct out *o, uint32_t daemon, uint32_t lcore)
{
	const struct sw_trace_daemon *d = &o->t->daemons[daemon];
	const struct sw_trace_lcore *l = &d->lcores[lcore];
	char name[NAME], job[NAME], address[NAME];

	if (!l->n_events)
		return;
	snprintf(name, sizeof(name), "lcore %u", lcore);
	track_name(o, daemon, TID_LCORE + lcore, "thread_name", name);
	for (uint32_t i = 0; i < l->n_peers; i++) {
		const struct sw_trace_peer *p = &l->peers[i];

		if (p->is_worker)
			snprintf(name, sizeof(name),
				"link to server %.64s, job %.100s",
				sw_chrome_escape(p->address, address, NAME),
				sw_chrome_escape(p->job, job, NAME));
		else
			snprintf(name, sizeof(name),
				"link to agent %u %.64s, job %.100s", p->member,
				sw_chrome_escape(p->address, address, NAME),
				sw_chrome_escape(p->job, job, NAME));
		track_name(o, daemon, link_tid(lcore, i), "thread_name", name);
	}
	for (uint32_t i = 0; i < l->n_events; i++) {
		const struct sw_trace_event *e = &l->events[i];
		int64_t to_ns = sw_trace_time(o->t, d, e->t_ns);

		if (e->kind == SW_TRACE_RX || e->kind == SW_TRACE_TX)
			burst_put(o, daemon, lcore, e, to_ns);
		else if (e->kind >= SW_TRACE_PUSH &&
			 e->kind <= SW_TRACE_AGAIN && e->peer < l->n_peers)
			chunk_put(
				o, daemon, lcore, &l->peers[e->peer], e, to_ns);
	}
}

/* --- arrows --- */

static void arrow_put(struct out *o, const char *phase, uint32_t id,
	const struct sw_trace_mark *m)
{
	sw_chrome_event(&o->c, phase, m->daemon + 1,
		link_tid(m->lcore, m->event->peer));
	sw_chrome_time(&o->c, "ts", m->from_ns - o->t->zero_ns);
	fprintf(o->c.to, ",\"name\":\"chunk\",\"cat\":\"flow\",\"id\":%u%s}",
		id, *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* Put arrows between the events of a piece, in their order. */
static void arrows_put(struct out *o, uint32_t id)
{
	const struct sw_trace_piece *p = &o->t->pieces[id];
	int n = 0, at = 0;

	for (int s = 0; s < SW_STAGES; s++)
		n += p->stages[s].event != NULL;
	if (n < 2)
		return;
	for (int s = 0; s < SW_STAGES; s++) {
		if (!p->stages[s].event)
			continue;
		arrow_put(o,
			!at           ? "s"
			: at == n - 1 ? "f"
				      : "t",
			id + 1, &p->stages[s]);
		at++;
	}
}

/* --- calls --- */

static bool is_same_row(
	const struct sw_trace_span *a, const struct sw_trace_span *b)
{
	return a->daemon == b->daemon && a->key == b->key &&
	       a->local == b->local;
}

/* Tracks of slices that may overlap.  Each slice gets the first track whose
 * last slice has ended by the slice's begin. */
struct tracks {
	uint32_t daemon, tid, n; /* n: number of tracks, from tid on */
	const char *label;
	/* A tree of the ends of their last slices: entry i has the least one of
	 * entries 2 i and 2 i + 1; track k has entry @room + k. */
	int64_t *ends;
	uint32_t room;
};

/* Begin tracks for @n slices. */
static void tracks_clear(struct tracks *ts, uint32_t n)
{
	for (ts->room = 1; ts->room < n;)
		ts->room *= 2;
	for (uint32_t i = 0; i < 2 * ts->room; i++)
		ts->ends[i] = INT64_MIN;
}

static uint32_t take_track(
	struct out *o, struct tracks *ts, int64_t from_ns, int64_t to_ns)
{
	int64_t *ends = ts->ends;
	uint32_t at = 1, k;

	while (at < ts->room)
		at = 2 * at + (ends[2 * at] > from_ns);
	k = at - ts->room;
	ends[at] = to_ns;
	while ((at /= 2))
		ends[at] = ends[2 * at] < ends[2 * at + 1] ? ends[2 * at]
							   : ends[2 * at + 1];
	if (k == ts->n) {
		track_name(
			o, ts->daemon, ts->tid + k, "thread_name", ts->label);
		ts->n++;
	}
	return ts->tid + k;
}

/* Put a state of a call inside the call's slice. */
static void state_put(struct out *o, const struct sw_trace_span *s,
	uint32_t tid, const char *name, int64_t from_ns, int64_t to_ns)
{
	slice_begin(o, s->daemon, tid, from_ns, to_ns);
	fprintf(o->c.to, ",\"name\":\"%s\",\"cat\":\"state\"}", name);
}

static void call_put(struct out *o, const struct sw_trace_span *s, uint32_t tid,
	const char *name)
{
	bool has_started = s->started_ns != SW_TRACE_UNSEEN &&
			   s->started_ns > s->from_ns &&
			   s->started_ns < s->to_ns;
	int64_t started_ns = has_started ? s->started_ns : s->to_ns;

	slice_begin(o, s->daemon, tid, s->from_ns, s->end_ns);
	fprintf(o->c.to,
		",\"name\":\"%s\",\"cat\":\"call\",\"args\":{"
		"\"number\":%u,\"queued_us\":%.3f%s}}",
		name, s->number, (double)(s->taken_ns - s->from_ns) / 1e3,
		s->has_failed ? ",\"failed\":true" : "");
	if (started_ns > s->from_ns)
		state_put(o, s, tid, "ready", s->from_ns, started_ns);
	if (has_started)
		state_put(o, s, tid, "started", started_ns, s->to_ns);
}

/* Put calls of one tensor and rank; collectives may overlap.  Returns the
 * number of tracks. */
static uint32_t row_put(struct out *o, const struct sw_trace_span *s,
	uint32_t n, uint32_t tid, int64_t *ends)
{
	char name[NAME], label[NAME + 32];
	struct tracks ts = {
		.daemon = s->daemon, .tid = tid, .label = label, .ends = ends};

	tensor_name(o, s->epoch, s->key, name);
	snprintf(label, sizeof(label), "%s, local rank %u", name, s->local);
	tracks_clear(&ts, n);
	for (uint32_t i = 0; i < n; i++)
		call_put(o, &s[i],
			take_track(o, &ts, s[i].from_ns, s[i].end_ns), name);
	return ts.n;
}

static void copy_put(struct out *o, const struct sw_trace_copy *c, uint32_t tid)
{
	char name[NAME];

	slice_begin(o, c->daemon, tid, c->from_ns, c->to_ns);
	fprintf(o->c.to,
		",\"name\":\"%s\",\"cat\":\"copy\",\"args\":{\"bytes\":%u",
		c->kind == SW_TRACE_COPY_IN ? "copy in" : "copy out", c->bytes);
	if (c->call)
		fprintf(o->c.to, ",\"tensor\":\"%s\",\"number\":%u",
			tensor_name(o, c->call->epoch, c->call->key, name),
			c->call->number);
	fprintf(o->c.to, "}}");
}

/* Put the copies of one rank.  A device makes several copies at once. */
static uint32_t copies_put(struct out *o, const struct sw_trace_copy *c,
	uint32_t n, uint32_t tid, int64_t *ends)
{
	char label[NAME];
	struct tracks ts = {
		.daemon = c->daemon, .tid = tid, .label = label, .ends = ends};

	snprintf(label, sizeof(label), "copies of local rank %u", c->local);
	tracks_clear(&ts, n);
	for (uint32_t i = 0; i < n; i++)
		copy_put(
			o, &c[i], take_track(o, &ts, c[i].from_ns, c[i].to_ns));
	return ts.n;
}

static int calls_put(struct out *o)
{
	const struct sw_trace_data *t = o->t;
	uint32_t most = t->n_spans > t->n_copies ? t->n_spans : t->n_copies;
	int64_t *ends = malloc((4 * (size_t)most + 4) * sizeof(*ends));
	uint32_t tid = TID_CALL;

	if (!ends)
		return 1;
	for (uint32_t i = 0, n; i < t->n_spans; i += n) {
		for (n = 1; i + n < t->n_spans &&
			    is_same_row(&t->spans[i], &t->spans[i + n]);
			n++)
			;
		tid += row_put(o, &t->spans[i], n, tid, ends);
	}
	for (uint32_t i = 0, n; i < t->n_copies; i += n) {
		const struct sw_trace_copy *c = &t->copies[i];

		for (n = 1; i + n < t->n_copies && c[n].daemon == c->daemon &&
			    c[n].local == c->local;
			n++)
			;
		tid += copies_put(o, c, n, tid, ends);
	}
	free(ends);
	return 0;
}

/* --- the whole --- */

static void head_put(struct out *o)
{
	const struct sw_trace_data *t = o->t;
	char name[NAME];

	sw_chrome_begin(&o->c);
	fprintf(o->c.to, "\"daemons\":[");
	for (uint32_t i = 0; i < t->n_daemons; i++) {
		const struct sw_trace_daemon *d = &t->daemons[i];
		const struct sw_trace_clock *c = &t->clocks[d->clock];
		uint64_t n_dropped = 0;

		for (uint32_t k = 0; k < SW_MAX_LCORES; k++)
			n_dropped += d->lcores[k].n_lost;
		fprintf(o->c.to,
			"%s{\"node\":\"%s\",\"pid\":%" PRId64
			",\"dropped\":%" PRIu64
			",\"complete\":%s,\"aligned\":%s,\"offset_ns\":%" PRId64
			",\"error_ns\":%" PRId64 "}",
			i ? "," : "",
			sw_chrome_escape(d->hello.node, name, NAME),
			d->hello.pid, n_dropped,
			d->has_ended ? "true" : "false",
			c->is_known ? "true" : "false", c->offset_ns,
			c->error_ns);
	}
	fprintf(o->c.to, "]");
	sw_chrome_events(&o->c);
}

int sw_trace_chrome(const struct sw_trace_data *t, FILE *to, const char *path)
{
	struct out o = {.t = t, .c = {.to = to, .zero_ns = t->zero_ns}};
	char label[2 * NAME], name[NAME];
	int err;

	head_put(&o);
	for (uint32_t i = 0; i < t->n_daemons; i++) {
		const struct sw_trace_hello *h = &t->daemons[i].hello;

		snprintf(label, sizeof(label), "%s %s (pid %" PRId64 ")",
			h->role, sw_chrome_escape(h->node, name, NAME), h->pid);
		track_name(&o, i, 0, "process_name", label);
		for (uint32_t k = 0; k < SW_MAX_LCORES; k++)
			lcore_put(&o, i, k);
	}
	for (uint32_t i = 0; i < t->n_pieces; i++)
		arrows_put(&o, i);
	err = calls_put(&o);
	sw_chrome_end(&o.c);
	if (!err && !fflush(to) && !ferror(to))
		return 0;
	fprintf(stderr, "sumwire trace: cannot write %s: %s\n", path,
		err ? "no memory" : strerror(errno));
	return 1;
}
