/* client_group.c - libsumwire: open a group; the error that ended it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A group is dead once one of its collectives has ended with an error that ends
 * the group at all members.  Every later call on the group returns that error
 * and its sentence. */
#include "pmd/client/client_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sumwire/coll.h>

enum { GROUPS_MAX = 256 }; /* open */

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

/* Check and copy the @n ranks at @ranks; NULL: all ranks. */
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

/* Return whether the name ends like the stream names of a later group, GROUP#2
 * (client_declare.c). */
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

/* Return the record of closed groups of this name.  The first sw_group_open
 * makes it, so that a close needs no memory. */
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

const char *sw_group_short(const struct sw_group *g, char out[SW_GROUP_SHORT])
{
	enum { CUT = SW_GROUP_SHORT - sizeof("...") };
	bool is_long = strlen(g->name) >= SW_GROUP_SHORT;

	snprintf(out, SW_GROUP_SHORT, "%.*s%s",
		is_long ? (int)CUT : SW_GROUP_SHORT - 1, g->name,
		is_long ? "..." : "");
	return out;
}

/* Each number is a class of its own (sw_class_of): kinds that the current step
 * waits for go ahead of kinds that only the next step needs. */
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

/* --- death --- */

bool sw_client_is_death(int err)
{
	return err == SW_EMISMATCH || err == SW_EABORTED ||
	       err == SW_EREFUSED || err == SW_EPEER || err == SW_ESTALL ||
	       err == SW_EEXPIRED;
}

/* Add this rank's own call to the sentence, because frames carry only a tag of
 * counts and roots, not their values. */
static void add_own_call(struct sw_group *g)
{
	const struct sw_call *k = g->client->calls.calls;
	const struct sw_call *end = k + SW_EDGE_COLLS;
	size_t len = strlen(g->text);
	char root[16] = "";

	while (k < end && (k->state == SW_TENSOR_IDLE || k->group != g ||
				  (uint32_t)k->number != g->why.number))
		k++;
	if (k == end || k->args.kind == SW_BARRIER)
		return;
	if (k->args.kind == SW_BCAST || k->args.kind == SW_REDUCE)
		snprintf(root, sizeof(root), ", root %u", k->args.root);
	snprintf(g->text + len, sizeof(g->text) - len,
		"; here: %s of %llu x %s%s", sw_coll_name(k->args.kind),
		(unsigned long long)k->args.count, sw_dtype_name(k->args.dtype),
		root);
}

void sw_group_die(struct sw_group *g, int death, const struct sw_edge_why *why)
{
	if (g->death)
		return;
	g->death = death;
	g->why = *why;
	snprintf(g->text, sizeof(g->text), "%s", why->text);
	if (why->conflict == SW_CONFLICT_CALL)
		add_own_call(g);
}

void sw_group_note_death(
	struct sw_group *g, const struct sw_tensor *stream, int status)
{
	const struct sw_edge_why *why = &g->client->control->whys[stream->i];

	if (sw_client_is_death(status) && why->text[0]) /* or the job ended */
		sw_group_die(g, status, why);
}

/* Return the error that ended the attachment, or 0. */
static int has_ended(struct sw_client *c)
{
	int err;

	pthread_mutex_lock(&c->turn.lock);
	err = sw_client_check(c);
	pthread_mutex_unlock(&c->turn.lock);
	return err;
}

/* Read the word before taking the lock: sw_client_close sets the error before
 * it changes the word. */
int sw_wait_group_failed_for(
	struct sw_client *c, uint32_t timeout_ms, uint32_t *n)
{
	uint64_t until_ns = sw_client_after_ms(timeout_ms);

	if (!*c->is_ours)
		return sw_client_check(c);
	for (;;) {
		uint32_t now = atomic_load(&c->control->n_failed);
		int err = has_ended(c);

		if (err)
			return err;
		if (now != *n) {
			*n = now;
			return 0;
		}
		if (sw_edge_now_ns() >= until_ns)
			return sw_client_fail(c, SW_ETIMEDOUT,
				"no group has failed in %g s",
				timeout_ms / 1e3);
		sw_edge_word_wait(&c->control->n_failed, now, until_ns);
	}
}

int sw_group_fail(const struct sw_group *g)
{
	if (g->is_released && !g->death)
		return sw_client_fail(g->client, SW_EABORTED,
			"group '%s' was released", g->name);
	return g->death ? sw_client_fail_for(
				  g->client, g->death, &g->why, g->text)
			: 0;
}
