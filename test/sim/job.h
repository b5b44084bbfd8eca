/* job.h - a simulated job: servers, workers, tensors, and the oracle.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank w adds d * 4^w to every element, with d = 1, 2 or 3 drawn from tensor,
 * round and element.  Every base-4 digit of a sum must then be d: a missing, a
 * double or a foreign contribution shows, and so does one of another round.
 * Buffers are in place: the sum is written over the gradient.
 */
#ifndef SW_SIM_JOB_H
#define SW_SIM_JOB_H

#include "engine/server.h"
#include "engine/worker.h"
#include "test/sim/net.h"

enum { SIM_WORKERS = 12, SIM_SERVERS = 4, SIM_TENSORS = 8 };

struct sim_job;

struct sim_worker {
	struct sw_worker engine;
	struct sim_job *job;
	struct sim_node *node;
	uint32_t rank;
	bool is_running, is_declared;
	bool has_failed;
	int err;
	char text[SW_TEXT_MAX];
	int32_t *data[SIM_TENSORS];
	uint32_t round[SIM_TENSORS]; /* completed */
	bool is_open[SIM_TENSORS];
	uint32_t index[SIM_TENSORS]; /* ours -> the engine's */
	uint64_t pause_until_ns;
	uint64_t n_wrong;
	uint32_t n_errors; /* push_pulls that ended with one */
};

struct sim_job {
	struct sim_net net;
	uint64_t seed, rng;
	struct sw_params params;
	struct sw_env env;
	struct sw_log log;
	uint32_t n_workers, n_servers, n_tensors, n_rounds;
	uint32_t n_elems[SIM_TENSORS];
	uint32_t dtype;
	uint64_t pause_ns; /* between two rounds of a worker, at most */
	struct sw_server *servers[SIM_SERVERS];
	struct sim_worker workers[SIM_WORKERS];
	uint32_t wrong_elems; /* rank 0 declares so many more (a mismatch) */
	uint32_t wrong_step; /* rank 0 counts its steps from here */
};

/* Draw a job from a seed: size, faults, timing. */
void sim_job_draw(struct sim_job *job, uint64_t seed);

/* Build nodes and engines as the fields say. */
void sim_job_open(struct sim_job *job);
void sim_job_close(struct sim_job *job);

/* Run until every worker has completed all rounds, one failed, or virtual
 * @limit_ns have passed.  Returns true when all completed. */
bool sim_job_run(struct sim_job *job, uint64_t limit_ns);

uint64_t sim_job_wrong(const struct sim_job *job);

#endif
