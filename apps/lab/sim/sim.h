/* sim.h - one simulation: a network, and the jobs on it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_SIM_H
#define SW_APPS_LAB_SIM_SIM_H

#include <stdio.h>

#include "apps/lab/sim/chakra.h"
#include "apps/lab/sim/coll.h"
#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/flap.h"
#include "apps/lab/sim/graph.h"
#include "apps/lab/sim/guests.h"
#include "apps/lab/sim/net.h"
#include "apps/lab/sim/perfetto.h"
#include "apps/lab/sim/plain.h"
#include "apps/lab/sim/result.h"
#include "apps/lab/sim/roster.h"
#include "apps/lab/sim/straggler.h"
#include "apps/lab/sim/truth.h"
#include "engine/server/server.h"
#include "engine/worker/worker.h"
#include "sum/sum.h"

struct sw_sim;
struct sw_sim_job;
struct sw_sim_traffic;
struct sw_sim_record;

/* Tensors that become ready together, and the times of their layer. */
struct sw_sim_layer {
	uint64_t forward_ns, backward_ns;
	uint32_t first, n;
};

struct sw_sim_agent {
	struct sw_sim_job *job;
	struct sw_sim_node *node;
	/* [n_lanes], one for each lcore: calls go to the first. */
	struct sw_worker *worker;
	struct sw_lane *lanes; /* between it and each of the others */
	struct sw_sim_lane_core *cores;
	uint32_t n_lanes,
		n_built; /* built: lanes that have the declared ones */
	uint32_t rank, n_local, endpoint;
	void **to;   /* [tensor] where sums go */
	void **from; /* [tensor * n_local + local] */
	float **low; /* [tensor] sums of its pushes; NULL: as the job's high */
	bool is_open, is_running, is_declared, is_admitted, is_failed;
	uint32_t round, stage; /* stages: forward layers, then backward */
	bool is_computing;
	uint64_t stage_end_ns, stage_begin_ns;
	struct sw_sim_colls *colls; /* NULL: it has push_pulls */
	struct sw_sim_graph *graph; /* NULL: it has layers */
	uint32_t *n_open;    /* by layer: tensors that are being summed */
	uint32_t n_done;     /* tensors of the round that are summed */
	uint64_t *pushed_ns; /* by tensor: when it was last pushed */
	/* By class: tensors of the round that are summed; a record's. */
	uint32_t n_class_done[SW_N_CLASSES];
	uint64_t rng;
	char text[SW_TEXT_MAX];
};

struct sw_sim_job {
	struct sw_sim *sim;
	const struct sw_sim_desc_job *desc;
	struct sw_params params;
	struct sw_sim_truth truth;
	struct sw_sim_agent *agents;
	uint32_t n_agents, n_servers, n_colocated, n_home;
	uint32_t *nodes;         /* of agents */
	const uint32_t *servers; /* the current ones: home, or a roster's */
	uint32_t *home;
	bool *has_used;        /* by node: its server was one of the job's */
	uint32_t most_servers; /* of all rosters */
	struct sw_sim_change change;
	uint32_t stop_round; /* agents do not begin this one */
	uint64_t *n_elems;   /* [n_tensors] */
	/* One for all agents, or one for each; the first says what is summed.
	 */
	struct sw_chakra *traces;
	uint32_t n_traces; /* 0: none */
	uint8_t *kinds;    /* [n_tensors] enum sw_coll_kind; NULL: push_pulls */
	struct sw_sim_straggler straggler;
	uint32_t n_tensors;
	struct sw_sim_layer *layers;
	uint32_t n_layers;
	uint64_t bytes;            /* of all tensors */
	uint32_t n_rounds, n_done; /* agents that have ended the round */
	uint64_t *round_ends;
	uint64_t *urgent; /* times of the most urgent tensor */
	uint64_t n_urgent, n_wrong;
	float **high; /* [tensor] sums of all pushes; NULL: it is synchronous,
			 or not checked */
	struct sw_sim_plain *plain; /* NULL: the engine sums */
	/* Set with it: an agent has pushed @tensor, in the order of all. */
	void (*push)(struct sw_sim_agent *a, uint32_t tensor);
	bool is_done;
};

struct sw_sim {
	const struct sw_sim_desc *desc;
	struct sw_sim_net net;
	struct sw_env env;
	struct sw_sum kernels;
	struct sw_log log;
	uint64_t rng, mem_bytes, most_mem_bytes;
	/* The buffer that all tensors share when frames carry no payloads, and
	 * the smaller ones of earlier jobs. */
	void *scratch, *old_scratch[SW_SIM_JOBS];
	uint64_t scratch_bytes;
	struct sw_server **servers; /* by core of the network; NULL: none */
	_Atomic uint64_t *all_used; /* by node: of its cores' quota */
	struct sw_sim_guests guests;
	struct sw_sim_job *jobs;
	uint32_t n_jobs, n_done;
	struct sw_sim_traffic *traffic; /* NULL: none */
	struct sw_sim_record *record;   /* NULL: nothing */
	struct sw_chrome trace;         /* its part; .to NULL: none */
	struct sw_sim_flap flaps[SW_SIM_FLAPS];
	struct sw_sim_roster rosters[SW_SIM_ROSTERS];
	char why[SW_SIM_TEXT]; /* "": it has not failed */
};

/* sw_sim_open - build the simulation of @d, which is borrowed.  Errors:
 * SW_ECONF, SW_ENOENT, SW_ENOMEM; s->why has one sentence.  Close @s also
 * then. */
int sw_sim_open(struct sw_sim *s, const struct sw_sim_desc *d);

/* sw_sim_go - let it run to its end, and fill @out. */
void sw_sim_go(struct sw_sim *s, struct sw_sim_result *out);
void sw_sim_end(struct sw_sim *s);

/* --- jobs.c, between sim.c and itself --- */

/* sw_sim_jobs_open - prepare all jobs and servers; as sw_sim_open. */
int sw_sim_jobs_open(struct sw_sim *s);
void sw_sim_jobs_close(struct sw_sim *s);

/* sw_sim_servers_check - check the servers that a job has or will have, and
 * count those on its agents' nodes.  Errors: as sw_sim_open.
 * sw_sim_server_open - let a node serve, which may do so already. */
int sw_sim_servers_check(const struct sw_sim_job *j, const uint32_t *servers,
	uint32_t n, uint32_t *n_colocated);
int sw_sim_server_open(struct sw_sim_job *j, uint32_t node);

/* sw_sim_agent_open - start an agent, or start it again with the job's servers
 * of now. */
void sw_sim_agent_open(struct sw_sim_agent *a);

/* sw_sim_agent_compute - go on until something has to be waited for; returns
 * until when.
 * sw_sim_agent_done - a tensor has been summed. */
uint64_t sw_sim_agent_compute(struct sw_sim_agent *a, uint64_t now_ns);
void sw_sim_agent_done(struct sw_sim_agent *a, uint32_t tensor);

/* sw_sim_memory - return zeros that take no pages before they are written. */
void *sw_sim_memory(uint64_t bytes);
void sw_sim_memory_free(void *mem);

#endif
