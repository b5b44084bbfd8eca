/* unit_host_waiting.c - collectives that wait until their stream has room.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/coll_kind.h"
#include "pmd/host/host.h"
#include "sum/dtype.h"
#include "test/support/steps.h"
#include "test/support/unit.h"

/* Two streams and memory, in the order of their declaration. */
enum { A, B, MEMORY, N_ITEMS, BYTES = 64 };

struct scene {
	struct sw_edge_control *control;
	struct sw_host_client *p;
	struct sw_spsc colls; /* the client's end of the ring */
	uint64_t n;
	int kick[2];
};

static void scene_open(struct scene *s)
{
	static char memory[BYTES];
	const struct sw_host_item items[N_ITEMS] = {
		{.id = A, .name = 7, .kind = SW_EDGE_STREAM, .n_ranks = 2},
		{.id = B, .name = 8, .kind = SW_EDGE_STREAM, .n_ranks = 2},
		{.id = MEMORY,
			.kind = SW_EDGE_MEMORY,
			.base = memory,
			.bytes = BYTES}};

	*s = (struct scene){0};
	assert_int_equal(pipe(s->kick), 0);
	s->control = aligned_alloc(4096, (sizeof(*s->control) + 4095) & ~4095u);
	memset(s->control, 0, sizeof(*s->control));
	sw_spsc_init(&s->colls, s->control->colls, SW_EDGE_COLLS,
		sizeof(struct sw_edge_coll));
	assert_int_equal(
		sw_host_client_open(s->control, -1, s->kick[1], &s->p), 0);
	for (uint32_t i = 0; i < N_ITEMS; i++)
		sw_host_client_enter(s->p, &items[i]);
	sw_host_client_admit(s->p, N_ITEMS);
}

static void scene_close(struct scene *s)
{
	sw_host_client_close(&s->p);
	free(s->control);
	close(s->kick[0]);
	close(s->kick[1]);
}

/* Let the client submit the next collective; it gets the next number. */
static void submit(struct scene *s, uint32_t stream)
{
	const struct sw_edge_coll m = {.handle = SW_EDGE_COLL_HANDLE |
						 ++s->n << SW_EDGE_TENSOR_BITS |
						 stream,
		.stream = stream,
		.count = 1,
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.from.item = MEMORY,
		.to.item = MEMORY};

	assert_int_equal(sw_spsc_put(&s->colls, &m, 1), 1);
}

/* Return the number of the next collective to begin; 0: none may begin. */
static uint64_t take(struct scene *s, struct sw_host_coll *out)
{
	uint32_t n_left = SW_EDGE_COLLS;

	if (!sw_host_take_coll(s->p, out, &n_left))
		return 0;
	return (out->handle & ~SW_EDGE_COLL_HANDLE) >> SW_EDGE_TENSOR_BITS;
}

static void taken(struct scene *s, uint64_t want)
{
	struct sw_host_coll m;

	assert_int_equal(take(s, &m), want);
}

static void put_back(struct scene *s, uint64_t want)
{
	struct sw_host_coll m;

	assert_int_equal(take(s, &m), want);
	sw_host_put_back(s->p, &m);
}

/* Complete a collective of the stream. */
static void complete(struct scene *s, uint32_t stream)
{
	struct sw_completion c = {.handle = SW_EDGE_COLL_HANDLE | stream};

	sw_host_complete(s->p, &c);
}

/* Only the stream without room waits; its later collectives wait in order. */
static void put_back__holds_back_its_stream_alone(void **state)
{
	struct scene s;

	scene_open(&s);
	submit(&s, A);
	submit(&s, A);
	submit(&s, B);
	submit(&s, A);
	put_back(&s, 1);
	taken(&s, 3);
	taken(&s, 0);
	assert_false(sw_host_has_coll(s.p)); /* so the lcore may sleep */
	complete(&s, B);
	taken(&s, 0);
	complete(&s, A);
	assert_true(sw_host_has_coll(s.p));
	taken(&s, 1);
	put_back(&s, 2); /* there was room for only one */
	taken(&s, 0);
	submit(&s, A);
	taken(&s, 0);
	complete(&s, A);
	taken(&s, 2);
	taken(&s, 4);
	taken(&s, 5);
	taken(&s, 0);
	submit(&s, A); /* the waiting queue is empty */
	taken(&s, 6);
	scene_close(&s);
}

static void put_back__both(void **state)
{
	struct scene s;

	scene_open(&s);
	for (uint32_t i = 0; i < 6; i++)
		submit(&s, i % 2);
	put_back(&s, 1);
	put_back(&s, 2);
	taken(&s, 0);
	complete(&s, B);
	complete(&s, A);
	complete(&s, A);
	taken(&s, 1);
	taken(&s, 3);
	taken(&s, 5);
	taken(&s, 2);
	taken(&s, 4);
	taken(&s, 6);
	taken(&s, 0);
	scene_close(&s);
}

