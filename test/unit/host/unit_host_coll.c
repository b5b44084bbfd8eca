/* unit_host_coll.c - collectives submitted by hostile clients.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

#include "engine/base/coll_kind.h"

/* Items in the order in which open_raw declares them. */
enum { MEMORY, STREAM, TENSOR, N_ITEMS, BYTES = 4096, RANKS = 4 };

static void declare_one(struct raw *w, uint32_t batch, struct sw_edge_desc d)
{
	struct sw_edge_declare m;

	good_declare(&m, batch, 1);
	memcpy(d.name, m.descs[0].name, sizeof(d.name));
	m.descs[0] = d;
	raw_declare_as(w, &m);
}

static struct sw_edge_open good_open(uint32_t batch)
{
	return (struct sw_edge_open){.kind = SW_EDGE_OPEN,
		.batch = batch,
		.desc = {.n_elems = RANKS,
			.dtype = SW_EDGE_WINDOW_MIN,
			.kind = SW_EDGE_STREAM,
			.name = "stream"},
		.ranks = {3, 1, 0, 2}};
}

static size_t open_bytes(uint64_t n_ranks)
{
	return offsetof(struct sw_edge_open, ranks) +
	       n_ranks * sizeof(uint16_t);
}

static void open_one(struct raw *w, uint32_t batch)
{
	struct sw_edge_open m = good_open(batch);
	union sw_edge_msg answer;
	int fds[2];

	raw_send(w, &m, open_bytes(RANKS));
	assert_int_equal(raw_recv(w, &answer, fds), sizeof(answer.declared));
	assert_int_equal(answer.kind, SW_EDGE_DECLARED);
	close(fds[0]);
}

static void open_raw(struct raw *w, const struct scene *s)
{
	raw_open(w, s->r);
	declare_one(w, MEMORY,
		(struct sw_edge_desc){.n_elems = BYTES,
			.dtype = SW_U8,
			.kind = SW_EDGE_MEMORY});
	open_one(w, STREAM);
	declare_one(w, TENSOR,
		(struct sw_edge_desc){.n_elems = 4, .dtype = SW_F32});
}

/* An all_reduce of the whole memory, in place. */
static const struct sw_edge_coll good = {
	.handle = SW_EDGE_COLL_HANDLE | STREAM,
	.stream = STREAM,
	.count = BYTES / 4,
	.kind = SW_ALL_REDUCE,
	.dtype = SW_F32,
};

static void put(struct raw *w, const struct sw_edge_coll *m)
{
	assert_int_equal(sw_spsc_put(&w->colls, m, 1), 1);
	sw_edge_bell_write(w->bell);
}

static void taken(struct raw *w, struct sw_edge_coll m)
{
	struct sw_completion c;
	int n = 0;

	put(w, &m);
	for (int i = 0; i < RIG_WAIT_MS && !n; i++, usleep(1000))
		n = sw_spsc_take(&w->completions, &c, 1);
	assert_int_equal(n, 1);
	assert_true(c.handle == m.handle);
	assert_int_equal(c.status, 0);
}

static void not_taken(struct scene *s, struct sw_edge_coll m)
{
	struct raw w;
	uint32_t n = s->r->n_colls;

	open_raw(&w, s);
	put(&w, &m);
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
		"submitted an invalid collective");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "an invalid collective");
	assert_int_equal(s->r->n_colls, n);
}

/* A collective may reach to the last byte. The agent uses its own number for
 * the stream. */
static void coll__in_its_memory(void **state)
{
	struct scene *s = *state;
	struct sw_edge_coll m = good;
	struct raw w;

	open_raw(&w, s);
	taken(&w, m);
	assert_ptr_equal(s->r->coll.from, s->r->coll.to);
	assert_true(s->r->coll.stream >= RIG_FIRST);
	assert_true(s->r->coll.count == BYTES / 4);
	m.count = 1;
	m.to.offset = BYTES - 4;
	taken(&w, m);
	assert_ptr_equal(
		(const char *)s->r->coll.from + BYTES - 4, s->r->coll.to);
	m = good;
	m.kind = SW_ALL_GATHER;
	m.count = BYTES / 4 / RANKS;
	taken(&w, m);
	m.kind = SW_REDUCE_SCATTER;
	taken(&w, m);
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

static void coll__must_be_of_a_stream(void **state)
{
	static const uint32_t others[] = {
		MEMORY, TENSOR, N_ITEMS, 4095, 4096, 1u << 31, UINT32_MAX};
	struct sw_edge_coll m = good;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		m.stream = others[i];
		not_taken(*state, m);
	}
}

