/* faults.c - note what has failed: the worker, a tensor or a group.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Code that finds a fault only notes it here, and the first fault counts.  The
 * worker owes the servers END at once.  Open rounds and collectives end later,
 * at one place: when rx, tick or take is about to return (settle_noted in
 * worker.c).
 *
 * A server finds a difference between members, and this worker a difference
 * between its local ranks.  The tensor is dead from the first round that
 * differs.  No member can complete that round, since a chunk is done only when
 * all members have pushed the same; all members complete the round before.  So
 * the same call fails at all members.
 *
 * A stream is dead at once, and so are all streams of its group.  Open
 * collectives end between turns, when no frame borrows a buffer.  Each lane
 * first copies the PUSHes that wait in this node's loopback or are lent to its
 * server: the server would otherwise fold bytes that the process writes later.
 * The lane then reports to lane 0, which ends the collectives.
 *
 * Each kind of collective has its own stream.  Ranks that call two kinds under
 * one number of their group therefore wait in two streams.  When a stream makes
 * no progress, its worker looks for that number in the group's other streams,
 * and asks the servers by QUERY to do the same, since a waiting rank has pushed
 * to some of them.
 *
 * If a server other than the coordinator reports a dead stream, or a rank
 * has waited too long, the worker first proposes the end to the coordinator.
 * The coordinator passes on the reason that arrived first, so all members
 * report the same sentence.
 *
 * A server tells its members; a worker tells its lanes and all servers except
 * the one that reported the fault.  END and CLOSE are messages of the control
 * stream (peer/control.h): a bit notes that one is owed, and the worker sends
 * it once. */
#include "engine/worker/faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/stream.h"

/* --- the worker --- */

int sw_worker_end_of(const struct sw_worker *w)
{
	if (!w->left_by_ns)
		return 0;
	return w->fault.err ? w->fault.err : SW_ECLOSED;
}

void sw_worker_end(struct sw_worker *w, const struct sw_fault *why)
{
	if (w->left_by_ns)
		return;
	w->left_by_ns = w->now_ns + SW_LEAVE_FOR_NS;
	w->fault = *why;
	w->is_ending = w->is_unsettled = true;
}

void sw_worker_fail_for(struct sw_worker *w, const struct sw_fault *why)
{
	if (w->left_by_ns)
		return;
	sw_worker_end(w, why);
	w->is_failing = true;
}

void sw_worker_fail(
	struct sw_worker *w, int err, uint32_t key, const char *fmt, ...)
{
	struct sw_fault why;
	va_list ap;

	if (w->left_by_ns)
		return;
	va_start(ap, fmt);
	vsnprintf(w->sentence, sizeof(w->sentence), fmt, ap);
	va_end(ap);
	why = sw_fault_said(err, w->sentence);
	why.key = key;
	sw_worker_fail_for(w, &why);
}

/* --- messages to the user --- */

void sw_lane_say(struct sw_worker *w, int err, const char *text)
{
	if (!w->lane_i) {
		w->events.state(w->events.ctx, w->state, err, text);
	} else if (w->state == SW_WORKER_FAILED) {
		w->lanes->fault = w->fault;
		sw_lane_report(w, SW_LANE_FAILED);
	} else if (w->state == SW_WORKER_LEFT) {
		sw_lane_report(w, SW_LANE_LEFT);
	} else if (!atomic_load(&w->lanes->has_line)) {
		/* Drop it while the last line waits: lines are repeated. */
		snprintf(w->lanes->line, sizeof(w->lanes->line), "%s", text);
		atomic_store(&w->lanes->has_line, true);
	}
}

/* --- tensors and groups --- */

const struct sw_fault *sw_worker_fault(
	const struct sw_worker *w, uint32_t tensor)
{
	const struct sw_wtensor *t = sw_wtensor_at(w, tensor);

	return t && t->life->from ? sw_wtensor_why(t) : NULL;
}

const char *sw_worker_why(
	const struct sw_worker *w, uint32_t tensor, char out[SW_TEXT_MAX])
{
	const struct sw_wtensor *t = sw_wtensor_at(w, tensor);
	const struct sw_fault *f = sw_worker_fault(w, tensor);

	return f ? sw_fault_text(f, t->kind->is_group, t->name, out) : NULL;
}

