/* replay.h - the parts of sumwire-lab replay.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_REPLAY_H
#define SW_APPS_LAB_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/json.h"
#include "apps/lab/model.h"
#include "apps/lab/plan_sim.h"

struct sw_client;

enum { SW_REPLAY_WARM_UP = 2 };

struct sw_replay {
	const char *model_name, *policy, *agent, *report;
	const char *device;  /* back end through which tensors go; NULL: none */
	uint64_t rate_bit_s; /* payload, each way, as the model sees it; 0: not
				given */
	uint64_t partition_bytes, credit_bytes; /* 0: the policy's own */
	uint64_t copy_bit_s, piece_bytes; /* the device's, or a simulated one's;
					     0: no copies */
	uint32_t n_ranks, n_iters;
	double dilation; /* all times are so many times longer; 0: choose */
	bool has_barrier, is_loopback, is_probe, is_table, is_tuned, is_json;
	struct sw_model model;
	/* Called at rank 0 after every iteration, with its time, undilated;
	 * NULL: nobody.  Returns a negative error, which ends the run, or an
	 * enum sw_replay_verdict. */
	int (*each)(void *ctx, struct sw_client *client, double iteration_s);
	void *each_ctx;
};

enum sw_replay_verdict {
	SW_REPLAY_COUNTS,
	SW_REPLAY_OVER,   /* the job may end */
	SW_REPLAY_FORGET, /* it does not count, nor do those before it */
};

/* Measurements of the processes of one run; times undilated. */
struct sw_replay_result {
	double iteration_s; /* the median; 0: a probe */
	double spread;     /* slowest less fastest iteration, over the median */
	double bytes_s;    /* probe: payload each way that agents carry */
	double part_bytes; /* probe: what p3 has in one part, mean */
	double latency_s;  /* probe: of the smallest tensor, median */
	/* Cores that others, or a hypervisor, took from this machine. */
	double other_cores;
};

/* One policy's iterations, and what they are held against; times undilated. */
struct sw_replay_outcome {
	struct sw_replay_result measured;
	double fifo_s; /* 0: not measured */
	double ideal_s, simulated_s;
	double copied_s; /* simulated, with copies to a device; 0: not */
	double dilation;
	double latency_s; /* from a part's last byte to its result */
	double credit_s;  /* the same to its credit */
};

/* sw_replay_predict - compute what r->model, r->policy and r->rate_bit_s take
 * without a machine: fills ideal_s, and simulated_s and copied_s with @o's
 * latency_s and credit_s. With r->device the first two have its copies. */
int sw_replay_predict(const struct sw_replay *r, struct sw_replay_outcome *o);

/* sw_replay_dilate - can the machine carry the rate?  If not, all times grow,
 * unless r->dilation says how much.  Fills dilation, latency_s and credit_s. */
int sw_replay_dilate(const struct sw_replay *r, struct sw_replay_outcome *o);

/* sw_replay_write - an outcome as one object of @j. */
void sw_replay_write(struct sw_json *j, const struct sw_replay *r,
	const struct sw_replay_outcome *o);

/* sw_replay_table - every policy, at the rates and with the models of the
 * paper's figure 13, or those of @r.  Returns as sw_replay_rank. */
int sw_replay_table(struct sw_replay *r);

/* sw_replay_rank - be one rank: attach to the agent, iterate.  Returns 0 or
 * a negative error, which was printed. */
int sw_replay_rank(const struct sw_replay *r, struct sw_replay_result *out);

/* sw_replay_tuned - the same, and rank 0 tunes partition and credit of all
 * meanwhile; iterations count when the tuner has settled. */
int sw_replay_tuned(const struct sw_replay *r, struct sw_replay_result *out);

/* sw_replay_loopback - a server, r->n_ranks agents and as many ranks on
 * this machine, for one run under @policy, instead of that of @r.  A terminal
 * shows what is being run.
 * @is_probe  no iterations: bytes_s, part_bytes and latency_s
 * @dilation  r->rate_bit_s becomes so much less; 0: no pacing, for a probe
 * Returns as above. */
int sw_replay_loopback(const struct sw_replay *r, bool is_probe,
	const char *policy, double dilation, struct sw_replay_result *out);

#endif