static void coll__must_have_elements(void **state)
{
	static const uint64_t counts[] = {0, (SW_EDGE_TENSOR_BYTES_MAX / 4) + 1,
		UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX};
	struct sw_edge_coll m = good;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		m.count = counts[i];
		not_taken(*state, m);
	}
	m = good;
	m.dtype = 100;
	not_taken(*state, m);
	m.dtype = 255;
	not_taken(*state, m);
	m = good;
	m.handle = STREAM; /* the handle of a tensor */
	not_taken(*state, m);
}

static void coll__must_lie_in_memory(void **state)
{
	static const struct sw_edge_place_at beyond[] = {
		{.item = STREAM},
		{.item = TENSOR},
		{.item = N_ITEMS},
		{.item = 4096},
		{.item = UINT32_MAX},
		{.offset = 1},
		{.offset = BYTES},
		{.offset = BYTES + 1},
		{.offset = UINT64_MAX},
		{.offset = UINT64_MAX - BYTES + 1},
	};
	struct sw_edge_coll m;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		m = good;
		m.from = beyond[i];
		not_taken(*state, m);
		m = good;
		m.to = beyond[i];
		not_taken(*state, m);
	}
	m = good;
	m.count = BYTES / 4 + 1;
	not_taken(*state, m);
}

/* For kinds with parts, the parts of all members must be within the memory. */
static void coll__parts_must_lie_in_memory(void **state)
{
	struct sw_edge_coll m = good;

	m.count = BYTES / 4 / RANKS + 1;
	m.kind = SW_ALL_GATHER;
	not_taken(*state, m);
	m.kind = SW_REDUCE_SCATTER;
	not_taken(*state, m);
}

static void ring__must_have_possible_indices(void **state)
{
	static const uint32_t beyond[] = {
		SW_EDGE_COLLS + 1, 1u << 31, UINT32_MAX};
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		open_raw(&w, s);
		atomic_store(&ring_of(w.control->colls)->n_put, beyond[i]);
		sw_edge_bell_write(w.bell);
		raw_await_end(
			&w, SW_EDGE_CLOSED, SW_EPROTO, "ring of collectives");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "ring of collectives");
	}
}

/* Streams and memory cannot be pushed as tensors. */
static void submits__not_of_streams_or_memory(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = MEMORY; i <= STREAM; i++) {
		struct sw_submit bad = {1, i, 0, 0};
		struct raw w;

		open_raw(&w, s);
		assert_int_equal(sw_spsc_put(&w.submits, &bad, 1), 1);
		sw_edge_bell_write(w.bell);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"submitted an undeclared tensor");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "undeclared tensor");
	}
}

/* --- memory that is given back --- */

static void send_free(struct raw *w, uint32_t item)
{
	struct sw_edge_free m = {SW_EDGE_FREE, item};

	raw_send(w, &m, sizeof(m));
}

static void free_item(struct raw *w, uint32_t item)
{
	union sw_edge_msg answer;
	int fds[2];

	send_free(w, item);
	assert_int_equal(raw_recv(w, &answer, fds), sizeof(answer.text));
	assert_int_equal(answer.kind, SW_EDGE_ANSWER);
	assert_int_equal(answer.text.err, 0);
}

static void free_memory(struct raw *w)
{
	free_item(w, MEMORY);
}

static void evicted(struct scene *s, struct raw *w, const char *why)
{
	raw_await_end(w, SW_EDGE_CLOSED, SW_EPROTO, why);
	raw_close(w);
	scene_check(s, SW_HOST_VIOLATION, why);
}

static void free__of_memory_once(void **state)
{
	static const uint32_t others[] = {TENSOR, N_ITEMS, UINT32_MAX};
	struct raw w;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		open_raw(&w, *state);
		send_free(&w, others[i]);
		evicted(*state, &w, "not allowed");
	}
	open_raw(&w, *state);
	free_memory(&w);
	send_free(&w, MEMORY);
	evicted(*state, &w, "not allowed");
}

/* After a stream is freed, no call on it is accepted. */
static void free__of_a_stream(void **state)
{
	struct sw_edge_coll m = good;
	struct raw w;

	open_raw(&w, *state);
	taken(&w, m);
	free_item(&w, STREAM);
	put(&w, &m);
	evicted(*state, &w, "an invalid collective");
}

static void free__then_no_collective_lies_there(void **state)
{
	struct sw_edge_coll m = good;
	struct raw w;

	open_raw(&w, *state);
	taken(&w, m);
	free_memory(&w);
	put(&w, &m);
	evicted(*state, &w, "an invalid collective");
}

static struct sw_edge_desc memory_again(uint32_t item)
{
	return (struct sw_edge_desc){.n_elems = BYTES / 2,
		.dtype = SW_U8,
		.kind = SW_EDGE_MEMORY,
		.again = sw_id_next(item)};
}

