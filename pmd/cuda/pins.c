/* pins.c - ranges of memory that a back end has pinned, which may overlap.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pins.h"

#include <stdlib.h>

void sw_pins_init(struct sw_pins *p)
{
	pthread_mutex_init(&p->lock, NULL);
	p->first = NULL;
}

void sw_pins_fini(struct sw_pins *p)
{
	while (p->first) {
		struct sw_pin *pin = p->first;

		p->first = pin->next;
		free(pin);
	}
	pthread_mutex_destroy(&p->lock);
}

/* Return the link to the first range that ends after @at. Called with the
 * lock. */
static struct sw_pin **find(struct sw_pins *p, uintptr_t at)
{
	struct sw_pin **link = &p->first;

	while (*link && (*link)->end <= at)
		link = &(*link)->next;
	return link;
}

struct sw_pin *sw_pins_add(struct sw_pins *p, uintptr_t at, uint64_t bytes,
	uintptr_t *from, bool *has_memory)
{
	struct sw_pin *pin = calloc(1, sizeof(*pin)), **link;
	uintptr_t end = at + bytes;

	*has_memory = pin != NULL;
	if (!pin)
		return NULL;
	pthread_mutex_lock(&p->lock);
	link = find(p, *from);
	while (*link && (*link)->first <= *from) {
		*from = (*link)->end;
		link = &(*link)->next;
	}
	if (*from < end) {
		if (*link && (*link)->first < end)
			end = (*link)->first;
		*pin = (struct sw_pin){.next = *link,
			.first = *from,
			.end = end,
			.owner = at,
			.is_ours = true};
		*link = pin;
		*from = end;
	} else {
		free(pin);
		pin = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	return pin;
}

static void unlink_pin(struct sw_pins *p, const struct sw_pin *pin)
{
	struct sw_pin **link = &p->first;

	while (*link != pin)
		link = &(*link)->next;
	*link = pin->next;
}

void sw_pins_drop(struct sw_pins *p, struct sw_pin *pin)
{
	pthread_mutex_lock(&p->lock);
	unlink_pin(p, pin);
	pthread_mutex_unlock(&p->lock);
	free(pin);
}

struct sw_pin *sw_pins_take(struct sw_pins *p, uintptr_t at)
{
	struct sw_pin *pin;

	pthread_mutex_lock(&p->lock);
	pin = p->first;
	while (pin && pin->owner != at)
		pin = pin->next;
	if (pin)
		unlink_pin(p, pin);
	pthread_mutex_unlock(&p->lock);
	return pin;
}

uint64_t sw_pins_run(struct sw_pins *p, const void *at, uint64_t bytes)
{
	uintptr_t from = (uintptr_t)at, border = from + bytes;
	const struct sw_pin *pin;

	pthread_mutex_lock(&p->lock);
	pin = *find(p, from);
	if (pin && pin->first > from)
		border = pin->first;
	else if (pin)
		border = pin->end;
	pthread_mutex_unlock(&p->lock);
	return border - from < bytes ? border - from : bytes;
}
