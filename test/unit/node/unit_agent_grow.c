/* unit_agent_grow.c - an agent's reaction to impossible growth.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/tensors.h"
#include "engine/worker/todo.h"
#include "pmd/host/host.h"
#include "test/support/unit.h"
#include "test/unit/node/agent_rig.h"

enum { ELEMS = 1000, BYTES = ELEMS * sizeof(float), COMPLETIONS = 8 };

static struct sw_worker *worker_of(struct agent_rig *s)
{
	return &s->agent.core.worker;
}

/* Let all servers admit lane 0's tensors, and let the other lane report it. */
static void admit_all(struct sw_worker *w)
{
	for (uint32_t i = w->n_admitted; i < w->n_tensors; i++)
		assert_int_equal(
			sw_tensors_keyed(w, sw_wtensor_numbered(w, i), i, 0),
			0);
	sw_todo_renumber(w);
	for (uint32_t l = 0; l < w->n_links; l++)
		w->links[l].n_declared = w->n_tensors;
	w->n_declaring = 0;
	w->is_unsettled = true;
	sw_worker_take(w);
}

/* Complete process @i's declaration and receive its answer. */
static void answer(struct agent_rig *s, uint32_t i)
{
	union sw_edge_msg m;
	int fds[2];

	for (uint32_t k = 0; k < 4; k++)
		control(s);
	work(s);
	admit_all(worker_of(s));
	control(s);
	assert_int_equal(raw_recv(&s->w[i], &m, fds), sizeof(m.declared));
	assert_int_equal(m.declared.err, 0);
	close(fds[0]);
	close(fds[1]);
}

/* Open a job with a growing tensor of both processes, and a stream of process 1
 * alone, so that process 1 can continue alone. */
static struct agent_rig *open_job(void)
{
	static struct sw_edge_open stream = {.kind = SW_EDGE_OPEN,
		.batch = 1,
		.desc = {.n_elems = 1,
			.dtype = SW_EDGE_WINDOW_MIN,
			.kind = SW_EDGE_STREAM,
			.name = "g/all_reduce"},
		.ranks = {1}};
	struct agent_rig *s = open_attached();
	struct sw_edge_declare m;

	admit(s);
	worker_of(s)->state = SW_WORKER_RUNNING;
	for (uint32_t i = 0; i < LCORES; i++) {
		struct sw_worker *w = s->agent.shared.parts[i].worker;

		w->size = w->firsts[1] = RANKS;
	}
	good_declare(&m, 0, 1);
	m.descs[0].n_elems = ELEMS;
	m.descs[0].kind = SW_EDGE_GROWING;
	for (uint32_t i = 0; i < RANKS; i++) {
		raw_send(&s->w[i], &m, declare_bytes(1));
		answer(s, i);
	}
	raw_send(&s->w[1], &stream,
		offsetof(struct sw_edge_open, ranks) + sizeof(stream.ranks[0]));
	answer(s, 1);
	return s;
}

static void close_job(struct agent_rig *s)
{
	for (uint32_t i = 0; i < RANKS; i++)
		if (s->w[i].control)
			detach(s, i);
	control(s);
	expect_left(s);
	close_scene(s);
}

static void push(struct agent_rig *s, uint32_t i, uint64_t lacks)
{
	struct sw_submit m = {.handle = SW_EDGE_TENSORS};

	s->w[i].control->lacks[0] = lacks;
	assert_int_equal(sw_spsc_put(&s->w[i].submits, &m, 1), 1);
	work(s);
}

static void grow(struct agent_rig *s, uint32_t i, uint64_t lacks)
{
	s->w[i].control->lacks[0] = lacks;
	sw_flags_raise(&s->w[i].control->grown, 0);
	work(s);
}

/* Return how process @i's push_pull has ended; 1: it has not. */
static int ended(struct agent_rig *s, uint32_t i)
{
	struct sw_completion c[COMPLETIONS];

	return sw_spsc_take(&s->w[i].completions, c, COMPLETIONS) == 1
		       ? c[0].status
		       : 1;
}

/* Check that process 0 is evicted with a log line, that calls which need it end
 * for process 1 with its name, and that process 1 continues. */
