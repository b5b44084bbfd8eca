/* unit_stream_gone.c - closed streams are freed; others reuse their indices.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

enum { NEXT = SW_IDS }; /* id of the second stream at index 0 */

static char gone[256];

static void on_gone(void *ctx, uint32_t tensor)
{
	struct worker_rig *r = ctx;
	size_t n = strlen(gone);

	assert_int_equal(r->w.n_open, 0);
	snprintf(gone + n, sizeof(gone) - n, "gone t%u; ", tensor);
}

/* Return the streams freed since the last call, after a turn in which the
 * coordinator acknowledges all that it received. */
static const char *went(struct worker_rig *r)
{
	static char text[sizeof(gone)];

	gone[0] = 0;
	peer_keepalive(&r->s[0]);
	sw_worker_take(&r->w);
	strcpy(text, gone);
	return text;
}

static int call(struct worker_rig *r, uint32_t stream, uint64_t cookie)
{
	struct sw_worker_coll ask = ask_of(r, SW_ALL_REDUCE, 1);

	ask.stream = stream;
	ask.cookie = cookie;
	return sw_worker_coll(&r->w, &ask);
}

static int declare(struct worker_rig *r, const char *name, uint32_t again)
{
	static const uint16_t ranks[] = {0, 1, 2};
	struct sw_worker_tensor t = {.name = name,
		.window_log2 = LOG2,
		.ranks = ranks,
		.n_ranks = 3,
		.again = again};

	return sw_worker_declare(&r->w, &t, 1);
}

/* Let server @s answer the DECLARE with @key. */
static void declared(struct worker_rig *r, uint32_t s, uint32_t key)
{
	wrig_tx(r);
	r->s[s].next_key = key;
	peer_declared(&r->s[s]);
}

/* Open rank 0 of three nodes; "g/a", key 0, is admitted. */
static struct worker_rig *open_rig(uint32_t n_servers)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 3, n_servers);
	r.w.events.gone = on_gone;
	wrig_run(&r);
	assert_int_equal(declare(&r, "g/a", 0), 0);
	for (uint32_t s = 0; s < n_servers; s++)
		declared(&r, s, 0);
	assert_string_equal(wrig_events(&r), "declared");
	wrig_tx(&r);
	return &r;
}

static void say(struct worker_rig *r, uint32_t s, uint32_t key, uint32_t round)
{
	struct sw_fault fault = {.key = key};

	peer_send(&r->s[s],
		(struct sw_header){.type = round ? SW_END : SW_CLOSE,
			.round = round,
			.payload_len = sizeof(fault)},
		&fault);
}

static const char *close_group(struct worker_rig *r, uint32_t stream)
{
	sw_worker_close_group(&r->w, stream, 0);
	sw_worker_take(&r->w);
	return wrig_tx(r);
}

/* The coordinator gets CLOSE last, when all other servers have acknowledged it.
 * Then the coordinator may reuse the key's index, and the stream is freed. */
static void gone__when_all_servers_know(void **state)
{
	struct worker_rig *r = open_rig(2);

	assert_string_equal(close_group(r, 0), "s1 CLOSE k0 ");
	assert_string_equal(went(r), "");
	peer_keepalive(&r->s[0]);
	wrig_tick(r, r->params.retry_min);
	assert_contains(wrig_tx(r), "s1 CLOSE k0 ");
	assert_string_equal(went(r), "");
	peer_keepalive(&r->s[1]);
	assert_string_equal(went(r), "");
	assert_string_equal(wrig_tx(r), "s0 CLOSE k0 ");
	assert_string_equal(went(r), "gone t0; ");
	assert_string_equal(went(r), "");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 1), SW_EINVAL);
	sw_worker_close_group(&r->w, 0, 0); /* the id is unknown */
	sw_worker_abort(&r->w, 0, 0, SW_EABORTED, "late");
	assert_null(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}));
	wrig_tick(r, SW_S);
	assert_null(strstr(wrig_tx(r), "END"));
	sw_worker_free(&r->w, 0);
	wrig_close(r);
}

