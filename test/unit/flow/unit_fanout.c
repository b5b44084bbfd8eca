/* unit_fanout.c - how many flows of one sender take turns.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/fanout.h"
#include "test/support/flow_rig.h"

enum { N = 12, SRTT = 100 * SW_US };

struct fan {
	struct sw_params params;
	uint64_t now_ns;
	struct sw_grants g;
	struct sw_crowd crowd;
	uint64_t ack_psn;
	uint32_t n_sent[N];
	struct sw_flow flows[N];
};

static void ignore(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate)
{
}

static void send_one(struct fan *x, struct sw_flow *f)
{
	struct sw_header h = {.type = SW_RESULT, .payload_len = 1344};

	assert_true(sw_flow_can_send(f, 0));
	sw_flow_send(f, &h, 0, x->now_ns);
	x->n_sent[f - x->flows]++;
}

/* Acknowledge all frames that @f has sent, except those in @holes, counted back
 * from the last frame. */
static void ack_all(struct fan *x, struct sw_flow *f, uint64_t holes)
{
	struct sw_sack k = {
		.largest = f->space[0].next_psn - 1, .bits = {~holes}};

	f->rx_psn[SW_CLASS_CTL] = ++x->ack_psn;
	sw_flow_on_ack(f, x->ack_psn, &k, 1, x->now_ns, ignore, x);
}

static struct fan *open_fan(void)
{
	static struct fan x;

	memset(&x, 0, sizeof(x));
	sw_params_init(&x.params);
	x.params.payload = 1344;
	x.now_ns = SW_S;
	sw_crowd_open(&x.crowd, &x.g, true, &x.now_ns);
	for (uint32_t i = 0; i < N; i++) {
		sw_flow_init(&x.flows[i], &x.params, NULL, true, 0);
		sw_flow_wait(&x.flows[i]);
		sw_crowd_add(&x.crowd, &x.flows[i]);
		x.flows[i].granted = 1 << 19;
	}
	return &x;
}

/* Let each flow send four frames, and let @n flows lose the second one. */
static void lose_some(struct fan *x, uint32_t n)
{
	for (uint32_t i = 0; i < 4 * N; i++)
		send_one(x, &x->flows[i % N]);
	x->now_ns += SRTT;
	for (uint32_t i = 0; i < N; i++) {
		struct sw_sack k = {.largest = 1};

		x->flows[i].rx_psn[SW_CLASS_CTL] = ++x->ack_psn;
		sw_flow_on_ack(
			&x->flows[i], x->ack_psn, &k, 1, x->now_ns, ignore, x);
	}
	x->now_ns += SRTT;
	for (uint32_t i = 0; i < n; i++)
		ack_all(x, &x->flows[i], 2);
}

/* Two lossy flows, or flows without losses, do not cause turns. */
static void fanout__not_of_two(void **state)
{
	struct fan *x = open_fan();

	lose_some(x, 2);
	assert_null(x->g.crowds);
	for (uint32_t i = 0; i < N; i++)
		assert_false(sw_flow_takes_turns(&x->flows[i]));
}

static void take_turns(struct fan *x)
{
	struct sw_flow *f;

	while ((f = sw_fanout_next(&x->crowd))) {
		assert_non_null(f->crowd);
		if (sw_flow_can_send(f, 0))
			send_one(x, f);
		sw_flow_block(f, x->now_ns);
		assert_true(
			x->crowd.fanout.used <= x->crowd.fanout.ceiling.limit);
	}
}

/* Let all flows send as much as they may for @n_rounds round trips. Their
 * acknowledgements arrive one round trip later. */
static void run(struct fan *x, uint32_t n_rounds)
{
	for (uint32_t r = 0; r < 8 * n_rounds; r++) {
		x->now_ns += SRTT / 8;
		for (uint32_t i = 0; i < N; i++) {
			struct sw_flow *f = &x->flows[i];

			if (r % 8 == i % 8 && f->open_mask)
				ack_all(x, f, 0);
			sw_congestion_tick(
				&f->congestion, f->consumed, true, x->now_ns);
			sw_flow_block(f, x->now_ns);
		}
		take_turns(x);
	}
}

static void fanout__is_fair(void **state)
{
	struct fan *x = open_fan();
	uint32_t least = UINT32_MAX, most = 0;

	lose_some(x, N);
	assert_ptr_equal(x->g.crowds, &x->crowd);
	for (uint32_t i = 0; i < N; i++)
		assert_true(sw_flow_takes_turns(&x->flows[i]));
	run(x, 4);
	memset(x->n_sent, 0, sizeof(x->n_sent));
	run(x, 8);
	for (uint32_t i = 0; i < N; i++) {
		least = (uint32_t)sw_min64(least, x->n_sent[i]);
		most = (uint32_t)sw_max64(most, x->n_sent[i]);
	}
	assert_true(sw_ceiling_is_low(&x->crowd.fanout.ceiling));
	assert_true(least >= 8); /* no flow starves */
	assert_true(most <= 2 * least);
}

/* A flow without data returns its turn. */
static void fanout__returns_a_turn(void **state)
{
	struct fan *x = open_fan();
	uint64_t used;
	struct sw_flow *f;

	lose_some(x, N);
	for (uint32_t i = 0; i < N; i++)
		ack_all(x, &x->flows[i], 0);
	x->now_ns += SRTT;
	f = &x->flows[7];
	sw_congestion_tick(&f->congestion, f->consumed, true, x->now_ns);
	used = x->crowd.fanout.used;
	sw_flow_block(f, x->now_ns);
	assert_true(f->fan.turn.is_waiting);
	assert_true(sw_fanout_at(&x->crowd) <= x->now_ns);
	assert_ptr_equal(sw_fanout_next(&x->crowd), f);
	assert_int_equal(x->crowd.fanout.used, used + FRAME);
	sw_fanout_return(f);
	assert_int_equal(x->crowd.fanout.used, used);
	assert_false(sw_flow_can_send(f, 0));
	assert_null(sw_fanout_next(&x->crowd));
	assert_true(sw_fanout_at(&x->crowd) == UINT64_MAX);
}

/* If waiting flows leave, the other flows continue. Two flows need no ceiling,
 * and the last one leaves nothing behind. */
static void fanout__leaves(void **state)
{
	struct fan *x = open_fan();

	lose_some(x, N);
	run(x, 1);
	for (uint32_t i = 0; i < N - 2; i++) {
		for (uint32_t k = 0; k < N; k++)
			if (x->flows[k].crowd)
				sw_flow_block(&x->flows[k], x->now_ns);
		assert_true(sw_ceiling_is_low(&x->crowd.fanout.ceiling));
		sw_flow_fini(&x->flows[(5 * i + 3) % N]);
		x->now_ns += SRTT;
		if (x->crowd.n_flows > 2)
			take_turns(x);
	}
	assert_int_equal(x->crowd.n_flows, 2);
	assert_false(sw_ceiling_is_low(&x->crowd.fanout.ceiling));
	for (uint32_t i = 0; i < N; i++) {
		if (!x->flows[i].crowd)
			continue;
		assert_false(sw_flow_takes_turns(&x->flows[i]));
		sw_flow_fini(&x->flows[i]);
	}
	assert_int_equal(x->crowd.fanout.used, 0);
	assert_null(x->crowd.fanout.turns.first);
	assert_null(x->g.crowds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fanout__not_of_two),
		cmocka_unit_test(fanout__is_fair),
		cmocka_unit_test(fanout__returns_a_turn),
		cmocka_unit_test(fanout__leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
