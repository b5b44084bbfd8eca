/* plain.h - jobs without the engine: a ring and a parameter server over TCP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Baselines, over the model of CUBIC (tcp.h).  Tensors go in the order in which
 * they become ready, and no frame carries elements, so no oracle checks them.
 *
 * The ring fuses tensors to buckets of at least 25 MiB and sums one chunk of a
 * bucket for each agent.  The parameter server splits tensors from 4 MB on over
 * all servers; smaller ones go to one server each, in turns. A server returns a
 * part when all agents have pushed it.
 */
#ifndef SW_APPS_LAB_SIM_PLAIN_H
#define SW_APPS_LAB_SIM_PLAIN_H

#include <stdint.h>

struct sw_sim;
struct sw_sim_job;
struct sw_sim_job_result;
struct sw_sim_plain;

/* sw_sim_plain_open - prepare the flows of all jobs that want them, once other
 * traffic is there.  Close them also after an error: SW_ECONF, in s->why. */
int sw_sim_plain_open(struct sw_sim *s);
void sw_sim_plain_close(struct sw_sim_plain *p);

/* sw_sim_plain_start - let the agents of a job begin. */
void sw_sim_plain_start(struct sw_sim_job *j);

/* sw_sim_plain_count - add what the flows sent again. */
void sw_sim_plain_count(
	const struct sw_sim_plain *p, struct sw_sim_job_result *r);

#endif
