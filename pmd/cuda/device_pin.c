/* device_pin.c - shared memory that a device copies from and to.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "pmd/cuda/device_int.h"

enum { PAGE = 4096 };

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

/* NULL: they are pinned already, or there is no memory, until the next time. */
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

/* With the lock. */
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
