/* shard_group.c - groups on a server: end them, close them, free them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A group is live until sw_sgroup_end, and exists until sw_sgroup_close has
 * seen all members.  A tensor is a group of its own, which is never closed. */
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/sums/rules.h"
#include "engine/sums/stream.h"

/* The group is the first field of the slot that it lies in. */
static struct sw_stensor *slot_of(const struct sw_sgroup *g)
{
	return (struct sw_stensor *)(uintptr_t)g;
}

/* Return the stream at a place of a list; NULL: the list ends. */
static struct sw_stensor *stream_at(const struct sw_shard *sh, uint32_t place)
{
	return place ? &sh->tensors[place - 1] : NULL;
}

/* --- names --- */

/* Return the bytes of a name that count in a hash table. */
static size_t length_in(
	const struct sw_shard *sh, const uint32_t *table, const char *name)
{
	return table == sh->by_group ? sw_coll_group_bytes(name) : strlen(name);
}

uint32_t *sw_shard_place_of(
	const struct sw_shard *sh, uint32_t *table, const char *name)
{
	size_t n = length_in(sh, table, name);
	uint32_t i = sw_crc32c(0, name, n) % SW_SHARD_NAMES;

	for (; table[i]; i = (i + 1) % SW_SHARD_NAMES) {
		const char *other = sh->tensors[table[i] - 1].name;

		if (length_in(sh, table, other) == n && !memcmp(other, name, n))
			break;
	}
	return &table[i];
}

/* Names behind the removed one may have collided with it, so insert them again.
 */
static void clear(const struct sw_shard *sh, uint32_t *table, const char *name)
{
	uint32_t *at = sw_shard_place_of(sh, table, name), moved;

	*at = 0;
	while (*(at = at + 1 < table + SW_SHARD_NAMES ? at + 1 : table)) {
		moved = *at;
		*at = 0;
		*sw_shard_place_of(sh, table, sh->tensors[moved - 1].name) =
			moved;
	}
}

/* --- groups --- */

const char *sw_sgroup_name(const struct sw_shard *sh, const struct sw_sgroup *g)
{
	return g->streams ? stream_at(sh, g->streams)->name : slot_of(g)->name;
}

struct sw_sgroup *sw_shard_group_named(
	const struct sw_shard *sh, const char *name)
{
	uint32_t found = *sw_shard_place_of(sh, sh->by_group, name);

	return found ? &sh->tensors[found - 1].own : NULL;
}

struct sw_sgroup *sw_shard_stream_group(const struct sw_shard *sh, uint32_t *i)
{
	*i = sw_bitmap_next(&sh->streams, *i);
	return *i == SW_BITMAP_NONE ? NULL : sh->tensors[*i].group;
}

void sw_sgroup_enter(struct sw_shard *sh, struct sw_stensor *t)
{
	uint32_t i = sw_key_index(t->window ? t->first : t->key);
	struct sw_stensor *slot = &sh->tensors[i];
	struct sw_sgroup *g = t->group = &slot->own;

	if (!g->members) {
		*g = (struct sw_sgroup){.key = t->window ? t->first : t->key,
			.members = t->window ? t->members : sh->expected};
		slot->n_next_key = g->key;
		if (t->window && !sh->server_i)
			*sw_shard_place_of(sh, sh->by_group, t->name) = i + 1;
	}
	if (!t->window)
		return;
	sw_bitmap_add(&sh->streams, sw_key_index(t->key));
	t->next = g->streams;
	g->streams = (uint16_t)(sw_key_index(t->key) + 1);
	g->n_streams++;
}

/* --- a group ends --- */

/* Abandon the open chunks of a tensor or stream if its newest round fails. */
static void give_up(struct sw_shard *sh, struct sw_stensor *t)
{
	if (!sw_stensor_is_given_up(t))
		return;
	sh->n_open -= t->n_open;
	sh->n_slots -= t->window ? t->n_open : 0;
	t->n_open = 0;
}

bool sw_sgroup_end(struct sw_shard *sh, struct sw_sgroup *g, uint32_t round,
	const struct sw_fault *why)
{
	struct sw_stensor *slot = slot_of(g);

	if (g->streams || slot->mode != SW_MODE_SYNC || !round)
		round = 1; /* the mode has no common rounds */
	if (g->from && !sw_round_before(round, g->from))
		return false;
	g->from = round;
	*sw_sgroup_why(sh, g) = *why;
	sw_sgroup_why(sh, g)->key = g->key;
	if (!g->streams)
		give_up(sh, slot);
	for (struct sw_stensor *t = stream_at(sh, g->streams); t;
		t = stream_at(sh, t->next))
		give_up(sh, t);
	return true;
}

/* --- a group is closed --- */

