/* unit_admit_declare.c - how a server admits tensors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/alloc.h"
#include "test/support/server_rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUOTA = 64 << 20 };

/* Open a server that @n_members have joined, with no frame due. */
static struct server_rig *open_joined(uint16_t n_members, uint64_t quota_bytes)
{
	static struct server_rig r;

	server_rig_open(&r, n_members, quota_bytes);
	for (uint32_t i = 0; i < n_members; i++)
		rig_join(&r, i);
	return &r;
}

/* A DECLARE that a test assembles piece by piece, valid or not. */
struct batch {
	uint8_t bytes[SW_PAYLOAD_MAX];
	uint16_t len;
};

static void begin(struct batch *b, uint16_t n)
{
	struct sw_declare_head head = {.n = n, .payload = PEER_PAYLOAD};

	memcpy(b->bytes, &head, sizeof(head));
	b->len = sizeof(head);
}

static struct sw_declare_item item(uint64_t n_elems, uint16_t name_len)
{
	return (struct sw_declare_item){.n_elems = n_elems,
		.key = SW_KEY_NONE,
		.dtype = SW_I32,
		.name_len = name_len};
}

static void put(
	struct batch *b, const struct sw_declare_item *it, const char *name)
{
	memcpy(b->bytes + b->len, it, sizeof(*it));
	memcpy(b->bytes + b->len + sizeof(*it), name, strlen(name));
	b->len += (uint16_t)(sizeof(*it) + strlen(name));
}

static const char *send(struct server_rig *r, uint32_t i, struct batch *b)
{
	peer_say(&r->w[i], SW_DECLARE, b->bytes, b->len);
	return rig_tx(r);
}

static void declare__keys_in_order_of_first_sight(void **state)
{
	struct server_rig *r = open_joined(2, QUOTA);

	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 10, 5), "w0 DECLARED k0");
	assert_string_equal(
		rig_declare(r, 1, "b", SW_F16, 20, 1), "w1 DECLARED k1");
	assert_string_equal(
		rig_declare(r, 1, "a", SW_I32, 10, 5), "w1 DECLARED k0");
	assert_string_equal(
		rig_declare(r, 0, "b", SW_F16, 20, 1), "w0 DECLARED k1");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 2);
	assert_true(
		r->srv->quota.used_bytes == r->srv->jobs[0].shard.mem_bytes);
	server_rig_close(r);
}

static void declare__duplicate(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	uint64_t calls;

	rig_declare(r, 0, "a", SW_I32, 10, 0);
	calls = alloc_calls();
	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 10, 0), "w0 DECLARED k0");
	assert_true(alloc_calls() == calls);
	server_rig_close(r);
}

/* If a worker sends another DECLARE before the first one is answered, the
 * server acknowledges the second one without an answer. */
static void declare__before_the_answer(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);

	r->env.is_preparing = true;
	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 10, 0), "w0 KEEPALIVE");
	assert_string_equal(
		rig_declare(r, 0, "b", SW_I32, 10, 0), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_state, 1);
	r->env.is_preparing = false;
	rig_tick(r, r->srv->params.retry_min);
	assert_string_equal(rig_tx(r), "w0 DECLARED k0");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 1);
	server_rig_close(r);
}

/* If the job fails while a DECLARE is deferred, the server drops the
 * DECLARE. */
static void declare__aside_when_the_job_fails(void **state)
{
	struct server_rig *r = open_joined(2, QUOTA);

	r->env.is_preparing = true;
	rig_declare(r, 0, "a", SW_I32, 10, 0);
	peer_leave(&r->w[1], SW_EPEER, "it died");
	r->env.is_preparing = false;
	rig_tick(r, r->srv->params.retry_min);
	assert_null(strstr(rig_tx(r), "DECLARED"));
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	assert_true(rig_tick(r, 0) > r->now_ns);
	server_rig_close(r);
}

static void declare__before_all_have_joined(void **state)
{
	static struct server_rig r;

	server_rig_open(&r, 2, QUOTA);
	rig_join(&r, 0);
	assert_string_equal(
		rig_declare(&r, 0, "a", SW_I32, 10, 0), "w0 KEEPALIVE");
	assert_int_equal(r.srv->stats.rx_state, 1);
	server_rig_close(&r);
}

