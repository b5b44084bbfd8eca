/* roster.h - servers of a job that change by schedule.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine can change a job's servers only while no agent has joined: all
 * agents leave, and join again with another list.  They keep their memory.  A
 * change waits for the end of the current round.  If servers were cut off, the
 * agents' workers fail once these servers have been silent for dead_after; then
 * all agents join again and repeat the round.
 */
#ifndef SW_APPS_LAB_SIM_ROSTER_H
#define SW_APPS_LAB_SIM_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

struct sw_sim;
struct sw_sim_job;
struct sw_sim_desc_roster;

/* A job's change of its servers. */
struct sw_sim_change {
	bool is_on;
	const uint32_t *servers; /* servers after the change */
	uint32_t n_servers;
	uint32_t n_left; /* agents that have left */
	uint32_t timer;  /* timer that lets agents join again */
	/* Set during a change. on_round: a round has ended. on_left: an agent's
	 * worker has left. */
	void (*on_round)(struct sw_sim_job *j);
	void (*on_left)(struct sw_sim_job *j);
};

struct sw_sim_roster {
	const struct sw_sim_desc_roster *desc;
	struct sw_sim_job *job;
	uint32_t *servers, n_servers;
	uint64_t begun_ns;
	bool is_in; /* the job has these servers, or changes to them */
};

/* sw_sim_rosters_open - check all rosters, open their servers and set their
 * timers.  Errors: as sw_sim_open.
 * sw_sim_rosters_close - free them. */
int sw_sim_rosters_open(struct sw_sim *s);
void sw_sim_rosters_close(struct sw_sim *s);

#endif
