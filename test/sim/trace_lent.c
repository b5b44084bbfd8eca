/* trace_lent.c - payloads lent to a node's own server, when its worker ends.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two nodes sum for each other. A server sums its own node's share of a push
 * directly from the tensor (sync.c). A worker that ends returns its tensors to
 * its processes, which overwrite them at once here. Earlier pushes must still
 * count, unchanged.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/worker/link.h"
#include "test/sim/trace_job.h"

enum { CHUNK = 1344 / 4, N_CHUNKS = 16 * 64 };

/* A worker pushes only when the test submits. */
static struct sim_job *colocated_job(uint32_t n_lcores)
{
	struct sim_job *job = new_job(N_CHUNKS * CHUNK, 0);

	job->n_servers = job->n_colocated = 2;
	job->n_lcores = n_lcores;
	for (uint32_t r = 0; r < 2; r++)
		job->n_lanes[r] = (uint8_t)n_lcores;
	return job;
}

/* The same job with an asynchronous tensor first, which gets its first value
 * before the summed tensor is declared. */
static struct sim_job *mixed_job(uint32_t n_lcores)
{
	struct sim_job *job = colocated_job(n_lcores);

	job->n_tensors = 2;
	job->n_elems[1] = job->n_elems[0];
	job->async = 1;
	return job;
}

/* Return the index of the summed tensor. */
static uint32_t summed(const struct sim_job *job)
{
	return job->n_tensors - 1;
}

static void open_job(struct sim_job *job)
{
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	if (!summed(job))
		return;
	for (uint32_t r = 0; r < 2; r++)
		sim_worker_submit(&job->workers[r], 0, 0);
	sim_job_pass(job, 20 * SW_MS); /* declares the summed tensor */
}

/* Count the chunks of worker @rank that a sum at its node borrows. */
static uint64_t n_lent(const struct sim_job *job, uint32_t rank)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < job->n_lcores; k++) {
		const struct sw_server *srv =
			job->servers[rank * job->n_lcores + k];

		n += srv->jobs[0].shard.n_lent;
	}
	return n;
}

static bool is_done(void *ctx)
{
	const struct sim_job *job = ctx;

	return !job->workers[1].asked[summed(job)] ||
	       job->workers[1].has_failed;
}

/* Worker 0 has pushed everything and leaves without error in the middle of the
 * round; the other worker gets its sums. Return the number of wrong
 * elements. */
static uint64_t leave(struct check *c, struct sim_job *job)
{
	const struct sim_worker *w = &job->workers[1];
	uint32_t t = summed(job);
	uint64_t wrong;

	open_job(job);
	sim_worker_submit(&job->workers[0], t, 0);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_lent(job, 0), N_CHUNKS / 2, "chunks that are lent");
	sim_worker_leave(&job->workers[0], 0, NULL);
	sim_job_pass(job, SW_MS);
	check(c, job->workers[0].has_left, "it has left");
	check_eq(c, job->workers[0].data[t][0], 0x5a, "its tensor is written");
	sim_worker_submit(&job->workers[1], t, 0);
	check(c, sim_net_run(&job->net, job->net.now_ns + SW_S, is_done, job),
		"the other's round ends");
	check(c, !w->has_failed && !w->n_errors, "well");
	wrong = w->n_wrong + job->n_bad_results;
	sim_job_close(job);
	free(job);
	return wrong;
}

static void lent_by_a_worker_that_leaves(struct check *c)
{
	struct sim_job *careless = colocated_job(1);

	check_eq(c, leave(c, colocated_job(1)), 0, "wrong elements");
	careless->is_careless = true;
	check(c, leave(c, careless) > 0, "what is not kept shows");
}

static void lent_by_a_worker_of_two_lanes(struct check *c)
{
	check_eq(c, leave(c, colocated_job(2)), 0, "wrong elements");
}

/* Kill worker 0's process at any moment while both push: the other worker
 * fails, and until then no sum was wrong. */
static void kill_after(struct check *c, struct sim_job *job, uint64_t ns)
{
	const struct sim_worker *w = &job->workers[1];

	open_job(job);
	for (uint32_t r = 0; r < 2; r++)
		sim_worker_submit(&job->workers[r], summed(job), 0);
	sim_job_pass(job, ns);
	check(c, job->workers[0].asked[summed(job)],
		"in the middle of a round");
	sim_worker_leave(
		&job->workers[0], SW_EPEER, "rank 0: training process 7 died");
	sim_job_pass(job, 100 * SW_MS);
	check(c, w->has_failed, "the other has failed");
	/* In a job with parameters, others learn of the death when they need
	 * its sum. */
	check_text(c, w->text,
		job->async ? "rank 0 (node gpu0) left; round"
			   : "rank 0: training process 7 died");
	check_eq(c, n_lent(job, 0), 0, "chunks still lent");
	check_eq(c, job->n_bad_results + job->n_bad_pushes, 0, "bad frames");
	sim_job_close(job);
	free(job);
}

static void lent_by_a_worker_that_is_killed(struct check *c)
{
	for (uint64_t us = 1; us < 40; us++)
		kill_after(c, colocated_job(1 + us % 2), us * SW_US);
}

/* The job also has parameters, which their server keeps anyway. */
static void lent_beside_asynchronous_tensors(struct check *c)
{
	const struct sim_worker *w;
	struct sim_job *job = mixed_job(1);

	open_job(job);
	w = &job->workers[0];
	check(c,
		w->engine.tensors[w->index[0]].key <
			w->engine.tensors[w->index[1]].key,
		"the asynchronous tensor is the first on the way");
	sim_job_close(job);
	free(job);
	check_eq(c, leave(c, mixed_job(1)), 0, "wrong elements");
	check_eq(c, leave(c, mixed_job(2)), 0, "wrong elements");
	for (uint64_t us = 1; us < 40; us += 3)
		kill_after(c, mixed_job(1 + us % 2), us * SW_US);
}

/* The node dies together with its server. */
static void lent_by_a_node_that_dies(struct check *c)
{
	struct sim_job *job = colocated_job(1);
	const struct sim_worker *w = &job->workers[1];

	open_job(job);
	for (uint32_t r = 0; r < 2; r++)
		sim_worker_submit(&job->workers[r], 0, 0);
	sim_job_pass(job, 20 * SW_US);
	sim_worker_kill(job, 0);
	sim_server_kill(job, 0);
	sim_job_pass(job, job->params.dead_after + 3 * SW_S);
	check(c, w->has_failed && w->has_left, "the other has failed");
	check_text(c, w->text, "server s0");
	check_eq(c, n_lent(job, 1), 0, "chunks still lent");
	check_eq(c, job->n_bad_results, 0, "bad results");
	sim_job_close(job);
	free(job);
}

const struct check_case trace_lent[] = {
	{"lent_by_a_worker_that_leaves", lent_by_a_worker_that_leaves},
	{"lent_by_a_worker_of_two_lanes", lent_by_a_worker_of_two_lanes},
	{"lent_by_a_worker_that_is_killed", lent_by_a_worker_that_is_killed},
	{"lent_beside_asynchronous_tensors", lent_beside_asynchronous_tensors},
	{"lent_by_a_node_that_dies", lent_by_a_node_that_dies},
};

const uint32_t n_trace_lent = SW_ARRAY_SIZE(trace_lent);
