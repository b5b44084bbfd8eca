/* unit_agent_report.c - if the control thread is late, only log lines are lost.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/faults.h"
#include "engine/worker/link.h"
#include "test/unit/node/agent_rig.h"

enum { TENSORS = 600, LINES = 20000, JOBS = 3 };

static float memory[TENSORS][RANKS + 1];

/* Admit all tensors and let only local rank 0 push them, so that they stall. */
static void stall(struct agent_rig *s)
{
	struct sw_worker *w = &s->agent.core.worker;
	struct sw_worker_tensor list[TENSORS];
	char names[TENSORS][16];
	int err;

	for (uint32_t i = 0; i < TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.n_elems = 1,
			.dtype = SW_F32,
			.base = &memory[i][RANKS]};
	}
	w->state = SW_WORKER_RUNNING;
	w->size = w->firsts[1] = RANKS;
	while ((err = sw_worker_declare(w, list, TENSORS)) == SW_EAGAIN)
		assert_true(sw_agent_make_memory(&s->agent.shared));
	assert_int_equal(err, 0);
	w->n_admitted = TENSORS;
	for (uint32_t i = 0; i < TENSORS; i++) {
		for (uint32_t l = 0; l < RANKS; l++)
			sw_worker_source(w, i, l, &memory[i][l]);
		assert_int_equal(sw_worker_push(w, i, 0, i), 0);
	}
	s->now_ns += s->agent.shared.daemon.params.stall_warn;
	do /* each tick looks at some of them */
		w->engine.tick(&w->engine, s->now_ns, 0);
	while (w->look.next);
}

static uint32_t n_lines(const struct agent_rig *s, const char *text)
{
	uint32_t n = 0;

	for (const char *at = s->r->lines; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* The job fails and the lcores leave it before the control thread runs: all
 * processes still learn that it has ended, and why. */
static void fail_job(struct agent_rig *s)
{
	sw_worker_fail(&s->agent.core.worker, SW_ESERVER, SW_KEY_NONE,
		"server s1 is silent");
	for (uint32_t i = 0; i < 5 + TENSORS && s->agent.core.has_worker; i++)
		pass(s);
	assert_false(s->agent.core.has_worker);
	control(s);
	for (uint32_t i = 0; i < RANKS; i++) {
		raw_await_end(&s->w[i], SW_EDGE_CLOSED, SW_ESERVER,
			"server s1 is silent");
		raw_close(&s->w[i]);
	}
}

/* Check that later processes are admitted. */
static void expect_jobs(struct agent_rig *s)
{
	for (uint32_t job = 0; job < JOBS; job++) {
		expect_left(s);
		for (uint32_t i = 0; i < RANKS; i++)
			attach(s, i, 0);
		admit(s);
		for (uint32_t i = 0; i < RANKS; i++)
			detach(s, i);
		control(s);
	}
	expect_left(s);
}

/* Any number of tensors may stall while the control thread is late. */
static void late__tensors_that_stand_still(void **state)
{
	struct agent_rig *s = open_scene();

	stall(s);
	fail_job(s);
	assert_int_equal(
		n_lines(s, "waiting 30 s for rank 1 of 2, tensor "), 1);
	assert_int_equal(n_lines(s, "tensor t0; 599 more tensors wait"), 1);
	expect_jobs(s);
	close_scene(s);
}

/* Any number of lines for people may be written meanwhile. */
static void late__lines_without_number(void **state)
{
	struct agent_rig *s = open_scene();
	struct agent *a = &s->agent;

	for (uint32_t i = 0; i < LINES; i++)
		a->core.worker.events.state(
			&a->core, SW_WORKER_RUNNING, 0, "a line");
	a->shared.daemon.log.level = SW_LOG_WARN; /* the rig keeps only 4 KB */
	fail_job(s);
	assert_int_equal(n_lines(s, "lines were dropped"), 1);
	expect_jobs(s);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late__tensors_that_stand_still),
		cmocka_unit_test(late__lines_without_number)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
