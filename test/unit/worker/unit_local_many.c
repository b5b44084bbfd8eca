/* unit_local_many.c - the maximum number of local ranks in one worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stall.h"
#include "test/unit/worker/coll_rig.h"

#include "engine/base/bytes.h"

enum { LOCAL = SW_LOCAL_RANKS, ELEMS = PEER_CHUNK, LATE = 70 };

static int32_t from[LOCAL][ELEMS], to[LOCAL][ELEMS], all[LOCAL * ELEMS];
static uint32_t n_done;

static void count(struct worker_rig *r, uint32_t tensor)
{
	n_done++;
}

/* Open member 0 of 2, each with LOCAL ranks; rank l gives l + 1. */
static struct worker_rig *open_many(void)
{
	static struct worker_rig r;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].grant = 1 << 19;
	r.s[0].n_local = LOCAL;
	r.on_done = count;
	n_done = 0;
	wrig_run(&r);
	memset(to, 0, sizeof(to));
	for (int32_t l = 0; l < LOCAL; l++)
		for (uint32_t i = 0; i < ELEMS; i++)
			from[l][i] = l + 1;
	return &r;
}

static struct worker_rig *open_tensor(void)
{
	struct worker_rig *r = open_many();

	wrig_declare(r, "a", ELEMS, 0);
	for (uint32_t l = 0; l < LOCAL; l++)
		sw_worker_source(&r->w, 0, l, from[l]);
	return r;
}

/* Open "s" for every @step-th of the job's first @n ranks. */
static struct worker_rig *open_group(uint32_t n, uint32_t step)
{
	static uint16_t ranks[2 * LOCAL];
	struct sw_worker_tensor d = {
		.name = "s/x", .window_log2 = LOG2, .ranks = ranks};
	struct worker_rig *r = open_many();

	for (uint32_t i = 0; i < n; i += step)
		ranks[d.n_ranks++] = (uint16_t)i;
	assert_int_equal(sw_worker_declare(&r->w, &d, 1), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "declared");
	return r;
}

static int ask(struct worker_rig *r, uint32_t local)
{
	return sw_worker_begin(
		&r->w, &(struct sw_worker_round){.step = 1, .local = local});
}

static int call(struct worker_rig *r, uint32_t local, enum sw_coll_kind kind)
{
	return sw_worker_coll(&r->w,
		&(struct sw_worker_coll){.local = local,
			.kind = kind,
			.dtype = SW_I32,
			.n_elems = ELEMS,
			.from = kind == SW_REDUCE_SCATTER ? all : from[local],
			.to = to[local],
			.from_bytes = kind == SW_REDUCE_SCATTER
					      ? sizeof(all)
					      : sizeof(from[local]),
			.to_bytes = sizeof(to[local])});
}

static int32_t pushed(const struct worker_rig *r)
{
	return (int32_t)sw_load32(r->last[SW_PUSH].bytes + SW_HEAD_BYTES);
}

static void round__of_all(void **state)
{
	struct worker_rig *r = open_tensor();

	for (uint32_t l = 0; l < LOCAL; l++) {
		assert_int_equal(n_pushes(r), 0);
		assert_int_equal(ask(r, l), 0);
		assert_int_equal(n_done, 0);
		if (l + 1 < LOCAL)
			assert_int_equal(ask(r, l), SW_EBUSY);
	}
	assert_int_equal(ask(r, LOCAL), SW_EINVAL);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(pushed(r), LOCAL * (LOCAL + 1) / 2);
	assert_int_equal(r->last[SW_PUSH].h.weight, LOCAL);
	peer_result(&r->s[0], 0, 1, 0, 5);
	assert_int_equal(n_done, LOCAL);
	assert_int_equal(ask(r, LOCAL - 1), 0); /* the next round */
	wrig_close(r);
}

/* The text names the missing ranks as runs. */
static void round__names_who_is_missing(void **state)
{
	struct worker_rig *r = open_tensor();
	char text[SW_MISSING_TEXT];

	for (uint32_t l = 0; l < LOCAL; l++)
		if (l != LATE)
			ask(r, l);
	assert_string_equal(sw_missing_text(&r->w, &r->w.tensors[0], false,
				    sizeof(text), text),
		"rank 70 of 2046");
	assert_int_equal(ask(r, LATE), 0);
	assert_string_equal(sw_missing_text(&r->w, &r->w.tensors[0], false,
				    sizeof(text), text),
		"a server");
	wrig_close(r);
	r = open_tensor();
	for (uint32_t l = LATE; l < LOCAL - 1; l++)
		ask(r, l);
	assert_string_equal(sw_missing_text(&r->w, &r->w.tensors[0], false,
				    sizeof(text), text),
		"ranks 0-69, 1022 of 2046");
	wrig_close(r);
}

