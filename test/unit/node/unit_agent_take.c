/* unit_agent_take.c - how many submits the lcore takes from processes per turn.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/host.h"
#include "test/unit/node/agent_rig.h"

enum {
	CLIENTS = 20,
	TENSORS = 512,
	TAKEN_MAX = 320, /* of all clients in one turn */
};

static float memory[TENSORS];

/* The rings of a process that does not exist. */
struct client {
	struct sw_edge_control *control;
	struct sw_spsc submits;
	uint32_t n_put;
};

static void open_client(struct agent_rig *s, struct client *c, uint32_t local)
{
	struct sw_host_item item = {.kind = SW_EDGE_SYNC};

	*c = (struct client){.control = calloc(1, sizeof(*c->control))};
	assert_non_null(c->control);
	assert_int_equal(sw_host_client_open(c->control, -1, -1,
				 &s->agent.core.clients[local]),
		0);
	sw_spsc_init(&c->submits, c->control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	for (; item.id < TENSORS; item.name = ++item.id)
		sw_host_client_enter(s->agent.core.clients[local], &item);
	sw_host_client_admit(s->agent.core.clients[local], TENSORS);
}

static void submit(struct client *c, uint32_t n)
{
	struct sw_submit m = {0};

	for (uint32_t i = 0; i < n; i++) {
		m.tensor = c->n_put++ % TENSORS;
		assert_int_equal(sw_spsc_put(&c->submits, &m, 1), 1);
	}
}

/* Open a job of CLIENTS local ranks whose tensors are admitted. */
static struct agent_rig *open_job(struct client *clients)
{
	struct agent_rig *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	struct sw_worker_tensor list[TENSORS];
	char names[TENSORS][16];
	struct sw_worker *w;

	memset(s, 0, sizeof(*s));
	s->r = rig_new(NULL);
	w = &s->agent.core.worker;
	open_daemon(s);
	s->agent.shared.daemon.conf.agent.local_ranks = CLIENTS;
	assert_int_equal(sw_agent_open_rings(&s->agent), 0);
	assert_int_equal(sw_agent_open_lanes(&s->agent.shared), 0);
	sw_agent_init_parts(&s->agent);
	open_host(s);
	assert_int_equal(sw_agent_open_worker(&s->agent.shared), 0);
	sw_agent_command(
		&s->agent.control, &(struct agent_command){.kind = AGENT_JOIN});
	work(s);
	lane_work(s);
	w->state = SW_WORKER_RUNNING;
	w->size = w->firsts[1] = CLIENTS;
	for (uint32_t i = 0; i < TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		list[i] = (struct sw_worker_tensor){
			.name = names[i], .n_elems = 1, .dtype = SW_F32};
		list[i].base = &memory[i];
	}
	while (sw_worker_declare(w, list, TENSORS) == SW_EAGAIN)
		assert_true(sw_agent_make_memory(&s->agent.shared));
	w->n_admitted = TENSORS;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		for (uint32_t t = 0; t < TENSORS; t++)
			sw_worker_source(w, t, i, &memory[t]);
		open_client(s, &clients[i], i);
	}
	return s;
}

static void close_job(struct agent_rig *s, struct client *clients)
{
	for (uint32_t i = 0; i < CLIENTS; i++) {
		sw_host_client_close(&s->agent.core.clients[i]);
		free(clients[i].control);
	}
	close_scene(s);
}

static uint32_t turn(struct agent_rig *s)
{
	s->now_ns += SW_MS; /* later than the last work() */
	return sw_agent_work(&s->agent.core, s->now_ns);
}

/* Each client has more submits than a turn takes in total. */
static void take__bounded(void **state)
{
	struct client clients[CLIENTS];
	struct agent_rig *s = open_job(clients);
	/* client 0 pushes nothing, so no round is complete */
	uint32_t n_left = (CLIENTS - 1) * TENSORS;

	(void)state;
	for (uint32_t i = 1; i < CLIENTS; i++)
		submit(&clients[i], TENSORS);
	while (n_left) {
		uint32_t n = turn(s);

		assert_in_range(n, 1, TAKEN_MAX);
		n_left -= n;
	}
	close_job(s, clients);
}

/* While other clients have enough for many turns, the last client does not wait
 * that long. */
static void take__in_turn(void **state)
{
	struct client clients[CLIENTS];
	struct agent_rig *s = open_job(clients);

	(void)state;
	for (uint32_t i = 0; i + 1 < CLIENTS; i++)
		submit(&clients[i], TENSORS);
	submit(&clients[CLIENTS - 1], 1);
	for (uint32_t i = 0; i < CLIENTS * 64 / TAKEN_MAX; i++)
		turn(s);
	assert_int_equal(
		sw_spsc_room(&clients[CLIENTS - 1].submits), SW_EDGE_TENSORS);
	close_job(s, clients);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(take__bounded),
		cmocka_unit_test(take__in_turn)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
