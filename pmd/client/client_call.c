/* client_call.c - libsumwire: a collective as pieces, some of them staged.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A collective goes to the agent in pieces of 1 MiB (client_form.h), each a
 * collective of its own there.  All members cut a collective alike, independent
 * of where their buffers lie.  A buffer outside sw_alloc memory is staged: the
 * library copies each piece into shared memory before it puts the piece, and
 * copies the result out, while other pieces are on the wire.  Each channel has
 * its own stages: groups that wait for each other's calls would otherwise also
 * wait for each other's stages. */
#include "pmd/client/client_call.h"

#include <unistd.h>

#include "pmd/client/client_form.h"
#include "pmd/client/client_group.h"
#include "pmd/client/client_note.h"

enum { PIECES_MAX = 16 }; /* most pieces of a channel at the agent */

/* --- the places of a piece's bytes --- */

/* With args.parts, only the stage's side of the rows is valid; copy_parts
 * copies. */
static struct sw_rows rows_in(const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	const char *send = k->args.send;
	uint64_t elem = elem_bytes(k);

	return (struct sw_rows){.to = p->stage->base,
		.from = send ? send + p->at * elem : NULL,
		.bytes = p->n * elem,
		.n = parts_in(k),
		.to_stride = p->n * elem,
		.from_stride = k->args.count * elem};
}

