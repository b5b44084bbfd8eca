/* worker_life.c - a worker waits for its job to run, fails, and leaves.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/sweep.h"

#include <stdio.h>

#include "engine/base/error.h"

enum {
	TELL_EVERY_NS = 2000000000,
	SETTLE_COST = 4, /* of an end, as sw_sweep counts work */
};

/* --- the end --- */

/* Say that the worker has failed.  Lane 0 also speaks for the others. */
static void say_failed(struct sw_worker *w)
{
	const struct sw_wtensor *t =
		w->fault.key == SW_KEY_NONE ? NULL
					    : sw_tensor_of_key(w, w->fault.key);
	char text[SW_TEXT_MAX];
	const char *said = w->sentence;

	if (!*said)
		said = sw_fault_text(&w->fault, t && t->kind->is_group,
			t ? t->name : NULL, text);
	if (!w->lane_i)
		sw_log(w->env->log, SW_LOG_ERROR, "job %s, agent %u: %s",
			w->job, w->member, said);
	sw_lane_say(w, w->fault.err, said);
}

/* Begin to leave. */
static void end(struct sw_worker *w)
{
	sw_lanes_command(w, SW_LANE_LEAVE);
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];

		l->state = l->state == SW_LINK_OPEN ? SW_LINK_LEAVING
						    : SW_LINK_CLOSED;
		l->peer.owed &= ~(1u << SW_OWE_DECLARE);
		sw_link_request(w, l);
		sw_link_touch(l);
	}
	sw_rounds_end(w);
}

static uint32_t settle_one(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_bitmap_remove(&w->ended, t->index);
	t->kind->killed(w, t);
	return SETTLE_COST;
}

uint32_t sw_worker_apply_ends(struct sw_worker *w)
{
	uint32_t n = 1 + sw_sweep(w, &w->ended, settle_one);

	if (!sw_bitmap_is_empty(&w->ended))
		return n; /* the next turn continues */
	w->has_ends = false;
	if (w->is_failing) {
		w->is_failing = false;
		w->state = SW_WORKER_FAILED;
		end(w);
		say_failed(w);
	}
	return n;
}

void sw_worker_leave(struct sw_worker *w, const struct sw_fault *why)
{
	static const struct sw_fault nothing = {.key = SW_KEY_NONE};

	if (w->left_by_ns)
		return;
	w->left_by_ns = w->now_ns + SW_LEAVE_FOR_NS;
	w->fault = why ? *why : nothing;
	end(w);
}

/* --- JOINING --- */

/* Are all servers of this lane connected? */
static bool are_open(const struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].state != SW_LINK_OPEN)
			return false;
	return true;
}

/* The lane, and for lane 0 all lanes, have connected and probed. */
static void tell_joined(struct sw_worker *w)
{
	w->has_joined = true;
	if (w->lane_i)
		sw_lane_joined(w);
	else if (!w->payload_bytes)
		sw_link_owe(w, &w->links[0], SW_OWE_PATHS);
}

void sw_worker_check_running(struct sw_worker *w)
{
	if (w->state != SW_WORKER_JOINING || !w->size || w->left_by_ns ||
		w->n_awaited || !are_open(w) ||
		(!w->payload_bytes && !sw_worker_carries(w)))
		return;
	if (!w->has_joined)
		tell_joined(w);
	if (!w->payload_bytes)
		return;
	w->state = SW_WORKER_RUNNING;
	if (!w->lane_i)
		sw_lane_say(w, 0, "");
	for (uint32_t i = 0; i < w->n_links; i++)
		sw_link_declare(w, &w->links[i]);
}

/* Describe why a server is not connected yet. */
static const char *describe_silence(const struct sw_worker *w,
	const struct sw_link *l, char text[SW_TEXT_MAX + 2])
{
	if (w->is_refused && w->refused_link == l) {
		snprintf(text, SW_TEXT_MAX + 2, ": %s", w->refused);
		return text;
	}
	if (l->n_cookies < 2)
		return ", which does not answer";
	snprintf(text, SW_TEXT_MAX + 2,
		", which answers, but not to packets of %u B (payload %u): an "
		"MTU on the path is smaller than the least that sumwire uses, "
		"1280",
		SW_PAYLOAD_MIN + SW_HEAD_BYTES + 28, SW_PAYLOAD_MIN);
	return text;
}

/* Name the agents that have not joined, what is known of them, and the server
 * that they do not reach. */
