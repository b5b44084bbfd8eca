/* unit_bounded.c - the work of each call is bounded at any size.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The tests count instructions (test/support/steps.h) with a tensor of the
 * maximum number of chunks, and with the maximum number of tensors, streams and
 * collectives.
 */
#include "test/support/server_rig.h"
#include "test/support/steps.h"
#include "test/support/worker_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/wire/coll.h"
#include "engine/worker/faults.h"
#include "engine/worker/stall.h"
#include "engine/worker/stream.h"
#include "engine/worker/tuning.h"
#include "engine/worker/link.h"

/* Maximum number of instructions of one call. A call needs about 26,000; a walk
 * over all tensors takes 400,000, and one over the chunks of the large tensor
 * takes millions. */
enum { STEPS_MAX = 50000 };

enum {
	N_LOCAL = 2,
	N_STREAMS = 300,
	N_COUNTED = 3, /* turns that are counted, because counting is slow */
};

#define FEW_OF(most, what, ...)                     \
	do {                                        \
		steps_begin(most);                  \
		__VA_ARGS__;                        \
		check_few(steps_end(), most, what); \
	} while (0)
#define FEW(what, ...) FEW_OF(STEPS_MAX, what, __VA_ARGS__)

static void check_few(uint64_t n, uint32_t most, const char *what)
{
	if (getenv("STEPS"))
		print_message("# %s: %llu\n", what, (unsigned long long)n);
	if (n > most)
		fail_msg("%s: more than %u instructions", what, most);
}

static void *map(void *ctx, uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)ctx;
	return mem == MAP_FAILED ? NULL : mem;
}

static void unmap(void *ctx, void *mem, uint64_t bytes)
{
	(void)ctx;
	munmap(mem, bytes);
}

/* --- a worker --- */

static uint32_t n_done[SW_TENSORS], n_all;
static int last_err;

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	(void)ctx;
	(void)local;
	(void)cookie;
	(void)weight;
	n_done[tensor]++;
	n_all++;
	last_err = err;
}

static struct worker_rig *open_servers(uint32_t n)
{
	static struct worker_rig rig, *r = &rig;

	wrig_open_local(r, 0, 2, n, N_LOCAL);
	r->w.events.done = on_done;
	r->env.env.mem_get = map;
	r->env.env.mem_put = unmap;
	r->s[0].n_local = N_LOCAL;
	memset(n_done, 0, sizeof(n_done));
	n_all = 0;
	wrig_run(r);
	return r;
}

static struct worker_rig *open_rig(void)
{
	return open_servers(1);
}

static void declare(
	struct worker_rig *r, struct sw_worker_tensor *list, uint32_t n)
{
	static char names[SW_TENSORS][16];
	uint32_t n_batches = 0;

	for (uint32_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "g%u/t", i);
		list[i].name = names[i];
	}
	assert_int_equal(sw_worker_build(&r->w, list, n), 0);
	assert_int_equal(r->w.n_tensors, 0);
	FEW_OF(2 * STEPS_MAX, "declare",
		assert_int_equal(sw_worker_add(&r->w), 0));
	while (r->w.n_admitted < n) {
		wrig_tx(r);
		if (n_batches++ < N_COUNTED) /* a batch has 256 parts */
			FEW_OF(4 * STEPS_MAX, "keys", peer_declared(&r->s[0]));
		else
			peer_declared(&r->s[0]);
		for (uint32_t i = 1; i < r->n_servers; i++)
			peer_declared(&r->s[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t l = 0; l < N_LOCAL; l++)
			sw_worker_source(&r->w, i, l, r->data);
	wrig_tx(r);
}

static void declare_tensors(struct worker_rig *r, uint32_t n)
{
	static struct sw_worker_tensor list[SW_TENSORS];

	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct sw_worker_tensor){
			.n_elems = 1, .dtype = SW_I32, .base = r->data};
	declare(r, list, n);
}

static void worker__keys_of_many_links(void **state)
{
	struct worker_rig *r = open_servers(WRIG_SERVERS);

	(void)state;
	declare_tensors(r, N_STREAMS);
	wrig_close(r);
}

