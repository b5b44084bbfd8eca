/* client_declare.c - libsumwire: tensors, memory, streams of groups and stages.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * sw_declare sends a batch of descriptions to the agent.  The agent declares
 * the tensors at the servers, allocates the shared memory, and answers with its
 * descriptor; the client maps the memory.  Memory of sw_alloc and the streams
 * of groups are declared the same way, one at a time.
 *
 * The agent reads and writes memory of sw_alloc in place.  Other buffers are
 * copied through stages: shared memory that belongs to a channel while its
 * group is open, and afterwards is a spare for the next channel.
 *
 * Streams are named GROUP/KIND.  After a close they are named GROUP#2/KIND,
 * because other ranks may not have closed the first group yet. */
#include "pmd/client/client_declare.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmd/client/client_turn.h"
#include "pmd/client/sized.h"

#define SLOW_BYTES_PER_S (UINT64_C(64) << 20)

enum {
	WINDOW_LOG2 = 9,         /* slots: the agent may take fewer */
	WINDOW_BARRIER_LOG2 = 4, /* few barriers are in flight */
};

/* One declaration: tensors, memory, or a stream. */
struct order {
	const struct sw_tensor_desc *descs;
	uint32_t n;
	const uint16_t *ranks;         /* ranks of a stream */
	const struct sw_tensor *freed; /* freed item whose index is reused */
};

/* --- the request --- */

static int check_count(struct sw_client *c, uint32_t n)
{
	if (n && n <= SW_EDGE_TENSORS - c->n_tensors)
		return 0;
	return sw_client_fail(c, SW_EINVAL,
		"%u tensors declared at once; a client may have 1 to %u and "
		"has %u",
		n, SW_EDGE_TENSORS, c->n_tensors);
}

/* Check the names, since the agent only sees copies in a fixed size.  The agent
 * checks sizes, dtypes and duplicates. */
static int check_descs(
	struct sw_client *c, const struct sw_tensor_desc *descs, uint32_t n)
{
	int err = check_count(c, n);

	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++)
		if (!descs[i].name || !descs[i].name[0] ||
			strnlen(descs[i].name, SW_EDGE_NAME_BYTES) ==
				SW_EDGE_NAME_BYTES)
			return sw_client_fail(c, SW_EINVAL,
				"the name of tensor %u must have 1 to %u bytes",
				i, SW_EDGE_NAME_BYTES - 1);
	return 0;
}

static struct sw_edge_desc describe(
	const struct sw_tensor_desc *d, const struct sw_tensor *freed)
{
	struct sw_edge_desc out = {.n_elems = d->n_elems,
		.dtype = d->dtype,
		.priority = d->priority,
		.kind = d->is_async,
		.again = freed ? sw_id_next(freed->id) : 0};

	memcpy(out.name, d->name, strlen(d->name));
	return out;
}

static int send_stream(
	struct sw_client *c, const struct order *o, uint64_t until_ns)
{
	size_t bytes = o->descs->n_elems * sizeof(*o->ranks);
	struct sw_edge_open *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return sw_client_fail(c, SW_ENOMEM, "out of memory");
	m->kind = SW_EDGE_OPEN;
	m->batch = c->next_batch++;
	m->desc = describe(o->descs, o->freed);
	memcpy(m->ranks, o->ranks, bytes);
	err = sw_client_send(
		c, m, offsetof(struct sw_edge_open, ranks) + bytes, until_ns);
	free(m);
	return err;
}

static int send_batch(
	struct sw_client *c, const struct order *o, uint64_t until_ns)
{
	struct sw_edge_declare m = {.kind = SW_EDGE_DECLARE,
		.batch = c->next_batch++,
		.n_total = o->n,
		.near = c->near};
	int err = 0;

	for (; m.first_i < o->n && !err; m.first_i += m.n) {
		m.n = o->n - m.first_i;
		m.n = m.n < SW_EDGE_PIECE ? m.n : SW_EDGE_PIECE;
		for (uint32_t i = 0; i < m.n; i++)
			m.descs[i] =
				describe(&o->descs[m.first_i + i], o->freed);
		err = sw_client_send(c, &m,
			offsetof(struct sw_edge_declare, descs) +
				m.n * sizeof(m.descs[0]),
			until_ns);
	}
	return err;
}

/* --- the answer --- */

