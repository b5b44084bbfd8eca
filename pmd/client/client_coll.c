/* client_coll.c - libsumwire: sw_coll: check a collective and begin it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The first collective of a kind opens the group's stream of that kind.  Then
 * sw_coll adds the call to its channel and puts the first pieces at once
 * (client_call.c); the library's thread puts the remaining pieces. */
#include "pmd/client/client_coll.h"

#include "pmd/client/client_declare.h"
#include "pmd/client/client_form.h"
#include "pmd/client/client_group_end.h"
#include "pmd/client/client_note.h"
#include "pmd/client/sized.h"
#include <sumwire/coll.h>

enum { INLINE_BYTES = 256 << 10 }; /* most bytes that sw_coll copies itself */

/* --- the arguments --- */

/* Return whether the operation is valid: copies have no operation, floats no
 * bit operations, bool neither average nor factor. */
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
			"group '%s': %s does not support %s of %s", g->name,
			sw_coll_name(a->kind), sw_reduce_op_name(a->op),
			sw_dtype_name(a->dtype));
	if ((a->kind == SW_BCAST || a->kind == SW_REDUCE) &&
		!sw_group_has(g, a->root))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': rank %u, the root, is not in it", g->name,
			a->root);
	return 0;
}

/* Check that the caller gave the buffers that this rank needs, or each of their
 * parts. */
static int check_buffers(struct sw_group *g, const struct sw_coll_args *a)
{
	struct sw_client *c = g->client;
	bool scatters = a->parts && a->kind == SW_REDUCE_SCATTER;
	bool gathers = a->parts && a->kind == SW_ALL_GATHER;

	if (a->parts && ((!scatters && !gathers) || (scatters && a->send) ||
				(gathers && a->recv)))
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': parts replace send of reduce_scatter or "
			"recv of all_gather, which is NULL then",
			g->name);
	for (uint32_t i = 0; a->parts && i < g->n; i++)
		if (!a->parts[i])
			return sw_client_fail(c, SW_EINVAL,
				"group '%s': parts[%u] is NULL", g->name, i);
	if (!a->send && !scatters &&
		(a->kind != SW_BCAST || a->root == c->rank))
		return sw_client_fail(
			c, SW_EINVAL, "group '%s': send is NULL", g->name);
	if (!a->recv && !gathers &&
		(a->kind != SW_REDUCE || a->root == c->rank))
		return sw_client_fail(
			c, SW_EINVAL, "group '%s': recv is NULL", g->name);
	return 0;
}

/* Return whether this rank both sends and receives. */
static bool has_both(const struct sw_client *c, const struct sw_coll_args *a)
{
	return a->send && a->recv &&
	       (a->root == c->rank ||
		       (a->kind != SW_BCAST && a->kind != SW_REDUCE));
}

/* Return whether no part overlaps the other buffer, except that this rank's own
 * part may be the same. */
static bool are_parts_apart(
	const struct sw_group *g, const struct sw_coll_args *a, uint64_t bytes)
{
	uintptr_t other =
		(uintptr_t)(a->kind == SW_ALL_GATHER ? a->send : a->recv);
	uint32_t own = sw_group_place(g, g->client->rank);

	for (uint32_t i = 0; i < g->n; i++) {
		uintptr_t part = (uintptr_t)a->parts[i];

		if (part < other + bytes && other < part + bytes &&
			(i != own || part != other))
			return false;
	}
	return true;
}

/* Check that two buffers share only elements at the same place: otherwise
 * results would overwrite data that is not sent yet. */
static int check_overlap(
	struct sw_group *g, const struct sw_coll_args *a, uint32_t each)
{
	struct sw_client *c = g->client;
	bool gathers = a->kind == SW_ALL_GATHER;
	bool scatters = a->kind == SW_REDUCE_SCATTER;
	uintptr_t send = (uintptr_t)a->send, recv = (uintptr_t)a->recv;
	uint64_t part = a->count * each, own;

	own = sw_group_place(g, c->rank) * part;
	if (a->parts && are_parts_apart(g, a, part))
		return 0;
	if (!a->parts && (!has_both(c, a) ||
				 send + part * (scatters ? g->n : 1) <= recv ||
				 recv + part * (gathers ? g->n : 1) <= send ||
				 send + own * scatters == recv + own * gathers))
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
			"group '%s': unknown collective %d", g->name, a->kind);
	if (a->kind == SW_BARRIER)
		return 0;
	err = check_count(g, a, each);
	if (!err)
		err = check_buffers(g, a);
	return err ? err : check_overlap(g, a, each);
}

/* Copy and check the caller's arguments, and open the stream. */
static int prepare(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, bool has_device,
	struct sw_coll_args *a)
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
	if (a->parts && has_device)
		return sw_client_fail(c, SW_EINVAL,
			"group '%s': parts lie in host memory, not on a device",
			g->name);
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

/* --- the call --- */

static struct sw_call *new_call(struct sw_client *c)
{
	struct sw_calls *s = &c->calls;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		uint64_t n = ++s->n_calls;
		struct sw_call *k = &s->calls[n % SW_EDGE_COLLS];

