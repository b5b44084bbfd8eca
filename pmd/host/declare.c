/* declare.c - control thread: batches of tensors, from pieces to memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdio.h>

#include "pmd/host/host.h"

/* Slice per call of sw_host_poll: about 20 ms if the host must first provide a
 * virtual machine's pages (0.2 GB/s measured); otherwise 2 ms. */
#define SLICE_BYTES (UINT64_C(4) << 20)

static void fail(struct sw_slot *s, int err, const char *text)
{
	sw_log(s->host->p.log, SW_LOG_WARN, "process %u: batch refused: %s",
		s->pid, text);
	sw_slot_say(s, SW_EDGE_FAILED, err, s->declared->open->number, text);
	sw_declared_forget(s->host, s->declared);
}

/* Bind memory to the node that the client requested, if it exists. */
static void bind_near(const struct sw_host *h, const struct sw_batch *b,
	void *mem, uint64_t bytes)
{
	if (!b->near || sw_numa_bind(mem, bytes, (int)(b->near - 1)))
		(void)!sw_numa_bind(mem, bytes, h->p.numa_node);
}

/* Bind the results that this batch adds; other local ranks may share them. */
static void bind_results(const struct sw_host *h, const struct sw_batch *b)
{
	if (b->results_from < b->results_to)
		bind_near(h, b,
			(char *)h->results->arena.base + b->results_from,
			b->results_to - b->results_from);
}

/* Place the tensors, charge the quota for the segment and create it. */
static void make_data(struct sw_slot *s)
{
	struct sw_host *h = s->host;
	struct sw_batch *b = s->declared->open;
	char limit[SW_LIMIT_TEXT];
	uint64_t end = 0;

	for (uint32_t i = 0; i < b->n; i++)
		sw_edge_place(s->local_rank,
			sw_edge_room(b->tensors[i].kind, b->tensors[i].bytes),
			&end);
	end = (end + 4095) & ~UINT64_C(4095);
	if (!sw_batch_charge(h, b, end, ""))
		return;
	if (sw_segment_create(&b->data, "sumwire-data", end)) {
		sw_quota_give(h, end);
		sw_batch_blame(b, SW_ENOMEM,
			"the agent cannot get %.1f MiB of memory%s",
			(double)end / 1048576, sw_segment_limit(end, limit));
		return;
	}
	bind_near(h, b, b->data.base, b->data.bytes);
	end = 0;
	for (uint32_t i = 0; i < b->n; i++)
		b->tensors[i].base = (char *)b->data.base +
				     sw_edge_place(s->local_rank,
					     sw_edge_room(b->tensors[i].kind,
						     b->tensors[i].bytes),
					     &end);
	if (h->p.n_local > 1 && b->tensors[0].kind != SW_EDGE_MEMORY &&
		sw_results_enter(h, b))
		return;
	bind_results(h, b);
	b->state = SW_BATCH_RESERVING;
}

/* Check that this piece is the next one; otherwise the client broke the
 * protocol. */
static bool check_piece(
	struct sw_slot *s, const struct sw_edge_declare *m, size_t bytes)
{
	const struct sw_declared_list *d = s->declared;
	const struct sw_batch *b = d->open;
	size_t head = offsetof(struct sw_edge_declare, descs);
	uint32_t number = b ? b->number : d->next_number;

	if (bytes < head || m->n < 1 || m->n > SW_EDGE_PIECE ||
		bytes != head + m->n * sizeof(m->descs[0]))
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"sent %zu bytes as a piece of a declaration", bytes);
	else if (b && b->state != SW_BATCH_ARRIVING)
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"declared a batch before the answer to the last one");
	else if (m->batch != number || m->first_i != (b ? b->n_arrived : 0) ||
		 (b && m->n_total != b->n) || m->n_total > SW_EDGE_TENSORS ||
		 m->n_total - m->first_i < m->n || m->n_total < m->first_i)
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"sent tensors %u to %u of %u of batch %u, expected "
			"tensor %u of batch %u",
			m->first_i, m->first_i + m->n, m->n_total, m->batch,
			b ? b->n_arrived : 0, number);
	else
		return true;
	return false;
}

