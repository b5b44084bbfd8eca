/* doom.c - a node of a random job dies or leaves: how that ends for the others.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Workers of other jobs must complete as if nothing had been.  Those of the
 * same job complete, if they can do so without it, or end with an error that
 * names it, in time.  No sum may be wrong at any moment.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "test/sim/job.h"

void sim_doom_draw(struct sim_job *job)
{
	uint64_t x = job->seed ^ 0x646f6f6d;

	if (sim_below(&x, 6))
		return;
	job->doom = SIM_DIES + (enum sim_doom)sim_below(&x, 4);
	if (job->n_colocated && job->doom != SIM_LEAVES)
		job->doom = SIM_DIES;
	if (job->doom == SIM_DIES || job->doom == SIM_LEAVES)
		job->victim = (uint32_t)sim_below(&x, job->n_workers);
	else
		job->victim = (uint32_t)sim_below(&x, job->n_servers);
	job->doom_at_ns = sim_below(&x, 100 * SW_US << sim_below(&x, 12));
	if (job->doom == SIM_LEAVES) {
		job->leaves = true;
		job->odd_one = job->victim;
		job->odd_rounds =
			1 + (uint32_t)sim_below(&x, job->n_rounds - 1);
	}
}

static bool is_victim(const struct sim_job *job, uint32_t rank)
{
	return job->doom == SIM_DIES && rank == job->victim;
}

static bool has_ended(const struct sim_worker *w)
{
	return w->has_failed || (sim_worker_has_completed(w) &&
					(!w->job->leaves || w->has_left));
}

static bool is_settled(void *ctx)
{
	struct sim_job *job = ctx;

	for (uint32_t r = 0; r < job->n_workers; r++)
		if (!is_victim(job, r) && !has_ended(&job->workers[r]))
			return false;
	return true;
}

static void befall(struct sim_job *job)
{
	switch (job->doom) {
	case SIM_DIES:
		sim_worker_kill(job, job->victim);
		return;
	case SIM_SERVER_DIES:
		sim_server_kill(job, job->victim);
		return;
	case SIM_RESTARTS:
		sim_server_kill(job, job->victim);
		sim_job_pass(job, 1 + job->doom_at_ns / 4);
		sim_server_start(job, job->victim);
		return;
	case SIM_LEAVES: /* by itself */
	case SIM_NONE:
		return;
	}
}

static bool names_server(
	const struct sim_job *job, const char *text, uint32_t server)
{
	char name[32];

	for (uint32_t k = 0; k < job->n_lcores; k++) {
		snprintf(name, sizeof(name), "server s%u ",
			server * job->n_lcores + k);
		if (strstr(text, name))
			return true;
	}
	return false;
}

/* Does it name a member that itself ended by what befell another?  Who joins
 * after a restart waits for such a one, and so does a sum of an asynchronous
 * job, which goes on without who ends. */
static bool names_ended(const struct sim_job *job, const struct sim_worker *w)
{
	const char *at = strstr(w->text, "rank ");
	uint32_t rank;

	if (!at || sscanf(at, "rank %u", &rank) != 1)
		return false;
	for (uint32_t i = sim_job_of(job, w->rank); i < job->n_workers;
		i += job->n_jobs)
		if (sim_job_rank(job, i) == rank)
			return i != w->rank && job->workers[i].has_failed;
	return false;
}

/* Does the error say whose fault it is? */
static bool is_named(const struct sim_job *job, const struct sim_worker *w)
{
	char name[32];

	if (w->err != SW_EPEER && w->err != SW_ESERVER &&
		w->err != SW_ETIMEDOUT)
		return false;
	if (job->doom == SIM_SERVER_DIES || job->doom == SIM_RESTARTS)
		return names_server(job, w->text, job->victim) ||
		       names_ended(job, w);
	snprintf(name, sizeof(name), "rank %u", sim_job_rank(job, job->victim));
	return strstr(w->text, name) || (job->async && names_ended(job, w)) ||
	       (job->n_colocated && names_server(job, w->text,
					    job->n_servers - job->n_colocated +
						    job->victim));
}

static bool is_concerned(const struct sim_job *job, uint32_t rank)
{
	return job->doom == SIM_SERVER_DIES || job->doom == SIM_RESTARTS ||
	       sim_job_of(job, rank) == sim_job_of(job, job->victim);
}

const char *sim_doom_run(struct sim_job *job, uint64_t limit_ns)
{
	uint64_t until_ns = job->net.now_ns + limit_ns;

	if (!sim_net_run(&job->net, job->net.now_ns + job->doom_at_ns,
		    is_settled, job)) {
		befall(job);
		sim_net_run(&job->net, until_ns, is_settled, job);
	}
	for (uint32_t r = 0; r < job->n_workers && !job->oracle[0]; r++) {
		const struct sim_worker *w = &job->workers[r];

		if (is_victim(job, r))
			continue;
		if (!has_ended(w))
			snprintf(job->oracle, sizeof(job->oracle),
				"worker %u never ends", r);
		else if (w->has_failed &&
			 (!is_concerned(job, r) || !is_named(job, w)))
			snprintf(job->oracle, sizeof(job->oracle),
				"worker %u fails with %d: %.180s", r, w->err,
				w->text);
	}
	return job->oracle[0] ? job->oracle : NULL;
}
