/* outcomes.h - what the files of outcome tests share.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SIM_OUTCOMES_H
#define SW_TEST_SIM_OUTCOMES_H

#include "test/sim/check.h"
#include "test/sim/job.h"

extern const struct check_case outcome_join_cases[];
extern const uint32_t n_outcome_join_cases;

/* A job that goes on for ever, not opened yet; end it. */
struct sim_job *outcome_job(uint32_t n_workers, uint32_t n_servers);
void outcome_end(struct sim_job *job);

/* Worker @rank has failed with @err and @text, and nothing is open. */
void outcome_expect(struct check *c, struct sim_job *job, uint32_t rank,
	int err, const char *text);

#endif