static void describe_missing(
	const struct sw_worker *w, uint64_t missing, char *out, size_t size)
{
	const struct sw_link *l = &w->links[0];
	char agents[SW_AGENTS_TEXT], at[SW_IP_PORT_TEXT];

	snprintf(out, size, "%s of %u at server %.40s (%s)%s%s",
		sw_agents_text(missing, agents), w->n_members, l->name,
		sw_ip_port_text(l->peer.path.ip, l->udp, at),
		w->known[0] ? "; " : "", w->known);
}

/* Does lane 0 wait only for other lanes?  These have limits of their own, and
 * name the server that is missing. */
static bool waits_for_lanes(const struct sw_worker *w)
{
	return w->n_awaited && w->size && are_open(w);
}

/* Describe what a joining worker waits for. */
static void describe_wait(const struct sw_worker *w, char *out, size_t size)
{
	uint64_t missing = ~w->joined & (~0ULL >> (64 - w->n_members));

	for (uint32_t i = 0; i < w->n_links; i++) {
		const struct sw_link *l = &w->links[i];
		char why[SW_TEXT_MAX + 2], at[SW_IP_PORT_TEXT];

		if (l->state == SW_LINK_OPEN || l->state == SW_LINK_IDLE)
			continue;
		snprintf(out, size, "server %.40s (%s)%s", l->name,
			sw_ip_port_text(l->peer.path.ip, l->udp, at),
			describe_silence(w, l, why));
		return;
	}
	if (waits_for_lanes(w))
		snprintf(out, size, "servers of the node's other lcores");
	else if (missing)
		describe_missing(w, missing, out, size);
	else
		snprintf(out, size,
			"the coordinator to start the job, when all agents "
			"have probed their paths");
}

/* Fail at the deadline.  If a server refused the worker until the other members
 * had given up, name that refusal, not the members that are missing now. */
static void give_up(struct sw_worker *w, uint64_t waited, const char *what)
{
	bool was_refused = w->refused_link && !w->is_refused;

	if (was_refused)
		sw_worker_fail(w, SW_ETIMEDOUT, SW_KEY_NONE,
			"waited %llu s; until %llu s ago server %.40s refused: "
			"%s; now for %s",
			(unsigned long long)(waited / SW_S),
			(unsigned long long)((w->now_ns - w->refused_ns) /
					     SW_S),
			w->refused_link->name, w->refused, what);
	else
		sw_worker_fail(w, SW_ETIMEDOUT, SW_KEY_NONE,
			"waited %llu s for %s",
			(unsigned long long)(waited / SW_S), what);
}

void sw_worker_tick_joining(struct sw_worker *w)
{
	uint64_t waited = w->now_ns - w->started_ns;
	char what[SW_TEXT_MAX + SW_NAME_MAX - 16];
	char text[SW_TEXT_MAX + SW_NAME_MAX];

	if (w->state != SW_WORKER_JOINING || w->left_by_ns ||
		(w->lane_i && (!w->size || w->has_joined)) || /* lane 0 waits */
		(waited < w->params.join_timeout &&
			w->now_ns - w->warned_ns < TELL_EVERY_NS))
		return;
	w->warned_ns = w->now_ns;
	describe_wait(w, what, sizeof(what));
	if (waited >= w->params.join_timeout && !waits_for_lanes(w)) {
		give_up(w, waited, what);
		return;
	}
	snprintf(text, sizeof(text), "waiting for %s", what);
	sw_lane_say(w, 0, text);
}

void sw_worker_check_left(struct sw_worker *w)
{
	bool is_late = w->now_ns >= w->left_by_ns;

	if (!w->left_by_ns || w->state == SW_WORKER_LEFT || w->n_open ||
		w->has_ends ||
		w->n_staying) /* the other lanes have limits of their own */
		return;
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].state == SW_LINK_LEAVING && !is_late)
			return;
	for (uint32_t i = 0; i < w->n_links; i++)
		w->links[i].state = SW_LINK_CLOSED;
	w->state = SW_WORKER_LEFT;
	sw_lane_say(w, w->fault.err, "");
}

bool sw_worker_is_busy(const struct sw_engine *engine)
{
	const struct sw_worker *w = (const struct sw_worker *)engine;

	return w->n_open ||
	       (w->state != SW_WORKER_RUNNING && w->state != SW_WORKER_LEFT);
}
