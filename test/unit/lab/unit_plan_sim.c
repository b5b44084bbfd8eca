/* unit_plan_sim.c - simulated iterations against times computed by hand.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>

#include "apps/lab/plan_sim.h"
#include "engine/base/error.h"
#include "test/support/env.h"

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) < 1e-9 * (1 + fabs(b)));
}

/* Two layers, forward 1 s and backward 2 s each; 4 elements of f32 are 16 B. */
static struct sw_model_layer two_layers[] = {{.forward_ns = 1000000000,
						     .backward_ns = 2000000000,
						     .first = 0,
						     .n_tensors = 1},
	{.forward_ns = 1000000000,
		.backward_ns = 2000000000,
		.first = 1,
		.n_tensors = 1}};

static struct sw_plan_run two(struct sw_model *m,
	struct sw_model_tensor tensors[2], uint64_t bytes0, uint64_t bytes1)
{
	tensors[0] =
		(struct sw_model_tensor){.layer = 0, .n_elems = bytes0 / 4};
	tensors[1] =
		(struct sw_model_tensor){.layer = 1, .n_elems = bytes1 / 4};
	*m = (struct sw_model){.layers = two_layers,
		.tensors = tensors,
		.n_layers = 2,
		.n_tensors = 2,
		.bytes = bytes0 + bytes1};
	return (struct sw_plan_run){
		.model = m, .link = {.rate_bytes_s = 4}, .time_scale = 1};
}

static double simulate(const struct sw_plan_run *run, const struct sw_policy *p)
{
	double s = -1;

	assert_int_equal(sw_plan_simulate(run, p, &s), 0);
	return s;
}

static double ideal(const struct sw_plan_run *run)
{
	double s = -1;

	assert_int_equal(sw_plan_ideal(run, &s), 0);
	return s;
}

static struct sw_policy policy(uint64_t part_bytes, uint64_t credit_bytes)
{
	return (struct sw_policy){.by_priority = true,
		.part_bytes = part_bytes,
		.credit_bytes = credit_bytes};
}

/* There is little to send, so the iteration takes its computation time, 6 s. */
static void simulate__hidden(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 4, 4);
	/* b_0 ends at 6, its 4 bytes take 1 s, then f_0 starts */
	double want = 7;

	assert_near(simulate(&run, &sw_policies[SW_POLICY_FIFO]), want);
	assert_near(
		simulate(&run, &sw_policies[SW_POLICY_BYTESCHEDULER]), want);
	assert_near(ideal(&run), want);
}

/* 16 bytes of layer 1, ready at 4, take 4 s; 8 bytes of layer 0, ready at 6.
 * fifo: layer 0 arrives at 10, f_0 to 11, f_1 to 12, b_1 to 14, b_0 to 16.
 * Priority: layer 0 from 6 to 8, layer 1 to 10: f_0 to 9, f_1 from 10 to 11. */
static void simulate__priority(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 8, 16);
	struct sw_policy fine = policy(4, 4);

	assert_near(simulate(&run, &sw_policies[SW_POLICY_FIFO]), 10);
	assert_near(ideal(&run), 9);
	assert_near(simulate(&run, &fine), 9);
	/* both layers wait for all 6 s of transfers after b_0 */
	run.has_barrier = true;
	assert_near(simulate(&run, &sw_policies[SW_POLICY_FIFO]), 10);
	assert_near(ideal(&run), 10);
}

/* Neither a started partition nor data that the credit has let into the queue
 * can be preempted. Layer 1 has 12 bytes, ready at 4; layer 0 has 8, ready at
 * 6. Best: layer 1 from 4 to 6, layer 0 to 8, layer 1 to 9; f_1 follows f_0 at
 * 9, and b_0 ends at 14. */