/* The stream's open calls end first. */
static void gone__with_work_open(void **state)
{
	struct worker_rig *r = open_rig(1);

	submit_n(r, 2);
	wrig_tx(r);
	close_group(r, 0);
	gone[0] = 0;
	while (sw_worker_take(&r->w))
		;
	assert_string_equal(gone, "");
	wrig_tx(r);
	peer_keepalive(&r->s[0]);
	sw_worker_take(&r->w);
	assert_string_equal(wrig_events(r),
		"done t0 #1 SW_EABORTED w0; done t0 #2 SW_EABORTED w0");
	assert_string_equal(gone, "gone t0; ");
	sw_worker_free(&r->w, 0);
	wrig_close(r);
}

static struct sw_header result(uint32_t key)
{
	struct sw_header h = result_of(SW_ALL_REDUCE, 1, 1, 2);

	h.key = key;
	return h;
}

/* When another stream has the index and the key's index, late frames of the old
 * stream are acknowledged and have no effect. */
static void gone__late_frames(void **state)
{
	struct worker_rig *r = open_rig(1);
	const struct sw_stream_link *sl;

	submit_n(r, 1);
	wrig_tx(r);
	peer_fill(&r->s[0], result(0), 7);
	close_group(r, 0);
	assert_string_equal(went(r), "gone t0; ");
	sw_worker_free(&r->w, 0);
	peer_fill(&r->s[0], result(0), 7); /* no stream has the key */
	assert_int_equal(r->w.stats.rx_key, 0);
	assert_int_equal(declare(r, "g#2/a", NEXT), 0);
	declared(r, 0, SW_KEY_INDICES);
	wrig_events(r);
	assert_int_equal(call(r, NEXT, 1), 0);
	assert_contains(wrig_tx(r), "PUSH k4096 r1");
	peer_fill(&r->s[0], result(0), 9);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 1, 9, 0);
	peer_answer(&r->s[0], SW_ANSWER_BASE, 0, 0, 9, 0);
	say(r, 0, 0, 1);
	say(r, 0, 0, 0);
	sl = &r->w.tensors[0].stream->links[0];
	assert_int_equal(sl->base, 1);
	assert_int_equal(r->w.tensors[0].n_missing, 1);
	assert_null(sw_worker_why(&r->w, NEXT, (char[SW_TEXT_MAX]){0}));
	assert_int_equal(r->w.stats.rx_key, 0);
	assert_string_equal(wrig_events(r), "");
	wrig_tick(r, r->params.ack_delay_max);
	assert_contains(wrig_tx(r), "ACK 0:1-3"); /* all RESULTs */
	peer_fill(&r->s[0], result(SW_KEY_INDICES), 7);
	assert_string_equal(wrig_events(r), "done t4096 #1 SW_OK w3");
	wrig_close(r);
}

/* A push of the old stream is acknowledged when the new stream has the index;
 * the new stream is not affected. */
static void gone__late_fates(void **state)
{
	struct worker_rig *r = open_rig(1);

	submit_n(r, 1);
	wrig_tx(r);
	peer_fill(&r->s[0], result(0), 7);
	close_group(r, 0);
	went(r);
	sw_worker_free(&r->w, 0);
	declare(r, "g#2/a", NEXT);
	declared(r, 0, SW_KEY_INDICES);
	assert_int_equal(call(r, NEXT, 1), 0);
	wrig_tx(r);
	peer_ack(&r->s[0], 0, 1);
	assert_int_equal(r->w.tensors[0].chunks[1].state, SW_PUSHED);
	wrig_close(r);
}

/* The coordinator may reuse a key's index as soon as CLOSE is sent, even before
 * the old stream is freed here. */
static void gone__before_its_index_is_given(void **state)
{
	struct worker_rig *r = open_rig(2);

	close_group(r, 0);
	peer_keepalive(&r->s[1]);
	sw_worker_take(&r->w);
	assert_int_equal(declare(r, "g#2/a", 0), 0);
	assert_contains(wrig_tx(r), "s0 CLOSE k0 ");
	declared(r, 0, SW_KEY_INDICES);
	assert_int_equal(r->w.tensors[1].key, SW_KEY_INDICES);
	assert_string_equal(went(r), "gone t0; ");
	assert_ptr_equal(
		sw_tensor_of_key(&r->w, SW_KEY_INDICES), &r->w.tensors[1]);
	sw_worker_free(&r->w, 0);
	wrig_close(r);
}

