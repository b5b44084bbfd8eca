/* grow.c - a simulated worker's buffers, written while they are pushed.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes not yet written hold another value, so that a push of them shows. The
 * oracle checks each granule as soon as the engine reports it as summed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

static bool grows(const struct sim_job *job)
{
	return job->grows || job->is_by_hand;
}

_Atomic uint32_t *sim_grow_granules(struct sim_worker *w, uint32_t t)
{
	const struct sim_job *job = w->job;
	uint64_t bytes = job->n_elems[t] * job->elem_bytes;

	if (!grows(job) || sim_job_is_async(job, t) ||
		bytes > SIM_GRANULES * (uint64_t)SW_GRANULE)
		return NULL;
	return w->granules[t];
}

/* --- results --- */

static void complain(const struct sim_worker *w, uint32_t t, uint64_t granule,
	const char *what)
{
	struct sim_job *job = w->job;
	char name[SW_NAME_MAX];

	if (!job->oracle[0])
		snprintf(job->oracle, sizeof(job->oracle),
			"rank %u, granule %llu of %s, said to be summed in "
			"round %u: %s",
			w->rank, (unsigned long long)granule,
			sim_job_name(job, t, name), w->granules[t][granule],
			what);
}

/* Check a granule: its number must be the open round, or the one just
 * completed, and its elements the sums of that round. */
static void look(struct sim_worker *w, uint32_t t, uint64_t granule)
{
	const struct sim_job *job = w->job;
	uint64_t per = SW_GRANULE / job->elem_bytes, from = granule * per;
	uint64_t end = sw_min64(from + per, job->n_elems[t]);
	uint32_t round = w->granules[t][granule], weight;

	w->summed[t][granule] = round;
	if (round != w->round[t] && round != w->round[t] + 1)
		complain(w, t, granule, "that is none of its rounds");
	else if (sim_oracle_wrong(w, t, round - 1, from, end, &weight))
		complain(w, t, granule, "it is not");
}

/* The process owns the buffers of a call that ended with an error, so skip
 * them. */
void sim_grow_summed(void *ctx)
{
	struct sim_worker *w = ctx;
	const struct sim_job *job = w->job;

	if (sw_worker_end_of(&w->engine) || job->is_edited)
		return;
	for (uint32_t t = 0; t < w->n_admitted; t++) {
		uint64_t bytes = job->n_elems[t] * job->elem_bytes;

		if (!sim_grow_granules(w, t) || w->dead_in[t])
			continue;
		for (uint64_t g = 0; g * SW_GRANULE < bytes; g++)
			if (w->granules[t][g] != w->summed[t][g])
				look(w, t, g);
	}
}

/* Check that every granule has the number of the round just completed. */
static void compare(struct sim_worker *w, uint32_t t,
	const _Atomic uint32_t *numbers, const char *what)
{
	const struct sim_job *job = w->job;
	uint64_t bytes = job->n_elems[t] * job->elem_bytes;

	if (sim_grow_granules(w, t) && !job->is_edited)
		for (uint64_t g = 0; g * SW_GRANULE < bytes; g++)
			if (numbers[g] != w->round[t])
				complain(w, t, g, what);
}

void sim_grow_check(struct sim_worker *w, uint32_t t)
{
	compare(w, t, w->granules[t], "the round has ended");
}

/* --- buffers --- */

/* Return the number of elements written at the time of the submit. */
static uint64_t first_of(struct sim_job *job, uint32_t t)
{
	uint64_t n;

	if (job->is_by_hand)
		return job->n_there;
	n = sim_below(&job->rng, job->n_elems[t] + 1);
	return sim_chance(&job->rng, 300000) ? job->n_elems[t] : n;
}

uint64_t sim_grow_hold_back(struct sim_worker *w, uint32_t t, uint32_t local)
{
	struct sim_job *job = w->job;
	uint64_t first, lacks;

	if (!sim_grow_granules(w, t))
		return 0;
	compare(w, t, w->summed[t], "nobody was told");
	first = first_of(job, t);
	lacks = (job->n_elems[t] - first) * job->elem_bytes;
	memset(w->from[local][t] + first * job->elem_bytes, 0x5a, lacks);
	w->lacks[local][t] = lacks;
	return lacks;
}

void sim_grow_to(
	struct sim_worker *w, uint32_t t, uint32_t local, uint64_t n_there)
{
	struct sim_job *job = w->job;
	uint64_t n = job->n_elems[t], *lacks = &w->lacks[local][t];

	sim_oracle_fill_some(
		w, t, local, n - *lacks / job->elem_bytes, n_there);
	*lacks = (n - n_there) * job->elem_bytes;
	if (sw_worker_grow(&w->engine, w->index[t], local, *lacks))
		abort();
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

static void grow(struct sim_worker *w, uint32_t t, uint32_t local)
{
	struct sim_job *job = w->job;
	uint64_t n = w->lacks[local][t] / job->elem_bytes;

	n = sim_chance(&job->rng, 200000) ? 0 : sim_below(&job->rng, n);
	sim_grow_to(w, t, local, job->n_elems[t] - n);
}

void sim_grow_some(struct sim_worker *w)
{
	for (uint32_t t = 0; t < w->n_admitted; t++)
		for (uint32_t l = 0; l + w->has_lost_rank < w->n_local; l++)
			if (w->lacks[l][t] && !w->dead_in[t] &&
				sim_chance(&w->job->rng, w->job->grows))
				grow(w, t, l);
}