static struct sw_rows rows_out(const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	char *recv = k->args.recv;
	uint64_t elem = elem_bytes(k);

	return (struct sw_rows){.to = recv ? recv + p->at * elem : NULL,
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

/* Describe a piece as a message to the agent.  A buffer that this rank does not
 * have gets the place of its other buffer; the agent ignores the place. */
static struct sw_edge_coll message_of(const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	uint64_t elem = elem_bytes(k), at = p->at * elem;
	bool is_shared =
		k->args.kind == SW_REDUCE_SCATTER ? k->has_from : k->has_to;
	struct sw_edge_coll m = {.handle = p->handle,
		.count = p->n,
		.whole = k->args.count,
		.stride = is_shared ? k->stride : p->n * elem,
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

static struct sw_stage *use_stage(struct sw_channel *ch, uint64_t bytes)
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

/* --- copies --- */

/* Return whether the result must be copied out; the root of an in-place
 * broadcast already has it. */
static bool has_copy_out(const struct sw_call *k)
{
	return stages_out(k) && !(k->args.kind == SW_BCAST && is_root(k) &&
					k->args.send == k->args.recv);
}

/* Note a copy of a piece in the trace. */
static void note_copy(
	struct sw_client *c, const struct sw_call_piece *p, uint64_t from_ns)
{
	const struct sw_call *k = p->call;
	uint64_t parts = p->is_back ? parts_out(k) : parts_in(k);

	if (from_ns && sw_client_is_traced(c))
		sw_client_note(c,
			p->is_back ? SW_EDGE_COPY_OUT : SW_EDGE_COPY_IN,
			p->handle, from_ns, sw_edge_now_ns(),
			parts * p->n * elem_bytes(k));
}

/* Copy between a stage and separate parts. */
static void copy_parts(
	const struct sw_call_piece *p, const struct sw_rows *r, bool is_into)
{
	uint64_t at = p->at * elem_bytes(p->call);

	for (uint64_t i = 0; i < r->n; i++) {
		char *part = (char *)p->call->args.parts[i] + at;

		if (is_into)
			memcpy(r->to + i * r->to_stride, part, r->bytes);
		else
			memcpy(part, r->from + i * r->from_stride, r->bytes);
	}
}

static void copy_rows(struct sw_client *c, const struct sw_call_piece *p,
	const struct sw_rows *rows)
{
	uint64_t from_ns = sw_client_is_traced(c) ? sw_edge_now_ns() : 0;
	bool is_into = !p->is_back;

	c->calls.copying = p->call->group;
	sw_client_unlock(c);
	if (is_into ? rows->from : rows->to)
		sw_rows_copy(rows);
	else
		copy_parts(p, rows, is_into);
	(void)!sw_client_lock(c);
	c->calls.copying = NULL;
	note_copy(c, p, from_ns);
	if (c->calls.n_releasing)
		sw_client_changed(c);
}

/* Begin a copy; sw_client_copied continues when it is complete. */
static void copy_by_device(struct sw_client *c, struct sw_call_piece *p,
	const struct sw_rows *rows)
{
	struct sw_call *k = p->call;

	k->n_copying++;
	k->device->ops->copy(
		k->device, (uint32_t)(p - c->calls.pieces), rows, !p->is_back);
}

/* --- the end --- */

static bool has_all_put(const struct sw_call *k)
{
	return k->next == k->args.count;
}

/* A call needs a thread while it has pieces to put or stages to copy, even if
 * no caller waits.  A device copies by itself. */
void sw_client_count_work(struct sw_client *c, struct sw_call *k)
{
	bool has_work =
		!has_all_put(k) || (is_staged(k) && k->args.count > k->piece);
	bool is_counted = k->state == SW_TENSOR_OPEN && !k->device && has_work;

	c->calls.n_unfinished += is_counted;
	c->calls.n_unfinished -= k->is_counted;
	k->is_counted = is_counted;
}

static void unlink_call(struct sw_call *k)
{
	struct sw_call **at = &k->channel->first;

	while (*at && *at != k)
		at = &(*at)->later;
	if (!*at)
		return;
	*at = k->later;
	if (k->channel->end == &k->later)
		k->channel->end = at;
}

int sw_call_end_device(struct sw_call *k)
{
	struct sw_call_device *d = k->device;

	k->device = NULL;
	return d ? d->ops->end(d) : 0;
}

static void end_call(struct sw_client *c, struct sw_call *k)
{
	int err = sw_call_end_device(k);
	uint64_t one = 1;

	if (!k->status)
		k->status = err;
	k->state = SW_TENSOR_ENDED;
	k->later = NULL;
	if (!c->calls.done)
		c->calls.done_end = &c->calls.done;
	*c->calls.done_end = k;
	c->calls.done_end = &k->later;
	c->calls.n_open--;
	sw_client_count_work(c, k);
	sw_client_call_thread(c); /* or the waiting thread */
	if (c->turn.event_fd >= 0 &&
		write(c->turn.event_fd, &one, sizeof(one)) < 0)
		return; /* full: it is readable */
}

/* Put no further piece of the call. */
static void stop_call(struct sw_call *k, int status)
{
	if (k->status)
		return;
	k->status = status;
	k->next = k->args.count;
	unlink_call(k);
}

static void end_piece(struct sw_client *c, struct sw_call_piece *p)
{
	struct sw_call *k = p->call;

	if (p->stage)
		p->stage->is_used = false;
	p->handle = 0;
	k->channel->n_pieces--;
	if (k->channel->first)
		sw_client_kick(c); /* there is room for the next piece */
	k->n_open--;
	if (p->status) {
		sw_group_note_death(k->group, k->channel->stream, p->status);
		stop_call(k, p->status);
	}
	if (has_all_put(k) && !k->n_open)
		end_call(c, k);
}

void sw_client_drop_call(struct sw_client *c, struct sw_call *k, int status)
{
	stop_call(k, status);
	if (!k->n_open)
		end_call(c, k);
	else
		sw_client_count_work(c, k);
}

bool sw_client_end_piece(struct sw_client *c, const struct sw_completion *done)
{
	struct sw_calls *s = &c->calls;
	struct sw_call_piece *p =
		&s->pieces[done->handle >> SW_EDGE_TENSOR_BITS &
			   (SW_EDGE_COLLS - 1)];

	if (p->handle != done->handle || p->is_back || done->status > 0)
		return false;
	p->status = done->status;
	if (!p->status && is_on_device(p->call) && needs_send(p->call)) {
		struct sw_rows rows = rows_in(p);

		p->call->device->ops->sum(p->call->device, &rows);
	}
	if (!p->stage || p->status || p->call->status ||
		!has_copy_out(p->call)) {
		end_piece(c, p);
		return true;
	}
	p->is_back = true;
	p->later = NULL;
	if (is_on_device(p->call)) {
		struct sw_rows rows = rows_out(p);

		copy_by_device(c, p, &rows);
		return true;
	}
	if (!s->ended)
		s->ended_end = &s->ended;
	*s->ended_end = p;
	s->ended_end = &p->later;
	sw_client_kick(c); /* another thread may have consumed the bell */
	return true;
}

/* --- pieces to the agent --- */

static struct sw_call_piece *new_piece(struct sw_client *c, uint32_t stream)
{
	struct sw_calls *s = &c->calls;

	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		uint64_t n = ++s->n_pieces;
		struct sw_call_piece *p = &s->pieces[n % SW_EDGE_COLLS];

		if (p->handle)
			continue;
		*p = (struct sw_call_piece){
			.handle = SW_EDGE_COLL_HANDLE |
				  (n << SW_EDGE_TENSOR_BITS &
					  ~SW_EDGE_COLL_HANDLE) |
				  stream};
		return p;
	}
	return NULL;
}

/* Note in the trace since when a piece was ready. */
static void note_ready(struct sw_client *c, const struct sw_call_piece *p)
{
	const struct sw_call *k = p->call;
	uint64_t ns = is_on_device(k) ? k->device->ready_ns : k->ready_ns;

	if (ns && sw_client_is_traced(c))
		sw_client_note(c, SW_EDGE_READY, p->handle, ns, ns, 0);
}

static void send_piece(struct sw_client *c, const struct sw_call_piece *p)
{
	struct sw_edge_coll m = message_of(p);

	note_ready(c, p);
	if (sw_spsc_put(&c->colls, &m, 1) != 1) {
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the ring of collectives",
			c->settings.agent);
		return;
	}
	sw_client_ring(c, &c->control->agent_sleeps);
}

/* Put pieces in the order of calls, although their stages may fill in a
 * different order. */
static void send_filled(struct sw_client *c, struct sw_channel *ch)
{
	while (ch->filling && ch->filling->is_full) {
		struct sw_call_piece *p = ch->filling;

		ch->filling = p->later;
		if (p->status)
			end_piece(c, p);
		else
			send_piece(c, p);
	}
}

static void fill_piece(
	struct sw_client *c, struct sw_channel *ch, struct sw_call_piece *p)
{
	bool is_staged_in = stages_in(p->call);

	if (!ch->filling)
		ch->filling_end = &ch->filling;
	*ch->filling_end = p;
	ch->filling_end = &p->later;
	p->is_full = !is_staged_in;
	if (is_staged_in) {
		struct sw_rows rows = rows_in(p);

		if (is_on_device(p->call)) {
			copy_by_device(c, p, &rows);
			return;
		}
		copy_rows(c, p, &rows);
		p->is_full = true;
	}
	send_filled(c, ch);
}

void sw_client_copied(
	struct sw_client *c, uint32_t piece, uint64_t from_ns, int err)
{
	struct sw_call_piece *p = &c->calls.pieces[piece];
	struct sw_call *k = p->call;

	if (!sw_client_lock(c))
		return;
	k->n_copying--;
	note_copy(c, p, from_ns);
	if (c->closed) {
		sw_client_call_thread(c); /* it may wait for this copy */
	} else {
		p->status = err ? err : k->status;
		p->is_full = true;
		if (p->is_back)
			end_piece(c, p);
		else
			send_filled(c, k->channel);
	}
	sw_client_unlock(c);
}

/* Put the next piece of a channel's first call.  Returns the bytes copied; 1:
 * put without a copy; 0: no piece can be put. */
static uint64_t put_piece(struct sw_client *c, struct sw_channel *ch)
{
	struct sw_call *k = ch->first;
	struct sw_stage *stage = NULL;
	struct sw_call_piece *p;
	uint64_t n, left;

	if (!k || ch->n_pieces == PIECES_MAX ||
		(k->device && !k->device->is_ready))
		return 0;
	left = k->args.count - k->next;
	n = left < k->piece ? left : k->piece;
	if (is_staged(k)) {
		stage = use_stage(ch, first_stage(k));
		if (!stage)
			return 0;
	}
	p = new_piece(c, ch->stream->i);
	if (!p) {
		if (stage)
			stage->is_used = false;
		return 0;
	}
	p->call = k;
	p->at = k->next;
	p->n = n;
	p->stage = stage;
	k->next += n;
	k->n_open++;
	ch->n_pieces++;
	if (k->ready_ns) {
		k->first_piece = k->first_piece ? k->first_piece : p->handle;
		k->last_piece = p->handle;
	}
	if (has_all_put(k))
		unlink_call(k);
	fill_piece(c, ch, p);
	sw_client_count_work(c, k);
	return stages_in(k) ? parts_in(k) * n * elem_bytes(k) : 1;
}

static uint64_t copy_one_out(struct sw_client *c)
{
	struct sw_calls *s = &c->calls;
	struct sw_call_piece *p = s->ended;
	struct sw_rows rows;

	if (!p)
		return 0;
	s->ended = p->later;
	if (!s->ended)
		s->ended_end = &s->ended;
	if (p->call->status) { /* the call was given up meanwhile */
		end_piece(c, p);
		return 1;
	}
	rows = rows_out(p);
	copy_rows(c, p, &rows);
	end_piece(c, p);
	return parts_out(p->call) * p->n * elem_bytes(p->call);
}

/* Put one piece; channels take turns. */
static uint64_t put_one(struct sw_client *c)
{
	struct sw_calls *s = &c->calls;
	struct sw_channel *from = s->turn;

	for (struct sw_channel *ch = from; ch;) {
		struct sw_channel *next = ch->next ? ch->next : s->channels;
		uint64_t n;

		s->turn = next; /* the channel may close during the copy */
		n = put_piece(c, ch);
		if (n)
			return n;
		ch = next == from ? NULL : next;
	}
	return 0;
}

bool sw_client_move(struct sw_client *c, uint64_t bytes)
{
	struct sw_calls *s = &c->calls;
	uint64_t n = 1, done = 0;

	if (s->is_moving)
		return false;
	s->is_moving = true;
	while (n && done < bytes && !c->closed) {
		n = copy_one_out(c);
		if (!n)
			n = put_one(c);
		done += n;
	}
	s->is_moving = false;
	if (done &&
		(s->ended || s->n_unfinished)) /* is_moving kept others out */
		sw_client_call_thread(c);
	return done > 0;
}

struct sw_call *sw_client_find_call(struct sw_client *c, uint64_t handle)
{
	struct sw_call *k = &c->calls.calls[handle & (SW_EDGE_COLLS - 1)];

	return k->state != SW_TENSOR_IDLE && k->handle == handle ? k : NULL;
}
