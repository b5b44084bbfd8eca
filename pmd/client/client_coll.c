/* client_coll.c - libsumwire: groups, and what is called on them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/client.h"
#include "pmd/client/sized.h"
#include <sumwire/coll.h>

enum {
	WINDOW_LOG2 = 9, /* slots: of 8 KiB, 4 MiB */
};

/* --- groups --- */

/* The place of @rank in the group; g->n: it is not there. */
static uint32_t find_rank(const struct sw_group *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->n && g->ranks[i] != rank)
		i++;
	return i;
}

/* @ranks  @n of them; NULL: all */
static int take_ranks(struct sw_group *g, const uint32_t *ranks, uint32_t n)
{
	struct sw_client *c = g->client;

	for (; g->n < n; g->n++) {
		uint32_t rank = ranks ? ranks[g->n] : g->n;

		if (rank >= c->size)
			return sw_client_fail(c, SW_EINVAL,
				"rank %u of the group is not one of the job: 0 "
				"to %u",
				rank, c->size - 1);
		if (find_rank(g, rank) < g->n)
			return sw_client_fail(c, SW_EINVAL,
				"rank %u is in the group twice", rank);
		g->ranks[g->n] = (uint16_t)rank;
	}
	return find_rank(g, c->rank) < n
		       ? 0
		       : sw_client_fail(c, SW_EINVAL,
				 "rank %u is not in the group that it opens",
				 c->rank);
}

static int open_group(struct sw_client *c, const char *name,
	const uint32_t *ranks, uint32_t n_ranks, struct sw_group **out)
{
	struct sw_group *g;
	uint32_t n;
	int err;

	if (!name || !name[0] || strlen(name) > SW_GROUP_NAME_MAX)
		return sw_client_fail(c, SW_EINVAL,
			"the name of a group has 1 to %u bytes",
			SW_GROUP_NAME_MAX);
	n = ranks ? n_ranks : c->size;
	if (n > SW_EDGE_RANKS)
		return sw_client_fail(c, SW_EINVAL,
			"a group has at most %u ranks, not %u", SW_EDGE_RANKS,
			n);
	g = calloc(1, sizeof(*g) + n * sizeof(g->ranks[0]));
	if (!g)
		return sw_client_fail(c, SW_ENOMEM, "out of memory");
	g->client = c;
	err = take_ranks(g, ranks, n);
	if (err) {
		free(g);
		return err;
	}
	memcpy(g->name, name, strlen(name));
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

/* Classes of their own (sw_class_of): what a next step waits for is ahead of
 * what it leaves behind. */
static const uint32_t priorities[SW_N_COLL_KINDS] = {[SW_BARRIER] = 0,
	[SW_BCAST] = 0,
	[SW_ALL_GATHER] = 0,
	[SW_ALL_REDUCE] = 1,
	[SW_REDUCE] = 1,
	[SW_REDUCE_SCATTER] = 3};

/* A stream is opened when its first collective comes: all members are here. */
static int open_stream(struct sw_group *g, enum sw_coll_kind kind)
{
	struct sw_client *c = g->client;
	struct sw_channel *ch = &g->channels[kind];
	char name[SW_EDGE_NAME_BYTES];
	struct sw_tensor_desc d = {.name = name,
		.n_elems = g->n,
		.dtype = (enum sw_dtype)WINDOW_LOG2,
		.priority = priorities[kind],
		.is_async = SW_EDGE_STREAM};
	int err = 0;

	if (ch->stream)
		return 0;
	snprintf(name, sizeof(name), "%s/%s", g->name, sw_coll_name(kind));
	sw_client_lead(c);
	if (!ch->stream) { /* by another thread */
		err = sw_client_open_stream(c, &d, g->ranks, &ch->stream);
		if (ch->stream) {
			ch->next = c->calls.channels;
			c->calls.channels = c->calls.turn = ch;
		}
	}
	sw_client_follow(c);
	return err;
}

/* --- collectives --- */

/* Copies have no operation, floats no bits, bool neither average nor factor. */
static bool has_op(const struct sw_coll_args *a)
{
	bool is_float = a->dtype == SW_F32 || a->dtype == SW_F64 ||
			a->dtype == SW_F16 || a->dtype == SW_BF16;

	if (a->kind == SW_ALL_GATHER || a->kind == SW_BCAST)
		return a->op == SW_SUM;
	if (a->op == SW_AVG || a->op == SW_PREMUL_SUM)
		return a->dtype != SW_BOOL;
	if (a->op == SW_BAND || a->op == SW_BOR || a->op == SW_BXOR)
		return !is_float;
	return a->op < SW_N_OPS;
}

static int check_count(
	struct sw_group *g, const struct sw_coll_args *a, uint32_t each)
{
	struct sw_client *c = g->client;

	if (!each || !a->count || a->count > SW_EDGE_TENSOR_BYTES_MAX / each)
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': %llu elements of dtype %d; allowed are 1 "
			"element to 64 GiB",
			g->name, (unsigned long long)a->count, a->dtype);
	if (!has_op(a))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': there is no %s of %s %s", g->name,
			sw_coll_name(a->kind), sw_op_name(a->op),
			sw_dtype_name(a->dtype));
	if (!has_op(a))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': there is no %s of %s %s", g->name,
			sw_coll_name(a->kind), sw_op_name(a->op),
			sw_dtype_name(a->dtype));
	if ((a->kind == SW_BCAST || a->kind == SW_REDUCE) &&
		find_rank(g, a->root) == g->n)
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': rank %u, the root, is not in it", g->name,
			a->root);
	if (!a->send && (a->kind != SW_BCAST || a->root == c->rank))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': there is no buffer to send from", g->name);
	if (!a->recv && (a->kind != SW_REDUCE || a->root == c->rank))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': there is no buffer for the result",
			g->name);
	return 0;
}