/* The head counts more tensors than the DECLARE has. */
static void declare__lying_count_high(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct sw_declare_item it = item(10, 1);
	struct batch b;
	uint64_t calls;

	calls = alloc_calls();
	begin(&b, 2);
	put(&b, &it, "a");
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	begin(&b, UINT16_MAX);
	put(&b, &it, "a");
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	begin(&b, SW_DECLARE_MAX);
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_length + r->srv->stats.rx_state, 3);
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	assert_true(alloc_calls() == calls);
	/* The worker may still send a valid DECLARE. */
	assert_string_equal(
		rig_declare(r, 0, "a", SW_I32, 10, 0), "w0 DECLARED k0");
	server_rig_close(r);
}

/* The head counts fewer tensors than the DECLARE has. */
static void declare__lying_count_low(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	begin(&b, 1);
	put(&b, &it, "a");
	put(&b, &it, "b");
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	begin(&b, 0);
	put(&b, &it, "a");
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	begin(&b, 0);
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_length + r->srv->stats.rx_state, 3);
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	server_rig_close(r);
}

static void declare__truncated_anywhere(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct sw_declare_item it = item(10, 5);
	struct batch b;
	uint16_t whole;

	begin(&b, 2);
	put(&b, &it, "first");
	put(&b, &it, "other");
	whole = b.len;
	for (b.len = 8; b.len < whole; b.len++)
		assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_length, whole - 8u);
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	b.len = whole;
	assert_string_equal(send(r, 0, &b), "w0 DECLARED k0 k1");
	server_rig_close(r);
}

static void declare__oversized_name(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	static const uint16_t lengths[] = {0, 128, 129, 1000, UINT16_MAX};
	struct sw_declare_item it;
	char name[2000];
	struct batch b;

	memset(name, 'n', sizeof(name));
	name[1000] = 0;
	for (size_t i = 0; i < SW_ARRAY_SIZE(lengths); i++) {
		begin(&b, 1);
		it = item(10, lengths[i]);
		put(&b, &it, name);
		assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	}
	assert_int_equal(r->srv->stats.rx_length, SW_ARRAY_SIZE(lengths));
	name[127] = 0;
	begin(&b, 1);
	it = item(10, 127);
	put(&b, &it, name);
	assert_string_equal(send(r, 0, &b), "w0 DECLARED k0");
	assert_int_equal(strlen(r->srv->jobs[0].shard.tensors[0].name), 127);
	server_rig_close(r);
}

static void declare__malformed_item(void **state)
{
	static const struct {
		uint64_t n_elems;
		uint8_t dtype, mode;
		const char *name;
	} rows[] = {{0, SW_I32, 0, "a"}, {UINT64_MAX, SW_I32, 0, "a"},
		{(16ULL << 30) + 1, SW_I32, 0, "a"},
		{(64ULL << 30) + 1, SW_U8, 0, "a"},
		{(8ULL << 30) + 1, SW_F64, 0, "a"}, {10, 7, 0, "a"},
		{10, SW_N_DTYPES, 0, "a"}, {10, 255, 0, "a"},
		{10, SW_I32, 3, "a"}, {10, SW_I32, 255, "a"},
		{10, SW_I32, 0, "a\n"}, {10, SW_I32, 0, "\x1b[2J"},
		{10, SW_I32, 0, "\x7f"}};
	struct server_rig *r = open_joined(1, QUOTA);

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		struct sw_declare_item it =
			item(rows[i].n_elems, (uint16_t)strlen(rows[i].name));
		struct batch b;

		it.dtype = rows[i].dtype;
		it.mode = rows[i].mode;
		begin(&b, 1);
		put(&b, &it, rows[i].name);
		assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
		assert_int_equal(r->srv->stats.rx_length, i + 1);
	}
	server_rig_close(r);
}

/* A name that contains a NUL could be read as two names. */
static void declare__nul_in_the_name(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct sw_declare_item it = item(10, 3);
	struct batch b;

	begin(&b, 1);
	put(&b, &it, "abc");
	b.bytes[b.len - 2] = 0;
	assert_string_equal(send(r, 0, &b), "w0 KEEPALIVE");
	assert_int_equal(r->srv->stats.rx_length, 1);
	server_rig_close(r);
}

