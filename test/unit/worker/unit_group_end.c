/* unit_group_end.c - aborted, closed and dead groups at a worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

enum { GA, GB, HA, N_STREAMS, LOCAL = 2 };

#define WHY "rank 0 aborted group 'g': enough"

static void open_streams(struct worker_rig *r, uint32_t n_ranks)
{
	static const char *const names[] = {"g/a", "g/b", "h/a"};
	static const uint16_t ranks[] = {0, 1, 2, 3};
	struct sw_worker_tensor list[N_STREAMS];

	r->s[0].grant = 1 << 19;
	wrig_run(r);
	for (uint32_t i = 0; i < N_STREAMS; i++)
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.window_log2 = LOG2,
			.ranks = ranks,
			.n_ranks = n_ranks};
	assert_int_equal(sw_worker_declare(&r->w, list, N_STREAMS), 0);
	for (uint32_t s = 0; s < r->n_servers; s++) {
		wrig_tx(r);
		peer_declared(&r->s[s]);
	}
	wrig_tx(r);
	wrig_events(r);
}

/* Open rank 0 of three nodes with one rank each. */
static struct worker_rig *open_one(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 3, 1);
	open_streams(&r, 3);
	return &r;
}

/* Open ranks 0 and 1 of two nodes with two local ranks each. */
static struct worker_rig *open_two(void)
{
	static struct worker_rig r;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].n_local = LOCAL;
	open_streams(&r, 4);
	return &r;
}

static int call(struct worker_rig *r, uint32_t stream, uint32_t local)
{
	struct sw_worker_coll ask = ask_of(r, SW_ALL_REDUCE, 1);

	ask.stream = stream;
	ask.local = local;
	ask.cookie = 10 * stream + local;
	return sw_worker_coll(&r->w, &ask);
}

/* Let the server send END, or CLOSE if @round is 0. */
static void confirm(
	struct worker_rig *r, uint32_t key, uint32_t round, const char *text)
{
	struct sw_fault fault = {.err = SW_EABORTED, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->s[0],
		(struct sw_header){.type = round ? SW_END : SW_CLOSE,
			.round = round,
			.payload_len = sizeof(fault)},
		&fault);
}

/* --- dead --- */

static void dead__all_streams_of_the_group(void **state)
{
	struct worker_rig *r = open_one();

	call(r, GA, 0);
	call(r, GB, 0);
	call(r, HA, 0);
	wrig_tx(r);
	confirm(r, GA, 1, "they differ");
	assert_string_equal(wrig_events(r),
		"done t0 #0 SW_EABORTED w0; done t1 #10 SW_EABORTED w0");
	assert_string_equal(sw_worker_why(&r->w, GA, (char[SW_TEXT_MAX]){0}),
		"they differ");
	assert_int_equal(sw_worker_death(&r->w, GA), SW_EABORTED);
	assert_null(sw_worker_why(&r->w, HA, (char[SW_TEXT_MAX]){0}));
	assert_int_equal(sw_worker_death(&r->w, HA), 0);
	assert_int_equal(call(r, GA, 0), SW_EABORTED);
	wrig_close(r);
}

static uint32_t n_keeps[N_STREAMS];

/* Report work for each key in two turns. */
static bool on_keep(void *ctx, uint32_t key)
{
	struct worker_rig *r = ctx;
	size_t n = strlen(r->events);

	snprintf(r->events + n, sizeof(r->events) - n, "%skeep k%u",
		n ? "; " : "", key);
	return n_keeps[key]++ > 0;
}

/* No buffer is returned while a loopback may still read it. */
static void dead__ends_between_two_turns(void **state)
{
	struct worker_rig *r = open_one();

	r->w.events.keep = on_keep;
	call(r, GA, 0);
	call(r, GB, 0);
	sw_worker_abort(&r->w, GA, 0, SW_EABORTED, WHY);
	assert_string_equal(r->events, "");
	assert_int_equal(call(r, GB, 0), SW_EABORTED);
	for (uint32_t turn = 0; turn < 3; turn++)
		assert_true(sw_worker_take(&r->w));
	assert_string_equal(wrig_events(r),
		"keep k0; keep k0; keep k1; keep k0; keep k1; "
		"done t0 #0 SW_EABORTED w0; done t1 #10 SW_EABORTED w0");
	assert_int_equal(sw_worker_take(&r->w), 0);
	wrig_close(r);
}

/* --- aborted --- */

