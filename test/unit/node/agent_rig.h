/* agent_rig.h - the agent's code without its threads and without a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The test plays the control thread and both lcores, so it decides which one is
 * late.
 */
#ifndef SW_TEST_UNIT_NODE_AGENT_RIG_H
#define SW_TEST_UNIT_NODE_AGENT_RIG_H

#include "test/unit/host/host_raw.h"

#include "apps/node/agent.h"
#include "apps/node/agent_job.h"
#include "engine/base/error.h"
#include "sum/sum.h"
#include "test/support/port.h"

enum { LCORES = 2, RANKS = 2, POLLS = 5 };

struct agent_rig {
	/* must be first: its lanes are aligned to cache lines */
	struct agent agent;
	struct rig *r; /* provides only the folder and the log */
	struct test_port port;
	struct raw w[RANKS];
	uint64_t now_ns;
};

static inline uint64_t next_random(void *ctx)
{
	static uint64_t rng;

	(void)ctx; /* as in the daemon: this is the lane's memory */
	return ++rng;
}

static inline void configure(struct sw_conf *c)
{
	sw_conf_defaults(c);
	c->node.role = SW_ROLE_AGENT;
	strcpy(c->node.name, "n1");
	strcpy(c->job.name, "job");
	c->job.agents = 1;
	c->job.server_lcores = 1;
	c->agent.local_ranks = RANKS;
	c->agent.lcores = LCORES;
	c->n_ports = 1;
	strcpy(c->ports[0].label, "p");
	c->n_servers = LCORES; /* one server per lane */
	for (uint32_t i = 0; i < LCORES; i++) {
		snprintf(c->servers[i].label, sizeof(c->servers[i].label),
			"s%u", i);
		strcpy(c->servers[i].port, "p");
		c->servers[i].ip = sw_ip_v4(0x0a000002 + i);
		c->servers[i].udp_port = 5000;
	}
}

/* Make a daemon as sw_daemon_start would, with the test's port. */
static inline void open_daemon(struct agent_rig *s)
{
	struct sw_daemon *d = &s->agent.shared.daemon;

	configure(&d->conf);
	sw_params_init(&d->params);
	d->log = s->r->log;
	d->env = (struct sw_env){.log = &d->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.random = next_random};
	port_init(&s->port);
	d->queues[0][0] = &s->port.port;
	d->n_ports = 1; /* without DPDK's ports */
	d->n_lcores = LCORES;
	assert_int_equal(
		sw_handoff_open(&d->handoff, LCORES, 1,
			(struct sw_port *const(*)[SW_MAX_PORTS])d->queues),
		0);
	for (uint32_t i = 0; i < LCORES; i++) {
		assert_int_equal(sw_poller_open(&d->pollers[i], d, i), 0);
		assert_int_equal(sw_lines_open(&d->lines[i], &d->log), 0);
	}
}

static inline void open_host(struct agent_rig *s)
{
	struct sw_host_params p = {.path = s->r->path,
		.n_local = RANKS,
		.max_clients = 2 * RANKS,
		.quota_bytes = 4 << 20,
		.numa_node = SW_NUMA_ANY,
		.events = {.on_attach = sw_agent_on_attach,
			.on_declare = sw_agent_on_declare,
			.on_detach = sw_agent_on_detach,
			.on_tune = sw_agent_on_tune,
			.on_end = sw_agent_on_end,
			.on_free = sw_agent_on_free},
		.ctx = &s->agent.control,
		.log = &s->r->log};

	assert_int_equal(rig_host_open(&p, &s->agent.shared.host), 0);
}

/* Run the control thread's turn twice. */
static inline void control(struct agent_rig *s)
{
	sw_daemon_write_lines(&s->agent.shared.daemon);
	for (uint32_t i = 0; i < POLLS; i++) {
		sw_host_poll(s->agent.shared.host, 0);
		sw_agent_take_reports(&s->agent.control);
		sw_agent_build(&s->agent.control);
		sw_agent_make_memory(&s->agent.shared);
	}
}

/* Let lcore 0 do its work between two turns of its loop. */
static inline void work(struct agent_rig *s)
{
	uint64_t now_ns = sw_now_ns(); /* the control thread's clock */

	s->now_ns = s->now_ns + SW_MS > now_ns ? s->now_ns + SW_MS : now_ns;
	for (uint32_t i = 0; i < POLLS; i++)
		sw_agent_work(&s->agent.core, s->now_ns);
}