static int alloc_batch(
	struct sw_client *c, struct sw_client_batch *b, uint32_t n)
{
	b->tensors = calloc(n, sizeof(b->tensors[0]));
	b->names = calloc(n, sizeof(b->names[0]));
	if (b->tensors && b->names)
		return 0;
	free(b->tensors);
	free(b->names);
	return sw_client_fail(c, SW_ENOMEM, "out of memory");
}

static void free_batch(struct sw_client_batch *b)
{
	sw_segment_fini(&b->data);
	free(b->tensors);
	free(b->names);
}

/* Return where the agent writes the result of this client's tensor @i, or NULL.
 */
static const void *result_of(
	const struct sw_client *c, uint32_t i, uint64_t bytes)
{
	uint64_t at = c->control->results[i], end = at + bytes;
	const char *base = c->results.base;

	if (at % 64 || end < at || end > c->results.bytes)
		return NULL;
	/* The pages exist: this only fills the page tables. */
	madvise((void *)((uintptr_t)(base + at) & ~UINT64_C(4095)),
		bytes + at % 4096, MADV_POPULATE_READ);
	return base + at;
}

/* Map the segment of results.  Every batch brings its descriptor, always of the
 * same segment; but memory has no results, so a first batch of memory may lack
 * it. */
static int map_results(struct sw_client *c, int fd, bool is_memory)
{
	if (c->local_size == 1 || c->results.bytes || (is_memory && fd < 0)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	return fd < 0 ? SW_EPROTO : sw_segment_attach_shown(&c->results, fd);
}

/* Map the tensors of a batch, by the agent's rule for their places. */
static int map_batch(struct sw_client *c, struct sw_client_batch *b,
	const struct order *o, uint64_t bytes, const int *fds)
{
	const struct sw_tensor_desc *descs = o->descs;
	uint32_t first = o->freed ? sw_id_next(o->freed->id) : c->n_tensors;
	bool is_memory = descs[0].is_async == SW_EDGE_MEMORY;
	char limit[SW_LIMIT_TEXT];
	uint64_t end = 0;
	int err = map_results(c, fds[1], is_memory);

	if (fds[0] < 0)
		err = SW_EPROTO;
	else if (err)
		close(fds[0]);
	else
		err = sw_segment_attach(&b->data, fds[0], bytes);

	for (uint32_t i = 0; i < o->n && !err; i++) {
		uint64_t size = sw_edge_bytes(descs[i].is_async,
			descs[i].n_elems, sw_dtype_bytes(descs[i].dtype));
		uint64_t room = sw_edge_room(descs[i].is_async, size);
		uint64_t at = sw_edge_place(c->local_rank, room, &end);
		void *data = (char *)b->data.base + at;
		const void *result =
			c->local_size == 1 || is_memory
				? data
				: result_of(c, sw_id_index(first + i), room);

		if (end > bytes || !result)
			err = SW_EPROTO;
		memcpy(b->names[i], descs[i].name, strlen(descs[i].name));
		b->tensors[i] = (struct sw_tensor){.client = c,
			.data = data,
			.result = result,
			.name = b->names[i],
			.bytes = size,
			.memory_bytes = is_memory ? size : 0,
			.needs_value = descs[i].is_async == SW_EDGE_ASYNC,
			.id = first + i,
			.i = sw_id_index(first + i)};
	}
	if (err)
		sw_client_close(c, err,
			"the agent at %s: the shared memory of a batch cannot "
			"be used: %s%s",
			c->settings.agent, sw_error_text(err),
			sw_segment_limit(0, limit));
	return err ? sw_client_check(c) : 0;
}

static void adopt_batch(struct sw_client *c, const struct sw_client_batch *b,
	const struct order *o, struct sw_tensor **out)
{
	struct sw_client_batch *to = c->batches;

	while (o->freed && to->tensors != o->freed)
		to++;
	if (o->freed) {
		free_batch(to);
	} else {
		to = &c->batches[c->n_batches++];
		c->n_tensors += o->n;
	}
	*to = *b;
	for (uint32_t i = 0; i < o->n; i++)
		c->tensors[b->tensors[i].i] = out[i] = &b->tensors[i];
}

/* Wait for the answer to the batch just sent.  If no answer arrives in time,
 * the two sides may disagree about the declared items, so end the attachment.
 */
static int await_answer(
	struct sw_client *c, uint64_t until_ns, union sw_edge_msg *m, int *fds)
{
	int kind = sw_client_await(c, until_ns, m, fds);
	uint32_t batch = c->next_batch - 1;

	if (kind == SW_EDGE_DECLARED && m->declared.batch == batch)
		return 0;
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind == SW_EDGE_FAILED && m->text.batch == batch)
		return sw_client_fail(c,
			m->text.err ? m->text.err : SW_EREFUSED, "%s",
			m->text.text);
	if (kind == SW_ETIMEDOUT)
		sw_client_close(c, SW_ETIMEDOUT,
			"the declared tensors were not admitted within %u s; "
			"detached from the agent at %s%s%s",
			c->settings.open_timeout_s, c->settings.agent,
			c->status[0] ? "; last message from the agent: " : "",
			c->status);
	else if (kind > 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s answered a declaration with "
			"unexpected message kind %d",
			c->settings.agent, kind);
	return sw_client_check(c);
}

