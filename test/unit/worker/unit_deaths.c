/* unit_deaths.c - calls that end after the death of a member or local rank.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

enum { LOCAL = 3, A, B, C };

static int32_t from[LOCAL][PEER_CHUNK], to[LOCAL][PEER_CHUNK];

/* Open member 0 of 2, with ranks 0 to 2; the other has 3 to 5. There are tensor
 * "t" and streams of ranks 0 and 3, 1 and 4, 2 and 5. */
static struct worker_rig *open_rig(void)
{
	static const uint16_t ranks[][2] = {{0, 3}, {1, 4}, {2, 5}};
	static const char *const names[] = {"a", "b", "c"};
	static struct worker_rig r;
	struct sw_worker_tensor d[4] = {{.name = "t",
		.n_elems = PEER_CHUNK,
		.dtype = SW_I32,
		.base = to[0]}};

	for (uint32_t i = 0; i < 3; i++)
		d[1 + i] = (struct sw_worker_tensor){.name = names[i],
			.window_log2 = LOG2,
			.ranks = ranks[i],
			.n_ranks = 2};
	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].grant = 1 << 19;
	r.s[0].n_local = LOCAL;
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, d, 4), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	wrig_tx(&r);
	assert_string_equal(wrig_events(&r), "declared");
	for (uint32_t l = 0; l < LOCAL; l++)
		sw_worker_source(&r.w, 0, l, from[l]);
	return &r;
}

static int call(struct worker_rig *r, uint32_t stream, uint32_t local)
{
	struct sw_worker_coll ask = {.stream = stream - LOCAL,
		.local = local,
		.kind = SW_ALL_REDUCE,
		.dtype = SW_I32,
		.n_elems = 1,
		.from = from[local],
		.to = to[local],
		.from_bytes = sizeof(from[local]),
		.to_bytes = sizeof(to[local]),
		.cookie = 70 + local};

	return sw_worker_coll(&r->w, &ask);
}

static int push(struct worker_rig *r, uint32_t local)
{
	const struct sw_worker_round round = {
		.step = 1, .local = local, .cookie = 60 + local};

	return sw_worker_begin(&r->w, &round);
}

/* Do all pending work about ended calls. */
static void settle(struct worker_rig *r)
{
	peer_keepalive(&r->s[0]); /* acknowledges all frames so far */
	for (uint32_t n = 0; sw_worker_take(&r->w); n++)
		assert_true(n < 1000);
}

static void expect_death(struct worker_rig *r, uint32_t tensor, const char *why)
{
	assert_int_equal(sw_worker_death(&r->w, tensor), SW_EPEER);
	assert_string_equal(
		sw_worker_why(&r->w, tensor, (char[SW_TEXT_MAX]){0}), why);
}

static void die(struct worker_rig *r, uint32_t local)
{
	struct sw_fault why = sw_fault_said(SW_EPEER, "");

	snprintf(why.text, sizeof(why.text), "rank %u died", local);
	sw_worker_local_died(&r->w, local, &why);
}

/* A dead local rank's group and the tensor end; other groups continue. */
static void died__ends_what_it_is_in(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(push(r, 0), 0);
	assert_int_equal(call(r, B, 1), 0);
	die(r, 1);
	settle(r);
	assert_string_equal(wrig_events(r),
		"done t0 #60 SW_EPEER w0; done t2 #71 SW_EPEER w0");
	expect_death(r, 0, "rank 1 died");
	expect_death(r, B - LOCAL, "rank 1 died");
	assert_int_equal(push(r, 2), SW_EPEER);
	assert_int_equal(call(r, A, 0), 0);
	assert_int_equal(call(r, C, 2), 0);
	assert_int_equal(n_pushes(r), 2);
	wrig_close(r);
}

/* A local rank dies after its push: that round completes, the next one
 * fails. */
static void died__after_its_push(void **state)
{
	struct worker_rig *r = open_rig();

	assert_int_equal(push(r, 1), 0);
	die(r, 1);
	settle(r);
	assert_int_equal(push(r, 0), 0);
	assert_int_equal(push(r, 2), 0);
	assert_int_equal(n_pushes(r), 1);
	peer_result(&r->s[0], 0, 1, 0, 5);
	assert_string_equal(wrig_events(r),
		"done t0 #60 SW_OK w2; done t0 #61 SW_OK w2; done t0 #62 "
		"SW_OK w2");
	assert_int_equal(push(r, 0), SW_EPEER);
	wrig_close(r);
}

