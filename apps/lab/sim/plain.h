/* plain.h - jobs without the engine: a ring and a parameter server over TCP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * These baselines use the model of CUBIC (tcp.h).  Tensors are sent in the
 * order in which they become ready.  Frames carry no elements, so no oracle
 * checks them.
 *
 * The ring fuses tensors into buckets of at least 25 MiB, and splits a bucket
 * into one chunk per agent.  The parameter server splits tensors of 4 MB or
 * more over all servers; each smaller tensor goes to one server, in turn.  A
 * server returns a part when all agents have pushed it.
 */
#ifndef SW_APPS_LAB_SIM_PLAIN_H
#define SW_APPS_LAB_SIM_PLAIN_H

#include <stdint.h>

struct sw_sim;
struct sw_sim_job;
struct sw_sim_job_result;
struct sw_sim_plain;

/* sw_sim_plain_open - prepare the flows of all jobs with such a transport,
 * after other traffic has been opened.  Close them even after an error:
 * SW_ECONF, in s->why. */
int sw_sim_plain_open(struct sw_sim *s);
void sw_sim_plain_close(struct sw_sim_plain *p);

/* sw_sim_plain_start - start the agents of a job. */
void sw_sim_plain_start(struct sw_sim_job *j);

/* sw_sim_plain_count - add the retransmissions of the flows. */
void sw_sim_plain_count(
	const struct sw_sim_plain *p, struct sw_sim_job_result *r);

#endif
