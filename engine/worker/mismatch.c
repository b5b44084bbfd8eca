/* mismatch.c - a tensor that members call differently is dead; the job goes on.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A server finds it, or this node if its local ranks differ.  It is dead from
 * the round on in which they do.  Nobody can complete that round, since a chunk
 * is done when all have pushed the same; and all complete the one before.  So
 * the same call fails at all members.
 *
 * Of a stream it is at once, and so are all streams of its group.  What is open
 * of them ends before the next turn, when no frame is borrowed: a PUSH that
 * waits in this node's loopback, or is lent to its server, is copied first: it
 * would fold what the process writes there, and others could have that as their
 * result.
 * Each lane does so, and says it to lane 0, which then ends it.
 *
 * Kinds are streams of their own.  So ranks that call two under one number of
 * their group wait in two streams: when one stands still its worker looks for
 * that number in the others that it has, and asks the servers, by QUERY, to do
 * so: whoever waits has pushed to some of them.
 *
 * What a server but the coordinator says of a stream, and who has waited too
 * long, is first said to the coordinator: of all that is said to it at the same
 * time it says one to all, so that all members have one sentence.
 *
 * Who knows tells those who may not: a server its members, at once, and each
 * again that pushes, queries or declares the tensor; a worker its servers,
 * until they have said it themselves, and its lanes.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/worker/stream.h"
#include "engine/worker/sweep.h"
#include "sum/sum.h"

const char *sw_worker_why(const struct sw_worker *w, uint32_t tensor)
{
	const struct sw_wtensor *t = sw_wtensor_at(w, tensor);

	return t && t->dead_from ? t->why : NULL;
}

int sw_worker_death(const struct sw_worker *w, uint32_t tensor)
{
	const struct sw_wtensor *t = sw_wtensor_at(w, tensor);

	return t && t->dead_from ? t->death : 0;
}

/* Its open round ends if it is one of those; in lane 0 when the other lanes
 * have nothing to do with it any more; of a stream before the next turn. */
static void end_if_dead(struct sw_worker *w, struct sw_wtensor *t)
{
	if (!t->is_open || !sw_wtensor_is_dead(t, t->round + !t->is_begun))
		return;
	sw_round_drop(w, t);
	if (!t->stream && !t->n_lanes)
		sw_round_end(w, t, t->death);
	sw_sched_run(&w->sched);
}

/* Its next look at timers says it. */
static void owe_dead(struct sw_link *l, uint32_t i)
{
	sw_bitmap_add(&l->dead, i);
	l->dead_at_ns = l->worker->now_ns;
	sw_peer_wake(&l->peer, 0);
}

/* Have all streams of its group been declared at @l? */
static bool may_close(const struct sw_link *l, const struct sw_wtensor *t)
{
	const struct sw_wtensor *u = NULL;

	while ((u = sw_wtensor_kin(l->worker, t, u)))
		if (u->number >= l->n_declared)
			return false;
	return true;
}

/* The server, if it has chunks of it and knows it from us. */
static void tell(struct sw_link *l, const struct sw_wtensor *t)
{
	if (t->key != SW_KEY_NONE && t->number < l->n_declared &&
		t->parts[l->peer.index].place.n_local &&
		(!t->is_closed || may_close(l, t)))
		owe_dead(l, t->index);
}

void sw_tensor_tell(struct sw_worker *w, const struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_links; i++)
		tell(&w->links[i], t);
}

void sw_link_declared(struct sw_link *l, uint32_t n)
{
	struct sw_worker *w = l->worker;

	while (l->n_declared != n) {
		const struct sw_wtensor *t =
			sw_wtensor_numbered(w, l->n_declared++);
		const struct sw_wtensor *u = NULL;

		if (!t->stream && t->dead_from)
			tell(l, t);
		while ((t->dead_from || t->is_closed) &&
			(u = sw_wtensor_kin(w, t, u)))
			tell(l, u);
	}
}

