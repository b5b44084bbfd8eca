/* unit_stage.c - libsumwire: staged collectives in pieces, several threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "pmd/client/client_device.h"
#include "pmd/client/client_push.h"
#include "pmd/host/host.h"
#include <sumwire/coll.h>

enum { PIECE = (1 << 20) / 4, COUNT_MAX = 3 * PIECE + 5 };

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_group *g; /* the group of all ranks */
	float *shared[2];   /* memory of sw_alloc that holds all parts */
	float *own[2];      /* other memory of the same size */
};

static int scene_open(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	size_t bytes = 4ULL * RIG_SIZE * (COUNT_MAX + 16);

	s->r = rig_open(&(struct rig_how){.quota_bytes = 1ULL << 30});
	s->c = rig_client(s->r);
	for (uint32_t i = 0; i < 2; i++) {
		void *p;

		assert_int_equal(sw_alloc(s->c, bytes, &p), 0);
		s->shared[i] = p;
		s->own[i] = malloc(bytes);
	}
	assert_int_equal(sw_group_open(s->c, "all", NULL, 0, &s->g), 0);
	*state = s;
	return 0;
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	sw_close(&s->c);
	rig_close(s->r);
	free(s->own[0]);
	free(s->own[1]);
	free(s);
	return 0;
}

static float given(uint64_t i)
{
	return (float)(i % 9973) + 1;
}

static uint64_t n_in(const struct sw_coll_args *a)
{
	return a->count * (a->kind == SW_REDUCE_SCATTER ? RIG_SIZE : 1);
}

static uint64_t n_out(const struct sw_coll_args *a)
{
	return a->count * (a->kind == SW_ALL_GATHER ? RIG_SIZE : 1);
}

static void fill(const struct sw_coll_args *a)
{
	float *send = (float *)(uintptr_t)a->send;

	memset(a->recv, 0, 4 * n_out(a));
	for (uint64_t i = 0; i < n_in(a); i++)
		send[i] = given(i);
}

/* Check the result that the toy agent computes. */
static void check(const struct sw_coll_args *a)
{
	const float *recv = a->recv;
	uint64_t from = a->kind == SW_REDUCE_SCATTER ? RIG_RANK * a->count : 0;

	if (a->kind == SW_REDUCE && a->root != RIG_RANK)
		return;
	for (uint64_t i = 0; i < n_out(a); i++)
		if (recv[i] != given(from + i % a->count))
			fail_msg("kind %d, %llu elements: %llu is %f", a->kind,
				(unsigned long long)a->count,
				(unsigned long long)i, (double)recv[i]);
}

static struct sw_coll_args args_of(
	const struct scene *s, enum sw_coll_kind kind, uint32_t where)
{
	return (struct sw_coll_args){.size = sizeof(struct sw_coll_args),
		.kind = kind,
		.dtype = SW_F32,
		.root = RIG_RANK,
		.send = where & 1 ? s->shared[0] : s->own[0],
		.recv = where & 2 ? s->shared[1] : s->own[1]};
}

/* --- every kind, for any place and size of the buffers --- */

static const uint64_t counts[] = {
	1, 100, 5000, PIECE / 4, PIECE - 1, PIECE, PIECE + 1, COUNT_MAX};

static void coll__of_any_size_from_anywhere(void **state)
{
	struct scene *s = *state;
	uint64_t h;

	for (uint32_t kind = 1; kind < SW_BARRIER; kind++)
		for (uint32_t i = 0; i < 4 * 8; i++) {
			struct sw_coll_args a =
				args_of(s, (enum sw_coll_kind)kind, i % 4);

			a.count = counts[i / 4];
			fill(&a);
			assert_int_equal(sw_coll(s->g, &a, &h), 0);
			assert_int_equal(sw_wait(s->c, h), 0);
			check(&a);
		}
}

static void coll__in_place(void **state)
{
	struct scene *s = *state;
	uint64_t h;

	for (uint32_t i = 0; i < 8; i++) {
		struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 0);

		a.count = counts[i];
		fill(&a);
		a.recv = s->own[0];
		assert_int_equal(sw_coll(s->g, &a, &h), 0);
		assert_int_equal(sw_wait(s->c, h), 0);
		check(&a);
	}
}

