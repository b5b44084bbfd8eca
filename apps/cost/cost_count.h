/* cost_count.h - instructions by stage, as callgrind counts them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_COST_COST_COUNT_H
#define SW_APPS_COST_COST_COUNT_H

#include "apps/cost/cost_step.h"

/* The purpose of an instruction. */
enum cost_part {
	COST_ENGINE, /* everything else */
	COST_CRC,
	COST_ADD,
	COST_COPY,
	COST_PORT, /* the wire, which replaces a driver */
	COST_PARTS,
};

struct cost_counts {
	struct cost_steps steps;
	uint64_t instructions[COST_N_STAGES][COST_PARTS];
};

/* sw_cost_count - run "sumwire-lab engine --stepped" of @shape under valgrind.
 * Errors, all printed: SW_ENOENT valgrind is missing; SW_EIO. */
int sw_cost_count(const struct cost_shape *shape, struct cost_counts *out);

#endif