/* A tensor may have more chunks than a set of chunks can hold, even if there is
 * memory for them. */
static void declare__more_chunks_than_can_be_counted(void **state)
{
	struct server_rig *r = open_joined(1, UINT64_MAX);

	assert_contains(rig_declare(r, 0, "huge", SW_U8, 64ULL << 30, 0),
		"w0 ERROR SW_EREFUSED tensor huge");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	server_rig_close(r);
}

static void declare__mismatch(void **state)
{
	struct server_rig *r = open_joined(2, QUOTA);

	rig_declare(r, 0, "a", SW_I32, 10, 0);
	assert_string_equal(rig_declare(r, 1, "a", SW_I32, 11, 0),
		"w1 DECLARED k-1 refused tensor k0: rank 1 declares 11 x "
		"i32, priority 0; rank 0 declared 10 x i32, priority 0; "
		"w0 END k0 r1 tensor k0: rank 1 declares 11 x i32, "
		"priority 0; rank 0 declared 10 x i32, priority 0; "
		"w1 END k0 r1 tensor k0: rank 1 declares 11 x i32, "
		"priority 0; rank 0 declared 10 x i32, priority 0");
	/* The tensor stays dead, also for the rank that declared it first. */
	assert_contains(rig_declare(r, 0, "a", SW_I32, 10, 0),
		"w0 DECLARED k-1 refused tensor k0: rank 1 declares 11");
	assert_contains(rig_declare(r, 1, "a", SW_I32, 10, 0),
		"w1 DECLARED k-1 refused tensor k0: rank 1 declares 11");
	/* The mismatch affects neither other tensors nor the job. */
	assert_string_equal(
		rig_declare(r, 1, "b", SW_I32, 10, 0), "w1 DECLARED k1");
	server_rig_close(r);
}

/* END is repeated until it is acknowledged, because member 0 may push only to
 * another server, and member 1 has no key to tell that server about. */
static void declare__mismatch_is_said_until_known(void **state)
{
	struct server_rig *r = open_joined(2, QUOTA);

	rig_declare(r, 0, "a", SW_I32, 10, 0);
	rig_declare(r, 1, "a", SW_I32, 11, 0);
	for (uint32_t i = 0; i < 2; i++) {
		rig_tick(r, r->srv->params.retry_max);
		assert_contains(rig_tx(r), "w0 END k0 r1 tensor k0");
	}
	peer_keepalive(&r->w[0]);
	peer_keepalive(&r->w[1]);
	rig_tick(r, r->srv->params.retry_max);
	assert_null(strstr(rig_tx(r), "END"));
	server_rig_close(r);
}

/* The server admits the items before the mismatch; the worker must declare the
 * items after it again. */
static void declare__mismatch_in_a_batch(void **state)
{
	struct server_rig *r = open_joined(2, QUOTA);
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	it.dtype = SW_I32;
	rig_declare(r, 0, "b", SW_I32, 10, 1);
	begin(&b, 3);
	put(&b, &it, "a");
	it.priority = 2;
	put(&b, &it, "b");
	put(&b, &it, "c");
	assert_contains(send(r, 1, &b), "w1 DECLARED k1 k-1 refused tensor "
					"k0: rank 1 declares 10 x i32");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 2);
	assert_true(
		r->srv->quota.used_bytes == r->srv->jobs[0].shard.mem_bytes);
	assert_string_equal(
		rig_declare(r, 1, "c", SW_I32, 10, 2), "w1 DECLARED k2");
	server_rig_close(r);
}

static void declare__mismatch_of_dtype_and_priority(void **state)
{
	struct server_rig *r = open_joined(3, QUOTA);

	rig_declare(r, 0, "a", SW_I32, 10, 0);
	assert_contains(rig_declare(r, 1, "a", SW_F32, 10, 0),
		"rank 1 declares 10 x f32");
	assert_contains(rig_declare(r, 2, "a", SW_I32, 10, 1),
		"w2 DECLARED k-1 refused tensor k0: rank 1 declares");
	server_rig_close(r);
}

