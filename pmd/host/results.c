/* results.c - control thread: tensors that local ranks declare together.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>

#include "pmd/host/host.h"

enum { PAGE = 4096, LINE = 64 };

static struct sw_results *results_of(struct sw_host *h)
{
	struct sw_results *r = h->results;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	if (sw_segment_create_shown(
		    &r->arena, "sumwire-results", h->p.quota_bytes)) {
		free(r);
		return NULL;
	}
	(void)!sw_numa_bind(r->arena.base, r->arena.bytes, h->p.numa_node);
	h->results = r;
	return r;
}

void sw_results_close(struct sw_host *h)
{
	if (!h->results)
		return;
	sw_quota_give(h, h->results->end);
	sw_segment_fini(&h->results->arena);
	free(h->results);
	h->results = NULL;
}

static void forget_row(struct sw_results *r, uint32_t row)
{
	sw_names_change(&r->names, row, NULL);
	if (sw_id_next(r->rows[row].id))
		r->free[r->n_free++] = (uint16_t)row;
}

void sw_host_gone(struct sw_host *h, uint32_t node_id)
{
	uint32_t row = sw_id_index(node_id);

	if (h->results && h->results->rows[row].id == node_id)
		forget_row(h->results, row);
}

void sw_results_undo(struct sw_host *h, struct sw_batch *b)
{
	struct sw_results *r = h->results;
	uint64_t end = 0;

	r->busy = NULL;
	sw_names_cut(&r->names, b->first_result);
	if (b->tensors[0].is_again) { /* alone in its batch */
		struct sw_result *row =
			&r->rows[sw_id_index(b->tensors[0].node_id)];

		forget_row(r, (uint32_t)(row - r->rows));
		row->at = r->was_at;
		row->room = r->was_room;
	}
	for (uint32_t i = 0; i < r->names.n; i++)
		if (r->rows[i].at + r->rows[i].room > end)
			end = r->rows[i].at + r->rows[i].room;
	end = (end + PAGE - 1) / PAGE * PAGE;
	sw_quota_give(h, r->end - end);
	r->end = end;
}

/* Return whether a local rank declares @t as another rank declared it before. A
 * stream's ranks are stored in place of a result. */
static bool is_same(const struct sw_results *r, const struct sw_host_tensor *t,
	const struct sw_result *known)
{
	return t->n_elems == known->n_elems && t->dtype == known->dtype &&
	       t->priority == known->priority && t->kind == known->kind &&
	       (!t->ranks ||
		       !memcmp(t->ranks, (char *)r->arena.base + known->at,
			       known->bytes));
}

/* Add @t and return its row; SW_EDGE_TENSORS if all rows are in use. A stream,
 * which keeps only its ranks, reuses the row of an ended stream, and the row's
 * place if that is large enough. */
static uint32_t add(
	struct sw_results *r, struct sw_host_tensor *t, uint64_t *end)
{
	uint64_t room = sw_edge_room(t->kind, t->bytes);
	uint32_t i = r->names.n;
	struct sw_result *row;

	room = (room + LINE - 1) / LINE * LINE;
	t->is_new = true;
	t->is_again = t->kind == SW_EDGE_STREAM && r->n_free;
	if (t->is_again)
		i = r->free[--r->n_free];
	if (i == SW_EDGE_TENSORS)
		return i;
	row = &r->rows[i];
	row->id = t->is_again ? sw_id_next(row->id) : i;
	r->was_at = row->at;
	r->was_room = row->room;
	if (!t->is_again || room > row->room) {
		row->at = *end; /* no stagger: the lcore sums none of it */
		row->room = room;
		*end += room;
	}
	row->n_elems = t->n_elems;
	row->bytes = t->bytes;
	row->dtype = t->dtype;
	row->priority = t->priority;
	row->kind = t->kind;
	memcpy(row->name, t->name, sizeof(row->name));
	if (t->is_again)
		sw_names_change(&r->names, i, row->name);
	else
		sw_names_add(&r->names, row->name);
	return i;
}

/* Number @t among all tensors of the local ranks, and give it a result if they
 * declare it alike. Returns false if there are too many tensors. */
static bool enter(struct sw_results *r, struct sw_host_tensor *t, uint64_t *end)
{
	uint32_t known = sw_names_find(&r->names, t->name);
	uint32_t i = known ? known - 1 : add(r, t, end);

	if (i == SW_EDGE_TENSORS)
		return false;
	t->node_id = r->rows[i].id;
	if (!known || is_same(r, t, &r->rows[i]))
		t->result = (char *)r->arena.base + r->rows[i].at;
	return true;
}

/* Charge the quota for pages up to @end, which is within the arena, because the
 * arena is as large as the quota. */
static int take_room(struct sw_host *h, struct sw_batch *b, uint64_t end)
{
	struct sw_results *r = h->results;

	end = (end + PAGE - 1) / PAGE * PAGE;
	if (!sw_batch_charge(h, b, end - r->end, " for results"))
		return SW_ENOMEM;
	assert(end <= r->arena.bytes);
	b->results_from = r->end;
	b->results_to = r->end = end;
	return 0;
}

void sw_results_admit(struct sw_host *h, const struct sw_batch *b)
{
	h->results->busy = NULL;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->tensors[i].ranks && b->tensors[i].result)
			memcpy(b->tensors[i].result, b->tensors[i].ranks,
				b->tensors[i].bytes);
}

int sw_results_enter(struct sw_host *h, struct sw_batch *b)
{
	struct sw_results *r = results_of(h);
	char limit[SW_LIMIT_TEXT];
	uint64_t end;

	if (!r) {
		sw_batch_blame(b, SW_ENOMEM,
			"the agent cannot map %.1f MiB for results%s",
			(double)h->p.quota_bytes / 1048576,
			sw_segment_limit(h->p.quota_bytes, limit));
		return SW_ENOMEM;
	}
	r->busy = b;
	b->first_result = r->names.n;
	end = r->end;
	for (uint32_t i = 0; i < b->n; i++)
		if (!enter(r, &b->tensors[i], &end)) {
			sw_batch_blame(b, SW_EINVAL,
				"the local ranks declare more than %u tensors",
				SW_EDGE_TENSORS);
			return SW_EINVAL;
		}
	return take_room(h, b, end);
}
