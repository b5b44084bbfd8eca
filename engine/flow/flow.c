/* flow.c - packet numbers and credit between two lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/flow.h"

#include "engine/base/bytes.h"
#include "engine/flow/fanout.h"

static void set_backlog(struct sw_flow *f, uint32_t quanta)
{
	if (!quanta != !f->backlog) {
		f->grants->windows += quanta ? f->window : -(uint64_t)f->window;
		if (f->is_crowded)
			f->crowd->n_behind += quanta ? 1 : -1u;
	}
	f->backlog = quanta;
}

void sw_flow_set_window(struct sw_flow *f, uint32_t bytes)
{
	uint32_t frames = bytes / f->params->payload;
	uint32_t window = bytes / SW_QUANTUM;

	f->frame_bytes = f->params->payload;
	f->frame = sw_quanta(f->frame_bytes);
	if (f->backlog) /* then grants->windows includes its window */
		f->grants->windows += (uint64_t)window - f->window;
	f->window = window;
	sw_congestion_refit(&f->congestion, f->frame);
	/* A peer with a window of few frames needs ACKs earlier. */
	f->ack_every = (uint32_t)sw_max64(
		1, sw_min64(f->params->ack_every, frames / 6));
}

void sw_flow_refit(struct sw_flow *f)
{
	sw_flow_set_window(f, f->window * SW_QUANTUM);
}

void sw_flow_init(struct sw_flow *f, const struct sw_params *params,
	struct sw_grants *grants, bool is_far, uint64_t n_ctl)
{
	memset(f, 0,
		offsetof(struct sw_flow, many)); /* double_ring fills many */
	f->params = params;
	f->grants = grants;
	if (grants)
		grants->n_idle++;
	f->tick_at_ns = UINT64_MAX;
	f->may_ask = true;
	f->is_far = is_far;
	sw_flow_set_window(f, params->window_bytes);
	sw_congestion_init(&f->congestion, f->frame, f->window, is_far);
	if (params->is_unlimited)
		sw_congestion_disable(&f->congestion);
	f->ctl_next = n_ctl + 1;
	for (uint32_t c = 0; c < SW_N_CLASSES; c++) {
		f->space[c].next_psn = 1;
		f->space[c].oldest = 1;
		f->space[c].sent = &f->none;
	}
}

static void begin_ring(struct sw_space *s, struct sw_sent *few)
{
	memset(few, 0, SW_SENT_FEW * sizeof(*few));
	s->sent = few;
	s->mask = SW_SENT_FEW - 1;
	s->most = SW_SENT_FEW / 2;
}

/* Double a ring into @to, which may be its present memory: each entry keeps its
 * index or moves to the new half, and the other index gets an empty entry. */
static void double_ring(struct sw_space *s, struct sw_sent *to)
{
	uint32_t size = s->mask + 1;

	for (uint32_t i = 0; i < size; i++) {
		struct sw_sent e = s->sent[i];
		uint32_t high = (uint32_t)e.psn & size;

		to[i | (high ^ size)] = (struct sw_sent){0};
		to[i | high] = e;
	}
	s->sent = to;
	s->mask += size;
	s->most = 2 * size < SW_SENT_RING ? size : 2 * size;
}

uint32_t sw_flow_grow(struct sw_flow *f, uint32_t class, uint32_t max)
{
	struct sw_space *s = &f->space[class];
	uint64_t n_open = s->next_psn - s->oldest;

	if (!s->most)
		begin_ring(s, f->few[class]);
	while (s->most < SW_SENT_RING && s->most - n_open < max)
		double_ring(s, f->many[class]);
	return (uint32_t)sw_min64(s->most - n_open, max);
}

void sw_flow_restart(struct sw_flow *f)
{
	struct sw_grants *grants = f->grants;
	struct sw_crowd *crowd = f->crowd;
	struct sw_histogram *rtts = f->rtts;
	bool is_patient = f->is_patient;

	sw_flow_fini(f);
	sw_flow_init(f, f->params, grants, f->is_far, f->ctl_next - 1);
	f->rtts = rtts;
	if (crowd)
		sw_crowd_add(crowd, f);
	if (is_patient)
		sw_flow_wait(f);
}

/* --- shared grants --- */

