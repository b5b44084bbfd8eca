/* client_coll.c - libsumwire: groups, their collectives, memory for them.
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

static const char *const kind_names[SW_N_COLL_KINDS] = {NULL, "all_reduce",
	"reduce_scatter", "all_gather", "broadcast", "reduce"};

/* --- memory --- */

int sw_alloc(struct sw_client *c, size_t bytes, void **out)
{
	char name[32];
	struct sw_tensor_desc d = {.name = name,
		.n_elems = bytes,
		.dtype = SW_U8,
		.is_async = SW_EDGE_MEMORY};
	struct sw_tensor *t;
	int err;

	if (!bytes || bytes > SW_EDGE_TENSOR_BYTES_MAX)
		return sw_client_fail(c, SW_EINVAL,
			"sw_alloc of %zu bytes: 1 byte to 64 GiB are possible",
			bytes);
	snprintf(name, sizeof(name), ".memory.%u", c->n_allocs);
	err = sw_client_declare(c, &d, 1, &t);
	if (err)
		return err;
	c->n_allocs++;
	*out = sw_tensor_data(t);
	return 0;
}

/* The declared memory in which @bytes at @p lie; false: none. */
static bool find_memory(const struct sw_client *c, const void *p,
	uint64_t bytes, struct sw_edge_place_at *out)
{
	uintptr_t at = (uintptr_t)p;

	for (uint32_t i = 0; i < c->n_tensors; i++) {
		const struct sw_tensor *t = c->tensors[i];
		uintptr_t base = (uintptr_t)t->data;

		if (!t->memory_bytes || at < base ||
			at - base > t->memory_bytes ||
			bytes > t->memory_bytes - (at - base))
			continue;
		*out = (struct sw_edge_place_at){
			.item = i, .offset = at - base};
		return true;
	}
	return false;
}

/* --- groups --- */

static int check_ranks(
	struct sw_client *c, const uint32_t *ranks, uint32_t n, uint64_t *mask)
{
	bool is_in = false;

	*mask = c->size >= 64 ? ~0ULL : (1ULL << c->size) - 1;
	if (c->size > 64)
		return sw_client_fail(c, SW_EINVAL,
			"a group has at most 64 ranks, the job has %u",
			c->size);
	if (!ranks)
		return 0;
	*mask = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (ranks[i] >= c->size)
			return sw_client_fail(c, SW_EINVAL,
				"rank %u of the group is not one of the job: 0 "
				"to %u",
				ranks[i], c->size - 1);
		if (i && ranks[i] <= ranks[i - 1])
			return sw_client_fail(c, SW_EINVAL,
				"ranks of a group ascend: %u comes behind %u",
				ranks[i], ranks[i - 1]);
		*mask |= 1ULL << ranks[i];
		is_in |= ranks[i] == c->rank;
	}
	return is_in ? 0
		     : sw_client_fail(c, SW_EINVAL,
			       "rank %u is not in the group that it opens",
			       c->rank);
}

int sw_group_open(struct sw_client *c, const char *name, const uint32_t *ranks,
	uint32_t n_ranks, struct sw_group **out)
{
	struct sw_group *g;
	uint64_t mask;
	int err = sw_client_check(c);

	if (err)
		return err;
	if (!name || !name[0] || strlen(name) > SW_GROUP_NAME_MAX)
		return sw_client_fail(c, SW_EINVAL,
			"the name of a group has 1 to %u bytes",
			SW_GROUP_NAME_MAX);
	if (c->local_size > 1)
		return sw_client_fail(c, SW_EINVAL,
			"groups need one local rank per agent, this one has "
			"%u",
			c->local_size);
	err = check_ranks(c, ranks, n_ranks, &mask);
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return sw_client_fail(c, SW_ENOMEM, "out of memory");
	g->client = c;
	g->ranks = mask;
	g->n = (uint32_t)__builtin_popcountll(mask);
	memcpy(g->name, name, strlen(name));
	g->next = c->groups;
	c->groups = g;
	*out = g;
	return 0;
}

