/* device_tensor.c - tensors of a device: declare, push_pull, broadcast, wait.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/device_tensor.h"

#include <stdio.h>
#include <stdlib.h>

#include "pmd/client/client.h"
#include "pmd/client/sized.h"
#include "pmd/cuda/device_int.h"
#include "pmd/cuda/device_memory.h"

/* --- declare --- */

/* Pin the memory from the first to the last tensor. */
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

/* Describe one tensor.  Several threads may declare at once. */
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

/* Hand the batch to the pipeline until the device is closed. */
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

static void free_batch(struct sw_device *d, struct sw_device_batch *b)
{
	for (uint32_t i = 0; i < 2; i++)
		if (b->pinned[i])
			d->ops->unpin(d->back, b->pinned[i]);
	free(b->tensors);
	free(b);
}

/* Declare the tensors. Tensors that differ from another rank's are usable, and
 * their calls return the error as well. */
static int declare(struct sw_device *d, const struct sw_tensor_desc *descs,
	struct sw_device_batch *b, struct sw_tensor **made)
{
	char why[2 * SW_EDGE_TEXT_BYTES];
	int err, differs;

	differs = sw_client_declare_growing(d->client, descs, b->n, made);
	if (differs && differs != SW_EMISMATCH) {
		free_batch(d, b);
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
			free_batch(d, b);
		err = sw_client_fail(d->client, SW_ENOMEM, "out of memory");
	}
	free(made);
	return err;
}

void sw_device_free_tensors(struct sw_device *d)
{
	while (d->batches) {
		struct sw_device_batch *b = d->batches;

		d->batches = b->next;
		free_batch(d, b);
	}
}

/* --- submit --- */

/* Check the attachment, then copy and check the caller's struct. */
static int take_call(struct sw_device_tensor *t,
	const struct sw_device_call *call, struct sw_device_call *own)
{
	struct sw_client *c = t->device->client;
	char why[SW_SIZED_WHY_BYTES];
	int err = sw_client_enter(c);

	if (err)
		return err;
	sw_client_unlock(c);
	if (sw_sized_take(own, sizeof(*own), call,
		    SW_UP_TO(struct sw_device_call, root), "sw_device_call",
		    why))
		return sw_client_fail(c, SW_EINVAL, "%s", why);
	if (!own->to)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s': to, the address of the result, is 0",
			t->t.name);
	return 0;
}

static int submit(struct sw_device_tensor *t,
	const struct sw_pipeline_call *call, void *stream)
{
	struct sw_device *d = t->device;
	char why[SW_PIPELINE_WHY];
	int err = sw_pipeline_submit(&d->pipeline, &t->t, call, stream, why);

	return err ? sw_client_fail(d->client, err, "%s", why) : 0;
}

int sw_push_pull_device(
	struct sw_device_tensor *t, const struct sw_device_call *call)
{
	struct sw_device_call own;
	int err = take_call(t, call, &own);

	if (err)
		return err;
	if (!own.from)
		return sw_client_fail(t->device->client, SW_EINVAL,
			"tensor '%s': there is nothing to sum", t->t.name);
	return submit(t,
		&(struct sw_pipeline_call){
			.from = own.from, .to = own.to, .step = own.step},
		own.stream);
}

int sw_broadcast_device(
	struct sw_device_tensor *t, const struct sw_device_call *call)
{
	struct sw_client *c = t->device->client;
	struct sw_pipeline_call p = {0};
	struct sw_device_call own;
	int err = take_call(t, call, &own);

	if (err)
		return err;
	if (own.root >= sw_size(c))
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s': rank %u cannot broadcast, ranks are 0 to "
			"%u",
			t->t.name, own.root, sw_size(c) - 1);
	p.is_root = own.root == sw_rank(c);
	if (p.is_root && !own.from)
		return sw_client_fail(c, SW_EINVAL,
			"tensor '%s': there is nothing to broadcast",
			t->t.name);
	p.from = p.is_root ? own.from : NULL;
	p.to = own.to;
	p.root = 1 + own.root;
	p.step = own.step;
	return submit(t, &p, own.stream);
}

/* --- wait --- */

/* Return the pipeline's result as sw_* functions do. */
static int report(
	struct sw_device_tensor *t, int err, bool has_waited, const char *why)
{
	const uint32_t *conflict = t->t.conflict;
	struct sw_edge_why between = {.conflict = conflict[0],
		.rank = conflict[1],
		.other = conflict[2]};

	if (err == SW_EAGAIN && has_waited)
		err = SW_ETIMEDOUT;
	if (err == SW_EMISMATCH)
		return sw_client_fail_for(
			t->device->client, err, &between, why);
	return err ? sw_client_fail(t->device->client, err, "%s", why) : 0;
}

/* Return SW_ECLOSED in a forked child: no thread would end its call, and its
 * copy of the lock may be held forever. */
static int check_ours(const struct sw_device_tensor *t)
{
	if (!sw_client_lock(t->device->client))
		return SW_ECLOSED;
	sw_client_unlock(t->device->client);
	return 0;
}

static int wait_until(struct sw_device_tensor *t, uint64_t until_ns)
{
	char why[SW_PIPELINE_WHY];
	int err = check_ours(t);

	if (err)
		return err;
	err = sw_pipeline_wait(&t->device->pipeline, &t->t, until_ns, why);
	return report(t, err, until_ns, why);
}

int sw_device_poll(struct sw_device_tensor *t)
{
	return wait_until(t, 0);
}

int sw_device_wait(struct sw_device_tensor *t)
{
	return wait_until(t, sw_client_wait_until_ns(t->device->client));
}

int sw_device_wait_for(struct sw_device_tensor *t, uint32_t timeout_ms)
{
	return wait_until(t, sw_client_after_ms(timeout_ms));
}

int sw_device_hold(struct sw_device_tensor *t, void *stream)
{
	uint64_t until_ns = sw_client_wait_until_ns(t->device->client);
	char why[SW_PIPELINE_WHY];
	int err = check_ours(t);

	if (err)
		return err;
	err = sw_pipeline_hold(
		&t->device->pipeline, &t->t, stream, until_ns, why);
	return report(t, err, true, why);
}

int sw_device_can_hold(struct sw_device *d, void *stream)
{
	char why[SW_PIPELINE_WHY];
	int err = sw_client_enter(d->client);

	if (err)
		return err;
	sw_client_unlock(d->client);
	err = sw_pipeline_can_hold(&d->pipeline, stream, why);
	return err ? sw_client_fail(d->client, err, "%s", why) : 0;
}
