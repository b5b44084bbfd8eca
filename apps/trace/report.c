/* report.c - the slowest steps of a trace, and the bottleneck of each.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The critical path of a step ends at the chunk that arrived last.  It leads
 * back over the contribution that completed this chunk's sum, to the call of
 * the rank that made this contribution.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/trace/load.h"
#include "engine/base/bytes.h"

enum { SHOWN = 5, WHO = 192 };

#define PART_NS_MAX (INT64_C(1) << 38)

enum bound {
	COMPUTE,
	STRAGGLER,
	CREDIT,
	LINK,
	SUM,
	COPY,
	UNKNOWN, /* calls or frames were not recorded */
	BOUNDS
};

static const char *const bound_names[BOUNDS] = {
	"compute", "straggler", "credit", "link", "sum", "copy", "unknown"};

/* Calls of one unit of work: a training step's tensors, or a collective. */
struct step {
	uint64_t epoch;
	uint32_t key;    /* streams: of the stream */
	uint32_t number; /* step or round; collective */
	bool is_stream;
	int64_t from_ns, to_ns;
	int64_t ns[BOUNDS];
	const struct sw_trace_piece *last; /* contribution that arrived last */
	const struct sw_trace_span *call;  /* without frames: the last call */
	uint16_t daemon;                   /* where its result arrived last */
};

struct report {
	const struct sw_trace_data *t;
	struct step *steps;
	uint32_t n_steps;
	bool has_tags;
	struct sw_trace_span *calls; /* by tensor, number, member, begin */
	/* When the first of the calls with the same tensor and number began,
	 * at the index of the first of these in @calls. */
	int64_t *begins_ns;
	struct busy *busy; /* by daemon, local rank, then begin */
	uint32_t n_busy;
};

/* A time during which a rank copied, without gaps. */
struct busy {
	uint16_t daemon, local;
	int64_t from_ns, to_ns;
	int64_t before_ns; /* such times of the same rank before it */
};

static bool is_stream(const struct report *r, uint64_t epoch, uint32_t key)
{
	const struct sw_trace_name *n = sw_trace_named(r->t, epoch, key);

	return n && n->is_stream;
}

/* Return the call's tag of a piece. */
static uint32_t tag_of(const struct sw_trace_piece *p)
{
	for (int i = 0; i < SW_STAGES; i++)
		if (p->stages[i].event)
			return p->stages[i].event->step;
	return 0;
}

/* Return whether calls have tags.  Without tags, all of them are 0. */
static bool has_tags(const struct report *r)
{
	const struct sw_trace_data *t = r->t;

	for (uint32_t i = 0; i < t->n_pieces; i++)
		if (tag_of(&t->pieces[i]) &&
			!is_stream(r, t->pieces[i].epoch, t->pieces[i].key))
			return true;
	return false;
}

/* Return the step of a piece: for a tensor its tag, or its round if calls have
 * no tags; for a stream its collective. */
static struct step step_of(
	const struct report *r, const struct sw_trace_piece *p)
{
	struct step s = {.epoch = p->epoch};

	s.is_stream = is_stream(r, p->epoch, p->key);
	s.key = s.is_stream ? p->key : 0;
	s.number = s.is_stream ? p->chunk : r->has_tags ? tag_of(p) : p->round;
	return s;
}

