/* unit_loop.c - one turn of an lcore's loop.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>

#include "engine/base/params.h"
#include "engine/loop/loop.h"
#include "test/support/port.h"

enum { N_PORTS = 2 };

/* A node that records its calls. */
struct fixture {
	struct sw_engine node; /* must be first: fixture is cast from it */
	struct sw_loop loop;
	struct sw_stats stats;
	struct test_port ports[N_PORTS];
	struct sw_port *list[N_PORTS];
	uint32_t n_frames; /* frames received */
	uint32_t to_send;  /* frames that the node has to send, per port */
	uint32_t payload_len;
	uint64_t rx_ns, tick_ns, gap_ns, next_ns;
	char calls[512];
};

static void note(struct fixture *x, const char *what, uint32_t n)
{
	size_t at = strlen(x->calls);

	snprintf(x->calls + at, sizeof(x->calls) - at, "%s%s%u", at ? " " : "",
		what, n);
}

static void rx(struct sw_engine *node, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct fixture *x = (struct fixture *)node;

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(frames[i].from.port_i, port_i);
	x->n_frames += n;
	x->rx_ns = now_ns;
	note(x, "rx", n);
}

static uint64_t tick(struct sw_engine *node, uint64_t now_ns, uint64_t gap_ns)
{
	struct fixture *x = (struct fixture *)node;

	x->tick_ns = now_ns;
	x->gap_ns = gap_ns;
	note(x, "tick", 0);
	return x->next_ns;
}

static uint32_t tx(struct sw_engine *node, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t max)
{
	struct fixture *x = (struct fixture *)node;
	uint32_t n = x->to_send < max ? x->to_send : max;

	if (node->holds_data)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		out[i] = (struct sw_tx_frame){.payload_len = x->payload_len};
		note(x, "tx", port_i);
	}
	x->to_send -= n;
	return n;
}

static struct fixture *open_loop(uint64_t now_ns)
{
	static struct fixture x;

	memset(&x, 0, sizeof(x));
	x.node = (struct sw_engine){
		.stats = &x.stats, .rx = rx, .tick = tick, .tx = tx};
	for (uint32_t i = 0; i < N_PORTS; i++) {
		port_init(&x.ports[i]);
		x.list[i] = &x.ports[i].port;
	}
	x.next_ns = UINT64_MAX;
	sw_loop_init(&x.loop, x.list, N_PORTS, 500 * SW_MS, now_ns);
	sw_loop_set(&x.loop, 0, &x.node);
	return &x;
}

static uint32_t turn(struct fixture *x, uint64_t now_ns)
{
	x->calls[0] = 0;
	return sw_loop_turn(&x->loop, now_ns);
}

static void turn__receive_timers_send(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->ports[0].n_inbox = 2;
	x->ports[1].n_inbox = 1;
	x->to_send = 2;
	assert_int_equal(turn(x, SW_S), 5);
	assert_string_equal(x->calls, "rx2 rx1 tick0 tx0 tx0");
	assert_int_equal(x->ports[0].n_releases, 1);
	assert_int_equal(x->ports[1].n_releases, 1);
}

static void turn__idle(void **state)
{
	struct fixture *x = open_loop(SW_S);

	assert_int_equal(turn(x, SW_S), 0);
	assert_string_equal(x->calls, "tick0"); /* the first turn */
	assert_int_equal(turn(x, SW_S + SW_US), 0);
	assert_string_equal(x->calls, "");
	assert_int_equal(x->ports[0].n_releases, 0);
	/* frames that the driver refused may leave now */
	assert_int_equal(x->ports[0].n_flushes, 2);
}

/* A sleep that the caller chose is no gap; only its excess is. */
static void turn__rest_is_no_gap(void **state)
{
	struct fixture *x = open_loop(SW_S);

	turn(x, SW_S);
	sw_loop_rest(&x->loop, 10 * SW_MS);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 10 * SW_MS);
	assert_int_equal(x->gap_ns, 0);
	sw_loop_rest(&x->loop, 10 * SW_MS);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 15 * SW_MS); /* the loop was woken early */
	assert_int_equal(x->gap_ns, 0);
	sw_loop_rest(&x->loop, 10 * SW_MS);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 28 * SW_MS);
	assert_int_equal(x->gap_ns, 3 * SW_MS);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 33 * SW_MS); /* the sleep was chosen only once */
	assert_int_equal(x->gap_ns, 5 * SW_MS);
}

