/* unit_agent_rings.c - full rings between the agent's threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/node/agent_rig.h"

enum { AGAIN = 3, LINES = 8000, RING = 4096 };

/* Open the rings of both threads, and a host that can be kicked. */
static struct agent *open_rings(struct agent_rig *s)
{
	*s = (struct agent_rig){.r = rig_new(NULL)};
	s->agent.shared.daemon.conf.agent.local_ranks = AGENT_LOCAL_MAX;
	assert_int_equal(sw_agent_open_rings(&s->agent), 0);
	open_host(s);
	return &s->agent;
}

static void close_rings(struct agent_rig *s)
{
	sw_host_close(&s->agent.shared.host);
	free(s->agent.shared.rings);
	rig_close(s->r);
}

static void command(struct agent *a, enum agent_command_kind kind, uint32_t i)
{
	sw_agent_command(
		&a->control, &(struct agent_command){.kind = kind, .local = i});
}

/* Send each command of a running group AGAIN times. */
static void command_all(struct agent *a)
{
	for (uint32_t i = 0; i < AGAIN * AGENT_LOCAL_MAX; i++) {
		command(a, AGENT_SERVE, i % AGENT_LOCAL_MAX);
		command(a, i % 2 ? AGENT_TUNE : AGENT_END, i % AGENT_LOCAL_MAX);
		command(a, AGENT_DECLARE, 0);
		command(a, AGENT_GONE, i % AGENT_LOCAL_MAX);
	}
}

/* Two groups run and leave, one after the other: each command arrives once. */
static void command__all_at_once(void **state)
{
	static struct agent_rig s;
	struct agent *a = open_rings(&s);
	uint32_t n[AGENT_LEAVE + 1] = {0}, group = 0;
	struct agent_command o;

	(void)state;
	command(a, AGENT_JOIN, 0);
	command_all(a);
	command(a, AGENT_LEAVE, 0);
	command(a, AGENT_JOIN, 0);
	for (uint32_t i = 0; i < AGAIN; i++)
		command(a, AGENT_LEAVE, 0);
	while (sw_agent_take_command(&a->core, &o)) {
		n[o.kind]++;
		assert_true(o.group >= group);
		group = o.group;
	}
	assert_int_equal(n[AGENT_JOIN], 2);
	assert_int_equal(n[AGENT_LEAVE], 2);
	assert_int_equal(o.kind, AGENT_LEAVE); /* the last command */
	assert_int_equal(n[AGENT_DECLARE], 1);
	assert_int_equal(n[AGENT_SERVE], AGENT_LOCAL_MAX);
	assert_int_equal(n[AGENT_GONE], AGENT_LOCAL_MAX);
	assert_int_equal(n[AGENT_TUNE] + n[AGENT_END], AGENT_LOCAL_MAX);
	close_rings(&s);
}

/* After a command is taken, it can be sent again, any number of times. */
static void command__again(void **state)
{
	static struct agent_rig s;
	struct agent *a = open_rings(&s);
	struct agent_command o;

	(void)state;
	for (uint32_t i = 0; i < 5 * RING; i++) {
		command(a, i % 2 ? AGENT_LEAVE : AGENT_JOIN, 0);
		assert_true(sw_agent_take_command(&a->core, &o));
		assert_int_equal(o.group, 1 + i / 2);
	}
	assert_false(sw_agent_take_command(&a->core, &o));
	close_rings(&s);
}

static void tell(struct agent *a, enum agent_report_kind kind, uint32_t i)
{
	sw_agent_tell(
		&a->core, &(struct agent_report){.kind = kind, .local = i});
}

/* After any number of lines, reports that must arrive do arrive, and lost lines
 * are counted. */
static void tell__all_at_once(void **state)
{
	static struct agent_rig s;
	struct agent *a = open_rings(&s);
	uint32_t n[AGENT_LEFT + 1] = {0}, n_lost = 0;
	struct agent_report r;

	(void)state;
	for (uint32_t i = 0; i < LINES; i++)
		tell(a, AGENT_STATUS, 0);
	tell(a, AGENT_RUNNING, 0);
	for (uint32_t i = 0; i < AGAIN * AGENT_LOCAL_MAX; i++) {
		tell(a, AGENT_ANSWER, i % AGENT_LOCAL_MAX);
		tell(a, AGENT_DECLARED, 0);
		tell(a, AGENT_STATUS, 0);
	}
	tell(a, AGENT_FAILED, 0);
	tell(a, AGENT_ENDED, 0); /* FAILED tells all ranks */
	tell(a, AGENT_LEFT, 0);
	while (sw_agent_take_report(&a->control, &r)) {
		n[r.kind]++;
		n_lost += r.n_lost;
	}
	assert_int_equal(r.kind, AGENT_LEFT);
	assert_int_equal(n[AGENT_RUNNING], 1);
	assert_int_equal(n[AGENT_DECLARED], 1);
	assert_int_equal(n[AGENT_ANSWER], AGENT_LOCAL_MAX);
	assert_int_equal(n[AGENT_FAILED], 1);
	assert_int_equal(n[AGENT_ENDED], 0);
	assert_int_equal(n[AGENT_LEFT], 1);
	assert_int_equal(n[AGENT_STATUS], RING - AGENT_REPORTS);
	assert_int_equal(
		n_lost, LINES + AGAIN * AGENT_LOCAL_MAX - n[AGENT_STATUS]);
	close_rings(&s);
}

static bool has_mail(struct agent_rig *s, uint32_t from, uint32_t to)
{
	return sw_agent_has_mail(&s->agent, from, to);
}

/* Mail is a command of the control thread or a message of another lane. */
static void has_mail__until_it_is_taken(void **state)
{
	struct agent_rig *s = open_attached();
	struct agent_lane *l = &s->agent.shared.others[0];

	(void)state;
	assert_true(has_mail(s, 0, 0)); /* the command JOIN */
	sw_bell_await(&s->agent.shared.daemon.pollers[0].bell);
	command(&s->agent, AGENT_TUNE, 0);
	assert_false(
		sw_bell_is_awaited(&s->agent.shared.daemon.pollers[0].bell));
	sw_bell_done(&s->agent.shared.daemon.pollers[0].bell);
	assert_false(has_mail(s, 1, 1));
	admit(s);
	assert_false(has_mail(s, 0, 0));
	assert_false(has_mail(s, 1, 0));
	assert_false(has_mail(s, 0, 1));
	atomic_fetch_add(&s->agent.shared.n_freed, 1);
	assert_true(has_mail(s, 0, 1));
	lane_work(s);
	assert_false(has_mail(s, 0, 1));
	sw_worker_leave(&s->agent.core.worker, NULL);
	assert_true(has_mail(s, 0, 1));
	assert_false(has_mail(s, 1, 0));
	lane_work(s);
	assert_false(has_mail(s, 0, 1));
	atomic_store(&s->agent.shared.lanes[0].has_line, true);
	assert_true(has_mail(s, 1, 0));
	atomic_store(&l->stage, AGENT_LANE_CLOSED);
	assert_false(has_mail(s, 1, 0));
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_mail__until_it_is_taken),
		cmocka_unit_test(command__all_at_once),
		cmocka_unit_test(command__again),
		cmocka_unit_test(tell__all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
