/* main.c - run many seeds of the simulated job, or replay one.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/job.h"

enum { LIMIT_S = 4000 };

static bool run_seed(uint64_t seed, bool is_verbose)
{
	struct sim_job *job = malloc(sizeof(*job));
	bool ok;

	if (!job)
		abort();
	sim_job_draw(job, seed);
	job->log.level = is_verbose ? SW_LOG_DEBUG : SW_LOG_ERROR;
	sim_job_open(job);
	ok = sim_job_run(job, LIMIT_S * SW_S) && !sim_job_wrong(job);
	if (is_verbose || !ok) {
		printf("# seed %llu: %u workers, %u servers, %u tensors, %u "
		       "rounds, payload %u, window %u KiB; loss %u dup %u late "
		       "%u corrupt %u truncate %u nap %u ppm, jitter %llu us\n",
			(unsigned long long)seed, job->n_workers,
			job->n_servers, job->n_tensors, job->n_rounds,
			job->params.payload, job->params.window_bytes >> 10,
			job->net.faults.loss, job->net.faults.dup,
			job->net.faults.late, job->net.faults.corrupt,
			job->net.faults.truncate, job->net.faults.nap,
			(unsigned long long)job->net.faults.jitter_ns / 1000);
		printf("# %llu wrong elements, %llu frames, %.3f s virtual\n",
			(unsigned long long)sim_job_wrong(job),
			(unsigned long long)job->net.n_frames,
			(double)job->net.now_ns / 1e9 - 1);
		for (uint32_t r = 0; r < job->n_workers; r++)
			printf("# worker %u: %s%s\n", r,
				job->workers[r].has_failed ? "failed: " :
							     "fine",
				job->workers[r].text);
	}
	if (!ok)
		printf("not ok - seed %llu; replay: sim --seed %llu\n",
			(unsigned long long)seed, (unsigned long long)seed);
	sim_job_close(job);
	free(job);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t from = 1, n = 1000, passed = 0;
	bool is_verbose = false;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed")) {
			from = strtoull(argv[i + 1], NULL, 10);
			n = 1;
			is_verbose = true;
		} else if (!strcmp(argv[i], "--seeds")) {
			n = strtoull(argv[i + 1], NULL, 10);
		} else if (!strcmp(argv[i], "--from")) {
			from = strtoull(argv[i + 1], NULL, 10);
		} else {
			fprintf(stderr, "usage: sim [--seed N] [--seeds N] "
					"[--from N]\n");
			return 2;
		}
	}
	for (uint64_t s = from; s < from + n; s++)
		passed += run_seed(s, is_verbose);
	printf("%llu passed, %llu failed\n", (unsigned long long)passed,
		(unsigned long long)(n - passed));
	return passed != n;
}
