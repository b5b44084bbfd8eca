/* device_declare.c - sw_device_declare: tensors as pieces, which are pinned.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmd/client/client.h"
#include "pmd/client/sized.h"
#include "pmd/cuda/device_int.h"

enum {
	NAME_MAX_BYTES = 120, /* "#4095" comes behind it */
	PIECES_GOAL = 8,      /* of a tensor */
	PIECE_MIN = 256 << 10,
};

static uint64_t piece_of(const struct sw_device *d, uint64_t bytes)
{
	uint64_t piece = PIECE_MIN;

	if (d->piece_bytes)
		return d->piece_bytes;
	while (piece < SW_DEVICE_PIECE_MAX && bytes / piece >= PIECES_GOAL)
		piece *= 2;
	return piece;
}

static uint64_t bytes_of(const struct sw_tensor_desc *desc)
{
	return desc->n_elems * sw_dtype_bytes(desc->dtype);
}

static uint64_t count_pieces(
	const struct sw_device *d, const struct sw_tensor_desc *desc)
{
	uint64_t bytes = bytes_of(desc), piece = piece_of(d, bytes);

	return (bytes + piece - 1) / piece;
}

/* What sw_declare would refuse, too, but by the names of pieces.  Returns how
 * many those are in all, or an error. */
static int check_descs(struct sw_device *d, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_tensor_desc *own)
{
	char why[SW_SIZED_WHY_BYTES];
	uint64_t all = 0;

	for (uint32_t i = 0; i < n; i++) {
		const void *from = (const char *)descs + i * descs->size;

		if (sw_sized_take(&own[i], sizeof(own[i]), from,
			    SW_UP_TO(struct sw_tensor_desc, pad),
			    "sw_tensor_desc", why))
			return sw_client_fail(
				d->client, SW_EINVAL, "tensor %u: %s", i, why);
		if (!own[i].name || strlen(own[i].name) > NAME_MAX_BYTES ||
			!sw_dtype_bytes(own[i].dtype) || own[i].is_async ||
			!own[i].n_elems ||
			own[i].n_elems > SW_EDGE_TENSOR_BYTES_MAX)
			return sw_client_fail(d->client, SW_EINVAL,
				"tensor %u: a name of 1 to %u bytes, elements, "
				"a type, and no is_async were expected",
				i, NAME_MAX_BYTES);
		all += count_pieces(d, &own[i]);
		if (all > SW_PIPELINE_TENSORS)
			return sw_client_fail(d->client, SW_EINVAL,
				"more than 4,096 pieces: larger ones "
				"(piece_bytes) or fewer tensors are possible");
	}
	return (int)all;
}

/* Room for what will be declared, in one piece each. */
struct plan {
	struct sw_tensor_desc *descs; /* of pieces */
	char (*names)[SW_EDGE_NAME_BYTES];
	struct sw_tensor **made;
	uint32_t n;
};

static void plan_tensor(struct sw_device *d, struct plan *plan,
	const struct sw_tensor_desc *desc, struct sw_device_tensor *t,
	struct sw_pipeline_piece *pieces)
{
	uint64_t bytes = bytes_of(desc), each = piece_of(d, bytes);
	uint32_t n = (uint32_t)count_pieces(d, desc);

	t->device = d;
	snprintf(t->t.name, sizeof(t->t.name), "%s", desc->name);
	t->t.priority = desc->priority == SW_PRIORITY_BY_USE ? d->n_tensors
							     : desc->priority;
	d->n_tensors++;
	t->t.n_pieces = n;
	t->t.pieces = pieces;
	for (uint32_t i = 0; i < n; i++) {
		struct sw_tensor_desc *of = &plan->descs[plan->n];
		char *name = plan->names[plan->n++];

		pieces[i].at = i * each;
		pieces[i].bytes =
			bytes - i * each < each ? bytes - i * each : each;
		*of = *desc;
		of->size = sizeof(*of);
		of->name = name;
		of->n_elems = pieces[i].bytes / sw_dtype_bytes(desc->dtype);
		snprintf(name, SW_EDGE_NAME_BYTES, n == 1 ? "%s" : "%s#%u",
			desc->name, i);
	}
}