static void begin(struct worker_rig *r, uint32_t tensor)
{
	struct sw_worker_round round = {.tensor = tensor};

	for (; round.local < N_LOCAL; round.local++)
		assert_int_equal(sw_worker_begin(&r->w, &round), 0);
}

/* Check that every open call ends once, in short turns. */
static void take_all(struct worker_rig *r, uint32_t n, int err)
{
	uint32_t n_turns = 0;

	for (; n_all < n && n_turns < n; n_turns++)
		if (n_turns < N_COUNTED)
			FEW("turn", sw_worker_take(&r->w));
		else
			sw_worker_take(&r->w);
	assert_int_equal(n_all, n);
	assert_int_equal(last_err, err);
	assert_int_equal(r->w.n_open, 0);
}

static void worker__tensors_end(void **state)
{
	struct worker_rig *r = open_rig();

	(void)state;
	declare_tensors(r, SW_TENSORS);
	for (uint32_t i = 0; i + 1 < SW_TENSORS; i++)
		begin(r, i);
	FEW("submit", begin(r, SW_TENSORS - 1));
	FEW("look for stalls", wrig_tick(r, 200 * SW_MS));
	FEW("fail",
		sw_worker_fail(&r->w, SW_ESERVER, SW_KEY_NONE, "it is silent"));
	take_all(r, N_LOCAL * SW_TENSORS, SW_ESERVER);
	for (uint32_t i = 0; i < SW_TENSORS; i++)
		assert_int_equal(n_done[i], N_LOCAL);
	wrig_close(r);
}

/* All tensors wait for credit; then the policy changes, and credit suffices for
 * all. */
static void worker__goes_over_to_other_tuning(void **state)
{
	struct worker_rig *r = open_rig();

	(void)state;
	declare_tensors(r, SW_TENSORS);
	assert_int_equal(
		sw_tuning_use(&r->w, &sw_policies[SW_POLICY_P3], 0, 0), 0);
	for (uint32_t i = 0; i < SW_TENSORS; i++)
		begin(r, i);
	FEW("by readiness",
		sw_sched_set(&r->w.sched, &sw_policies[SW_POLICY_FIFO], 0, 0));
	FEW("by priority",
		sw_sched_set(&r->w.sched, &sw_policies[SW_POLICY_P3], 0, 0));
	FEW_OF(8 * STEPS_MAX, "with more credit",
		sw_tuning_use(&r->w, &sw_policies[SW_POLICY_FIFO], 0, 0));
	assert_int_equal(
		r->w.sched.n_heap, SW_TENSORS - 1 - SW_SCHED_RUN_PARTS);
	sw_worker_fail(&r->w, SW_ESERVER, SW_KEY_NONE, "it is silent");
	take_all(r, N_LOCAL * SW_TENSORS, SW_ESERVER);
	wrig_close(r);
}

/* All chunks were pushed and acknowledged, but another member is late. */
static void worker__kill_what_is_late(void **state)
{
	static const uint64_t n_elems = (uint64_t)SW_BITMAP_MAX * PEER_CHUNK;
	struct worker_rig *r = open_rig();
	struct sw_worker_tensor t = {.n_elems = n_elems, .dtype = SW_I32};
	struct sw_link *l = &r->w.links[0];

	(void)state;
	t.base = map(NULL, n_elems * 4);
	declare(r, &t, 1);
	begin(r, 0);
	for (enum sw_todo_set s = SW_TODO; s < SW_N_TODO_SETS; s++) {
		sw_bitmap_add_run(
			&r->w.tensors[0].parts[0].sets[s], 0, SW_BITMAP_MAX);
		sw_bitmap_add(&l->sets[s], sw_orders_number(&r->w.orders, 0));
	}
	l->n_folded = r->w.tensors[0].parts[0].n_folded = SW_BITMAP_MAX;
	FEW("search", r->w.engine.tick(&r->w.engine, r->w.now_ns + SW_S, 0));
	assert_in_range(l->query_local, 1, SW_BITMAP_MAX - 1);
	FEW("kill", sw_tensor_kill(&r->w, &r->w.tensors[0], 1,
			    &(struct sw_fault){.err = SW_EMISMATCH}));
	take_all(r, N_LOCAL, SW_EMISMATCH);
	for (enum sw_todo_set s = SW_TODO; s < SW_N_TODO_SETS; s++)
		assert_true(sw_bitmap_is_empty(&l->sets[s]));
	assert_int_equal(l->n_todo, 0);
	assert_int_equal(l->n_folded, 0);
	wrig_close(r);
	unmap(NULL, t.base, n_elems * 4);
}

