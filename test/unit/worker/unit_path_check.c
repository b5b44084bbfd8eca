/* unit_path_check.c - a path that stops carrying the job's frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/worker_rig.h"

enum { STEP_MS = 50 };

/* The PROBEs that the path returns, and whether pushes reach the server, whose
 * ACKs are small. */
struct path {
	bool has_small, has_full, has_pushes;
};

static struct worker_rig *open_pushed(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 2, 1);
	r.w.links[0].here = sw_ip_v4(0x0a090002);
	wrig_run(&r);
	wrig_declare(&r, "a", 4 * PEER_CHUNK, 0);
	assert_int_equal(sw_worker_push(&r.w, 0, 1, 7), 0);
	return &r;
}

static void answer_probe(struct worker_rig *r, const struct path *path)
{
	uint32_t bytes = r->last[SW_PROBE].h.payload_len;

	if (!strstr(r->text, "PROBE"))
		return;
	assert_true(bytes == 64 || bytes == PEER_PAYLOAD);
	if (bytes == 64 ? path->has_small : path->has_full)
		peer_say(&r->s[0], SW_PROBE, r->data[1], bytes);
}

/* For @ms let the live server receive frames, or until the worker reports
 * something, which stays in r->seen. Return the time. */
static uint32_t pass(struct worker_rig *r, const struct path *path, uint32_t ms)
{
	uint32_t at;

	for (at = 0; at < ms; at += STEP_MS) {
		wrig_tick(r, STEP_MS * SW_MS);
		wrig_tx(r);
		if (path->has_pushes && strstr(r->text, "PUSH"))
			peer_ack(&r->s[0], r->last[SW_PUSH].h.class,
				r->last[SW_PUSH].h.psn);
		peer_keepalive(&r->s[0]);
		answer_probe(r, path);
		if (*wrig_events(r))
			break;
	}
	return at;
}

static void path__to_the_server_narrows(void **state)
{
	struct worker_rig *r = open_pushed();
	const struct path path = {.has_small = true};

	assert_in_range(pass(r, &path, 20000), 5000, 9000);
	assert_contains(r->seen,
		"failed SW_EIO packets of 1426 B (payload 1344) no longer pass "
		"from 10.9.0.2 to server first (10.0.0.0), smaller ones do");
	wrig_close(r);
}

static void path__from_the_server_narrows(void **state)
{
	struct worker_rig *r = open_pushed();
	const struct path path = {.has_small = true, .has_pushes = true};

	assert_in_range(pass(r, &path, 20000), 5000, 9000);
	assert_contains(r->seen,
		"no longer pass from server first (10.0.0.0) to 10.9.0.2");
	wrig_close(r);
}

/* A late member is no failed path, and checking costs few frames. */
static void path__is_good_while_a_member_is_late(void **state)
{
	struct worker_rig *r = open_pushed();
	const struct path path = {
		.has_small = true, .has_full = true, .has_pushes = true};
	uint32_t n = 0;

	for (uint32_t s = 0; s < 25; s++) {
		pass(r, &path, 1000);
		assert_string_equal(r->seen, "");
		n += r->last[SW_PROBE].h.payload_len != 0;
		r->last[SW_PROBE].h.payload_len = 0;
	}
	assert_in_range(n, 3, 6);
	wrig_close(r);
}

/* If no PROBE returns at all, the liveness check decides; then all PROBEs
 * return. */
static void path__is_not_blamed_for_silence(void **state)
{
	struct worker_rig *r = open_pushed();
	struct path path = {0};

	pass(r, &path, 14000);
	assert_string_equal(r->seen, "");
	path.has_small = path.has_full = true;
	pass(r, &path, 14000);
	assert_string_equal(r->seen, "");
	wrig_close(r);
}

/* A PROBE that answers no question counts as an error. */
static void probe__that_was_not_asked_for(void **state)
{
	struct worker_rig *r = open_pushed();
	uint64_t n = r->w.stats.rx_state;

	peer_say(&r->s[0], SW_PROBE, r->data[1], 1152);
	assert_int_equal(r->w.stats.rx_state, n + 1);
	peer_say(&r->s[0], SW_PROBE, r->data[1], PEER_PAYLOAD);
	assert_int_equal(r->w.stats.rx_state, n + 2); /* no question is open */
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__to_the_server_narrows),
		cmocka_unit_test(path__from_the_server_narrows),
		cmocka_unit_test(path__is_good_while_a_member_is_late),
		cmocka_unit_test(path__is_not_blamed_for_silence),
		cmocka_unit_test(probe__that_was_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
