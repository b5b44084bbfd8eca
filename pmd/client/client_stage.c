/* client_stage.c - libsumwire: stages of shared memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "pmd/client/client_device.h"
#include "pmd/client/client_stage.h"

uint64_t sw_stage_memory(
	const struct sw_channel *ch, uint64_t bytes, void **base)
{
	bool is_small = bytes <= SW_STAGE_SMALL;

	*base = is_small ? ch->small[0].base : ch->large[0].base;
	return is_small ? SW_STAGES_SMALL * (uint64_t)SW_STAGE_SMALL
			: SW_STAGES_LARGE * ch->large_bytes;
}

/* Sizes of stages, so that groups of different sizes can use each other's. */
static uint64_t size_class(uint64_t bytes)
{
	uint64_t each = SW_STAGE_SMALL;

	while (each < bytes)
		each *= 2;
	return each;
}

/* The first that is large enough; *each is then its size. */
static bool take_spare(
	struct sw_client *c, uint32_t n, uint64_t *each, struct sw_stage *first)
{
	struct sw_stage_spare **at = &c->spares, *s;

	while (*at && ((*at)->n != n || (*at)->each < *each))
		at = &(*at)->next;
	s = *at;
	if (!s)
		return false;
	*first = s->first;
	*each = s->each;
	*at = s->next;
	free(s);
	return true;
}

int sw_stage_open(struct sw_client *c, struct sw_channel *ch, uint64_t bytes,
	uint64_t largest)
{
	bool is_small = bytes <= SW_STAGE_SMALL;
	struct sw_stage *list = is_small ? ch->small : ch->large;
	uint32_t n = is_small ? SW_STAGES_SMALL : SW_STAGES_LARGE;
	uint64_t each = is_small ? SW_STAGE_SMALL : size_class(largest);
	struct sw_stage first;
	struct sw_tensor *t;
	int err;

	if (list[0].base)
		return 0;
	if (!take_spare(c, n, &each, &first)) {
		err = sw_client_alloc(c, n * each, &t);
		if (err)
			return err;
		first = (struct sw_stage){
			.base = t->data, .at = {.item = t->id}};
	}
	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct sw_stage){.base = first.base + i * each,
			.at = {.item = first.at.item,
				.offset = first.at.offset + i * each}};
	if (!is_small)
		ch->large_bytes = each;
	return 0;
}

static void put_spare(struct sw_client *c, const struct sw_stage *first,
	uint32_t n, uint64_t each)
{
	struct sw_stage_spare *s = first->base ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return; /* it is free with the client */
	*s = (struct sw_stage_spare){
		.next = c->spares, .first = *first, .each = each, .n = n};
	c->spares = s;
}

void sw_stage_close(struct sw_client *c, struct sw_channel *ch)
{
	put_spare(c, &ch->small[0], SW_STAGES_SMALL, SW_STAGE_SMALL);
	put_spare(c, &ch->large[0], SW_STAGES_LARGE, ch->large_bytes);
	ch->small[0] = ch->large[0] = (struct sw_stage){0};
}

/* Is there another one of its kind, as large or larger? */
static bool is_second(
	const struct sw_client *c, const struct sw_stage_spare *spare)
{
	for (const struct sw_stage_spare *s = c->spares; s; s = s->next)
		if (s != spare && s->n == spare->n && s->each >= spare->each)
			return true;
	return false;
}

static struct sw_stage_spare *take_second(struct sw_client *c)
{
	struct sw_stage_spare **at = &c->spares, *s;

	while (*at && !is_second(c, *at))
		at = &(*at)->next;
	s = *at;
	if (s)
		*at = s->next;
	return s;
}

int sw_stage_trim(struct sw_client *c)
{
	struct sw_stage_spare *s;
	int err = 0;

	while ((s = take_second(c))) {
		struct sw_tensor *t = c->tensors[sw_id_index(s->first.at.item)];
		int failed;

		free(s);
		sw_client_unpin(c, t->data);
		failed = sw_client_give(c, t);
		err = err ? err : failed;
	}
	return err;
}
