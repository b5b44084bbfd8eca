/* bench_instructions.h - instructions by stage, as a table.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_BENCH_BENCH_INSTRUCTIONS_H
#define SW_APPS_BENCH_BENCH_INSTRUCTIONS_H

#include "apps/bench/bench_nodes.h"

/* sw_bench_instructions - count and print @n shapes.  Returns 0 or a negative
 * error, which was printed. */
int sw_bench_instructions(
	const struct bench_shape *shapes, uint32_t n, bool is_json);

/* sw_bench_stepped - the run that is counted; prints its stages' units, as the
 * above reads them.  Returns 0 or a negative error, which was printed. */
int sw_bench_stepped(const struct bench_shape *shape);

#endif