static void free__then_its_number_is_used_again(void **state)
{
	struct scene *s = *state;
	struct sw_edge_coll m = good;
	struct raw w;

	open_raw(&w, s);
	for (uint32_t i = 0; i < 3; i++) {
		free_item(&w, i * SW_IDS + MEMORY);
		declare_one(&w, N_ITEMS + i, memory_again(i * SW_IDS + MEMORY));
	}
	m.from.item = m.to.item = 3 * SW_IDS + MEMORY;
	m.count = BYTES / 8;
	taken(&w, m);
	m.count++;
	put(&w, &m);
	evicted(s, &w, "an invalid collective");
}

/* Free memory and a stream, and declare others at the same indices. */
static void open_again(struct raw *w, struct scene *s)
{
	struct sw_edge_open m = good_open(N_ITEMS + 1);
	struct sw_edge_desc d = memory_again(MEMORY);
	union sw_edge_msg answer;
	int fds[2];

	open_raw(w, s);
	free_item(w, MEMORY);
	free_item(w, STREAM);
	d.n_elems = BYTES;
	declare_one(w, N_ITEMS, d);
	m.desc.again = sw_id_next(STREAM);
	strcpy(m.desc.name, "stream#2");
	raw_send(w, &m, open_bytes(RANKS));
	assert_int_equal(raw_recv(w, &answer, fds), sizeof(answer.declared));
	assert_int_equal(answer.kind, SW_EDGE_DECLARED);
	close(fds[0]);
}

/* A stale id names nothing, neither in a ring nor in a message. */
static void again__old_ids_name_nothing(void **state)
{
	struct scene *s = *state;
	struct sw_edge_coll now = good, m;
	struct sw_edge_end end = {.kind = SW_EDGE_END, .stream = STREAM};
	struct raw w;

	now.stream = sw_id_next(STREAM);
	now.from.item = now.to.item = sw_id_next(MEMORY);
	for (uint32_t i = 0; i < 3; i++) {
		m = now;
		if (i == 0)
			m.stream = STREAM;
		else
			(i == 1 ? &m.from : &m.to)->item = MEMORY;
		open_again(&w, s);
		taken(&w, now);
		put(&w, &m);
		evicted(s, &w, "an invalid collective");
	}
	open_again(&w, s);
	raw_send(&w, &end, sizeof(end));
	evicted(s, &w, "not allowed");
	for (uint32_t i = MEMORY; i <= STREAM; i++) {
		open_again(&w, s);
		send_free(&w, i);
		evicted(s, &w, "not allowed");
	}
}

static void again__only_what_was_freed(void **state)
{
	static const uint32_t others[] = {SW_IDS + MEMORY, SW_IDS + STREAM,
		TENSOR, SW_IDS + N_ITEMS, UINT32_MAX};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct sw_edge_declare m;
		union sw_edge_msg answer;
		struct raw w;
		int fds[2];

		open_raw(&w, s);
		good_declare(&m, N_ITEMS, 1);
		m.descs[0].dtype = SW_U8;
		m.descs[0].kind = SW_EDGE_MEMORY;
		m.descs[0].again = others[i];
		raw_send(&w, &m, declare_bytes(1));
		assert_int_equal(
			raw_recv(&w, &answer, fds), sizeof(answer.text));
		assert_int_equal(answer.kind, SW_EDGE_FAILED);
		assert_non_null(strstr(answer.text.text, "that was freed"));
		taken(&w, good);
		raw_close(&w);
		scene_check(s, SW_HOST_DIED, "closed the connection");
	}
}

/* One invalid item makes its batch fail. */
static void declare__bad_items(void **state)
{
	static const struct {
		struct sw_edge_desc d;
		uint32_t n;
	} cases[] = {
		{{.n_elems = 4, .kind = SW_EDGE_N_ITEMS}, 1},
		{{.n_elems = 4, .kind = 256 + SW_EDGE_SYNC}, 1},
		{{.n_elems = 4, .kind = UINT32_MAX}, 1},
		{{.n_elems = 3, .dtype = 9, .kind = SW_EDGE_STREAM}, 1},
		{{.n_elems = 0, .dtype = SW_U8, .kind = SW_EDGE_MEMORY}, 1},
		{{.n_elems = 4, .dtype = 100, .kind = SW_EDGE_MEMORY}, 1},
		{{.n_elems = UINT64_MAX,
			 .dtype = SW_F32,
			 .kind = SW_EDGE_MEMORY},
			1},
		{{.n_elems = 64, .dtype = SW_U8, .kind = SW_EDGE_MEMORY}, 2},
	};
	struct scene *s = *state;
	struct raw w;

	raw_open(&w, s->r);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sw_edge_declare m;
		union sw_edge_msg answer;
		int fds[2];

		good_declare(&m, i, cases[i].n);
		m.descs[0] = cases[i].d;
		strcpy(m.descs[0].name, "bad");
		raw_send(&w, &m, declare_bytes(m.n));
		assert_int_equal(
			raw_recv(&w, &answer, fds), sizeof(answer.text));
		assert_int_equal(answer.kind, SW_EDGE_FAILED);
		assert_int_equal(answer.text.err, SW_EINVAL);
	}
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