/* Open a batch at its first piece. */
static bool open_batch(struct sw_slot *s, uint32_t n, bool is_again)
{
	struct sw_declared_list *d = s->declared;

	if (n > SW_EDGE_TENSORS - d->n_tensors + is_again) {
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"batch %u declares %u tensors; a process may have "
			"%u, and has %u",
			d->next_number, n, SW_EDGE_TENSORS, d->n_tensors);
		return false;
	}
	d->open = sw_batch_new(d->next_number, n);
	if (!d->open) {
		sw_slot_detach(s, SW_HOST_FAILED,
			"declared %u tensors, for which the agent has no "
			"memory",
			n);
		return false;
	}
	d->next_number++;
	return true;
}

/* Return whether the item before @id, at the same index, was freed. */
static bool is_freed(const struct sw_slot *s, uint32_t id)
{
	const struct sw_host_item *m = &s->client->items[sw_id_index(id)];

	return sw_id_index(id) < s->declared->n_tensors &&
	       m->kind == SW_EDGE_N_ITEMS && sw_id_follows(id, m->id) &&
	       !s->is_freeing;
}

/* Continue with the open batch, which has arrived completely. */
static void note_arrived(struct sw_slot *s)
{
	struct sw_declared_list *d = s->declared;

	if (d->open->again && !is_freed(s, d->open->again))
		sw_batch_blame(d->open, SW_EINVAL,
			"item %u does not follow one that was freed",
			d->open->again);
	sw_declared_enter(d);
	if (d->open->err)
		fail(s, d->open->err, d->open->why);
	else
		d->open->state = SW_BATCH_WAITING;
}

/* Handle a piece. The client sends all pieces before it reads an answer, so an
 * invalid batch is refused after its last piece. */
void sw_slot_rx_declare(
	struct sw_slot *s, const struct sw_edge_declare *m, size_t bytes)
{
	struct sw_declared_list *d = s->declared;

	if (!check_piece(s, m, bytes))
		return;
	if (!d->open && !open_batch(s, m->n_total,
				m->n_total == 1 && m->descs[0].again))
		return;
	d->open->near = m->near;
	for (uint32_t i = 0; i < m->n; i++)
		sw_batch_add(d->open, &m->descs[i], NULL);
	if (d->open->n_arrived == d->open->n)
		note_arrived(s);
}

void sw_slot_rx_open(
	struct sw_slot *s, const struct sw_edge_open *m, size_t bytes)
{
	struct sw_declared_list *d = s->declared;
	size_t head = offsetof(struct sw_edge_open, ranks);

	if (bytes < head || m->desc.kind != SW_EDGE_STREAM ||
		m->desc.n_elems > SW_EDGE_RANKS ||
		bytes != head + m->desc.n_elems * sizeof(m->ranks[0])) {
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"sent %zu bytes as a stream and its ranks", bytes);
		return;
	}
	if (d->open || m->batch != d->next_number) {
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"opened a stream as batch %u, expected the answer to "
			"the last one, and batch %u",
			m->batch, d->next_number);
		return;
	}
	if (!open_batch(s, 1, m->desc.again))
		return;
	sw_batch_add(d->open, &m->desc, m->ranks);
	note_arrived(s);
}

bool sw_slot_is_reserving(const struct sw_slot *s)
{
	const struct sw_batch *b = s->declared->open;
	const struct sw_results *r = s->host->results;

	return b && (b->state == SW_BATCH_RESERVING ||
			    (b->state == SW_BATCH_WAITING && !(r && r->busy)));
}

/* Make the pages of one more slice present; advance *at, at most to @to. */
static int reserve_slice(struct sw_segment *s, uint64_t *at, uint64_t to)
{
	uint64_t n = to - *at < SLICE_BYTES ? to - *at : SLICE_BYTES;
	int err = n ? sw_segment_reserve(s, *at, n) : 0;

	*at += n;
	return err;
}

