/* client_group.c - libsumwire: how groups begin and end.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A group ends when its members differ, when one aborts it, or at this one when
 * it closes it.  The agent ends what is open of it, by which time nobody uses
 * its buffers any more; what was not put yet ends here.  Streams are named
 * GROUP/KIND; after a close they are GROUP#2/KIND, since others may not have
 * closed the first ones yet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/client_device.h"
#include "pmd/client/client_stage.h"
#include "pmd/client/release.h"
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

/* --- the end --- */

static bool is_open(const struct sw_group *g, const struct sw_call *k)
{
	return k->state == SW_TENSOR_OPEN && k->is_begun && k->group == g;
}

static bool has_open(const struct sw_group *g)
{
	const struct sw_calls *s = &g->client->calls;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++)
		if (is_open(g, &s->calls[i]))
			return true;
	return false;
}

/* What was not put yet ends; what comes back is not copied any more. */
static void drop_calls(struct sw_group *g, int status)
{
	struct sw_client *c = g->client;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++)
		if (is_open(g, &c->calls.calls[i]))
			sw_client_drop_call(c, &c->calls.calls[i], status);
}

/* The same, and what is at the agent has ended or will soon. */
static int end_calls(struct sw_group *g, int status)
{
	struct sw_client *c = g->client;
	uint64_t until_ns = sw_edge_now_ns() +
			    c->settings.wait_timeout_s * UINT64_C(1000000000);

	drop_calls(g, status);
	while (has_open(g) && !c->closed) {
		if (sw_edge_now_ns() >= until_ns)
			return sw_client_fail(c, SW_ETIMEDOUT,
				"group '%s': the agent still uses its buffers "
				"after %u s",
				g->name, c->settings.wait_timeout_s);
		sw_client_turn(c, until_ns);
		sw_client_rx_completions(c);
	}
	return sw_client_check(c);
}

/* It needs a stream by which the others are told. */
static int abort_group(struct sw_group *g, const char *text)
{
	struct sw_client *c = g->client;
	char why[SW_EDGE_WHY_BYTES], name[SW_GROUP_SHORT];
	int err = 0;

	snprintf(why, sizeof(why), "rank %u aborted group '%s': %.80s", c->rank,
		sw_group_short(g, name), text);
	if (!g->death && !sw_group_stream(g))
		err = sw_group_open_stream(g, SW_BARRIER);
	if (!g->death && !err)
		err = sw_group_tell(g, SW_EDGE_ABORT, why);
	if (err && !g->death)
		return err;
	sw_group_die(g, SW_EABORTED, why);
	return end_calls(g, g->death);
}

/* Who leads may be closing it: what is true when nobody does is told.  A close
 * ends what is open, too. */
int sw_client_abort(struct sw_group *g, const char *text)
{
	struct sw_client *c = g->client;
	int err;

	g->n_calls++; /* it is there until sw_group_put */
	if (!g->death) {
		sw_client_lead(c);
		sw_client_follow(c);
	}
	err = g->is_closed ? end_calls(g, SW_ECLOSED) : abort_group(g, text);
	sw_group_put(g);
	return err;
}

int sw_group_abort(struct sw_group *g, const char *text)
{
	struct sw_client *c = g->client;
	int err = sw_client_enter(c);

	if (err)
		return err;
	err = sw_client_abort(g, text ? text : "");
	sw_client_unlock(c);
	return err;
}

void sw_group_release(struct sw_group *g)
{
	struct sw_client *c = g->client;

	if (!sw_client_lock(c))
		return;
	g->is_released = true;
	drop_calls(g, SW_EABORTED);
	c->calls.n_releasing++;
	while (c->calls.copying == g)
		sw_client_wait_changed(
			c, sw_edge_now_ns() + UINT64_C(1000000000));
	c->calls.n_releasing--;
	sw_client_unlock(c);
}

/* --- close --- */

static void unlink_channel(struct sw_client *c, const struct sw_channel *ch)
{
	struct sw_channel **at = &c->calls.channels;

	while (*at && *at != ch)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = ch->next;
	c->calls.turn = c->calls.channels;
}

/* One that could not be closed has its channels still. */
static void free_group(struct sw_group *g)
{
	struct sw_group **at = &g->client->groups;

	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++)
		unlink_channel(g->client, &g->channels[k]);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g);
}

void sw_group_put(struct sw_group *g)
{
	if (!--g->n_calls && g->is_closed)
		free_group(g);
}

static int close_group(struct sw_group *g)
{
	struct sw_client *c = g->client;
	int err = 0;

	g->past->n_closed++;
	/* Who never called needs a stream by which others are told.  Where
	 * none can be opened they wait. */
	if (!sw_group_stream(g) && !g->death && g->n > 1)
		(void)sw_group_open_stream(g, SW_BARRIER);
	g->is_closed = true;
	if (sw_group_stream(g))
		err = sw_group_tell(g, SW_EDGE_CLOSE_GROUP, "");
	if (!err)
		err = end_calls(g, SW_ECLOSED);
	if (err)
		return err;
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++) {
		struct sw_tensor *stream = g->channels[k].stream;

		unlink_channel(c, &g->channels[k]);
		sw_stage_close(c, &g->channels[k]);
		g->channels[k].stream = NULL;
		if (stream && !err)
			err = sw_client_give(c, stream);
	}
	return err;
}

/* One that could not be closed is there until the last of its handles is
 * reported; others count it once, as we do. */
int sw_group_close(struct sw_group *g)
{
	struct sw_client *c = g->client;
	int err = sw_client_enter(c);

	if (err)
		return err;
	g->n_calls++; /* other threads may take what ends meanwhile */
	err = g->is_closed ? sw_client_fail(c, SW_EINVAL,
				     "group '%s' was closed before", g->name)
			   : close_group(g);
	sw_group_put(g);
	sw_client_unlock(c);
	return err;
}

void sw_client_free_groups(struct sw_client *c)
{
	while (c->groups)
		free_group(c->groups);
	while (c->pasts) {
		struct sw_group_past *p = c->pasts;

		c->pasts = p->next;
		free(p);
	}
	while (c->spares) {
		struct sw_stage_spare *s = c->spares;

		c->spares = s->next;
		free(s);
	}
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
