/* client_coll.c - libsumwire: what is called on groups.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_group.h"
#include "pmd/client/sized.h"
#include <sumwire/coll.h>

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
	return a->op < SW_N_REDUCE_OPS;
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
			sw_coll_name(a->kind), sw_reduce_op_name(a->op),
			sw_dtype_name(a->dtype));
	if ((a->kind == SW_BCAST || a->kind == SW_REDUCE) &&
		!sw_group_has(g, a->root))
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

/* Does this rank both give and get? */
static bool has_both(const struct sw_client *c, const struct sw_coll_args *a)
{
	return a->send && a->recv &&
	       (a->root == c->rank ||
		       (a->kind != SW_BCAST && a->kind != SW_REDUCE));
}

/* Two buffers may share the elements that are the same ones, else none: results
 * would be written over what is still to be sent. */
static int check_overlap(
	struct sw_group *g, const struct sw_coll_args *a, uint32_t each)
{
	struct sw_client *c = g->client;
	bool gathers = a->kind == SW_ALL_GATHER;
	bool scatters = a->kind == SW_REDUCE_SCATTER;
	uintptr_t send = (uintptr_t)a->send, recv = (uintptr_t)a->recv;
	uint64_t part = a->count * each, own;

	if (!has_both(c, a) || send + part * (scatters ? g->n : 1) <= recv ||
		recv + part * (gathers ? g->n : 1) <= send)
		return 0;
	own = sw_group_place(g, c->rank) * part;
	if (send + own * scatters == recv + own * gathers)
		return 0;
	return sw_client_fail(c, SW_EINVAL,
		"group '%s': the buffers of %s overlap: they may be apart, or "
		"%s",
		g->name, sw_coll_name(a->kind),
		gathers    ? "what is sent this rank's part of the result"
		: scatters ? "the result this rank's part of what is sent"
			   : "the same");
}

static int check_args(struct sw_group *g, const struct sw_coll_args *a)
{
	uint32_t each = sw_dtype_bytes(a->dtype);
	int err;

	if (a->kind <= SW_COLL_NONE || a->kind >= SW_N_COLL_KINDS)
		return sw_client_fail(g->client, SW_EINVAL,
			"group '%s': there is no collective %d", g->name,
			a->kind);
	if (a->kind == SW_BARRIER)
		return 0;
	err = check_count(g, a, each);
	return err ? err : check_overlap(g, a, each);
}

/* What the caller asks for, checked, and a stream for it. */
static int prepare(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, struct sw_coll_args *a)
{
	char why[SW_SIZED_WHY_BYTES];
	int err;

	if (g->client != c)
		return sw_client_fail(c, SW_EINVAL,
			"group '%s' belongs to another client", g->name);
	if (sw_sized_take(a, sizeof(*a), args,
		    SW_UP_TO(struct sw_coll_args, recv), "sw_coll_args", why))
		return sw_client_fail(
			c, SW_EINVAL, "group '%s': %s", g->name, why);
	err = sw_group_fail(g);
	if (!err)
		err = check_args(g, a);
	if (a->kind == SW_BARRIER)
		*a = (struct sw_coll_args){
			.kind = SW_BARRIER, .dtype = SW_U8, .count = 1};
	if (!err)
		err = sw_group_open_stream(g, a->kind);
	return err ? err : sw_group_fail(g); /* it may have died meanwhile */
}

int sw_client_ready(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, void **base, uint64_t *bytes)
{
	struct sw_coll_args own;
	int err = prepare(c, g, args, &own);

	*bytes = 0;
	if (err || own.kind == SW_BARRIER)
		return err;
	return sw_client_stages(g, &g->channels[own.kind], &own, base, bytes);
}

/* What was not put yet is the thread's work; where none can be started it waits
 * until somebody waits for it. */
static void see_to_the_rest(struct sw_client *c)
{
	if (c->calls.n_unfinished)
		(void)sw_client_start_thread(c);
	if (c->calls.n_unfinished || c->calls.expire_ns < c->turn.until_ns)
		sw_client_call_thread(c);
	else
		sw_client_changed(c);
}

int sw_client_coll(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, struct sw_call_device *device,
	uint64_t *handle)
{
	struct sw_coll_args own;
	int err = prepare(c, g, args, &own);

	if (!err)
		err = sw_client_call(
			g, &g->channels[own.kind], &own, device, handle);
	see_to_the_rest(c);
	return err;
}

int sw_coll(
	struct sw_group *g, const struct sw_coll_args *args, uint64_t *handle)
{
	int err = sw_client_enter(g->client);

	if (err)
		return err;
	err = sw_client_coll(g->client, g, args, NULL, handle);
	sw_client_unlock(g->client);
	return err;
}
