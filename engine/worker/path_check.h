/* path_check.h - check, while the job runs, that paths carry its payload.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_PATH_CHECK_H
#define SW_ENGINE_WORKER_PATH_CHECK_H

#include "engine/worker/worker.h"

struct sw_link;

/* A check of a path while the job runs. */
struct sw_path_check {
	uint32_t n_tries; /* PROBEs sent: full, small, full, ... */
	uint32_t n_small; /* small ones that came back */
	bool is_good;     /* a full one came back */
};

/* sw_paths_doubt_ns - return how long a tensor may lack results before the
 * paths are checked.
 * sw_paths_check - check them while @is_slow, a tensor does; called in each
 * sweep (sw_stall_tick). Fails the worker if a path stops carrying the job's
 * payload, within dead_after.
 * sw_link_build_check, sw_link_on_check - build the next PROBE; take an answer.
 */
uint64_t sw_paths_doubt_ns(const struct sw_worker *w);
void sw_paths_check(struct sw_worker *w, bool is_slow);
uint32_t sw_link_build_check(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_link_on_check(
	struct sw_worker *w, struct sw_link *l, const struct sw_header *h);

#endif
