/* unit_device_coll.c - sw_coll_device over the back end "fake" and a toy agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/cuda/coll_rig.h"

#include <sys/wait.h>

#include "pmd/host/host.h"

enum { MIB = 1 << 20, PIECE = MIB / 4, TRIES = 20 };

/* --- exactness --- */

static const uint64_t counts[] = {
	1, 100, 5000, PIECE / 4, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 5};

static void coll__is_exact(void **state)
{
	struct scene *s = *state;

	open_device(s, "fake:gbit=100,latency_us=5");
	for (uint32_t kind = 1; kind < SW_BARRIER; kind++)
		for (uint32_t i = 0; i < 8; i++) {
			struct sw_coll_args a =
				args_of(s, (enum sw_coll_kind)kind, counts[i]);

			coll_run(s, &a, kind + i);
		}
	assert_int_equal(s->n_lines, 0);
}

static void coll__of_each_dtype(void **state)
{
	static const enum sw_dtype dtypes[] = {SW_F32, SW_F64, SW_F16, SW_U8,
		SW_I32, SW_I8, SW_I64, SW_BOOL, SW_BF16};
	struct scene *s = *state;

	open_device(s, "fake");
	for (uint32_t i = 0; i < 9; i++)
		for (uint32_t k = 0; k < 3; k++) {
			struct sw_coll_args a = args_of(s,
				k < 2 ? SW_ALL_REDUCE : SW_REDUCE_SCATTER,
				k ? 131071 : 3);

			a.dtype = dtypes[i];
			coll_run(s, &a, i);
		}
}

static void coll__in_place(void **state)
{
	struct scene *s = *state;

	open_device(s, "fake");
	for (uint32_t i = 0; i < 8; i++) {
		struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, counts[i]);

		coll_fill(s, &a, i);
		memcpy(s->recv, s->send, bytes_in(&a));
		a.send = s->recv;
		coll_wait(s, coll_start(s, &a, NULL));
		coll_check(s, &a, i);
	}
}

/* Broadcast and reduce as a rank that is not the root. Broadcasts with
 * different roots start in the order of calls, even if one has nothing to
 * copy. */
static void coll__of_another_root(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_REDUCE, 2 * PIECE);
	uint64_t h[2];

	open_device(s, "fake:gbit=20");
	a.root = 1;
	coll_fill(s, &a, 0);
	coll_wait(s, coll_start(s, &a, NULL));
	assert_int_equal(s->recv[0], 0x55);
	a = args_of(s, SW_BCAST, PIECE);
	coll_fill(s, &a, 0);
	h[0] = coll_start(s, &a, NULL);
	a.root = 1;
	a.send = NULL;
	a.count = 1000;
	h[1] = coll_start(s, &a, NULL);
	coll_wait(s, h[0]);
	coll_wait(s, h[1]);
	pthread_mutex_lock(&s->r->lock);
	assert_int_equal(s->r->coll.root, 1); /* the last collective */
	pthread_mutex_unlock(&s->r->lock);
}

/* Collectives in device and host memory start in the group's order of calls. */
static void coll__beside_the_hosts(void **state)
{
	struct scene *s = *state;
	enum { N = 60, COUNT = 3000 };
	uint64_t h[N], left = N;
	uint32_t i;

	open_device(s, "fake:latency_us=50");
	for (i = 0; i < N * COUNT; i++)
		s->send[i] = given(i, 0);
	for (i = 0; i < N; i++) {
		struct sw_coll_args a =
			args_of(s, i % 5 ? SW_ALL_REDUCE : SW_BCAST, COUNT);

		a.dtype = SW_U8;
		a.send = s->send + i * COUNT;
		a.recv = s->recv + i * COUNT;
		if (i % 3)
			h[i] = coll_start(s, &a, NULL);
		else
			assert_int_equal(sw_coll(s->g, &a, &h[i]), 0);
	}
	for (; left; left--) {
		assert_int_equal(sw_wait_any(s->c, h, (uint32_t)left, &i), 0);
		h[i] = h[left - 1];
	}
	assert_memory_equal(s->send, s->recv, N * COUNT);
}

/* --- streams --- */

