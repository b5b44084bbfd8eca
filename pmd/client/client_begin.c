/* client_begin.c - libsumwire: how a collective begins.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_form.h"
#include "pmd/client/client_group.h"
#include "pmd/client/client_stage.h"

enum { INLINE_BYTES = 256 << 10 }; /* that sw_coll copies itself */

static struct sw_call *take_call(struct sw_client *c)
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

static void enqueue(struct sw_channel *ch, struct sw_call *k)
{
	if (!ch->first)
		ch->end = &ch->first;
	*ch->end = k;
	ch->end = &k->later;
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

/* Where its buffers lie, and stages for what does not lie in sw_alloc's. */
static int place(struct sw_client *c, struct sw_call *k)
{
	uint64_t each = k->args.count * elem_bytes(k);

	k->piece = piece_elems(k);
	if (k->device)
		show_buffers(k);
	if (!is_on_device(k)) {
		k->has_from = sw_client_find_memory(
			c, k->args.send, parts_in(k) * each, &k->from);
		k->has_to = sw_client_find_memory(
			c, k->args.recv, parts_out(k) * each, &k->to);
	}
	if (!is_staged(k))
		return 0;
	return sw_stage_open(c, k->channel, first_stage(k), largest_stage(k));
}

int sw_client_stages(struct sw_group *g, struct sw_channel *ch,
	const struct sw_coll_args *args, void **base, uint64_t *bytes)
{
	struct sw_call k = {.group = g, .channel = ch, .args = *args};
	int err;

	k.piece = piece_elems(&k);
	err = sw_stage_open(g->client, ch, first_stage(&k), largest_stage(&k));
	*bytes = err ? 0 : sw_stage_memory(ch, first_stage(&k), base);
	return err;
}

/* Once it has begun: the library's thread looks at nothing else, and would not
 * come back to it. */
static void set_deadline(struct sw_client *c, struct sw_call *k)
{
	if (!k->group->timeout_s)
		return;
	k->deadline_ns =
		sw_edge_now_ns() + k->group->timeout_s * UINT64_C(1000000000);
	if (k->deadline_ns < c->calls.expire_ns)
		c->calls.expire_ns = k->deadline_ns;
}

int sw_client_call(struct sw_group *g, struct sw_channel *ch,
	const struct sw_coll_args *args, struct sw_call_device *device,
	uint64_t *handle)
{
	struct sw_client *c = g->client;
	struct sw_call *k = take_call(c);
	int err;

	if (!k)
		return sw_client_fail(c, SW_EBUSY,
			"%u collectives are open: wait for one first",
			SW_EDGE_COLLS);
	k->group = g;
	k->channel = ch;
	k->number = g->n_called + 1;
	k->args = *args;
	if (args->kind == SW_BARRIER)
		k->args.send = k->args.recv = k->token;
	k->device = device;
	err = place(c, k);
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
	enqueue(ch, k);
	*handle = k->handle;
	set_deadline(c, k);
	sw_client_count_work(c, k);
	sw_client_move(c, INLINE_BYTES);
	return 0;
}
