/* client_memory.c - libsumwire: sw_alloc, sw_free, and stages for copies.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The agent reads and writes memory of sw_alloc in place.  Other buffers are
 * copied through stages: shared memory that belongs to a channel while its
 * group is open, and then waits as a spare for the next channel.
 */
#include "pmd/client/client_memory.h"

#include <stdlib.h>

#include "pmd/client/client_declare.h"
#include "pmd/client/client_turn.h"

/* --- sw_alloc --- */

/* Lead, since the leader receives the agent's answer. */
int sw_client_alloc(struct sw_client *c, size_t bytes, struct sw_tensor **out)
{
	int err;

	sw_client_lead(c);
	err = sw_client_map(c, bytes, out);
	sw_client_follow(c);
	return err;
}

int sw_alloc(struct sw_client *c, size_t bytes, void **out)
{
	struct sw_tensor *t;
	int err = sw_client_enter(c);

	if (err)
		return err;
	if (!bytes || bytes > SW_EDGE_TENSOR_BYTES_MAX)
		err = sw_client_fail(c, SW_EINVAL,
			"sw_alloc of %zu bytes: 1 byte to 64 GiB are possible",
			bytes);
	else
		err = sw_client_alloc(c, bytes, &t);
	if (!err) {
		c->memories[c->n_memories++] = t->i;
		*out = sw_tensor_data(t);
	}
	sw_client_unlock(c);
	return err;
}

bool sw_client_find_memory(const struct sw_client *c, const void *p,
	uint64_t bytes, struct sw_edge_place_at *out)
{
	uintptr_t at = (uintptr_t)p;

	for (uint32_t i = 0; i < c->n_memories; i++) {
		const struct sw_tensor *t = c->tensors[c->memories[i]];
		uintptr_t base = (uintptr_t)t->data;

		if (at < base || at - base > t->memory_bytes ||
			bytes > t->memory_bytes - (at - base))
			continue;
		*out = (struct sw_edge_place_at){
			.item = t->id, .offset = at - base};
		return true;
	}
	return false;
}

/* --- sw_free --- */

/* Return the index in the list of the memory that begins at @p; n_memories if
 * not found. */
static uint32_t find_start(const struct sw_client *c, const void *p)
{
	uint32_t i = 0;

	while (i < c->n_memories && c->tensors[c->memories[i]]->data != p)
		i++;
	return i;
}

static const struct sw_tensor *find_tensor(
	const struct sw_client *c, const void *p)
{
	for (uint32_t i = 0; i < c->n_tensors; i++)
		if (c->tensors[i]->data == p && !c->tensors[i]->memory_bytes)
			return c->tensors[i];
	return NULL;
}

static int fail_unknown(struct sw_client *c, const void *p)
{
	const struct sw_tensor *t = find_tensor(c, p);
	struct sw_edge_place_at in;

	if (t)
		return sw_client_fail(c, SW_EBUSY,
			"the memory at %p is that of tensor '%s', which has it "
			"until sw_close",
			p, t->name);
	if (sw_client_find_memory(c, p, 1, &in))
		return sw_client_fail(c, SW_EINVAL,
			"%p lies %llu bytes behind the beginning of what "
			"sw_alloc gave: free that",
			p, (unsigned long long)in.offset);
	return sw_client_fail(c, SW_EINVAL,
		"there is no memory of sw_alloc at %p, or it was freed", p);
}

static bool is_used(const struct sw_call *k, uint32_t item)
{
	return k->state == SW_TENSOR_OPEN &&
	       ((k->has_from && k->from.item == item) ||
		       (k->has_to && k->to.item == item));
}

static int check_unused(struct sw_client *c, const struct sw_tensor *t)
{
	for (uint32_t i = 0; i < SW_EDGE_COLLS; i++) {
		const struct sw_call *k = &c->calls.calls[i];

		if (is_used(k, t->id))
			return sw_client_fail(c, SW_EBUSY,
				"the memory at %p is used by %s %llu of group "
				"'%s': wait for that, or abort the group",
				t->data, sw_coll_name(k->args.kind),
				(unsigned long long)k->number, k->group->name);
	}
	return 0;
}

int sw_client_give(struct sw_client *c, struct sw_tensor *t)
{
	struct sw_edge_free m = {.kind = SW_EDGE_FREE, .item = t->id};
	int err = sw_client_ask(c, &m, sizeof(m), "sw_free");
	uint32_t i = 0;

	if (err)
		return err;
	while (c->batches[i].tensors != t)
		i++;
	sw_segment_fini(&c->batches[i].data);
	t->data = NULL;
	t->memory_bytes = 0;
	t->is_freed = true;
	return 0;
}

/* Free the memory, out of the list first so that nothing new uses it meanwhile.
 */
static int free_memory(struct sw_client *c, uint32_t at)
{
	uint32_t item = c->memories[at];
	int err = check_unused(c, c->tensors[item]);

	if (err)
		return err;
	c->memories[at] = c->memories[--c->n_memories];
	err = sw_client_give(c, c->tensors[item]);
	if (err)
		c->memories[c->n_memories++] = item;
	return err;
}

int sw_free(struct sw_client *c, void *p)
{
	int err = sw_client_enter(c);
	uint32_t at;

	if (err)
		return err;
	at = find_start(c, p);
	if (p)
		err = at < c->n_memories ? free_memory(c, at)
					 : fail_unknown(c, p);
	sw_client_unlock(c);
	return err;
}

/* --- stages --- */

uint64_t sw_stage_memory(
	const struct sw_channel *ch, uint64_t bytes, void **base)
{
	bool is_small = bytes <= SW_STAGE_SMALL;

	*base = is_small ? ch->small[0].base : ch->large[0].base;
	return is_small ? SW_STAGES_SMALL * (uint64_t)SW_STAGE_SMALL
			: SW_STAGES_LARGE * ch->large_bytes;
}

/* Round up, so that groups of different sizes can use each other's stages. */
static uint64_t size_class(uint64_t bytes)
{
	uint64_t each = SW_STAGE_SMALL;

	while (each < bytes)
		each *= 2;
	return each;
}

/* Use the first spare that is large enough; *each is set to its size. */
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

/* Is there another spare of its kind, as large or larger? */
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

/* Have all parts unpin the stages at @base; releases the lock meanwhile.  A
 * part that is disowned meanwhile exists until this returns, and so does its
 * link to the next one. */
static void unpin_stages(struct sw_client *c, const void *base)
{
	c->n_unpinning++;
	for (struct sw_client_part *p = c->parts; p; p = p->next) {
		sw_client_unlock(c);
		p->unpin(p, base);
		(void)!sw_client_lock(c);
	}
	c->n_unpinning--;
	sw_client_changed(c);
}

int sw_stage_trim(struct sw_client *c)
{
	struct sw_stage_spare *s;
	int err = 0;

	while ((s = take_second(c))) {
		struct sw_tensor *t = c->tensors[sw_id_index(s->first.at.item)];
		int failed;

		free(s);
		unpin_stages(c, t->data);
		failed = sw_client_give(c, t);
		err = err ? err : failed;
	}
	return err;
}