/* Return the deadline of a declaration: making its memory present takes time.
 */
static uint64_t answer_until_ns(
	const struct sw_client *c, const struct order *o)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < o->n; i++)
		if (o->descs[i].n_elems <= SW_EDGE_TENSOR_BYTES_MAX)
			bytes += o->descs[i].n_elems *
				 sw_dtype_bytes(o->descs[i].dtype);
	return sw_edge_now_ns() +
	       (c->settings.open_timeout_s + bytes / SLOW_BYTES_PER_S) *
		       UINT64_C(1000000000);
}

static int declare_batch(
	struct sw_client *c, const struct order *o, struct sw_tensor **out)
{
	uint64_t until_ns = answer_until_ns(c, o);
	struct sw_client_batch b = {.data.fd = -1};
	union sw_edge_msg m;
	int fds[2] = {-1, -1}, err = sw_client_check(c);

	if (!err && !o->freed)
		err = check_descs(c, o->descs, o->n);
	if (!err)
		err = alloc_batch(c, &b, o->n);
	if (err)
		return err;
	c->status[0] = 0;
	err = o->ranks ? send_stream(c, o, until_ns)
		       : send_batch(c, o, until_ns);
	/* Half a declaration cannot be undone.  After a hang-up, the next
	 * message carries the reason. */
	if (err == SW_ETIMEDOUT)
		sw_client_close(c, err, "%s", sw_last_error(c));
	if (!err || err == SW_ECLOSED)
		err = await_answer(c, until_ns, &m, fds);
	if (!err)
		err = map_batch(c, &b, o, m.declared.bytes, fds);
	if (err) {
		free_batch(&b);
		return err;
	}
	adopt_batch(c, &b, o, out);
	if (m.declared.err)
		return sw_client_fail(c, m.declared.err, "%s", m.declared.text);
	return 0;
}

/* --- tensors --- */

/* Copy the caller's descriptions.  Their distance is the size in the first one.
 */
static int take_descs(struct sw_client *c, struct sw_tensor_desc *own,
	const struct sw_tensor_desc *descs, uint32_t n, bool are_growing)
{
	char why[SW_SIZED_WHY_BYTES];

	for (uint32_t i = 0; i < n; i++) {
		const struct sw_tensor_desc *from =
			(const void *)((const char *)descs + i * descs->size);

		if (from->size != descs->size)
			return sw_client_fail(c, SW_EINVAL,
				"tensor %u: its description has size %zu, the "
				"first one %zu",
				i, from->size, descs->size);
		if (sw_sized_take(&own[i], sizeof(own[i]), from,
			    SW_UP_TO(struct sw_tensor_desc, pad),
			    "sw_tensor_desc", why))
			return sw_client_fail(
				c, SW_EINVAL, "tensor %u: %s", i, why);
		if (own[i].is_async > 1)
			return sw_client_fail(c, SW_EINVAL,
				"tensor %u: is_async is 0 or 1, not %u", i,
				own[i].is_async);
		if (own[i].is_async && are_growing)
			return sw_client_fail(c, SW_EINVAL,
				"tensor %u: is_async is 0 for a device's", i);
		if (are_growing)
			own[i].is_async = SW_EDGE_GROWING;
	}
	return 0;
}

int sw_client_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, bool are_growing, struct sw_tensor **out)
{
	struct sw_tensor_desc *own;
	int err = sw_client_enter(c);

	if (err)
		return err;
	sw_client_lead(c);
	err = check_count(c, n);
	own = err ? NULL : calloc(n, sizeof(*own));
	if (!err && !own)
		err = sw_client_fail(c, SW_ENOMEM, "out of memory");
	if (!err)
		err = take_descs(c, own, descs, n, are_growing);
	if (!err)
		err = declare_batch(
			c, &(struct order){.descs = own, .n = n}, out);
	free(own);
	sw_client_follow(c);
	sw_client_unlock(c);
	return err;
}

