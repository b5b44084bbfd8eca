/* declared.c - control thread: the batches and names that a client declared.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "pmd/host/host.h"

static void batch_close(struct sw_host *h, struct sw_batch **batch)
{
	struct sw_batch *b = *batch;

	if (!b)
		return;
	if (h->results && h->results->busy == b)
		sw_results_undo(h, b);
	sw_quota_give(h, b->data.bytes);
	sw_batch_free(batch);
}

void sw_declared_close(struct sw_host *h, struct sw_declared_list **declared)
{
	struct sw_declared_list *d = *declared;

	if (!d)
		return;
	batch_close(h, &d->open);
	for (uint32_t i = 0; i < d->n_batches; i++)
		batch_close(h, &d->batches[i]);
	free(d);
	*declared = NULL;
}

void sw_declared_forget(struct sw_host *h, struct sw_declared_list *d)
{
	batch_close(h, &d->open);
	sw_names_cut(&d->names, d->n_tensors);
}

void sw_declared_enter(struct sw_declared_list *d)
{
	struct sw_batch *b = d->open;

	for (uint32_t i = 0; i < b->n && !b->err; i++) {
		const char *name = b->tensors[i].name;

		if (sw_names_find(&d->names, name))
			sw_batch_blame(b, SW_EINVAL,
				"tensor '%s' is declared already", name);
		else if (!b->again)
			sw_names_add(&d->names, name);
	}
}

/* Find the batch of @item. Batches of memory or of a stream have one item each.
 */
static struct sw_batch **batch_of(struct sw_declared_list *d, uint32_t item)
{
	uint32_t i = 0;

	while (d->batches[i]->first != item)
		i++;
	return &d->batches[i];
}

void sw_declared_admit(struct sw_declared_list *d)
{
	struct sw_batch *b = d->open, **old;

	d->open = NULL;
	if (!b->again) {
		b->first = d->n_tensors;
		d->batches[d->n_batches++] = b;
		d->n_tensors += b->n;
		return;
	}
	b->first = sw_id_index(b->again);
	old = batch_of(d, b->first);
	sw_names_change(&d->names, b->first, b->tensors[0].name);
	sw_batch_free(old);
	*old = b;
}

void sw_declared_unmap(
	struct sw_host *h, struct sw_declared_list *d, uint32_t item)
{
	struct sw_batch *b = *batch_of(d, sw_id_index(item));

	sw_quota_give(h, b->data.bytes);
	sw_segment_fini(&b->data);
}