/* Broadcast and reduce as a rank that is not the root. */
static void coll__of_another_root(void **state)
{
	struct scene *s = *state;
	uint64_t h;

	for (uint32_t i = 0; i < 2 * 8; i++) {
		struct sw_coll_args a =
			args_of(s, i % 2 ? SW_BCAST : SW_REDUCE, 0);

		a.count = counts[i / 2];
		a.root = 1;
		fill(&a);
		memset(a.recv, 0x55, 4 * a.count);
		assert_int_equal(sw_coll(s->g, &a, &h), 0);
		assert_int_equal(sw_wait(s->c, h), 0);
		if (a.kind == SW_REDUCE) /* must be unchanged */
			assert_int_equal(*(uint32_t *)a.recv, 0x55555555);
	}
}

/* --- parts at addresses of their own --- */

enum { GAP = 48 / 4 };

/* Return the place of part @i: in own memory reversed and apart, or in shared
 * memory with even gaps, reversed, or with uneven gaps. */
static float *part_at(
	const struct scene *s, uint32_t how, uint32_t i, uint64_t count)
{
	uint32_t last = RIG_SIZE - 1 - i;

	switch (how) {
	case 0:
		return s->own[1] + last * (count + 7);
	case 1:
		return s->shared[1] + i * (count + GAP);
	case 2:
		return s->shared[1] + last * count;
	default:
		return s->shared[1] + i * (count + GAP) + (i == 2);
	}
}

static void check_parts(
	struct scene *s, enum sw_coll_kind kind, uint32_t how, uint64_t count)
{
	bool gathers = kind == SW_ALL_GATHER, fits = true;
	struct sw_coll_args a = args_of(s, kind, 0);
	void *parts[RIG_SIZE];
	uint64_t h, stride;

	a.count = count;
	a.parts = parts;
	if (gathers)
		a.recv = NULL;
	else
		a.send = NULL;
	for (uint32_t i = 0; i < RIG_SIZE; i++) {
		float *part = part_at(s, how, i, count);

		parts[i] = part;
		for (uint64_t k = 0; k < count; k++)
			part[k] = gathers ? 0 : given(i * count + k);
	}
	for (uint64_t k = 0; gathers && k < count; k++)
		s->own[0][k] = given(k);
	if (!gathers)
		a.recv = s->own[0];
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	for (uint32_t i = 0; gathers && i < RIG_SIZE; i++)
		for (uint64_t k = 0; k < count; k++)
			fits &= ((float *)parts[i])[k] == given(k);
	for (uint64_t k = 0; !gathers && k < count; k++)
		fits &= s->own[0][k] == given(RIG_RANK * count + k);
	if (!fits)
		fail_msg("kind %d, case %u, %llu elements", kind, how,
			(unsigned long long)count);
	/* only shared parts with even gaps reach the agent without staging */
	pthread_mutex_lock(&s->r->lock);
	stride = s->r->coll.stride;
	pthread_mutex_unlock(&s->r->lock);
	if (how == 1)
		assert_int_equal(stride, 4 * (count + GAP));
	else
		assert_true(stride <= 4 * count);
}

static void parts__lie_anywhere(void **state)
{
	static const enum sw_coll_kind kinds[] = {
		SW_REDUCE_SCATTER, SW_ALL_GATHER};

	for (uint32_t i = 0; i < 2 * 4 * 8; i++)
		check_parts(*state, kinds[i % 2], i / 2 % 4, counts[i / 8]);
}

static void barrier__needs_nothing(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = {.size = sizeof(a), .kind = SW_BARRIER};
	uint64_t h;

	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(sw_coll(s->g, &a, &h), 0);
		assert_int_equal(sw_wait(s->c, h), 0);
	}
}

/* --- many at once, ways to wait --- */

static void coll__many_are_open(void **state)
{
	struct scene *s = *state;
	enum { N = 200, COUNT = 9000 };
	uint64_t h[N];
	uint32_t left = N, i;

	for (i = 0; i < N; i++) {
		struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, i % 4);

		a.count = COUNT;
		a.send = (float *)(uintptr_t)a.send + i * COUNT / 10;
		a.recv = (float *)a.recv + i * COUNT;
		assert_int_equal(sw_coll(s->g, &a, &h[i]), 0);
	}
	for (; left; left--) {
		assert_int_equal(sw_wait_any(s->c, h, left, &i), 0);
		assert_in_range(i, 0, left - 1);
		h[i] = h[left - 1];
	}
	assert_int_equal(sw_wait_any(s->c, h, 0, &i), SW_EINVAL);
}