/* --- streams --- */

static void declare_streams(struct worker_rig *r, uint32_t n)
{
	static struct sw_worker_tensor list[N_STREAMS];
	static const uint16_t ranks[] = {0, 1, 2, 3};

	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct sw_worker_tensor){
			.window_log2 = 4, .ranks = ranks, .n_ranks = 4};
	declare(r, list, n);
}

static void call(struct worker_rig *r, uint32_t stream)
{
	struct sw_worker_coll ask = {.stream = stream,
		.kind = SW_ALL_REDUCE,
		.dtype = SW_I32,
		.n_elems = 1,
		.from = r->data,
		.to = r->data,
		.from_bytes = sizeof(r->data),
		.to_bytes = sizeof(r->data)};

	for (ask.local = 0; ask.local < N_LOCAL; ask.local++)
		assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
}

static struct worker_rig *open_streams(void)
{
	struct worker_rig *r = open_rig();

	declare_streams(r, N_STREAMS);
	for (uint32_t i = 0; i < N_STREAMS * SW_COLLS; i++)
		call(r, i % N_STREAMS);
	return r;
}

static void worker__streams_end(void **state)
{
	struct worker_rig *r = open_streams();
	uint32_t at = 0;

	(void)state;
	FEW("look for stalls", wrig_tick(r, 200 * SW_MS));
	FEW("and when they stand still", wrig_tick(r, 2 * SW_S));
	FEW("memory that is free",
		assert_false(sw_worker_uses(&r->w, 0, &r->w, 1, &at)));
	while (at < SW_TENSORS)
		assert_false(sw_worker_uses(&r->w, 0, &r->w, 1, &at));
	FEW("leave", sw_worker_leave(&r->w, NULL));
	take_all(r, N_LOCAL * N_STREAMS * SW_COLLS, SW_ECLOSED);
	wrig_close(r);
}

static void worker__streams_die(void **state)
{
	struct worker_rig *r = open_streams();

	(void)state;
	for (uint32_t i = 0; i + 1 < N_STREAMS; i++)
		sw_worker_abort(&r->w, i, 0, SW_EABORTED, "rank 0 aborts");
	FEW("abort", sw_worker_abort(&r->w, N_STREAMS - 1, 0, SW_EABORTED,
			     "rank 0 aborts"));
	take_all(r, N_LOCAL * N_STREAMS * SW_COLLS, SW_EABORTED);
	wrig_close(r);
}

/* All ranks of the largest job except one wait for that one rank, in all
 * streams of their group and in a tensor. */