static void simulate__partitions_delay(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 8, 12);
	struct sw_policy p = policy(4, 4);

	assert_near(ideal(&run), 8);
	assert_near(simulate(&run, &p), 8);
	/* one partition of 12 bytes: layer 0 goes from 7 to 9 */
	p.part_bytes = p.credit_bytes = 12;
	assert_near(simulate(&run, &p), 9);
	/* three partitions of 4, but credit for all of them: the same */
	p.part_bytes = 4;
	assert_near(simulate(&run, &p), 9);
	/* unless data that waits for the link can be overtaken */
	run.link.is_sorted = true;
	assert_near(simulate(&run, &p), 8);
}

/* With stop-and-wait the link is idle after each partition until its credit
 * returns. */
static void simulate__stop_and_wait(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 16, 4);
	struct sw_policy p = policy(4, 4);

	run.link.latency_s = run.link.credit_s = 0.5;
	/* b_1 ends at 4, and its 4 bytes are back at 5.5. b_0 ends at 6; four
	 * partitions take 1.5 s each; then f_0 and later steps: 6 + 6 */
	assert_near(simulate(&run, &p), 12);
	/* twice the credit hides all latency except the last */
	p.credit_bytes = 8;
	assert_near(simulate(&run, &p), 10.5);
	/* an overhead is never hidden: four times 0.5 s more */
	run.link.overhead_s = 0.5;
	assert_near(simulate(&run, &p), 12.5);
	/* the credit may return before the result: the link idles 0.25 s less
	 * per partition, so there are four of 1.25 s, and 0.25 s at the end */
	run.link.overhead_s = 0;
	run.link.credit_s = 0.25;
	p.credit_bytes = 4;
	assert_near(simulate(&run, &p), 11.25);
}

/* Layer 1 has 4 bytes, ready at 4, which are back early enough. Layer 0 has 8
 * bytes, ready at 6: the link's 2 s, the first piece's copy out, and the last
 * piece's copy back. */
static void simulate__copies(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 8, 4);
	struct sw_policy p = policy(8, 64);

	run.link.copy_bytes_s = 8;
	run.link.piece_bytes = 4;
	assert_near(ideal(&run), 8);
	assert_near(simulate(&run, &p), 9);
	assert_near(simulate(&run, &sw_policies[SW_POLICY_FIFO]), 9);
	/* smaller pieces wait less, whole tensors wait longer */
	run.link.piece_bytes = 1;
	assert_near(simulate(&run, &p), 8.25);
	run.link.piece_bytes = 8;
	assert_near(simulate(&run, &p), 10);
	/* two pieces in one partition: one overhead */
	run.link.piece_bytes = 4;
	run.link.overhead_s = 0.5;
	assert_near(simulate(&run, &p), 9.5);
	p.part_bytes = 4;
	assert_near(simulate(&run, &p), 10);
}

/* Copies at 2 B/s slow down a link of 4 B/s: pieces of 2 land at 7, 8, 9 and
 * 10, and the last one is over the link at 10.5. Layer 1's come back until 7.5,
 * so layer 0's come back at 8.5, 9.5, 10.5 and 11.5. */
static void simulate__slow_copies(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 8, 4);
	struct sw_policy p = policy(2, 64);

	run.link.copy_bytes_s = 2;
	run.link.piece_bytes = 2;
	assert_near(ideal(&run), 10);
	assert_near(simulate(&run, &p), 11.5);
}

/* Layer 1 has 16 bytes, ready at 4: four of its pieces have landed at 6.  Then
 * layer 0's two go first at each stage: out until 7, over the link until 7.5,
 * back until 8.  Layer 1's last four are out at 9, over the link at 9.5 and
 * back at 10, when f_1 begins, 3 s before the next b_1 ends: 13 - 4. */
static void simulate__priority_of_copies(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 4, 16);
	struct sw_policy p = policy(2, 64);

	run.link.copy_bytes_s = 4;
	run.link.piece_bytes = 2;
	run.link.is_sorted = true;
	assert_near(ideal(&run), 8);
	assert_near(simulate(&run, &p), 9);
	/* without priority layer 1 is out at 8 and layer 0 at 9, back at 10;
	 * then all four steps: 16 - 6 */
	p.by_priority = false;
	assert_near(simulate(&run, &p), 10);
}

