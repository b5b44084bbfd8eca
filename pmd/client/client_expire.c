/* client_expire.c - libsumwire: groups whose collectives take too long.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "pmd/client/client_group.h"

const struct sw_tensor *sw_group_stream(const struct sw_group *g)
{
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++)
		if (g->channels[k].stream)
			return g->channels[k].stream;
	return NULL;
}

const char *sw_group_short(const struct sw_group *g, char out[SW_GROUP_SHORT])
{
	enum { CUT = SW_GROUP_SHORT - sizeof("...") };
	bool is_long = strlen(g->name) >= SW_GROUP_SHORT;

	snprintf(out, SW_GROUP_SHORT, "%.*s%s",
		is_long ? (int)CUT : SW_GROUP_SHORT - 1, g->name,
		is_long ? "..." : "");
	return out;
}

int sw_group_tell(
	struct sw_group *g, enum sw_edge_end_kind what, const char *why)
{
	struct sw_edge_end m = {.kind = SW_EDGE_END,
		.what = what,
		.stream = sw_group_stream(g)->id};
	int err;

	snprintf(m.why, sizeof(m.why), "%s", why);
	err = sw_client_ask(g->client, &m, sizeof(m), "end of a group");
	sw_client_rx_completions(g->client);
	return err;
}

static void abort_late(struct sw_client *c, const struct sw_call *k)
{
	char why[SW_EDGE_WHY_BYTES], name[SW_GROUP_SHORT];
	struct sw_group *g = k->group;

	g->is_expired = true;
	snprintf(why, sizeof(why),
		"rank %u timed out in %s %llu of group '%s' "
		"(group timeout %u s)",
		c->rank, sw_coll_name(k->args.kind),
		(unsigned long long)k->number, sw_group_short(g, name),
		g->timeout_s);
	(void)!sw_group_tell(g, SW_EDGE_TIME_OUT, why);
}

/* Of all of it the result is here, and only its caller is late, who copies it.
 */
static bool is_back(const struct sw_client *c, const struct sw_call *k)
{
	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		const struct sw_call_piece *p = &c->calls.pieces[i];

		if (p->handle && p->call == k && !p->is_back)
			return false;
	}
	return k->next == k->args.count;
}

/* Who leads may be closing the group: what is true when nobody does is told.
 * Nobody else leads before sw_group_tell, which does. */
static void expire(struct sw_client *c, uint64_t handle)
{
	const struct sw_call *k;

	sw_client_lead(c);
	sw_client_follow(c);
	sw_client_rx_completions(c);
	k = sw_client_find_call(c, handle);
	if (k && k->state == SW_TENSOR_OPEN && !is_back(c, k) &&
		!k->group->is_closed)
		abort_late(c, k);
}

uint64_t sw_client_expire(struct sw_client *c)
{
	uint64_t now_ns = sw_edge_now_ns(), at_ns = UINT64_MAX;

	if (now_ns < c->calls.expire_ns)
		return c->calls.expire_ns;
	sw_client_rx_completions(c); /* their caller may be late, not others */
	c->calls.expire_ns = UINT64_MAX; /* calls may begin while we tell */
	for (uint32_t i = 0; c->calls.n_open && i < SW_EDGE_COLLS; i++) {
		const struct sw_call *k = &c->calls.calls[i];

		if (k->state != SW_TENSOR_OPEN || !k->deadline_ns ||
			k->group->is_expired)
			continue;
		if (k->deadline_ns <= now_ns)
			expire(c, k->handle);
		else if (k->deadline_ns < at_ns)
			at_ns = k->deadline_ns;
	}
	if (at_ns < c->calls.expire_ns)
		c->calls.expire_ns = at_ns;
	return c->calls.expire_ns;
}
