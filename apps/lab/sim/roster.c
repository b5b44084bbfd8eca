/* roster.c - servers of a job that change by schedule.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/sim.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

/* --- a change of servers --- */

/* Restart an agent.  It discards everything after the last round that all
 * agents have completed. */
static void restart(struct sw_sim_agent *a)
{
	a->round = a->job->n_rounds;
	a->stage = a->n_done = 0;
	a->is_computing = false;
	memset(a->n_open, 0, a->job->n_layers * sizeof(*a->n_open));
	memset(a->n_class_done, 0, sizeof(a->n_class_done));
	if (a->colls)
		sw_sim_colls_reset(a->colls);
	if (a->graph)
		sw_sim_graph_reset(a->graph);
	sw_sim_agent_open(a);
}

/* Let all agents join again, after all have left. */
static uint64_t join(void *ctx, uint64_t now_ns)
{
	struct sw_sim_job *j = ctx;
	struct sw_sim_change *c = &j->change;

	(void)now_ns;
	if (!c->is_on)
		return UINT64_MAX;
	j->servers = c->servers;
	j->n_servers = c->n_servers;
	j->stop_round = j->desc->n_rounds;
	j->n_done = c->n_left = 0;
	c->is_on = false;
	for (uint32_t r = 0; r < j->n_agents; r++)
		restart(&j->agents[r]);
	return UINT64_MAX;
}

static void on_left(struct sw_sim_job *j)
{
	struct sw_sim_net *net = &j->sim->net;

	if (++j->change.n_left == j->n_agents)
		sw_sim_put(&net->events, net->now_ns, SW_SIM_TIMER,
			j->change.timer);
}

static void on_round(struct sw_sim_job *j)
{
	if (j->n_rounds < j->stop_round)
		return;
	for (uint32_t r = 0; r < j->n_agents; r++) {
		sw_worker_leave(j->agents[r].worker, NULL);
		sw_loop_look(j->agents[r].node->loop);
		sw_sim_node_poke(j->agents[r].node);
	}
}

/* Return the round after the most advanced agent's round. */
static uint32_t next_round(const struct sw_sim_job *j)
{
	uint32_t round = 0;

	for (uint32_t r = 0; r < j->n_agents; r++)
		round = (uint32_t)sw_max64(round, j->agents[r].round);
	return (uint32_t)sw_min64(round + 1, j->desc->n_rounds);
}

static void change(
	struct sw_sim_job *j, const uint32_t *servers, uint32_t n, bool is_cut)
{
	j->change.servers = servers;
	j->change.n_servers = n;
	if (!j->agents[0].is_open) { /* the job has not started */
		j->servers = servers;
		j->n_servers = n;
		return;
	}
	if (!j->change.is_on && !is_cut)
		j->stop_round = next_round(j);
	j->change.is_on = true;
	j->change.on_round = on_round;
	j->change.on_left = on_left;
}

/* --- the schedule --- */

static void cut(struct sw_sim_roster *r, bool is_down)
{
	struct sw_sim_net *net = &r->job->sim->net;

	for (uint32_t i = 0; i < r->job->n_home; i++) {
		uint32_t node = r->job->home[i], k = 0;

		while (k < r->n_servers && r->servers[k] != node)
			k++;
		if (k < r->n_servers)
			continue;
		net->nodes[node].up->is_down = is_down;
		net->links[net->down[node]].is_down = is_down;
	}
}

/* Return the duration of a roster.  If it has none, it ends in the middle of
 * its period; 0: it lasts to the end. */
static uint64_t for_ns(const struct sw_sim_desc_roster *d)
{
	return d->for_ns ? d->for_ns : d->every_ns / 2;
}

static uint64_t turn(void *ctx, uint64_t now_ns)
{
	struct sw_sim_roster *r = ctx;
	struct sw_sim_job *j = r->job;
	const struct sw_sim_desc_roster *d = r->desc;

	if (j->is_done)
		return UINT64_MAX;
	r->is_in = !r->is_in;
	if (d->is_cut)
		cut(r, r->is_in);
	if (r->is_in)
		change(j, r->servers, r->n_servers, d->is_cut);
	else
		change(j, j->home, j->n_home, false);
	if (!r->is_in)
		return d->every_ns ? r->begun_ns + d->every_ns : UINT64_MAX;
	r->begun_ns = now_ns;
	return for_ns(d) ? now_ns + for_ns(d) : UINT64_MAX;
}

/* --- from a description --- */

static int refuse(
	struct sw_sim *s, const struct sw_sim_desc_roster *d, const char *what)
{
	snprintf(s->why, sizeof(s->why), "[roster %s] %s", d->label, what);
	return SW_ECONF;
}

static struct sw_sim_job *job_of(
	struct sw_sim *s, const struct sw_sim_desc_roster *d)
{
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!*d->job || !strcmp(s->jobs[i].desc->label, d->job))
			return &s->jobs[i];
	return NULL;
}

static int check(struct sw_sim *s, const struct sw_sim_roster *r)
{
	const struct sw_sim_desc_roster *d = r->desc;
	uint32_t n_colocated;
	int err;

	if (!r->job)
		return refuse(s, d, "job: there is no such job");
	if (r->job->desc->transport != SW_SIM_SUMWIRE)
		return refuse(s, d, "job: needs transport = sumwire");
	if (r->job->params.mode == SW_MODE_ASYNC)
		return refuse(s, d, "job: needs mode = synchronous");
	if (d->every_ns && d->every_ns <= for_ns(d))
		return refuse(s, d, "every: is not longer than for");
	err = sw_sim_servers_check(
		r->job, r->servers, r->n_servers, &n_colocated);
	if (!err && n_colocated != r->job->n_colocated)
		return refuse(s, d,
			"servers: those on nodes of agents neither come nor "
			"go");
	return err;
}

static int open_roster(struct sw_sim *s, uint32_t i)
{
	struct sw_sim_roster *r = &s->rosters[i];
	int err;

	r->desc = &s->desc->rosters[i];
	r->job = job_of(s, r->desc);
	r->servers = sw_lab_array(SW_SIM_NODES_MAX, sizeof(*r->servers));
	r->n_servers = sw_sim_find_all(s->desc, r->desc->servers, r->servers);
	err = check(s, r);
	for (uint32_t k = 0; k < r->n_servers && !err; k++)
		err = sw_sim_server_open(r->job, r->servers[k]);
	if (err)
		return err;
	r->job->most_servers =
		(uint32_t)sw_max64(r->job->most_servers, r->n_servers);
	if (!r->job->change.timer) {
		r->job->change.timer = s->net.n_timers;
		sw_sim_timer_add(&s->net, s->net.now_ns, join, r->job);
	}
	sw_sim_timer_add(&s->net, s->net.now_ns + r->desc->at_ns, turn, r);
	return 0;
}

int sw_sim_rosters_open(struct sw_sim *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->desc->n_rosters && !err; i++)
		err = open_roster(s, i);
	return err;
}

void sw_sim_rosters_close(struct sw_sim *s)
{
	for (uint32_t i = 0; i < SW_SIM_ROSTERS; i++)
		free(s->rosters[i].servers);
}