/* A stream is opened when its first collective comes: all members are here. */
static int open_stream(struct sw_group *g, enum sw_coll_kind kind)
{
	char name[SW_EDGE_NAME_BYTES];
	struct sw_tensor_desc d = {.name = name,
		.n_elems = g->ranks,
		.dtype = (enum sw_dtype)WINDOW_LOG2,
		.priority = SW_PRIORITY_BY_USE,
		.is_async = SW_EDGE_STREAM};

	if (g->streams[kind])
		return 0;
	snprintf(name, sizeof(name), "%s/%s", g->name, kind_names[kind]);
	return sw_client_declare(g->client, &d, 1, &g->streams[kind]);
}

/* --- collectives --- */

static int check_args(struct sw_group *g, const struct sw_coll_args *a,
	struct sw_edge_coll *m)
{
	struct sw_client *c = g->client;
	uint32_t each = sw_dtype_bytes(a->dtype);
	uint64_t bytes = a->count * each;
	uint64_t all = bytes * g->n;

	if (a->kind <= SW_COLL_NONE || a->kind >= SW_N_COLL_KINDS)
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': there is no collective %d", g->name,
			a->kind);
	if (!each || !a->count || a->count > SW_EDGE_TENSOR_BYTES_MAX / each)
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': %llu elements of dtype %d; allowed are 1 "
			"element to 64 GiB",
			g->name, (unsigned long long)a->count, a->dtype);
	if ((a->kind == SW_BCAST || a->kind == SW_REDUCE) &&
		(a->root >= c->size || !(g->ranks >> a->root & 1)))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': rank %u, the root, is not in it", g->name,
			a->root);
	if (!find_memory(c, a->send, a->kind == SW_REDUCE_SCATTER ? all : bytes,
		    &m->from))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': what is sent does not lie in memory of "
			"sw_alloc",
			g->name);
	if (!find_memory(
		    c, a->recv, a->kind == SW_ALL_GATHER ? all : bytes, &m->to))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': where the result goes does not lie in "
			"memory of sw_alloc",
			g->name);
	return 0;
}

/* A place that is free; NULL: all are open. */
static struct sw_open_coll *take_slot(struct sw_client *c, uint32_t stream)
{
	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		uint64_t n = ++c->n_colls;
		struct sw_open_coll *o = &c->open_colls[n % SW_EDGE_COLLS];

		if (o->state != SW_TENSOR_IDLE)
			continue;
		o->handle = SW_EDGE_COLL_HANDLE |
			    (n << SW_EDGE_TENSOR_BITS & ~SW_EDGE_COLL_HANDLE) |
			    stream;
		o->state = SW_TENSOR_OPEN;
		return o;
	}
	return NULL;
}

static int submit(
	struct sw_group *g, const struct sw_coll_args *a, uint64_t *handle)
{
	struct sw_client *c = g->client;
	struct sw_edge_coll m = {.count = a->count,
		.root = (uint16_t)a->root,
		.kind = (uint8_t)a->kind,
		.dtype = (uint8_t)a->dtype};
	struct sw_open_coll *o;
	int err = sw_client_check(c);

	if (!err)
		err = check_args(g, a, &m);
	if (!err)
		err = open_stream(g, a->kind);
	if (err)
		return err;
	m.stream = g->streams[a->kind]->i;
	o = take_slot(c, m.stream);
	if (!o)
		return sw_client_fail(c, SW_EBUSY,
			"%u collectives are open: wait for one first",
			SW_EDGE_COLLS);
	o->name = g->streams[a->kind]->name;
	m.handle = o->handle;
	if (sw_spsc_put(&c->colls, &m, 1) != 1) {
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the ring of collectives",
			c->settings.agent);
		return sw_client_check(c);
	}
	sw_client_ring(c, &c->control->agent_sleeps);
	*handle = o->handle;
	return 0;
}

int sw_coll(
	struct sw_group *g, const struct sw_coll_args *args, uint64_t *handle)
{
	char why[SW_SIZED_WHY_BYTES];
	struct sw_coll_args own;

	if (sw_sized_take(&own, sizeof(own), args,
		    SW_UP_TO(struct sw_coll_args, recv), "sw_coll_args", why))
		return sw_client_fail(
			g->client, SW_EINVAL, "group '%s': %s", g->name, why);
	return submit(g, &own, handle);
}
