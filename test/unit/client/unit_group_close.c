/* unit_group_close.c - libsumwire: what a closed group releases.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/client/group_rig.h"

enum {
	LARGE = 1 << 20,
	KINDS = 3,
	/* spare stages that a client keeps: a small and a large one */
	N_SPARES = 2,
};

static uint64_t call(struct scene *s, enum sw_coll_kind kind, uint64_t count)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;
	uint64_t h = 0;

	a.kind = kind;
	a.dtype = SW_I32;
	a.count = count;
	a.send = s->buffer;
	a.recv = kind == SW_ALL_GATHER ? s->buffer + LARGE : s->buffer;
	a.root = RIG_RANK;
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	return h;
}

/* Use streams of three kinds and stages of two sizes. */
static void use(struct scene *s)
{
	static const enum sw_coll_kind kinds[KINDS] = {
		SW_BARRIER, SW_ALL_REDUCE, SW_BCAST};

	for (uint32_t i = 0; i < KINDS; i++)
		assert_int_equal(sw_wait(s->c, call(s, kinds[i], 100)), 0);
	assert_int_equal(sw_wait(s->c, call(s, SW_ALL_REDUCE, LARGE)), 0);
}

/* Return the number of declared items that are not freed. */
static uint32_t n_items(struct scene *s)
{
	uint32_t n = 0;

	assert_true(sw_client_lock(s->c));
	for (uint32_t i = 0; i < s->c->n_tensors; i++)
		n += !s->c->tensors[i]->is_freed;
	sw_client_unlock(s->c);
	return n;
}

static bool is_gone(struct scene *s)
{
	bool is;

	assert_true(sw_client_lock(s->c));
	is = s->c->groups == s->other && !s->other->next;
	sw_client_unlock(s->c);
	return is;
}

static void await_gone(struct scene *s)
{
	for (int i = 0; i < RIG_WAIT_MS && !is_gone(s); i++)
		usleep(1000);
	assert_true(is_gone(s));
}

static atomic_uint n_refused;

/* Answer that a group has ended, but end none of its calls. */
static void end_nothing(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct rig *r = ctx;

	r->end = *end;
	sw_host_answer(r->host, id, 0, "");
}

static void *end_later(void *arg)
{
	usleep(1500000);
	rig_mute(arg, false);
	return NULL;
}

/* A short timeout of one wait does not shorten the close: the library waits for
 * the agent with its own timeout. */
static void close__waits_for_a_slow_agent(void **state)
{
	struct scene *s = *state;
	pthread_t thread;
	uint64_t h;

	use(s);
	rig_hold(s->r);
	s->r->host->p.events.on_end = end_nothing;
	rig_go(s->r);
	rig_mute(s->r, true);
	h = call(s, SW_BARRIER, 0);
	fails(s, sw_wait_for(s->c, h, 10), SW_ETIMEDOUT, "after 0.01 s");
	pthread_create(&thread, NULL, end_later, s->r);
	assert_int_equal(sw_group_close(s->g), 0);
	pthread_join(thread, NULL);
	fails(s, sw_wait_for(s->c, h, 10), SW_ECLOSED, "'dp' was closed");
	assert_true(is_gone(s));
}

/* If the agent is late, the group's memory is released when the agent lets go,
 * so repeated closes need as much memory as one. */
static void close__in_vain_gives_back_later(void **state)
{
	struct scene *s = *state;
	rig_hold(s->r);
	s->r->host->p.events.on_end = end_nothing;
	rig_go(s->r);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t h;

		use(s);
		rig_mute(s->r, true);
		h = call(s, SW_BARRIER, 0);
		s->c->settings.wait_timeout_s = 1;
		fails(s, sw_group_close(s->g), SW_ETIMEDOUT,
			"the agent still uses its buffers after 1 s");
		s->c->settings.wait_timeout_s = 30;
		rig_mute(s->r, false);
		assert_int_equal(sw_wait(s->c, h), SW_ECLOSED);
		await_gone(s);
		assert_int_equal(n_items(s), N_SPARES);
		assert_int_equal(sw_group_open(s->c, "dp", NULL, 0, &s->g), 0);
	}
}

/* Refuse the first free, accept the later ones. */
static void refuse_one(void *ctx, uint32_t id, uint32_t item)
{
	struct rig *r = ctx;

	if (atomic_fetch_add(&n_refused, 1))
		rig_on_free(ctx, id, item);
	else
		sw_host_answer(r->host, id, SW_EBUSY, "it is in use");
}

static void close__gives_back_what_it_can(void **state)
{
	struct scene *s = *state;

	use(s);
	rig_hold(s->r);
	s->r->host->p.events.on_free = refuse_one;
	rig_go(s->r);
	fails(s, sw_group_close(s->g), SW_EBUSY, "it is in use");
	assert_int_equal(n_items(s), 1 + N_SPARES);
	assert_true(is_gone(s));
}

/* Refuse to end a group. */
static void refuse_end(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct rig *r = ctx;

	r->end = *end;
	sw_host_answer(r->host, id, SW_EBUSY, "it is not to end");
}

/* The library's thread retries exactly once. */
static void close__that_the_agent_refuses(void **state)
{
	struct scene *s = *state;

	use(s);
	rig_hold(s->r);
	s->r->host->p.events.on_end = refuse_end;
	rig_go(s->r);
	fails(s, sw_group_close(s->g), SW_EBUSY, "it is not to end");
	await_gone(s);
}

/* Groups of other sizes need larger stages, and later groups reuse their
 * memory. */
static void close__leaves_stages_for_others(void **state)
{
	static const uint32_t two[] = {RIG_RANK, 0}, three[] = {0, 1, RIG_RANK};
	struct scene *s = *state;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t n_allocs = s->c->n_allocs;

		assert_int_equal(sw_group_close(s->g), 0);
		assert_int_equal(sw_group_open(s->c, "dp", i % 2 ? two : three,
					 i % 2 ? 2 : 3, &s->g),
			0);
		assert_int_equal(
			sw_wait(s->c, call(s, SW_ALL_GATHER, LARGE / 4)), 0);
		assert_int_equal(s->c->n_allocs, n_allocs + !i);
	}
	assert_int_equal(sw_group_close(s->g), 0);
	assert_int_equal(n_items(s), 1);
}

/* The group is released even if sw_group_close returns an error. */
static void close__after_the_job(void **state)
{
	struct scene *s = *state;
	uint64_t h;

	rig_mute(s->r, true);
	h = call(s, SW_BARRIER, 0);
	atomic_store(&s->r->end_err, SW_EPEER);
	assert_int_equal(sw_wait(s->c, h), SW_EPEER);
	fails(s, sw_group_close(s->g), SW_EPEER, "server 2 is silent");
	assert_true(is_gone(s));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(close__waits_for_a_slow_agent),
		CASE(close__in_vain_gives_back_later),
		CASE(close__gives_back_what_it_can),
		CASE(close__that_the_agent_refuses),
		CASE(close__leaves_stages_for_others),
		CASE(close__after_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
