/* unit_flow_grants.c - grants to the flows of one receiver.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/flow_rig.h"

/* Let a PUSH of one quantum arrive at flow @f, whose sender has @backlog more.
 * Return the grant that the sender gets. */
static uint32_t come(struct sw_flow *f, uint64_t backlog)
{
	struct sw_header h = {.type = SW_PUSH,
		.flags = sw_backlog_flags(backlog),
		.psn = f->rx_psn[0] + 1,
		.consumed = (uint32_t)f->peer_consumed + 1};

	sw_flow_rx(f, &h);
	sw_flow_accept(f, 0, h.psn, SW_S);
	sw_flow_send_ctl(f, &h);
	return h.grant;
}

static void open_shared(struct sw_flow *flows, uint32_t n, struct sw_grants *g)
{
	struct fixture *x = open_flow();

	*g = (struct sw_grants){.start = SW_FLOW_START, .total = 9600};
	for (uint32_t i = 0; i < n; i++)
		sw_flow_init(&flows[i], &x->params, g, true, 0);
}

/* A flow wants its rounded-up backlog beyond the initial allowance; whole
 * frames are counted. */
static void grants__by_backlog(void **state)
{
	struct sw_flow f;
	struct sw_grants g;

	open_shared(&f, 1, &g);
	assert_int_equal(come(&f, 0), 1 + SW_FLOW_START);
	assert_int_equal(g.used, 0);
	assert_int_equal(come(&f, 40), 2 + SW_FLOW_START + 63);
	assert_int_equal(g.used, 3 * FRAME);
	assert_int_equal(come(&f, 10000), 3 + f.window);
	/* a grant is never taken back */
	assert_int_equal(come(&f, 0), 3 + f.window);
	assert_int_equal(g.used, 345 * FRAME); /* f.window - START - 1 */
	sw_flow_fini(&f);
	assert_int_equal(g.used, 0);
	assert_int_equal(g.windows, 0);
}

/* An idle sender returns its unused grant. The receiver can give it to other
 * flows, and tells the sender its new initial allowance. */
static void rest__returns_the_grant(void **state)
{
	struct sw_header h = {.type = SW_KEEPALIVE};
	struct fixture *x;
	struct sw_flow f;
	struct sw_grants g;

	open_shared(&f, 1, &g);
	come(&f, 10000);
	assert_true(g.used > 0 && g.windows > 0);
	x = open_flow(); /* the flow's sender */
	x->f.granted = f.given;
	x->f.consumed = f.peer_consumed;
	send(x, 0);
	assert_false(sw_flow_may_rest(&x->f));
	ack(x, 0, 1, 0, 0);
	assert_true(sw_flow_may_rest(&x->f));
	sw_flow_rest(&x->f);
	assert_false(sw_flow_may_rest(&x->f));
	sw_flow_send_ctl(&x->f, &h);
	assert_true(h.consumed == (uint32_t)f.given);
	assert_int_equal(h.chunk, f.given - f.peer_consumed - FRAME);
	assert_false(sw_flow_is_spent(&f));
	sw_flow_rx(&f, &h);
	assert_int_equal(g.used, 0);
	assert_int_equal(g.windows, 0);
	assert_true(sw_flow_is_spent(&f));
	sw_flow_give(&f);
	assert_int_equal(f.given - f.peer_consumed, SW_FLOW_START);
	sw_flow_fini(&f);
}

/* Grants follow the windows. An idle flow takes none, and all flows together
 * take at most the budget. */