static void abort__says_it_until_it_is_acknowledged(void **state)
{
	struct worker_rig *r = open_one();

	call(r, GA, 0);
	wrig_tx(r);
	sw_worker_abort(&r->w, GB, 0, SW_EABORTED, WHY);
	assert_string_equal(wrig_events(r), "done t0 #0 SW_EABORTED w0");
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "s0 END k0 r1 " WHY);
	wrig_tick(r, 200 * SW_MS);
	assert_contains(wrig_tx(r), "s0 END k0 r1 " WHY);
	peer_keepalive(&r->s[0]);
	wrig_tick(r, 200 * SW_MS);
	assert_null(strstr(wrig_tx(r), "END"));
	sw_worker_abort(&r->w, GA, 0, SW_EABORTED, "again");
	assert_string_equal(
		sw_worker_why(&r->w, GA, (char[SW_TEXT_MAX]){0}), WHY);
	wrig_close(r);
}

static void abort__of_what_is_no_stream(void **state)
{
	struct worker_rig *r = open_one();

	wrig_declare(r, "a", 1, 0);
	sw_worker_abort(&r->w, N_STREAMS, 0, SW_EEXPIRED, WHY);
	sw_worker_abort(&r->w, N_STREAMS + 1, 0, SW_EEXPIRED, WHY);
	sw_worker_close_group(&r->w, N_STREAMS, 0);
	sw_worker_close_group(&r->w, UINT32_MAX, 0);
	assert_null(sw_worker_why(&r->w, N_STREAMS, (char[SW_TEXT_MAX]){0}));
	wrig_close(r);
}

/* Local rank 1 tries to end a group that only has rank 0: it has no effect. */
static void end__by_who_is_not_in_it(void **state)
{
	static struct worker_rig r;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].n_local = LOCAL;
	open_streams(&r, 1);
	call(&r, GA, 0);
	sw_worker_abort(&r.w, GA, 1, SW_EABORTED, WHY);
	sw_worker_abort(&r.w, GB, 1, SW_EEXPIRED, WHY);
	sw_worker_close_group(&r.w, GA, 1);
	assert_int_equal(sw_worker_death(&r.w, GA), 0);
	sw_worker_abort(&r.w, GA, 0, SW_EABORTED, WHY);
	assert_int_equal(sw_worker_death(&r.w, GA), SW_EABORTED);
	wrig_close(&r);
}

static const char *said(struct worker_rig *r)
{
	wrig_tick(r, 0);
	return wrig_tx(r);
}

/* An abort names the ranks that a server's answer named, and local ranks that
 * have not called. */
static void abort__names_who_is_missing(void **state)
{
	struct worker_rig *r = open_one();

	call(r, GA, 0);
	sw_worker_abort(&r->w, GA, 0, SW_EEXPIRED, "rank 0 waited");
	assert_contains(said(r), "rank 0 waited; missing: a server");
	wrig_close(r);
	r = open_one();
	call(r, GA, 0);
	call(r, HA, 0);
	wrig_tx(r);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, GA, 1, 1, 6);
	sw_worker_abort(&r->w, GB, 0, SW_EEXPIRED, "rank 0 waited");
	assert_contains(said(r), "rank 0 waited; missing: ranks 1, 2 of 3");
	wrig_close(r);
	r = open_two();
	call(r, GA, 0);
	sw_worker_abort(&r->w, GA, 0, SW_EEXPIRED, "rank 0 waited");
	assert_contains(said(r), "rank 0 waited; missing: rank 1 of 4");
	wrig_close(r);
	r = open_two(); /* ranks of another node */
	call(r, GA, 0);
	call(r, GA, 1);
	wrig_tx(r);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, GA, 1, 1, 2);
	sw_worker_abort(&r->w, GA, 0, SW_EEXPIRED, "rank 0 waited");
	assert_contains(said(r), "rank 0 waited; missing: ranks 2, 3 of 4");
	wrig_close(r);
}

/* The reason keeps its full length; the missing ranks are shortened instead. */
static void abort__says_the_name(void **state)
{
	static const char waited[] =
		"rank 1000 timed out in reduce_scatter 4294967295 of group "
		"'a_name_of_forty_letters_as_the_client_...' (group timeout "
		"86400 s)";
	struct worker_rig *r = open_one();
	char want[SW_TEXT_MAX];

	call(r, GA, 0);
	wrig_tx(r);
	peer_answer(&r->s[0], SW_ANSWER_WAIT, GA, 1, 1, 6);
	sw_worker_abort(&r->w, GA, 0, SW_EEXPIRED, waited);
	snprintf(want, sizeof(want), "%s; missing: ranks 1, 2 of 3", waited);
	assert_contains(said(r), want);
	wrig_close(r);
}

/* --- decisions of the coordinator --- */

/* Open rank 0 of three nodes with two servers. */
static struct worker_rig *open_servers(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 3, 2);
	r.s[0].grant = r.s[1].grant = 1 << 19;
	open_streams(&r, 3);
	return &r;
}

/* Let time pass until no timer of the links is due. */
static void rest(struct worker_rig *r)
{
	wrig_tx(r);
	wrig_tick(r, SW_MS);
	wrig_tx(r);
}