static void declare__mismatch_of_mode(void **state)
{
	static struct server_rig rig;
	struct server_rig *r = &rig;
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	server_rig_open(r, 2, QUOTA);
	r->params.mode = SW_MODE_ASYNC;
	rig_join(r, 0);
	rig_join(r, 1);
	it.dtype = SW_I32;
	it.mode = SW_MODE_ASYNC;
	begin(&b, 1);
	put(&b, &it, "a");
	assert_string_equal(send(r, 0, &b), "w0 DECLARED k0");
	assert_contains(rig_declare(r, 1, "a", SW_I32, 10, 0),
		"rank 1 declares 10 x i32, priority 0; rank 0 declared 10 x "
		"i32, priority 0, async");
	server_rig_close(r);
}

static void declare__asynchronous_in_a_synchronous_job(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	it.dtype = SW_I32;
	it.mode = SW_MODE_ASYNC;
	begin(&b, 1);
	put(&b, &it, "a");
	assert_contains(send(r, 0, &b),
		"asynchronous tensor a: job job is synchronous ([job] mode)");
	server_rig_close(r);
}

/* If a batch has one name twice, the items are one tensor or mismatch each
 * other. */
static void declare__name_twice_in_a_batch(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	begin(&b, 2);
	put(&b, &it, "a");
	it.n_elems = 5000;
	put(&b, &it, "a");
	assert_contains(send(r, 0, &b),
		"w0 DECLARED k0 k-1 refused tensor k0: rank 0 declares 5000");
	assert_true(
		r->srv->quota.used_bytes == r->srv->jobs[0].shard.mem_bytes);
	server_rig_close(r);
}

/* The server admits either the whole batch or nothing. */
static void declare__quota_of_the_whole_batch(void **state)
{
	struct server_rig *r = open_joined(1, 1 << 20);
	struct sw_declare_item it = item(100000, 1);
	struct batch b;

	begin(&b, 2);
	put(&b, &it, "a");
	put(&b, &it, "b");
	assert_contains(send(r, 0, &b), "SW_EREFUSED quota");
	assert_int_equal(r->srv->jobs[0].shard.n_tensors, 0);
	assert_int_equal(r->srv->quota.used_bytes, 0);
	server_rig_close(r);
}

static void declare__too_many_tensors(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	struct batch b;
	char name[16];

	for (uint32_t n = 0; n < SW_MAX_TENSORS;) {
		begin(&b, 32);
		for (uint32_t i = 0; i < 32; i++) {
			struct sw_declare_item it = item(1, 5);

			snprintf(name, sizeof(name), "t%04u", n++);
			put(&b, &it, name);
		}
		assert_contains(send(r, 0, &b), "w0 DECLARED");
	}
	assert_contains(rig_declare(r, 0, "last", SW_I32, 1, 0),
		"SW_EREFUSED tensor last: the job has 4096 tensors and open "
		"streams already");
	server_rig_close(r);
}

/* Open a server that is not the coordinator: it uses the worker's keys. */
static struct server_rig *open_second(void)
{
	static struct server_rig r;
	struct sw_join j;

	server_rig_open(&r, 1, QUOTA);
	peer_hello(&r.w[0]);
	j = rig_join_payload(&r, 0);
	j.server_i = 1;
	j.n_servers = 2;
	j.epoch = 77;
	peer_say(&r.w[0], SW_JOIN, &j, sizeof(j));
	assert_string_equal(rig_tx(&r), "w0 ACCEPT");
	peer_keepalive(&r.w[0]);
	assert_string_equal(rig_tx(&r), "");
	assert_int_equal(sw_job_find(r.srv, "job")->status.epoch, 77);
	return &r;
}

static const char *declare_key(
	struct server_rig *r, const char *name, uint32_t key)
{
	struct sw_declare_item it = item(10, (uint16_t)strlen(name));
	struct batch b;

	it.key = key;
	begin(&b, 1);
	put(&b, &it, name);
	return send(r, 0, &b);
}

static void declare__key_of_the_coordinator(void **state)
{
	struct server_rig *r = open_second();

	assert_string_equal(declare_key(r, "a", 7), "w0 DECLARED k7");
	assert_string_equal(
		declare_key(r, "b", SW_MAX_TENSORS - 1), "w0 DECLARED k4095");
	server_rig_close(r);
}