static void event_fd__says_that_one_ended(void **state)
{
	struct scene *s = *state;
	struct pollfd fd = {.events = POLLIN};
	uint64_t h, n;

	assert_int_equal(sw_event_fd(s->c, &fd.fd), 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, i % 4);

		a.count = counts[i % 8];
		fill(&a);
		assert_int_equal(sw_coll(s->g, &a, &h), 0);
		assert_int_equal(poll(&fd, 1, RIG_WAIT_MS), 1);
		assert_int_equal(read(fd.fd, &n, 8), 8);
		assert_int_equal(sw_poll(s->c, h), 0);
		check(&a);
	}
}

/* --- threads --- */

struct worker {
	pthread_t thread;
	struct scene *s;
	struct sw_group *g;
	uint32_t i;
	float *send, *recv;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t h;

	for (uint32_t i = 0; i < 60; i++) {
		struct sw_coll_args a = {.size = sizeof(a),
			.kind = i % 3 ? SW_ALL_REDUCE : SW_ALL_GATHER,
			.dtype = SW_F32,
			.count = 1 + i * 7919 * (w->i + 1) % PIECE,
			.send = w->send,
			.recv = w->recv};

		fill(&a);
		if (sw_coll(w->g, &a, &h) || sw_wait(w->s->c, h))
			return "failed";
		check(&a);
	}
	return NULL;
}

