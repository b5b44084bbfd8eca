/* device_memory.c - memory of a device, for programs without its runtime.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client.h"
#include "pmd/cuda/device_int.h"

static int answer(const struct sw_device *d, int err, const char *why)
{
	return err ? sw_client_fail(d->client, err, "%s: %s", d->where, why)
		   : 0;
}

/* Memory outlives the attachment, but is of the process that opened. */
static int check(const struct sw_device *d)
{
	if (!sw_client_lock(d->client))
		return SW_ECLOSED;
	sw_client_unlock(d->client);
	return 0;
}

int sw_device_alloc(struct sw_device *d, uint64_t bytes, void **out)
{
	char why[SW_BACK_WHY];
	int err = check(d);

	if (err)
		return err;
	if (!bytes)
		return answer(d, SW_EINVAL, "no memory was asked for");
	return answer(d, d->ops->alloc(d->back, bytes, out, why), why);
}

void sw_device_free(struct sw_device *d, void *p)
{
	if (p && !check(d))
		d->ops->release(d->back, p);
}

int sw_device_copy(
	struct sw_device *d, void *to, const void *from, uint64_t bytes)
{
	char why[SW_BACK_WHY];
	int err = check(d);

	return err ? err
		   : answer(d, d->ops->move(d->back, to, from, bytes, why),
			     why);
}