static inline void lane_work(struct agent_rig *s)
{
	sw_agent_lane_work(&s->agent.shared.others[0], s->now_ns);
}

/* Let process @i connect; @wanted is its local rank as in struct
 * sw_edge_attach. */
static inline void attach(struct agent_rig *s, uint32_t i, uint32_t wanted)
{
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX, wanted};

	raw_connect(&s->w[i], s->r);
	raw_send(&s->w[i], &hello, sizeof(hello));
	control(s);
}

/* Complete the group: both processes see the job run. */
static inline void admit(struct agent_rig *s)
{
	work(s); /* takes JOIN */
	lane_work(s);
	assert_true(
		s->agent.core.has_worker && s->agent.shared.others[0].is_open);
	sw_agent_tell(&s->agent.core,
		&(struct agent_report){.kind = AGENT_RUNNING, .size = RANKS});
	control(s);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_attached(&s->w[i]);
	work(s); /* takes SERVE */
	assert_true(s->agent.core.clients[0] && s->agent.core.clients[1]);
}

/* Let process @i close its attachment. */
static inline void detach(struct agent_rig *s, uint32_t i)
{
	uint32_t kind = SW_EDGE_CLOSE;

	raw_send(&s->w[i], &kind, sizeof(kind));
	raw_close(&s->w[i]);
	s->w[i] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
}

/* Open an agent with both processes attached; no lcore knows yet. */
static inline struct agent_rig *open_attached(void)
{
	struct agent_rig *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);

	assert_non_null(s);
	memset(s, 0, sizeof(*s));
	s->r = rig_new(NULL);
	s->now_ns = sw_now_ns();
	open_daemon(s);
	assert_int_equal(sw_agent_open_rings(&s->agent), 0);
	assert_int_equal(sw_agent_open_lanes(&s->agent.shared), 0);
	sw_agent_init_parts(&s->agent);
	open_host(s);
	for (uint32_t i = 0; i < RANKS; i++)
		attach(s, i, 0);
	return s;
}

/* Open an agent whose job runs. */
static inline struct agent_rig *open_scene(void)
{
	struct agent_rig *s = open_attached();

	admit(s);
	return s;
}

static inline void close_scene(struct agent_rig *s)
{
	struct agent *a = &s->agent;

	for (uint32_t i = 0; i < RANKS; i++)
		raw_close(&s->w[i]);
	sw_agent_close_worker(&a->shared);
	for (uint32_t i = 0; i < LCORES; i++) {
		sw_reserve_close(&a->shared.daemon.lane_reserves[i]);
		sw_lines_close(a->shared.daemon.lines[i]);
	}
	sw_host_close(&a->shared.host);
	sw_handoff_close(&a->shared.daemon.handoff);
	free(a->shared.others);
	free(a->shared.lanes);
	free(a->shared.rings);
	rig_close(s->r);
	free(s);
}

static inline void expect_silence(const struct raw *w)
{
	struct pollfd fd = {.fd = w->sock, .events = POLLIN};

	assert_int_equal(poll(&fd, 1, 0), 0);
}

/* Let a second pass at both lanes and in both threads. */
static inline void pass(struct agent_rig *s)
{
	struct agent *a = &s->agent;

	work(s);
	s->now_ns += SW_S;
	for (uint32_t l = 0; l < LCORES; l++) {
		struct sw_worker *w =
			l ? &a->shared.others[0].worker : &a->core.worker;

		if (l ? a->shared.others[0].is_open : a->core.has_worker)
			w->engine.tick(&w->engine, s->now_ns, 0);
	}
	lane_work(s);
}

/* Check that both lanes leave and that everything is released. */
static inline void expect_left(struct agent_rig *s)
{
	struct agent *a = &s->agent;

	for (uint32_t i = 0; i < 20 && a->control.is_begun; i++) {
		pass(s);
		control(s);
	}
	assert_false(a->control.is_begun);
	assert_false(a->core.has_worker || a->shared.others[0].is_open);
	assert_int_equal(a->control.group.n_here, 0);
}

#endif