static void round__one_has_left(void **state)
{
	struct worker_rig *r = open_tensor();

	for (uint32_t l = 0; l < LOCAL; l++)
		ask(r, l);
	sw_worker_local_left(&r->w, 900); /* no contribution is needed */
	wrig_tx(r);
	peer_result(&r->s[0], 0, 1, 0, 5);
	assert_int_equal(n_done, LOCAL);
	assert_int_equal(ask(r, 3), 0);
	assert_string_equal(
		sw_fault_text(&r->w.fault, false, "a", (char[SW_TEXT_MAX]){0}),
		"rank 900 (node node) left; tensor a cannot complete");
	wrig_close(r);
}

static void coll__of_all(void **state)
{
	struct worker_rig *r = open_group(2 * LOCAL, 1);
	struct sw_header h = result_of(SW_ALL_REDUCE, 1, 1, 1);

	for (uint32_t l = LOCAL; l-- > 0;)
		assert_int_equal(call(r, l, SW_ALL_REDUCE), 0);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(pushed(r), LOCAL * (LOCAL + 1) / 2);
	assert_int_equal(r->last[SW_PUSH].h.weight, LOCAL);
	h.payload_len = 4 * ELEMS;
	h.weight = 2 * LOCAL;
	peer_fill(&r->s[0], h, 9);
	assert_int_equal(n_done, LOCAL);
	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(to[l][ELEMS - 1], 9);
	wrig_close(r);
}

/* In a group of local ranks no server takes part. Ranks outside the group may
 * not call. */
static void coll__of_every_third_here(void **state)
{
	struct worker_rig *r = open_group(LOCAL, 3);
	int32_t sum = 0;

	for (uint32_t l = 0; l < LOCAL; l++) {
		assert_int_equal(
			call(r, l, SW_ALL_REDUCE), l % 3 ? SW_EINVAL : 0);
		sum += l % 3 ? 0 : from[l][0];
	}
	sw_worker_take(&r->w);
	assert_int_equal(n_done, LOCAL / 3);
	assert_int_equal(to[0][0], sum);
	assert_int_equal(to[1][0], 0);
	assert_int_equal(to[1020][ELEMS - 1], sum);
	wrig_close(r);
}

/* Each of the 1,023 ranks gets its part. */
static void coll__in_parts(void **state)
{
	struct worker_rig *r = open_group(LOCAL, 1);

	for (int32_t i = 0; i < LOCAL * ELEMS; i++)
		all[i] = i;
	for (uint32_t l = 0; l < LOCAL; l++)
		assert_int_equal(call(r, l, SW_REDUCE_SCATTER), 0);
	while (sw_worker_take(&r->w))
		;
	assert_int_equal(n_done, LOCAL);
	for (int32_t l = 0; l < LOCAL; l++)
		assert_int_equal(to[l][1], LOCAL * (l * ELEMS + 1));
	wrig_close(r);
}

static void close__when_all_have(void **state)
{
	struct worker_rig *r = open_group(2 * LOCAL, 1);

	for (uint32_t l = 0; l < LOCAL; l++) {
		if (l != LATE)
			sw_worker_close_group(&r->w, 0, l);
		sw_worker_close_group(&r->w, 0, l ? 0 : 1); /* a second time */
	}
	assert_int_equal(call(r, 1022, SW_ALL_REDUCE), SW_ECLOSED);
	assert_false(r->w.tensors[0].life->is_closed);
	sw_worker_close_group(&r->w, 0, LATE);
	assert_true(r->w.tensors[0].life->is_closed);
	wrig_close(r);
}

static void open__one_more(void **state)
{
	static struct sw_worker w;
	struct sw_worker_server server = {.name = "s"};
	struct sw_worker_job job = {.job = "j",
		.node = "n",
		.n_members = 1,
		.n_local = LOCAL + 1,
		.servers = &server,
		.n_servers = 1};
	struct sw_port port = {0}, *ports = &port;

	assert_int_equal(
		sw_worker_open(&w, NULL, NULL, NULL, &job, &ports, 1, 0),
		SW_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round__of_all),
		cmocka_unit_test(round__names_who_is_missing),
		cmocka_unit_test(round__one_has_left),
		cmocka_unit_test(coll__of_all),
		cmocka_unit_test(coll__of_every_third_here),
		cmocka_unit_test(coll__in_parts),
		cmocka_unit_test(close__when_all_have),
		cmocka_unit_test(open__one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
