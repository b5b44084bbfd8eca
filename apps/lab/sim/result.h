/* result.h - the figures of a run.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_RESULT_H
#define SW_APPS_LAB_SIM_RESULT_H

#include <stdint.h>

#include "apps/lab/sim/desc.h"

struct sw_sim_job_result {
	char name[SW_SIM_NAME];
	uint32_t n_agents, n_servers, n_rounds, n_wanted;
	uint64_t bytes;         /* per agent and round */
	uint64_t goodput_bit_s; /* per agent */
	uint64_t round_ns[3];   /* quartiles */
	uint64_t urgent_ns[2];  /* most urgent tensor: median, 99 % */
	uint64_t n_again, n_timeouts, n_wrong;
};

struct sw_sim_traffic_result {
	char name[SW_SIM_NAME];
	uint64_t goodput_bit_s; /* sum of all flows */
	uint64_t n_again, n_timeouts;
};

struct sw_sim_result {
	struct sw_sim_job_result jobs[SW_SIM_JOBS];
	uint32_t n_jobs;
	struct sw_sim_traffic_result traffic[SW_SIM_TRAFFIC];
	uint32_t n_traffic;
	uint64_t time_ns; /* virtual time */
	uint64_t n_frames, n_dropped, n_lost, n_marked, n_full;
	uint64_t most_queued; /* most bytes in a queue of a switch */
	char most_from[SW_SIM_NAME], most_to[SW_SIM_NAME];
	char why[SW_SIM_TEXT]; /* "": no error */
	/* Cost of the run itself, for --profile. */
	uint64_t n_events, n_hops, most_frames;
};

/* sw_sim_print - print the result as tables to stdout.
 * sw_sim_print_json - write it as one JSON object.  Returns 0 or SW_EIO. */
void sw_sim_print(const struct sw_sim_result *r);
int sw_sim_print_json(const struct sw_sim_result *r, FILE *f);

#endif
