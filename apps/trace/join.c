/* join.c - join the events of each piece in traces, and align the clocks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/trace/load.h"
#include "engine/base/bytes.h"

/* A chunk's event, with the keys of its piece. */
struct item {
	uint64_t epoch, t_ns;
	uint32_t seed, key, round, chunk;
	uint16_t member, daemon, lcore;
	uint8_t stage; /* SW_STAGES: the event is no stage */
	struct sw_trace_event *event;
};

static const uint8_t stages[SW_TRACE_KINDS] = {
	[SW_TRACE_PUSH] = 1 + SW_STAGE_PUSH,
	[SW_TRACE_FOLD] = 1 + SW_STAGE_FOLD,
	[SW_TRACE_RESULT] = 1 + SW_STAGE_RESULT,
	[SW_TRACE_HOLD] = 1 + SW_STAGE_HOLD};

/* Order the events of one piece, and pieces as struct sw_trace_data has them.
 */
static int compare_pieces(const struct item *x, const struct item *y)
{
	int o = sw_trace_order(x->epoch, y->epoch);

	if (!o)
		o = sw_trace_order(x->key, y->key);
	if (!o)
		o = sw_trace_order(x->round, y->round);
	if (!o)
		o = sw_trace_order(x->chunk, y->chunk);
	return o ? o : sw_trace_order(x->seed, y->seed);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int o = compare_pieces(x, y);

	if (!o)
		o = sw_trace_order(x->stage, y->stage);
	if (!o)
		o = sw_trace_order(x->t_ns, y->t_ns);
	return o ? o : sw_trace_order((uintptr_t)x->event, (uintptr_t)y->event);
}

/* --- clocks --- */

/* Bounds of the offset of clock b against clock a. */
struct bounds {
	int64_t least, most;
};

static void find_clocks(struct sw_trace_data *t)
{
	for (uint32_t i = 0; i < t->n_daemons; i++) {
		struct sw_trace_daemon *d = &t->daemons[i];
		uint32_t c = 0;

		while (c < t->n_clocks &&
			strcmp(t->clocks[c].boot, d->hello.boot) != 0)
			c++;
		if (c == t->n_clocks)
			t->clocks[t->n_clocks++] = (struct sw_trace_clock){
				.boot = d->hello.boot, .is_known = !c};
		d->clock = c;
	}
}

/* Narrow the bounds between two clocks: a frame arrives after it has left. */
static void note_flight(struct sw_trace_data *t, struct bounds *all,
	const struct item *sent, const struct item *came)
{
	uint32_t a = t->daemons[sent->daemon].clock;
	uint32_t b = t->daemons[came->daemon].clock;
	int64_t most = (int64_t)(came->t_ns - sent->t_ns);
	struct bounds *ab = &all[a * t->n_clocks + b];
	struct bounds *ba = &all[b * t->n_clocks + a];

	if (a == b)
		return;
	if (most < ab->most)
		ab->most = most;
	if (-most > ba->least)
		ba->least = -most;
}

/* Return the event of a stage if it is the only one and no retransmission;
 * otherwise NULL. */
static const struct item *only(
	const struct item *items, uint32_t n, enum sw_trace_stage stage)
{
	const struct item *found = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (items[i].stage == stage) {
			if (found || items[i].event->flags & SW_TRACE_RETX)
				return NULL;
			found = &items[i];
		}
	return found;
}

static void note_piece(struct sw_trace_data *t, struct bounds *all,
	const struct item *items, uint32_t n)
{
	const struct item *x[SW_STAGES];

	for (int s = 0; s < SW_STAGES; s++)
		x[s] = only(items, n, (enum sw_trace_stage)s);
	if (x[SW_STAGE_PUSH] && x[SW_STAGE_FOLD])
		note_flight(t, all, x[SW_STAGE_PUSH], x[SW_STAGE_FOLD]);
	if (x[SW_STAGE_RESULT] && x[SW_STAGE_HOLD])
		note_flight(t, all, x[SW_STAGE_RESULT], x[SW_STAGE_HOLD]);
}