/* Each turn moves one burst in each direction, so no port waits long (B4). */
static void turn__one_burst(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->ports[0].n_inbox = 3 * SW_RX_BURST;
	assert_int_equal(turn(x, SW_S), SW_RX_BURST);
	assert_int_equal(x->ports[0].n_inbox, 2 * SW_RX_BURST);
}

static void turn__tick_when_due(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->next_ns = SW_S + 400 * SW_US;
	turn(x, SW_S);
	turn(x, SW_S + 399 * SW_US);
	assert_string_equal(x->calls, "");
	turn(x, SW_S + 400 * SW_US);
	assert_string_equal(x->calls, "tick0");
}

/* After a frame the tick comes soon, because the frame may have set a timer. */
static void turn__tick_soon_after_a_frame(void **state)
{
	struct fixture *x = open_loop(SW_S);

	turn(x, SW_S);
	x->ports[0].n_inbox = 1;
	turn(x, SW_S + SW_US);
	assert_string_equal(x->calls, "rx1");
	turn(x, SW_S + 51 * SW_US);
	assert_string_equal(x->calls, "tick0");
}

static void turn__full_port_is_not_waited_for(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->ports[0].room = 0;
	x->ports[1].room = 1;
	x->to_send = 5;
	assert_int_equal(turn(x, SW_S), 1);
	assert_int_equal(x->to_send, 4);
	assert_int_equal(x->ports[0].n_flushes, 1);
}

/* After a gap the loop receives all waiting frames before a timer fires (A17).
 * It takes one burst per turn, so that no turn is long. */
static void turn__drains_after_a_gap(void **state)
{
	struct fixture *x = open_loop(SW_S);

	turn(x, SW_S);
	x->loop.tick_at_ns = 0;
	x->ports[0].n_inbox = 2 * SW_RX_BURST + 1;
	x->ports[1].n_inbox = 1;
	assert_int_equal(turn(x, SW_S + 4 * SW_MS), SW_RX_BURST + 1);
	assert_string_equal(x->calls, "rx64 rx1");
	turn(x, SW_S + 4 * SW_MS + SW_US);
	assert_string_equal(x->calls, "rx64");
	turn(x, SW_S + 4 * SW_MS + 2 * SW_US);
	assert_string_equal(x->calls, "rx1");
	turn(x, SW_S + 4 * SW_MS + 3 * SW_US);
	assert_string_equal(x->calls, "tick0");
	assert_int_equal(x->gap_ns, 4 * SW_MS);
}

/* A flooded and slow node still gets its ticks. */
static void turn__drain_ends(void **state)
{
	struct fixture *x = open_loop(SW_S);
	uint32_t n = 0;

	turn(x, SW_S);
	x->loop.tick_at_ns = 0;
	x->ports[0].n_inbox = 1000000;
	for (x->tick_ns = 0; !x->tick_ns && n < 1000; n++)
		turn(x, SW_S + (1 + n) * SW_MS);
	assert_int_equal(n, 64);
}

/* If the process was stopped, the engine's clock advances by only 100 ms. In
 * all other cases it advances by the time that passed. */
static void turn__stop_is_skipped(void **state)
{
	struct fixture *x = open_loop(SW_S);

	turn(x, SW_S);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 499 * SW_MS);
	assert_true(x->tick_ns == SW_S + 499 * SW_MS);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 499 * SW_MS + 15 * SW_S);
	assert_true(x->tick_ns == SW_S + 599 * SW_MS);
	assert_true(sw_loop_now(&x->loop, 17 * SW_S) == 2 * SW_S + 100 * SW_MS);
	assert_int_equal(x->loop.stats.poll_gaps, 1);
	x->loop.tick_at_ns = 0;
	turn(x, SW_S + 500 * SW_MS + 15 * SW_S);
	assert_true(x->tick_ns == SW_S + 600 * SW_MS);
}

/* If each turn comes that late, the engine's time still passes, so timeouts
 * expire in the end. */
