/* batch.c - control thread: a batch's tensors, and what is wrong with it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/text.h"
#include "pmd/host/host.h"
#include "sum/dtype.h"

void sw_batch_free(struct sw_batch **batch)
{
	struct sw_batch *b = *batch;

	sw_segment_fini(&b->data);
	free(b->tensors);
	free(b->names);
	free(b);
	*batch = NULL;
}

struct sw_batch *sw_batch_new(uint32_t number, uint32_t n)
{
	struct sw_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->data.fd = -1;
	b->n = n;
	b->number = number;
	b->tensors = calloc(n, sizeof(b->tensors[0]));
	b->names = calloc(n, sizeof(b->names[0]));
	if (!b->tensors || !b->names)
		sw_batch_free(&b);
	return b;
}

void sw_batch_blame(struct sw_batch *b, int err, const char *fmt, ...)
{
	va_list ap;

	if (b->err)
		return;
	b->err = err;
	va_start(ap, fmt);
	vsnprintf(b->why, sizeof(b->why), fmt, ap);
	va_end(ap);
}

void sw_batch_add(struct sw_batch *b, const struct sw_edge_desc *desc)
{
	uint32_t i = b->n_arrived++, each = sw_dtype_bytes(desc->dtype);

	if (!sw_text_is_good(desc->name, SW_EDGE_NAME_BYTES)) {
		sw_batch_blame(b, SW_EINVAL,
			"the name of tensor %u of the batch must have 1 to 127 "
			"bytes of UTF-8 that print",
			i);
		return;
	}
	memcpy(b->names[i], desc->name, SW_EDGE_NAME_BYTES);
	b->tensors[i] = (struct sw_host_tensor){.name = b->names[i],
		.n_elems = desc->n_elems,
		.bytes = desc->n_elems * each,
		.dtype = desc->dtype,
		.priority = desc->priority,
		.is_async = desc->is_async};
	if (desc->is_async > 1)
		sw_batch_blame(b, SW_EINVAL,
			"tensor '%s': asynchronous is 0 or 1, not %u",
			b->names[i], desc->is_async);
	if (!each)
		sw_batch_blame(b, SW_EINVAL,
			"tensor '%s': there is no dtype with code %u",
			b->names[i], desc->dtype);
	else if (!desc->n_elems ||
		 desc->n_elems > SW_EDGE_TENSOR_BYTES_MAX / each)
		sw_batch_blame(b, SW_EINVAL,
			"tensor '%s': %llu elements of %u bytes; allowed are 1 "
			"element to 64 GiB",
			b->names[i], (unsigned long long)desc->n_elems, each);
}

bool sw_batch_charge(struct sw_host *h, struct sw_batch *b, uint64_t bytes,
	const char *what_for)
{
	if (sw_quota_take(h, bytes))
		return true;
	sw_batch_blame(b, SW_ENOMEM,
		"the agent's memory quota: %.1f MiB needed%s, %.1f of %.1f MiB "
		"left",
		(double)bytes / 1048576, what_for,
		(double)(h->p.quota_bytes - h->used_bytes) / 1048576,
		(double)h->p.quota_bytes / 1048576);
	return false;
}
