/* coll.c - collectives of an agent, in libsumwire's pieces.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/coll.h"

#include <stdio.h>
#include <stdlib.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/lanes.h"
#include "apps/lab/sim/sim.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/wire/coll.h"

enum { /* libsumwire's values */
	PIECE_BYTES = 1 << 20,
	PART_MIN_BYTES = 32 << 10,
	WINDOW_LOG2 = 9,
	WINDOW_BYTES = 1 << 20, /* an agent's limit */
};

/* A stream, and the queue of its collectives. */
struct channel {
	uint32_t stream;
	uint32_t *tensors; /* a ring; each tensor is in it at most once */
	uint32_t head, n;
	/* The next piece of the first collective: its offset in each part, and
	 * its local rank. */
	uint64_t at;
	uint32_t local;
};

struct sw_sim_colls {
	struct channel channels[SW_N_COLL_KINDS];
	/* By tensor: the round of its call, and the open pieces of all local
	 * ranks. */
	uint32_t *rounds, *n_left;
};

/* --- forms --- */

static uint32_t n_ranks(const struct sw_sim_job *j)
{
	return j->n_agents * j->desc->agent.local_ranks;
}

static uint32_t n_parts(const struct sw_sim_job *j, uint32_t tensor)
{
	enum sw_coll_kind kind = j->kinds[tensor];

	return kind == SW_ALL_GATHER || kind == SW_REDUCE_SCATTER ? n_ranks(j)
								  : 1;
}

static uint64_t part_of(const struct sw_sim_job *j, uint32_t tensor)
{
	return j->n_elems[tensor] / n_parts(j, tensor);
}

static uint64_t piece_of(const struct sw_sim_job *j, uint32_t tensor)
{
	return sw_max64(PIECE_BYTES / n_parts(j, tensor), PART_MIN_BYTES) / 4;
}

/* --- the streams --- */

struct sw_sim_colls *sw_sim_colls_open(const struct sw_sim_job *j)
{
	struct sw_sim_colls *c = sw_lab_array(1, sizeof(*c));

	c->n_left = sw_lab_array(j->n_tensors, sizeof(*c->n_left));
	c->rounds = sw_lab_array(j->n_tensors, sizeof(*c->rounds));
	for (uint32_t t = 0; t < j->n_tensors; t++)
		if (!c->channels[j->kinds[t]].tensors)
			c->channels[j->kinds[t]].tensors =
				sw_lab_array(j->n_tensors, sizeof(uint32_t));
	return c;
}

void sw_sim_colls_reset(struct sw_sim_colls *c)
{
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++) {
		struct channel *ch = &c->channels[k];

		ch->n = ch->local = 0;
		ch->at = 0;
	}
}

void sw_sim_colls_close(struct sw_sim_colls *c)
{
	for (uint32_t k = 0; c && k < SW_N_COLL_KINDS; k++)
		free(c->channels[k].tensors);
	if (!c)
		return;
	free(c->rounds);
	free(c->n_left);
	free(c);
}

static uint8_t window_of(const struct sw_sim_agent *a)
{
	uint8_t log2 = WINDOW_LOG2;

	while (log2 > SW_WINDOW_MIN_LOG2 &&
		sw_worker_payload(a->worker) << log2 > WINDOW_BYTES)
		log2--;
	return log2;
}

int sw_sim_colls_declare(struct sw_sim_agent *a)
{
	uint32_t n = n_ranks(a->job), n_streams = 0;
	struct sw_worker_tensor streams[SW_N_COLL_KINDS];
	char names[SW_N_COLL_KINDS][32];
	uint16_t *ranks = sw_lab_array(n, sizeof(*ranks));
	int err;

	for (uint32_t r = 0; r < n; r++)
		ranks[r] = (uint16_t)r;
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++) {
		if (!a->colls->channels[k].tensors)
			continue;
		snprintf(names[n_streams], sizeof(names[0]), "world/%s",
			sw_coll_name(k));
		streams[n_streams] =
			(struct sw_worker_tensor){.name = names[n_streams],
				.window_log2 = window_of(a),
				.n_ranks = n,
				.ranks = ranks};
		a->colls->channels[k].stream = n_streams++;
	}
	err = sw_sim_lanes_declare(a, streams, n_streams);
	free(ranks);
	return err;
}

