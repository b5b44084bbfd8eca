/* outcomes.h - helpers shared by the outcome tests.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_TEST_SIM_OUTCOMES_H
#define SW_TEST_SIM_OUTCOMES_H

#include "test/sim/check.h"
#include "test/sim/job.h"

extern const struct check_case outcome_join_cases[];
extern const uint32_t n_outcome_join_cases;

/* Create a job without end, not opened yet; end it. */
struct sim_job *outcome_job(uint32_t n_workers, uint32_t n_servers);
void outcome_end(struct sim_job *job);

/* Check that worker @rank failed with @err and @text, and that it has no open
 * call. */
void outcome_expect(struct check *c, struct sim_job *job, uint32_t rank,
	int err, const char *text);

#endif