static void threads__each_its_group(void **state)
{
	struct scene *s = *state;
	struct worker w[4];
	char name[8];

	for (uint32_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		w[i] = (struct worker){.s = s,
			.i = i,
			.send = malloc(4ULL * RIG_SIZE * PIECE),
			.recv = malloc(4ULL * RIG_SIZE * PIECE)};
		assert_int_equal(
			sw_group_open(s->c, name, NULL, 0, &w[i].g), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	for (uint32_t i = 0; i < 4; i++) {
		void *why;

		pthread_join(w[i].thread, &why);
		assert_null(why);
		free(w[i].send);
		free(w[i].recv);
	}
}

static atomic_bool may_declare;

/* Play an agent that is slow to declare. */
static void declare_late(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	while (!atomic_load(&may_declare))
		usleep(100);
	rig_on_declare(ctx, id, batch, tensors, n);
}

struct waiter {
	pthread_t thread;
	struct sw_client *c;
	uint64_t handle;
	atomic_bool has_ended;
	int err;
};

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	w->err = sw_wait(w->c, w->handle);
	atomic_store(&w->has_ended, true);
	return NULL;
}

static void *declare_another(void *arg)
{
	struct waiter *w = arg;

	w->err = rig_tensor(w->c, "late", 1) ? 0 : SW_ENOMEM;
	return NULL;
}

static void await_users(
	struct sw_client *c, const uint32_t *count, const bool *is)
{
	for (bool yes = false; !yes; usleep(1000)) {
		assert_true(sw_client_lock(c));
		yes = count ? *count : *is;
		sw_client_unlock(c);
	}
}

/* While the leading thread waits for the agent's answer, it also collects ends
 * for other threads. */
static void threads__one_declares(void **state)
{
	struct scene *s = *state;
	struct waiter w = {.c = s->c}, d = {.c = s->c};
	struct sw_tensor_desc desc = RIG_DESC("grows", 1024, SW_F32, 0);
	struct sw_tensor *t;
	bool was_in_time;

	assert_int_equal(sw_client_declare_growing(s->c, &desc, 1, &t), 0);
	assert_int_equal(sw_client_push(s->c, t, 0, 1, 4096, &w.handle), 0);
	rig_hold(s->r);
	s->r->host->p.events.on_declare = declare_late;
	rig_go(s->r);
	pthread_create(&d.thread, NULL, declare_another, &d);
	await_users(s->c, NULL, &s->c->turn.is_asleep);
	pthread_create(&w.thread, NULL, wait_for_it, &w);
	await_users(s->c, &s->c->turn.n_waiting, NULL);
	assert_int_equal(sw_client_grow(s->c, t, 0), 0);
	for (int i = 0; i < RIG_WAIT_MS / 2 && !atomic_load(&w.has_ended); i++)
		usleep(1000);
	was_in_time = atomic_load(&w.has_ended);
	atomic_store(&may_declare, true);
	pthread_join(w.thread, NULL);
	pthread_join(d.thread, NULL);
	assert_true(was_in_time);
	assert_int_equal(w.err, 0);
	assert_int_equal(d.err, 0);
}

/* --- ends --- */

static bool knows_deadline(struct sw_client *c)
{
	bool knows;

	assert_true(sw_client_lock(c));
	knows = c->turn.is_idle && c->turn.until_ns == c->calls.expire_ns;
	sw_client_unlock(c);
	return knows;
}

static uint64_t thread_cpu_ns(const struct sw_client *c)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(c->turn.thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void call(struct scene *s, const struct sw_coll_args *a)
{
	uint64_t h;

	assert_int_equal(sw_coll(s->g, a, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
}

/* Return the CPU time that the library's thread takes for 2000 calls. */
static uint64_t thread_ns(struct scene *s, const struct sw_coll_args *a)
{
	uint64_t before_ns = thread_cpu_ns(s->c);

	for (uint32_t i = 0; i < 2000; i++)
		call(s, a);
	return thread_cpu_ns(s->c) - before_ns;
}

/* A group with a time limit starts the library's thread, which only wakes at
 * the deadline. Waiting threads do the work of their collectives themselves. */
static void thread__rests_while_others_wait(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 0);
	uint32_t tries = 1;

	a.count = 100;
	assert_int_equal(sw_group_set_timeout(s->g, 60), 0);
	do {
		call(s, &a);
		usleep(1000);
	} while (!knows_deadline(s->c));
	/* other processes may take our core */
	while (thread_ns(s, &a) > 1000000)
		assert_true(tries++ < 10);
}

/* The library's thread is running. */
static void fork__child_has_nothing(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 0);
	uint64_t h;
	int status;
	pid_t pid;

	a.count = COUNT_MAX;
	fill(&a);
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	pid = fork();
	if (!pid) {
		struct sw_client *c = s->c;
		bool is_right = sw_wait(c, h) == SW_ECLOSED &&
				sw_coll(s->g, &a, &h) == SW_ECLOSED;

		sw_close(&c);
		_exit(is_right ? 0 : 1);
	}
	assert_int_equal(sw_wait(s->c, h), 0);
	check(&a);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void close__with_work_open(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 0);
	uint64_t h[8];

	a.count = COUNT_MAX;
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(sw_coll(s->g, &a, &h[i]), 0);
	sw_leave(s->c);
	for (uint32_t i = 0; i < 8; i++) {
		int err = sw_wait(s->c, h[i]);

		assert_true(err == SW_ECLOSED || err == 0);
	}
}

static void coll__agent_hangs_up(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = args_of(s, SW_ALL_REDUCE, 0);
	uint64_t h[8];

	a.count = COUNT_MAX;
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(sw_coll(s->g, &a, &h[i]), 0);
	atomic_store(&s->r->end_err, SW_EPEER);
	for (uint32_t i = 0; i < 8; i++) {
		int err = sw_wait(s->c, h[i]);

		assert_true(err == SW_EPEER || err == 0);
	}
}

/* The message names the ranks and this rank's own call of that number. */
static void expect_differ(struct sw_client *c)
{
	uint32_t rank, other;

	assert_string_equal(sw_last_error(c),
		"they differ; here: all_reduce of 786437 x f32");
	assert_int_equal(sw_last_conflict(c, &rank, &other), SW_CONFLICT_CALL);
	assert_int_equal(rank, 3);
	assert_int_equal(other, 1);
}

static void coll__fails_in_pieces(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.status = SW_EMISMATCH});
	struct scene s = {.r = r, .c = rig_client(r)};
	struct sw_coll_args a = {.size = sizeof(a),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.count = COUNT_MAX};
	uint64_t h;

	a.recv = malloc(4 * a.count);
	a.send = a.recv;
	memset(a.recv, 0, 4 * a.count);
	assert_int_equal(sw_group_open(s.c, "all", NULL, 0, &s.g), 0);
	assert_int_equal(sw_coll(s.g, &a, &h), 0);
	assert_int_equal(sw_wait(s.c, h), SW_EMISMATCH);
	expect_differ(s.c);
	assert_int_equal(sw_coll(s.g, &a, &h), SW_EMISMATCH);
	expect_differ(s.c);
	assert_int_equal(sw_wait(s.c, h), SW_EINVAL);
	assert_int_equal(sw_last_conflict(s.c, &(uint32_t){0}, &(uint32_t){0}),
		SW_CONFLICT_NONE);
	sw_close(&s.c);
	rig_close(r);
	free(a.recv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(coll__of_any_size_from_anywhere,
			scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			coll__in_place, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			coll__of_another_root, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			parts__lie_anywhere, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			barrier__needs_nothing, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			coll__many_are_open, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			event_fd__says_that_one_ended, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			threads__each_its_group, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			threads__one_declares, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(thread__rests_while_others_wait,
			scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			fork__child_has_nothing, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			close__with_work_open, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			coll__agent_hangs_up, scene_open, scene_close),
		cmocka_unit_test(coll__fails_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