static void simulate__bad_numbers(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 16, 4);
	double s;

	run.link.rate_bytes_s = 0;
	assert_int_equal(sw_plan_ideal(&run, &s), SW_EINVAL);
	run.link.rate_bytes_s = 1;
	run.time_scale = -1;
	assert_int_equal(sw_plan_simulate(&run, &sw_policies[SW_POLICY_P3], &s),
		SW_EINVAL);
	run.time_scale = 1;
	run.link.latency_s = NAN;
	assert_int_equal(sw_plan_ideal(&run, &s), SW_EINVAL);
	run.link.latency_s = 0;
	run.link.credit_s = -1;
	assert_int_equal(sw_plan_ideal(&run, &s), SW_EINVAL);
	run.link.credit_s = 0;
	run.link.copy_bytes_s = 1; /* pieces have no size */
	assert_int_equal(sw_plan_ideal(&run, &s), SW_EINVAL);
}

static void bound__of_the_paper(void **state)
{
	struct sw_model_tensor t[2];
	struct sw_model m;
	struct sw_plan_run run = two(&m, t, 16, 4);

	run.link.overhead_s = 0.5;
	/* (2 + 0 + 1) overheads, and two partitions of 8 bytes at 4 B/s */
	assert_near(sw_plan_bound(&run, 8), 3 * 0.5 + 4);
	/* copies out and back: two pieces each */
	run.link.copy_bytes_s = 8;
	run.link.piece_bytes = 4;
	assert_near(sw_plan_bound(&run, 8), 3 * 0.5 + 4 + 2);
}

/* BS-T1 on the real networks. No policy is better than the ideal. Partitions
 * that shrink without overhead approach it within the bound, and so do equally
 * small pieces of a device's tensors. */
static void approach(double rate, double copy, const char *name)
{
	struct sw_model m;
	struct sw_plan_run run = {.model = &m,
		.link = {.rate_bytes_s = rate, .copy_bytes_s = copy},
		.has_barrier = false,
		.time_scale = 1};
	struct sw_policy p = policy(8 << 20, 16 << 20);
	char why[256];
	double best, last = INFINITY, s;

	run.link.piece_bytes = 8 << 20;
	assert_int_equal(sw_model_open(&m, name, why, sizeof(why)), 0);
	best = ideal(&run);
	assert_true(best >= 1e-9 * (double)(m.forward_ns + m.backward_ns));
	assert_true(best >= 0.999 * (double)m.bytes / rate);
	for (; p.part_bytes >= 64 << 10; p.part_bytes /= 8) {
		p.credit_bytes = p.part_bytes;
		run.link.piece_bytes = (double)p.part_bytes;
		s = simulate(&run, &p);
		assert_true(s >= best * (1 - 1e-9));
		assert_true(
			s <= best + 1e-9 + sw_plan_bound(&run, p.part_bytes));
		last = s;
	}
	assert_true(last < 1.02 * best);
	assert_true(simulate(&run, &sw_policies[SW_POLICY_FIFO]) >=
		    best * (1 - 1e-9));
	sw_model_close(&m);
}

static void ideal__is_the_optimum(void **state)
{
	static const char *const names[] = {
		"vgg16", "resnet50", "transformer", "bert-large"};
	static const double rates[] = {1e9 / 8, 10e9 / 8, 100e9 / 8};
	static const double copies[] = {0, 2, 0.5}; /* their rate over that */

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(names) * 3; i++)
		approach(rates[i % 3], copies[(i + i / 3) % 3] * rates[i % 3],
			names[i / 3]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simulate__hidden),
		cmocka_unit_test(simulate__priority),
		cmocka_unit_test(simulate__partitions_delay),
		cmocka_unit_test(simulate__stop_and_wait),
		cmocka_unit_test(simulate__copies),
		cmocka_unit_test(simulate__slow_copies),
		cmocka_unit_test(simulate__priority_of_copies),
		cmocka_unit_test(simulate__bad_numbers),
		cmocka_unit_test(bound__of_the_paper),
		cmocka_unit_test(ideal__is_the_optimum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
