/* replay_tune.c - replay --tune: rank 0 tunes the running job.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/lab/replay.h"
#include "engine/base/error.h"
#include "pmd/client/tuner/tune_live.h"

struct tuned {
	struct sw_tune_live live;
	uint32_t n, n_wanted; /* iterations since the tuner settled */
};

static int each(void *ctx, struct sw_client *client, double iteration_s)
{
	struct tuned *t = ctx;
	int err;

	if (t->n == t->n_wanted)
		return SW_REPLAY_OVER;
	err = t->live.client ? sw_tune_live_observe(&t->live, iteration_s)
			     : sw_tune_live_begin(&t->live, client, 1, 0);
	if (err)
		return err;
	if (t->live.tuner.is_searching || t->live.is_waiting) {
		t->n = 0;
		return SW_REPLAY_FORGET;
	}
	return ++t->n < t->n_wanted ? SW_REPLAY_COUNTS : SW_REPLAY_OVER;
}

int sw_replay_tuned(const struct sw_replay *r, struct sw_replay_result *out)
{
	struct tuned t = {.n_wanted = r->n_iters};
	struct sw_replay tuned = *r;
	int err;

	tuned.each = each;
	tuned.each_ctx = &t;
	err = sw_replay_rank(&tuned, out);
	if (err || !t.live.client || t.n == t.n_wanted)
		return err;
	fprintf(stderr,
		"sumwire-lab replay: --tune: no result after %llu iterations\n",
		(unsigned long long)t.live.n);
	return SW_ETIMEDOUT;
}