/* False: it was dead already. */
static bool kill_one(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	int death, const char *why)
{
	uint32_t now = t->round + !t->is_begun;

	if (t->mode != SW_MODE_SYNC || !round)
		round = 1; /* there is no round that all are in */
	/* Once; or twice, where somebody named a round that is to come, and
	 * then this one. */
	if (sw_worker_end_of(w) || sw_wtensor_is_dead(t, now) || t->is_closed ||
		(t->dead_from && (int32_t)(round - now) > 0))
		return false;
	snprintf(t->why, sizeof(t->why), "%s", why);
	t->death = death;
	w->n_dead += !t->dead_from;
	t->dead_from = round;
	if (t->stream) {
		t->n_lanes = w->lane_i ? 1 : w->n_others;
		if (w->lane_i || !t->n_lanes)
			sw_dead_released(w, t);
	}
	sw_tensor_tell(w, t);
	if (!t->stream || !w->lane_i)
		sw_lane_dead(w, t);
	end_if_dead(w, t);
	return true;
}

void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	int death, const char *why)
{
	if (!kill_one(w, t, round, death, why) || w->lane_i)
		return;
	sw_log(w->env->log, SW_LOG_WARN, "%s", t->why);
	/* Of one that has no key yet the coordinator says it. */
	for (struct sw_wtensor *u = NULL; (u = sw_wtensor_kin(w, t, u));)
		if (u->key != SW_KEY_NONE)
			kill_one(w, u, 1, death, t->why);
}

/* Of one whose key is known; another lane through lane 0.  Until the
 * coordinator says it back, or something else that was said to it before. */
static void ask_coordinator(
	struct sw_worker *w, struct sw_wtensor *t, int death, const char *why)
{
	struct sw_link *l = &w->links[0];
	bool was_said =
		w->lane_i ? t->death != 0 : sw_bitmap_has(&l->dead, t->index);

	if (t->dead_from || was_said)
		return;
	snprintf(t->why, sizeof(t->why), "%s", why);
	t->death = death;
	if (w->lane_i) {
		sw_lane_dead(w, t);
		return;
	}
	owe_dead(l, t->index);
}

void sw_stream_propose(
	struct sw_worker *w, struct sw_wtensor *t, int death, const char *why)
{
	if (!w->lane_i && (t->key == SW_KEY_NONE || t->is_closed))
		sw_tensor_kill(w, t, 1, death, why);
	else
		ask_coordinator(w, t, death, why);
}

void sw_dead_released(struct sw_worker *w, const struct sw_wtensor *t)
{
	sw_bitmap_add(&w->dying, t->index);
}

/* Nothing of it has left since it died: what is kept once stays so. */
static bool is_kept(const struct sw_worker *w, struct sw_wtensor *t)
{
	if (!t->is_kept)
		t->is_kept = !w->events.keep ||
			     w->events.keep(w->events.ctx, t->key);
	return t->is_kept;
}

static uint32_t end_dead(struct sw_worker *w, struct sw_wtensor *t)
{
	if (!is_kept(w, t))
		return SW_SWEEP_BURST; /* the next turn goes on */
	if (t->is_open)
		return sw_round_end_some(w, t, t->death);
	sw_bitmap_remove(&w->dying, t->index);
	if (w->lane_i) {
		t->n_lanes = 0;
		sw_lane_report(w, SW_LANE_KEPT, t);
	}
	return 1;
}

uint32_t sw_dead_work(struct sw_worker *w)
{
	return sw_sweep(w, &w->dying, end_dead);
}

static uint32_t priority_of(const struct sw_wtensor *t, uint32_t declared)
{
	return t->key == SW_KEY_NONE ? declared
				     : sw_priority_of(declared, t->key);
}

/* A local rank that has declared it as it is known. */
static uint32_t who_declared(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	uint32_t l = 0;

	while (l + 1 < w->n_local && !t->locals[l].from)
		l++;
	return w->first + l;
}

static const char *kind_of(const struct sw_worker_tensor *d)
{
	if (d->granules)
		return ", of a device";
	return d->is_async ? ", async" : "";
}

void sw_worker_clash(struct sw_worker *w, uint32_t tensor, uint32_t local,
	const struct sw_worker_tensor *d)
{
	struct sw_wtensor *t = sw_wtensor_at(w, tensor);
	char text[SW_TEXT_MAX];

	if (!t)
		return;
	if (t->stream || d->window_log2)
		snprintf(text, sizeof(text),
			"stream %.40s: the ranks, their order, the window or "
			"the priority that rank %u opens it with are not those "
			"of rank %u",
			t->name, w->first + local, who_declared(w, t));
	else
		snprintf(text, sizeof(text),
			"tensor %.40s: rank %u declares %llu x %s, priority "
			"%u%s; rank "
			"%u declared %llu x %s, priority %u%s",
			t->name, w->first + local,
			(unsigned long long)d->n_elems, sw_dtype_name(d->dtype),
			priority_of(t, d->priority), kind_of(d),
			who_declared(w, t), (unsigned long long)t->decl.n_elems,
			sw_dtype_name(t->decl.dtype), t->decl.priority,
			kind_of(&t->decl));
	sw_tensor_kill(w, t, 1, SW_EMISMATCH, text);
}