static int check_args(struct sw_group *g, const struct sw_coll_args *a)
{
	if (a->kind <= SW_COLL_NONE || a->kind >= SW_N_COLL_KINDS)
		return sw_client_fail(g->client, SW_EINVAL,
			"group '%s': there is no collective %d", g->name,
			a->kind);
	return a->kind == SW_BARRIER
		       ? 0
		       : check_count(g, a, sw_dtype_bytes(a->dtype));
}

static int call(
	struct sw_group *g, const struct sw_coll_args *args, uint64_t *handle)
{
	struct sw_coll_args a = *args;
	int err = check_args(g, &a);

	if (a.kind == SW_BARRIER)
		a = (struct sw_coll_args){
			.kind = SW_BARRIER, .dtype = SW_U8, .count = 1};
	if (!err)
		err = open_stream(g, a.kind);
	return err ? err : sw_client_call(g, &g->channels[a.kind], &a, handle);
}

/* What was not put yet is the thread's work; where none can be started it waits
 * until somebody waits for it. */
static void see_to_the_rest(struct sw_client *c)
{
	if (c->calls.n_unfinished)
		(void)sw_client_start_thread(c);
	if (c->turn.has_thread)
		sw_client_call_thread(c);
}

int sw_coll(
	struct sw_group *g, const struct sw_coll_args *args, uint64_t *handle)
{
	char why[SW_SIZED_WHY_BYTES];
	struct sw_coll_args own;
	int err = sw_client_enter(g->client);

	if (err)
		return err;
	if (sw_sized_take(&own, sizeof(own), args,
		    SW_UP_TO(struct sw_coll_args, recv), "sw_coll_args", why))
		err = sw_client_fail(
			g->client, SW_EINVAL, "group '%s': %s", g->name, why);
	else
		err = call(g, &own, handle);
	see_to_the_rest(g->client);
	sw_client_unlock(g->client);
	return err;
}
