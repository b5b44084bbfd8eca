/* agent.c - sumwire agent: serves the training processes of a machine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The control thread talks to the attached processes over their sockets
 * (agent_group.c), and allocates the memory of a job (agent_job.c).  Lcore 0
 * polls the ports, the processes' rings and the engine (agent_core.c); each
 * further lcore runs a lane of the engine's worker (agent_lane.c).  The control
 * thread and lcore 0 exchange commands and reports (agent_mail.c).
 *
 * The agent joins its job when all its local ranks have attached.  It leaves
 * when all of them have detached, so the next run joins as a new member.
 */
#include "apps/node/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/node/agent_job.h"
#include "engine/base/error.h"
#include "pmd/client/agent_error.h"
#include "pmd/client/user.h"
#include "pmd/host/daemons.h"

enum {
	FINISH_MS = 5000, /* wait for open push_pulls at SIGTERM */
	LEAVE_MS = 3000,  /* wait for the servers to acknowledge the leave */
	/* longest wait; a report of an lcore ends it earlier */
	POLL_MS = 20,
	/* a user has at least a letter and a comma */
	MAX_UIDS = SW_CONF_USERS_BYTES / 2,
};

/* --- the threads' parts, and their mail --- */

int sw_agent_open_lanes(struct agent_shared *shared)
{
	uint32_t n = shared->daemon.conf.agent.lcores - 1;

	if (!n)
		return 0;
	shared->others = calloc(n, sizeof(*shared->others));
	shared->lanes = aligned_alloc(64, n * sizeof(*shared->lanes));
	if (!shared->others || !shared->lanes)
		return SW_ENOMEM;
	shared->n_others = n;
	for (uint32_t i = 0; i < n; i++) {
		shared->others[i].shared = shared;
		shared->others[i].i = i + 1;
	}
	return 0;
}

void sw_agent_init_parts(struct agent *a)
{
	struct agent_part *parts = a->shared.parts;

	parts[0] = (struct agent_part){
		.worker = &a->core.worker, .events = sw_agent_events(&a->core)};
	for (uint32_t i = 0; i < a->shared.n_others; i++)
		parts[i + 1] = (struct agent_part){
			.worker = &a->shared.others[i].worker,
			.events = sw_agent_lane_events(&a->shared.others[i])};
}

bool sw_agent_has_mail(const void *ctx, uint32_t from, uint32_t to)
{
	const struct agent *a = ctx;
	const struct agent_shared *shared = &a->shared;
	const struct agent_lane *l;

	if (from == to)
		return sw_agent_is_asked(shared, to) ||
		       (!from && !sw_spsc_is_empty(&a->core.commands));
	if ((from && to) || (from | to) > shared->n_others)
		return false;
	l = &shared->others[(from | to) - 1];
	switch (atomic_load_explicit(&l->stage, memory_order_acquire)) {
	case AGENT_LANE_OPEN:
		return from ? sw_lane_has_reports(&shared->lanes[l->i - 1])
			    : sw_lane_has_commands(&shared->lanes[l->i - 1]) ||
				       atomic_load(&l->n_freed) !=
					       atomic_load(&shared->n_freed);
	case AGENT_LANE_CLOSING:
		return !from;
	default:
		return false;
	}
}

/* --- counters --- */

/* Put the counters of each lane. */
static void put_lanes(const struct agent *a,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[32];

	put(out, "lanes", a->shared.n_others + 1);
	for (uint32_t i = 0; i <= a->shared.n_others; i++) {
		const struct agent_lane *l =
			i ? &a->shared.others[i - 1] : NULL;
		const struct sw_worker *w = l ? &l->worker : &a->core.worker;

		snprintf(name, sizeof(name), "lane%u.push_bytes", i);
		put(out, name, sw_word(&sw_worker_stats(w)->push_bytes));
	}
}