static struct sw_queue *turns_of(const struct sw_flow *f)
{
	return f->is_crowded ? &f->crowd->turns : &f->grants->turns;
}

static uint32_t whole_frames(const struct sw_flow *f, uint64_t quanta)
{
	return (uint32_t)quanta / f->frame * f->frame;
}

/* Round @quanta up to whole frames: a sender overdraws by less than a frame. */
static uint32_t in_frames(const struct sw_flow *f, uint32_t quanta)
{
	return whole_frames(f, quanta + f->frame - 1);
}

/* Return the flow's part of the budget, in proportion to the windows of flows
 * with a backlog. */
static uint64_t share(const struct sw_flow *f)
{
	const struct sw_grants *g = f->grants;

	return g->windows ? g->total * (uint64_t)f->window / g->windows
			  : f->window;
}

/* Return the budget that other flows have left, rounded down to whole frames.
 * Expected results may be late, so set aside one frame per flow that holds
 * nothing. */
static uint32_t left_to(const struct sw_flow *f)
{
	const struct sw_grants *g = f->grants;
	uint64_t whole = g->total + (uint64_t)f->held;
	uint64_t left = whole - sw_min64(whole, g->used);
	uint64_t kept = (g->n_idle - !f->held) * f->frame;

	if (!g->start)
		left = sw_max64(
			left - sw_min64(left, kept), sw_min64(left, f->frame));
	return whole_frames(f, left);
}

/* Under a ceiling, return the quanta that the flow may begin with: its part of
 * half of the ceiling, if that is at least a frame; 0 with a backlog. */
static uint32_t start_below(const struct sw_flow *f)
{
	const struct sw_crowd *c = f->crowd;
	uint64_t part = c->ceiling.limit / 2 / c->n_flows;

	return f->backlog || part < f->frame
		       ? 0
		       : (uint32_t)sw_min64(part, c->grants->start);
}

/* Under a ceiling, return the quanta that the flow may hold now. */
static __attribute__((noinline)) uint32_t allowed_below(const struct sw_flow *f)
{
	const struct sw_crowd *c = f->crowd;
	uint64_t limit = c->ceiling.limit, whole = limit + f->held;
	uint64_t left = whole - sw_min64(whole, c->used);

	if (!f->backlog)
		return (uint32_t)sw_min64(start_below(f), f->window);
	left = sw_min64(whole_frames(f, left), left_to(f));
	left = sw_min64(left, sw_max64(limit / c->n_behind, f->frame));
	return (uint32_t)sw_min64(sw_min64(left, f->backlog), f->window);
}

/* Return the quanta that the flow may hold now: the peer's backlog, limited by
 * the flow's share (at least one frame) and by the budget left, but at least
 * the quanta that each flow may begin with. */
static uint32_t allowed(const struct sw_flow *f)
{
	const struct sw_grants *g = f->grants;
	uint64_t most = g->start;

	if (f->is_crowded)
		return allowed_below(f);
	if (f->backlog)
		most = sw_min64(sw_max64(share(f), f->frame),
			g->start + sw_min64(f->backlog, left_to(f)));
	return (uint32_t)sw_min64(sw_max64(most, g->start), f->window);
}

/* Return the quanta granted and not yet consumed. */
static uint32_t open_grant(const struct sw_flow *f)
{
	return f->given > f->peer_consumed
		       ? (uint32_t)(f->given - f->peer_consumed)
		       : 0;
}

static void note_held(struct sw_flow *f)
{
	struct sw_grants *g = f->grants;
	uint32_t open = open_grant(f);
	/* A sender with a backlog is about to use its first quanta. */
	uint32_t start = f->is_crowded && f->backlog ? 0 : g->start;
	uint32_t held = open > start ? in_frames(f, open - start) : 0;

	if (held == f->held)
		return;
	g->used += held - f->held;
	g->n_idle += !held - !f->held;
	if (f->is_crowded)
		f->crowd->used += held - f->held;
	f->held = held;
}

void sw_flow_expect(struct sw_flow *f, int32_t quanta)
{
	if (!f->grants)
		return;
	set_backlog(f, f->backlog + (uint32_t)quanta);
	note_held(f);
}