int sw_worker_death(const struct sw_worker *w, uint32_t tensor)
{
	const struct sw_fault *f = sw_worker_fault(w, tensor);

	return f ? f->err : 0;
}

/* --- tell the servers --- */

static void tell(struct sw_link *l, const struct sw_wtensor *t)
{
	if (!t->kind->is_known(l, t))
		return;
	sw_bitmap_add(&l->ends, sw_wtensor_slot(t)->index);
	sw_link_owe(l, SW_OWE_END);
}

void sw_link_close(struct sw_link *l, const struct sw_wtensor *slot)
{
	if (!slot->kind->is_known(l, slot) ||
		slot->parts[l->peer.index].close_number)
		return;
	sw_bitmap_add(&l->closes, slot->index);
	sw_link_owe(l, SW_OWE_END);
}

bool sw_link_knows_closed(
	const struct sw_link *l, const struct sw_wtensor *slot)
{
	uint32_t number = slot->parts[l->peer.index].close_number;

	return number ? sw_control_has_acked(&l->peer.control, number)
		      : !slot->kind->is_known(l, slot);
}

void sw_link_declared(struct sw_link *l, uint32_t n)
{
	while (l->n_declared != n) {
		const struct sw_wtensor *t =
			sw_wtensor_numbered(l->worker, l->n_declared++);

		if (t->life->from)
			tell(l, t);
	}
}

/* --- end a tensor or group --- */

void sw_tensor_kill(struct sw_worker *w, struct sw_wtensor *t, uint32_t round,
	const struct sw_fault *why)
{
	uint32_t now = t->round + !t->is_begun;
	struct sw_life *g = t->life;
	char text[SW_TEXT_MAX];

	if (t->mode != SW_MODE_SYNC || !round)
		round = 1; /* members share no round number */
	if (sw_worker_end_of(w) || g->is_closed || sw_wtensor_is_dead(t, now) ||
		sw_wtensor_is_dead(t, round))
		return;
	sw_wtensor_blame(t, why);
	w->n_dead += !g->from;
	g->from = round;
	if (!w->lane_i)
		sw_log(w->env->log, SW_LOG_WARN, "%s",
			sw_fault_text(sw_wtensor_why(t), t->kind->is_group,
				t->name, text));
	for (uint32_t i = 0; i < w->n_links; i++)
		tell(&w->links[i], t);
	sw_bitmap_add(&w->ended, sw_wtensor_slot(t)->index);
	w->is_unsettled = true;
}

void sw_group_failed(struct sw_worker *w, int err)
{
	bool is_missed =
		err == SW_EEXPIRED || err == SW_ESTALL || err == SW_EMISMATCH;

	if (is_missed && w->events.failed)
		w->events.failed(w->events.ctx);
}

void sw_stream_propose(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_fault *why)
{
	if (!w->lane_i && !t->kind->is_known(&w->links[0], t)) {
		sw_tensor_kill(w, t, 1, why);
		return;
	}
	if (t->life->from || sw_wtensor_why(t)->err)
		return; /* it has ended, or an end is proposed */
	sw_wtensor_blame(t, why);
	if (w->lane_i)
		sw_lane_tell(w, sw_wtensor_slot(t)); /* lane 0 proposes it */
	else
		tell(&w->links[0], t);
}

static uint8_t manner_of(const struct sw_worker_tensor *d)
{
	if (d->granules)
		return SW_DECLARED_DEVICE;
	return d->is_async ? SW_DECLARED_ASYNC : SW_DECLARED_SYNC;
}

