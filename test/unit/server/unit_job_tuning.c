/* unit_job_tuning.c - the coordinator numbers tuning requests and tells all.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/server_rig.h"

#include "engine/base/error.h"

static struct server_rig *open_running(uint16_t n_members)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, 64 << 20);
	rig_run(&r, PEER_CHUNK);
	return &r;
}

/* Let worker @i acknowledge the last state. */
static void answer(struct server_rig *r, uint32_t i)
{
	peer_keepalive(&r->w[i]);
}

static void ask(struct server_rig *r, uint32_t i, struct sw_tune_ask ask)
{
	peer_say(&r->w[i], SW_TUNE, &ask, sizeof(ask));
}

static const struct sw_job *job(const struct server_rig *r)
{
	return &r->srv->jobs[0];
}

static void tune__all_are_told(void **state)
{
	struct server_rig *r = open_running(2);

	answer(r, 0);
	answer(r, 1);
	ask(r, 1, (struct sw_tune_ask){.part_bytes = 1 << 20});
	assert_string_equal(
		rig_tx(r), "w0 STATUS running 2; w1 STATUS running 2");
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(r->w[i].status.number, 1);
		assert_int_equal(r->w[i].status.part_bytes, 1 << 20);
	}
	assert_int_equal(r->srv->stats.tuning_changes, 1);
	server_rig_close(r);
}

/* The coordinator repeats the state until it is acknowledged. */
static void tune__is_said_again(void **state)
{
	struct server_rig *r = open_running(1);
	uint32_t n = 0;

	answer(r, 0);
	ask(r, 0, (struct sw_tune_ask){.policy = 0});
	for (uint32_t ms = 0; ms < 1000; ms++) {
		rig_tick(r, SW_MS);
		n += strstr(rig_tx(r), "STATUS") != NULL;
	}
	assert_in_range(n, 6, 9);
	answer(r, 0);
	rig_tick(r, SW_S);
	assert_null(strstr(rig_tx(r), "STATUS"));
	server_rig_close(r);
}

/* The coordinator numbers the next request when all members know the last one.
 * Of one member's requests the last one counts. */
static void tune__one_at_a_time(void **state)
{
	struct server_rig *r = open_running(2);

	answer(r, 0);
	answer(r, 1);
	ask(r, 0, (struct sw_tune_ask){.policy = 0});
	assert_int_equal(job(r)->status.number, 1);
	ask(r, 1, (struct sw_tune_ask){.policy = 1});
	ask(r, 1, (struct sw_tune_ask){.policy = 2});
	assert_int_equal(job(r)->status.number, 1);
	rig_tx(r);
	answer(r, 0);
	assert_int_equal(job(r)->status.number, 1);
	answer(r, 1);
	assert_int_equal(job(r)->status.number, 2);
	assert_int_equal(job(r)->status.policy, 2);
	rig_tx(r);
	answer(r, 0);
	answer(r, 1);
	assert_int_equal(job(r)->status.number, 2);
	server_rig_close(r);
}

/* Members that keep asking take turns. */
static void tune__in_turn(void **state)
{
	struct server_rig *r = open_running(3);

	for (uint32_t i = 0; i < 3; i++)
		answer(r, i);
	ask(r, 0, (struct sw_tune_ask){.part_bytes = 1 << 20});
	for (uint32_t n = 1; n < 10; n++) {
		assert_int_equal(
			job(r)->status.part_bytes, (1 << 20) + (n - 1) % 3);
		for (uint32_t i = 0; i < 3; i++)
			ask(r, i,
				(struct sw_tune_ask){
					.part_bytes = (1 << 20) + i});
		assert_int_equal(job(r)->status.number, n);
		rig_tx(r);
		for (uint32_t i = 0; i < 3; i++)
			answer(r, i);
	}
	server_rig_close(r);
}

/* When a member leaves, its request is forgotten. */
static void tune__of_who_left(void **state)
{
	struct server_rig *r = open_running(2);

	answer(r, 0);
	answer(r, 1);
	ask(r, 0, (struct sw_tune_ask){.policy = 0});
	ask(r, 1, (struct sw_tune_ask){.policy = 2});
	peer_leave(&r->w[1], 0, "");
	rig_tx(r);
	answer(r, 0);
	assert_int_equal(job(r)->status.number, 1);
	server_rig_close(r);
}

/* The coordinator does not wait for a member that has left. */
static void tune__without_who_left(void **state)
{
	struct server_rig *r = open_running(2);

	answer(r, 0);
	answer(r, 1);
	peer_leave(&r->w[1], 0, "");
	rig_tx(r);
	answer(r, 0);
	ask(r, 0, (struct sw_tune_ask){.policy = 0});
	assert_int_equal(job(r)->status.number, 1);
	server_rig_close(r);
}

/* A request with invalid values is refused with the value and the reason. */
static void tune__refused(void **state)
{
	static const struct {
		struct sw_tune_ask ask;
		const char *text;
	} rows[] = {
		{{.part_bytes = 4},
			"asks for policy 0, partition 4, credit 0: a partition "
			"has 1 KiB to 64 GiB"},
		{{.part_bytes = UINT64_MAX}, "64 GiB"},
		{{.credit_bytes = 1}, "a credit has 1 KiB"},
		{{.credit_bytes = UINT64_MAX}, "1 TiB"},
		{{.policy = 1, .credit_bytes = 1 << 20},
			"this policy's partition and credit are fixed"},
		{{.policy = 200}, "unknown policy"},
	};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct server_rig *r = open_running(1);

		answer(r, 0);
		ask(r, 0, rows[i].ask);
		assert_contains(rig_tx(r), rows[i].text);
		assert_int_equal(job(r)->status.number, 0);
		server_rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tune__all_are_told),
		cmocka_unit_test(tune__is_said_again),
		cmocka_unit_test(tune__one_at_a_time),
		cmocka_unit_test(tune__in_turn),
		cmocka_unit_test(tune__of_who_left),
		cmocka_unit_test(tune__without_who_left),
		cmocka_unit_test(tune__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
