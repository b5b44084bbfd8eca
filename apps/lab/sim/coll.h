/* coll.h - collectives of an agent, in libsumwire's pieces.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each kind of a job's collectives has a stream of all ranks.  A collective
 * enters the stream in pieces of about 1 MiB, after earlier collectives.  Ranks
 * use their buffers in place: a rank's own part of the buffer is its input of
 * an all_gather, and its output of a reduce_scatter.
 */
#ifndef SW_APPS_LAB_SIM_COLL_H
#define SW_APPS_LAB_SIM_COLL_H

#include <stdint.h>

struct sw_sim_agent;
struct sw_sim_job;

/* sw_sim_colls_open - prepare the collectives of an agent.  The job's kinds
 * must be set.
 * sw_sim_colls_reset - drop waiting collectives, once the job has ended.
 * sw_sim_colls_close - free them; may be NULL. */
struct sw_sim_colls *sw_sim_colls_open(const struct sw_sim_job *j);
void sw_sim_colls_reset(struct sw_sim_colls *c);
void sw_sim_colls_close(struct sw_sim_colls *c);

/* sw_sim_colls_declare - declare the streams.  Errors: as sw_worker_declare. */
int sw_sim_colls_declare(struct sw_sim_agent *a);

/* sw_sim_colls_call - call the collective of @tensor in the agent's round.
 * sw_sim_colls_submit - submit pieces until the streams are full.  Errors: as
 * sw_worker_coll. */
void sw_sim_colls_call(struct sw_sim_agent *a, uint32_t tensor);
int sw_sim_colls_submit(struct sw_sim_agent *a);

/* sw_sim_colls_done - note that a piece of a local rank has completed.  Returns
 * the tensor if it was its last piece, otherwise UINT32_MAX. */
uint32_t sw_sim_colls_done(struct sw_sim_agent *a, uint64_t cookie);

/* sw_sim_colls_wrong - count the wrong elements of a result. */
uint64_t sw_sim_colls_wrong(
	const struct sw_sim_agent *a, uint32_t tensor, uint32_t round);

#endif
