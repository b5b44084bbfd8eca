/* unit_agent_end.c - when the processes of an agent are told that it is over.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The agent's own code without its threads: the test is the control thread and
 * both lcores, so it decides who is late.  No server is there.
 */
#include "test/unit/host_raw.h"

#include "apps/agent.h"
#include "engine/error.h"
#include "test/support/port.h"

enum { LCORES = 2, RANKS = 2, POLLS = 5 };

struct scene2 {
	struct agent agent; /* first: its lanes hold cache lines */
	struct rig *r;      /* for its folder and log alone */
	struct test_port port;
	struct raw w[RANKS];
	uint64_t now_ns;
};

static uint64_t next_random(void *ctx)
{
	return ++*(uint64_t *)ctx;
}

static void configure(struct sw_conf *c)
{
	sw_conf_defaults(c);
	c->node.role = SW_ROLE_AGENT;
	strcpy(c->node.name, "n1");
	strcpy(c->job.name, "job");
	c->job.workers = 1;
	c->job.server_lcores = 1;
	c->agent.local_ranks = RANKS;
	c->agent.lcores = LCORES;
	c->n_ports = 1;
	strcpy(c->ports[0].label, "p");
	c->n_servers = LCORES; /* one for each lane */
	for (uint32_t i = 0; i < LCORES; i++) {
		snprintf(c->servers[i].label, sizeof(c->servers[i].label),
			"s%u", i);
		strcpy(c->servers[i].port, "p");
		c->servers[i].ip = 0x0a000002 + i;
		c->servers[i].udp_port = 5000;
	}
}

/* What sw_daemon_start would make, over the test's port. */
static void open_daemon(struct scene2 *s)
{
	struct sw_daemon *d = &s->agent.daemon;
	static uint64_t rng;

	configure(&d->conf);
	sw_params_init(&d->params);
	d->log = s->r->log;
	d->env = (struct sw_env){.log = &d->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = &rng,
		.random = next_random};
	port_init(&s->port);
	d->queues[0][0] = &s->port.port;
	d->n_ports = 1; /* none of them DPDK's */
	d->n_lcores = LCORES;
	assert_int_equal(
		sw_handoff_open(&d->handoff, LCORES, 1,
			(struct sw_port *const(*)[SW_MAX_PORTS])d->queues),
		0);
	for (uint32_t i = 0; i < LCORES; i++)
		sw_poller_init(&d->pollers[i], d, i);
}

static void open_host(struct scene2 *s)
{
	struct sw_host_params p = {.path = s->r->path,
		.n_local = RANKS,
		.max_clients = 2 * RANKS,
		.quota_bytes = 1 << 20,
		.numa_node = SW_NUMA_ANY,
		.events = {.on_attach = sw_agent_on_attach,
			.on_declare = sw_agent_on_declare,
			.on_detach = sw_agent_on_detach,
			.on_tune = sw_agent_on_tune},
		.ctx = &s->agent,
		.log = &s->r->log};

	assert_int_equal(sw_host_open(&p, &s->agent.host), 0);
}

/* What the control thread does in a turn, and again. */
static void control(struct scene2 *s)
{
	for (uint32_t i = 0; i < POLLS; i++) {
		sw_host_poll(s->agent.host, 0);
		sw_agent_take_news(&s->agent);
	}
}

/* Lcore 0 does its work between two turns of its loop. */
static void work(struct scene2 *s)
{
	s->now_ns += SW_MS;
	for (uint32_t i = 0; i < POLLS; i++)
		sw_agent_work(&s->agent, s->now_ns);
}

static void lane_work(struct scene2 *s)
{
	sw_agent_lane_work(&s->agent.others[0], s->now_ns);
}

/* Both processes are attached and the job runs, as far as they know. */
static struct scene2 *open_scene(void)
{
	struct scene2 *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	struct sw_edge_attach hello = {
		SW_EDGE_ATTACH, SW_EDGE_MAGIC, SW_EDGE_VERSION, 0};

	assert_non_null(s);
	memset(s, 0, sizeof(*s));
	s->r = rig_new(NULL);
	s->now_ns = sw_now_ns();
	open_daemon(s);
	assert_int_equal(sw_agent_open_rings(&s->agent), 0);
	assert_int_equal(sw_agent_open_lanes(&s->agent), 0);
	open_host(s);
	for (uint32_t i = 0; i < RANKS; i++) {
		raw_connect(&s->w[i], s->r);
		raw_send(&s->w[i], &hello, sizeof(hello));
		control(s);
	}
	work(s); /* JOIN */
	lane_work(s);
	assert_true(s->agent.has_worker && s->agent.others[0].is_open);
	sw_agent_tell(&s->agent,
		&(struct agent_news){.kind = AGENT_RUNNING, .size = RANKS});
	control(s);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_attached(&s->w[i]);
	work(s); /* SERVE */
	assert_true(s->agent.ports[0] && s->agent.ports[1]);
	return s;
}