bool sw_flow_is_starved(const struct sw_flow *f)
{
	const struct sw_grants *g = f->grants;
	uint32_t open = open_grant(f);

	return g && f->backlog > open && open <= SW_FLOW_START / 2 &&
	       !f->is_crowded &&
	       (share(f) >= SW_FLOW_HASTE ||
		       (!g->start && 2 * g->used < g->total)) &&
	       allowed(f) >= sw_max64(1, 2 * open);
}

static bool is_short(const struct sw_flow *f)
{
	return f->backlog && !open_grant(f);
}

static void give(struct sw_flow *f, uint32_t window)
{
	f->given = sw_max64(f->given, f->peer_consumed + window);
	f->n_since_given = 0;
}

static void give_share(struct sw_flow *f)
{
	give(f, allowed(f));
	note_held(f);
}

struct sw_flow *sw_grants_next(struct sw_queue *q)
{
	struct sw_flow *f;

	while ((f = sw_queue_first(q)) && (!is_short(f) || allowed(f))) {
		bool is_its_turn = is_short(f);

		sw_queue_take(q);
		give_share(f);
		if (is_its_turn)
			return f;
	}
	return NULL;
}

void sw_flow_give(struct sw_flow *f)
{
	if (!f->grants) {
		give(f, f->window);
		return;
	}
	if (!f->backlog || !turns_of(f)->first)
		give_share(f);
	else
		give(f, 0); /* waiting flows come first */
	if (is_short(f) && !f->turn.is_waiting)
		sw_queue_add(turns_of(f), &f->turn, f);
}

/* --- crowds --- */

/* Begin or cease to apply the ceiling to the crowd's grants: recompute the
 * budget that each flow holds, and move the waiting flows to the other queue.
 */
static void set_crowded(struct sw_crowd *c, bool is_crowded)
{
	struct sw_queue *from = is_crowded ? &c->grants->turns : &c->turns;
	struct sw_queue old = *from;
	struct sw_flow *f;

	c->used = c->n_behind = 0;
	for (f = c->flows; f; f = f->next) {
		f->is_crowded = is_crowded;
		c->used += is_crowded ? f->held : 0;
		c->n_behind += is_crowded && f->backlog;
	}
	for (f = c->flows; f; f = f->next)
		note_held(f);
	*from = (struct sw_queue){0};
	while ((f = sw_queue_first(&old))) {
		sw_queue_take(&old);
		sw_queue_add(turns_of(f), &f->turn, f);
	}
	sw_crowd_list(c);
}

/* Return the quanta that the peers have consumed since the flows began. */
static uint64_t passed(const struct sw_crowd *c)
{
	uint64_t sum = 0;

	for (const struct sw_flow *f = c->flows; f; f = f->next)
		sum += f->peer_consumed;
	return sum;
}

/* Return the quanta that the peers consume per round trip, at most the budget;
 * 0: not yet known. */
static uint64_t per_round(const struct sw_crowd *c, uint64_t srtt_ns)
{
	uint64_t age_ns = *c->now_ns - c->ceiling.begun_ns;

	if (age_ns < srtt_ns)
		return 0;
	return sw_min64(c->grants->total,
		(passed(c) - c->ceiling.passed) * srtt_ns / age_ns);
}

void sw_flow_missed(struct sw_flow *f, uint64_t now_ns)
{
	struct sw_crowd *c = f->crowd;
	uint64_t srtt_ns = f->srtt_ns ? f->srtt_ns : f->params->rto_min, now;

	/* Grants from before the ceiling began may still be in use. */
	if (!c || !f->grants || f->params->is_unlimited ||
		(f->is_crowded && c->used > c->ceiling.limit + f->frame))
		return;
	if (sw_ceiling_is_over(&c->ceiling, now_ns))
		sw_ceiling_begin(&c->ceiling, passed(c), now_ns, srtt_ns);
	if (!sw_ceiling_lose(&c->ceiling, &f->lossy_period, c->n_flows,
		    now_ns - 2 * srtt_ns))
		return;
	now = c->ceiling.limit;
	if (!now) {
		now = per_round(c, srtt_ns);
		if (!now || now >= sw_crowd_most(c, f->frame, UINT64_MAX) / 2)
			return;
	}
	sw_ceiling_cut(&c->ceiling, now, f->frame, now_ns, srtt_ns);
	if (!f->is_crowded)
		set_crowded(c, true);
}

