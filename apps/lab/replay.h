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
	/* back end of the device that holds the tensors; NULL: none */
	const char *device;
	/* payload rate each way, in the model's time; 0: not given */
	uint64_t rate_bit_s;
	uint64_t partition_bytes, credit_bytes; /* 0: the policy's default */
	/* copies of the real or simulated device; 0: no copies */
	uint64_t copy_bit_s, piece_bytes;
	uint32_t n_ranks, n_iters;
	double dilation; /* factor of all times; 0: choose it */
	bool has_barrier, is_loopback, is_probe, is_table, is_tuned, is_json;
	struct sw_model model;
	/* Called at rank 0 after every iteration, with its time, undilated;
	 * NULL: no call.  Returns an enum sw_replay_verdict, or a negative
	 * error, which ends the run. */
	int (*each)(void *ctx, struct sw_client *client, double iteration_s);
	void *each_ctx;
};

enum sw_replay_verdict {
	SW_REPLAY_COUNTS,
	SW_REPLAY_OVER,   /* the job may end */
	SW_REPLAY_FORGET, /* discard this iteration and those before it */
};

/* Measurements of the processes of one run.  Times are undilated. */
struct sw_replay_result {
	double iteration_s; /* median; 0: the run was a probe */
	/* slowest minus fastest iteration, over the median */
	double spread;
	double bytes_s;    /* probe: payload rate each way that agents carry */
	double part_bytes; /* probe: mean size of p3's parts */
	double latency_s;  /* probe: median time of the smallest tensor */
	/* Cores that other processes, or a hypervisor, took from this run. */
	double other_cores;
};

/* Iterations of one policy, and the values to compare them with.  Times are
 * undilated. */
struct sw_replay_outcome {
	struct sw_replay_result measured;
	double fifo_s; /* 0: not measured */
	double ideal_s, simulated_s;
	double copied_s; /* simulated, with copies to a device; 0: without */
	double dilation;
	double latency_s; /* from a part's last byte sent to its result */
	double credit_s;  /* from a part's last byte sent to its credit */
};

/* sw_replay_predict - compute the times of r->model with r->policy at
 * r->rate_bit_s without a machine.  Fills ideal_s, and with @o's latency_s and
 * credit_s also simulated_s and copied_s.  With r->device the first two include
 * its copies. */
int sw_replay_predict(const struct sw_replay *r, struct sw_replay_outcome *o);

/* sw_replay_dilate - measure whether the machine can carry the rate.  If not,
 * all times must grow, by r->dilation if it is set.  Fills dilation, latency_s
 * and credit_s. */
int sw_replay_dilate(const struct sw_replay *r, struct sw_replay_outcome *o);

/* sw_replay_write - write an outcome as one object of @j. */
void sw_replay_write(struct sw_json *j, const struct sw_replay *r,
	const struct sw_replay_outcome *o);

/* sw_replay_table - run every policy, at the rates and with the models of the
 * paper's figure 13, or with those of @r.  Returns as sw_replay_rank. */
int sw_replay_table(struct sw_replay *r);

/* sw_replay_rank - be one rank: attach to the agent and iterate.  Prints
 * errors.  Returns 0 or a negative error. */
int sw_replay_rank(const struct sw_replay *r, struct sw_replay_result *out);

/* sw_replay_tuned - be a rank; rank 0 also tunes partition and credit of all
 * ranks.  Iterations count after the tuner has settled. */
int sw_replay_tuned(const struct sw_replay *r, struct sw_replay_result *out);

/* sw_replay_loopback - run a server, r->n_ranks agents and as many ranks on
 * this machine, once, with @policy instead of @r's policy.  A terminal shows
 * the progress.  Returns as sw_replay_rank.
 * @is_probe  run no iterations; set bytes_s, part_bytes and latency_s
 * @dilation  divides r->rate_bit_s; 0: no pacing, for a probe */
int sw_replay_loopback(const struct sw_replay *r, bool is_probe,
	const char *policy, double dilation, struct sw_replay_result *out);

#endif
