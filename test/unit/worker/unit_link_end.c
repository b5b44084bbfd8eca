/* unit_link_end.c - DECLARE, silence and LEAVE at a worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/sum.h"
#include "test/support/worker_rig.h"

static struct worker_rig *open_rig(uint16_t n_members, uint32_t n_servers)
{
	static struct worker_rig r;

	wrig_open(&r, 0, n_members, n_servers);
	return &r;
}

static struct worker_rig *open_running(uint32_t n_servers)
{
	struct worker_rig *r = open_rig(2, n_servers);

	wrig_run(r);
	return r;
}

/* --- DECLARE --- */

static void declare(struct worker_rig *r, uint32_t n)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct sw_worker_tensor t[4];

	for (uint32_t i = 0; i < n; i++)
		t[i] = (struct sw_worker_tensor){.name = names[i],
			.n_elems = 100,
			.dtype = SW_I32,
			.base = r->data[i]};
	assert_int_equal(sw_worker_declare(&r->w, t, n), 0);
}

/* The coordinator assigns the keys; then the worker declares the tensors to the
 * other servers. */
static void declare__first_then_others(void **state)
{
	struct worker_rig *r = open_running(2);
	struct sw_declare_item item;

	declare(r, 2);
	assert_string_equal(wrig_tx(r), "s0 DECLARE a b");
	r->s[0].next_key = 6;
	peer_declared(&r->s[0]);
	assert_string_equal(wrig_events(r), "");
	assert_string_equal(wrig_tx(r), "s1 DECLARE a b; s0 KEEPALIVE");
	memcpy(&item, r->last[SW_DECLARE].bytes + SW_HEAD_BYTES + 8,
		sizeof(item));
	assert_int_equal(item.key, 6);
	r->s[1].next_key = 6;
	peer_declared(&r->s[1]);
	assert_string_equal(wrig_events(r), "declared");
	wrig_tick(r, SW_S);
	assert_null(strstr(wrig_tx(r), "DECLARE"));
	wrig_close(r);
}