static void worker__names_who_is_missing(void **state)
{
	static uint16_t ranks[SW_GROUP_RANKS];
	static struct worker_rig rig, *r = &rig;
	struct sw_worker_tensor list[SW_GROUP_STREAMS];
	char names[SW_GROUP_STREAMS][16], text[SW_MISSING_TEXT];

	(void)state;
	wrig_open_local(r, 0, SW_MAX_MEMBERS, 1, SW_LOCAL_RANKS);
	r->s[0].n_local = SW_LOCAL_RANKS;
	wrig_run(r);
	for (uint32_t i = 0; i < SW_GROUP_RANKS; i++)
		ranks[i] = (uint16_t)i;
	for (uint32_t i = 0; i < SW_GROUP_STREAMS; i++) {
		snprintf(names[i], sizeof(names[i]), "g/%u", i);
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.window_log2 = 4,
			.ranks = ranks,
			.n_ranks = SW_GROUP_RANKS};
	}
	assert_int_equal(sw_worker_declare(&r->w, list, SW_GROUP_STREAMS), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	for (uint32_t i = 0; i < SW_GROUP_STREAMS; i++) {
		struct sw_worker_coll ask = {.stream = i,
			.kind = SW_ALL_REDUCE,
			.dtype = SW_I32,
			.n_elems = 1,
			.from = r->data,
			.to = r->data,
			.from_bytes = sizeof(r->data),
			.to_bytes = sizeof(r->data)};

		assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
		r->w.tensors[i].awaited = ~0ULL;
	}
	FEW_OF(2 * STEPS_MAX, "who is missing",
		sw_missing_text(
			&r->w, &r->w.tensors[0], true, sizeof(text), text));
	assert_string_equal(text, "ranks 1-65471 of 65472");
	FEW_OF(2 * STEPS_MAX, "of one stream",
		sw_missing_text(
			&r->w, &r->w.tensors[0], false, sizeof(text), text));
	sw_worker_leave(&r->w, NULL);
	while (sw_worker_take(&r->w))
		;
	wrig_close(r);
}

/* A group has a limited number of streams, so work on all of them is
 * bounded. */
static void worker__streams_of_a_group(void **state)
{
	static const uint16_t ranks[] = {0, 1, 2, 3};
	struct sw_worker_tensor list[SW_GROUP_STREAMS + 1];
	char names[SW_GROUP_STREAMS + 1][16];
	struct worker_rig *r = open_rig();

	(void)state;
	for (uint32_t i = 0; i <= SW_GROUP_STREAMS; i++) {
		snprintf(names[i], sizeof(names[i]), "g/%u", i);
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.window_log2 = 4,
			.ranks = ranks,
			.n_ranks = 4};
	}
	assert_int_equal(
		sw_worker_declare(&r->w, list, SW_GROUP_STREAMS + 1), 0);
	for (uint32_t i = 0; i < SW_GROUP_STREAMS; i++)
		assert_ptr_equal(r->w.tensors[i].life, r->w.tensors[0].life);
	assert_ptr_equal(r->w.tensors[SW_GROUP_STREAMS].life,
		&r->w.tensors[SW_GROUP_STREAMS].own_life);
	wrig_close(r);
}

/* --- a server --- */

static struct server_rig *open_server(void)
{
	static struct server_rig rig, *r = &rig;

	server_rig_open(r, 2, UINT64_MAX / 2);
	r->env.env.mem_get = map;
	r->env.env.mem_put = unmap;
	for (uint32_t i = 0; i < 2; i++)
		rig_join(r, i);
	return r;
}

static bool declare_window(struct server_rig *r, const char *name, uint8_t log2)
{
	return peer_declare(&r->w[0],
		(struct sw_declare_item){
			.n_elems = 3, .dtype = log2, .mode = SW_MODE_STREAM},
		name);
}

static bool declare_stream(struct server_rig *r, const char *name)
{
	return declare_window(r, name, 4);
}

static uint32_t tick_until(
	struct server_rig *r, bool (*is_over)(void *), struct sw_job *job)
{
	uint32_t n = 0;

	for (; !is_over(job) && n < SW_MAX_TENSORS; n++)
		if (n < N_COUNTED)
			FEW("tick", rig_tick(r, 0));
		else
			rig_tick(r, 0);
	assert_true(is_over(job));
	return n;
}

static bool is_walked(void *job)
{
	return ((struct sw_job *)job)->close_at == SW_KEY_NONE;
}

static bool is_closed(void *job)
{
	return !((struct sw_job *)job)->is_closing;
}

static void server__members_leave(void **state)
{
	struct server_rig *r = open_server();
	struct sw_job *job = &r->srv->jobs[0];
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < SW_MAX_TENSORS; i++) {
		snprintf(name, sizeof(name), "g%u/t", i);
		assert_true(declare_stream(r, name));
	}
	FEW("leave", peer_leave(&r->w[1], SW_EPEER, "it died"));
	assert_true(tick_until(r, is_walked, job) > 1);
	FEW("the last leaves", peer_leave(&r->w[0], 0, ""));
	assert_null(sw_job_find(r->srv, "job"));
	assert_true(tick_until(r, is_closed, job) > 1);
	assert_int_equal(r->srv->quota.used_bytes, 0);
	server_rig_close(r);
}

