/* joining.c - what a joining worker waits for, and until when.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/worker/faults.h"

enum { TELL_EVERY_NS = 2000000000 };

bool sw_links_are_open(const struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].state != SW_LINK_OPEN)
			return false;
	return true;
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
	return w->n_awaited && w->size && sw_links_are_open(w);
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