static void grants__are_shared(void **state)
{
	struct sw_flow f[4];
	struct sw_grants g;
	uint32_t left;

	open_shared(f, 4, &g);
	sw_flow_set_window(&f[1], 256 * 1024);
	assert_int_equal(come(&f[0], 10000), 1 + f[0].window);
	left = (9600 - g.used) / FRAME * FRAME;
	assert_int_equal(come(&f[1], 10000), 1 + SW_FLOW_START + left);
	come(&f[2], 10000);
	assert_true(g.used <= g.total);
	assert_int_equal(come(&f[3], 0), 1 + SW_FLOW_START);
	/* As the flows consume, each comes down to its share. */
	for (uint32_t i = 0; i < 32000; i++) {
		come(&f[i % 3], 10000);
		sw_grants_next(&g.turns);
		assert_true(g.used <= g.total);
	}
	assert_int_equal(g.windows, 8192 + 4096 + 8192);
	assert_in_range(f[0].given - f[0].peer_consumed, 3840 - FRAME, 3840);
	assert_in_range(f[1].given - f[1].peer_consumed, 1920 - FRAME, 1920);
	sw_flow_set_window(&f[1], 512 * 1024);
	assert_int_equal(g.windows, 3 * 8192);
	for (uint32_t i = 0; i < 4; i++)
		sw_flow_fini(&f[i]);
	assert_int_equal(g.used, 0);
	assert_int_equal(g.windows, 0);
}

/* A sender that is about to use up its possible grant gets the next one at
 * once. */
static void ack_at__the_sender_runs_dry(void **state)
{
	struct sw_header h = {
		.type = SW_PUSH, .psn = 1, .consumed = SW_FLOW_START / 2};
	struct sw_flow f;
	struct sw_grants g;

	open_shared(&f, 1, &g);
	sw_flow_send_ctl(&f, &(struct sw_header){0});
	sw_flow_rx(&f, &h);
	sw_flow_accept(&f, 0, 1, SW_S);
	assert_true(sw_flow_ack_at(&f) > SW_S); /* there is no further grant */
	h.flags = sw_backlog_flags(1000);
	h.psn = 2;
	sw_flow_rx(&f, &h);
	assert_int_equal(sw_flow_ack_at(&f), 0);
	sw_flow_send_ctl(&f, &h);
	assert_true(sw_flow_ack_at(&f) > SW_S);
}

/* If many flows share, no grant is sent at once: other flows fill the link. */
static void ack_at__many_run_dry(void **state)
{
	struct sw_header h = {.type = SW_PUSH,
		.flags = sw_backlog_flags(1000),
		.psn = 1,
		.consumed = SW_FLOW_START / 2};
	struct sw_flow f[10];
	struct sw_grants g;

	open_shared(f, 10, &g); /* 960 quanta each */
	for (uint32_t i = 0; i < 10; i++) {
		sw_flow_send_ctl(&f[i], &(struct sw_header){0});
		sw_flow_rx(&f[i], &h);
		sw_flow_accept(&f[i], 0, 1, SW_S);
	}
	assert_true(sw_flow_ack_at(&f[9]) > SW_S);
	sw_flow_fini(&f[0]); /* 1066 each */
	assert_int_equal(sw_flow_ack_at(&f[9]), 0);
}

/* Let @f's peer report that it has used all of its grant. */
static void use_up(struct sw_flow *f)
{
	struct sw_header h = {.type = SW_RESULT,
		.psn = f->rx_psn[0] + 1,
		.consumed = (uint32_t)f->given};

	sw_flow_rx(f, &h);
}

/* If the budget is less than one frame per flow, flows without a grant get one
 * in turn. */
static void grants__in_turn(void **state)
{
	struct sw_flow f[4];
	struct sw_grants g;

	open_shared(f, 4, &g);
	g = (struct sw_grants){.total = 2 * FRAME + 1};
	for (uint32_t i = 0; i < 4; i++) {
		sw_flow_give(&f[i]);
		assert_int_equal(f[i].given, 0); /* idle flows hold nothing */
		sw_flow_expect(&f[i], 3 * FRAME);
	}
	for (uint32_t i = 0; i < 4; i++) {
		sw_flow_give(&f[i]);
		assert_int_equal(f[i].given, i < 2 ? FRAME : 0);
	}
	assert_null(sw_grants_next(&g.turns));
	for (uint32_t i = 0; i < 8; i++) {
		use_up(&f[i % 4]);
		sw_flow_expect(&f[i % 4], -FRAME);
		sw_flow_give(&f[i % 4]); /* other flows came first */
		assert_ptr_equal(sw_grants_next(&g.turns), &f[(i + 2) % 4]);
		assert_null(sw_grants_next(&g.turns));
		assert_int_equal(g.used, 2 * FRAME);
	}
	sw_flow_fini(&f[2]); /* the first waiting flow */
	sw_flow_fini(&f[0]); /* an idle flow */
	assert_ptr_equal(sw_grants_next(&g.turns), &f[3]);
	sw_flow_restart(&f[3]);
	sw_flow_fini(&f[3]);
	sw_flow_fini(&f[1]);
	assert_int_equal(g.used, 0);
	assert_int_equal(g.windows, 0);
	assert_null(g.turns.first);
}