void sw_slot_reserve(struct sw_slot *s)
{
	struct sw_host *h = s->host;
	struct sw_batch *b = s->declared->open;
	uint32_t id = s->id;
	int err;

	if (!sw_slot_is_reserving(s))
		return;
	if (b->state == SW_BATCH_WAITING) {
		make_data(s);
		if (s->id == id && s->state == SW_SLOT_ATTACHED && b->err)
			fail(s, b->err, b->why);
		return;
	}
	err = reserve_slice(&b->data, &b->reserved_bytes, b->data.bytes);
	if (!err && h->results)
		err = reserve_slice(
			&h->results->arena, &b->results_from, b->results_to);
	if (err) {
		fail(s, SW_ENOMEM, "the agent's machine has no memory left");
		return;
	}
	if (b->reserved_bytes < b->data.bytes ||
		b->results_from < b->results_to)
		return;
	b->state = SW_BATCH_ASKED;
	if (b->tensors[0].kind == SW_EDGE_MEMORY) /* needs no lcore */
		sw_host_declared(h, s->id, b->number, 0, 0, "");
	else
		h->p.events.on_declare(
			h->p.ctx, s->id, b->number, b->tensors, b->n);
}

/* Return the slot whose batch waits for this answer; its client may have
 * detached. */
static struct sw_slot *find_asked(
	struct sw_host *h, uint32_t id, uint32_t batch)
{
	struct sw_slot *s = sw_slot_find(h, id);

	if (!s || s->state < SW_SLOT_ATTACHED || !s->declared->open ||
		s->declared->open->state != SW_BATCH_ASKED ||
		s->declared->open->number != batch)
		return NULL;
	return s;
}

/* Tell the lcore the ids of the tensors, and the client the offsets of
 * results. */
static void publish(struct sw_slot *s, const struct sw_batch *b, uint32_t first)
{
	const struct sw_results *r = s->host->results;
	uint32_t id = b->again ? b->again : s->declared->n_tensors;
	uint64_t *at = s->client->control->results + sw_id_index(id);

	for (uint32_t i = 0; i < b->n; i++) {
		const struct sw_host_tensor *t = &b->tensors[i];
		struct sw_host_item item = {.id = id + i,
			.name = r ? t->node_id : first + i,
			.kind = t->kind,
			.base = t->base,
			.bytes = t->bytes};

		if (t->kind == SW_EDGE_STREAM)
			item.n_ranks = (uint16_t)t->n_elems;
		if (r && t->result) /* otherwise it has no result */
			at[i] = r->rows[sw_id_index(item.name)].at;
		sw_host_client_enter(s->client, &item);
	}
	if (!b->again)
		sw_host_client_admit(s->client, b->n);
}

int sw_host_declared(struct sw_host *h, uint32_t id, uint32_t batch,
	uint32_t first, int err, const char *clash)
{
	struct sw_slot *s = find_asked(h, id, batch);
	struct sw_edge_declared m = {.kind = SW_EDGE_DECLARED, .batch = batch};
	struct sw_batch *b;
	int fds[2];

	if (!s)
		return SW_ENOENT;
	b = s->declared->open;
	if (h->results && h->results->busy == b)
		sw_results_admit(h, b);
	if (s->state == SW_SLOT_DETACHED) {
		sw_declared_admit(s->declared);
		return SW_ENOENT;
	}
	m.bytes = b->data.bytes;
	m.err = err;
	snprintf(m.text, sizeof(m.text), "%s", clash);
	publish(s, b, first);
	fds[0] = b->data.fd;
	fds[1] = h->results ? h->results->arena.fd : -1;
	if (sw_edge_send(s->sock, &m, sizeof(m), fds, h->results ? 2 : 1) ==
		SW_EAGAIN)
		s->is_deaf = true;
	sw_segment_unhand(&b->data);
	sw_declared_admit(s->declared);
	return 0;
}

void sw_host_declare_failed(struct sw_host *h, uint32_t id, uint32_t batch,
	int err, const char *text)
{
	struct sw_slot *s = find_asked(h, id, batch);

	if (s)
		fail(s, err, text);
}
