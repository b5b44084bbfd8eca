/* unit_ceiling.c - the common limit of frames in flight of a job's flows.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/flow_rig.h"

enum { MANY = 16, OTHERS = 4, SRTT = 100 * SW_US, BUDGET = 96000 };

/* --- the rule --- */

static bool lose(struct sw_ceiling *c, uint32_t *period, uint64_t sent_ns)
{
	return sw_ceiling_lose(c, period, 48, sent_ns);
}

/* The ceiling acts only if three flows lose frames, however many frames each
 * loses. */
static void ceiling__counts_flows(void **state)
{
	struct sw_ceiling c = {0};
	uint32_t of[3] = {0};

	sw_ceiling_begin(&c, 0, SW_S, SRTT);
	for (uint32_t i = 0; i < 100; i++)
		assert_false(lose(&c, &of[i % 2], SW_S));
	assert_true(lose(&c, &of[2], SW_S));
	assert_true(lose(&c, &of[0], SW_S));
	sw_ceiling_cut(&c, 4000, FRAME, SW_S, SRTT);
	assert_int_equal(c.limit, 3000);
}

/* With more than 48 flows, the ceiling acts if a 16th of them lose frames. */
static void ceiling__a_16th(void **state)
{
	struct sw_ceiling c = {0};
	uint32_t of[4] = {0};

	sw_ceiling_begin(&c, 0, SW_S, SRTT);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(sw_ceiling_lose(&c, &of[i], 64, SW_S) == (i == 3));
}