/* --- calls --- */

void sw_sim_colls_call(struct sw_sim_agent *a, uint32_t tensor)
{
	const struct sw_sim_job *j = a->job;
	struct channel *c = &a->colls->channels[j->kinds[tensor]];
	uint64_t piece = piece_of(j, tensor);

	a->colls->n_left[tensor] =
		(uint32_t)((part_of(j, tensor) + piece - 1) / piece) *
		a->n_local;
	a->colls->rounds[tensor] = a->round;
	c->tensors[(c->head + c->n++) % j->n_tensors] = tensor;
}

static int submit(
	struct sw_sim_agent *a, const struct channel *c, uint32_t tensor)
{
	const struct sw_sim_job *j = a->job;
	enum sw_coll_kind kind = j->kinds[tensor];
	uint64_t part = part_of(j, tensor), bytes = j->n_elems[tensor] * 4;
	uint64_t at = c->at * 4,
		 own = (a->rank * a->n_local + c->local) * part * 4;
	uint8_t *from = a->from[tensor * a->n_local + c->local];
	uint8_t *to = a->to[tensor];

	from += at + (kind == SW_ALL_GATHER ? own : 0);
	to += at + (kind == SW_REDUCE_SCATTER ? own : 0);
	return sw_worker_coll(a->worker,
		&(struct sw_worker_coll){.stream = c->stream,
			.local = c->local,
			.kind = kind,
			.dtype = SW_F32,
			.n_elems = sw_min64(piece_of(j, tensor), part - c->at),
			.whole = part,
			.stride = part * 4,
			.from = from,
			.to = to,
			.from_bytes = bytes - at,
			.to_bytes = bytes - at,
			.cookie = (uint64_t)a->colls->rounds[tensor] << 32 |
				  tensor});
}

/* Advance to the next local rank, piece or collective. */
static void advance(
	const struct sw_sim_agent *a, struct channel *c, uint32_t tensor)
{
	if (++c->local < a->n_local)
		return;
	c->local = 0;
	c->at += piece_of(a->job, tensor);
	if (c->at < part_of(a->job, tensor))
		return;
	c->at = 0;
	c->head = (c->head + 1) % a->job->n_tensors;
	c->n--;
}

int sw_sim_colls_submit(struct sw_sim_agent *a)
{
	for (uint32_t k = 0; k < SW_N_COLL_KINDS; k++) {
		struct channel *c = &a->colls->channels[k];

		while (c->n) {
			uint32_t tensor = c->tensors[c->head];
			int err = submit(a, c, tensor);

			if (err == SW_EAGAIN)
				break;
			if (err)
				return err;
			advance(a, c, tensor);
		}
	}
	return 0;
}

uint32_t sw_sim_colls_done(struct sw_sim_agent *a, uint64_t cookie)
{
	uint32_t tensor = (uint32_t)cookie;

	return --a->colls->n_left[tensor] ? UINT32_MAX : tensor;
}

/* --- the oracle --- */

uint64_t sw_sim_colls_wrong(
	const struct sw_sim_agent *a, uint32_t tensor, uint32_t round)
{
	const struct sw_sim_job *j = a->job;
	uint64_t part = part_of(j, tensor), wrong = 0;
	const float *at = a->to[tensor];
	uint32_t first = a->rank * a->n_local;

	switch (j->kinds[tensor]) {
	case SW_REDUCE_SCATTER:
		return sw_sim_truth_wrong(&j->truth, SW_SIM_ALL_RANKS, tensor,
			round, first * part, at + first * part,
			a->n_local * part);
	case SW_ALL_GATHER:
		for (uint32_t r = 0; r < n_ranks(j); r++)
			wrong += sw_sim_truth_wrong(&j->truth, r, tensor, round,
				r * part, at + r * part, part);
		return wrong;
	case SW_BCAST:
		return sw_sim_truth_wrong(
			&j->truth, 0, tensor, round, 0, at, part);
	default:
		return sw_sim_truth_wrong(&j->truth, SW_SIM_ALL_RANKS, tensor,
			round, 0, at, part);
	}
}
