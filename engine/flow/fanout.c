/* fanout.c - many flows of one sender behind one bottleneck.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/fanout.h"

#include "engine/flow/flow.h"

enum {
	BURST_PART = 8, /* frames late by this part of a round trip may leave at
			   once */
};

/* Return whether a window limits the flow: it has lost frames or got marks. */
static bool is_limited(const struct sw_flow *f)
{
	return !f->congestion.is_open && !f->congestion.is_calm;
}

static void count(struct sw_flow *f)
{
	uint64_t used = 0;

	if (sw_flow_takes_turns(f))
		used = sw_max64(f->congestion.turn, f->consumed) -
		       f->congestion.settled;
	f->crowd->fanout.used += used - f->fan.used;
	f->fan.used = used;
}

/* Let the flow take turns if a ceiling holds and a window limits the flow; else
 * let it send without turns. */
static void follow(struct sw_flow *f)
{
	bool is_low =
		sw_ceiling_is_low(&f->crowd->fanout.ceiling) && is_limited(f);

	if (is_low != sw_flow_takes_turns(f))
		sw_congestion_turn(
			&f->congestion, is_low ? f->consumed : UINT64_MAX);
	count(f);
}

static void follow_all(struct sw_crowd *c)
{
	for (struct sw_flow *f = c->flows; f; f = f->next)
		follow(f);
	sw_crowd_list(c);
}

static uint64_t in_flight(const struct sw_crowd *c)
{
	uint64_t sum = 0;

	for (const struct sw_flow *f = c->flows; f; f = f->next)
		sum += f->consumed - f->congestion.settled;
	return sum;
}

void sw_fanout_lose(struct sw_flow *f, uint64_t sent_ns)
{
	struct sw_crowd *c = f->crowd;
	struct sw_fanout *t;
	uint64_t now;

	if (!c || !c->fans_out || !is_limited(f))
		return;
	t = &c->fanout;
	if (sw_ceiling_is_over(&t->ceiling, *c->now_ns))
		sw_ceiling_begin(&t->ceiling, 0, *c->now_ns, f->srtt_ns);
	if (!sw_ceiling_lose(&t->ceiling, &f->fan.period, c->n_flows, sent_ns))
		return;
	now = t->ceiling.limit;
	if (!now) {
		now = in_flight(c);
		if (now >= sw_crowd_most(c, f->frame, UINT64_MAX) / 2)
			return;
		t->srtt_ns = f->srtt_ns;
	}
	sw_ceiling_cut(&t->ceiling, now, f->frame, *c->now_ns, t->srtt_ns);
	follow_all(c);
}

void sw_fanout_settle(struct sw_flow *f)
{
	struct sw_crowd *c = f->crowd;
	struct sw_fanout *t = &c->fanout;

	t->srtt_ns += f->srtt_ns / 16 - t->srtt_ns / 16;
	if (t->turns.first)
		sw_ceiling_grow(&t->ceiling, f->frame,
			sw_crowd_most(c, f->frame, UINT64_MAX), *c->now_ns,
			t->srtt_ns);
	if (sw_ceiling_is_low(&t->ceiling))
		follow(f);
	else
		follow_all(c);
}

void sw_fanout_wait(struct sw_flow *f)
{
	if (f->fan.turn.is_waiting || f->consumed < f->congestion.turn ||
		f->consumed >= f->granted ||
		f->consumed >= sw_congestion_limit(&f->congestion))
		return;
	sw_queue_add(&f->crowd->fanout.turns, &f->fan.turn, f);
}

void sw_fanout_return(struct sw_flow *f)
{
	if (f->congestion.turn <= f->consumed)
		return;
	sw_congestion_turn(&f->congestion, f->consumed);
	count(f);
}

/* Let @f send one frame. */
static void hand(struct sw_fanout *t, struct sw_flow *f, uint64_t now_ns)
{
	uint64_t gap = f->frame * t->srtt_ns / t->ceiling.limit * 4 / 5;
	uint64_t late = sw_max64(gap, t->srtt_ns / BURST_PART);

	t->at_ns = sw_max64(t->at_ns + late, now_ns) - late + gap;
	sw_congestion_turn(&f->congestion, f->consumed + f->frame);
	count(f);
}

struct sw_flow *sw_fanout_next(struct sw_crowd *c)
{
	struct sw_fanout *t = &c->fanout;
	struct sw_flow *f = sw_queue_first(&t->turns);

	if (!f || *c->now_ns < sw_fanout_at(c))
		return NULL;
	sw_queue_take(&t->turns);
	if (sw_flow_takes_turns(f))
		hand(t, f, *c->now_ns);
	return f;
}

uint64_t sw_fanout_at(const struct sw_crowd *c)
{
	const struct sw_fanout *t = &c->fanout;
	const struct sw_flow *f = sw_queue_first(&t->turns);

	if (!f)
		return UINT64_MAX;
	if (!sw_flow_takes_turns(f))
		return 0;
	return !t->used || t->used + f->frame <= t->ceiling.limit ? t->at_ns
								  : UINT64_MAX;
}

void sw_fanout_leave(struct sw_flow *f)
{
	struct sw_crowd *c = f->crowd;

	sw_queue_drop(&c->fanout.turns, &f->fan.turn);
	c->fanout.used -= f->fan.used;
	f->fan.used = 0;
	if (c->n_flows > SW_CEILING_MANY)
		return;
	c->fanout.ceiling.limit = 0;
	follow_all(c);
}