static void close_scene(struct scene2 *s)
{
	struct agent *a = &s->agent;

	for (uint32_t i = 0; i < RANKS; i++)
		raw_close(&s->w[i]);
	sw_agent_close(a);
	sw_host_close(&a->host);
	sw_handoff_close(&a->daemon.handoff);
	free(a->others);
	free(a->lanes);
	free(a->rings);
	rig_close(s->r);
	free(s);
}

static void expect_silence(const struct raw *w)
{
	struct pollfd fd = {.fd = w->sock, .events = POLLIN};

	assert_int_equal(poll(&fd, 1, 0), 0);
}

/* Both lanes leave, and all is let go of. */
static void expect_left(struct scene2 *s)
{
	struct agent *a = &s->agent;

	for (uint32_t i = 0; i < 20 && a->is_begun; i++) {
		work(s);
		s->now_ns += SW_S;
		for (uint32_t l = 0; l < LCORES; l++) {
			struct sw_worker *w =
				l ? &a->others[0].worker : &a->worker;

			if (l ? a->others[0].is_open : a->has_worker)
				w->node.tick(&w->node, s->now_ns, 0);
		}
		lane_work(s);
		control(s);
	}
	assert_false(a->is_begun);
	assert_false(a->has_worker || a->others[0].is_open);
	assert_int_equal(a->group.n_here, 0);
}

/* A process dies: the other is told when both lcores have left its tensors. */
static void death__waits_for_every_lane(void **state)
{
	struct scene2 *s = open_scene();

	close(s->w[0].sock);
	s->w[0].sock = -1;
	control(s);
	expect_silence(&s->w[1]); /* no lcore knows */
	work(s);
	control(s);
	assert_true(s->agent.is_leaving);
	expect_silence(&s->w[1]); /* lane 1 does not */
	lane_work(s);
	work(s);
	control(s);
	raw_await_end(&s->w[1], SW_EDGE_CLOSED, SW_EPEER,
		"local rank 0: training process");
	expect_left(s);
	close_scene(s);
}

/* The job fails in lane 0. */
static void failure__waits_for_every_lane(void **state)
{
	struct scene2 *s = open_scene();

	sw_worker_fail(&s->agent.worker, SW_ESERVER, SW_KEY_NONE, "server %s",
		"s1 is silent");
	work(s);
	control(s);
	for (uint32_t i = 0; i < RANKS; i++)
		expect_silence(&s->w[i]);
	lane_work(s);
	work(s);
	control(s);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_await_end(&s->w[i], SW_EDGE_CLOSED, SW_ESERVER,
			"server s1 is silent");
	expect_left(s);
	close_scene(s);
}

/* The agent stops, and says so. */
static void stop__waits_for_every_lane(void **state)
{
	struct scene2 *s = open_scene();

	sw_agent_stop(&s->agent);
	work(s);
	control(s);
	expect_silence(&s->w[0]);
	lane_work(s);
	work(s);
	control(s);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_await_end(&s->w[i], SW_EDGE_CLOSED, SW_ECLOSED,
			"the agent stops");
	expect_left(s);
	close_scene(s);
}

/* A process dies after the job has failed, before it is told: the order to
 * leave finds lanes that are closing. */
static void death__after_a_failure(void **state)
{
	struct scene2 *s = open_scene();
	struct agent *a = &s->agent;

	sw_worker_fail(&a->worker, SW_ESERVER, SW_KEY_NONE, "server s1");
	work(s);
	lane_work(s);
	s->now_ns += 3 * SW_S;
	a->others[0].worker.node.tick(
		&a->others[0].worker.node, s->now_ns, 0); /* it has left */
	work(s);
	a->worker.node.tick(&a->worker.node, s->now_ns, 0); /* so has lane 0 */
	work(s);
	assert_int_equal(atomic_load(&a->others[0].stage), AGENT_LANE_CLOSING);
	close(s->w[0].sock);
	s->w[0].sock = -1;
	sw_host_poll(a->host, 0); /* before it takes the news */
	control(s);
	work(s);
	raw_await_end(&s->w[1], SW_EDGE_CLOSED, SW_ESERVER, "server s1");
	expect_left(s);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death__waits_for_every_lane),
		cmocka_unit_test(failure__waits_for_every_lane),
		cmocka_unit_test(stop__waits_for_every_lane),
		cmocka_unit_test(death__after_a_failure)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