static void turn__stops_without_end(void **state)
{
	struct fixture *x = open_loop(SW_S);
	uint64_t now_ns = SW_S;

	turn(x, now_ns);
	for (uint32_t i = 0; i < 100; i++) {
		x->loop.tick_at_ns = 0;
		turn(x, now_ns += 700 * SW_MS);
	}
	assert_true(x->tick_ns == SW_S + 10 * SW_S);
}

/* The peer learns the longest gap of the last one or two seconds. */
static void turn__longest_gap_is_kept_for_a_while(void **state)
{
	struct fixture *x = open_loop(SW_S);
	uint64_t at = SW_S;

	turn(x, at += 30 * SW_MS);
	for (int i = 0; i < 900; i++) {
		x->loop.tick_at_ns = 0;
		turn(x, at += SW_MS);
	}
	assert_int_equal(x->gap_ns, 30 * SW_MS);
	for (int i = 0; i < 2100; i++) {
		x->loop.tick_at_ns = 0;
		turn(x, at += SW_MS);
	}
	assert_int_equal(x->gap_ns, SW_MS);
}

/* Two nodes share one loop: each gets the frames of its endpoint, in order. */
static void turn__frames_go_to_their_endpoint(void **state)
{
	struct fixture *x = open_loop(SW_S);

	sw_loop_set(&x->loop, 2, &x->node);
	sw_loop_set(&x->loop, 0, NULL);
	x->ports[0].n_inbox = 2;
	x->ports[1].n_inbox = 3;
	x->ports[1].endpoint = 2;
	turn(x, SW_S);
	assert_string_equal(x->calls, "rx3 tick0");
	assert_int_equal(x->loop.stats.rx_endpoint, 2);
	x->ports[0].n_inbox = 1;
	x->ports[0].endpoint = 1000; /* an endpoint that never exists */
	assert_int_equal(turn(x, SW_S + SW_US), 1);
	assert_int_equal(x->loop.stats.rx_endpoint, 3);
	sw_loop_set(&x->loop, 2, NULL);
	x->ports[1].n_inbox = 1;
	assert_int_equal(turn(x, SW_S + 2 * SW_US), 1);
	assert_int_equal(x->loop.stats.rx_endpoint, 4);
	assert_int_equal(x->n_frames, 3);
}

/* If one node could fill the port alone, other nodes still get their turn. */
static void turn__nodes_take_turns_in_sending(void **state)
{
	struct fixture *x = open_loop(SW_S);
	uint32_t n_from[3] = {0};

	sw_loop_set(&x->loop, 2, &x->node);
	x->to_send = 1000;
	for (uint32_t i = 0; i < 30; i++) {
		x->ports[0].room = 1;
		x->ports[1].room = 0;
		assert_int_equal(turn(x, SW_S + i * SW_US), 1);
		assert_in_range(x->ports[0].last.endpoint, 0, 2);
		n_from[x->ports[0].last.endpoint]++;
	}
	assert_int_equal(n_from[1], 0); /* endpoint 1 has no node */
	assert_true(n_from[0] >= 10 && n_from[2] >= 10);
	x->ports[0].room = 4;
	x->to_send = 4; /* one node's frames may fill the port */
	assert_int_equal(turn(x, SW_S + SW_MS / 4), 4);
}

/* A turn without room in the port does not count as a node's turn. */
static void turn__who_had_no_room_is_next(void **state)
{
	struct fixture *x = open_loop(SW_S);
	uint32_t n_from[2] = {0};

	sw_loop_set(&x->loop, 1, &x->node);
	x->to_send = 1000;
	for (uint32_t i = 0; i < 40; i++) {
		x->ports[0].room = i % 2;
		x->ports[1].room = 0;
		if (turn(x, SW_S + i * SW_US))
			n_from[x->ports[0].last.endpoint]++;
	}
	assert_int_equal(n_from[0], 10);
	assert_int_equal(n_from[1], 10);
}

static bool is_busy(const struct sw_engine *node)
{
	return ((const struct fixture *)node)->to_send;
}

static void busy__any_node(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->node.is_busy = is_busy;
	sw_loop_set(&x->loop, 0, NULL);
	x->to_send = 1;
	assert_false(sw_loop_is_busy(&x->loop));
	sw_loop_set(&x->loop, 5, &x->node);
	assert_true(sw_loop_is_busy(&x->loop));
	x->to_send = 0;
	assert_false(sw_loop_is_busy(&x->loop));
}

