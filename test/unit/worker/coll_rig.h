/* coll_rig.h - a worker with a stream; the test plays members and server.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_WORKER_COLL_RIG_H
#define SW_TEST_UNIT_WORKER_COLL_RIG_H

#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdio.h>

#include "engine/worker/link.h"
#include "engine/worker/stream.h"

enum { LOG2 = SW_WINDOW_MIN_LOG2, W = 1 << LOG2, CREDIT = 1 << 20 };

static const uint16_t all_ranks[] = {0, 1, 2};

static const struct sw_worker_tensor a_stream = {
	.name = "s", .window_log2 = LOG2, .ranks = all_ranks, .n_ranks = 3};

/* Open rank 0 of 3 members with one server; "s" is declared and not
 * admitted. */
static inline struct worker_rig *open_declared(void)
{
	static struct worker_rig r;

	wrig_open(&r, 0, 3, 1);
	r.s[0].grant = 1 << 19;
	assert_int_equal(
		sw_sched_set(&r.w.sched, sw_policy_find("bytescheduler"),
			PEER_PAYLOAD, CREDIT),
		0);
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &a_stream, 1), 0);
	return &r;
}

static inline struct worker_rig *open_stream(void)
{
	struct worker_rig *r = open_declared();

	wrig_tx(r);
	peer_declared(&r->s[0]);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "declared");
	return r;
}

/* Make a call in place, where the buffer size suits all kinds. */
static inline struct sw_worker_coll ask_of(
	struct worker_rig *r, enum sw_coll_kind kind, uint64_t n_elems)
{
	return (struct sw_worker_coll){.kind = kind,
		.dtype = SW_I32,
		.n_elems = n_elems,
		.from = r->data[0],
		.to = r->data[0],
		.from_bytes = sizeof(r->data),
		.to_bytes = sizeof(r->data)};
}

static inline int submit(struct worker_rig *r, enum sw_coll_kind kind,
	uint64_t n_elems, uint64_t cookie)
{
	struct sw_worker_coll ask = ask_of(r, kind, n_elems);

	ask.cookie = cookie;
	return sw_worker_coll(&r->w, &ask);
}

/* Submit @n all_reduces of one element. */
static inline void submit_n(struct worker_rig *r, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		assert_int_equal(submit(r, SW_ALL_REDUCE, 1, i), 0);
}

static inline struct sw_header result_of(
	enum sw_coll_kind kind, uint32_t j, uint32_t number, uint32_t base)
{
	struct sw_header h = peer_result_header(0, j, number, 1);

	h.op = sw_coll_op(kind, SW_ROUND_SUM);
	h.aux = (uint16_t)base;
	h.weight = 3;
	return h;
}

static inline void sum(struct worker_rig *r, uint32_t j, uint32_t base)
{
	peer_fill(&r->s[0], result_of(SW_ALL_REDUCE, j, j, base), 7);
}

static inline void say_base(struct worker_rig *r, uint32_t base)
{
	peer_answer(&r->s[0], SW_ANSWER_BASE, 0, 0, base, 0);
}

static inline uint32_t base_of(const struct worker_rig *r)
{
	return r->w.tensors[0].stream->links[0].base;
}

/* Return the number of PUSHes that the worker sends now. */
static inline uint32_t n_pushes(struct worker_rig *r)
{
	const char *p = wrig_tx(r);
	uint32_t n = 0;

	while ((p = strstr(p, "PUSH"))) {
		n++;
		p++;
	}
	return n;
}

#endif
