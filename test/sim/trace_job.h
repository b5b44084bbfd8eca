/* trace_job.h - simulated jobs for the traces.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_TEST_SIM_TRACE_JOB_H
#define SW_TEST_SIM_TRACE_JOB_H

#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"
#include "test/sim/traces.h"

/* Create two workers, one server and one tensor of i32, not open yet. */
static inline struct sim_job *new_job(uint32_t n_elems, uint32_t n_rounds)
{
	struct sim_job *job = malloc(sizeof(*job));

	if (!job)
		abort();
	sim_job_init(job, 1);
	job->n_elems[0] = n_elems;
	job->n_rounds = n_rounds;
	return job;
}

/* Check that every sum was exact; close the job. */
static inline void end_job(struct check *c, struct sim_job *job)
{
	const char *wrong = sim_job_wrong(job);

	check(c, !wrong, wrong ? wrong : "");
	sim_job_close(job);
	free(job);
}

static inline bool is_type(
	const struct sim_frame *f, uint8_t type, uint32_t from)
{
	return f->bytes[3] == type && f->from == from;
}

static inline uint32_t chunk_of(const struct sim_frame *f)
{
	return sw_load32(f->bytes + 24);
}

/* Copies of RESULTs; free them with replay_fini. */
struct replay {
	struct sim_net *net;
	struct sim_frame *kept[64];
	uint32_t n;
};

/* Hook: copy every RESULT to rank 0, and replay all copies after each new one,
 * whatever the rank waits for by then. */
static inline enum sim_fate replay_results(void *ctx, struct sim_frame *f)
{
	struct replay *k = ctx;

	if (!is_type(f, SW_RESULT, 0) || f->to != 1)
		return SIM_PASS;
	for (uint32_t i = 0; i < k->n; i++)
		sim_net_replay(k->net, k->kept[i]);
	if (k->n < SW_ARRAY_SIZE(k->kept)) {
		k->kept[k->n] = malloc(sizeof(*f) + f->len);
		if (!k->kept[k->n])
			abort();
		memcpy(k->kept[k->n++], f, sizeof(*f) + f->len);
	}
	return SIM_PASS;
}

static inline void replay_fini(struct replay *k)
{
	while (k->n)
		free(k->kept[--k->n]);
}

#endif
