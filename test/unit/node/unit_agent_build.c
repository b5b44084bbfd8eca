/* unit_agent_build.c - the control thread builds a worker's tensors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/faults.h"
#include "test/support/alloc.h"
#include "test/unit/node/agent_rig.h"

enum { TENSORS = 5 };

/* Run code of the lcores and check that it neither allocates nor frees. */
#define ON_LCORE(...)                                   \
	do {                                            \
		uint64_t calls = alloc_calls();         \
		int64_t before = alloc_live();          \
                                                        \
		__VA_ARGS__;                            \
		assert_true(alloc_calls() == calls);    \
		assert_int_equal(alloc_live(), before); \
	} while (0)

static struct sw_worker *worker_of(struct agent_rig *s, uint32_t lane)
{
	return s->agent.shared.parts[lane].worker;
}

/* Let process @i declare @n tensors, the last one larger if @differs. */
static void declare(struct agent_rig *s, uint32_t i, uint32_t n, bool differs)
{
	struct sw_edge_declare m;

	good_declare(&m, 0, n);
	m.descs[n - 1].n_elems += differs;
	raw_send(&s->w[i], &m, declare_bytes(n));
	for (uint32_t k = 0; k < 4; k++)
		control(s);
}

static void run(struct agent_rig *s)
{
	struct sw_worker *w = worker_of(s, 0);

	admit(s);
	w->state = SW_WORKER_RUNNING;
	w->size = w->firsts[1] = RANKS;
}

static void lcore__takes_no_memory(void **state)
{
	struct agent_rig *s = open_attached();
	int64_t live = alloc_live();

	(void)state;
	ON_LCORE(work(s); lane_work(s));
	assert_true(s->agent.core.has_worker);
	assert_true(s->agent.shared.others[0].is_open);
	run(s);
	declare(s, 0, TENSORS, false);
	for (uint32_t l = 0; l < LCORES; l++) {
		assert_int_equal(worker_of(s, l)->n_built, TENSORS);
		assert_int_equal(worker_of(s, l)->n_tensors, 0);
	}
	ON_LCORE(work(s));
	assert_int_equal(worker_of(s, 0)->n_tensors, TENSORS);
	detach(s, 0);
	detach(s, 1);
	control(s);
	ON_LCORE(for (uint32_t i = 0; i < 20; i++) pass(s));
	assert_false(s->agent.core.has_worker);
	expect_left(s); /* the worker is also closed */
	assert_true(alloc_live() < live);
	close_scene(s);
}

/* If the second client declares one tensor differently, that tensor is dead;
 * all others are built only once. */
static void declare__built_once(void **state)
{
	struct agent_rig *s = open_attached();
	struct sw_worker *w = worker_of(s, 0);

	(void)state;
	ON_LCORE(work(s); lane_work(s));
	run(s);
	declare(s, 0, TENSORS, false);
	work(s);
	sw_agent_on_declared(&s->agent.core);
	control(s);
	declare(s, 1, TENSORS, true);
	assert_int_equal(w->n_built, TENSORS);
	ON_LCORE(work(s));
	assert_int_equal(w->n_tensors, TENSORS);
	for (uint32_t t = 0; t < TENSORS; t++) {
		assert_int_equal(sw_worker_death(w, t),
			t + 1 < TENSORS ? 0 : SW_EMISMATCH);
		assert_non_null(w->tensors[t].locals[0].from);
		assert_true(
			!w->tensors[t].locals[1].from == (t + 1 == TENSORS));
	}
	detach(s, 0);
	detach(s, 1);
	control(s);
	expect_left(s);
	close_scene(s);
}

static bool is_never_ready(void *ctx, uint32_t owner, uint64_t bytes)
{
	(void)ctx, (void)owner, (void)bytes;
	return false;
}

/* The job ends while one lane has a batch and the other waits for memory: the
 * next job begins without the batch. */
static void end__half_way(void **state)
{
	struct agent_rig *s = open_attached();
	const struct agent_control *c = &s->agent.control;

	(void)state;
	ON_LCORE(work(s); lane_work(s));
	run(s);
	s->agent.shared.parts[1].env.mem_ready = is_never_ready;
	declare(s, 0, TENSORS, false);
	assert_int_equal(c->n_lanes_built, 1);
	detach(s, 0);
	detach(s, 1);
	control(s);
	assert_int_equal(c->n_lanes_built, 0);
	expect_left(s);
	close_scene(s);
}

/* A batch arrives in the same turn as the report that the job has ended, so its
 * client has left. */
static void end__with_a_batch(void **state)
{
	struct agent_rig *s = open_attached();
	const struct agent_control *c = &s->agent.control;
	struct sw_edge_declare m;

	(void)state;
	ON_LCORE(work(s); lane_work(s));
	run(s);
	good_declare(&m, 0, TENSORS);
	raw_send(&s->w[0], &m, declare_bytes(TENSORS));
	for (uint32_t i = 0; i < 20 && !c->building.n; i++)
		sw_host_poll(s->agent.shared.host, 0);
	assert_int_equal(c->building.n, TENSORS);
	sw_worker_fail(worker_of(s, 0), SW_ESERVER, SW_KEY_NONE, "server s1");
	for (uint32_t i = 0; i < 20; i++)
		pass(s);
	sw_agent_take_reports(&s->agent.control);
	assert_false(c->is_begun);
	assert_int_equal(c->building.n, 0);
	control(s);
	close_scene(s);
}

/* A stream that exceeds the number of places is refused for that reason. */
static void open__no_place_is_left(void **state)
{
	static struct sw_edge_open m = {.kind = SW_EDGE_OPEN};
	struct agent_rig *s = open_attached();
	struct sw_worker *w = worker_of(s, 0);
	union sw_edge_msg answer;
	uint32_t n_places;
	int fds[2];

	(void)state;
	ON_LCORE(work(s); lane_work(s));
	run(s);
	m.desc = (struct sw_edge_desc){.n_elems = RANKS,
		.dtype = SW_EDGE_WINDOW_MIN,
		.kind = SW_EDGE_STREAM,
		.name = "g/all_reduce"};
	m.ranks[1] = 1;
	n_places = w->n_places;
	w->n_places = SW_TENSORS;
	raw_send(&s->w[0], &m,
		offsetof(struct sw_edge_open, ranks) +
			RANKS * sizeof(m.ranks[0]));
	for (uint32_t k = 0; k < 4; k++)
		control(s);
	assert_int_equal(raw_recv(&s->w[0], &answer, fds), sizeof(answer.text));
	assert_int_equal(answer.kind, SW_EDGE_FAILED);
	assert_int_equal(answer.text.err, SW_EBUSY);
	assert_string_equal(answer.text.text,
		"all places for tensors and groups are taken; a group frees "
		"its place when all of its ranks have closed it");
	w->n_places = n_places;
	detach(s, 0);
	detach(s, 1);
	control(s);
	expect_left(s);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lcore__takes_no_memory),
		cmocka_unit_test(declare__built_once),
		cmocka_unit_test(end__half_way),
		cmocka_unit_test(end__with_a_batch),
		cmocka_unit_test(open__no_place_is_left)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
