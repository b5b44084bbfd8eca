/* unit_agent_free.c - a process frees memory while ports hold frames of it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/port_int.h"
#include "test/unit/node/agent_rig.h"

enum {
	RING = 64, /* frames that the driver holds */
	LOOKS = 20,
	/* limit for the fastest call, because other processes use the CPU */
	LOOK_NS_MAX = 2 * SW_MS,
};

/* A queue pair whose driver frees a frame only after sending it. */
struct slow {
	struct port_type type;
	struct port port;
	struct queue q;
	struct rte_mbuf_ext_shared_info *ring[RING];
	uint32_t n_put, n_sent;
};

static void put(struct slow *d)
{
	struct rte_mbuf_ext_shared_info *refs = queue_refs(&d->q);

	rte_mbuf_ext_refcnt_update(refs, 1);
	d->ring[d->n_put++ % RING] = refs;
}

static void send_one(struct slow *d)
{
	rte_mbuf_ext_refcnt_update(d->ring[d->n_sent++ % RING], -1);
}

/* Open a job whose lcore 0 sends through @d, whose ring is full. */
static struct agent_rig *open_slow(struct slow *d)
{
	struct agent_rig *s = open_scene();

	*d = (struct slow){.type = {.is_sync = true}};
	d->port.type = &d->type;
	d->q.port = &d->port;
	queue_refs_init(&d->q);
	while (d->n_put < RING)
		put(d);
	s->agent.shared.daemon.queues[0][0] = &d->q.base;
	s->agent.shared.daemon.n_dpdk_ports = 1;
	return s;
}

/* Let local rank @i free memory that no collective uses. */
static void free_memory(struct agent_rig *s, uint32_t i)
{
	struct agent_core *core = &s->agent.core;

	core->freed.client = core->clients[i];
	core->freed.local = i;
	core->freed.base = s;
	core->freed.bytes = 1;
	core->freed.at = 0;
	while (core->freed.client)
		sw_agent_find_use(core);
	lane_work(s); /* lane 1 has no port */
}

static void close_slow(struct agent_rig *s)
{
	s->agent.shared.daemon.n_dpdk_ports = 0;
	s->agent.shared.daemon.queues[0][0] = &s->port.port;
	close_scene(s);
}

static void free__looks_once_in_a_turn(void **state)
{
	struct agent_rig *s;
	struct slow d;
	uint64_t least_ns = UINT64_MAX;

	(void)state;
	s = open_slow(&d);
	free_memory(s, 0);
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint64_t start_ns = sw_now_ns();

		sw_agent_work_free(&s->agent.core);
		least_ns = sw_min64(least_ns, sw_now_ns() - start_ns);
		assert_int_equal(s->agent.core.n_freeing, 1);
	}
	assert_in_range(least_ns, 0, LOOK_NS_MAX);
	close_slow(s);
}

/* Under steady traffic the ring is never empty, because a new frame follows
 * each that was sent. */
static void free__ends_under_steady_traffic(void **state)
{
	struct agent_rig *s;
	struct slow d;

	(void)state;
	s = open_slow(&d);
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint32_t last = d.n_put;

		free_memory(s, i % RANKS);
		for (uint32_t n = 0; s->agent.core.n_freeing; n++) {
			assert_in_range(n, 0, 2 * RING);
			send_one(&d);
			put(&d);
			sw_agent_work_free(&s->agent.core);
		}
		assert_true((int32_t)(d.n_sent - last) >= 0);
	}
	close_slow(s);
}

/* A rank frees memory while another rank waits: it also waits for the frames
 * that were queued in between. */
static void free__later_than_another(void **state)
{
	struct agent_rig *s;
	struct slow d;
	uint32_t last;

	(void)state;
	s = open_slow(&d);
	free_memory(s, 0);
	sw_agent_work_free(&s->agent.core);
	send_one(&d);
	put(&d);
	last = d.n_put;
	free_memory(s, 1);
	while (s->agent.core.is_freeing[0]) {
		send_one(&d);
		sw_agent_work_free(&s->agent.core);
	}
	assert_int_equal(d.n_sent, RING);
	assert_true(s->agent.core.is_freeing[1]);
	while (s->agent.core.is_freeing[1]) {
		send_one(&d);
		sw_agent_work_free(&s->agent.core);
	}
	assert_int_equal(d.n_sent, last);
	close_slow(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free__looks_once_in_a_turn),
		cmocka_unit_test(free__ends_under_steady_traffic),
		cmocka_unit_test(free__later_than_another)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