static void nap(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* For a stream: block until the bool is true. */
static void await_true(void *arg)
{
	while (!atomic_load((_Atomic bool *)arg))
		nap(1);
}

/* Produce the tensor slowly. */
static void produce(void *arg)
{
	struct scene *s = arg;

	await_true((void *)&s->is_made);
	for (uint64_t i = 0; i < MIB; i++)
		s->send[i] = given(i, 3);
}

/* Keep the stream busy until the group is aborted. */
static void nap_only(void *arg)
{
	(void)arg;
	nap(200);
}

/* A collective of another kind does not wait for this stream. */
static void coll__waits_for_its_stream(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, PIECE);
	struct sw_coll_args b = {.size = sizeof(b), .kind = SW_BARRIER};
	struct sw_fake_stream *stream;
	_Atomic bool is_over = false;
	uint64_t h;

	open_device(s, "fake");
	stream = sw_fake_stream_open(s->d->back);
	coll_fill(s, &a, 0);
	sw_fake_stream_run(stream, produce, s);
	h = coll_start(s, &a, stream);
	coll_wait(s, coll_start(s, &b, NULL));
	assert_int_equal(sw_poll(s->c, h), SW_EAGAIN);
	atomic_store(&s->is_made, true);
	coll_wait(s, h);
	coll_check(s, &a, 3);
	/* a barrier waits for its stream */
	sw_fake_stream_run(stream, await_true, (void *)&is_over);
	h = coll_start(s, &b, stream);
	assert_int_equal(sw_poll(s->c, h), SW_EAGAIN);
	atomic_store(&is_over, true);
	coll_wait(s, h);
	sw_fake_stream_close(stream);
}

static void set(void *arg)
{
	atomic_store((_Atomic bool *)arg, true);
}

static void hold__is_of_the_stream(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 3 * PIECE);
	struct sw_fake_stream *stream;
	_Atomic bool has_gone_on = false;
	uint64_t h;

	open_device(s, "fake");
	stream = sw_fake_stream_open(s->d->back);
	assert_int_equal(sw_device_can_hold(s->d, stream), 0);
	for (uint32_t i = 0; i < 3; i++) { /* words are reused */
		coll_fill(s, &a, i);
		rig_mute(s->r, true);
		has_gone_on = false;
		h = coll_start(s, &a, stream);
		assert_int_equal(sw_coll_hold(s->d, h, stream), 0);
		sw_fake_stream_run(stream, set, (void *)&has_gone_on);
		nap(20);
		assert_false(has_gone_on);
		rig_mute(s->r, false);
		sw_fake_stream_wait(stream);
		assert_true(has_gone_on);
		coll_check(s, &a, i);
		assert_int_equal(sw_coll_hold(s->d, h, stream), 0);
		coll_wait(s, h);
		assert_int_equal(sw_coll_hold(s->d, h, stream), SW_EINVAL);
	}
	assert_int_equal(s->n_lines, 0);
	sw_fake_stream_close(stream);
}

/* If streams cannot be held, the caller waits, and one line is logged. */
static void hold__is_of_the_caller(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 3 * PIECE);

	open_device(s, "fake:no_hold,gbit=10");
	s->is_mute_until_said = true;
	rig_mute(s->r, true);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t h;

		coll_fill(s, &a, i);
		h = coll_start(s, &a, NULL);
		assert_int_equal(sw_coll_hold(s->d, h, NULL), 0);
		coll_check(s, &a, i);
		coll_wait(s, h);
	}
	assert_int_equal(s->n_lines, 1);
	assert_contains(s->line, "streams cannot wait for a sum");
	assert_int_equal(sw_device_can_hold(s->d, NULL), SW_ENOENT);
	assert_int_equal(s->n_lines, 1);
}

/* Return whether a small all_gather overtook a large reduce_scatter at every
 * stage. */
static bool small_passes(struct scene *s)
{
	struct sw_coll_args big = args_of(s, SW_REDUCE_SCATTER, 2 * PIECE);
	struct sw_coll_args small = args_of(s, SW_ALL_GATHER, 64);
	uint64_t h, begun, before = sw_fake_copies(s->d->back, SW_BACK_OUT);
	bool has_passed, is_open;

	coll_fill(s, &big, 0);
	h = coll_start(s, &big, NULL);
	while (sw_fake_copies(s->d->back, SW_BACK_OUT) == before)
		nap(1);
	small.recv = s->recv + 4 * MIB;
	begun = sw_fake_copies(s->d->back, SW_BACK_OUT);
	coll_wait(s, coll_start(s, &small, NULL));
	/* up to 5 of some 8 more copies may start meanwhile */
	has_passed = sw_fake_copies(s->d->back, SW_BACK_OUT) <= begun + 5;
	is_open = sw_poll(s->c, h) == SW_EAGAIN;
	if (is_open)
		coll_wait(s, h);
	coll_check(s, &big, 0);
	return has_passed && is_open;
}

static void copies__by_class(void **state)
{
	struct scene *s = *state;
	uint32_t tries = 1;

	open_device(s, "fake:mbit=400"); /* a piece takes 20 ms */
	/* other processes may take our core now and then */
	while (!small_passes(s))
		assert_true(tries++ < TRIES);
}

/* --- ends --- */