static void *pin(struct sw_device *d, const struct plan *plan,
	const struct sw_pipeline_piece *pieces, bool is_result)
{
	uintptr_t first = UINTPTR_MAX, end = 0;

	for (uint32_t i = 0; i < plan->n; i++) {
		uintptr_t at = is_result ? (uintptr_t)pieces[i].in
					 : (uintptr_t)pieces[i].out;

		first = at < first ? at : first;
		end = at + pieces[i].bytes > end ? at + pieces[i].bytes : end;
	}
	return sw_device_pin(d, (void *)first, end - first, is_result);
}

/* They are declared: where they lie. */
static int place(struct sw_device *d, const struct plan *plan,
	struct sw_device_batch *b, uint32_t n_tensors)
{
	char why[SW_BACK_WHY];
	bool is_apart = false;
	int err = 0;

	for (uint32_t i = 0; i < plan->n; i++) {
		b->pieces[i].net = plan->made[i];
		b->pieces[i].out = sw_tensor_data(plan->made[i]);
		b->pieces[i].in = sw_tensor_result(plan->made[i]);
		is_apart |= b->pieces[i].in != b->pieces[i].out;
	}
	b->pinned[0] = pin(d, plan, b->pieces, false);
	b->pinned[1] = is_apart ? pin(d, plan, b->pieces, true) : NULL;
	b->next = d->batches;
	d->batches = b;
	for (uint32_t i = 0; i < n_tensors && !err; i++)
		err = sw_pipeline_add(&d->pipeline, &b->tensors[i].t, why);
	return err ? sw_client_fail(d->client, err, "%s: %s", d->where, why)
		   : 0;
}

static int declare(struct sw_device *d, const struct sw_tensor_desc *descs,
	uint32_t n, struct plan *plan, struct sw_device_batch *b)
{
	char why[2 * SW_EDGE_TEXT_BYTES];
	int err, differs;

	for (uint32_t i = 0; i < n; i++)
		plan_tensor(d, plan, &descs[i], &b->tensors[i],
			&b->pieces[plan->n]);
	differs = sw_declare(d->client, plan->descs, plan->n, plan->made);
	if (differs && differs != SW_EMISMATCH) {
		sw_device_batch_free(d, b);
		return differs;
	}
	snprintf(why, sizeof(why), "%s", sw_last_error(d->client));
	err = place(d, plan, b, n);
	if (err || !differs)
		return err;
	return sw_client_fail(d->client, differs, "%s", why);
}

static int alloc_and_declare(struct sw_device *d,
	const struct sw_tensor_desc *descs, uint32_t n, uint32_t n_pieces,
	struct sw_device_tensor **out)
{
	struct plan plan = {calloc(n_pieces, sizeof(plan.descs[0])),
		calloc(n_pieces, sizeof(plan.names[0])),
		calloc(n_pieces, sizeof(plan.made[0])), 0};
	struct sw_device_batch *b = calloc(1, sizeof(*b));
	int err;

	if (b) {
		b->tensors = calloc(n, sizeof(b->tensors[0]));
		b->pieces = calloc(n_pieces, sizeof(b->pieces[0]));
	}
	if (b && b->tensors && b->pieces && plan.descs && plan.names &&
		plan.made) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = &b->tensors[i];
		err = declare(d, descs, n, &plan, b);
	} else {
		if (b)
			sw_device_batch_free(d, b);
		err = sw_client_fail(d->client, SW_ENOMEM, "out of memory");
	}
	free(plan.descs);
	free(plan.names);
	free(plan.made);
	return err;
}

int sw_device_declare(struct sw_device *d, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_device_tensor **out)
{
	struct sw_tensor_desc *own;
	int err;

	if (!n || n > SW_EDGE_TENSORS)
		return sw_client_fail(d->client, SW_EINVAL,
			"%u tensors declared at once: 1 to %u are possible", n,
			SW_EDGE_TENSORS);
	own = calloc(n, sizeof(*own));
	if (!own)
		return sw_client_fail(d->client, SW_ENOMEM, "out of memory");
	err = check_descs(d, descs, n, own);
	if (err > 0)
		err = alloc_and_declare(d, own, n, (uint32_t)err, out);
	free(own);
	return err;
}
