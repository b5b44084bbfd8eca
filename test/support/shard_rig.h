/* shard_rig.h - the shard of a job under test, driven without frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_SHARD_RIG_H
#define SW_TEST_SUPPORT_SHARD_RIG_H

#include <stdio.h>

#include "engine/sums/shard.h"
#include "test/support/env.h"
#include "test/support/peer.h"
#include "test/support/unit.h"

enum { PAYLOAD = PEER_PAYLOAD, FULL = PEER_CHUNK, BOTH = 3 };

/* A shard of two members, on server 0 of 1 unless a test changes it. */
struct fixture {
	struct test_env env;
	struct sw_params params;
	struct sw_stats stats;
	struct sw_shard sh;
	uint64_t now_ns;
	struct sw_header h; /* header of the last result taken */
	uint32_t cell;
};

static inline struct fixture *open_shard(
	uint32_t n_members, uint16_t server_i, uint16_t n_servers)
{
	static struct fixture x;
	struct sw_place_job job = {
		.n_members = (uint16_t)n_members, .n_servers = n_servers};

	memset(&x, 0, sizeof(x));
	test_env_init(&x.env);
	sw_params_init(&x.params);
	x.params.payload = PAYLOAD;
	assert_int_equal(sw_shard_open(&x.sh, &x.params, &x.env.env, &x.stats,
				 &job, server_i, 0, &x.now_ns),
		0);
	for (uint32_t m = 0; m < n_members; m++)
		x.sh.weights[m] = 1;
	sw_shard_rank(&x.sh, x.sh.expected);
	return &x;
}

static inline void close_shard(struct fixture *x)
{
	while (!sw_shard_close(&x->sh))
		;
	test_env_fini(&x->env);
}

static inline void admit_item(
	struct fixture *x, const struct sw_declare_item *item)
{
	uint64_t before = x->sh.mem_bytes;
	char name[16];

	snprintf(name, sizeof(name), "t%u", item->key);
	assert_int_equal(sw_shard_admit(&x->sh, item, name, 1, true), 0);
	assert_int_equal(x->sh.mem_bytes - before, sw_shard_need(&x->sh, item));
}

static inline void admit(struct fixture *x, uint32_t key, uint32_t dtype,
	uint64_t n_elems, uint32_t priority)
{
	admit_item(x, &(struct sw_declare_item){.key = key,
			      .dtype = (uint8_t)dtype,
			      .n_elems = n_elems,
			      .priority = priority});
}

static inline void admit_async(
	struct fixture *x, uint32_t key, uint8_t dtype, uint64_t n_elems)
{
	admit_item(x, &(struct sw_declare_item){.key = key,
			      .dtype = dtype,
			      .n_elems = n_elems,
			      .mode = SW_MODE_ASYNC});
}

/* Open a shard of two members with one i32 tensor of @n_elems elements, key
 * 0. */
static inline struct fixture *open_one(uint64_t n_elems)
{
	struct fixture *x = open_shard(2, 0, 1);

	admit(x, 0, SW_I32, n_elems, 0);
	return x;
}

static inline struct sw_header header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems)
{
	struct sw_header h = peer_push_header(key, round, chunk);

	h.payload_len = (uint16_t)(4 * n_elems);
	return h;
}

/* Push one frame and return its verdict. */
static inline enum sw_push_verdict shard_push(struct sw_shard *sh,
	uint32_t member, const struct sw_header *h, const uint8_t *payload,
	bool is_lent)
{
	const struct sw_rx_frame f = {.payload = payload, .is_lent = is_lent};

	return sw_shard_push(sh, member, h, &f, 1).verdict;
}

static inline enum sw_push_verdict push_n(struct fixture *x, uint32_t member,
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems,
	int32_t value)
{
	struct sw_header h = header(key, round, chunk, n_elems);
	int32_t elems[FULL];

	for (uint32_t i = 0; i < n_elems; i++)
		elems[i] = value;
	h.payload_crc = sw_data_crc(0, &h, elems, h.payload_len);
	return shard_push(&x->sh, member, &h, (uint8_t *)elems, false);
}

static inline enum sw_push_verdict push(struct fixture *x, uint32_t member,
	uint32_t round, uint32_t chunk, int32_t value)
{
	return push_n(x, member, 0, round, chunk, FULL, value);
}

static inline uint32_t class_for(const struct fixture *x, uint32_t member)
{
	return sw_shard_class(&x->sh, sw_bitmap_first(&x->sh.ready[member]));
}

/* Take the next result for @member of the tensor at @order; return its
 * bytes. */
static inline const void *take_bytes(
	struct fixture *x, uint32_t member, uint32_t order)
{
	struct sw_tx_frame out;
	uint32_t n = sw_shard_take(&x->sh, member, order, &out, &x->cell, 1);

	assert_int_equal(n, 1);
	x->h = out.header;
	return out.payload;
}

/* Take the next result for @member; return the value of its elements, all the
 * same, or -1 if no result is ready. */
static inline int32_t take(struct fixture *x, uint32_t member)
{
	uint32_t order = sw_bitmap_first(&x->sh.ready[member]);
	const int32_t *elems;

	if (order == SW_BITMAP_NONE)
		return -1;
	elems = take_bytes(x, member, order);
	for (uint32_t i = 1; i < x->h.payload_len / 4u; i++)
		assert_int_equal(elems[i], elems[0]);
	assert_int_equal(x->h.payload_crc,
		sw_data_crc(0, &x->h, elems, x->h.payload_len));
	return elems[0];
}

/* Report that the result (0, @round, @cell) arrived at @member or was lost.
 * Return whether the stream's window has moved so far that members must learn
 * it. */
static inline bool fate_of(struct fixture *x, uint32_t member, uint32_t cell,
	uint32_t round, bool is_lost)
{
	const struct sw_sent sent = {.cell = cell, .round = round};
	const struct sw_sent *all[] = {&sent};
	bool has_moved_far;

	assert_int_equal(
		sw_shard_fate(&x->sh, member, all, 1, is_lost, &has_moved_far),
		1);
	return has_moved_far;
}

static inline void fate(struct fixture *x, uint32_t member, bool is_lost)
{
	assert_int_equal(x->h.key, 0);
	fate_of(x, member, x->cell, x->h.round, is_lost);
}

/* Ask for (0, @round, 0) as @member. Return 'r' if the shard gives no ANSWER,
 * otherwise the initial of the answer. */
static inline char query(struct fixture *x, uint32_t member, uint32_t round)
{
	struct sw_query p = {0, round, 0};
	struct sw_answer a;

	if (!sw_shard_query(&x->sh, member, &p, &a))
		return 'r';
	assert_int_equal(a.round, round);
	return "WNG"[a.kind];
}

#endif