/* Return the slot of chunk @j, or NULL if no member has pushed it. */
static const struct sw_slot *open_slot(const struct sw_stensor *t, uint32_t j)
{
	const struct sw_slot *slots = (const struct sw_slot *)t->records;
	const struct sw_slot *s = &slots[j & (t->window - 1)];

	return t->mem && s->chunk == j && s->got ? s : NULL;
}

/* Return a member that has pushed a chunk that @member lacks. If two members
 * lack chunks of each other, neither may have pushed more; then return any
 * member that has pushed. */
static uint32_t who_waits(const struct sw_stensor *t, uint32_t member)
{
	const struct sw_slot *s = open_slot(t, t->newest);
	uint32_t who = SW_MAX_MEMBERS;

	if (s && !(s->got >> member & 1))
		return (uint32_t)__builtin_ctzll(s->got);
	for (uint64_t m = t->members & ~(1ULL << member); m; m &= m - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(m);

		if (who == SW_MAX_MEMBERS || t->n_pushed[i] > t->n_pushed[who])
			who = i;
	}
	return who;
}

uint32_t sw_sgroup_waits_for(
	const struct sw_shard *sh, const struct sw_sgroup *g, uint32_t member)
{
	for (struct sw_stensor *t = stream_at(sh, g->streams); t;
		t = stream_at(sh, t->next))
		if (t->mem && t->n_pushed[member] != t->n_begun)
			return who_waits(t, member);
	return SW_MAX_MEMBERS;
}

/* Forget a stream. The slot keeps the mode, which tells a stale result that no
 * synchronous tensor lies here. */
static void forget_stream(struct sw_shard *sh, struct sw_stensor *t)
{
	uint32_t i = sw_key_index(t->key);

	clear(sh, sh->by_name, t->name);
	sw_marks_forget(sh, t);
	sw_bitmap_remove(&sh->streams, i);
	sw_bitmap_add(&sh->free, i);
	*t = (struct sw_stensor){.own = t->own,
		.mode = SW_MODE_STREAM,
		.n_next_key = t->key + 1};
}

static uint64_t free_window(struct sw_shard *sh, struct sw_stensor *t)
{
	uint64_t bytes = t->mem_bytes;

	for (uint32_t i = 0; t->mem && i < t->window && sh->n_lent; i++)
		t->rules->keep(sh, t, i);
	sw_marks_drop(sh, t);
	if (t->mem)
		sh->env->mem_put(sh->env->ctx, t->mem, bytes);
	sh->mem_bytes -= bytes;
	forget_stream(sh, t);
	return bytes;
}

bool sw_sgroup_close(struct sw_shard *sh, struct sw_sgroup *g, uint64_t members,
	uint64_t left, uint64_t *bytes)
{
	struct sw_stensor *slot = slot_of(g);

	g->closed |= g->members & members;
	if (g->members & ~(g->closed | left))
		return false;
	sw_sgroup_end(sh, g, 1, sw_sgroup_why(sh, g)); /* abandons chunks */
	if (!sh->server_i)
		clear(sh, sh->by_group, slot->name);
	*bytes = 0;
	for (uint32_t i = g->streams, next; i; i = next) {
		next = sh->tensors[i - 1].next;
		*bytes += free_window(sh, &sh->tensors[i - 1]);
	}
	slot->n_next_key = (uint32_t)sw_max64(slot->n_next_key, g->key + 1ULL);
	*g = (struct sw_sgroup){0};
	return true;
}

/* --- calls of a group's members --- */

/* Find a push to @t for collective @number of its group. All chunks below base
 * are done, and numbers rise with chunks, so the first of two differing
 * collectives reaches base as soon as earlier ones are done. */
static const struct sw_slot *find_call(
	const struct sw_stensor *t, uint32_t number)
{
	const uint32_t at[] = {t->base, t->newest};

	for (uint32_t i = 0; i < 2; i++) {
		const struct sw_slot *s = open_slot(t, at[i]);

		if (s && s->number == number)
			return s;
	}
	return NULL;
}

struct sw_begun sw_shard_other_call(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t number)
{
	const struct sw_slot *s = NULL;
	const struct sw_stensor *u = stream_at(sh, t->group->streams);

	for (; u && !s; u = stream_at(sh, u->next))
		if (u != t)
			s = find_call(u, number);
	return s ? (struct sw_begun){.got = s->got, .op = s->op}
		 : (struct sw_begun){0};
}

const char *sw_shard_fault_text(
	const struct sw_shard *sh, const struct sw_fault *f, char *out)
{
	const struct sw_stensor *t = sw_shard_tensor(sh, f->key);

	return sw_fault_text(
		f, t && t->mode == SW_MODE_STREAM, t ? t->name : NULL, out);
}