static void fill_stats(void *ctx,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	struct agent *a = ctx;
	struct sw_stats sum = {0};

	sw_daemon_add_stats(&a->shared.daemon, &sum);
	sw_stats_add(&sum, sw_worker_stats(&a->core.worker));
	for (uint32_t i = 0; i < a->shared.n_others; i++)
		sw_stats_add(
			&sum, sw_worker_stats(&a->shared.others[i].worker));
	sw_daemon_put_stats(&a->shared.daemon, &sum, put, out);
	put(out, "attached", a->control.group.n_here);
	put(out, "keyed", a->shared.daemon.secrets->job.n);
	put(out, "encrypted", a->shared.daemon.params.is_encrypted);
	put_lanes(a, put, out);
	put(out, "partition_bytes", atomic_load(&a->shared.partition_bytes));
	put(out, "credit_bytes", atomic_load(&a->shared.credit_bytes));
	put(out, "rate_bit_s", atomic_load(&a->shared.daemon.rate_bit_s));
	put(out, "tuning_number", atomic_load(&a->shared.tuning_number));
	if (!a->shared.is_serving)
		return;
	sum = (struct sw_stats){0};
	sw_serve_add_stats(&a->shared.serve, &sum);
	sw_daemon_put_engine(&sum, "server.", put, out);
	sw_serve_put_stats(&a->shared.serve, put, out);
}

/* --- the processes' sockets --- */

/* Look up the users of [agent] users.  Returns their number, or SW_ECONF. */
static int resolve_users(struct agent *a, uint32_t uids[MAX_UIDS])
{
	char users[SW_CONF_USERS_BYTES], *rest = users, *name;
	int n = 0;

	memcpy(users, a->shared.daemon.conf.agent.users, sizeof(users));
	while ((name = strsep(&rest, ","))) {
		if (!*name)
			continue;
		if (sw_user_find(name, &uids[n++]))
			continue;
		sw_log(&a->shared.daemon.log, SW_LOG_ERROR,
			"[agent] users: unknown user \"%s\"", name);
		return SW_ECONF;
	}
	return n;
}

static int open_host(struct agent *a)
{
	const struct sw_conf *c = &a->shared.daemon.conf;
	uint32_t uids[MAX_UIDS];
	int n = resolve_users(a, uids);
	struct sw_host_params p = {.path = c->agent.socket,
		.uids = uids,
		.n_uids = (uint32_t)n,
		.n_local = c->agent.local_ranks,
		.max_clients = 2 * c->agent.local_ranks + 2,
		.quota_bytes = c->agent.quota_bytes,
		.numa_node = a->shared.daemon.numa.lcores[0],
		.events = {.on_attach = sw_agent_on_attach,
			.on_declare = sw_agent_on_declare,
			.on_detach = sw_agent_on_detach,
			.on_tune = sw_agent_on_tune,
			.on_end = sw_agent_on_end,
			.on_free = sw_agent_on_free},
		.ctx = &a->control,
		.log = &a->shared.daemon.log};

	int err = n < 0 ? n : sw_host_open(&p, &a->shared.host);

	a->shared.daemon.trace.host = a->shared.host;
	return err;
}

/* --- the control thread --- */

/* Ask the lcores in turn to describe the job.  Returns true when all have
 * answered. */
static bool look(void *ctx)
{
	const struct agent_control *c = ctx;
	struct agent_shared *s = c->shared;
	uint32_t state = atomic_load_explicit(&s->look, memory_order_acquire);
	struct sw_bell *bell;

	if (state == AGENT_LOOK_TOLD)
		return true;
	if (state == AGENT_LOOK_NONE) {
		s->waits = (struct sw_worker_waits){0};
		s->n_sessions = 0;
		state = AGENT_LOOK_ASKED;
		atomic_store(&s->look, state);
	}
	bell = &s->daemon.pollers[state - AGENT_LOOK_ASKED].bell;
	if (sw_bell_is_awaited(bell))
		sw_bell_ring(bell);
	return false;
}

static void write_sessions(const struct agent_shared *s, FILE *to)
{
	for (uint32_t i = 0; i < s->n_sessions; i++) {
		const struct agent_session *x = &s->sessions[i];

		fprintf(to, "session %s %u %s\n",
			x->path.is_open ? "open" : "closed", x->lane,
			x->server);
		sw_about_path(&x->path.path, 0, x->path.push_bytes,
			x->path.result_bytes, to);
	}
}

static void write_waits(const struct sw_worker_waits *l, FILE *to)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct sw_worker_wait *w = &l->all[i];

		fprintf(to, "wait %s %u 0 %s\nstill %llu 0 -\nfor %s\n",
			w->is_stream ? "stream" : "tensor", w->n_missing,
			w->name, (unsigned long long)(w->still_ns / SW_MS),
			w->who);
	}
	if (l->n_more)
		fprintf(to, "more %u\n", l->n_more);
}

static void write_groups(const struct sw_worker_waits *l, FILE *to)
{
	for (uint32_t i = 0; i < l->n_groups; i++) {
		const struct sw_worker_group *g = &l->groups[i];

		fprintf(to, "group %u %llu %llu %llu %s\n", g->n_open,
			(unsigned long long)g->n_done,
			(unsigned long long)g->bytes, (unsigned long long)g->ns,
			g->name);
	}
}