static void server_says(
	struct worker_rig *r, uint32_t server, int16_t err, const char *text)
{
	struct sw_fault fault = {.err = err, .key = GA};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->s[server],
		(struct sw_header){.type = SW_END,
			.round = 1,
			.payload_len = sizeof(fault)},
		&fault);
}

/* If a group that no local rank has opened fails, the user learns it only from
 * the coordinator, and only of a timeout, stall or mismatch. Aborts and deaths
 * are not reported. */
static void failed__of_a_group_that_is_not_here(void **state)
{
	static const struct {
		uint32_t server;
		int16_t err;
		const char *events;
	} cases[] = {{0, SW_EEXPIRED, "failed"}, {0, SW_ESTALL, "failed"},
		{0, SW_EABORTED, ""}, {0, SW_EPEER, ""}, {1, SW_EEXPIRED, ""}};
	struct worker_rig *r = open_servers();

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sw_fault fault = {
			.err = cases[i].err, .key = 77, .text = "it ended"};

		peer_send(&r->s[cases[i].server],
			(struct sw_header){.type = SW_END,
				.round = 1,
				.payload_len = sizeof(fault)},
			&fault);
		assert_string_equal(wrig_events(r), cases[i].events);
	}
	wrig_close(r);
}

/* A timeout is only proposed to the coordinator, because other ranks may have
 * timed out at the same time. */
static void decide__who_has_waited_too_long(void **state)
{
	struct worker_rig *r = open_servers();

	call(r, GA, 0);
	rest(r);
	sw_worker_abort(&r->w, GA, 0, SW_EEXPIRED, "rank 0 waited");
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(sw_worker_death(&r->w, GA), 0);
	assert_null(sw_worker_why(&r->w, GA, (char[SW_TEXT_MAX]){0}));
	wrig_tick(r, 0);
	assert_string_equal(
		wrig_tx(r), "s0 END k0 r1 rank 0 waited; missing: a server");
	wrig_tick(r, 200 * SW_MS); /* the END was lost */
	assert_contains(wrig_tx(r), "s0 END k0 r1 rank 0 waited");
	server_says(r, 0, SW_EEXPIRED, "rank 1 waited");
	assert_string_equal(
		wrig_events(r), "failed; done t0 #0 SW_EEXPIRED w0");
	assert_string_equal(sw_worker_why(&r->w, GA, (char[SW_TEXT_MAX]){0}),
		"rank 1 waited");
	wrig_tick(r, 200 * SW_MS);
	assert_contains(wrig_tx(r), "s1 END k0 r1 rank 1 waited");
	wrig_close(r);
}

/* A report of another server is only proposed to the coordinator, because two
 * servers may see the calls in different orders. */
static void decide__what_another_server_says(void **state)
{
	struct worker_rig *r = open_servers();

	call(r, GA, 0);
	rest(r);
	server_says(r, 1, SW_EMISMATCH, "rank 1 calls a, rank 0 b");
	assert_string_equal(wrig_events(r), "");
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r),
		"s0 END k0 r1 rank 1 calls a, rank 0 b; s1 KEEPALIVE");
	server_says(r, 1, SW_EMISMATCH, "rank 1 calls a, rank 0 b");
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "s1 KEEPALIVE");
	server_says(r, 0, SW_EMISMATCH, "rank 0 calls b, rank 1 a");
	assert_string_equal(
		wrig_events(r), "failed; done t0 #0 SW_EMISMATCH w0");
	assert_string_equal(sw_worker_why(&r->w, GA, (char[SW_TEXT_MAX]){0}),
		"rank 0 calls b, rank 1 a");
	wrig_close(r);
}

/* --- closed --- */

static void close__is_said_until_it_is_acknowledged(void **state)
{
	struct worker_rig *r = open_one();

	sw_worker_close_group(&r->w, GA, 0);
	assert_int_equal(call(r, GA, 0), SW_ECLOSED);
	confirm(r, GA, 1, "they differ"); /* sent before our CLOSE arrived */
	assert_int_equal(sw_worker_death(&r->w, GA), 0);
	sw_worker_take(&r->w);
	assert_string_equal(wrig_tx(r), "s0 CLOSE k0 ");
	wrig_tick(r, 200 * SW_MS);
	assert_contains(wrig_tx(r), "s0 CLOSE k0 ");
	peer_keepalive(&r->s[0]);
	wrig_tick(r, 200 * SW_MS);
	assert_null(strstr(wrig_tx(r), "CLOSE"));
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(call(r, HA, 0), 0);
	sw_worker_close_group(&r->w, GA, 0);
	wrig_tick(r, 200 * SW_MS);
	assert_null(strstr(wrig_tx(r), "END"));
	wrig_close(r);
}