static void declared__past_and_malformed(void **state)
{
	struct worker_rig *r = open_running(1);

	declare(r, 2);
	wrig_tx(r);
	r->s[0].n_items = 3;
	peer_declared(&r->s[0]);
	r->s[0].n_items = 0;
	peer_declared(&r->s[0]);
	assert_int_equal(r->w.stats.rx_state, 2);
	r->s[0].n_items = 2;
	peer_declared(&r->s[0]);
	assert_string_equal(wrig_events(r), "declared");
	peer_declared(&r->s[0]); /* a late copy */
	assert_int_equal(r->w.stats.rx_state, 3);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* DECLARED counts more keys than it has. */
static void declared__lying_count(void **state)
{
	struct worker_rig *r = open_running(1);
	struct sw_declared d = {.n = 2};

	declare(r, 2);
	wrig_tx(r);
	peer_say(&r->s[0], SW_DECLARED, &d, sizeof(d));
	assert_int_equal(r->w.stats.rx_state, 1);
	assert_int_equal(r->w.links[0].n_declared, 0);
	wrig_close(r);
}

static void declared__impossible_keys(void **state)
{
	struct worker_rig *r = open_running(1);

	declare(r, 1);
	wrig_tx(r);
	r->s[0].next_key = SW_KEY_NONE;
	peer_declared(&r->s[0]);
	assert_contains(wrig_events(r), "failed SW_EPROTO server first");
	wrig_close(r);
}

static void declared__key_twice(void **state)
{
	struct worker_rig *r = open_running(1);

	wrig_declare(r, "a", 10, 0);
	declare(r, 1);
	wrig_tx(r);
	r->s[0].next_key = 0;
	peer_declared(&r->s[0]);
	assert_contains(wrig_events(r), "failed SW_EPROTO");
	wrig_close(r);
}

/* --- life and end --- */

static void tick__keepalive_and_death(void **state)
{
	struct worker_rig *r = open_running(1);
	uint64_t tenth = r->params.dead_after / 10;

	wrig_tick(r, tenth);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	wrig_tick(r, 9 * tenth - 1);
	assert_string_equal(wrig_events(r), "");
	wrig_tick(r, 1);
	assert_string_equal(wrig_events(r),
		"failed SW_ESERVER server first (10.0.0.0) silent for 10 s");
	wrig_close(r);
}

static void left__server_forgot_us(void **state)
{
	struct worker_rig *r = open_running(1);

	peer_left(&r->s[0], false);
	assert_contains(wrig_events(r),
		"failed SW_ESERVER server first no longer knows this agent");
	wrig_close(r);
}

/* While the job forms, LEFT makes the worker join again: the server restarted,
 * or dropped the session before the worker's first frame. */
static void left__while_joining(void **state)
{
	struct worker_rig *r = open_rig(2, 1);
	uint64_t psn;
	uint32_t id;

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_FORMING, 0, 0, "");
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	psn = r->last[SW_KEEPALIVE].h.psn;
	id = r->w.links[0].peer.id;
	peer_left(&r->s[0], false);
	assert_string_equal(wrig_tx(r), "s0 HELLO");
	assert_true(r->last[SW_HELLO].h.psn > psn);
	assert_int_not_equal(r->w.links[0].peer.id, id);
	memset(r->s[0].psn, 0, sizeof(r->s[0].psn)); /* a restarted server */
	peer_cookie(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 JOIN job rank 0 of 2");
	peer_accept(&r->s[0]);
	assert_string_equal(wrig_tx(r), "s0 KEEPALIVE");
	assert_int_equal(r->last[SW_KEEPALIVE].h.aux, 0);
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
	assert_string_equal(wrig_events(r), "running");
	wrig_close(r);
}

/* The server has answered JOINs before, so its silence is not blamed on the
 * MTU. */
static void left__and_then_silence(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	for (int i = 0; i < 2; i++) {
		wrig_tx(r);
		peer_cookie(&r->s[0]);
		assert_contains(wrig_tx(r), "s0 JOIN");
		memset(r->s[0].psn, 0, sizeof(r->s[0].psn));
		peer_accept(&r->s[0]);
		wrig_tx(r);
		peer_left(&r->s[0], false);
	}
	assert_string_equal(wrig_tx(r), "s0 HELLO");
	wrig_tick(r, 2 * SW_S);
	assert_string_equal(wrig_events(r),
		"joining waiting for server first (10.0.0.0:5700), which does "
		"not answer");
	wrig_close(r);
}

static void left__of_another_session(void **state)
{
	struct worker_rig *r = open_running(1);

	r->s[0].id++;
	peer_left(&r->s[0], false);
	peer_left(&r->s[0], true);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	assert_int_equal(r->w.stats.rx_state, 2);
	wrig_close(r);
}

static void leave__in_order(void **state)
{
	struct worker_rig *r = open_running(2);

	sw_worker_leave(&r->w, NULL);
	assert_string_equal(wrig_tx(r), "s0 LEAVE; s1 LEAVE");
	peer_left(&r->s[0], true);
	assert_string_equal(wrig_events(r), "");
	peer_left(&r->s[1], true);
	assert_string_equal(wrig_events(r), "left");
	assert_string_equal(wrig_tx(r), "");
	assert_false(r->w.engine.is_busy(&r->w.engine));
	wrig_close(r);
}

static void leave_for(struct worker_rig *r, const char *text)
{
	const struct sw_fault why = sw_fault_said(SW_EPEER, text);

	sw_worker_leave(&r->w, &why);
}

static void leave__twice(void **state)
{
	struct worker_rig *r = open_running(1);

	sw_worker_leave(&r->w, NULL);
	leave_for(r, "again");
	assert_string_equal(wrig_tx(r), "s0 LEAVE");
	peer_left(&r->s[0], true);
	assert_string_equal(wrig_events(r), "left");
	sw_worker_leave(&r->w, NULL);
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

static void leave__is_repeated_and_given_up(void **state)
{
	struct worker_rig *r = open_running(1);
	uint32_t n = 0;

	leave_for(r, "why not");
	for (uint32_t ms = 0; ms < 3000 && r->w.state != SW_WORKER_LEFT;
		ms += 10) {
		n += strstr(wrig_tx(r), "LEAVE SW_EPEER why not") != NULL;
		wrig_tick(r, 10 * SW_MS);
	}
	assert_in_range(n, 4, 12);
	assert_string_equal(wrig_events(r), "left SW_EPEER");
	wrig_close(r);
}

/* LEAVE does not wait for frames in flight, and their timers do not fire
 * repeatedly. */
static void leave__with_frames_on_their_way(void **state)
{
	struct worker_rig *r = open_running(1);

	wrig_declare(r, "a", 10, 0);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 0), 0);
	assert_contains(wrig_tx(r), "PUSH");
	leave_for(r, "why not");
	for (uint32_t i = 0; i < 30; i++) {
		wrig_tick(r, 100 * SW_MS);
		wrig_tx(r);
		assert_true(wrig_tick(r, 0) >= r->now_ns + SW_MS);
	}
	assert_int_equal(r->w.state, SW_WORKER_LEFT);
	wrig_close(r);
}

