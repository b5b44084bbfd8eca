/* server_fail.c - sentences for a worker that cannot go on.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/async.h"
#include "engine/error.h"
#include "engine/server.h"

/* Two ranks do not agree on who gives an asynchronous tensor its value. */
static void fail_root(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const struct sw_stensor *t)
{
	const struct sw_kept *k = sw_async_chunk(
		&s->job->shard, t, sw_place_local(&t->place, h->chunk));

	sw_session_fail(srv, s, SW_EMISMATCH, h->key,
		"tensor %.64s: rank %u broadcasts from rank %u, rank %d from "
		"rank %u",
		t->name, s->member, h->aux, __builtin_ctzll(k->got), k->root);
}

/* Ranks do different things in one round. */
static void fail_round(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const struct sw_stensor *t)
{
	const struct sw_chunk *c =
		&t->chunks[sw_place_local(&t->place, h->chunk)];
	const struct sw_cell *cell = &c->cell[h->round & 1];

	const char *const ops[] = {"a sum", "a broadcast"};
	int first = __builtin_ctzll(cell->got);

	if (cell->op != h->op)
		sw_session_fail(srv, s, SW_EMISMATCH, h->key,
			"tensor %.64s: rank %u takes part in %s, rank %d in %s",
			t->name, s->member, ops[h->op], first, ops[cell->op]);
	else if (cell->root != h->aux)
		sw_session_fail(srv, s, SW_EMISMATCH, h->key,
			"tensor %.64s: rank %u broadcasts from rank %u, rank "
			"%d from rank %u",
			t->name, s->member, h->aux, first, cell->root);
	else
		sw_session_fail(srv, s, SW_ESTEP, h->key,
			"tensor %.64s: rank %u pushes step %u, rank %d has "
			"pushed step %u",
			t->name, s->member, h->step, first, cell->step);
}

/* A node without the root pushes a broadcast's bytes, or the root's none. */
static void fail_giver(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const struct sw_stensor *t)
{
	const struct sw_shard *sh = &s->job->shard;
	uint32_t first = sh->first[s->member];

	sw_session_fail(srv, s, SW_EPROTO, h->key,
		"tensor %.64s: rank %u pushes %u B of a broadcast from rank "
		"%u, and has local ranks %u to %u",
		t->name, s->member, h->payload_len, h->aux, first,
		first + sh->weights[s->member] - 1);
}

void sw_session_fail_differs(
	struct sw_server *srv, struct sw_session *s, const struct sw_header *h)
{
	const struct sw_stensor *t = &s->job->shard.tensors[h->key];

	if (!sw_shard_has_root(&s->job->shard, s->member, h))
		fail_giver(srv, s, h, t);
	else if (t->is_async)
		fail_root(srv, s, h, t);
	else
		fail_round(srv, s, h, t);
}

void sw_session_fail_left(struct sw_server *srv, struct sw_session *s,
	const struct sw_answer *a, uint32_t rank)
{
	sw_session_fail(srv, s, SW_EPEER, a->key,
		"rank %u (node %.40s) left and pushes no round %u of tensor "
		"%.64s",
		rank, s->job->members[rank].node, a->round,
		s->job->shard.tensors[a->key].name);
}