/* If all groups contain the dead rank or have ended, the job ends for that
 * reason. */
static void died__in_all_groups(void **state)
{
	struct worker_rig *r = open_rig();

	sw_worker_close_group(&r->w, A - LOCAL, 0);
	sw_worker_abort(&r->w, C - LOCAL, 2, SW_EABORTED, "enough");
	assert_int_equal(call(r, B, 1), 0);
	die(r, 1);
	settle(r);
	assert_contains(wrig_events(r), "failed SW_EPEER rank 1 died");
	wrig_close(r);
}

/* A second rank dies before the worker has looked at all of the first one's
 * groups. */
static void died__two_at_once(void **state)
{
	struct worker_rig *r = open_rig();

	die(r, 0);
	die(r, 1);
	settle(r);
	expect_death(r, A - LOCAL,
		"rank 0 (node node) died; group a cannot complete");
	expect_death(r, B - LOCAL, "rank 1 died");
	assert_int_equal(call(r, C, 2), 0);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

/* Close stream "a" and free it. */
static void close_a(struct worker_rig *r, uint32_t id, uint32_t key)
{
	char line[32];

	snprintf(line, sizeof(line), "CLOSE k%u", key);
	sw_worker_close_group(&r->w, id, 0);
	settle(r);
	assert_contains(wrig_tx(r), line);
	peer_keepalive(&r->s[0]);
	settle(r);
	assert_false(sw_bitmap_has(&r->w.added, A - LOCAL));
	sw_worker_free(&r->w, id);
}

/* A freed stream is not looked at again, whatever number of streams had its
 * index. */
static void died__after_streams_have_gone(void **state)
{
	static const uint16_t ranks[] = {0, 3};
	struct sw_worker_tensor again = {.name = "a",
		.window_log2 = LOG2,
		.ranks = ranks,
		.n_ranks = 2,
		.again = A - LOCAL};
	struct worker_rig *r = open_rig();
	uint32_t key = A - LOCAL;

	for (uint32_t n = 0; n <= SW_TENSORS; n++) {
		close_a(r, again.again, key);
		key += SW_KEY_INDICES;
		again.again = sw_id_next(again.again);
		assert_int_equal(sw_worker_declare(&r->w, &again, 1), 0);
		wrig_tx(r);
		r->s[0].next_key = key;
		peer_declared(&r->s[0]);
	}
	close_a(r, again.again, key);
	wrig_events(r);
	die(r, 1);
	settle(r);
	expect_death(r, B - LOCAL, "rank 1 died");
	assert_int_equal(call(r, C, 2), 0);
	wrig_close(r);
}

/* A dead local rank counts as having closed its group: when all others have
 * closed it, the group is freed. */
static void died__its_group_goes(void **state)
{
	static const uint16_t ranks[] = {0, 1, 3};
	const struct sw_worker_tensor both = {
		.name = "d", .window_log2 = LOG2, .ranks = ranks, .n_ranks = 3};
	struct worker_rig *r = open_rig();

	assert_int_equal(sw_worker_declare(&r->w, &both, 1), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	die(r, 1);
	settle(r);
	assert_contains(wrig_tx(r), "END k2 r1 rank 1 died");
	expect_death(r, 4, "rank 1 died");
	assert_false(r->w.tensors[4].life->is_closed);
	sw_worker_close_group(&r->w, 4, 0);
	settle(r);
	assert_contains(wrig_tx(r), "CLOSE k4");
	settle(r);
	assert_false(sw_bitmap_has(&r->w.added, 4));
	wrig_close(r);
}

/* The other local rank closes a dead rank's group before the worker has ended
 * the group: it ends anyway. */
static void died__others_close_at_once(void **state)
{
	static const uint16_t ranks[] = {0, 1, 3};
	const struct sw_worker_tensor both = {
		.name = "d", .window_log2 = LOG2, .ranks = ranks, .n_ranks = 3};
	struct worker_rig *r = open_rig();

	assert_int_equal(sw_worker_declare(&r->w, &both, 1), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	die(r, 1);
	sw_worker_close_group(&r->w, 4, 0);
	settle(r);
	expect_death(r, 4, "rank 1 died");
	assert_true(r->w.tensors[4].life->is_closed);
	wrig_close(r);
}

/* A rank that leaves closes its groups. A group without another local rank is
 * freed when its last call has ended. */
static void left__its_groups_go(void **state)
{
	struct sw_header h = result_of(SW_ALL_REDUCE, 1, 1, 1);
	struct worker_rig *r = open_rig();

	assert_int_equal(call(r, A, 0), 0);
	assert_int_equal(n_pushes(r), 1);
	sw_worker_local_left(&r->w, 0);
	settle(r);
	assert_false(r->w.tensors[A - LOCAL].life->is_closed);
	h.key = A - LOCAL;
	peer_fill(&r->s[0], h, 9);
	settle(r);
	assert_contains(wrig_tx(r), "CLOSE k1 ");
	assert_contains(wrig_events(r), "done t1 #70 SW_OK");
	assert_int_equal(sw_worker_death(&r->w, A - LOCAL), 0);
	settle(r);
	assert_false(sw_bitmap_has(&r->w.added, A - LOCAL));
	assert_false(r->w.tensors[B - LOCAL].life->is_closed);
	assert_int_equal(call(r, B, 1), 0);
	wrig_close(r);
}

/* A group of several local ranks is closed when the others have closed it, even
 * if it is opened later. A group without others is closed at once. */
static void left__others_close_its_groups(void **state)
{
	static const uint16_t ranks[] = {0, 1, 3};
	struct sw_worker_tensor both = {
		.name = "d", .window_log2 = LOG2, .ranks = ranks, .n_ranks = 3};
	struct worker_rig *r = open_rig();

	for (uint32_t i = 4; i < 6; i++, both.name = "e") {
		assert_int_equal(sw_worker_declare(&r->w, &both, 1), 0);
		wrig_tx(r);
		peer_declared(&r->s[0]);
		if (i == 4)
			sw_worker_local_left(&r->w, 1);
		settle(r);
		assert_false(r->w.tensors[i].life->is_closed);
		sw_worker_close_group(&r->w, i, 0);
		assert_true(r->w.tensors[i].life->is_closed);
		assert_int_equal(sw_worker_death(&r->w, i), 0);
	}
	both = (struct sw_worker_tensor){.name = "f",
		.window_log2 = LOG2,
		.ranks = ranks + 1,
		.n_ranks = 2};
	assert_int_equal(sw_worker_declare(&r->w, &both, 1), 0);
	settle(r);
	/* it is not declared yet */
	assert_false(r->w.tensors[6].life->is_closed);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	settle(r);
	assert_true(r->w.tensors[6].life->is_closed);
	wrig_close(r);
}

/* A rank dies while tensors are being declared. The servers also learn that
 * these are dead, so other members hear it. */
static void died__while_some_are_declared(void **state)
{
	enum { N = 60 }; /* more than one frame can have */
	struct worker_rig *r = open_rig();
	struct sw_worker_tensor d[N];
	char names[N][8];
	bool is_said = false;

	for (uint32_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		d[i] = (struct sw_worker_tensor){.name = names[i],
			.n_elems = 1,
			.dtype = SW_I32,
			.base = to[0]};
	}
	assert_int_equal(sw_worker_declare(&r->w, d, N), 0);
	wrig_tx(r);
	die(r, 1);
	settle(r);
	peer_declared(&r->s[0]);
	assert_contains(wrig_tx(r), "DECLARE ");
	peer_declared(&r->s[0]);
	assert_contains(wrig_events(r), "declared");
	assert_int_equal(r->s[0].next_key, 4 + N);
	/* eight ENDs at a time */
	for (uint32_t i = 0; i < N && !is_said; i++) {
		is_said = strstr(wrig_tx(r), "END k63 r1 rank 1 died");
		peer_keepalive(&r->s[0]);
	}
	assert_true(is_said);
	wrig_close(r);
}

static void say_lost(struct worker_rig *r, uint64_t joined)
{
	struct sw_status st = {.joined = joined,
		.state = SW_JOB_RUNNING,
		.member = 1,
		.size = 6,
		.epoch = 9,
		.why.text = "rank 1 is silent"};

	peer_say(&r->s[0], SW_STATUS, &st, sizeof(st));
}

/* Let the worker look for stalled calls. */
static void look(struct worker_rig *r)
{
	wrig_tick(r, 200 * SW_MS);
	settle(r);
}

/* A call that waits for a dead member ends as soon as the death is known. */
static void member__is_gone(void **state)
{
	struct worker_rig *r = open_rig();

	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(push(r, l), 0);
	assert_int_equal(call(r, A, 0), 0);
	wrig_tx(r);
	look(r);
	say_lost(r, 3);
	look(r);
	assert_string_equal(wrig_events(r), "");
	say_lost(r, 1);
	look(r);
	assert_string_equal(wrig_events(r), "done t1 #70 SW_EPEER w0");
	expect_death(r, A - LOCAL, "rank 1 is silent");
	wrig_tx(r);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 1, 0, 2);
	look(r);
	assert_string_equal(wrig_events(r),
		"done t0 #60 SW_EPEER w0; done t0 #61 SW_EPEER w0; done t0 #62 "
		"SW_EPEER w0");
	expect_death(r, 0, "rank 1 is silent");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

/* A server that waited for a member may have its push by now. Only an answer
 * after the death counts. */
static void member__named_before_it_died(void **state)
{
	struct worker_rig *r = open_rig();

	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(push(r, l), 0);
	settle(r);
	wrig_tx(r);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 1, 0, 2);
	look(r);
	say_lost(r, 1);
	look(r);
	assert_string_equal(wrig_events(r), "");
	wrig_tx(r);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 1, 0, 2);
	look(r);
	assert_contains(wrig_events(r), "done t0 #60 SW_EPEER w0");
	wrig_close(r);
}

/* A member's death is known even after another member's death was reported.
 * Ranks are counted over all members. */
static void member__before_the_last(void **state)
{
	struct worker_rig *r = open_rig();
	const struct sw_status st = {.joined = 1,
		.state = SW_JOB_RUNNING,
		.member = 2, /* a third member's number */
		.size = 6,
		.epoch = 9,
		.why.text = "rank 6 is silent"};

	assert_int_equal(call(r, A, 0), 0);
	peer_say(&r->s[0], SW_STATUS, &st, sizeof(st));
	look(r);
	expect_death(r, A - LOCAL, "rank 3 is gone; group a cannot complete");
	wrig_close(r);
}

/* The first STATUS of a job may already report a member's death. */
static void member__is_gone_before(void **state)
{
	const struct sw_status st = {.joined = 5,
		.state = SW_JOB_RUNNING,
		.member = 1,
		.size = 3,
		.payload = PEER_PAYLOAD,
		.epoch = 9,
		.n_local = {1, 1, 1},
		.why.text = "rank 1 is silent"};
	static struct worker_rig r;

	wrig_open(&r, 0, 3, 1);
	wrig_tx(&r);
	peer_cookie(&r.s[0]);
	wrig_tx(&r);
	peer_accept(&r.s[0]);
	peer_say(&r.s[0], SW_STATUS, &st, sizeof(st));
	assert_int_equal(sw_worker_declare(&r.w, &a_stream, 1), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	submit_n(&r, 1);
	look(&r);
	assert_contains(wrig_events(&r), "done t0 #1 SW_EPEER w0");
	expect_death(&r, 0, "rank 1 is silent");
	wrig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(died__ends_what_it_is_in),
		cmocka_unit_test(died__after_its_push),
		cmocka_unit_test(died__in_all_groups),
		cmocka_unit_test(died__two_at_once),
		cmocka_unit_test(died__after_streams_have_gone),
		cmocka_unit_test(died__its_group_goes),
		cmocka_unit_test(died__others_close_at_once),
		cmocka_unit_test(left__its_groups_go),
		cmocka_unit_test(left__others_close_its_groups),
		cmocka_unit_test(died__while_some_are_declared),
		cmocka_unit_test(member__is_gone),
		cmocka_unit_test(member__before_the_last),
		cmocka_unit_test(member__named_before_it_died),
		cmocka_unit_test(member__is_gone_before)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