void sw_worker_clash(struct sw_worker *w, uint32_t tensor, uint32_t local,
	const struct sw_worker_tensor *d)
{
	struct sw_wtensor *t = sw_wtensor_at(w, tensor);
	struct sw_fault why = {.err = SW_EMISMATCH};
	uint32_t known = 0; /* a local rank whose declaration counts */

	if (!t)
		return;
	while (known + 1 < w->n_local && !t->locals[known].from)
		known++;
	why.kind = d->window_log2 || t->kind->is_group ? SW_FAULT_OPENED
						       : SW_FAULT_DECLARED;
	why.one = (struct sw_fault_call){.n_elems = d->n_elems,
		.number = t->key == SW_KEY_NONE
				  ? d->priority
				  : sw_priority_of(d->priority, t->key),
		.rank = (uint16_t)(w->first + local),
		.op = manner_of(d),
		.dtype = (uint8_t)d->dtype};
	why.other = (struct sw_fault_call){.n_elems = t->decl.n_elems,
		.number = t->decl.priority,
		.rank = (uint16_t)(w->first + known),
		.op = manner_of(&t->decl),
		.dtype = (uint8_t)t->decl.dtype};
	sw_tensor_kill(w, t, 1, &why);
}

/* Find the collective that is open on @t as number @call of the group. */
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
	struct sw_fault why =
		sw_fault_said(SW_EMISMATCH, sw_coll_name(a->kind));

	why.kind = SW_FAULT_KINDS;
	why.one = sw_call_of(w, a);
	why.other = sw_call_of(w, b);
	sw_tensor_kill(w, t, 1, &why);
}

bool sw_stream_compare(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t call = sw_stream_awaits(w, t);
	const struct sw_worker_coll *other = NULL;
	const struct sw_wtensor *u = NULL;

	while (call && !other && (u = sw_wtensor_next(t, u)))
		other = u != t ? find_call(u, call) : NULL;
	if (other)
		kill_other(w, t, find_call(t, call), other);
	return call != 0;
}

/* --- END and CLOSE, received and sent --- */

void sw_link_on_end(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_fault fault;
	struct sw_wtensor *t;
	uint32_t i;

	if (!sw_fault_read(&fault, payload)) {
		sw_count(&w->stats.rx_state, 1);
		return;
	}
	i = w->by_group[sw_key_index(fault.key)];
	t = i == SW_KEY_NONE ? NULL : &w->tensors[i];
	if (!t || t->own_life.key != fault.key) {
		/* Its declaration will be refused, or it was freed. */
		if (!w->lane_i && !l->server_i)
			sw_group_failed(w, fault.err);
		return;
	}
	sw_fault_received(w, t, &fault);
	if (t->kind->is_group && l->server_i) {
		sw_stream_propose(w, t, &fault); /* the coordinator decides */
		return;
	}
	sw_tensor_kill(w, t, h->round, &fault);
	if (t->kind->is_group || t->own_life.from == h->round)
		sw_bitmap_remove(&l->ends, i); /* the server knows */
}

/* Build the next END or CLOSE.  ENDs go first, since a closed group cannot end.
 * The coordinator gets CLOSE last, and may then reuse the indices of the
 * group's keys. */
uint32_t sw_link_build_end(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	bool is_end = !sw_bitmap_is_empty(&l->ends);
	struct sw_bitmap *set = is_end ? &l->ends : &l->closes;
	uint32_t i = sw_bitmap_first(set);
	struct sw_fault fault = {0};
	const struct sw_wtensor *slot, *u = NULL;

	if (i == SW_BITMAP_NONE)
		return 0;
	sw_bitmap_remove(set, i);
	if (!sw_bitmap_is_empty(&l->ends) || !sw_bitmap_is_empty(&l->closes))
		sw_link_owe(l, SW_OWE_END);
	slot = &w->tensors[i];
	h->type = is_end ? SW_END : SW_CLOSE;
	if (is_end) {
		h->round = slot->own_life.from ? slot->own_life.from : 1;
		fault = *sw_wtensor_why(slot);
	} else {
		slot->parts[l->peer.index].close_number =
			sw_control_next(&l->peer.control);
		while (!l->server_i && (u = sw_wtensor_next(slot, u)))
			if (u->key != SW_KEY_NONE)
				w->by_key[sw_key_index(u->key)] = SW_KEY_NONE;
	}
	fault.key = slot->own_life.key;
	memcpy(w->payload, &fault, sizeof(fault));
	return sizeof(fault);
}
