/* unit_host_tuning.c - tuning requests from libsumwire to the agent and back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

static void set__comes_as_it_was_given(void **state)
{
	struct scene *s = *state;
	struct sw_client *c = rig_client(s->r);
	const struct sw_edge_tune *t = &s->r->tune;

	assert_int_equal(sw_set_partition(c, 1 << 20), 0);
	assert_int_equal(t->what, SW_EDGE_PARTITION);
	assert_int_equal(t->value[0], 1 << 20);
	assert_int_equal(sw_set_credit(c, UINT64_C(1) << 33), 0);
	assert_int_equal(t->what, SW_EDGE_CREDIT);
	assert_int_equal(t->value[0], UINT64_C(1) << 33);
	assert_int_equal(sw_set_rate(c, 10000000000), 0);
	assert_int_equal(t->what, SW_EDGE_RATE);
	assert_int_equal(t->value[0], 10000000000);
	assert_int_equal(sw_tune(c, "p3", 5, 6), 0);
	assert_int_equal(t->what, SW_EDGE_JOB);
	assert_string_equal(t->policy, "p3");
	assert_int_equal(t->value[0], 5);
	assert_int_equal(t->value[1], 6);
	sw_close(&c);
	scene_check(s, SW_HOST_CLOSED, "closed");
}

/* sw_get_tuning returns the values in use, and the policy's name. */
static void get__what_is_in_use(void **state)
{
	struct scene *s = *state;
	struct sw_client *c = rig_client(s->r);
	struct sw_tuning now;

	assert_int_equal(sw_tune(c, "bytescheduler", 1 << 16, 1 << 24), 0);
	sw_get_tuning(c, &now);
	assert_string_equal(now.policy, "bytescheduler");
	assert_int_equal(now.partition_bytes, 1 << 16);
	assert_int_equal(now.credit_bytes, 1 << 24);
	assert_int_equal(now.rate_bit_s, 3);
	assert_int_equal(now.number, 7);
	assert_int_equal(now.round, 9);
	assert_int_equal(sw_tune(c, NULL, 1 << 17, 0), 0);
	assert_string_equal(s->r->tune.policy, "bytescheduler");
	sw_close(&c);
	scene_check(s, SW_HOST_CLOSED, "closed");
}

static void set__refused_with_the_reason(void **state)
{
	struct scene *s = *state;
	struct sw_client *c = rig_client(s->r);

	s->r->how.refuse_tune = SW_EINVAL;
	assert_int_equal(sw_set_partition(c, 4), SW_EINVAL);
	assert_string_equal(sw_last_error(c), "partition 4: too small");
	s->r->how.refuse_tune = 0;
	assert_int_equal(sw_tune(c, "", 0, 0), SW_EINVAL);
	assert_int_equal(
		sw_tune(c, "a policy that nobody has", 0, 0), SW_EINVAL);
	assert_string_equal(sw_last_error(c),
		"unknown policy \"a policy that nobody has\"");
	/* the client can still tune */
	assert_int_equal(sw_set_partition(c, 1 << 20), 0);
	sw_leave(c);
	assert_int_equal(sw_set_credit(c, 1 << 20), SW_ECLOSED);
	sw_close(&c);
	scene_check(s, SW_HOST_CLOSED, "closed");
}

/* If the agent does not answer, the call ends after open_timeout_s with an
 * error that names the request. */
static void set__no_answer(void **state)
{
	struct scene *s = *state;
	struct sw_settings settings = rig_settings(s->r);
	struct sw_client *c;

	settings.open_timeout_s = 1;
	assert_int_equal(sw_open(&settings, &c), 0);
	s->r->how.is_slow_to_tune = true;
	assert_int_equal(sw_set_credit(c, 1 << 20), SW_ETIMEDOUT);
	assert_non_null(
		strstr(sw_last_error(c), "did not answer the tuning request "
					 "within 1 s"));
	s->r->how.is_slow_to_tune = false;
	sw_close(&c);
	scene_check(s, SW_HOST_CLOSED, "closed");
}

/* A second request before the answer, an unterminated name, an invalid kind or
 * an invalid length evicts the client; others stay. */
static void message__must_be_right(void **state)
{
	struct scene *s = *state;
	struct sw_edge_tune good = {.kind = SW_EDGE_TUNE}, bad[3];
	struct raw w;

	for (int i = 0; i < 3; i++)
		bad[i] = good;
	bad[0].what = SW_EDGE_JOB + 1;
	memset(bad[1].policy, 'x', sizeof(bad[1].policy));
	for (int i = 0; i < 3; i++) {
		raw_open(&w, s->r);
		raw_send(&w, &bad[i], sizeof(bad[i]) - (i == 2));
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "kind 10");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "kind 10");
	}
	s->r->how.is_slow_to_tune = true;
	raw_open(&w, s->r);
	raw_send(&w, &good, sizeof(good));
	raw_send(&w, &good, sizeof(good));
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "kind 10");
	raw_close(&w);
	s->r->how.is_slow_to_tune = false;
	scene_check(s, SW_HOST_VIOLATION, "kind 10");
}

/* A message that ends a group must name an existing stream and be valid. */
static void end__must_be_right(void **state)
{
	struct scene *s = *state;
	struct sw_edge_end bad[5];
	char kind[16];
	struct raw w;

	snprintf(kind, sizeof(kind), "kind %d", SW_EDGE_END);
	for (int i = 0; i < 5; i++)
		bad[i] = (struct sw_edge_end){
			.kind = SW_EDGE_END, .err = SW_EABORTED};
	bad[4].err = SW_EPEER;
	bad[1].what = SW_EDGE_CLOSE_GROUP + 1;
	memset(bad[2].why, 'x', sizeof(bad[2].why));
	for (int i = 0; i < 5; i++) {
		raw_open(&w, s->r);
		raw_send(&w, &bad[i], sizeof(bad[i]) - (i == 3));
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, kind);
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set__comes_as_it_was_given),
		cmocka_unit_test(get__what_is_in_use),
		cmocka_unit_test(set__refused_with_the_reason),
		cmocka_unit_test(set__no_answer),
		cmocka_unit_test(message__must_be_right),
		cmocka_unit_test(end__must_be_right),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
