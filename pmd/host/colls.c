/* colls.c - take collectives from a client on the agent's lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A stream has room for a limited number of collectives. Collectives beyond
 * that wait here, in a row per stream, so that a full stream does not block
 * other streams: streams are not ordered relative to each other, and one may
 * stay full until another makes progress.
 */

#include "engine/base/coll_kind.h"
#include "pmd/host/host.h"
#include "sum/dtype.h"

/* --- waiting collectives --- */

/* Store @coll in a free place and return the place; 0 if all are in use. */
static uint16_t take_place(
	struct sw_host_client *p, const struct sw_host_coll *coll)
{
	struct sw_waiting *w = &p->waiting;
	uint16_t i = w->free;

	if (i)
		w->free = w->places[i - 1].next;
	else if (w->n_used < SW_EDGE_COLLS)
		i = ++w->n_used;
	if (!i)
		return 0;
	w->places[i - 1] = (struct sw_waiting_place){.coll = *coll};
	p->items[coll->from_item].n_waiting++;
	p->items[coll->to_item].n_waiting++;
	return i;
}

static bool put_last(struct sw_host_client *p, uint32_t stream,
	const struct sw_host_coll *coll)
{
	struct sw_waiting *w = &p->waiting;
	struct sw_waiting_row *row = &w->rows[stream];
	uint16_t i = take_place(p, coll);

	if (!i)
		return false;
	if (row->first)
		w->places[row->last - 1].next = i;
	else
		row->first = i;
	row->last = i;
	return true;
}

static void take_first(
	struct sw_host_client *p, uint32_t stream, struct sw_host_coll *out)
{
	struct sw_waiting *w = &p->waiting;
	struct sw_waiting_row *row = &w->rows[stream];
	uint16_t i = row->first;

	*out = w->places[i - 1].coll;
	p->items[out->from_item].n_waiting--;
	p->items[out->to_item].n_waiting--;
	row->first = w->places[i - 1].next;
	w->places[i - 1].next = w->free;
	w->free = i;
	sw_waiting_set_ready(w, stream, row->first);
}

/* Take a waiting collective of a stream that may have room; return false if
 * none waits. */
static bool take_waiting(struct sw_host_client *p, struct sw_host_coll *out)
{
	const struct sw_waiting *w = &p->waiting;
	uint32_t i = 0;

	if (!w->n_ready)
		return false;
	while (!w->ready[i])
		i++;
	take_first(p, i * 64 + (uint32_t)__builtin_ctzll(w->ready[i]), out);
	return true;
}

void sw_host_put_back(struct sw_host_client *p, const struct sw_host_coll *coll)
{
	uint32_t stream = coll->handle % SW_EDGE_TENSORS;
	struct sw_waiting_row *row = &p->waiting.rows[stream];
	uint16_t i = take_place(p, coll);

	if (!i) {
		sw_host_evict(p, "has too many collectives open: more than",
			SW_EDGE_COLLS);
		return;
	}
	p->waiting.places[i - 1].next = row->first;
	if (!row->first)
		row->last = i;
	row->first = i;
	sw_waiting_set_ready(&p->waiting, stream, false);
}

/* --- new collectives --- */

/* Return the address of @bytes at a place in declared memory, or NULL; set
 * *room to the bytes from there to the end. */
static char *memory_at(struct sw_host_client *p,
	const struct sw_edge_place_at *at, uint64_t bytes, uint64_t *room)
{
	const struct sw_host_item *m = sw_host_item(p, at->item);

	if (!m || m->kind != SW_EDGE_MEMORY || at->offset > m->bytes)
		return NULL;
	*room = m->bytes - at->offset;
	return bytes <= *room ? m->base + at->offset : NULL;
}

/* Check the message @m and fill @out. Returns false unless it names a stream
 * and buffers within memory that the client has declared. */
static bool check_coll(struct sw_host_client *p, const struct sw_edge_coll *m,
	struct sw_host_coll *out)
{
	uint32_t each = sw_dtype_bytes(m->dtype);
	const struct sw_host_item *s = sw_host_item(p, m->stream);
	uint64_t bytes = m->count * each, all;
	uint64_t stride = m->stride ? m->stride : bytes;

	if (!s || s->kind != SW_EDGE_STREAM || !each || !m->count ||
		m->count > SW_EDGE_TENSOR_BYTES_MAX / each ||
		m->stride > SW_EDGE_TENSOR_BYTES_MAX ||
		!(m->handle & SW_EDGE_COLL_HANDLE) ||
		m->handle % SW_EDGE_TENSORS != sw_id_index(m->stream))
		return false;
	/* no overflow: each term is below 2^36, and ranks have 16 bits */
	all = bytes + stride * (s->n_ranks - 1);
	*out = (struct sw_host_coll){.handle = m->handle,
		.count = m->count,
		.whole = m->whole,
		.stride = stride,
		.stream = s->name,
		.root = m->root,
		.kind = m->kind,
		.dtype = m->dtype,
		.op = m->op,
		.scale = m->scale,
		.call = m->call,
		.from_item = sw_id_index(m->from.item),
		.to_item = sw_id_index(m->to.item)};
	out->from = memory_at(p, &m->from,
		m->kind == SW_REDUCE_SCATTER ? all : bytes, &out->from_bytes);
	out->to = memory_at(p, &m->to, m->kind == SW_ALL_GATHER ? all : bytes,
		&out->to_bytes);
	return out->from && out->to;
}

/* Take a new, valid collective; return false if none came. */
static bool take_new(struct sw_host_client *p, struct sw_host_coll *out)
{
	struct sw_edge_coll m;
	int n = sw_spsc_take(&p->colls, &m, 1);

	if (n < 0)
		sw_host_evict(p,
			"wrote an impossible index into the ring of "
			"collectives",
			sw_spsc_own(&p->colls));
	if (n != 1)
		return false;
	if (check_coll(p, &m, out))
		return true;
	sw_host_evict(p, "submitted an invalid collective, number", m.stream);
	return false;
}

bool sw_host_take_coll(
	struct sw_host_client *p, struct sw_host_coll *out, uint32_t *n_left)
{
	uint32_t stream;

	if (sw_host_is_evicted(p) || !*n_left)
		return false;
	if (take_waiting(p, out)) {
		--*n_left;
		return true;
	}
	while (*n_left && take_new(p, out)) {
		--*n_left;
		stream = out->handle % SW_EDGE_TENSORS;
		if (!p->waiting.rows[stream].first)
			return true;
		if (!put_last(p, stream, out)) {
			sw_host_evict(p,
				"has too many collectives open: more than",
				SW_EDGE_COLLS);
			return false;
		}
	}
	return false;
}

bool sw_host_forget(struct sw_host_client *p, uint32_t item, const void **base,
	uint64_t *bytes)
{
	struct sw_host_item *m = &p->items[sw_id_index(item)];
	bool is_stream = m->kind == SW_EDGE_STREAM;

	*base = is_stream ? NULL : m->base;
	*bytes = is_stream ? 0 : m->bytes;
	if (is_stream ? p->waiting.rows[sw_id_index(item)].first
		      : m->n_waiting) {
		sw_host_evict(
			p, "freed memory of an open collective, number", item);
		return false;
	}
	atomic_store_explicit(&m->kind, SW_EDGE_N_ITEMS, memory_order_relaxed);
	return true;
}