/* Write the job of this agent's processes for sumwire ps. */
static void write_job(void *ctx, FILE *to)
{
	const struct agent_control *c = ctx;
	uint32_t n_here = 0;

	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		n_here +=
			c->group.ranks[i].is_here && !c->group.ranks[i].is_gone;
	if (!c->group.n_here)
		return;
	sw_daemons_write_job(to,
		&(struct sw_daemon_job){.state = c->is_ended      ? "ending"
						 : c->is_admitted ? "running"
						 : c->is_begun    ? "joining"
								  : "forming",
			.n_here = n_here,
			.n_all = sw_agent_n_local(c->shared),
			.n_ranks = n_here,
			.size = c->is_admitted ? c->size : 0,
			.first = c->is_admitted ? c->first : 0,
			.age_s = (sw_now_ns() - c->group.since_ns) / SW_S,
			.name = c->shared->daemon.conf.job.name});
	for (uint32_t i = 0; i < sw_agent_n_local(c->shared); i++)
		if (c->group.ranks[i].is_here && !c->group.ranks[i].is_gone)
			fprintf(to, "process %u %u\n", c->group.ranks[i].pid,
				i);
	if (atomic_load(&c->shared->look) != AGENT_LOOK_TOLD)
		return;
	write_sessions(c->shared, to);
	write_groups(&c->shared->waits, to);
	write_waits(&c->shared->waits, to);
}

static void turn(struct agent_control *c, uint32_t timeout_ms)
{
	sw_host_poll(c->shared->host,
		c->is_busy ? 0
			   : sw_trace_wait_ms(&c->shared->daemon, timeout_ms));
	sw_trace_poll(&c->shared->daemon);
	sw_daemon_write_lines(&c->shared->daemon);
	sw_daemon_is_alive(&c->shared->daemon);
	sw_agent_take_reports(c);
	sw_agent_tell_waiting(c);
	sw_agent_build(c);
	sw_stats_serve_poll(c->shared->daemon.stats);
	if (sw_about_poll(&c->shared->daemon,
		    c->shared->is_serving ? &c->shared->serve : NULL,
		    &(struct sw_about_job){look, write_job, c}))
		atomic_store(&c->shared->look, AGENT_LOOK_NONE);
	c->is_busy = sw_agent_make_memory(c->shared);
	if (c->shared->is_serving)
		c->is_busy |= sw_serve_work(&c->shared->serve);
}

/* Wait until no push_pull is open, or with @is_leaving until the servers have
 * acknowledged the leave.  Returns true if another signal arrived: its sender
 * wants the agent to stop at once. */
static bool finish(struct agent_control *c, bool is_leaving)
{
	uint64_t until_ns =
		sw_now_ns() + (is_leaving ? LEAVE_MS : FINISH_MS) * SW_MS;

	while (c->is_begun && (is_leaving || atomic_load(&c->shared->n_open)) &&
		sw_now_ns() < until_ns) {
		if (sw_daemon_hurried(&c->shared->daemon, 0))
			return true;
		turn(c, is_leaving ? POLL_MS : 1);
	}
	return false;
}

static bool is_attached(const struct agent_control *c)
{
	return c->group.n_here || c->next.n_here;
}

static bool is_idle(const struct agent_control *c)
{
	const struct agent_shared *s = c->shared;

	return !is_attached(c) &&
	       !(s->is_serving && !sw_serve_is_idle(&s->serve));
}

/* Return whether an agent with [agent] stay = no has finished its work. */
static bool is_over(struct agent_control *c)
{
	c->was_used |= is_attached(c);
	if (!is_idle(c))
		c->used_at_ns = sw_now_ns();
	else if (c->was_used)
		return true;
	return sw_now_ns() - c->used_at_ns >
	       c->shared->daemon.conf.job.join_timeout_ns;
}

/* While an agent with [agent] stay = no drains, it also waits for its first
 * process: the ranks got the same signal, and may be about to attach. */
static bool must_end(struct agent_control *c)
{
	struct sw_daemon *d = &c->shared->daemon;

	sw_daemon_await_signal(d, 0);
	if (d->conf.agent.stay)
		return sw_daemon_must_end(d, is_idle(c));
	return is_over(c) || sw_daemon_must_end(d, false);
}