static void device__is_not_pinned(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 3 * PIECE);

	open_device(s, "fake:no_pin");
	coll_run(s, &a, 1);
	coll_run(s, &a, 2);
	assert_int_equal(s->n_lines, 1);
	assert_contains(s->line, "rank 3: fake device 0: shared memory cannot "
				 "be pinned (pinning is switched off)");
}

/* The agent learns why the device failed; streams that wait are released. */
static void device__lost(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 8 * PIECE);
	struct sw_fake_stream *stream;
	_Atomic bool are_open = false;
	uint64_t h[3];

	open_device(s, "fake:lost_after=5");
	stream = sw_fake_stream_open(s->d->back);
	sw_fake_stream_run(stream, await_true, (void *)&are_open);
	for (uint32_t i = 0; i < 3; i++)
		h[i] = coll_start(s, &a, stream);
	atomic_store(&are_open, true);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(sw_wait(s->c, h[i]), SW_EDEVICE);
		assert_contains(sw_last_error(s->c), "rank 3: fake device 0: ");
	}
	rig_await(s->r, 1, SW_HOST_DIED,
		"fake device 0: device lost by option lost_after");
	assert_int_equal(
		sw_coll_device(s->d, s->g, &a, NULL, &h[0]), SW_EDEVICE);
	assert_contains(sw_last_error(s->c), "device lost");
	sw_fake_stream_close(stream);
}

static void agent__goes(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 8 * PIECE);
	struct sw_fake_stream *stream;
	_Atomic bool has_gone_on = false;
	uint64_t h;

	open_device(s, "fake");
	stream = sw_fake_stream_open(s->d->back);
	rig_mute(s->r, true);
	h = coll_start(s, &a, stream);
	assert_int_equal(sw_coll_hold(s->d, h, stream), 0);
	sw_fake_stream_run(stream, set, (void *)&has_gone_on);
	atomic_store(&s->r->end_err, SW_ESERVER);
	assert_int_equal(sw_wait(s->c, h), SW_ESERVER);
	assert_contains(sw_last_error(s->c), "server 2 is silent");
	sw_fake_stream_wait(stream);
	assert_true(has_gone_on);
	sw_fake_stream_close(stream);
}

/* The group ends with collectives in different stages. */
static void group__is_aborted(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 8 * PIECE);
	struct sw_fake_stream *stream;
	uint64_t h[4];

	open_device(s, "fake:gbit=1");
	stream = sw_fake_stream_open(s->d->back);
	rig_mute(s->r, true);
	h[0] = coll_start(s, &a, NULL);
	h[1] = coll_start(s, &a, NULL);
	sw_fake_stream_run(stream, nap_only, NULL);
	h[2] = coll_start(s, &a, stream);
	a.kind = SW_ALL_GATHER;
	a.count = 100;
	h[3] = coll_start(s, &a, NULL);
	nap(5);
	assert_int_equal(sw_group_abort(s->g, SW_EABORTED, "enough"), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sw_wait(s->c, h[i]), SW_EABORTED);
		assert_contains(sw_last_error(s->c), "enough");
	}
	assert_int_equal(
		sw_coll_device(s->d, s->g, &a, NULL, &h[0]), SW_EABORTED);
	sw_fake_stream_close(stream);
}

static void device__is_closed(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 8 * PIECE);
	uint64_t h;

	open_device(s, "fake:gbit=1");
	rig_mute(s->r, true);
	h = coll_start(s, &a, NULL);
	nap(5);
	sw_device_close(&s->d);
	assert_int_equal(sw_wait(s->c, h), SW_EABORTED);
	assert_contains(sw_last_error(s->c), "its device was closed");
}

/* Play an agent that ends no call of a group. */
static void end_nothing(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct rig *r = ctx;

	r->end = *end;
	sw_host_answer(r->host, id, 0, "");
}

/* Is a call waiting for the agent in the ring? */
static bool has_put(const struct scene *s)
{
	bool has;

	assert_true(sw_client_lock(s->c));
	has = sw_spsc_room(&s->c->colls) < s->c->colls.size;
	sw_client_unlock(s->c);
	return has;
}

/* A waiting stream is released even if the agent has not returned the buffers;
 * nothing is copied to them afterwards. */
static void device__is_closed_in_vain(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, PIECE);
	_Atomic bool has_gone_on = false;
	struct sw_fake_stream *stream;
	uint64_t h;

	open_device(s, "fake");
	stream = sw_fake_stream_open(s->d->back);
	s->c->settings.wait_timeout_s = 1;
	rig_hold(s->r);
	s->r->host->p.events.on_end = end_nothing;
	rig_go(s->r);
	rig_mute(s->r, true);
	coll_fill(s, &a, 0);
	h = coll_start(s, &a, stream);
	assert_int_equal(sw_coll_hold(s->d, h, stream), 0);
	sw_fake_stream_run(stream, set, (void *)&has_gone_on);
	while (!has_put(s))
		nap(1);
	sw_device_close(&s->d);
	sw_fake_stream_wait(stream);
	assert_true(has_gone_on);
	sw_fake_stream_close(stream);
	s->c->settings.wait_timeout_s = 30;
	rig_mute(s->r, false);
	assert_int_equal(sw_wait(s->c, h), SW_EABORTED);
	assert_int_equal(s->recv[0], 0x55);
}