static void leave__before_it_is_in(void **state)
{
	struct worker_rig *r = open_rig(2, 1);

	wrig_tx(r);
	sw_worker_leave(&r->w, NULL);
	wrig_tick(r, 0);
	assert_string_equal(wrig_events(r), "left");
	peer_cookie(&r->s[0]);
	peer_accept(&r->s[0]);
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

/* Frames after the end have no effect. */
static void leave__then_frames(void **state)
{
	struct worker_rig *r = open_running(1);

	wrig_declare(r, "a", 10, 0);
	sw_worker_leave(&r->w, NULL);
	wrig_tx(r);
	peer_left(&r->s[0], true);
	wrig_events(r);
	peer_result(&r->s[0], 0, 1, 0, 1);
	peer_ack(&r->s[0], 0, 0);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 1, 0, 0);
	peer_status(&r->s[0], SW_JOB_FAILED, SW_EPEER, 0, "late");
	peer_left(&r->s[0], false);
	wrig_tick(r, 30 * SW_S);
	assert_string_equal(wrig_events(r), "");
	assert_string_equal(wrig_tx(r), "");
	wrig_close(r);
}

/* Ranks index sets, so impossible rank numbers in STATUS are refused. */
static void status__ranks_that_do_not_add_up(void **state)
{
	static const struct {
		uint16_t size, first, n_local[2];
	} rows[] = {{2, 0, {1, 1023}}, {1024, 0, {1023, 1}}, {2, 1, {1, 1}},
		{2, UINT16_MAX, {1, 1}}, {UINT16_MAX, 0, {1, 1}}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct worker_rig *r = open_rig(2, 1);
		struct sw_status st = {.joined = 3,
			.state = SW_JOB_RUNNING,
			.size = rows[i].size,
			.first = rows[i].first};

		memcpy(st.n_local, rows[i].n_local, sizeof(rows[i].n_local));
		wrig_tx(r);
		peer_cookie(&r->s[0]);
		wrig_tx(r);
		peer_accept(&r->s[0]);
		peer_say(&r->s[0], SW_STATUS, &st, sizeof(st));
		assert_contains(
			wrig_events(r), "failed SW_EPROTO server first");
		assert_int_equal(r->w.size, 0);
		wrig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__first_then_others),
		cmocka_unit_test(declared__past_and_malformed),
		cmocka_unit_test(declared__lying_count),
		cmocka_unit_test(declared__impossible_keys),
		cmocka_unit_test(declared__key_twice),
		cmocka_unit_test(tick__keepalive_and_death),
		cmocka_unit_test(left__server_forgot_us),
		cmocka_unit_test(left__while_joining),
		cmocka_unit_test(left__and_then_silence),
		cmocka_unit_test(left__of_another_session),
		cmocka_unit_test(leave__in_order),
		cmocka_unit_test(leave__twice),
		cmocka_unit_test(leave__is_repeated_and_given_up),
		cmocka_unit_test(leave__with_frames_on_their_way),
		cmocka_unit_test(leave__before_it_is_in),
		cmocka_unit_test(leave__then_frames),
		cmocka_unit_test(status__ranks_that_do_not_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
