/* unit_tuning.c - a worker's tuning: its own requests, and the job's.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/worker_rig.h"

#include "engine/base/error.h"

static struct worker_rig *open_rig(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	wrig_run(&r);
	wrig_declare(&r, "a", PEER_CHUNK, 0);
	return &r;
}

/* Let the coordinator announce tuning @number. */
static void say(
	struct worker_rig *r, uint32_t number, const struct sw_policy *policy)
{
	struct sw_status st = {.joined = 3,
		.state = SW_JOB_RUNNING,
		.size = 2,
		.policy = (uint8_t)sw_policy_id(policy),
		.number = number};

	peer_say(&r->s[0], SW_STATUS, &st, sizeof(st));
}

static void round_of(struct worker_rig *r, uint32_t round)
{
	assert_int_equal(sw_worker_push(&r->w, 0, round, 0), 0);
	assert_contains(wrig_tx(r), "PUSH k0");
	peer_result(&r->s[0], 0, round, 0, 7);
	wrig_events(r);
}

static void set_tuning__between_two_parts(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(sw_worker_set_tuning(&r->w, 2048, 1 << 20), 0);
	assert_int_equal(r->w.sched.part_bytes, 2048);
	assert_int_equal(r->w.sched.limit, 1 << 20);
	assert_int_equal(sw_worker_set_tuning(&r->w, 0, 0), 0);
	assert_int_equal(r->w.sched.part_bytes, 16 << 10);
	assert_int_equal(r->w.sched.limit, 4 << 20);
	wrig_close(r);
}

/* More credit starts parts that wait for it. */
static void set_tuning__more_credit_starts_parts(void **state)
{
	struct worker_rig *r = open_rig();

	wrig_declare(r, "b", 40 * PEER_CHUNK, 1);
	assert_int_equal(sw_worker_set_tuning(&r->w, 1344, 1344), 0);
	sw_worker_push(&r->w, 1, 1, 0);
	assert_string_equal(wrig_tx(r), "s0 PUSH k1 r1 c0 +1344");
	assert_int_equal(sw_worker_set_tuning(&r->w, 1344, 3 * 1344), 0);
	assert_string_equal(
		wrig_tx(r), "s0 PUSH k1 r1 c1 +1344; s0 PUSH k1 r1 c2 +1344");
	wrig_close(r);
}

static void set_tuning__refused(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(sw_worker_set_tuning(&r->w, 4, 0), SW_EINVAL);
	assert_int_equal(sw_worker_set_tuning(&r->w, 0, UINT64_MAX), SW_EINVAL);
	assert_int_equal(r->w.sched.part_bytes, 16 << 10);
	wrig_close(r);
}

/* The worker repeats TUNE until the coordinator acknowledges it. */
static void tune__is_said_again(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_tune_ask ask;

	assert_int_equal(
		sw_worker_tune(&r->w, &sw_policies[SW_POLICY_BYTESCHEDULER],
			1 << 20, 2 << 20),
		0);
	assert_string_equal(wrig_tx(r), "s0 TUNE");
	memcpy(&ask, r->last[SW_TUNE].bytes + SW_HEAD_BYTES, sizeof(ask));
	assert_int_equal(ask.policy, SW_POLICY_BYTESCHEDULER);
	assert_int_equal(ask.part_bytes, 1 << 20);
	assert_int_equal(ask.credit_bytes, 2 << 20);
	wrig_tick(r, 10 * SW_MS);
	assert_string_equal(wrig_tx(r), "s0 TUNE");
	say(r, 1, &sw_policies[SW_POLICY_BYTESCHEDULER]);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	wrig_tick(r, 600 * SW_MS);
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

/* A request that is replaced before it was sent is dropped. */
static void tune__the_last_one_counts(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_tune_ask ask;

	sw_worker_tune(&r->w, &sw_policies[SW_POLICY_FIFO], 0, 0);
	sw_worker_tune(&r->w, &sw_policies[SW_POLICY_P3], 0, 0);
	assert_string_equal(wrig_tx(r), "s0 TUNE");
	memcpy(&ask, r->last[SW_TUNE].bytes + SW_HEAD_BYTES, sizeof(ask));
	assert_int_equal(ask.policy, SW_POLICY_P3);
	wrig_close(r);
}

/* If the window is full, only the last request waits. */
static void tune__window_is_full(void **state)
{
	struct worker_rig *r = open_rig();
	const struct sw_policy *p = &sw_policies[SW_POLICY_BYTESCHEDULER];
	struct sw_tune_ask ask;

	peer_keepalive(&r->s[0]);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(sw_worker_tune(&r->w, p, (1 << 20) + i, 0), 0);
		assert_string_equal(
			wrig_tx(r), i < SW_CONTROL_WINDOW ? "s0 TUNE" : "");
	}
	peer_keepalive(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 TUNE");
	memcpy(&ask, r->last[SW_TUNE].bytes + SW_HEAD_BYTES, sizeof(ask));
	assert_int_equal(ask.part_bytes, (1 << 20) + 19);
	wrig_close(r);
}

/* A coordinator that sends frames but acknowledges nothing is declared dead. */
static void tune__never_acknowledged(void **state)
{
	struct worker_rig *r = open_rig();

	peer_keepalive(&r->s[0]);
	sw_worker_tune(&r->w, &sw_policies[SW_POLICY_FIFO], 0, 0);
	for (uint32_t s = 0; s < 11; s++) {
		peer_send(&r->s[0],
			(struct sw_header){
				.type = SW_KEEPALIVE, .ctl.taken = 999},
			NULL);
		wrig_tx(r);
		wrig_tick(r, SW_S);
	}
	assert_contains(wrig_events(r),
		"failed SW_ESERVER server first (10.0.0.0) acknowledging "
		"nothing for 10 s");
	wrig_close(r);
}

static void tune__refused(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(sw_worker_tune(&r->w, NULL, 0, 0), SW_EINVAL);
	assert_int_equal(
		sw_worker_tune(&r->w, &sw_policies[SW_POLICY_P3], 1 << 20, 0),
		SW_EINVAL);
	assert_int_equal(sw_worker_tune(&r->w,
				 &sw_policies[SW_POLICY_BYTESCHEDULER], 0, 12),
		SW_EINVAL);
	assert_string_equal(wrig_tx(r), "");
	sw_worker_leave(&r->w, NULL);
	assert_int_equal(
		sw_worker_tune(&r->w, &sw_policies[SW_POLICY_FIFO], 0, 0),
		SW_ECLOSED);
	wrig_close(r);
}

/* Announced tuning applies from the next push on. */
static void heard__at_once(void **state)
{
	struct worker_rig *r = open_rig();

	round_of(r, 1);
	assert_int_not_equal(r->last[SW_PUSH].h.class, 7);
	say(r, 1, &sw_policies[SW_POLICY_FIFO]);
	assert_ptr_equal(r->w.sched.policy, &sw_policies[SW_POLICY_FIFO]);
	round_of(r, 2);
	assert_int_equal(r->last[SW_PUSH].h.class, 7);
	assert_int_equal(r->w.stats.tuning_changes, 1);
	wrig_close(r);
}

/* A tensor whose round is open keeps its place and gets its result. */
static void heard__in_mid_round(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), 0);
	assert_contains(wrig_tx(r), "PUSH k0");
	say(r, 1, &sw_policies[SW_POLICY_FIFO]);
	peer_result(&r->s[0], 0, 1, 0, 7);
	assert_contains(wrig_events(r), "done");
	round_of(r, 2);
	wrig_close(r);
}