/* Let member 0, on the server's own node, lend @n chunks of a huge tensor. */
static void lend(struct server_rig *r, uint32_t from, uint32_t n)
{
	static int32_t elems[PEER_CHUNK];
	struct sw_shard *sh = &r->srv->jobs[0].shard;
	struct sw_rx_frame f = {
		.payload = (const uint8_t *)elems, .is_lent = true};
	struct sw_header h = {.type = SW_PUSH,
		.dtype = SW_I32,
		.round = 1,
		.weight = 1,
		.payload_len = sizeof(elems)};

	sh->no_crc = 1;
	for (uint32_t i = 0; i < n; i++) {
		h.chunk = from + i;
		assert_int_equal(sw_shard_push(sh, 0, &h, &f, 1).n_held, 1);
	}
}

static void server__copies_what_is_lent(void **state)
{
	struct server_rig *r = open_server();
	struct sw_shard *sh = &r->srv->jobs[0].shard;
	bool is_done = false;

	(void)state;
	rig_declare(
		r, 0, "huge", SW_I32, (uint64_t)SW_BITMAP_MAX * PEER_CHUNK, 0);
	lend(r, 0, 60);
	lend(r, SW_BITMAP_MAX - 60, 60);
	for (uint32_t n = 0; n < N_COUNTED; n++)
		FEW("copy", assert_false(sw_server_copy_lent(r->srv)));
	assert_in_range(sh->n_lent, 61, 119);
	for (uint32_t n = 0; n < SW_BITMAP_MAX && !is_done; n++)
		is_done = sw_server_copy_lent(r->srv);
	assert_int_equal(sh->n_lent, 0);
	assert_true(sw_server_copy_lent(r->srv));
	server_rig_close(r);
}

static void server__streams_of_a_group(void **state)
{
	struct server_rig *r = open_server();
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < SW_GROUP_STREAMS; i++) {
		snprintf(name, sizeof(name), "g/%u", i);
		assert_true(declare_stream(r, name));
	}
	assert_true(declare_stream(r, "g2/0"));
	assert_true(declare_stream(r, "g/16")); /* refused */
	assert_non_null(strstr(r->text, "its group has 16 already"));
	server_rig_close(r);
}

/* Member 0 waits for collective 1 on the first stream of many groups. Member 1
 * has called collective 1 of one group as another kind; the server finds it. */
static void server__calls_of_many_groups(void **state)
{
	enum { N_GROUPS = SW_QUERY_MAX / 2, LAST = N_GROUPS - 1 };
	struct server_rig *r = open_server();
	struct sw_query queries[N_GROUPS];
	struct sw_header h = peer_push_header(
		LAST * SW_GROUP_STREAMS + SW_GROUP_STREAMS - 1, 1, 1);
	uint32_t n = 0;
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < N_GROUPS * SW_GROUP_STREAMS; i++) {
		snprintf(name, sizeof(name), "g%u/%u", i / SW_GROUP_STREAMS,
			i % SW_GROUP_STREAMS);
		assert_true(declare_window(r, name, 8));
	}
	for (uint32_t i = 0; i < N_GROUPS; i++)
		queries[i] = (struct sw_query){
			.key = i * SW_GROUP_STREAMS, .chunk = 1};
	FEW_OF(4 * STEPS_MAX, "calls",
		peer_say(&r->w[0], SW_QUERY, queries, sizeof(queries)));
	assert_null(strstr(rig_tx(r), "END"));
	h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
	h.chunk = h.weight = 1;
	h.payload_len = 4;
	peer_fill(&r->w[1], h, 1);
	do
		peer_say(&r->w[0], SW_QUERY, queries, sizeof(queries));
	while (!strstr(rig_tx(r), "END") && n++ < 1000);
	assert_in_range(n, 0, 999);
	server_rig_close(r);
}

