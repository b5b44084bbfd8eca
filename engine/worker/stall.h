/* stall.h - warn about tensors without progress, or give up.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_STALL_H
#define SW_ENGINE_WORKER_STALL_H

#include "engine/worker/wtensor.h"

/* sw_missing_text - name the ranks that @t, or with @of_kin any stream of its
 * group, waits for: "rank 5 of 8", "ranks 1, 4-7 of 8", "a server"; cut to
 * @room bytes: "ranks 1, ... of 8".  Returns @out. */
enum { SW_MISSING_TEXT = 96, SW_MISSING_LEAST = 34 };
const char *sw_missing_text(const struct sw_worker *w,
	const struct sw_wtensor *t, bool of_kin, uint32_t room,
	char out[SW_MISSING_TEXT]);

/* sw_stall_tick - look for tensors without progress; warn about them in one
 * line, or give up at stall_limit.  Call it at look.at_ns; returns when to
 * call again. */
uint64_t sw_stall_tick(struct sw_worker *w);

#endif
