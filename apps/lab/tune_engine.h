/* tune_engine.h - sumwire-lab tune --engine: the landscape of the real engine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_TUNE_ENGINE_H
#define SW_APPS_LAB_TUNE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { SW_ENGINE_PARTS = 4, SW_ENGINE_CREDITS = 5 };

struct sw_tune_engine {
	uint64_t rate_bit_s;  /* rate of every rank's payload */
	uint64_t later_bit_s; /* rate of rank 0 from the middle of the job on */
	uint32_t seed;
	bool is_json;
};

/* sw_tune_engine - a server and two ranks on this machine, one job: tune,
 * walk the grid, slow rank 0's link down, see it noticed and tuned again, walk
 * the grid again.  @argv is that of this command, which is called again to be
 * the ranks.  Returns 0, or 1 with the reason on stderr. */
int sw_tune_engine(const struct sw_tune_engine *o, int argc, char **argv);

/* sw_tune_engine_rank - be one of the ranks; rank 0 reports.  As above. */
int sw_tune_engine_rank(const struct sw_tune_engine *o);

#endif
