/* sim.h - one simulation: a network with its jobs.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_SIM_H
#define SW_APPS_LAB_SIM_SIM_H

#include <stdio.h>

#include "apps/lab/sim/arena.h"
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
	/* [n_lanes], one per lcore; calls use the first */
	struct sw_worker *worker;
	struct sw_lane *lanes; /* between lane 0 and each other lane */
	struct sw_sim_lane_core *cores;
	uint32_t n_lanes, n_built; /* lanes that have built the declaration */
	uint32_t rank, n_local, endpoint;
	void **to;   /* [tensor] destination of the sums */
	void **from; /* [tensor * n_local + local] source */
	/* [tensor] sums of its own pushes; NULL: as the job's high */
	float **low;
	bool is_open, is_running, is_declared, is_admitted, is_failed;
	uint32_t round, stage; /* stage: forward layers, then backward layers */
	bool is_computing;
	uint64_t stage_end_ns, stage_begin_ns;
	struct sw_sim_colls *colls; /* NULL: it uses push_pull */
	struct sw_sim_graph *graph; /* NULL: it computes layers */
	uint32_t *n_open;           /* by layer: tensors whose sum is open */
	uint32_t n_done;            /* summed tensors of the round */
	uint64_t *pushed_ns;        /* by tensor: time of its last push */
	/* By class: summed tensors of the round, for a record. */
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
	uint32_t *nodes;         /* nodes of the agents */
	const uint32_t *servers; /* current servers: home, or a roster's */
	uint32_t *home;
	/* by node: whether its server was ever one of the job's */
	bool *has_used;
	uint32_t most_servers; /* most servers in any roster */
	struct sw_sim_change change;
	uint32_t stop_round; /* first round that agents do not begin */
	uint64_t *n_elems;   /* [n_tensors] */
	/* One trace for all agents, or one for each; the first determines the
	 * tensors. */
	struct sw_chakra *traces;
	uint32_t n_traces; /* 0: the job has no trace */
	/* [n_tensors] enum sw_coll_kind; NULL: all are push_pulls */
	uint8_t *kinds;
	struct sw_sim_straggler straggler;
	uint32_t n_tensors;
	struct sw_sim_layer *layers;
	uint32_t n_layers;
	uint64_t bytes; /* bytes of all tensors */
	/* n_done: agents that have ended the round */
	uint32_t n_rounds, n_done;
	uint64_t *round_ends;
	uint64_t *urgent; /* times of the most urgent tensor */
	uint64_t n_urgent, n_wrong;
	/* [tensor] sums of all pushes; NULL: a synchronous job, or no oracle */
	float **high;
	struct sw_sim_plain *plain; /* NULL: the engine sums */
	/* Set together with plain: called when an agent has pushed @tensor, in
	 * the order of all pushes. */
	void (*push)(struct sw_sim_agent *a, uint32_t tensor);
	bool is_done;
};

struct sw_sim {
	const struct sw_sim_desc *desc;
	struct sw_sim_net net;
	struct sw_env env;
	struct sw_sum kernels;
	struct sw_log log;
	struct sw_sim_arena arena; /* memory of the engines' tables */
	uint64_t rng;
	/* The buffer that all tensors share if frames carry no payloads, and
	 * the smaller buffers of earlier jobs. */
	void *scratch, *old_scratch[SW_SIM_JOBS];
	uint64_t scratch_bytes;
	/* by core of the network; NULL: no server */
	struct sw_server **servers;
	/* by node: used part of the quota of its cores */
	_Atomic uint64_t *all_used;
	struct sw_sim_guests guests;
	struct sw_sim_job *jobs;
	uint32_t n_jobs, n_done;
	struct sw_sim_traffic *traffic; /* NULL: none */
	struct sw_sim_record *record;   /* NULL: nothing */
	struct sw_chrome trace;         /* the record's trace; .to NULL: none */
	struct sw_sim_flap flaps[SW_SIM_FLAPS];
	struct sw_sim_roster rosters[SW_SIM_ROSTERS];
	char why[SW_SIM_TEXT]; /* "": no error */
};

/* sw_sim_open - build the simulation of @d, which is borrowed.  Errors:
 * SW_ECONF, SW_ENOENT, SW_ENOMEM; s->why has one sentence.  The caller must
 * close @s even after an error. */
int sw_sim_open(struct sw_sim *s, const struct sw_sim_desc *d);

/* sw_sim_go - run the simulation to its end, and fill @out. */
void sw_sim_go(struct sw_sim *s, struct sw_sim_result *out);
void sw_sim_end(struct sw_sim *s);

/* --- jobs.c --- */

/* sw_sim_jobs_open - prepare all jobs and servers.  Errors: as sw_sim_open. */
int sw_sim_jobs_open(struct sw_sim *s);
void sw_sim_jobs_close(struct sw_sim *s);

/* sw_sim_servers_check - check the current or a later list of a job's servers,
 * and count the servers on its agents' nodes.  Errors: as sw_sim_open.
 * sw_sim_server_open - let a node serve, unless it already serves. */
int sw_sim_servers_check(const struct sw_sim_job *j, const uint32_t *servers,
	uint32_t n, uint32_t *n_colocated);
int sw_sim_server_open(struct sw_sim_job *j, uint32_t node);

/* sw_sim_agent_open - start an agent, or start it again with the job's current
 * servers. */
void sw_sim_agent_open(struct sw_sim_agent *a);

/* sw_sim_agent_compute - advance until the agent must wait.  Returns the time
 * until which it waits.
 * sw_sim_agent_done - note that a tensor has been summed. */
uint64_t sw_sim_agent_compute(struct sw_sim_agent *a, uint64_t now_ns);
void sw_sim_agent_done(struct sw_sim_agent *a, uint32_t tensor);

/* sw_sim_memory - return zeros whose pages take no memory until they are
 * written. */
void *sw_sim_memory(uint64_t bytes);
void sw_sim_memory_free(void *mem);

#endif