/* The old id names nothing: no call with it affects the new stream at its
 * index. */
static void stale__names_nothing(void **state)
{
	struct worker_rig *r = open_rig(1);
	const struct sw_worker_round round = {.tensor = 0, .step = 1};
	const struct sw_wtensor *t = &r->w.tensors[0];

	close_group(r, 0);
	went(r);
	sw_worker_free(&r->w, 0);
	assert_int_equal(declare(r, "g#2/a", NEXT), 0);
	declared(r, 0, SW_KEY_INDICES);
	assert_int_equal(call(r, NEXT, 1), 0);
	assert_int_equal(call(r, 0, 2), SW_EINVAL);
	assert_int_equal(call(r, 2 * NEXT, 2), SW_EINVAL);
	assert_int_equal(sw_worker_begin(&r->w, &round), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), SW_EINVAL);
	sw_worker_abort(&r->w, 0, 0, SW_EABORTED, "late");
	sw_worker_abort(&r->w, 0, 0, SW_EEXPIRED, "late");
	sw_worker_close_group(&r->w, 0, 0);
	sw_worker_clash(&r->w, 0, 0, &t->decl);
	sw_worker_source(&r->w, 0, 0, NULL);
	sw_worker_free(&r->w, 0);
	assert_null(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}));
	assert_int_equal(sw_worker_death(&r->w, NEXT), 0);
	assert_false(t->life->n_closed || t->life->is_closed || t->life->from);
	assert_int_equal(r->w.n_open, 1);
	sw_worker_abort(&r->w, NEXT, 0, SW_EABORTED, "now");
	assert_int_equal(sw_worker_death(&r->w, NEXT), SW_EABORTED);
	assert_int_equal(sw_worker_death(&r->w, 0), 0);
	wrig_close(r);
}

/* While the control thread builds at an index, the lcore ignores that index. */
static void stale__while_the_next_is_built(void **state)
{
	struct worker_rig *r = open_rig(1);
	struct sw_wtensor built;

	close_group(r, 0);
	went(r);
	built = r->w.tensors[0];
	for (uint32_t id = 0; id < 2 * NEXT; id += NEXT) {
		r->w.tensors[0].id = id; /* not built yet */
		assert_int_equal(call(r, id, 1), SW_EINVAL);
		sw_worker_close_group(&r->w, id, 0);
		assert_null(sw_worker_why(&r->w, id, (char[SW_TEXT_MAX]){0}));
	}
	r->w.tensors[0] = built;
	sw_worker_free(&r->w, 0);
	wrig_close(r);
}

/* A coordinator must never assign a retired key again. */
static void gone__key_given_twice(void **state)
{
	struct worker_rig *r = open_rig(1);

	close_group(r, 0);
	went(r);
	sw_worker_free(&r->w, 0);
	declare(r, "g#2/a", NEXT);
	declared(r, 0, 0);
	assert_contains(wrig_events(r), "failed SW_EPROTO");
	wrig_close(r);
}

/* A server gets CLOSE only when it has all streams of the group. Otherwise it
 * could free the group and never close the last stream. */
static void gone__when_a_stream_is_not_declared_there(void **state)
{
	struct worker_rig *r = open_rig(2);

	assert_int_equal(declare(r, "g/b", 0), 0);
	wrig_tx(r);
	r->s[0].next_key = 1;
	peer_declared(&r->s[0]); /* but not to the other server */
	assert_string_equal(close_group(r, 0), "s1 DECLARE g/b; s0 KEEPALIVE");
	r->s[1].next_key = 1;
	peer_declared(&r->s[1]);
	sw_worker_take(&r->w);
	assert_string_equal(wrig_tx(r), "s1 CLOSE k0 ");
	peer_keepalive(&r->s[1]);
	sw_worker_take(&r->w);
	assert_string_equal(wrig_tx(r), "s0 CLOSE k0 ");
	wrig_close(r);
}

/* The coordinator refuses a group's only stream and names the group's key. The
 * worker still sends CLOSE, because the coordinator keeps the group for members
 * that open it later. */
