/* device_declare.c - sw_device_declare: tensors in memory that is pinned.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "pmd/client/client.h"
#include "pmd/cuda/device_int.h"

/* From the first to the last of them. */
static void *pin(
	struct sw_device *d, const struct sw_device_batch *b, bool is_result)
{
	uintptr_t first = UINTPTR_MAX, end = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct sw_pipeline_tensor *t = &b->tensors[i].t;
		uintptr_t at = is_result ? (uintptr_t)t->in : (uintptr_t)t->out;

		first = at < first ? at : first;
		end = at + t->bytes > end ? at + t->bytes : end;
	}
	return sw_device_pin(d, (void *)first, end - first, is_result);
}

/* What is declared.  Threads may declare at once. */
static void describe(struct sw_device *d, const struct sw_tensor_desc *desc,
	struct sw_tensor *made, struct sw_device_tensor *t)
{
	uint32_t number = atomic_fetch_add(&d->n_tensors, 1);

	t->device = d;
	snprintf(t->t.name, sizeof(t->t.name), "%s", desc->name);
	t->t.priority =
		desc->priority == SW_PRIORITY_BY_USE ? number : desc->priority;
	t->t.net = made;
	t->t.out = sw_tensor_data(made);
	t->t.in = sw_tensor_result(made);
	t->t.bytes = desc->n_elems * sw_dtype_bytes(desc->dtype);
}

/* They are the pipeline's until the device is closed. */
static int adopt(struct sw_device *d, struct sw_device_batch *b)
{
	char why[SW_BACK_WHY];
	int err = 0;

	b->pinned[0] = pin(d, b, false);
	b->pinned[1] = b->tensors[0].t.in != b->tensors[0].t.out
			       ? pin(d, b, true)
			       : NULL;
	(void)!sw_client_lock(d->client);
	b->next = d->batches;
	d->batches = b;
	sw_client_unlock(d->client);
	for (uint32_t i = 0; i < b->n && !err; i++)
		err = sw_pipeline_add(&d->pipeline, &b->tensors[i].t, why);
	return err ? sw_client_fail(d->client, err, "%s: %s", d->where, why)
		   : 0;
}

/* Of those that differ from another rank's the calls say so, too. */
static int declare(struct sw_device *d, const struct sw_tensor_desc *descs,
	struct sw_device_batch *b, struct sw_tensor **made)
{
	char why[2 * SW_EDGE_TEXT_BYTES];
	int err, differs;

	differs = sw_client_declare_growing(d->client, descs, b->n, made);
	if (differs && differs != SW_EMISMATCH) {
		sw_device_batch_free(d, b);
		return differs;
	}
	snprintf(why, sizeof(why), "%s", sw_last_error(d->client));
	for (uint32_t i = 0; i < b->n; i++)
		describe(d,
			(const void *)((const char *)descs + i * descs->size),
			made[i], &b->tensors[i]);
	err = adopt(d, b);
	if (err || !differs)
		return err;
	return sw_client_fail(d->client, differs, "%s", why);
}

int sw_device_declare(struct sw_device *d, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_device_tensor **out)
{
	struct sw_device_batch *b;
	struct sw_tensor **made;
	int err;

	if (!n || n > SW_EDGE_TENSORS)
		return sw_client_fail(d->client, SW_EINVAL,
			"%u tensors declared at once: 1 to %u are possible", n,
			SW_EDGE_TENSORS);
	b = calloc(1, sizeof(*b));
	made = calloc(n, sizeof(*made));
	if (b)
		b->tensors = calloc(n, sizeof(b->tensors[0]));
	if (b && b->tensors && made) {
		b->n = n;
		for (uint32_t i = 0; i < n; i++)
			out[i] = &b->tensors[i];
		err = declare(d, descs, b, made);
	} else {
		if (b)
			sw_device_batch_free(d, b);
		err = sw_client_fail(d->client, SW_ENOMEM, "out of memory");
	}
	free(made);
	return err;
}