/* Align a clock by the clock @from, which is known. */
static bool align_by(struct sw_trace_data *t, const struct bounds *all,
	uint32_t from, uint32_t to)
{
	const struct bounds *b = &all[from * t->n_clocks + to];
	struct sw_trace_clock *a = &t->clocks[from], *c = &t->clocks[to];

	if (b->least == INT64_MIN || b->most == INT64_MAX)
		return false;
	if (llabs(a->offset_ns) > SW_TRACE_TIME_MAX ||
		a->error_ns > SW_TRACE_TIME_MAX)
		return false;
	c->offset_ns = a->offset_ns + b->least + (b->most - b->least) / 2;
	c->error_ns = a->error_ns + llabs(b->most - b->least) / 2 + 1;
	return c->is_known = true;
}

static void align(struct sw_trace_data *t, const struct bounds *all)
{
	bool has_more = true;

	while (has_more) {
		has_more = false;
		for (uint32_t a = 0; a < t->n_clocks; a++)
			for (uint32_t b = 0; b < t->n_clocks; b++)
				if (t->clocks[a].is_known &&
					!t->clocks[b].is_known)
					has_more |= align_by(t, all, a, b);
	}
}

/* --- pieces --- */

/* Return how many events from @items on are of one piece. */
static uint32_t run(const struct item *items, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && !compare_pieces(&items[0], &items[i]))
		i++;
	return i;
}

static struct sw_trace_mark mark_of(
	const struct sw_trace_data *t, const struct item *x)
{
	int64_t to_ns =
		sw_trace_time(t, &t->daemons[x->daemon], x->event->t_ns);

	return (struct sw_trace_mark){.from_ns = to_ns - x->event->ns,
		.to_ns = to_ns,
		.daemon = x->daemon,
		.lcore = x->lcore,
		.event = x->event};
}

/* Take the last of several sent frames that may have caused the effect. */
static void take_sent(struct sw_trace_piece *p, const struct sw_trace_mark *m,
	enum sw_trace_stage stage)
{
	const struct sw_trace_mark *effect = &p->stages[stage + 1];
	struct sw_trace_mark *now = &p->stages[stage];

	if (!now->event || !effect->event || m->to_ns <= effect->from_ns)
		*now = *m;
}

static void make_piece(const struct sw_trace_data *t, const struct item *items,
	uint32_t n, struct sw_trace_piece *p)
{
	*p = (struct sw_trace_piece){.epoch = items->epoch,
		.seed = items->seed,
		.key = items->key,
		.round = items->round,
		.chunk = items->chunk,
		.member = items->member};
	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_mark m = mark_of(t, &items[i]);
		enum sw_trace_stage s = items[i].stage;

		if (s == SW_STAGE_FOLD || s == SW_STAGE_HOLD)
			p->stages[s] = m;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_mark m = mark_of(t, &items[i]);
		enum sw_trace_stage s = items[i].stage;

		if (s == SW_STAGE_PUSH || s == SW_STAGE_RESULT)
			take_sent(p, &m, s);
	}
}

static uint32_t list_lcore(const struct sw_trace_data *t, uint16_t daemon,
	uint16_t lcore, struct item *out)
{
	const struct sw_trace_lcore *l = &t->daemons[daemon].lcores[lcore];
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_events; i++) {
		struct sw_trace_event *e = &l->events[i];
		const struct sw_trace_peer *p;

		if (!stages[e->kind] || e->peer >= l->n_peers)
			continue;
		p = &l->peers[e->peer];
		if (out)
			out[n] = (struct item){.epoch = p->epoch,
				.t_ns = e->t_ns,
				.seed = p->seed,
				.key = e->key,
				.round = e->round,
				.chunk = e->chunk,
				.member = p->member,
				.daemon = daemon,
				.lcore = lcore,
				.stage = (uint8_t)(stages[e->kind] - 1),
				.event = e};
		n++;
	}
	return n;
}

static uint32_t list(const struct sw_trace_data *t, struct item *out)
{
	uint32_t n = 0;

	for (uint16_t d = 0; d < t->n_daemons; d++)
		for (uint16_t l = 0; l < SW_MAX_LCORES; l++)
			n += list_lcore(t, d, l, out ? out + n : NULL);
	return n;
}

