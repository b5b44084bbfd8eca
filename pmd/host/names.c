/* names.c - a hash table of names, open addressing.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "pmd/host/names.h"

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

/* Return the place of @name, or the free place for it. */
static uint32_t place_of(const struct sw_names *t, const char *name)
{
	uint32_t at = hash(name) % SW_NAMES_PLACES;

	while (t->places[at] && strcmp(t->names[t->places[at] - 1], name))
		at = (at + 1) % SW_NAMES_PLACES;
	return at;
}

uint32_t sw_names_find(const struct sw_names *t, const char *name)
{
	return t->places[place_of(t, name)];
}

void sw_names_add(struct sw_names *t, const char *name)
{
	assert(t->n < SW_EDGE_TENSORS);
	t->names[t->n++] = name;
	t->places[place_of(t, name)] = (uint16_t)t->n;
}

void sw_names_change(struct sw_names *t, uint32_t i, const char *name)
{
	t->names[i] = name;
	sw_names_cut(t, t->n);
}

void sw_names_cut(struct sw_names *t, uint32_t n)
{
	memset(t->places, 0, sizeof(t->places));
	t->n = 0;
	while (t->n < n)
		if (t->names[t->n])
			sw_names_add(t, t->names[t->n]);
		else
			t->n++;
}
