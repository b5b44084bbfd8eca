/* main.c - run many seeds of the simulated job, or replay one.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/job.h"

enum { LIMIT_S = 4000 };

static void tell(struct sim_job *job, const char *wrong)
{
	sim_job_describe(job);
	for (uint32_t r = 0; r < job->n_workers; r++) {
		const struct sim_worker *w = &job->workers[r];

		printf("# worker %u:", r);
		for (uint32_t t = 0; t < job->n_tensors; t++)
			printf(" %u", w->round[t]);
		printf(" rounds; %s%s\n", w->has_failed ? "failed: " : "fine",
			w->text);
	}
	if (wrong)
		sim_net_tell(&job->net);
}

static const char *check(struct sim_job *job)
{
	const char *wrong = sim_mismatch_wrong(job), *late;

	/* Run on until the last server knows the mismatch and the last result
	 * is acknowledged. If half of the ACKs are lost, a server delivers only
	 * one or two of its last results per second. */
	if (job->mismatch || job->n_groups)
		sim_job_pass(job, 5 * SW_S + job->freeze_ns);
	for (uint32_t i = 0; (late = sim_groups_wrong(job)) && i < 12; i++)
		sim_job_pass(job, 5 * SW_S);
	if (!wrong)
		wrong = late;
	return wrong ? wrong : sim_job_wrong(job);
}

static bool run_seed(uint64_t seed, bool is_verbose)
{
	struct sim_job *job = malloc(sizeof(*job));
	const char *wrong = NULL;

	if (!job)
		abort();
	sim_job_draw(job, seed);
	job->log.level = is_verbose ? SW_LOG_DEBUG : SW_LOG_ERROR;
	sim_job_open(job);
	sim_job_draw_nodes(job);
	if (job->doom)
		wrong = sim_doom_run(job, LIMIT_S * SW_S);
	if (job->doom)
		wrong = wrong ? wrong : sim_groups_wrong(job);
	else if (!sim_job_run(job, LIMIT_S * SW_S))
		wrong = job->oracle[0] ? job->oracle : "not complete";
	else
		wrong = check(job);
	if (is_verbose || wrong)
		tell(job, wrong);
	if (wrong)
		printf("not ok - seed %llu: %s; replay: sim --seed %llu\n",
			(unsigned long long)seed, wrong,
			(unsigned long long)seed);
	sim_job_close(job);
	if (job->mem_bytes) {
		printf("not ok - seed %llu: %llu B are not given back\n",
			(unsigned long long)seed,
			(unsigned long long)job->mem_bytes);
		wrong = "memory";
	}
	free(job);
	fflush(stdout);
	return !wrong;
}

int main(int argc, char **argv)
{
	uint64_t from = 1, n = 1000, passed = 0;
	bool is_verbose = false;

	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1]; /* NULL: no value */

		if (value && !strcmp(argv[i], "--seed")) {
			from = strtoull(value, NULL, 10);
			n = 1;
			is_verbose = true;
		} else if (value && !strcmp(argv[i], "--seeds")) {
			n = strtoull(value, NULL, 10);
		} else if (value && !strcmp(argv[i], "--from")) {
			from = strtoull(value, NULL, 10);
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