static void declare__key_taken(void **state)
{
	struct server_rig *r = open_second();

	declare_key(r, "a", 7);
	assert_contains(declare_key(r, "b", 7), "key 7 is taken");
	server_rig_close(r);
	r = open_second();
	declare_key(r, "a", 7);
	assert_contains(declare_key(r, "b", SW_MAX_TENSORS + 7),
		"key 4103 is taken"); /* tensors are never freed */
	server_rig_close(r);
	r = open_second();
	assert_contains(declare_key(r, "a", SW_KEY_NONE), "SW_EREFUSED");
	server_rig_close(r);
	r = open_second();
	declare_key(r, "a", 7);
	assert_contains(
		declare_key(r, "a", 8), "DECLARED k-1 refused tensor k7");
	server_rig_close(r);
}

/* The coordinator places tensors on the line one after another. */
static void declare__first_of_the_coordinator(void **state)
{
	struct server_rig *r = open_joined(1, QUOTA);
	const struct sw_shard *sh = &r->srv->jobs[0].shard;

	rig_declare(r, 0, "a", SW_I32, 5 * PEER_PAYLOAD / 4, 0);
	rig_declare(r, 0, "b", SW_I32, 1, 0);
	rig_declare(r, 0, "c", SW_I32, 1, 0);
	assert_int_equal(sh->tensors[0].first, 0);
	assert_int_equal(sh->tensors[1].first, 5);
	assert_int_equal(sh->tensors[2].first, 5);
	assert_int_equal(sh->line_bytes, 5 * PEER_PAYLOAD + 8);
	server_rig_close(r);
}

/* Other servers use the place that the worker passes on, if it is valid. */
static void declare__first_of_the_worker(void **state)
{
	struct server_rig *r = open_second();
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	it.key = 3;
	it.first = 127;
	begin(&b, 1);
	put(&b, &it, "a");
	assert_string_equal(send(r, 0, &b), "w0 DECLARED k3");
	assert_int_equal(r->srv->jobs[0].shard.tensors[3].place.first, 127);
	it.key = 4;
	it.first = 128;
	begin(&b, 1);
	put(&b, &it, "b");
	assert_contains(send(r, 0, &b), "place 128 is beyond 128");
	server_rig_close(r);
}

static void declare__same_key_twice_in_a_batch(void **state)
{
	struct server_rig *r = open_second();
	struct sw_declare_item it = item(10, 1);
	struct batch b;

	it.key = 3;
	begin(&b, 2);
	put(&b, &it, "a");
	put(&b, &it, "b");
	assert_contains(send(r, 0, &b), "SW_EREFUSED tensor b: key 3 is taken");
	server_rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__keys_in_order_of_first_sight),
		cmocka_unit_test(declare__duplicate),
		cmocka_unit_test(declare__before_the_answer),
		cmocka_unit_test(declare__aside_when_the_job_fails),
		cmocka_unit_test(declare__before_all_have_joined),
		cmocka_unit_test(declare__lying_count_high),
		cmocka_unit_test(declare__lying_count_low),
		cmocka_unit_test(declare__truncated_anywhere),
		cmocka_unit_test(declare__oversized_name),
		cmocka_unit_test(declare__malformed_item),
		cmocka_unit_test(declare__nul_in_the_name),
		cmocka_unit_test(declare__more_chunks_than_can_be_counted),
		cmocka_unit_test(declare__mismatch),
		cmocka_unit_test(declare__mismatch_is_said_until_known),
		cmocka_unit_test(declare__mismatch_in_a_batch),
		cmocka_unit_test(declare__mismatch_of_dtype_and_priority),
		cmocka_unit_test(declare__mismatch_of_mode),
		cmocka_unit_test(declare__asynchronous_in_a_synchronous_job),
		cmocka_unit_test(declare__name_twice_in_a_batch),
		cmocka_unit_test(declare__quota_of_the_whole_batch),
		cmocka_unit_test(declare__too_many_tensors),
		cmocka_unit_test(declare__key_of_the_coordinator),
		cmocka_unit_test(declare__key_taken),
		cmocka_unit_test(declare__first_of_the_coordinator),
		cmocka_unit_test(declare__first_of_the_worker),
		cmocka_unit_test(declare__same_key_twice_in_a_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