		if (k->state != SW_TENSOR_IDLE)
			continue;
		*k = (struct sw_call){.handle = SW_EDGE_COLL_HANDLE | n,
			.state = SW_TENSOR_OPEN};
		return k;
	}
	return NULL;
}

static void show_buffers(const struct sw_call *k)
{
	bool sends = is_on_device(k) && needs_send(k);
	bool gets = is_on_device(k) && needs_recv(k);
	uint64_t part = k->args.count * elem_bytes(k);

	k->device->sent = k->args.send;
	k->device->sent_bytes = sends ? parts_in(k) * part : 0;
	k->device->received = k->args.recv;
	k->device->received_bytes = gets ? parts_out(k) * part : 0;
}

/* Return the distance between the parts if it is constant; else 0. */
static uint64_t stride_of(const struct sw_call *k)
{
	uint64_t each = k->args.count * elem_bytes(k), stride;
	const uintptr_t *at = (const uintptr_t *)k->args.parts;
	uint32_t n = k->group->n;

	if (!at || n == 1)
		return each;
	stride = at[1] - at[0];
	if (at[1] < at[0] || stride < each || stride > SW_EDGE_TENSOR_BYTES_MAX)
		return 0;
	for (uint32_t i = 2; i < n; i++)
		if (at[i] - at[i - 1] != stride)
			return 0;
	return stride;
}

/* Find a buffer of @parts in memory of sw_alloc. */
static bool find(struct sw_client *c, const struct sw_call *k, const void *p,
	uint64_t parts, struct sw_edge_place_at *at)
{
	uint64_t each = k->args.count * elem_bytes(k);

	if (!p && k->args.parts)
		p = k->args.parts[0];
	return (k->stride || parts == 1) &&
	       sw_client_find_memory(c, p, each + k->stride * (parts - 1), at);
}

/* Find the buffers in memory of sw_alloc, and open stages for the others. */
static int place_buffers(struct sw_client *c, struct sw_call *k)
{
	k->piece = piece_elems(k);
	k->stride = stride_of(k);
	if (k->device)
		show_buffers(k);
	if (!is_on_device(k)) {
		k->has_from = find(c, k, k->args.send, parts_in(k), &k->from);
		k->has_to = find(c, k, k->args.recv, parts_out(k), &k->to);
	}
	if (!is_staged(k))
		return 0;
	return sw_stage_open(c, k->channel, first_stage(k), largest_stage(k));
}

static int open_stages(struct sw_group *g, struct sw_channel *ch,
	const struct sw_coll_args *args, void **base, uint64_t *bytes)
{
	struct sw_call k = {.group = g, .channel = ch, .args = *args};
	int err;

	k.piece = piece_elems(&k);
	err = sw_stage_open(g->client, ch, first_stage(&k), largest_stage(&k));
	*bytes = err ? 0 : sw_stage_memory(ch, first_stage(&k), base);
	return err;
}

/* Set the deadline after the call has begun: the library's thread skips a call
 * that has not begun, and does not check it again. */
static void set_deadline(struct sw_client *c, struct sw_call *k)
{
	if (!k->group->timeout_s)
		return;
	k->deadline_ns =
		sw_edge_now_ns() + k->group->timeout_s * UINT64_C(1000000000);
	if (k->deadline_ns < c->calls.expire_ns)
		c->calls.expire_ns = k->deadline_ns;
}

static int begin_call(struct sw_group *g, struct sw_channel *ch,
	const struct sw_coll_args *args, struct sw_call_device *device,
	uint64_t *handle)
{
	struct sw_client *c = g->client;
	struct sw_call *k = new_call(c);
	int err;

	if (!k)
		return sw_client_fail(c, SW_EBUSY,
			"%u collectives are open: wait for one first",
			SW_EDGE_COLLS);
	k->group = g;
	k->channel = ch;
	k->number = g->n_called + 1;
	k->ready_ns = sw_client_is_traced(c) ? sw_edge_now_ns() : 0;
	k->args = *args;
	if (args->kind == SW_BARRIER)
		k->args.send = k->args.recv = k->token;
	k->device = device;
	err = place_buffers(c, k);
	if (!err) /* while stages were made */
		err = sw_group_fail(g);
	if (err) {
		k->state = SW_TENSOR_IDLE;
		return err;
	}
	k->is_begun = true;
	c->calls.n_open++;
	g->n_calls++;
	g->n_called++;
	if (!ch->first)
		ch->end = &ch->first;
	*ch->end = k;
	ch->end = &k->later;
	*handle = k->handle;
	set_deadline(c, k);
	sw_client_count_work(c, k);
	sw_client_move(c, INLINE_BYTES);
	return 0;
}

int sw_client_ready(struct sw_client *c, struct sw_group *g,
	const struct sw_coll_args *args, void **base, uint64_t *bytes)
{
	struct sw_coll_args own;
	int err = prepare(c, g, args, true, &own);

	*bytes = 0;
	if (err || own.kind == SW_BARRIER)
		return err;
	return open_stages(g, &g->channels[own.kind], &own, base, bytes);
}

/* Have the library's thread put the remaining pieces.  If the thread cannot be
 * started, the next waiting thread puts them. */
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
	int err = prepare(c, g, args, device, &own);

	if (!err)
		err = begin_call(
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