static void expect_evicted(struct agent_rig *s, const char *text)
{
	char line[SW_TEXT_MAX];

	assert_true(sw_host_is_evicted(s->agent.core.clients[0]));
	assert_false(sw_host_is_evicted(s->agent.core.clients[1]));
	control(s);
	raw_await_end(&s->w[0], SW_EDGE_CLOSED, SW_EPROTO, text);
	snprintf(line, sizeof(line), "process %d (user %u) %s", getpid(),
		geteuid(), text);
	assert_contains(s->r->lines, line);
	raw_close(&s->w[0]);
	s->w[0] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
	for (uint32_t k = 0; k < 3; k++) {
		work(s);
		lane_work(s);
	}
	assert_int_equal(ended(s, 1), SW_EPEER);
	assert_contains(s->w[1].control->whys[0].text, "rank 0 (node n1)");
	assert_contains(s->w[1].control->whys[0].text, text);
	assert_int_equal(worker_of(s)->state, SW_WORKER_RUNNING);
	control(s);
	expect_silence(&s->w[1]);
}

/* More missing bytes than the tensor has, and parts of elements. */
static void push__must_be_possible(void **state)
{
	static const uint64_t bad[] = {
		BYTES + sizeof(float), 2, BYTES - 1, UINT64_MAX};

	for (uint32_t i = 0; i < 4; i++) {
		struct agent_rig *s = open_job();

		push(s, 1, 0);
		push(s, 0, bad[i]);
		expect_evicted(s, "pushed a tensor with an invalid root or "
				  "size of missing bytes, tensor (0)");
		close_job(s);
	}
	(void)state;
}

/* The same, and growth backwards, before and after the round has begun. */
static void growth__must_be_possible(void **state)
{
	static const uint64_t bad[] = {404, 399, 2, BYTES + 4, UINT64_MAX};

	for (uint32_t i = 0; i < 2 * 5; i++) {
		struct agent_rig *s = open_job();

		push(s, i % 2, 400);
		grow(s, i % 2, 400);
		push(s, !(i % 2), 400);
		assert_false(sw_host_is_evicted(s->agent.core.clients[0]));
		grow(s, 0, bad[i / 2]);
		expect_evicted(s, "grew a tensor backwards, beyond its size or "
				  "by no whole elements, tensor (0)");
		close_job(s);
	}
	(void)state;
}

/* Growth before a push, repeated growth, and growth after the end have no
 * effect. */
static void growth__of_nothing(void **state)
{
	struct agent_rig *s = open_job();
	const struct sw_wtensor *t = &worker_of(s)->tensors[0];

	(void)state;
	grow(s, 0, 3);
	grow(s, 0, UINT64_MAX);
	push(s, 0, 400);
	grow(s, 0, 400);
	grow(s, 1, 17);
	assert_int_equal(t->lacks, 400);
	push(s, 1, 0);
	assert_true(t->is_begun);
	grow(s, 0, 400);
	grow(s, 0, 8);
	grow(s, 0, 8);
	assert_int_equal(t->lacks, 8);
	sw_worker_leave(worker_of(s), NULL);
	grow(s, 0, 3);
	assert_false(sw_host_is_evicted(s->agent.core.clients[0]));
	close_job(s);
}

/* Let process 0 die, and let all threads notice it. */
static void die(struct agent_rig *s)
{
	raw_close(&s->w[0]);
	s->w[0] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
	control(s);
	for (uint32_t k = 0; k < 3; k++) {
		work(s);
		lane_work(s);
	}
	assert_int_equal(worker_of(s)->state, SW_WORKER_RUNNING);
}

static void death__between_growths(void **state)
{
	struct agent_rig *s = open_job();

	(void)state;
	push(s, 1, 0);
	push(s, 0, 400);
	grow(s, 0, 200);
	die(s);
	assert_int_equal(ended(s, 1), SW_EPEER);
	assert_contains(s->w[1].control->whys[0].text, "rank 0 (node n1)");
	close_job(s);
}

/* A process that dies after all of its growth is not missed. */
static void death__after_growth(void **state)
{
	struct agent_rig *s = open_job();
	const struct sw_wtensor *t = &worker_of(s)->tensors[0];

	(void)state;
	push(s, 1, 400);
	push(s, 0, 400);
	grow(s, 0, 0);
	die(s);
	assert_int_equal(ended(s, 1), 1);
	grow(s, 1, 0);
	assert_int_equal(t->lacks, 0);
	assert_true(t->is_begun);
	close_job(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push__must_be_possible),
		cmocka_unit_test(growth__must_be_possible),
		cmocka_unit_test(growth__of_nothing),
		cmocka_unit_test(death__between_growths),
		cmocka_unit_test(death__after_growth)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