static int compare_steps(const struct step *a, const struct step *b)
{
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

struct sorted {
	struct step step;
	const struct sw_trace_piece *piece;
};

static int compare_sorted(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	int o = compare_steps(&x->step, &y->step);

	return o ? o : (x->piece > y->piece) - (x->piece < y->piece);
}

/* --- one step's path --- */

/* Order by tensor and number, which several ranks' calls share. */
static int compare_calls(const void *a, const void *b)
{
	const struct sw_trace_span *x = a, *y = b;
	int o = sw_trace_order(x->epoch, y->epoch);

	if (!o)
		o = sw_trace_order(x->key, y->key);
	return o ? o : sw_trace_order(x->number, y->number);
}

static int compare_members(const void *a, const void *b)
{
	const struct sw_trace_span *x = a, *y = b;
	int o = compare_calls(a, b);

	return o ? o : sw_trace_order(x->member, y->member);
}

static int compare_begins(const void *a, const void *b)
{
	const struct sw_trace_span *x = a, *y = b;
	int o = compare_members(a, b);

	return o ? o : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static struct sw_trace_span wanted_of(
	const struct report *r, const struct sw_trace_piece *p)
{
	return (struct sw_trace_span){.epoch = p->epoch,
		.key = p->key,
		.number = is_stream(r, p->epoch, p->key) ? p->chunk : p->round,
		.member = p->member,
		.from_ns = INT64_MAX};
}

/* Return the call of the contributing member.  With several local ranks, return
 * the last one's call, for which the member waited.  NULL: it was not
 * recorded. */
static const struct sw_trace_span *call_of(
	const struct report *r, const struct sw_trace_piece *p)
{
	struct sw_trace_span wanted = wanted_of(r, p);
	uint32_t after = sw_trace_first(&wanted, r->calls, r->t->n_spans,
		sizeof(wanted), compare_begins);

	return after && !compare_members(&r->calls[after - 1], &wanted)
		       ? &r->calls[after - 1]
		       : NULL;
}

/* Return when the first member made the call to which @p contributes. */
static int64_t first_call(
	const struct report *r, const struct sw_trace_piece *p, int64_t or_ns)
{
	struct sw_trace_span wanted = wanted_of(r, p);
	uint32_t at = sw_trace_first(&wanted, r->calls, r->t->n_spans,
		sizeof(wanted), compare_calls);

	return at < r->t->n_spans && !compare_calls(&r->calls[at], &wanted) &&
			       r->begins_ns[at] < or_ns
		       ? r->begins_ns[at]
		       : or_ns;
}

static bool has(const struct sw_trace_piece *p, enum sw_trace_stage s)
{
	return p->stages[s].event;
}

/* Return whether both pieces belong to the same sum. */
static bool is_same_sum(
	const struct sw_trace_piece *a, const struct sw_trace_piece *b)
{
	const struct sw_trace_mark *x = &a->stages[SW_STAGE_FOLD];
	const struct sw_trace_mark *y = &b->stages[SW_STAGE_FOLD];

	return a->key == b->key && a->round == b->round &&
	       a->chunk == b->chunk && x->event && y->event &&
	       x->daemon == y->daemon && x->lcore == y->lcore;
}

/* Add @ns to part @b of the path.  Limit it: a trace lasts minutes at most. */
static void add(struct step *s, enum bound b, int64_t ns)
{
	if (ns > 0)
		s->ns[b] += ns < PART_NS_MAX ? ns : PART_NS_MAX;
}

/* Return the sum of the parts of a step. */
static int64_t known(const struct step *s)
{
	int64_t ns = 0;

	for (enum bound b = 0; b < BOUNDS; b++)
		ns += s->ns[b];
	return ns;
}

static int compare_busy(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;
	int o = sw_trace_order(x->daemon, y->daemon);

	if (!o)
		o = sw_trace_order(x->local, y->local);
	return o ? o : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Return how much time the rank of @call spent on copies until @to_ns. */
static int64_t copied_until(
	const struct report *r, const struct sw_trace_span *call, int64_t to_ns)
{
	struct busy wanted = {
		.daemon = call->daemon, .local = call->local, .from_ns = to_ns};
	uint32_t after = sw_trace_first(
		&wanted, r->busy, r->n_busy, sizeof(wanted), compare_busy);
	const struct busy *b = after ? &r->busy[after - 1] : NULL;

	if (!b || b->daemon != wanted.daemon || b->local != wanted.local)
		return 0;
	return b->before_ns + (b->to_ns < to_ns ? b->to_ns : to_ns) -
	       b->from_ns;
}

/* Return how much of the time from @from_ns to @to_ns the rank of @call spent
 * on copies. */
static int64_t copied_ns(const struct report *r,
	const struct sw_trace_span *call, int64_t from_ns, int64_t to_ns)
{
	return to_ns <= from_ns ? 0
				: copied_until(r, call, to_ns) -
					  copied_until(r, call, from_ns);
}

/* Divide the time from the step's begin to the push of @p, for which the step
 * waited. */
static void share_call(struct report *r, struct step *s,
	const struct sw_trace_piece *p, int64_t push_ns)
{
	const struct sw_trace_span *call = call_of(r, p);
	int64_t first_ns, ns;

	if (!call)
		return;
	first_ns = first_call(r, p, call->from_ns);
	if (first_ns < s->from_ns)
		first_ns = s->from_ns;
	add(s, COMPUTE, first_ns - s->from_ns);
	add(s, STRAGGLER, call->from_ns - first_ns);
	ns = copied_ns(r, call, call->from_ns, push_ns);
	add(s, COPY, ns);
	add(s, CREDIT, push_ns - call->from_ns - ns);
}

/* Return when a rank had the result of a piece: at the end of its call, if the
 * call was recorded. */
static int64_t known_ns(const struct report *r, const struct sw_trace_piece *p)
{
	const struct sw_trace_span *call = call_of(r, p);
	int64_t ns = p->stages[SW_STAGE_HOLD].to_ns;

	return call && call->end_ns > ns ? call->end_ns : ns;
}

static bool is_whole(const struct sw_trace_piece *p)
{
	return has(p, SW_STAGE_HOLD) && has(p, SW_STAGE_FOLD) &&
	       has(p, SW_STAGE_RESULT) && has(p, SW_STAGE_PUSH);
}

static bool is_later(const struct report *r, const struct sw_trace_piece *a,
	const struct sw_trace_piece *b)
{
	int64_t a_ns = known_ns(r, a), b_ns = known_ns(r, b);

	if (a_ns != b_ns)
		return a_ns > b_ns;
	return a->stages[SW_STAGE_HOLD].to_ns > b->stages[SW_STAGE_HOLD].to_ns;
}

/* Find the piece with which a step ended: the last one of the rank that
 * finished last.  NULL: no piece was recorded from its push on. */
static const struct sw_trace_piece *find_end(
	const struct report *r, const struct sorted *items, uint32_t n)
{
	const struct sw_trace_piece *end = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (is_whole(items[i].piece) &&
			(!end || is_later(r, items[i].piece, end)))
			end = items[i].piece;
	return end;
}

static void find_path(struct report *r, struct step *s,
	const struct sorted *items, uint32_t n)
{
	const struct sw_trace_piece *end = find_end(r, items, n), *last, *first;
	const struct sw_trace_mark *hold, *fold, *m;

	if (!end)
		return;
	last = first = end;
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_trace_piece *p = items[i].piece;

		if (!is_same_sum(p, end))
			continue;
		if (p->stages[SW_STAGE_FOLD].to_ns >
			last->stages[SW_STAGE_FOLD].to_ns)
			last = p;
		if (p->stages[SW_STAGE_FOLD].to_ns <
			first->stages[SW_STAGE_FOLD].to_ns)
			first = p;
	}
	hold = &end->stages[SW_STAGE_HOLD];
	fold = &last->stages[SW_STAGE_FOLD];
	s->last = last;
	s->daemon = hold->daemon;
	if (has(last, SW_STAGE_PUSH)) {
		m = &last->stages[SW_STAGE_PUSH];
		share_call(r, s, last, m->to_ns);
		add(s, LINK, fold->from_ns - m->to_ns);
	} else { /* its agent was not traced */
		add(s, STRAGGLER,
			fold->from_ns - first->stages[SW_STAGE_FOLD].to_ns);
	}
	add(s, SUM, fold->to_ns - fold->from_ns);
	m = &end->stages[SW_STAGE_RESULT];
	add(s, CREDIT, m->to_ns - fold->to_ns);
	add(s, LINK, hold->from_ns - m->to_ns);
	s->to_ns = known_ns(r, end);
	add(s, COPY, s->to_ns - hold->from_ns);
	add(s, UNKNOWN, s->to_ns - s->from_ns - known(s));
}

static int64_t begin_of(
	const struct report *r, const struct sorted *items, uint32_t n)
{
	int64_t ns = INT64_MAX;

	for (uint32_t i = 0; i < n; i++)
		for (int s = 0; s < SW_STAGES; s++) {
			const struct sw_trace_mark *m =
				&items[i].piece->stages[s];

			if (m->event && m->from_ns < ns)
				ns = m->from_ns;
		}
	return first_call(r, items->piece, ns);
}

/* Divide the time of a sum within one machine: none of its chunks leaves the
 * machine. */
static void share_local(struct report *r, struct step *s,
	const struct sw_trace_span *calls, uint32_t n)
{
	const struct sw_trace_span *last = calls;
	int64_t first_ns = calls->from_ns, to_ns = calls->end_ns, ns;

	for (uint32_t i = 1; i < n; i++) {
		if (calls[i].from_ns < first_ns)
			first_ns = calls[i].from_ns;
		if (calls[i].end_ns > to_ns)
			to_ns = calls[i].end_ns;
		if (calls[i].from_ns > last->from_ns)
			last = &calls[i];
	}
	*s = (struct step){.epoch = last->epoch,
		.key = last->key,
		.number = last->number,
		.is_stream = is_stream(r, last->epoch, last->key),
		.from_ns = first_ns,
		.to_ns = to_ns,
		.call = last};
	ns = copied_ns(r, last, last->from_ns, to_ns);
	add(s, STRAGGLER, last->from_ns - first_ns);
	add(s, COPY, ns);
	add(s, SUM, to_ns - last->from_ns - ns);
}

/* Find steps without frames: calls that several ranks of a machine made. */
static void find_local(struct report *r)
{
	uint32_t n;

	for (uint32_t i = 0; i < r->t->n_spans; i += n) {
		for (n = 1; i + n < r->t->n_spans &&
			    !compare_calls(&r->calls[i], &r->calls[i + n]);
			n++)
			;
		if (n > 1)
			share_local(
				r, &r->steps[r->n_steps++], &r->calls[i], n);
	}
}

/* Index the calls by what they contribute to. */
static void sort_calls(struct report *r)
{
	uint32_t n = r->t->n_spans, first = 0;

	if (!n)
		return;
	memcpy(r->calls, r->t->spans, n * sizeof(*r->calls));
	qsort(r->calls, n, sizeof(*r->calls), compare_begins);
	for (uint32_t i = 0; i < n; i++) {
		if (compare_calls(&r->calls[first], &r->calls[i]))
			first = i;
		if (first == i || r->calls[i].from_ns < r->begins_ns[first])
			r->begins_ns[first] = r->calls[i].from_ns;
	}
}

/* Join the copies of each rank that overlap or touch. */
static void join_copies(struct report *r)
{
	struct busy *last = NULL;

	for (uint32_t i = 0; i < r->t->n_copies; i++) {
		const struct sw_trace_copy *c = &r->t->copies[i];
		bool is_same = last && last->daemon == c->daemon &&
			       last->local == c->local;

		if (is_same && c->from_ns <= last->to_ns) {
			if (c->to_ns > last->to_ns)
				last->to_ns = c->to_ns;
			continue;
		}
		r->busy[r->n_busy] = (struct busy){.daemon = c->daemon,
			.local = c->local,
			.from_ns = c->from_ns,
			.to_ns = c->to_ns,
			.before_ns = is_same ? last->before_ns + last->to_ns -
						       last->from_ns
					     : 0};
		last = &r->busy[r->n_busy++];
	}
}

static int find_steps(struct report *r)
{
	const struct sw_trace_data *t = r->t;
	struct sorted *items = malloc((t->n_pieces + 1) * sizeof(*items));

	r->steps = malloc((t->n_pieces + t->n_spans + 1) * sizeof(*r->steps));
	r->calls = malloc((t->n_spans + 1) * sizeof(*r->calls));
	r->begins_ns = malloc((t->n_spans + 1) * sizeof(*r->begins_ns));
	r->busy = malloc((t->n_copies + 1) * sizeof(*r->busy));
	if (!items || !r->steps || !r->calls || !r->begins_ns || !r->busy) {
		free(items);
		return 1;
	}
	sort_calls(r);
	join_copies(r);
	r->has_tags = has_tags(r);
	for (uint32_t i = 0; i < t->n_pieces; i++)
		items[i] = (struct sorted){
			step_of(r, &t->pieces[i]), &t->pieces[i]};
	qsort(items, t->n_pieces, sizeof(*items), compare_sorted);
	for (uint32_t i = 0, n; i < t->n_pieces; i += n) {
		struct step *s = &r->steps[r->n_steps];

		for (n = 1; i + n < t->n_pieces &&
			    !compare_steps(&items[i].step, &items[i + n].step);
			n++)
			;
		*s = items[i].step;
		s->from_ns = begin_of(r, &items[i], n);
		find_path(r, s, &items[i], n);
		r->n_steps += s->last != NULL;
	}
	if (!r->n_steps)
		find_local(r);
	free(items);
	return 0;
}

/* --- the text --- */

static int compare_length(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	int64_t m = x->to_ns - x->from_ns, n = y->to_ns - y->from_ns;

	return (m < n) - (m > n);
}

static enum bound largest(const int64_t ns[BOUNDS])
{
	enum bound most = COMPUTE;

	for (enum bound b = 0; b < BOUNDS; b++)
		if (ns[b] > ns[most])
			most = b;
	return most;
}

/* Name the source of the contribution for which the step waited. */
static const char *who(
	const struct report *r, const struct step *s, char out[WHO])
{
	const struct sw_trace_mark *push;

	if (s->call) {
		snprintf(out, WHO, "local rank %u (node %.100s)",
			s->call->local,
			r->t->daemons[s->call->daemon].hello.node);
		return out;
	}
	push = &s->last->stages[SW_STAGE_PUSH];
	if (push->event)
		snprintf(out, WHO, "agent %u (node %.100s)", s->last->member,
			r->t->daemons[push->daemon].hello.node);
	else
		snprintf(out, WHO, "agent %u", s->last->member);
	return out;
}

/* Print the call for which the step waited. */
static void last_print(const struct report *r, const struct step *s, FILE *to)
{
	const struct sw_trace_name *n = sw_trace_named(
		r->t, s->epoch, s->call ? s->call->key : s->last->key);
	const char *name = n ? n->name : "a tensor";
	char from[WHO];

	if (s->call)
		fprintf(to, "last call of %s by %s\n", name, who(r, s, from));
	else
		fprintf(to, "last chunk %u of %s, from %s\n",
			s->is_stream ? s->last->round : s->last->chunk, name,
			who(r, s, from));
}

static void step_print(const struct report *r, const struct step *s, FILE *to)
{
	enum bound most = largest(s->ns);

	fprintf(to, "%s %u: %.3f ms, bound by %s (%.3f ms); ",
		s->is_stream ? "collective" : "step", s->number,
		(double)(s->to_ns - s->from_ns) / 1e6, bound_names[most],
		(double)s->ns[most] / 1e6);
	last_print(r, s, to);
	for (enum bound b = 0; b < BOUNDS; b++)
		fprintf(to, "%s %s %.3f", b ? "," : " ", bound_names[b],
			(double)s->ns[b] / 1e6);
	fprintf(to, " ms\n");
}

static void all_print(const struct report *r, FILE *to)
{
	int64_t sums[BOUNDS] = {0}, all = 0;
	uint32_t n[BOUNDS] = {0};

	for (uint32_t i = 0; i < r->n_steps; i++) {
		n[largest(r->steps[i].ns)]++;
		for (enum bound b = 0; b < BOUNDS; b++) {
			sums[b] += r->steps[i].ns[b];
			all += r->steps[i].ns[b];
		}
	}
	fprintf(to, "%u step%s:", r->n_steps, r->n_steps == 1 ? "" : "s");
	for (enum bound b = 0; b < BOUNDS && all; b++)
		fprintf(to, "%s %s %.0f %% (bound %u)", b ? "," : "",
			bound_names[b], 100.0 * (double)sums[b] / (double)all,
			n[b]);
	fprintf(to, "\n");
}

int sw_trace_report(const struct sw_trace_data *t, FILE *to)
{
	struct report r = {.t = t};
	int err = find_steps(&r);

	if (err) {
		fprintf(stderr, "sumwire trace: no memory\n");
	} else if (!r.n_steps) {
		fprintf(to,
			"no step was traced from its begin to its end: record "
			"for longer, at\nall machines of the job; sumwire "
			"status says who is late\n");
	} else {
		all_print(&r, to);
		qsort(r.steps, r.n_steps, sizeof(*r.steps), compare_length);
		for (uint32_t i = 0; i < r.n_steps && i < SHOWN; i++)
			step_print(&r, &r.steps[i], to);
	}
	free(r.steps);
	free(r.calls);
	free(r.begins_ns);
	free(r.busy);
	return err;
}
