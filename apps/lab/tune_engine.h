/* tune_engine.h - sumwire-lab tune --engine: the landscape of the real engine.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_TUNE_ENGINE_H
#define SW_APPS_LAB_TUNE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { SW_ENGINE_PARTS = 4, SW_ENGINE_CREDITS = 5 };

struct sw_tune_engine {
	uint64_t rate_bit_s;  /* payload rate of every rank */
	uint64_t later_bit_s; /* rate of rank 0 after the middle of the job */
	uint32_t seed;
	bool is_json;
};

/* sw_tune_engine - run one job with a server and two ranks on this machine:
 * tune, walk the grid, slow rank 0's link down, wait until the tuner notices it
 * and has tuned again, walk the grid again.  @argv is the command line of this
 * command, which runs again as each rank.  Returns 0, or 1 with the reason on
 * stderr. */
int sw_tune_engine(const struct sw_tune_engine *o, int argc, char **argv);

/* sw_tune_engine_rank - be one of the ranks; rank 0 reports.  Returns as
 * sw_tune_engine. */
int sw_tune_engine_rank(const struct sw_tune_engine *o);

#endif
