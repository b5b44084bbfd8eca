/* results.c - control thread: what the local ranks of a job declare together.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "pmd/host/host.h"

enum { MASK = 2 * SW_EDGE_TENSORS - 1, PAGE = 4096, LINE = 64 };

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

/* Place of a name in the table: where it is, or where it would go. */
static uint16_t *place_of(struct sw_results *r, const char *name)
{
	uint32_t at = sw_name_hash(name) & MASK;

	while (r->names[at] && strcmp(r->rows[r->names[at] - 1].name, name))
		at = (at + 1) & MASK;
	return &r->names[at];
}

static void forget_rows(struct sw_results *r, uint32_t n)
{
	r->n = n;
	memset(r->names, 0, sizeof(r->names));
	for (uint32_t i = 0; i < n; i++)
		*place_of(r, r->rows[i].name) = (uint16_t)(i + 1);
}

void sw_results_undo(struct sw_host *h, struct sw_batch *b)
{
	struct sw_results *r = h->results;
	uint64_t end = 0;

	r->busy = NULL;
	forget_rows(r, b->first_result);
	for (uint32_t i = 0; i < r->n; i++)
		end = r->rows[i].at + r->rows[i].bytes;
	end = (end + PAGE - 1) / PAGE * PAGE;
	sw_quota_give(h, r->end - end);
	r->end = end;
}

/* Does a local rank declare what another did before? */
static bool is_same(
	const struct sw_host_tensor *t, const struct sw_result *known)
{
	return t->n_elems == known->n_elems && t->dtype == known->dtype &&
	       t->priority == known->priority && t->is_async == known->is_async;
}

/* Add a tensor; false: the local ranks have too many. */
static bool add(struct sw_results *r, uint16_t *place,
	const struct sw_host_tensor *t, uint64_t *end)
{
	struct sw_result *row = &r->rows[r->n];

	if (r->n == SW_EDGE_TENSORS)
		return false;
	*row = (struct sw_result){.n_elems = t->n_elems,
		.bytes = t->bytes,
		.dtype = t->dtype,
		.priority = t->priority,
		.is_async = t->is_async};
	memcpy(row->name, t->name, sizeof(row->name));
	/* Nothing is summed from here: no stagger. */
	row->at = *end;
	*end += (t->bytes + LINE - 1) / LINE * LINE;
	*place = (uint16_t)++r->n;
	return true;
}

static int take_room(struct sw_host *h, struct sw_batch *b, uint64_t end)
{
	struct sw_results *r = h->results;

	end = (end + PAGE - 1) / PAGE * PAGE;
	if (end > r->arena.bytes || !sw_quota_take(h, end - r->end)) {
		sw_batch_blame(b, SW_ENOMEM,
			"the agent's memory quota: %.1f MiB needed for "
			"results, %.1f of %.1f MiB left",
			(double)(end - r->end) / 1048576,
			(double)(h->p.quota_bytes - h->used_bytes) / 1048576,
			(double)h->p.quota_bytes / 1048576);
		return SW_ENOMEM;
	}
	b->results_from = r->end;
	b->results_to = r->end = end;
	return 0;
}

int sw_results_enter(struct sw_slot *s)
{
	struct sw_batch *b = s->declared->open;
	struct sw_results *r = results_of(s->host);
	uint64_t end;

	if (!r) {
		sw_batch_blame(b, SW_ENOMEM, "the agent is out of memory");
		return SW_ENOMEM;
	}
	r->busy = b;
	b->first_result = r->n;
	end = r->end;
	for (uint32_t i = 0; i < b->n; i++) {
		struct sw_host_tensor *t = &b->tensors[i];
		uint16_t *place = place_of(r, t->name);

		bool is_known = *place;

		if (!is_known && !add(r, place, t, &end)) {
			sw_batch_blame(b, SW_EINVAL,
				"the local ranks declare more than %u tensors",
				SW_EDGE_TENSORS);
			return SW_EINVAL;
		}
		t->node_i = *place - 1u;
		if (!is_known || is_same(t, &r->rows[t->node_i]))
			t->result =
				(char *)r->arena.base + r->rows[t->node_i].at;
	}
	return take_room(s->host, b, end);
}
