/* client_memory.c - libsumwire: memory that the agent reads and writes in
 * place. SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client.h"

/* The agent's answer comes to whoever leads. */
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

/* --- giving it back --- */

/* That begins at @p: its place in the list; n_memories: there is none. */
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

static void unmap(struct sw_client *c, struct sw_tensor *t)
{
	uint32_t i = 0;

	while (c->batches[i].tensors != t)
		i++;
	sw_segment_fini(&c->batches[i].data);
	t->data = NULL;
	t->memory_bytes = 0;
	t->is_freed = true;
}

int sw_client_give(struct sw_client *c, struct sw_tensor *t)
{
	struct sw_edge_free m = {.kind = SW_EDGE_FREE, .item = t->id};
	int err = sw_client_ask(c, &m, sizeof(m), "sw_free");

	if (!err)
		unmap(c, t);
	return err;
}

/* Out of the list first, so that nothing new uses it while we wait. */
static int give_back(struct sw_client *c, uint32_t at)
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
		err = at < c->n_memories ? give_back(c, at)
					 : fail_unknown(c, p);
	sw_client_unlock(c);
	return err;
}