/* One invalid stream makes its batch fail. */
static void open__bad_streams(void **state)
{
	static const struct {
		struct sw_edge_desc d;
		const char *text;
	} cases[] = {
		{{.n_elems = 0, .dtype = 9, .name = "s"}, "is empty"},
		{{.n_elems = 3, .dtype = SW_EDGE_WINDOW_MIN - 1, .name = "s"},
			"window of 2^3 slots"},
		{{.n_elems = 3, .dtype = SW_EDGE_WINDOW_MAX + 1, .name = "s"},
			"window of 2^15 slots"},
		{{.n_elems = 3, .dtype = 9, .name = ""}, "1 to 127"},
	};
	struct scene *s = *state;
	struct raw w;

	raw_open(&w, s->r);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sw_edge_open m = good_open(i);
		union sw_edge_msg answer;
		int fds[2];

		m.desc = cases[i].d;
		m.desc.kind = SW_EDGE_STREAM;
		raw_send(&w, &m, open_bytes(m.desc.n_elems));
		assert_int_equal(
			raw_recv(&w, &answer, fds), sizeof(answer.text));
		assert_int_equal(answer.kind, SW_EDGE_FAILED);
		if (!strstr(answer.text.text, cases[i].text))
			fail_msg("the agent says: %s", answer.text.text);
	}
	open_one(&w, sizeof(cases) / sizeof(cases[0]));
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

/* A message that is not exactly one stream with its ranks evicts the client. */
static void open__must_be_whole(void **state)
{
	static const struct {
		size_t bytes;
		uint64_t n_ranks;
		uint32_t kind, batch;
	} cases[] = {
		{4, RANKS, SW_EDGE_STREAM, 0},
		{offsetof(struct sw_edge_open, ranks) - 1, 0, SW_EDGE_STREAM,
			0},
		{offsetof(struct sw_edge_open, ranks) + 7, RANKS,
			SW_EDGE_STREAM, 0},
		{offsetof(struct sw_edge_open, ranks) + 8, RANKS, SW_EDGE_SYNC,
			0},
		{offsetof(struct sw_edge_open, ranks) + 8, RANKS,
			SW_EDGE_MEMORY, 0},
		{offsetof(struct sw_edge_open, ranks) + 8, RANKS,
			SW_EDGE_STREAM, 1},
		{sizeof(struct sw_edge_open), UINT64_MAX, SW_EDGE_STREAM, 0},
		{sizeof(struct sw_edge_open), 1ULL << 63 | SW_EDGE_RANKS,
			SW_EDGE_STREAM, 0},
		{sizeof(struct sw_edge_open) + 2, SW_EDGE_RANKS + 1,
			SW_EDGE_STREAM, 0},
	};
	static union {
		struct sw_edge_open m;
		char bytes[sizeof(struct sw_edge_open) + 2];
	} u;
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		u.m = good_open(cases[i].batch);
		u.m.desc.n_elems = cases[i].n_ranks;
		u.m.desc.kind = cases[i].kind;
		raw_open(&w, s->r);
		raw_send(&w, &u, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "stream");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "stream");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coll__in_its_memory),
		cmocka_unit_test(coll__must_be_of_a_stream),
		cmocka_unit_test(coll__must_have_elements),
		cmocka_unit_test(coll__must_lie_in_memory),
		cmocka_unit_test(coll__parts_must_lie_in_memory),
		cmocka_unit_test(ring__must_have_possible_indices),
		cmocka_unit_test(submits__not_of_streams_or_memory),
		cmocka_unit_test(free__of_memory_once),
		cmocka_unit_test(free__of_a_stream),
		cmocka_unit_test(free__then_no_collective_lies_there),
		cmocka_unit_test(free__then_its_number_is_used_again),
		cmocka_unit_test(again__old_ids_name_nothing),
		cmocka_unit_test(again__only_what_was_freed),
		cmocka_unit_test(declare__bad_items),
		cmocka_unit_test(open__bad_streams),
		cmocka_unit_test(open__must_be_whole),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