/* A member that has pushed the last chunk of each window closes its group
 * twice, and the other member sends a QUERY for it. Neither frame makes the
 * server look at all slots. */
static void server__large_windows(void **state)
{
	enum { LAST = 1 << SW_WINDOW_MAX_LOG2 };
	struct server_rig *r = open_server();
	struct sw_query queries[SW_QUERY_MAX];
	struct sw_fault fault = {.key = 0};
	struct sw_header h = peer_push_header(0, LAST, 1);
	char name[16];

	(void)state;
	h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
	h.chunk = h.weight = 1;
	h.payload_len = 4;
	for (uint32_t i = 0; i < SW_GROUP_STREAMS; i++) {
		snprintf(name, sizeof(name), "g/%u", i);
		assert_true(declare_window(r, name, SW_WINDOW_MAX_LOG2));
		h.key = i;
		peer_fill(&r->w[1], h, 1);
	}
	for (uint32_t i = 0; i < SW_QUERY_MAX; i++)
		queries[i] = (struct sw_query){
			.key = i % SW_GROUP_STREAMS, .chunk = 2};
	FEW("calls", peer_say(&r->w[0], SW_QUERY, queries, sizeof(queries)));
	rig_tx(r);
	for (uint32_t i = 0; i < N_COUNTED; i++)
		FEW("close",
			peer_say(&r->w[1], SW_CLOSE, &fault, sizeof(fault)));
	assert_int_equal(r->srv->jobs[0].shard.tensors[0].own.closed, 2);
	assert_int_equal(r->srv->jobs[0].shard.tensors[0].own.from, 0);
	FEW_OF(2 * STEPS_MAX, "the last closes",
		peer_say(&r->w[0], SW_CLOSE, &fault, sizeof(fault)));
	server_rig_close(r);
}

/* One DECLARE in the largest job has as many tensors as fit into a frame. */
static void server__declares_many(void **state)
{
	static struct server_rig rig, *r = &rig;
	uint8_t frame[SW_PAYLOAD_MAX] = {0};
	uint32_t at = sizeof(struct sw_declare_head), n = 0;

	(void)state;
	server_rig_open(r, SW_MAX_MEMBERS, UINT64_MAX / 2);
	for (uint32_t i = 0; i < SW_MAX_MEMBERS; i++)
		rig_join(r, i);
	for (; at + sizeof(struct sw_declare_item) + 4 <= SW_PAYLOAD_MAX; n++) {
		struct sw_declare_item item = {.n_elems = 1,
			.key = SW_KEY_NONE,
			.priority = SW_MAX_TENSORS - n,
			.dtype = SW_I32,
			.name_len = 4};

		memcpy(frame + at, &item, sizeof(item));
		snprintf((char *)frame + at + sizeof(item), 5, "t%03u", n);
		at += (uint32_t)sizeof(item) + 4;
	}
	memcpy(frame,
		&(struct sw_declare_head){
			.n = (uint16_t)n, .payload = PEER_PAYLOAD},
		sizeof(struct sw_declare_head));
	FEW_OF(6 * STEPS_MAX, "declare many",
		peer_say(&r->w[0], SW_DECLARE, frame, at));
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker__keys_of_many_links),
		cmocka_unit_test(worker__tensors_end),
		cmocka_unit_test(worker__goes_over_to_other_tuning),
		cmocka_unit_test(worker__kill_what_is_late),
		cmocka_unit_test(worker__streams_end),
		cmocka_unit_test(worker__streams_die),
		cmocka_unit_test(worker__names_who_is_missing),
		cmocka_unit_test(worker__streams_of_a_group),
		cmocka_unit_test(server__members_leave),
		cmocka_unit_test(server__copies_what_is_lent),
		cmocka_unit_test(server__streams_of_a_group),
		cmocka_unit_test(server__calls_of_many_groups),
		cmocka_unit_test(server__large_windows),
		cmocka_unit_test(server__declares_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
