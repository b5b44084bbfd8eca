/* device_memory.c - a device's own memory, and shared memory that it pins.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/device_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "pmd/cuda/device_int.h"

enum { PAGE = 4096 };

/* --- the device's own --- */

static int answer(const struct sw_device *d, int err, const char *why)
{
	return err ? sw_client_fail(d->client, err, "%s: %s", d->where, why)
		   : 0;
}

/* Return SW_ECLOSED in a forked child. Memory outlives the attachment, but
 * belongs to the process that opened the device. */
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

/* --- shared memory --- */

void *sw_device_pin(
	struct sw_device *d, const void *at, uint64_t bytes, bool is_read_only)
{
	uintptr_t first = (uintptr_t)at / PAGE * PAGE;
	uint64_t all = ((uintptr_t)at + bytes + PAGE - 1) / PAGE * PAGE - first;
	char why[SW_BACK_WHY], line[SW_PIPELINE_WHY];

	if (!d->ops->pin(d->back, (void *)first, all, is_read_only, why))
		return (void *)first;
	if (!atomic_exchange(&d->has_warned, true)) {
		snprintf(line, sizeof(line),
			"%s: shared memory cannot be pinned (%s): copies are "
			"slower",
			d->where, why);
		sw_client_say(d->client, line);
	}
	return NULL;
}

/* List the stages at @base for pinning. Returns NULL if they are listed
 * already, or if there is no memory; the next call then tries again. */
static struct sw_device_stage *claim(struct sw_device *d, const void *base)
{
	struct sw_device_stage *s;

	(void)!sw_client_lock(d->client);
	s = d->stages;
	while (s && s->base != base)
		s = s->next;
	s = s ? NULL : calloc(1, sizeof(*s));
	if (s) {
		*s = (struct sw_device_stage){.next = d->stages, .base = base};
		d->stages = s;
	}
	sw_client_unlock(d->client);
	return s;
}

void sw_device_pin_stage(struct sw_device *d, const void *base, uint64_t bytes)
{
	struct sw_device_stage *s = claim(d, base);
	void *pinned;

	if (!s)
		return;
	pinned = sw_device_pin(d, base, bytes, false);
	(void)!sw_client_lock(d->client);
	s->pinned = pinned;
	sw_client_unlock(d->client);
}

/* Remove the stages at @base from the list. Called with the lock. */
static struct sw_device_stage *take_stage(struct sw_device *d, const void *base)
{
	struct sw_device_stage **at = &d->stages, *s;

	while (*at && (*at)->base != base)
		at = &(*at)->next;
	s = *at;
	if (s)
		*at = s->next;
	return s;
}

void sw_device_unpin_stage(struct sw_device *d, const void *base)
{
	struct sw_device_stage *s;

	if (!sw_client_lock(d->client))
		return;
	s = take_stage(d, base);
	sw_client_unlock(d->client);
	if (s && s->pinned)
		d->ops->unpin(d->back, s->pinned);
	free(s);
}

void sw_device_unpin_stages(struct sw_device *d)
{
	while (d->stages) {
		struct sw_device_stage *s = d->stages;

		d->stages = s->next;
		if (s->pinned)
			d->ops->unpin(d->back, s->pinned);
		free(s);
	}
}
