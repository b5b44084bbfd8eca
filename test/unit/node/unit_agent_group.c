/* unit_agent_group.c - processes that attach while the previous job ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/node/agent_rig.h"

/* Check that the next message to the process is a progress line with @text. */
static void expect_line(struct raw *w, const char *text)
{
	union sw_edge_msg m;
	int fds[2];

	assert_int_equal(
		sw_edge_recv(w->sock, &m, sizeof(m), fds, 2), sizeof(m.text));
	assert_int_equal(m.kind, SW_EDGE_STATUS);
	if (!strstr(m.text.text, text))
		fail_msg("the agent says: %s", m.text.text);
}

/* Check that the waiting processes' job begins when the previous job is
 * released. */
static void expect_next_job(struct agent_rig *s)
{
	struct agent *a = &s->agent;

	for (uint32_t i = 0; i < 20 && a->control.group.ranks[0].is_gone; i++) {
		pass(s);
		control(s);
	}
	assert_true(a->control.is_begun && a->control.group.n_here == RANKS);
	admit(s);
}

/* A process that closes and attaches again before the others have closed
 * belongs to the next job, for any place that it asks for. */
static void attach__again_before_the_others_left(void **state)
{
	static const uint32_t wanted[] = {
		0, 1, 1 | SW_EDGE_IF_FREE, 2 | SW_EDGE_IF_FREE};
	struct agent_rig *s = open_scene();

	for (uint32_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		detach(s, 0);
		attach(s, 0, wanted[i]);
		expect_silence(&s->w[0]);
		expect_silence(&s->w[1]);
		detach(s, 1);
		attach(s, 1, 0);
		expect_next_job(s);
	}
	detach(s, 0);
	detach(s, 1);
	control(s);
	expect_left(s);
	close_scene(s);
}

/* A process that attached again dies, and attaches once more. */
static void attach__again_and_again(void **state)
{
	struct agent_rig *s = open_scene();

	detach(s, 0);
	for (uint32_t i = 0; i < 10; i++) {
		attach(s, 0, 1);
		expect_silence(&s->w[0]);
		close(s->w[0].sock);
		control(s);
	}
	attach(s, 0, 1);
	detach(s, 1);
	attach(s, 1, 2);
	expect_next_job(s);
	detach(s, 0);
	detach(s, 1);
	control(s);
	expect_left(s);
	close_scene(s);
}

/* While no process has left, the agent refuses another process for the same
 * local rank. The refusal names the process that uses it. */
static void attach__to_a_job_that_runs(void **state)
{
	struct agent_rig *s = open_scene();
	struct raw mine = s->w[0];

	attach(s, 0, 1);
	raw_await_end(&s->w[0], SW_EDGE_REFUSED, SW_EBUSY,
		"local rank 0 of 2 is already taken by process");
	close(s->w[0].sock);
	s->w[0] = mine;
	close_scene(s);
}

/* A process that waits for a job's end learns which processes have not left
 * it. */
static void attach__is_told_who_has_not_left(void **state)
{
	struct agent_rig *s = open_scene();
	struct raw last = s->w[1];
	char text[64];

	detach(s, 0);
	attach(s, 0, 0);
	attach(s, 1, 0);
	s->agent.control.next.tell_at_ns = 0;
	sw_agent_tell_waiting(&s->agent.control);
	snprintf(text, sizeof(text), "local rank 1 (process %d)", getpid());
	expect_line(&s->w[0], text);
	expect_line(&s->w[1], text);
	close(s->w[0].sock);
	close(s->w[1].sock);
	s->w[0] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
	s->w[1] = last;
	close_scene(s);
}

/* All processes of the next job wait for the previous job's last process when
 * the agent stops: they learn it at once, and their job never begins. */
static void stop__begins_no_other_job(void **state)
{
	struct agent_rig *s = open_scene();
	struct raw next[RANKS], last = s->w[1];

	detach(s, 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		attach(s, i, 0);
		next[i] = s->w[i];
	}
	sw_agent_stop_gathering(&s->agent.control);
	for (uint32_t i = 0; i < RANKS; i++) {
		raw_await_end(&next[i], SW_EDGE_REFUSED, SW_ECLOSED,
			"the agent stops");
		raw_close(&next[i]);
	}
	s->w[0] = (struct raw){.sock = -1, .bell = -1, .memory = -1};
	s->w[1] = last;
	detach(s, 1);
	control(s);
	expect_left(s);
	close_scene(s);
}

/* If the agent stops while a job lacks a process, the waiting process learns it
 * at once. */
static void stop__before_all_have_come(void **state)
{
	struct agent_rig *s = open_scene();

	for (uint32_t i = 0; i < RANKS; i++)
		detach(s, i);
	control(s);
	expect_left(s);
	attach(s, 0, 0);
	sw_agent_stop_gathering(&s->agent.control);
	raw_await_end(&s->w[0], SW_EDGE_REFUSED, SW_ECLOSED, "the agent stops");
	attach(s, 1, 1);
	raw_await_end(&s->w[1], SW_EDGE_REFUSED, SW_ECLOSED, "the agent stops");
	assert_false(s->agent.control.is_begun);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach__again_before_the_others_left),
		cmocka_unit_test(attach__again_and_again),
		cmocka_unit_test(attach__to_a_job_that_runs),
		cmocka_unit_test(attach__is_told_who_has_not_left),
		cmocka_unit_test(stop__begins_no_other_job),
		cmocka_unit_test(stop__before_all_have_come)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
