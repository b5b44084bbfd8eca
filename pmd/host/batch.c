/* batch.c - control thread: a batch's tensors and its first fault.
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
	free(b->ranks);
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

static void take_ranks(
	struct sw_batch *b, const uint16_t *ranks, const char *name)
{
	struct sw_host_tensor *t = &b->tensors[0];

	if (!ranks) {
		sw_batch_blame(b, SW_EINVAL,
			"stream '%s' was declared without its ranks", name);
		return;
	}
	b->ranks = malloc(t->bytes + 1);
	if (!b->ranks) {
		sw_batch_blame(b, SW_ENOMEM, "the agent is out of memory");
		return;
	}
	t->ranks = memcpy(b->ranks, ranks, t->bytes);
}

static void check_stream(
	struct sw_batch *b, const struct sw_edge_desc *desc, const char *name)
{
	if (!desc->n_elems)
		sw_batch_blame(
			b, SW_EINVAL, "stream '%s': its group is empty", name);
	if (desc->dtype < SW_EDGE_WINDOW_MIN ||
		desc->dtype > SW_EDGE_WINDOW_MAX)
		sw_batch_blame(b, SW_EINVAL,
			"stream '%s': a window of 2^%u slots; allowed are 2^%u "
			"to 2^%u",
			name, desc->dtype, SW_EDGE_WINDOW_MIN,
			SW_EDGE_WINDOW_MAX);
}

static void check_size(struct sw_batch *b, const struct sw_edge_desc *desc,
	const char *name, uint32_t each)
{
	if (!each)
		sw_batch_blame(b, SW_EINVAL,
			"tensor '%s': unknown dtype code %u", name,
			desc->dtype);
	else if (!desc->n_elems ||
		 desc->n_elems > SW_EDGE_TENSOR_BYTES_MAX / each)
		sw_batch_blame(b, SW_EINVAL,
			"tensor '%s': %llu elements of %u bytes; allowed are 1 "
			"element to 64 GiB",
			name, (unsigned long long)desc->n_elems, each);
}

void sw_batch_add(struct sw_batch *b, const struct sw_edge_desc *desc,
	const uint16_t *ranks)
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
		.bytes = sw_edge_bytes(desc->kind, desc->n_elems, each),
		.dtype = desc->dtype,
		.priority = desc->priority,
		.kind = (uint8_t)desc->kind};
	if (desc->kind >= SW_EDGE_N_ITEMS)
		sw_batch_blame(b, SW_EINVAL, "'%s': unknown kind %u of item",
			b->names[i], desc->kind);
	else if (desc->kind == SW_EDGE_STREAM) {
		check_stream(b, desc, b->names[i]);
		take_ranks(b, ranks, b->names[i]);
	} else
		check_size(b, desc, b->names[i], each);
	if (desc->kind == SW_EDGE_MEMORY && b->n != 1)
		sw_batch_blame(b, SW_EINVAL,
			"memory '%s' is not alone in its batch", b->names[i]);
	if (b->n == 1)
		b->again = desc->again;
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
