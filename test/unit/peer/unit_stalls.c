/* unit_stalls.c - count how often and how long a peer's data cannot be sent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/peer/peer.h"

static struct sw_params params;
static struct sw_stats st;
static struct sw_due due;
static uint64_t clock_ns;
static const struct sw_hub hub = {.stats = &st, .now_ns = &clock_ns};
static struct sw_peer p;

/* An idle peer with a grant and an open window. */
static void open_peer(void)
{
	sw_params_init(&params);
	st = (struct sw_stats){0};
	due = (struct sw_due){0};
	memset(&p, 0, sizeof(p));
	p.hub = &hub;
	p.due_class = SW_N_CLASSES;
	sw_flow_init(&p.flow, &params, NULL, false, 0);
	p.flow.may_ask = false;
	p.flow.granted = 1000;
}

static void offer(uint32_t class, uint64_t now_ns)
{
	clock_ns = now_ns;
	sw_peer_offer(&p, &due, class);
}

static void offer__counts_waits_for_a_grant(void **state)
{
	open_peer();
	offer(3, 10);
	assert_int_equal(p.due_class, 3);
	p.flow.consumed = 1000;
	offer(3, 20);
	offer(2, 30);
	assert_int_equal(p.due_class, SW_CLASS_STALLED);
	assert_false(sw_due_has(&due));
	assert_int_equal(st.stalls_grant, 1);
	assert_int_equal(st.stalled_grant_ns, 0);
	p.flow.granted = 2000;
	offer(2, 50);
	assert_int_equal(p.due_class, 2);
	assert_int_equal(st.stalled_grant_ns, 30);
	assert_int_equal(p.stalled_ns[SW_STALL_GRANT], 30);
	assert_int_equal(st.stalls_window + st.stalls_flight, 0);
}

static void offer__counts_waits_for_the_window(void **state)
{
	open_peer();
	p.flow.consumed = 500;
	p.flow.congestion.limit = 500;
	offer(0, 10);
	assert_int_equal(st.stalls_window, 1);
	offer(SW_N_CLASSES, 17); /* the data is withdrawn */
	assert_int_equal(st.stalled_window_ns, 7);
	offer(SW_N_CLASSES, 99);
	assert_int_equal(st.stalls_grant + st.stalls_flight, 0);
	assert_int_equal(st.stalled_window_ns, 7);
}

static void offer__counts_waits_for_frames_in_flight(void **state)
{
	open_peer();
	p.flow.space[1].next_psn += SW_SENT_RING;
	offer(1, 10);
	assert_int_equal(st.stalls_flight, 1);
	p.flow.space[1].oldest++;
	offer(1, 15);
	assert_int_equal(st.stalled_flight_ns, 5);
	assert_int_equal(p.due_class, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offer__counts_waits_for_a_grant),
		cmocka_unit_test(offer__counts_waits_for_the_window),
		cmocka_unit_test(offer__counts_waits_for_frames_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