void sw_crowd_grow(struct sw_crowd *c)
{
	const struct sw_flow *f = c->flows;

	if (!sw_ceiling_is_low(&c->ceiling) ||
		c->used < c->ceiling.limit - c->ceiling.limit / 4)
		return;
	sw_ceiling_grow(&c->ceiling, f->frame,
		sw_crowd_most(c, f->frame, c->grants->total), *c->now_ns,
		f->srtt_ns);
	if (!sw_ceiling_is_low(&c->ceiling))
		set_crowded(c, false);
}

static void leave(struct sw_flow *f)
{
	struct sw_crowd *c = f->crowd;

	if (!c)
		return;
	sw_fanout_leave(f);
	if (f->is_crowded)
		c->used -= f->held;
	f->is_crowded = false;
	sw_crowd_remove(c, f);
	if (c->n_flows >= SW_CEILING_MANY || !sw_ceiling_is_low(&c->ceiling))
		return;
	c->ceiling.limit = 0;
	set_crowded(c, false);
}

void sw_flow_fini(struct sw_flow *f)
{
	if (f->grants) {
		set_backlog(f, 0);
		sw_queue_drop(turns_of(f), &f->turn);
		f->grants->used -= f->held;
		f->grants->n_idle -= !f->held;
	}
	leave(f);
	f->grants = NULL;
}

/* --- frames out, frames in --- */

void sw_flow_rest(struct sw_flow *f)
{
	if (f->granted > f->consumed) {
		f->returned += f->granted - f->consumed;
		sw_congestion_skip(&f->congestion, f->granted - f->consumed);
		f->consumed = f->granted;
	}
	f->rested = f->consumed;
}

void sw_flow_send_ctl(struct sw_flow *f, struct sw_header *h)
{
	h->class = SW_CLASS_CTL;
	h->psn = f->ctl_next++;
	sw_flow_give(f);
	h->consumed = (uint32_t)f->consumed;
	h->grant = (uint32_t)f->given;
	h->ctl.returned = (uint32_t)f->returned;
}

bool sw_flow_is_far_newer(const struct sw_flow *f, const struct sw_header *h)
{
	uint64_t last = f->rx_psn[h->class], far = f->far_psn[h->class];

	if (h->psn <= last)
		return false;
	return sw_psn_follows(h->psn, far) ||
	       (h->class == SW_CLASS_CTL &&
		       (!last ||
			       (h->psn - last <= SW_PSN_SKIP && h->psn > far)));
}

/* Record the number of @h, which sw_flow_is_next has rejected. Returns whether
 * the frame is newer than all before it. */
static __attribute__((noinline)) bool note_far(
	struct sw_flow *f, const struct sw_header *h)
{
	uint64_t *last = &f->rx_psn[h->class], *far = &f->far_psn[h->class];
	bool is_newer = sw_flow_is_far_newer(f, h);

	if (h->psn <= *last)
		return false;
	if (is_newer && (h->class != SW_CLASS_CTL || !*last ||
				sw_psn_follows(h->psn, *far)))
		*last = h->psn;
	else
		*far = h->psn;
	return is_newer;
}

bool sw_flow_rx(struct sw_flow *f, const struct sw_header *h)
{
	int32_t used = (int32_t)(h->consumed - (uint32_t)f->peer_consumed);
	int32_t more = (int32_t)(h->grant - (uint32_t)f->granted);

	if (sw_flow_is_next(f, h))
		f->rx_psn[h->class] = h->psn;
	else if (!note_far(f, h))
		return false; /* ignore the stale counts of a late or duplicate
				 frame */
	/* Even the newest frame of a space may be minutes old. A sender cannot
	 * have consumed more than its grant, so a larger count is a stale one
	 * that has wrapped. */
	if (used > 0 && used <= SW_CREDIT_MAX)
		f->peer_consumed += (uint32_t)used;
	if (f->grants) {
		if ((h->type == SW_PUSH || h->type == SW_KEEPALIVE) &&
			f->grants->start)
			set_backlog(f, sw_flags_backlog(h->flags));
		note_held(f);
	}
	if (more <= 0 ||
		f->granted + (uint32_t)more > f->consumed + SW_CREDIT_MAX)
		return false;
	f->granted += (uint32_t)more;
	return true;
}
