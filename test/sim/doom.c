/* doom.c - a node of a random job dies or leaves: how the others end.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Workers of other jobs must complete as if no node had died. Each call of the
 * same job must complete if it does not need the victim. Otherwise it must end
 * in time with an error that names the victim. No sum may ever be wrong.
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
	job->doom = SIM_DIES + (enum sim_doom)sim_below(&x, 5);
	if (job->n_colocated && job->doom < SIM_LEAVES)
		job->doom = SIM_DIES;
	if (job->doom == SIM_DIES || job->doom >= SIM_LEAVES)
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

void sim_rank_kill(struct sim_worker *w)
{
	uint32_t rank = sim_job_rank(w->job, w->rank);
	struct sw_fault why = {.err = SW_EPEER,
		.kind = SW_FAULT_DIED,
		.key = SW_KEY_NONE,
		.one = {.rank = (uint16_t)rank, .number = 7},
		.text = "died"};

	if (!w->is_running || sw_worker_end_of(&w->engine))
		return; /* the job does not run yet, so the agent would leave */
	snprintf(why.node, sizeof(why.node), "gpu%u", w->rank);
	w->has_lost_rank = true;
	sw_worker_local_died(&w->engine, w->n_local - 1u, &why);
	w->node->loop.tick_at_ns = 0;
	sim_node_poke(w->node);
}

/* Open calls of a failed rank end in its next turn. */
static bool has_ended(const struct sim_worker *w)
{
	if (w->has_failed)
		return sim_groups_have_ended(w);
	return sim_worker_has_completed(w) && (!w->job->leaves || w->has_left);
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
	case SIM_RANK_DIES:
		sim_rank_kill(&job->workers[job->victim]);
		return;
	case SIM_LEAVES: /* the victim leaves without this hook */
	case SIM_NONE:
		return;
	}
}

/* Does @text name worker @r by its node, by the number of its agent, or by its
 * first rank? */
static bool names_worker(
	const struct sim_job *job, const char *text, uint32_t r)
{
	const char *agent = strstr(text, "for agent ");
	const char *at = strstr(text, "rank ");
	char node[32];
	uint32_t rank, i;

	snprintf(node, sizeof(node), "(node gpu%u)", r);
	if (agent && sscanf(agent, "for agent %u", &i) == 1)
		return i == sim_job_rank(job, r);
	return strstr(text, node) ||
	       (!strstr(text, "(node ") && at &&
		       sscanf(at, "rank %u", &rank) == 1 &&
		       rank == sim_job_rank(job, r));
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

/* Does the worker's error name worker @r as a rank that has left? A worker
 * knows only the ranks of other workers, not their nodes. */
static bool names_left(
	const struct sim_job *job, const struct sim_worker *w, uint32_t r)
{
	char text[40];

	snprintf(text, sizeof(text), "rank %u, which has left",
		w->engine.firsts[sim_job_rank(job, r)]);
	return strstr(w->text, text);
}

/* Does the error name a member that itself failed because of another node? A
 * rank that joins after a restart waits for such a member. So does a sum in an
 * asynchronous job, which continues without failed ranks. */
static bool names_ended(const struct sim_job *job, const struct sim_worker *w)
{
	for (uint32_t i = sim_job_of(job, w->rank); i < job->n_workers;
		i += job->n_jobs)
		if (i != w->rank && job->workers[i].has_failed &&
			(names_worker(job, w->text, i) ||
				names_left(job, w, i)))
			return true;
	return false;
}

/* Is the rank dead, or has it failed because of another node? */
static bool is_gone(const struct sim_job *job, uint32_t rank)
{
	const struct sim_worker *w = &job->workers[rank];

	return !w->is_open || w->has_failed || w->has_left ||
	       sw_worker_end_of(&w->engine);
}

/* Can @w be waiting for worker @rank in vain, in the job or in the group? */
static bool is_missed(const struct sim_worker *w, uint32_t group, uint32_t rank)
{
	const struct sim_job *job = w->job;
	const struct sim_worker *other = &job->workers[rank];
	uint8_t all = (uint8_t)((1u << other->n_local) - 1);
	uint8_t here = group < SIM_GROUPS ? job->groups[group].here[rank] : all;

	if (other->has_lost_rank && here >> (other->n_local - 1) & 1)
		return true;
	return here && rank != w->rank && is_gone(job, rank);
}

static bool is_of_server(const struct sim_job *job)
{
	return job->doom == SIM_SERVER_DIES || job->doom == SIM_RESTARTS;
}

bool sim_doom_is_in(const struct sim_worker *w, uint32_t group)
{
	for (uint32_t r = 0; r < w->job->n_workers; r++)
		if (is_missed(w, group, r))
			return true;
	return false;
}

bool sim_doom_is_named(
	const struct sim_worker *w, uint32_t group, const char *why)
{
	if (is_of_server(w->job) && names_server(w->job, why, w->job->victim))
		return true;
	for (uint32_t r = 0; r < w->job->n_workers; r++) {
		uint32_t member = sim_job_rank(w->job, r);
		char first[32];

		snprintf(first, sizeof(first), "rank %u is gone",
			w->engine.firsts[member]);
		if (is_missed(w, group, r) &&
			(names_worker(w->job, why, r) || strstr(why, first)))
			return true;
	}
	return false;
}

/* Check tensors that died at a worker that continues. */
static void check_tensors(struct sim_job *job, const struct sim_worker *w)
{
	for (uint32_t t = 0; t < job->n_tensors; t++) {
		char text[SW_TEXT_MAX];
		const char *why = sw_worker_why(&w->engine, w->index[t], text);

		if (w->dead_in[t] && !w->has_failed && !w->has_left &&
			!(why && sim_doom_is_named(w, SIM_GROUPS, why)))
			snprintf(job->oracle, sizeof(job->oracle),
				"worker %u, tensor %u is dead, for '%.150s'",
				w->rank, t, why ? why : "");
	}
}

/* Under heavy loss a live server can look dead: on each link, one in a hundred
 * thousand loses all keepalives for dead_after, and there are many links. */
static bool may_be_silent(const struct sim_job *job, const char *text)
{
	return job->net.faults.loss > 250000 &&
	       (strstr(text, "silent for") ||
		       strstr(text, "acknowledging nothing for"));
}

/* Does the error name the cause? */
static bool is_named(const struct sim_job *job, const struct sim_worker *w)
{
	if (w->err != SW_EPEER && w->err != SW_ESERVER &&
		w->err != SW_ETIMEDOUT)
		return false;
	if (is_of_server(job))
		return names_server(job, w->text, job->victim) ||
		       names_ended(job, w) || may_be_silent(job, w->text);
	return names_worker(job, w->text, job->victim) ||
	       (job->async && names_ended(job, w)) ||
	       (job->n_colocated && names_server(job, w->text,
					    job->n_servers - job->n_colocated +
						    job->victim));
}

static bool is_concerned(const struct sim_job *job, uint32_t rank)
{
	return is_of_server(job) ||
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
		check_tensors(job, w);
	}
	return job->oracle[0] ? job->oracle : NULL;
}