static void wait__until_the_deadline(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->next_ns = SW_S + 100 * SW_US;
	assert_int_equal(sw_loop_wait(&x->loop, SW_S, SW_MS), 0);
	turn(x, SW_S);
	assert_int_equal(
		sw_loop_wait(&x->loop, SW_S + 30 * SW_US, SW_MS), 70 * SW_US);
	assert_int_equal(
		sw_loop_wait(&x->loop, SW_S + 30 * SW_US, SW_US), SW_US);
	assert_int_equal(sw_loop_wait(&x->loop, 2 * SW_S, SW_MS), 0);
	x->next_ns = UINT64_MAX;
	turn(x, SW_S + 100 * SW_US);
	assert_int_equal(
		sw_loop_wait(&x->loop, SW_S + 100 * SW_US, SW_S), SW_S);
}

/* A frame sets only a lower bound of the next timer. Before a sleep, the loop
 * asks the nodes, at most once. */
static void foresee__next_timer_after_a_frame(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->next_ns = SW_S + 800 * SW_US;
	turn(x, SW_S);
	assert_false(sw_loop_foresee(&x->loop, SW_S));
	x->ports[0].n_inbox = 1;
	turn(x, SW_S + SW_US);
	assert_int_equal(
		sw_loop_wait(&x->loop, SW_S + SW_US, SW_MS), 50 * SW_US);
	assert_true(sw_loop_foresee(&x->loop, SW_S + 10 * SW_US));
	assert_int_equal(
		sw_loop_wait(&x->loop, SW_S + 10 * SW_US, SW_MS), 790 * SW_US);
	turn(x, SW_S + 10 * SW_US);
	assert_false(sw_loop_foresee(&x->loop, SW_S + 10 * SW_US));
}

/* If a node's data waits for its time, the loop waits for the same time. */
static void turn__paced(void **state)
{
	struct fixture *x = open_loop(SW_S);

	x->ports[0].port.rate_bit_s = 8 * SW_S; /* a byte per nanosecond */
	x->ports[0].port.max_payload = 12000;
	sw_loop_init(&x->loop, x->list, 1, 500 * SW_MS, SW_S);
	sw_loop_set(&x->loop, 0, &x->node);
	x->payload_len = 12000;
	x->to_send = 10;
	x->next_ns = UINT64_MAX;
	assert_int_equal(turn(x, SW_S), 2);
	assert_true(x->node.holds_data);
	assert_int_equal(sw_loop_wait(&x->loop, SW_S, SW_MS), 4001);
	assert_int_equal(turn(x, SW_S + 4000), 0);
	assert_int_equal(turn(x, SW_S + 4001), 1);
	assert_int_equal(turn(x, SW_S + SW_MS), 4); /* at twice the rate */
	x->to_send = 0;
	turn(x, SW_S + 2 * SW_MS);
	assert_false(x->node.holds_data);
	assert_int_equal(sw_loop_wait(&x->loop, SW_S + 2 * SW_MS, SW_S), SW_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turn__receive_timers_send),
		cmocka_unit_test(turn__idle),
		cmocka_unit_test(turn__rest_is_no_gap),
		cmocka_unit_test(turn__one_burst),
		cmocka_unit_test(turn__tick_when_due),
		cmocka_unit_test(turn__tick_soon_after_a_frame),
		cmocka_unit_test(turn__full_port_is_not_waited_for),
		cmocka_unit_test(turn__drains_after_a_gap),
		cmocka_unit_test(turn__drain_ends),
		cmocka_unit_test(turn__stop_is_skipped),
		cmocka_unit_test(turn__stops_without_end),
		cmocka_unit_test(turn__longest_gap_is_kept_for_a_while),
		cmocka_unit_test(turn__frames_go_to_their_endpoint),
		cmocka_unit_test(turn__nodes_take_turns_in_sending),
		cmocka_unit_test(turn__who_had_no_room_is_next),
		cmocka_unit_test(busy__any_node),
		cmocka_unit_test(wait__until_the_deadline),
		cmocka_unit_test(foresee__next_timer_after_a_frame),
		cmocka_unit_test(turn__paced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