/* Keep one fold, or hold, of a piece: only one had an effect.  Drop unsure ones
 * first: the engine dropped their frame, or it was a duplicate. */
static void settle_piece(struct item *items, uint32_t n)
{
	for (uint32_t i = 0, some; i < n; i += some) {
		uint32_t n_left = 0;

		for (some = 1;
			i + some < n && items[i].stage == items[i + some].stage;
			some++)
			;
		for (uint32_t k = i; k < i + some; k++)
			n_left += !(items[k].event->flags & SW_TRACE_UNSURE);
		for (uint32_t k = i; k < i + some; k++) {
			struct sw_trace_event *e = items[k].event;

			if (!(e->flags & SW_TRACE_UNSURE) || !n_left++)
				continue;
			e->kind = SW_TRACE_AGAIN;
			e->bytes = 0;
			items[k].stage = SW_STAGES;
		}
	}
}

/* Return whether both events belong to the same sum. */
static bool is_same_sum(const struct item *x, const struct item *y)
{
	return x->epoch == y->epoch && x->key == y->key &&
	       x->round == y->round && x->chunk == y->chunk;
}

/* Mark the fold that completed a sum.  If the sum has a result and no other
 * fold is known to have completed it, this is the last fold. */
static void settle_sum(struct item *items, uint32_t n)
{
	struct item *last = NULL;
	bool has_result = false, is_known = false;

	for (uint32_t i = 0; i < n; i++) {
		struct item *x = &items[i];

		has_result |= x->stage == SW_STAGE_RESULT;
		if (x->stage != SW_STAGE_FOLD)
			continue;
		is_known |= x->event->flags & SW_TRACE_COMPLETE;
		if (!last || x->t_ns > last->t_ns ||
			(x->t_ns == last->t_ns && x->event > last->event))
			last = x;
	}
	if (last && has_result && !is_known &&
		last->event->flags & SW_TRACE_MAYBE)
		last->event->flags |= SW_TRACE_COMPLETE;
}

static void settle_items(struct item *items, uint32_t n)
{
	uint32_t some;

	for (uint32_t i = 0; i < n; i += some) {
		some = run(&items[i], n - i);
		settle_piece(&items[i], some);
	}
	for (uint32_t i = 0; i < n; i += some) {
		for (some = 1; i + some < n &&
			       is_same_sum(&items[i], &items[i + some]);
			some++)
			;
		settle_sum(&items[i], some);
	}
}

static void make_pieces(struct sw_trace_data *t, struct item *items, uint32_t n)
{
	for (uint32_t i = 0, some; i < n; i += some) {
		some = run(&items[i], n - i);
		make_piece(t, &items[i], some, &t->pieces[t->n_pieces++]);
	}
}

static int join_pieces(struct sw_trace_data *t)
{
	uint32_t n = list(t, NULL), n_pairs;
	struct item *items = malloc((n + 1) * sizeof(*items));
	struct bounds *all;

	t->clocks = calloc(t->n_daemons + 1, sizeof(*t->clocks));
	t->pieces = malloc((n + 1) * sizeof(*t->pieces));
	all = NULL;
	if (t->clocks) {
		find_clocks(t);
		n_pairs = t->n_clocks * t->n_clocks;
		all = malloc((n_pairs + 1) * sizeof(*all));
		for (uint32_t i = 0; all && i < n_pairs; i++)
			all[i] = (struct bounds){INT64_MIN, INT64_MAX};
	}
	if (!items || !t->pieces || !all) {
		free(items);
		free(all);
		return 1;
	}
	list(t, items);
	qsort(items, n, sizeof(*items), compare_items);
	settle_items(items, n);
	for (uint32_t i = 0, some; i < n; i += some) {
		some = run(&items[i], n - i);
		note_piece(t, all, &items[i], some);
	}
	align(t, all);
	make_pieces(t, items, n);
	free(items);
	free(all);
	return 0;
}

int sw_trace_join(struct sw_trace_data *t)
{
	sw_trace_sort_names(t);
	if (!join_pieces(t) && !sw_trace_join_calls(t))
		return 0;
	fprintf(stderr, "sumwire trace: no memory\n");
	return 1;
}