int sw_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, struct sw_tensor **out)
{
	return sw_client_declare(c, descs, n, false, out);
}

void *sw_tensor_data(struct sw_tensor *t)
{
	return t->data;
}

const void *sw_tensor_result(struct sw_tensor *t)
{
	return t->result;
}

/* --- streams --- */

/* Return a freed item whose index may be reused, or NULL. */
static const struct sw_tensor *find_freed(const struct sw_client *c)
{
	for (uint32_t i = 0; i < c->n_tensors; i++)
		if (c->tensors[i]->is_freed && sw_id_next(c->tensors[i]->id))
			return c->tensors[i];
	return NULL;
}

static void name_stream(const struct sw_group *g, enum sw_coll_kind kind,
	char name[SW_EDGE_NAME_BYTES])
{
	char which[16] = "";

	if (g->generation)
		snprintf(which, sizeof(which), "#%u", g->generation + 1);
	snprintf(name, SW_EDGE_NAME_BYTES, "%s%s/%s", g->name, which,
		sw_coll_name(kind));
}

static int open_channel(
	struct sw_group *g, struct sw_channel *ch, enum sw_coll_kind kind)
{
	struct sw_client *c = g->client;
	struct sw_edge_why why = {.conflict = SW_CONFLICT_NONE};
	char name[SW_EDGE_NAME_BYTES];
	bool is_barrier = kind == SW_BARRIER;
	struct sw_tensor_desc d = {.name = name,
		.n_elems = g->n,
		.dtype = (enum sw_dtype)(
			is_barrier ? WINDOW_BARRIER_LOG2 : WINDOW_LOG2),
		.priority = sw_coll_priority(kind),
		.is_async = SW_EDGE_STREAM};
	int err;

	name_stream(g, kind, name);
	err = declare_batch(c,
		&(struct order){.descs = &d,
			.n = 1,
			.ranks = g->ranks,
			.freed = find_freed(c)},
		&ch->stream);
	if (ch->stream) {
		ch->next = c->calls.channels;
		c->calls.channels = c->calls.turn = ch;
	}
	if (ch->stream && sw_client_is_death(err)) {
		snprintf(why.text, sizeof(why.text), "%.*s",
			SW_EDGE_WHY_BYTES - 1, sw_last_error(c));
		sw_group_die(g, err, &why);
	}
	return err;
}

int sw_group_open_stream(struct sw_group *g, enum sw_coll_kind kind)
{
	struct sw_channel *ch = &g->channels[kind];
	int err = 0;

	if (ch->stream)
		return 0;
	sw_client_lead(g->client);
	if (!ch->stream) /* else another thread has opened it */
		err = open_channel(g, ch, kind);
	sw_client_follow(g->client);
	return err;
}

/* --- sw_alloc --- */

/* Have the agent provide memory of @bytes.  Lead, because only the leader
 * receives the agent's answer. */
static int map_memory(
	struct sw_client *c, uint64_t bytes, struct sw_tensor **out)
{
	char name[32];
	struct sw_tensor_desc d = {.name = name,
		.n_elems = bytes,
		.dtype = SW_U8,
		.is_async = SW_EDGE_MEMORY};
	int err;

	sw_client_lead(c);
	snprintf(name, sizeof(name), ".memory.%u", c->n_allocs);
	err = declare_batch(c,
		&(struct order){.descs = &d, .n = 1, .freed = find_freed(c)},
		out);
	c->n_allocs += !err;
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
		err = map_memory(c, bytes, &t);
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

/* Return the index in c->memories of the memory that starts at @p; n_memories
 * if not found. */
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

/* Free the memory.  First remove it from the list, so that no new call uses it
 * meanwhile. */
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

/* Round up @bytes, so that groups of different sizes can reuse each other's
 * stages. */
static uint64_t size_class(uint64_t bytes)
{
	uint64_t each = SW_STAGE_SMALL;

	while (each < bytes)
		each *= 2;
	return each;
}

/* Take the first spare that is large enough; set *each to its size. */
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
		err = map_memory(c, n * each, &t);
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
		return; /* sw_close frees it */
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

/* Return whether another spare of the same kind is as large or larger. */
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

/* Have all parts unpin the stages at @base; releases the lock meanwhile.  If
 * another thread disowns a part meanwhile, the part and its link to the next
 * part exist until this call returns. */
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