static struct {
	struct scene *s;
	_Atomic bool is_asked;
} late;

static bool is_claimed(const struct scene *s)
{
	bool is;

	assert_true(sw_client_lock(s->c));
	is = s->c->turn.n_claims > 0;
	sw_client_unlock(s->c);
	return is;
}

/* Play an agent that answers only when another thread also has a request. */
static void end_late(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct rig *r = ctx;

	r->end = *end;
	atomic_store(&late.is_asked, true);
	while (!is_claimed(late.s))
		nap(1);
	atomic_store(&r->is_aborting, true);
	rig_kick(r);
	sw_host_answer(r->host, id, 0, "");
}

static void *close_group(void *arg)
{
	struct scene *s = arg;

	return sw_group_close(s->g) ? "it was not closed" : NULL;
}

/* If the group's close is in progress, closing the device sends nothing more
 * about the group, whose stream may be freed. */
static void device__is_closed_while_its_group_is(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, PIECE);
	pthread_t thread;
	void *why;
	uint64_t h;

	open_device(s, "fake");
	late.s = s;
	atomic_store(&late.is_asked, false);
	rig_hold(s->r);
	s->r->host->p.events.on_end = end_late;
	rig_go(s->r);
	rig_mute(s->r, true);
	h = coll_start(s, &a, NULL);
	while (!has_put(s))
		nap(1);
	pthread_create(&thread, NULL, close_group, s);
	while (!atomic_load(&late.is_asked))
		nap(1);
	sw_device_close(&s->d);
	pthread_join(thread, &why);
	assert_null(why);
	assert_int_equal(sw_wait(s->c, h), SW_ECLOSED);
	assert_int_equal(s->r->end.what, SW_EDGE_CLOSE_GROUP);
	assert_int_equal(sw_group_open(s->c, "other", NULL, 0, &s->g), 0);
	rig_mute(s->r, false);
	a.kind = SW_BARRIER;
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	coll_wait(s, h);
}

/* Closing the client with an open collective releases everything. */
static void client__is_closed(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 8 * PIECE);

	open_device(s, "fake:gbit=1");
	coll_start(s, &a, NULL);
	s->d = NULL;
	sw_close(&s->c);
}

static void coll__refuses(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 1), bad = a;
	struct sw_client *other = rig_client(s->r);
	struct sw_group *g;
	uint64_t h;
	int code;
	pid_t pid;

	open_device(s, "fake");
	assert_int_equal(sw_group_open(other, "all", NULL, 0, &g), 0);
	assert_int_equal(sw_coll_device(s->d, g, &a, NULL, &h), SW_EINVAL);
	assert_contains(sw_last_error(s->c), "another client");
	bad.recv = NULL;
	assert_int_equal(sw_coll_device(s->d, s->g, &bad, NULL, &h), SW_EINVAL);
	bad = a;
	bad.size = 4;
	assert_int_equal(sw_coll_device(s->d, s->g, &bad, NULL, &h), SW_EINVAL);
	assert_int_equal(sw_coll_hold(s->d, 99, NULL), SW_EINVAL);
	rig_mute(s->r, true);
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	assert_int_equal(sw_coll_hold(s->d, h, NULL), SW_EINVAL);
	rig_mute(s->r, false);
	coll_wait(s, h);
	pid = rig_fork(s->r);
	if (!pid)
		_exit(sw_coll_device(s->d, s->g, &a, NULL, &h) != SW_ECLOSED);
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_int_equal(code, 0);
	sw_close(&other);
	coll_run(s, &a, 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(coll__is_exact),
		CASE(coll__of_each_dtype),
		CASE(coll__in_place),
		CASE(coll__of_another_root),
		CASE(coll__beside_the_hosts),
		CASE(coll__waits_for_its_stream),
		CASE(hold__is_of_the_stream),
		CASE(hold__is_of_the_caller),
		CASE(copies__by_class),
		CASE(device__is_not_pinned),
		CASE(device__lost),
		CASE(agent__goes),
		CASE(group__is_aborted),
		CASE(device__is_closed),
		CASE(device__is_closed_in_vain),
		CASE(device__is_closed_while_its_group_is),
		CASE(client__is_closed),
		CASE(coll__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