/* --- other kinds, under one number --- */

/* What a local rank has open on @t as number @call of the group. */
static const struct sw_worker_coll *find_call(
	const struct sw_wtensor *t, uint32_t call)
{
	for (uint32_t i = 0; i < SW_COLLS; i++) {
		const struct sw_coll *c = &t->stream->colls[i];

		if (c->is_open && c->ask.call == call)
			return &c->ask;
	}
	return NULL;
}

static void kill_other(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_coll *a, const struct sw_worker_coll *b)
{
	char text[SW_TEXT_MAX];

	snprintf(text, sizeof(text),
		"stream %.40s: rank %u calls %s, rank %u %s (collective %u)",
		t->name, w->first + a->local, sw_coll_name(a->kind),
		w->first + b->local, sw_coll_name(b->kind), a->call);
	sw_tensor_kill(w, t, 1, SW_EMISMATCH, text);
}

bool sw_stream_compare(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t call = sw_stream_awaits(w, t);
	const struct sw_wtensor *u = call ? sw_wtensor_kin(w, t, NULL) : NULL;

	for (; u; u = sw_wtensor_kin(w, t, u)) {
		const struct sw_worker_coll *other =
			u != t ? find_call(u, call) : NULL;

		if (!other)
			continue;
		kill_other(w, t, find_call(t, call), other);
		break;
	}
	return call != 0;
}

/* --- what a server says, and is told --- */

void sw_link_on_end(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_fault fault;
	struct sw_wtensor *t;
	bool is_closed;
	uint32_t i;

	memcpy(&fault, payload, sizeof(fault));
	sw_text_clean(fault.text, sizeof(fault.text));
	t = sw_tensor_of_key(w, fault.key);
	if (!t)
		return; /* it will be said again when we push it */
	i = t->index;
	if (t->stream)
		sw_wgroup_name(w, &t->stream->group, fault.text);
	is_closed = t->is_closed;
	if (t->stream && l->server_i && !t->dead_from && !is_closed) {
		ask_coordinator(w, t, sw_fault_death(fault.err), fault.text);
		return;
	}
	if (!is_closed)
		sw_tensor_kill(
			w, t, h->round, sw_fault_death(fault.err), fault.text);
	if (is_closed ? h->type == SW_CLOSE : sw_bitmap_has(&l->told, i)) {
		sw_bitmap_remove(&l->dead, i);
	} else { /* each server learns from us that we know */
		tell(l, t);
	}
	if (l->state == SW_LINK_LEAVING && !sw_link_owes_dead(l))
		sw_link_request(w, l); /* LEAVE has waited for that */
}

uint64_t sw_link_tick_dead(struct sw_worker *w, struct sw_link *l)
{
	if (!sw_link_owes_dead(l))
		return UINT64_MAX;
	if (w->now_ns < l->dead_at_ns)
		return l->dead_at_ns;
	l->dead_at_ns = w->now_ns + w->params.query_max;
	sw_link_owe(w, l, SW_OWE_END);
	return l->dead_at_ns;
}

uint32_t sw_link_build_end(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	uint32_t i = sw_bitmap_next(&l->dead, l->dead_turn);
	struct sw_fault fault = {.rank = w->rank};
	const struct sw_wtensor *t;

	if (i == SW_BITMAP_NONE)
		i = sw_bitmap_first(&l->dead);
	if (i == SW_BITMAP_NONE)
		return 0;
	t = &w->tensors[i];
	if (sw_bitmap_next(&l->dead, i + 1) != SW_BITMAP_NONE)
		sw_link_owe(w, l, SW_OWE_END); /* it is next */
	l->dead_turn = i + 1;
	sw_bitmap_add(&l->told, i);
	fault.key = t->key;
	fault.err = (int16_t)t->death;
	memcpy(fault.text, t->why, sizeof(fault.text));
	h->type = t->is_closed && may_close(l, t) ? SW_CLOSE : SW_END;
	if (h->type == SW_END)
		h->round = t->dead_from ? t->dead_from : 1;
	memcpy(w->payload, &fault, sizeof(fault));
	return sizeof(fault);
}
