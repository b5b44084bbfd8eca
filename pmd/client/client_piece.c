/* client_piece.c - libsumwire: where the bytes of a piece lie.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_form.h"

struct sw_rows sw_piece_rows_in(const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	uint64_t elem = elem_bytes(k);

	return (struct sw_rows){.to = p->stage->base,
		.from = (const char *)k->args.send + p->at * elem,
		.bytes = p->n * elem,
		.n = parts_in(k),
		.to_stride = p->n * elem,
		.from_stride = k->args.count * elem};
}

struct sw_rows sw_piece_rows_out(const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	uint64_t elem = elem_bytes(k);

	return (struct sw_rows){.to = (char *)k->args.recv + p->at * elem,
		.from = p->stage->base + out_offset(k, p->n),
		.bytes = p->n * elem,
		.n = parts_out(k),
		.to_stride = k->args.count * elem,
		.from_stride = p->n * elem};
}

static struct sw_edge_place_at behind(
	struct sw_edge_place_at at, uint64_t bytes)
{
	at.offset += bytes;
	return at;
}

/* What this rank does not give, or does not get, lies where the other buffer
 * does: nobody looks at it. */
struct sw_edge_coll sw_piece_message(const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	uint64_t elem = elem_bytes(k), at = p->at * elem;
	bool is_shared =
		k->args.kind == SW_REDUCE_SCATTER ? k->has_from : k->has_to;
	struct sw_edge_coll m = {.handle = p->handle,
		.count = p->n,
		.whole = k->args.count,
		.stride = (is_shared ? k->args.count : p->n) * elem,
		.stream = k->channel->stream->id,
		.op = (uint8_t)k->args.op,
		.root = (uint16_t)k->args.root,
		.kind = (uint8_t)k->args.kind,
		.dtype = (uint8_t)k->args.dtype,
		.scale = k->args.scale,
		.call = (uint32_t)k->number};

	if (p->stage) {
		m.from = p->stage->at;
		m.to = behind(p->stage->at, out_offset(k, p->n));
	}
	if (k->has_from)
		m.from = behind(k->from, at);
	if (k->has_to)
		m.to = behind(k->to, at);
	if (!needs_send(k))
		m.from = m.to;
	if (!needs_recv(k))
		m.to = m.from;
	return m;
}

struct sw_stage *sw_stage_take(struct sw_channel *ch, uint64_t bytes)
{
	bool is_small = bytes <= SW_STAGE_SMALL;
	struct sw_stage *list = is_small ? ch->small : ch->large;
	uint32_t n = is_small ? SW_STAGES_SMALL : SW_STAGES_LARGE;

	for (uint32_t i = 0; i < n; i++) {
		if (!list[i].base || list[i].is_used)
			continue;
		list[i].is_used = true;
		return &list[i];
	}
	return NULL;
}
