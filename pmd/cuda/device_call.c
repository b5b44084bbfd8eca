/* device_call.c - push_pulls and broadcasts of device memory, and their ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client.h"
#include "pmd/client/sized.h"
#include "pmd/cuda/device_int.h"

/* The attachment, then the caller's struct. */
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
			"tensor '%s': there is no place for its result",
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

/* What the pipeline says, as sw_* do. */
static int report(
	struct sw_device_tensor *t, int err, bool has_waited, const char *why)
{
	if (err == SW_EAGAIN && has_waited)
		err = SW_ETIMEDOUT;
	return err ? sw_client_fail(t->device->client, err, "%s", why) : 0;
}

/* A forked child has nothing that would end a call, and maybe a lock that
 * nobody gives back. */
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