static void gone__when_it_was_refused(void **state)
{
	struct worker_rig *r = open_rig(2);
	struct sw_fault why = {.err = SW_EREFUSED, .key = 9, .text = "no room"};
	uint8_t bytes[sizeof(struct sw_declared) + 8 + sizeof(why)] = {1, 0, 1};

	assert_int_equal(declare(r, "h/a", 0), 0);
	wrig_tx(r);
	memset(bytes + sizeof(struct sw_declared), 255, 4);
	memcpy(bytes + sizeof(bytes) - sizeof(why), &why, sizeof(why));
	peer_say(&r->s[0], SW_DECLARED, bytes, sizeof(bytes));
	assert_int_equal(sw_worker_death(&r->w, 1), SW_EREFUSED);
	wrig_tx(r);
	assert_string_equal(close_group(r, 1), "s0 CLOSE k9 ");
	assert_string_equal(went(r), "gone t1; ");
	sw_worker_free(&r->w, 1);
	wrig_close(r);
}

/* A server that cannot admit a whole batch yet answers for its first part. */
static void gone__answer_of_a_part(void **state)
{
	struct worker_rig *r = open_rig(2);
	struct sw_worker_tensor two[2] = {{.name = "h/a"}, {.name = "h/b"}};

	for (uint32_t i = 0; i < 2; i++) {
		two[i].window_log2 = LOG2;
		two[i].ranks = all_ranks;
		two[i].n_ranks = 3;
	}
	assert_int_equal(sw_worker_declare(&r->w, two, 2), 0);
	declared(r, 0, 1);
	wrig_tx(r);
	r->s[1].n_items = 1;
	r->s[1].next_key = 1;
	peer_declared(&r->s[1]);
	assert_string_equal(wrig_events(r), "");
	assert_contains(wrig_tx(r), "s1 DECLARE h/b");
	r->s[1].n_items = 1;
	peer_declared(&r->s[1]);
	assert_string_equal(wrig_events(r), "declared");
	wrig_close(r);
}

/* An index is reused only when it is free. */
static void again__of_what_is_there(void **state)
{
	struct worker_rig *r = open_rig(1);

	assert_int_equal(declare(r, "h/a", NEXT), SW_EINVAL);
	assert_int_equal(declare(r, "h/a", NEXT + 1), SW_EINVAL);
	assert_int_equal(declare(r, "h/a", 0), 0);
	assert_int_equal(r->w.tensors[1].index, 1);
	wrig_close(r);
}

/* An id is never reused, even after its generations are used up. */
static void again__with_a_later_id(void **state)
{
	struct worker_rig *r = open_rig(1);

	close_group(r, 0);
	went(r);
	sw_worker_free(&r->w, 0);
	r->w.tensors[0].id = 5 * NEXT;
	assert_int_equal(declare(r, "h/a", 5 * NEXT), SW_EINVAL);
	assert_int_equal(declare(r, "h/a", 4 * NEXT), SW_EINVAL);
	assert_int_equal(declare(r, "", 6 * NEXT), SW_EINVAL);
	assert_int_equal(sw_id_next(5 * NEXT), 6 * NEXT);
	assert_int_equal(sw_id_next(UINT32_MAX), 0);
	assert_int_equal(sw_id_next(0u - NEXT), 0);
	assert_int_equal(declare(r, "h/a", 6 * NEXT), 0);
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gone__when_all_servers_know),
		cmocka_unit_test(gone__with_work_open),
		cmocka_unit_test(gone__late_frames),
		cmocka_unit_test(gone__late_fates),
		cmocka_unit_test(gone__before_its_index_is_given),
		cmocka_unit_test(gone__key_given_twice),
		cmocka_unit_test(gone__when_a_stream_is_not_declared_there),
		cmocka_unit_test(gone__when_it_was_refused),
		cmocka_unit_test(gone__answer_of_a_part),
		cmocka_unit_test(stale__names_nothing),
		cmocka_unit_test(stale__while_the_next_is_built),
		cmocka_unit_test(again__of_what_is_there),
		cmocka_unit_test(again__with_a_later_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