/* The last results are less than a frame, and their grant is equally small. */
static void grants__what_is_expected(void **state)
{
	struct sw_flow f;
	struct sw_grants g;

	open_shared(&f, 1, &g);
	g.start = 0;
	sw_flow_expect(&f, 5);
	sw_flow_give(&f);
	assert_int_equal(f.given, 5);
	use_up(&f);
	sw_flow_expect(&f, -5);
	sw_flow_give(&f);
	assert_int_equal(f.given, 5);
	assert_int_equal(g.used, 0);
}

/* Expected results may be late, so each other flow keeps a frame as long as the
 * budget has more than one. */
static void grants__a_frame_for_each(void **state)
{
	struct sw_flow f[4];
	struct sw_grants g;

	open_shared(f, 4, &g);
	g.start = 0;
	g.total = 5 * FRAME;
	sw_flow_expect(&f[0], 100 * FRAME);
	sw_flow_give(&f[0]);
	assert_int_equal(f[0].given, 2 * FRAME);
	for (uint32_t i = 1; i < 4; i++) {
		sw_flow_expect(&f[i], 100 * FRAME);
		sw_flow_give(&f[i]);
		assert_int_equal(f[i].given, FRAME);
	}
	use_up(&f[1]);
	sw_flow_give(&f[1]);
	/* and so on for the other flows */
	assert_int_equal(f[1].given, 2 * FRAME);
	sw_flow_fini(&f[0]);
	assert_int_equal(g.n_idle, 0);
	use_up(&f[1]);
	assert_int_equal(g.n_idle, 1);
	sw_flow_fini(&f[1]);
	assert_int_equal(g.n_idle, 0);
}

/* A worker knows the results that it expects, so a server that pushes or
 * reports a backlog changes nothing. */
static void grants__pushed_by_a_server(void **state)
{
	struct sw_flow f;
	struct sw_grants g;
	struct sw_header h = {.type = SW_PUSH, .psn = 1};

	open_shared(&f, 1, &g);
	g.start = 0;
	sw_flow_expect(&f, 5);
	sw_flow_rx(&f, &h); /* the flow expects nothing */
	sw_flow_expect(&f, -5);
	assert_int_equal(g.windows, 0);
	h = (struct sw_header){
		.type = SW_PUSH, .psn = 2, .flags = sw_backlog_flags(1000)};
	sw_flow_rx(&f, &h);
	sw_flow_give(&f);
	assert_int_equal(f.given, 0);
	assert_int_equal(g.windows, 0);
}

/* If the peer knows what it will be sent, the flow asks for credit only after a
 * while. */
static void can_send__patient(void **state)
{
	struct fixture *x = open_flow();

	sw_flow_wait(&x->f);
	x->f.granted = FRAME;
	send(x, 0);
	ack(x, 0, 1, 0, 0);
	sw_flow_block(&x->f, x->now_ns);
	assert_false(sw_flow_can_send(&x->f, 0));
	tick(x, x->params.rto_min - 1);
	assert_false(sw_flow_can_send(&x->f, 0));
	tick(x, 1);
	send(x, 0);
	ack(x, 0, 2, 0, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants__by_backlog),
		cmocka_unit_test(rest__returns_the_grant),
		cmocka_unit_test(grants__are_shared),
		cmocka_unit_test(ack_at__the_sender_runs_dry),
		cmocka_unit_test(ack_at__many_run_dry),
		cmocka_unit_test(grants__in_turn),
		cmocka_unit_test(grants__what_is_expected),
		cmocka_unit_test(grants__a_frame_for_each),
		cmocka_unit_test(grants__pushed_by_a_server),
		cmocka_unit_test(can_send__patient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
