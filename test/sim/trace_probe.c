/* trace_probe.c - source ports that reach the right lcore, if any does.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/sim/trace_job.h"

/* Two workers and one server of @n_lcores, whose port has a queue for each and
 * distributes frames by a hash. */
static struct sim_job *new_hashed(uint32_t n_lcores, uint32_t n_rounds)
{
	struct sim_job *job = new_job(256 * 336, n_rounds);

	job->n_lcores = n_lcores;
	job->net.steering = SW_STEER_RSS;
	job->net.hash_key = 1;
	return job;
}

static uint64_t astray(const struct sim_job *job)
{
	struct sw_stats sum = {0};

	sw_handoff_add_stats(&job->net.nodes[0].handoff, &sum);
	return sum.handoff_misrouted;
}

static uint64_t n_failed(const struct sim_job *job)
{
	return job->workers[0].engine.stats.probes_failed +
	       job->workers[1].engine.stats.probes_failed;
}

static uint64_t n_probes(const struct sim_job *job)
{
	return job->workers[0].engine.stats.probes +
	       job->workers[1].engine.stats.probes;
}

/* Only HELLOs reach a wrong lcore, and each makes the worker try another source
 * port. */
static void probe_finds_the_right_lcore(struct check *c)
{
	static const uint32_t lcores[] = {2, 4};

	for (uint32_t i = 0; i < 2; i++) {
		struct sim_job *job = new_hashed(lcores[i], 20);

		sim_job_open(job);
		check(c, sim_job_run(job, SW_S), "it completes");
		check(c, n_probes(job) > 0, "a first port was wrong");
		check_eq(c, n_failed(job), 0, "links without a right port");
		check_eq(c, astray(job), n_probes(job), "frames astray");
		end_job(c, job);
	}
}

/* The hash ignores ports: after trying all, the job uses the hand-off. */
static void probe_gives_up(struct check *c)
{
	struct sim_job *job = new_hashed(4, 5);

	job->net.is_deaf = true;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "it completes");
	check_eq(c, n_probes(job), n_failed(job) * (SIM_WAYS - 1), "probes");
	check_eq(c, n_failed(job), 6, "each worker's links to three of four");
	check(c, astray(job) > 5 * 256, "frames are handed over");
	end_job(c, job);
}

/* A server whose port has one queue does not mention source ports. */
static void probe_is_no_use_without_a_hash(struct check *c)
{
	struct sim_job *job = new_hashed(4, 5);

	job->net.steering = SW_STEER_HANDOFF;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "it completes");
	check_eq(c, n_probes(job), 0, "probes");
	check_eq(c, astray(job), 0, "frames astray");
	end_job(c, job);
}

/* The port's table changes in mid-job: lcores hand over misdirected frames, and
 * no session moves. */
static void probe_survives_another_hash(struct check *c)
{
	struct sim_job *job = new_hashed(4, 40);
	uint64_t before;

	job->net.rehash_ns = SW_S + 2 * SW_MS;
	sim_job_open(job);
	sim_job_pass(job, SW_MS);
	before = astray(job);
	check(c, sim_job_run(job, SW_S), "it completes");
	check(c, astray(job) > before, "frames are handed over");
	check_eq(c, job->workers[0].engine.stats.sessions_opened, 4, "links");
	end_job(c, job);
}

/* A late COOKIE for an abandoned source port is ignored. */
static void probe_ignores_late_cookies(struct check *c)
{
	struct sim_job *job = new_hashed(4, 5);

	job->net.faults.jitter_ns = SW_MS;
	job->net.faults.dup = 500000;
	sim_job_open(job);
	check(c, sim_job_run(job, 20 * SW_S), "it completes");
	check_eq(c, n_failed(job), 0, "links without a right port");
	end_job(c, job);
}

#define CASE(f)       \
	{             \
#f, f \
	}
const struct check_case trace_probe[] = {
	CASE(probe_finds_the_right_lcore),
	CASE(probe_gives_up),
	CASE(probe_is_no_use_without_a_hash),
	CASE(probe_survives_another_hash),
	CASE(probe_ignores_late_cookies),
};
const uint32_t n_trace_probe = sizeof(trace_probe) / sizeof(trace_probe[0]);