/* The worker acknowledges and ignores a late frame. */
static void close__late_frames(void **state)
{
	struct worker_rig *r = open_one();
	struct sw_header h = result_of(SW_ALL_REDUCE, 1, 1, 1);

	call(r, GA, 0);
	wrig_tx(r);
	peer_fill(&r->s[0], h, 7);
	assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w3");
	sw_worker_close_group(&r->w, GA, 0);
	peer_fill(&r->s[0], h, 8);
	peer_answer(&r->s[0], SW_ANSWER_BASE, GA, 0, 5, 0);
	peer_answer(&r->s[0], SW_ANSWER_NEED, GA, 1, 1, 0);
	peer_ack(&r->s[0], 0, 1);
	wrig_tick(r, 200 * SW_MS);
	assert_contains(wrig_tx(r), "s0 ACK");
	assert_int_equal(r->w.stats.result_again, 1);
	assert_int_equal(r->data[0][0], 7);
	wrig_close(r);
}

static void close__with_work_open(void **state)
{
	struct worker_rig *r = open_one();
	const char *text;

	call(r, GB, 0);
	wrig_tx(r);
	sw_worker_close_group(&r->w, GA, 0);
	assert_string_equal(wrig_events(r), "done t1 #10 SW_EABORTED w0");
	sw_worker_take(&r->w);
	text = wrig_tx(r);
	assert_contains(text, "s0 END k0 r1 group k0: rank 0 closed the "
			      "group with work open");
	assert_contains(text, "s0 CLOSE k0 ");
	wrig_close(r);
}

/* A node closes a group when all its local ranks have closed it. */
static void close__by_local_ranks(void **state)
{
	struct worker_rig *r = open_two();

	sw_worker_close_group(&r->w, GA, 1);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "");
	assert_int_equal(call(r, GA, 1), SW_ECLOSED);
	sw_worker_close_group(&r->w, GB, 0);
	sw_worker_take(&r->w);
	assert_string_equal(wrig_tx(r), "s0 CLOSE k0 ");
	wrig_close(r);
}

static void close__while_a_local_rank_goes_on(void **state)
{
	struct worker_rig *r = open_two();

	sw_worker_close_group(&r->w, GA, 1);
	assert_int_equal(call(r, GB, 0), SW_EABORTED);
	assert_string_equal(sw_worker_why(&r->w, GA, (char[SW_TEXT_MAX]){0}),
		"group g: rank 0 waits for rank 1, which has closed the "
		"group");
	assert_int_equal(call(r, HA, 1), 0);
	wrig_close(r);
}

/* A local rank opens a stream that the other one, which has closed the group,
 * will never open: the group is aborted. */
static void close__before_a_stream_is_opened(void **state)
{
	struct worker_rig *r = open_two();
	static const uint16_t ranks[] = {0, 1, 2, 3};
	struct sw_worker_tensor d = {.name = "g/c",
		.window_log2 = LOG2,
		.ranks = ranks,
		.n_ranks = 4};

	sw_worker_close_group(&r->w, GA, 1);
	assert_int_equal(sw_worker_declare(&r->w, &d, 1), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	assert_int_equal(call(r, N_STREAMS, 0), SW_EABORTED);
	wrig_close(r);
}

/* LEAVE waits until the servers have the CLOSE. */
static void close__then_leave(void **state)
{
	struct worker_rig *r = open_one();

	sw_worker_close_group(&r->w, HA, 0);
	sw_worker_leave(&r->w, NULL);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "");
	sw_worker_take(&r->w);
	assert_string_equal(wrig_tx(r), "s0 CLOSE k2 ");
	sw_worker_take(&r->w);
	wrig_tick(r, 0);
	assert_string_equal(wrig_tx(r), "");
	peer_keepalive(&r->s[0]);
	wrig_tick(r, 0);
	assert_contains(wrig_tx(r), "s0 LEAVE");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead__all_streams_of_the_group),
		cmocka_unit_test(dead__ends_between_two_turns),
		cmocka_unit_test(abort__says_it_until_it_is_acknowledged),
		cmocka_unit_test(abort__of_what_is_no_stream),
		cmocka_unit_test(end__by_who_is_not_in_it),
		cmocka_unit_test(abort__names_who_is_missing),
		cmocka_unit_test(abort__says_the_name),
		cmocka_unit_test(failed__of_a_group_that_is_not_here),
		cmocka_unit_test(decide__who_has_waited_too_long),
		cmocka_unit_test(decide__what_another_server_says),
		cmocka_unit_test(close__is_said_until_it_is_acknowledged),
		cmocka_unit_test(close__late_frames),
		cmocka_unit_test(close__with_work_open),
		cmocka_unit_test(close__by_local_ranks),
		cmocka_unit_test(close__while_a_local_rank_goes_on),
		cmocka_unit_test(close__before_a_stream_is_opened),
		cmocka_unit_test(close__then_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
