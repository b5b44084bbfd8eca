/* flow.c - packet numbers and credit between two lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/flow.h"

#include "engine/base/bytes.h"

static void set_backlog(struct sw_flow *f, uint32_t quanta)
{
	if (!quanta != !f->backlog)
		f->grants->windows += quanta ? f->window : -(uint64_t)f->window;
	f->backlog = quanta;
}

void sw_flow_set_window(struct sw_flow *f, uint32_t bytes)
{
	uint32_t frames = bytes / f->params->payload;
	uint32_t window = bytes / SW_QUANTUM;

	if (f->backlog) /* then its window is among theirs */
		f->grants->windows += (uint64_t)window - f->window;
	f->window = window;
	/* A window of few frames must not wait for the sixteenth. */
	f->ack_every = (uint32_t)sw_max64(
		1, sw_min64(f->params->ack_every, frames / 6));
}

void sw_flow_init(struct sw_flow *f, const struct sw_params *params,
	struct sw_grants *grants, uint64_t n_ctl)
{
	memset(f, 0, sizeof(*f));
	f->params = params;
	f->grants = grants;
	f->tick_at_ns = UINT64_MAX;
	sw_flow_set_window(f, params->window_bytes);
	f->ctl_next = n_ctl + 1;
	for (uint32_t c = 0; c < SW_N_CLASSES; c++) {
		f->space[c].next_psn = 1;
		f->space[c].oldest = 1;
	}
}

void sw_flow_restart(struct sw_flow *f)
{
	sw_flow_init(f, f->params, f->grants, f->ctl_next - 1);
}

/* --- grants that are shared --- */

void sw_flow_fini(struct sw_flow *f)
{
	if (!f->grants)
		return;
	set_backlog(f, 0);
	f->grants->used -= f->extra;
	f->grants = NULL;
}

/* The flow's part of all grants, by windows of those that have more to send. */
static uint64_t share(const struct sw_flow *f)
{
	const struct sw_grants *g = f->grants;

	return g->windows ? g->total * (uint64_t)f->window / g->windows
			  : f->window;
}

/* Quanta that the flow may hold now: what its peer has to send, at most its
 * share, at most what others have left; but SW_FLOW_START always. */
static uint32_t allowed(const struct sw_flow *f)
{
	const struct sw_grants *g = f->grants;
	uint64_t left = SW_FLOW_START + g->total + f->extra;
	uint64_t most = sw_min64(share(f), SW_FLOW_START + f->backlog);

	most = sw_min64(most, left - sw_min64(left, g->used));
	return (uint32_t)sw_min64(sw_max64(most, SW_FLOW_START), f->window);
}

/* Quanta granted that have not come. */
static uint32_t open_grant(const struct sw_flow *f)
{
	return f->given > f->peer_consumed
		       ? (uint32_t)(f->given - f->peer_consumed)
		       : 0;
}

static void note_extra(struct sw_flow *f)
{
	uint32_t open = open_grant(f);
	uint32_t extra = open > SW_FLOW_START ? open - SW_FLOW_START : 0;

	f->grants->used += extra - f->extra;
	f->extra = extra;
}

bool sw_flow_is_starved(const struct sw_flow *f)
{
	uint32_t open = open_grant(f);

	return f->grants && f->backlog && open <= SW_FLOW_START / 2 &&
	       allowed(f) >= open + SW_FLOW_START / 2 &&
	       share(f) >= SW_FLOW_HASTE;
}

void sw_flow_give(struct sw_flow *f)
{
	uint32_t window = f->grants ? allowed(f) : f->window;

	f->given = sw_max64(f->given, f->peer_consumed + window);
	if (f->grants)
		note_extra(f);
	f->n_since_given = 0;
}

/* --- frames out, frames in --- */

void sw_flow_send_ctl(struct sw_flow *f, struct sw_header *h)
{
	h->class = SW_CLASS_CTL;
	h->psn = f->ctl_next++;
	sw_flow_give(f);
	h->consumed = (uint32_t)f->consumed;
	h->grant = (uint32_t)f->given;
}

bool sw_flow_rx(struct sw_flow *f, const struct sw_header *h)
{
	int32_t used = (int32_t)(h->consumed - (uint32_t)f->peer_consumed);
	int32_t more = (int32_t)(h->grant - (uint32_t)f->granted);

	/* A late or repeated frame tells the past. */
	if (!sw_flow_is_newer(f, h))
		return false;
	f->rx_psn[h->class] = h->psn;
	/* The newest frame of a space may still be minutes old: what no sender
	 * can have consumed within its grant is the past, seen over a wrap. */
	if (used > 0 && used <= SW_CREDIT_MAX)
		f->peer_consumed += (uint32_t)used;
	if (f->grants) {
		if (h->type == SW_PUSH)
			set_backlog(f, sw_flags_backlog(h->flags));
		note_extra(f);
	}
	if (more <= 0 ||
		f->granted + (uint32_t)more > f->consumed + SW_CREDIT_MAX)
		return false;
	f->granted += (uint32_t)more;
	return true;
}
