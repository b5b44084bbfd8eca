/* unit_paths.c - the payload that a path carries: probing, and forged probes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/probe.h"
#include "test/support/worker_rig.h"

/* Probe a path that carries up to @path, with sizes up to @most. Return the
 * size found. */
static uint32_t found(uint32_t most, uint32_t path, uint32_t *n_sizes)
{
	struct sw_probe p = {0};

	*n_sizes = 0;
	for (sw_probe_begin(&p, SW_PAYLOAD_MIN, most); p.size; ++*n_sizes) {
		assert_true(sw_payload_is_good(p.size));
		assert_true(p.size <= most);
		p.n_sent = 1;
		if (p.size <= path)
			assert_true(sw_probe_answered(&p, p.size));
		else
			sw_probe_failed(&p);
	}
	assert_true(sw_probe_is_over(&p));
	return p.good;
}

static void probe__finds_what_each_path_carries(void **state)
{
	uint32_t n;

	for (uint32_t most = SW_PAYLOAD_MIN; most <= SW_PAYLOAD_MAX;
		most += SW_PAYLOAD_UNIT)
		for (uint32_t path = SW_PAYLOAD_MIN; path <= SW_PAYLOAD_MAX;
			path += 32) {
			uint32_t least = path < most ? path : most;

			assert_int_equal(found(most, path, &n),
				least / SW_PAYLOAD_UNIT * SW_PAYLOAD_UNIT);
			assert_true(n <= 8);
		}
	assert_int_equal(found(8192, 8192, &n), 8192);
	assert_int_equal(n, 1); /* a good path takes only one round trip */
}

static void payload__fits_the_least_mtu(void **state)
{
	enum { HEADS_V4 = 28 + 54, HEADS_V6 = 48 + 54, TAG = 16 };

	assert_int_equal(
		sw_payload_within(1280 - HEADS_V6 - TAG), SW_PAYLOAD_MIN);
	assert_int_equal(sw_payload_within(1280 - HEADS_V4 - TAG), 1152);
	assert_int_equal(sw_payload_within(1450 - HEADS_V4 - TAG), 1344);
	assert_int_equal(sw_payload_within(9216 - HEADS_V4 - TAG), 8192);
	assert_int_equal(sw_payload_within(SW_PAYLOAD_MIN - 1), 0);
	assert_false(sw_payload_is_good(0));
	assert_false(sw_payload_is_good(1088));
	assert_false(sw_payload_is_good(1345));
	assert_false(sw_payload_is_good(8256));
}

/* Open a worker that has joined two servers; the coordinator has sent
 * PROBING. */
static struct worker_rig *open_probing(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 2);
	wrig_tx(&r);
	peer_cookie(&r.s[0]);
	wrig_tx(&r);
	peer_accept(&r.s[0]);
	wrig_tx(&r);
	peer_status(&r.s[0], SW_JOB_PROBING, 0, 2, "");
	return &r;
}

static void answer(struct worker_rig *r, uint32_t server, uint32_t bytes)
{
	static const uint8_t zeros[SW_PAYLOAD_MAX];

	peer_say(&r->s[server], SW_PROBE, zeros, bytes);
}

static void open_other(struct worker_rig *r)
{
	peer_cookie(&r->s[1]);
	wrig_tx(r);
	peer_accept(&r->s[1]);
	assert_contains(wrig_tx(r), "s1 PROBE +1344");
}

static void worker__probes_then_runs(void **state)
{
	struct worker_rig *r = open_probing();

	assert_contains(wrig_tx(r), "s0 PROBE +1344");
	answer(r, 0, 1344);
	open_other(r);
	assert_string_equal(wrig_events(r), "");
	answer(r, 1, 1344);
	assert_contains(wrig_tx(r), "s0 PATHS 1344");
	assert_string_equal(wrig_events(r), "");
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
	assert_string_equal(wrig_events(r), "running");
	wrig_close(r);
}

static void worker__steps_down(void **state)
{
	struct worker_rig *r = open_probing();

	wrig_tx(r);
	answer(r, 0, 1344);
	open_other(r);
	for (uint32_t i = 0; i < 40 && !strstr(r->text, "+1216"); i++) {
		if (strstr(r->text, "+1152"))
			answer(r, 1, 1152);
		wrig_tick(r, 20 * SW_MS);
		wrig_tx(r);
	}
	assert_contains(r->text, "s1 PROBE +1216");
	answer(r, 1, 1344); /* too late: this size counts as lost */
	assert_int_equal(r->w.stats.rx_state, 1);
	answer(r, 1, 1216);
	assert_contains(wrig_tx(r), "s1 PROBE +1280");
	answer(r, 1, 1280);
	assert_contains(wrig_tx(r), "s0 PATHS 1280");
	wrig_close(r);
}

/* A size fails only if other sizes pass: a server's silence of one second does
 * not make the payload smaller. */
static void worker__waits_for_a_silent_server(void **state)
{
	struct worker_rig *r = open_probing();

	wrig_tx(r);
	answer(r, 0, 1344);
	open_other(r);
	for (uint32_t i = 0; i < 50; i++) {
		wrig_tick(r, 20 * SW_MS);
		assert_null(strstr(wrig_tx(r), "+1216"));
	}
	answer(r, 1, 1344);
	assert_contains(wrig_tx(r), "s0 PATHS 1344");
	wrig_close(r);
}

/* Unexpected answers have no effect, and a job with a larger payload than the
 * node carries is refused. */
static void worker__forged_probes(void **state)
{
	struct worker_rig *r = open_probing();
	struct sw_probe before;
	struct sw_status st = {.state = SW_JOB_RUNNING,
		.joined = 3,
		.size = 2,
		.payload = 8192,
		.epoch = 9,
		.n_local = {1, 1}};

	before = r->w.links[0].probe;
	answer(r, 0, 1344); /* no PROBE was sent yet */
	answer(r, 0, 8192);
	assert_memory_equal(&before, &r->w.links[0].probe, sizeof(before));
	wrig_tx(r);
	before = r->w.links[0].probe;
	answer(r, 0, 1280);
	answer(r, 0, 8192);
	assert_memory_equal(&before, &r->w.links[0].probe, sizeof(before));
	assert_int_equal(r->w.stats.rx_state, 4);
	peer_say(&r->s[0], SW_STATUS, &st, sizeof(st));
	assert_contains(wrig_events(r),
		"the job has a payload of 8192, and this node carries up to "
		"1344");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe__finds_what_each_path_carries),
		cmocka_unit_test(payload__fits_the_least_mtu),
		cmocka_unit_test(worker__probes_then_runs),
		cmocka_unit_test(worker__steps_down),
		cmocka_unit_test(worker__waits_for_a_silent_server),
		cmocka_unit_test(worker__forged_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
