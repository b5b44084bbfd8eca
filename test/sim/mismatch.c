/* mismatch.c - one worker calls a tensor differently from the others.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Exactly one call must fail: the changed one, at all members of the job and in
 * the same round. The round before, and all other tensors, rounds and jobs,
 * stay exact. A worker overwrites its buffer as soon as its call has failed.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "test/sim/job.h"

enum { ALL_LOCAL = UINT32_MAX };

static uint32_t below(uint64_t *x, uint64_t n)
{
	return (uint32_t)sim_below(x, n);
}

/* Count the ranks of the worker's job; set *@first to the worker's first
 * rank. */
static uint32_t count_ranks(
	const struct sim_job *job, uint32_t worker, uint32_t *first)
{
	uint32_t n = 0;

	*first = 0;
	for (uint32_t r = sim_job_of(job, worker); r < job->n_workers;
		r += job->n_jobs) {
		if (r == worker)
			*first = n;
		n += job->n_local[r];
	}
	return n;
}

static bool is_copy(const struct sim_job *job)
{
	return sim_oracle_root(job, sim_job_of(job, job->mismatch_by),
		       job->mismatch_tensor, job->mismatch_in) < SIM_WORKERS;
}

/* Draw a kind of mismatch. Members of an asynchronous tensor call in step only
 * in the first broadcast. */
static enum sim_mismatch draw_kind(const struct sim_job *job, uint64_t *x)
{
	bool is_async = sim_job_is_async(job, job->mismatch_tensor);
	enum sim_mismatch kind =
		is_async ? SIM_OTHER_ROOT + (enum sim_mismatch)below(x, 2)
			 : SIM_OTHER_STEP + (enum sim_mismatch)below(x, 4);

	return kind == SIM_OTHER_ROOT && !is_copy(job) ? SIM_OTHER_STEP : kind;
}

void sim_mismatch_draw(struct sim_job *job)
{
	uint64_t x = job->seed ^ 0x6d69736d;
	uint32_t by = below(&x, job->n_workers), first, n_local;
	bool is_alone = sim_job_members(job, sim_job_of(job, by)) < 2;

	if (job->doom || below(&x, 4) || count_ranks(job, by, &first) < 2)
		return;
	n_local = job->n_local[by];
	job->mismatch_by = by;
	job->mismatch_tensor = below(&x, job->n_tensors);
	if (!sim_job_is_async(job, job->mismatch_tensor))
		job->mismatch_in = below(&x, job->n_rounds);
	job->mismatch = draw_kind(job, &x);
	job->mismatch_at = ALL_LOCAL;
	if (job->mismatch == SIM_OTHER_SIZE) {
		job->mismatch_in = 0;
		if (is_alone)
			job->mismatch = SIM_ALIKE; /* not detected */
	} else if (is_alone || (n_local > 1 && below(&x, 2))) {
		job->mismatch_at = below(&x, n_local);
	}
}

bool sim_mismatch_is_in(
	const struct sim_job *job, uint32_t i, uint32_t tensor, uint32_t round)
{
	return job->mismatch && i == sim_job_of(job, job->mismatch_by) &&
	       tensor == job->mismatch_tensor && round == job->mismatch_in;
}

bool sim_mismatch_is_of(
	const struct sim_worker *w, uint32_t tensor, uint32_t local)
{
	const struct sim_job *job = w->job;

	return job->mismatch && w->rank == job->mismatch_by &&
	       tensor == job->mismatch_tensor &&
	       (w->round[tensor] == job->mismatch_in ||
		       job->mismatch == SIM_OTHER_SIZE) &&
	       (job->mismatch_at == ALL_LOCAL || local == job->mismatch_at);
}

void sim_mismatch_apply(
	const struct sim_worker *w, struct sw_worker_round *round)
{
	uint32_t first, n = count_ranks(w->job, w->rank, &first);

	switch (w->job->mismatch) {
	case SIM_OTHER_STEP:
		round->step++;
		return;
	case SIM_OTHER_OPERATION:
		round->op = round->op == SW_ROUND_SUM ? SW_ROUND_COPY
						      : SW_ROUND_SUM;
		round->root = (uint16_t)first;
		return;
	case SIM_OTHER_ROOT:
		round->root = (uint16_t)((round->root + 1) % n);
		return;
	case SIM_OTHER_SIZE: /* the declaration already differed */
	case SIM_ALIKE:
		return;
	}
}

bool sim_mismatch_has_failed(const struct sim_worker *w)
{
	const struct sim_job *job = w->job;
	char name[SW_NAME_MAX], text[SW_TEXT_MAX];

	snprintf(text, sizeof(text), " left; round 1 of tensor %.40s",
		sim_job_name(job, job->mismatch_tensor, name));
	return w->has_failed && job->mismatch == SIM_OTHER_SIZE &&
	       job->leaves && w->err == SW_EPEER && strstr(w->text, text);
}

static const char *check(
	struct sim_job *job, const struct sim_worker *w, uint32_t tensor)
{
	bool must_die = sim_mismatch_is_in(
		job, sim_job_of(job, w->rank), tensor, job->mismatch_in);
	uint32_t want = must_die ? 1 + job->mismatch_in : 0;
	uint32_t other = w->engine.n_tensors ? w->index[tensor] : 0;
	char text[SW_TEXT_MAX];
	const char *why = sw_worker_why(&w->engine, other, text);
	char name[SW_NAME_MAX];

	if (sim_mismatch_has_failed(w))
		return NULL;
	sim_job_name(job, tensor, name);
	name[40] = 0; /* the error text quotes 40 bytes of a long name */
	if (w->dead_in[tensor] != want)
		snprintf(job->oracle, sizeof(job->oracle),
			"worker %u, tensor %u: failed in round %d, expected "
			"was %d (-1: none)",
			w->rank, tensor, (int)w->dead_in[tensor] - 1,
			(int)want - 1);
	else if (w->is_open && !w->has_left &&
		 (must_die != (why != NULL) ||
			 (why && (!strstr(why, name) ||
					 !strstr(why, "rank ")))))
		snprintf(job->oracle, sizeof(job->oracle),
			"worker %u, tensor %u: it is dead, for '%.150s'",
			w->rank, tensor, why ? why : "");
	return job->oracle[0] ? job->oracle : NULL;
}

const char *sim_mismatch_wrong(struct sim_job *job)
{
	const char *wrong = NULL;

	for (uint32_t r = 0; r < job->n_workers && !wrong; r++)
		for (uint32_t t = 0; t < job->n_tensors && !wrong; t++)
			wrong = check(job, &job->workers[r], t);
	return wrong;
}