/* Losses of frames that were sent before the ceiling shrank do not count. */
static void ceiling__skips_old_losses(void **state)
{
	struct sw_ceiling c = {0};
	uint32_t of[3] = {0};

	sw_ceiling_begin(&c, 0, SW_S, SRTT);
	sw_ceiling_cut(&c, 4000, FRAME, SW_S, SRTT);
	assert_true(sw_ceiling_is_over(&c, SW_S));
	sw_ceiling_begin(&c, 0, SW_S, SRTT);
	for (uint32_t i = 0; i < 9; i++)
		assert_false(lose(&c, &of[i % 3], SW_S - 1));
	assert_int_equal(c.n_lossy, 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(lose(&c, &of[i], SW_S) == (i == 2));
}

/* After eight round trips losses are counted anew. */
static void ceiling__forgets(void **state)
{
	struct sw_ceiling c = {0};
	uint32_t of[3] = {0};
	uint64_t then = SW_S + 8 * SRTT;

	sw_ceiling_begin(&c, 0, SW_S, SRTT);
	lose(&c, &of[0], SW_S);
	lose(&c, &of[1], SW_S);
	assert_false(sw_ceiling_is_over(&c, then - 1));
	assert_true(sw_ceiling_is_over(&c, then));
	sw_ceiling_begin(&c, 0, then, SRTT);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(lose(&c, &of[2 - i], then) == (i == 2));
}

static void ceiling__a_frame_at_least(void **state)
{
	struct sw_ceiling c = {0};

	for (uint32_t i = 0; i < 9; i++)
		sw_ceiling_cut(&c, i ? c.limit : 60, FRAME, SW_S, SRTT);
	assert_int_equal(c.limit, FRAME);
	sw_ceiling_grow(&c, FRAME, 1 << 20, 2 * SW_S, SRTT);
	assert_int_equal(c.limit, FRAME + FRAME / 4);
}

static void ceiling__regrows(void **state)
{
	struct sw_ceiling c = {0};
	uint64_t now_ns = SW_S;
	uint32_t of[2] = {0};

	sw_ceiling_cut(&c, 8 * 64 * 4, FRAME, now_ns, SRTT);
	assert_int_equal(c.limit, 1536);
	for (uint32_t i = 0; i < 9; i++) /* at most once per round trip */
		sw_ceiling_grow(&c, FRAME, 1 << 20, now_ns + SRTT + i, SRTT);
	assert_int_equal(c.limit, 1536 + 1536 / 8);
	now_ns += 2 * SRTT;
	sw_ceiling_cut(&c, c.limit, FRAME, now_ns, SRTT);
	assert_int_equal(c.limit, 1296);
	sw_ceiling_grow(&c, FRAME, 1 << 20, now_ns += SRTT, SRTT);
	/* from here on by a 64th, since the limit has been found */
	assert_int_equal(c.limit, 1296 + 20);
	sw_ceiling_begin(&c, 0, now_ns, SRTT);
	lose(&c, &of[0], now_ns);
	sw_ceiling_grow(&c, FRAME, 1 << 20, now_ns += SRTT, SRTT);
	assert_int_equal(c.limit, 1316 + 20); /* one flow is no crowd */
	lose(&c, &of[1], now_ns);
	sw_ceiling_grow(&c, FRAME, 1 << 20, now_ns += SRTT, SRTT);
	assert_int_equal(c.limit, 1336);
	sw_ceiling_grow(&c, FRAME, 1 << 20, now_ns += 8 * SRTT, SRTT);
	assert_int_equal(c.limit, 1336 + 20);
	assert_true(sw_ceiling_is_low(&c));
	sw_ceiling_grow(&c, FRAME, 1357, now_ns += SRTT, SRTT);
	assert_false(sw_ceiling_is_low(&c));
}

/* --- grants below it --- */

/* Two jobs at one server. */
struct two {
	uint64_t now_ns;
	struct sw_grants g;
	struct sw_crowd many, others;
	struct sw_flow flows[MANY + OTHERS];
};

/* Let a frame arrive at flow @i, whose sender has @backlog more. */
static void come(struct two *t, uint32_t i, uint64_t backlog)
{
	struct sw_flow *f = &t->flows[i];
	struct sw_header h = {.type = SW_PUSH,
		.flags = sw_backlog_flags(backlog),
		.psn = f->rx_psn[0] + 1,
		.consumed = (uint32_t)f->peer_consumed + FRAME};

	sw_flow_rx(f, &h);
	sw_flow_accept(f, 0, h.psn, t->now_ns);
	sw_flow_send_ctl(f, &h);
}

static struct two *open_two(bool is_unlimited)
{
	static struct two t;
	struct fixture *x = open_flow();

	x->params.is_unlimited = is_unlimited;
	memset(&t, 0, sizeof(t));
	t.now_ns = SW_S;
	t.g = (struct sw_grants){
		.start = SW_FLOW_START, .total = BUDGET, .whole = BUDGET};
	sw_crowd_open(&t.many, &t.g, false, &t.now_ns);
	sw_crowd_open(&t.others, &t.g, false, &t.now_ns);
	for (uint32_t i = 0; i < MANY + OTHERS; i++) {
		sw_flow_init(&t.flows[i], &x->params, &t.g, true, 0);
		sw_crowd_add(i < MANY ? &t.many : &t.others, &t.flows[i]);
		t.flows[i].srtt_ns = SRTT;
		come(&t, i, 10000);
	}
	return &t;
}

/* Let six frames arrive at each flow within two round trips, while @n flows
 * miss frames. */
static void miss(struct two *t, uint32_t n)
{
	sw_flow_missed(&t->flows[0], t->now_ns);
	t->now_ns += 2 * SRTT;
	for (uint32_t i = 0; i < 6 * MANY; i++)
		come(t, i % MANY, 10000);
	for (uint32_t i = 0; i < 3 * n; i++)
		sw_flow_missed(&t->flows[i % n], t->now_ns);
}

static void close_two(struct two *t)
{
	for (uint32_t i = 0; i < MANY + OTHERS; i++)
		if (t->flows[i].grants)
			sw_flow_fini(&t->flows[i]);
	assert_int_equal(t->g.used, 0);
	assert_int_equal(t->g.windows, 0);
	assert_int_equal(t->many.n_flows, 0);
	assert_int_equal(t->many.used, 0);
	assert_null(t->many.turns.first);
	assert_null(t->g.turns.first);
	assert_null(t->g.crowds);
}

/* Two lossy members, or one member that reports false losses, change
 * nothing. */
static void crowd__not_of_two(void **state)
{
	struct two *t = open_two(false);

	miss(t, 2);
	assert_false(sw_ceiling_is_low(&t->many.ceiling));
	assert_null(t->g.crowds);
	close_two(t);
}

/* Flows without limits share no ceiling, however many lose frames. */
static void crowd__not_of_unlimited(void **state)
{
	struct two *t = open_two(true);

	miss(t, MANY);
	assert_false(sw_ceiling_is_low(&t->many.ceiling));
	close_two(t);
}

/* If flows of a job lose frames, that job's frames per round trip shrink by a
 * quarter; other jobs are not affected. */
static void crowd__harms_no_other_job(void **state)
{
	struct two *t = open_two(false);
	struct sw_flow *other = &t->flows[MANY];
	uint64_t open = other->given - other->peer_consumed;

	miss(t, 3);
	assert_int_equal(t->many.ceiling.limit, 3 * MANY * FRAME * 3 / 4);
	assert_ptr_equal(t->g.crowds, &t->many);
	assert_false(sw_ceiling_is_low(&t->others.ceiling));
	for (uint32_t i = 0; i < OTHERS * 100; i++)
		come(t, MANY + i % OTHERS, 10000);
	assert_true(other->given - other->peer_consumed >= open);
	assert_null(t->g.turns.first);
	close_two(t);
}

/* No flow gets a grant until less than the ceiling is in flight; then the job's
 * flows take turns. */
static void crowd__takes_turns(void **state)
{
	struct two *t = open_two(false);
	uint64_t given[MANY], least = UINT64_MAX, most = 0;
	struct sw_flow *f;

	miss(t, 3);
	assert_true(t->many.used > t->many.ceiling.limit);
	for (uint32_t i = 0; i < MANY; i++) {
		f = &t->flows[i];
		while (f->peer_consumed < f->given)
			come(t, i, 10000);
		assert_true(i < MANY - 1 ? f->turn.is_waiting : true);
	}
	for (uint32_t i = 0; i < MANY; i++)
		given[i] = t->flows[i].given;
	for (uint32_t i = 0; i < 100 * MANY; i++) {
		f = sw_grants_next(&t->many.turns);
		for (uint32_t k = 0; !f && k < MANY; k++)
			if (t->flows[k].given > t->flows[k].peer_consumed)
				come(t, k, 10000);
		assert_true(t->many.used <= t->many.ceiling.limit);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		least = sw_min64(least, t->flows[i].given - given[i]);
		most = sw_max64(most, t->flows[i].given - given[i]);
	}
	assert_true(least > 50 * FRAME);
	assert_true(most - least <= 4 * FRAME);
	close_two(t);
}

/* Waiting flows may leave, and two remaining flows need no ceiling. */
static void crowd__leaves(void **state)
{
	struct two *t = open_two(false);

	miss(t, 3);
	for (uint32_t i = 0; i < MANY; i++)
		while (t->flows[i].peer_consumed < t->flows[i].given)
			come(t, i, 10000);
	sw_flow_restart(&t->flows[5]);
	assert_ptr_equal(t->flows[5].crowd, &t->many);
	assert_false(t->flows[5].turn.is_waiting);
	for (uint32_t i = 0; i < MANY - 2; i++) {
		assert_true(sw_ceiling_is_low(&t->many.ceiling));
		sw_flow_fini(&t->flows[i]);
	}
	assert_false(sw_ceiling_is_low(&t->many.ceiling));
	assert_null(t->g.crowds);
	assert_null(t->many.turns.first);
	while (sw_grants_next(&t->g.turns))
		;
	assert_true(
		t->flows[MANY - 1].given > t->flows[MANY - 1].peer_consumed);
	close_two(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ceiling__counts_flows),
		cmocka_unit_test(ceiling__a_16th),
		cmocka_unit_test(ceiling__skips_old_losses),
		cmocka_unit_test(ceiling__forgets),
		cmocka_unit_test(ceiling__a_frame_at_least),
		cmocka_unit_test(ceiling__regrows),
		cmocka_unit_test(crowd__not_of_two),
		cmocka_unit_test(crowd__not_of_unlimited),
		cmocka_unit_test(crowd__harms_no_other_job),
		cmocka_unit_test(crowd__takes_turns),
		cmocka_unit_test(crowd__leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
