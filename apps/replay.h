/* replay.h - the parts of sumwire replay.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_REPLAY_H
#define SW_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/model.h"
#include "apps/plan_sim.h"

struct sw_client;

enum { SW_REPLAY_WARM_UP = 2, SW_REPLAY_REPORT = 128 };

struct sw_replay {
	const char *model_name, *policy, *agent, *report;
	uint64_t rate_bit_s; /* of payload, each way, as the model sees it */
	uint64_t partition_bytes, credit_bytes; /* 0: the policy's own */
	uint32_t n_workers, n_iters;
	double dilation; /* all times are so many times longer; 0: choose */
	bool has_barrier, is_loopback, is_probe, is_json;
	struct sw_model model;
	/* Told to rank 0 after every iteration, with its time, undilated; NULL:
	 * nobody.  A negative error ends the run; 1: the job may end. */
	int (*each)(void *ctx, struct sw_client *client, double iteration_s);
	void *each_ctx;
};

/* What the processes of one run measured; times undilated. */
struct sw_replay_result {
	double iteration_s; /* the median; 0: a probe */
	double bytes_s;     /* probe: payload each way that agents carry */
	double latency_s;   /* probe: of the smallest tensor, median */
};

/* sw_replay_worker - be one worker: attach to the agent, iterate.  Returns 0 or
 * a negative error, which was printed. */
int sw_replay_worker(const struct sw_replay *r, struct sw_replay_result *out);

/* sw_replay_loopback - a server, r->n_workers agents and as many workers on
 * this machine, for one run.  @dilation and @policy instead of those of @r;
 * @policy NULL: a probe, without pacing.  Returns as above. */
int sw_replay_loopback(const struct sw_replay *r, const char *policy,
	double dilation, struct sw_replay_result *out);

#endif