static void control(struct agent_control *c)
{
	uint32_t dropped;
	bool is_hurried;

	c->used_at_ns = sw_now_ns();
	while (!must_end(c))
		turn(c, POLL_MS);
	sw_daemon_is_ending(&c->shared->daemon);
	sw_log(&c->shared->daemon.log, SW_LOG_INFO,
		"shutting down: draining open requests");
	sw_agent_stop_gathering(c);
	atomic_store(&c->shared->is_draining, true);
	is_hurried = finish(c, false);
	dropped = atomic_load(&c->shared->n_open);
	sw_agent_stop(c);
	is_hurried |= finish(c, true);
	if (dropped)
		sw_log(&c->shared->daemon.log, SW_LOG_WARN,
			"dropped %u unfinished push_pulls", dropped);
	else
		sw_log(&c->shared->daemon.log, SW_LOG_INFO,
			"drained: no request is open");
	if (c->shared->is_serving)
		sw_serve_finish(&c->shared->serve, is_hurried);
}

/* --- begin and end --- */

static void start_lcores(struct agent *a)
{
	struct sw_poller *p = &a->shared.daemon.pollers[0];

	a->core.tuning.rate_bit_s = atomic_load(&a->shared.daemon.rate_bit_s);
	a->shared.daemon.has_mail = sw_agent_has_mail;
	a->shared.daemon.mail_ctx = a;
	p->ctx = &a->core;
	p->rest = sw_agent_rest;
	p->nap = sw_agent_nap;
	p->is_awaited = sw_agent_is_awaited;
	p->are_computing = sw_agent_are_computing;
	for (uint32_t i = 0; i <= a->shared.n_others; i++)
		sw_reserve_open(&a->shared.daemon.lane_reserves[i]);
	if (a->shared.is_serving)
		sw_serve_start(&a->shared.serve);
	sw_poller_add(p, sw_agent_work, &a->core);
	for (uint32_t i = 0; i < a->shared.n_others; i++) {
		p = &a->shared.daemon.pollers[i + 1];
		sw_poller_add(p, sw_agent_lane_work, &a->shared.others[i]);
	}
}

static int run(struct agent *a)
{
	struct sw_daemon *d = &a->shared.daemon;
	int err = open_host(a), err2;

	if (!err)
		err = sw_daemon_serve_stats(d, fill_stats, a);
	if (!err)
		err = sw_daemon_start(d);
	a->shared.is_serving = d->conf.node.role == SW_ROLE_BOTH;
	if (!err && a->shared.is_serving)
		err = sw_serve_open(&a->shared.serve, d);
	if (err)
		return err;
	start_lcores(a);
	sw_about_open(d);
	err = sw_daemon_launch(d);
	if (!err)
		err = sw_host_listen(a->shared.host);
	if (!err) {
		sw_log_sink_keep(&d->log_sink,
			sw_agent_error_make(d->conf.agent.socket));
		a->has_error_file = true;
		sw_log(&d->log, SW_LOG_INFO,
			"agent %s (agent %u of %u) is ready at %s",
			d->conf.node.name, d->conf.job.agent,
			d->conf.job.agents, d->conf.agent.socket);
		sw_daemon_is_ready(d);
		control(&a->control);
	}
	err2 = sw_daemon_join(d);
	sw_agent_close_worker(&a->shared);
	return err ? err : err2;
}

int sw_cmd_agent(int argc, char **argv)
{
	struct sw_daemon_options o;
	int err = sw_daemon_parse(&o, "agent",
		"serve the training processes of this machine until SIGTERM",
		argc, argv);
	struct agent *a;
	int code;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	a = calloc(1, sizeof(*a));
	if (!a)
		return 1;
	err = sw_daemon_open(&a->shared.daemon, &o, SW_ROLE_AGENT);
	code = sw_daemon_exit_code(err);
	if (!err)
		err = sw_agent_open_rings(a);
	if (!err)
		err = sw_agent_open_lanes(&a->shared);
	if (!err) {
		sw_agent_init_parts(a);
		err = run(a);
	}
	if (err && !code)
		code = 1;
	sw_serve_close(&a->shared.serve);
	sw_host_close(&a->shared.host);
	if (a->has_error_file)
		sw_agent_error_remove(a->shared.daemon.conf.agent.socket);
	sw_daemon_close(&a->shared.daemon);
	sw_crypto_put(a->shared.secret, sizeof(*a->shared.secret));
	free(a->shared.others);
	free(a->shared.lanes);
	free(a->shared.rings);
	free(a);
	return code;
}