/* Let the maximum number of collectives wait, all of stream A. */
static void fill_all(struct scene *s)
{
	submit(s, A);
	put_back(s, 1);
	for (uint32_t i = 1; i < SW_EDGE_COLLS; i++) {
		submit(s, A);
		taken(s, 0);
	}
}

/* A client that submits more than libsumwire would is evicted. */
static void take__too_many_wait(void **state)
{
	struct scene s;

	scene_open(&s);
	fill_all(&s);
	assert_false(s.p->is_evicted);
	submit(&s, B);
	taken(&s, SW_EDGE_COLLS + 1);
	submit(&s, A);
	taken(&s, 0);
	assert_true(s.p->is_evicted);
	assert_string_equal(
		s.p->reason, "has too many collectives open: more than");
	complete(&s, A);
	taken(&s, 0);
	scene_close(&s);
}

/* A call checks a bounded number of waiting collectives. */
static void take__some_at_once(void **state)
{
	enum { AT_ONCE = 16 };
	struct sw_host_coll m;
	struct scene s;
	uint32_t n_left = AT_ONCE;

	scene_open(&s);
	submit(&s, A);
	put_back(&s, 1);
	for (uint32_t i = 0; i < 2 * AT_ONCE; i++)
		submit(&s, A);
	assert_false(sw_host_take_coll(s.p, &m, &n_left));
	assert_int_equal(n_left, 0);
	assert_true(sw_host_has_coll(s.p));
	submit(&s, B);
	n_left = AT_ONCE + 2;
	assert_true(sw_host_take_coll(s.p, &m, &n_left));
	assert_int_equal(n_left, 1);
	scene_close(&s);
}

static void put_back__too_many_wait(void **state)
{
	struct scene s;

	scene_open(&s);
	fill_all(&s);
	submit(&s, B);
	put_back(&s, SW_EDGE_COLLS + 1);
	assert_true(s.p->is_evicted);
	scene_close(&s);
}

/* Waiting collectives pass through all places many times. */
static void put_back__uses_places_again(void **state)
{
	struct scene s;

	scene_open(&s);
	for (uint64_t i = 1; i < 3000; i++) {
		submit(&s, A);
		submit(&s, A);
		put_back(&s, 2 * i - 1);
		taken(&s, 0);
		complete(&s, A);
		sw_spsc_init(&s.p->completions, s.control->completions,
			SW_EDGE_COMPLETIONS, sizeof(struct sw_completion));
		taken(&s, 2 * i - 1);
		taken(&s, 2 * i);
		taken(&s, 0);
	}
	assert_false(s.p->is_evicted);
	scene_close(&s);
}

/* A handle names its stream, which must be the right one. */
static void take__handle_of_another_stream(void **state)
{
	struct sw_edge_coll m = {.handle = SW_EDGE_COLL_HANDLE | B,
		.stream = A,
		.count = 1,
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.from.item = MEMORY,
		.to.item = MEMORY};
	struct scene s;

	scene_open(&s);
	assert_int_equal(sw_spsc_put(&s.colls, &m, 1), 1);
	taken(&s, 0);
	assert_true(s.p->is_evicted);
	scene_close(&s);
}

/* Memory may be freed when no waiting collective uses it. The check takes few
 * steps for any number of them. */
static void forget__while_some_wait(void **state)
{
	enum { STEPS = 2000 };
	const void *base;
	struct scene s;
	uint64_t bytes;

	scene_open(&s);
	for (uint32_t i = 0; i < 3; i++)
		submit(&s, A);
	put_back(&s, 1);
	taken(&s, 0);
	for (uint32_t n = 1; n <= 3; n++) {
		assert_int_equal(s.p->items[MEMORY].n_waiting, 2 * (4 - n));
		complete(&s, A);
		taken(&s, n);
	}
	steps_begin(STEPS);
	assert_true(sw_host_forget(s.p, MEMORY, &base, &bytes));
	assert_in_range(steps_end(), 1, STEPS);
	assert_int_equal(bytes, BYTES);
	scene_close(&s);
	scene_open(&s);
	submit(&s, A);
	put_back(&s, 1);
	assert_false(sw_host_forget(s.p, MEMORY, &base, &bytes));
	assert_true(sw_host_is_evicted(s.p));
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_back__holds_back_its_stream_alone),
		cmocka_unit_test(put_back__both),
		cmocka_unit_test(forget__while_some_wait),
		cmocka_unit_test(take__too_many_wait),
		cmocka_unit_test(take__some_at_once),
		cmocka_unit_test(put_back__too_many_wait),
		cmocka_unit_test(put_back__uses_places_again),
		cmocka_unit_test(take__handle_of_another_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
