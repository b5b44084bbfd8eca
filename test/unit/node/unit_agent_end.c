/* unit_agent_end.c - when an agent's processes learn that their job has ended.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/faults.h"
#include "test/unit/node/agent_rig.h"

/* If a process dies, the other process learns it when both lcores have left its
 * tensors. */
static void death__waits_for_every_lane(void **state)
{
	struct agent_rig *s = open_scene();

	close(s->w[0].sock);
	s->w[0].sock = -1;
	control(s);
	expect_silence(&s->w[1]); /* no lcore knows yet */
	work(s);
	control(s);
	assert_true(sw_worker_end_of(&s->agent.core.worker));
	expect_silence(&s->w[1]); /* lane 1 does not know yet */
	lane_work(s);
	work(s);
	control(s);
	raw_await_end(&s->w[1], SW_EDGE_CLOSED, SW_EPEER,
		"local rank 0: training process");
	expect_left(s);
	close_scene(s);
}

/* The job fails in lane 0; the processes learn it when lane 1 has also left. */
static void failure__waits_for_every_lane(void **state)
{
	struct agent_rig *s = open_scene();

	sw_worker_fail(&s->agent.core.worker, SW_ESERVER, SW_KEY_NONE,
		"server %s", "s1 is silent");
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

/* The agent stops; the processes learn it when both lanes have left. */
static void stop__waits_for_every_lane(void **state)
{
	struct agent_rig *s = open_scene();

	sw_agent_stop(&s->agent.control);
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

/* A process dies after the job has failed and before it is told: the order to
 * leave reaches lanes that are already closing. */
static void death__after_a_failure(void **state)
{
	struct agent_rig *s = open_scene();
	struct agent *a = &s->agent;

	sw_worker_fail(&a->core.worker, SW_ESERVER, SW_KEY_NONE, "server s1");
	work(s);
	lane_work(s);
	s->now_ns += 3 * SW_S;
	a->shared.others[0].worker.engine.tick(
		&a->shared.others[0].worker.engine, s->now_ns,
		0); /* lane 1 has left */
	work(s);
	a->core.worker.engine.tick(
		&a->core.worker.engine, s->now_ns, 0); /* lane 0 also left */
	work(s);
	assert_int_equal(
		atomic_load(&a->shared.others[0].stage), AGENT_LANE_CLOSING);
	close(s->w[0].sock);
	s->w[0].sock = -1;
	/* before the control thread takes the reports */
	sw_host_poll(a->shared.host, 0);
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