/* If announcements were missed, the newest one counts; older ones are
 * ignored. */
static void heard__newest_only(void **state)
{
	struct worker_rig *r = open_rig();

	say(r, 7, &sw_policies[SW_POLICY_FIFO]);
	assert_int_equal(r->w.tuning.number, 7);
	say(r, 6, &sw_policies[SW_POLICY_P3]);
	say(r, 7, &sw_policies[SW_POLICY_P3]);
	assert_ptr_equal(r->w.sched.policy, &sw_policies[SW_POLICY_FIFO]);
	say(r, 8, &sw_policies[SW_POLICY_P3]);
	assert_ptr_equal(r->w.sched.policy, &sw_policies[SW_POLICY_P3]);
	assert_int_equal(r->w.stats.tuning_changes, 2);
	wrig_close(r);
}

/* Frames of a burst arrive in any order. A message that a newer frame has
 * overtaken is taken if it is the next one, unless its packet number is
 * SW_PSN_SKIP or more behind. */
static void heard__overtaken(void **state)
{
	struct worker_rig *r = open_rig();
	struct sw_status st = {.joined = 3,
		.state = SW_JOB_RUNNING,
		.size = 2,
		.policy = SW_POLICY_FIFO,
		.number = 1};
	struct sw_header h = {.type = SW_STATUS, .payload_len = sizeof(st)};
	uint64_t *psn = &r->s[0].psn[SW_CLASS_CTL];
	struct test_frame f;

	peer_make(&r->s[0], h, &st, &f); /* in flight */
	for (uint32_t i = 0; i < SW_PSN_SKIP - 1; i++)
		peer_keepalive(&r->s[0]);
	peer_again(&r->s[0], &f);
	assert_int_equal(r->w.tuning.number, 1);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	st.number = 2;
	peer_make(&r->s[0], h, &st, &f);
	assert_int_equal(f.h.psn, *psn);
	for (uint32_t i = 0; i < SW_PSN_SKIP; i++)
		peer_keepalive(&r->s[0]);
	peer_again(&r->s[0], &f);
	assert_int_equal(r->w.tuning.number, 1);
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

static void heard__what_cannot_be(void **state)
{
	static const struct {
		uint8_t policy;
		uint64_t part_bytes, credit_bytes;
	} rows[] = {{9, 0, 0}, {0, 1, 0}, {0, 0, UINT64_MAX}, {1, 4096, 0}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct worker_rig *r = open_rig();
		struct sw_status st = {.joined = 3,
			.state = SW_JOB_RUNNING,
			.size = 2,
			.policy = rows[i].policy,
			.number = 1,
			.part_bytes = rows[i].part_bytes,
			.credit_bytes = rows[i].credit_bytes};

		peer_say(&r->s[0], SW_STATUS, &st, sizeof(st));
		assert_int_equal(r->w.state, SW_WORKER_FAILED);
		assert_contains(r->w.fault.text, "which is invalid");
		assert_int_equal(r->w.tuning.number, 0);
		wrig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_tuning__between_two_parts),
		cmocka_unit_test(set_tuning__more_credit_starts_parts),
		cmocka_unit_test(set_tuning__refused),
		cmocka_unit_test(tune__is_said_again),
		cmocka_unit_test(tune__the_last_one_counts),
		cmocka_unit_test(tune__window_is_full),
		cmocka_unit_test(tune__never_acknowledged),
		cmocka_unit_test(tune__refused),
		cmocka_unit_test(heard__at_once),
		cmocka_unit_test(heard__in_mid_round),
		cmocka_unit_test(heard__newest_only),
		cmocka_unit_test(heard__overtaken),
		cmocka_unit_test(heard__what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
