/* client_group.c - libsumwire: how groups begin, and their streams.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams are named GROUP/KIND.  After a close they are named GROUP#2/KIND,
 * because other ranks may not have closed the first group yet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/client_device.h"
#include "pmd/client/client_group.h"
#include <sumwire/coll.h>

enum {
	WINDOW_LOG2 = 9,         /* slots: the agent may take fewer */
	WINDOW_BARRIER_LOG2 = 4, /* of which few are under way */
	GROUPS_MAX = 256,        /* open */
};

/* --- open --- */

uint32_t sw_group_place(const struct sw_group *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->n && g->ranks[i] != rank)
		i++;
	return i;
}

const char *sw_group_name(const struct sw_group *g)
{
	return g->name;
}

bool sw_group_has(const struct sw_group *g, uint32_t rank)
{
	return sw_group_place(g, rank) < g->n;
}

/* @ranks  @n of them; NULL: all */
static int take_ranks(struct sw_group *g, const uint32_t *ranks, uint32_t n)
{
	struct sw_client *c = g->client;
	uint64_t seen[(UINT16_MAX + 1) / 64] = {0};

	for (; g->n < n; g->n++) {
		uint32_t rank = ranks ? ranks[g->n] : g->n;

		if (rank >= c->size)
			return sw_client_fail(c, SW_EINVAL,
				"rank %u of the group is not one of the job: 0 "
				"to %u",
				rank, c->size - 1);
		if (seen[rank / 64] >> rank % 64 & 1)
			return sw_client_fail(c, SW_EINVAL,
				"rank %u is in the group twice", rank);
		seen[rank / 64] |= 1ULL << rank % 64;
		g->ranks[g->n] = (uint16_t)rank;
	}
	return sw_group_place(g, c->rank) < n
		       ? 0
		       : sw_client_fail(c, SW_EINVAL,
				 "rank %u is not in the group that it opens",
				 c->rank);
}

/* Names of streams are told from those of later groups by what is behind # */
static bool ends_as_ours(const char *name)
{
	const char *end = strrchr(name, '#');

	return end && end[1] && end[1 + strspn(end + 1, "0123456789")] == 0;
}

static int check_name(struct sw_client *c, const char *name)
{
	uint32_t n = 0;

	if (!name || !name[0] || strlen(name) > SW_GROUP_NAME_MAX ||
		ends_as_ours(name))
		return sw_client_fail(c, SW_EINVAL,
			"the name of a group has 1 to %u bytes, and does not "
			"end with # and digits",
			SW_GROUP_NAME_MAX);
	for (const struct sw_group *g = c->groups; g; g = g->next) {
		n += !g->is_closed;
		if (!g->is_closed && !strcmp(g->name, name))
			return sw_client_fail(c, SW_EBUSY,
				"group '%s' is open: close it first", name);
	}
	if (n < GROUPS_MAX)
		return 0;
	return sw_client_fail(
		c, SW_EBUSY, "%u groups are open: close one first", GROUPS_MAX);
}

/* It is made with the first of its name, so that a close needs no memory. */
static struct sw_group_past *find_past(struct sw_client *c, const char *name)
{
	struct sw_group_past *p = c->pasts;

	while (p && strcmp(p->name, name) != 0)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	memcpy(p->name, name, strlen(name));
	p->next = c->pasts;
	c->pasts = p;
	return p;
}

static int open_group(struct sw_client *c, const char *name,
	const uint32_t *ranks, uint32_t n_ranks, struct sw_group **out)
{
	struct sw_group *g;
	uint32_t n = ranks ? n_ranks : c->size;
	int err = check_name(c, name);

	if (err)
		return err;
	if (n > SW_EDGE_RANKS)
		return sw_client_fail(c, SW_EINVAL,
			"a group has at most %u ranks, not %u", SW_EDGE_RANKS,
			n);
	g = calloc(1, sizeof(*g) + n * sizeof(g->ranks[0]));
	if (!g)
		return sw_client_fail(c, SW_ENOMEM, "out of memory");
	g->client = c;
	err = take_ranks(g, ranks, n);
	g->past = err ? NULL : find_past(c, name);
	if (!err && !g->past)
		err = sw_client_fail(c, SW_ENOMEM, "out of memory");
	if (err) {
		free(g);
		return err;
	}
	memcpy(g->name, name, strlen(name));
	g->generation = g->past->n_closed;
	g->next = c->groups;
	c->groups = g;
	*out = g;
	return 0;
}

int sw_group_open(struct sw_client *c, const char *name, const uint32_t *ranks,
	uint32_t n_ranks, struct sw_group **out)
{
	int err = sw_client_enter(c);

	if (err)
		return err;
	err = open_group(c, name, ranks, n_ranks, out);
	sw_client_unlock(c);
	return err;
}

/* --- streams --- */

static void name_stream(const struct sw_group *g, enum sw_coll_kind kind,
	char name[SW_EDGE_NAME_BYTES])
{
	char which[16] = "";

	if (g->generation)
		snprintf(which, sizeof(which), "#%u", g->generation + 1);
	snprintf(name, SW_EDGE_NAME_BYTES, "%s%s/%s", g->name, which,
		sw_coll_name(kind));
}

/* Classes of their own (sw_class_of): what a next step waits for is ahead of
 * what it leaves behind. */
static const uint32_t priorities[SW_N_COLL_KINDS] = {[SW_BARRIER] = 0,
	[SW_BCAST] = 0,
	[SW_ALL_GATHER] = 0,
	[SW_ALL_REDUCE] = 1,
	[SW_REDUCE] = 1,
	[SW_REDUCE_SCATTER] = 3};

uint32_t sw_coll_priority(enum sw_coll_kind kind)
{
	return priorities[kind];
}

static int open_channel(
	struct sw_group *g, struct sw_channel *ch, enum sw_coll_kind kind)
{
	struct sw_client *c = g->client;
	char name[SW_EDGE_NAME_BYTES];
	bool is_barrier = kind == SW_BARRIER;
	struct sw_tensor_desc d = {.name = name,
		.n_elems = g->n,
		.dtype = (enum sw_dtype)(
			is_barrier ? WINDOW_BARRIER_LOG2 : WINDOW_LOG2),
		.priority = priorities[kind],
		.is_async = SW_EDGE_STREAM};
	int err;

	name_stream(g, kind, name);
	err = sw_client_open_stream(c, &d, g->ranks, &ch->stream);
	if (ch->stream) {
		ch->next = c->calls.channels;
		c->calls.channels = c->calls.turn = ch;
	}
	if (ch->stream && sw_client_is_death(err))
		sw_group_die(g, err, sw_last_error(c));
	return err;
}

int sw_group_open_stream(struct sw_group *g, enum sw_coll_kind kind)
{
	struct sw_channel *ch = &g->channels[kind];
	int err = 0;

	if (ch->stream)
		return 0;
	sw_client_lead(g->client);
	if (!ch->stream) /* by another thread */
		err = open_channel(g, ch, kind);
	sw_client_follow(g->client);
	return err;
}

/* --- time --- */

int sw_group_set_timeout(struct sw_group *g, uint32_t seconds)
{
	struct sw_client *c = g->client;
	int err = sw_client_enter(c);

	if (err)
		return err;
	if (seconds)
		err = sw_client_start_thread(c);
	if (!err)
		g->timeout_s = seconds;
	sw_client_unlock(c);
	return err;
}
