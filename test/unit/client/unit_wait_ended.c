/* unit_wait_ended.c - libsumwire: a thread that waits for any end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "pmd/client/client_group.h"
#include "pmd/host/host.h"
#include "test/support/unit.h"
#include <sumwire/coll.h>

enum { N = 32, COUNT_MAX = 3 << 18 };

struct scene {
	struct rig *r;
	struct sw_client *c;
	struct sw_group *g; /* the group of all ranks */
	float *values;
};

static int scene_open(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->r = rig_open(&(struct rig_how){.quota_bytes = 1ULL << 30});
	s->c = rig_client(s->r);
	s->values = calloc(N, 4 * COUNT_MAX);
	assert_int_equal(sw_group_open(s->c, "all", NULL, 0, &s->g), 0);
	*state = s;
	return 0;
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	sw_close(&s->c);
	rig_close(s->r);
	free(s->values);
	free(s);
	return 0;
}

/* Start call @i; large calls have several pieces. */
static uint64_t call(struct scene *s, uint32_t i)
{
	float *values = s->values + (uint64_t)i * COUNT_MAX;
	struct sw_coll_args a = {.size = sizeof(a),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.count = i % 3 ? 100 : COUNT_MAX,
		.send = values,
		.recv = values};
	uint64_t h;

	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	return h;
}

struct watcher {
	pthread_t thread;
	struct sw_client *c;
	atomic_uint n;
	uint64_t handles[N];
};

static void *watch(void *arg)
{
	struct watcher *w = arg;
	uint64_t h;
	int err = sw_wait_ended(w->c, &h);

	for (; h; err = sw_wait_ended(w->c, &h)) {
		if (err)
			continue;
		w->handles[w->n] = h;
		w->n++; /* publish n after its handle */
	}
	return err == SW_ECLOSED ? NULL : "it did not hear of the end";
}

static struct watcher *watcher_open(struct sw_client *c)
{
	struct watcher *w = calloc(1, sizeof(*w));

	w->c = c;
	pthread_create(&w->thread, NULL, watch, w);
	return w;
}

static void watcher_await(struct watcher *w, uint32_t n)
{
	for (int i = 0; i < RIG_WAIT_MS && w->n < n; i++)
		usleep(1000);
	assert_int_equal(w->n, n);
}

/* Leave; the watcher must return at once. */
static void watcher_close(struct watcher *w)
{
	time_t start = time(NULL);
	void *why;

	sw_leave(w->c);
	pthread_join(w->thread, &why);
	assert_null(why);
	assert_in_range(time(NULL) - start, 0, RIG_WAIT_MS / 2000);
	free(w);
}

/* Some calls end while others are open. */
static void wait_ended__gives_each_once(void **state)
{
	struct scene *s = *state;
	struct watcher *w = watcher_open(s->c);
	uint64_t h[N];

	for (uint32_t i = 0; i < N; i++) {
		h[i] = call(s, i);
		if (i % 4 > 1)
			watcher_await(w, i + 1);
	}
	watcher_await(w, N);
	assert_memory_equal(w->handles, h, sizeof(h));
	assert_int_equal(sw_poll(s->c, h[0]), SW_EINVAL);
	watcher_close(w);
}

/* Calls that ended before anyone waited are also reported, in the order of
 * their ends. */
static void wait_ended__in_the_order_of_ends(void **state)
{
	struct scene *s = *state;
	uint64_t h[N], got;

	for (uint32_t i = 0; i < N; i++)
		h[i] = call(s, i);
	assert_int_equal(sw_wait(s->c, h[N - 1]), 0);
	for (uint32_t i = 0; i < N - 1; i++) {
		assert_int_equal(sw_wait_ended(s->c, &got), 0);
		assert_int_equal(got, h[i]);
	}
	s->c->settings.wait_timeout_s = 1;
	assert_int_equal(sw_wait_ended(s->c, &got), SW_ETIMEDOUT);
	assert_int_equal(got, 0);
}

/* When the attachment ends, the open calls are reported in order. */
static void wait_ended__agent_hangs_up(void **state)
{
	struct scene *s = *state;
	uint64_t h[4], got;

	rig_mute(s->r, true);
	for (uint32_t i = 0; i < 4; i++)
		h[i] = call(s, i + 1);
	atomic_store(&s->r->end_err, SW_EPEER);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sw_wait_ended(s->c, &got), SW_EPEER);
		assert_int_equal(got, h[i]);
	}
	assert_int_equal(sw_wait_ended(s->c, &got), SW_EPEER);
	assert_int_equal(got, 0);
}

struct caller {
	pthread_t thread;
	struct scene *s;
	int err;
};

static void *call_first(void *arg)
{
	struct caller *k = arg;
	struct sw_coll_args a = {.size = sizeof(a),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.count = 100,
		.send = k->s->values,
		.recv = k->s->values};
	uint64_t h;

	k->err = sw_coll(k->s->g, &a, &h);
	return NULL;
}

static bool is_asking(struct sw_client *c)
{
	bool is;

	assert_true(sw_client_lock(c));
	is = c->turn.is_asleep;
	sw_client_unlock(c);
	return is;
}

/* Another thread is making its first call, whose stages the agent has not made
 * yet. The call has not begun, so leaving reports no end for it. */
static void wait_ended__not_of_what_has_not_begun(void **state)
{
	struct scene *s = *state;
	struct caller k = {.s = s};
	struct sw_coll_args a = {.size = sizeof(a),
		.kind = SW_ALL_REDUCE,
		.dtype = SW_F32,
		.count = 1};
	void *shared;
	uint64_t h;
	int err;

	assert_int_equal(sw_alloc(s->c, 4096, &shared), 0);
	a.send = a.recv = shared;
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	rig_hold(s->r);
	pthread_create(&k.thread, NULL, call_first, &k);
	while (!is_asking(s->c))
		usleep(1000);
	sw_leave(s->c);
	err = sw_wait_ended(s->c, &h);
	pthread_join(k.thread, NULL);
	rig_go(s->r);
	assert_int_equal(err, SW_ECLOSED);
	assert_int_equal(h, 0);
	assert_int_equal(k.err, SW_ECLOSED);
	assert_int_equal(s->g->n_calls, 0);
}

static void *wait_for_one(void *arg)
{
	struct watcher *w = arg;

	return sw_wait(w->c, w->handles[0]) ? "another one has taken it" : NULL;
}

static void await_waits(struct sw_client *c)
{
	bool is_there = false;

	for (int i = 0; i < RIG_WAIT_MS && !is_there; i++) {
		assert_true(sw_client_lock(c));
		is_there = c->turn.n_users == 2 && c->turn.n_watchers;
		sw_client_unlock(c);
		usleep(1000);
	}
	assert_true(is_there);
}

/* Of two waiting threads one leads; the other learns of its end together with
 * the watcher. */
static void wait_ended__leaves_what_others_wait_for(void **state)
{
	struct scene *s = *state;
	struct watcher *w = watcher_open(s->c), users[2] = {0};

	for (uint32_t n = 1; n <= N; n++) {
		uint64_t h;

		rig_mute(s->r, true);
		for (uint32_t i = 0; i < 2; i++) {
			users[i].c = s->c;
			users[i].handles[0] = call(s, 1 + i);
			pthread_create(&users[i].thread, NULL, wait_for_one,
				&users[i]);
		}
		await_waits(s->c);
		h = call(s, 4);
		rig_mute(s->r, false);
		for (uint32_t i = 0; i < 2; i++) {
			void *why;

			pthread_join(users[i].thread, &why);
			assert_null(why);
		}
		watcher_await(w, n);
		assert_int_equal(w->handles[n - 1], h);
	}
	watcher_close(w);
}

static void *ask(void *arg)
{
	struct caller *k = arg;

	k->err = sw_set_credit(k->s->c, 1 << 20);
	return NULL;
}

static atomic_bool is_asked;

/* Play an agent that does not answer. */
static void note_tune(void *ctx, uint32_t id, const struct sw_edge_tune *tune)
{
	atomic_store(&is_asked, true);
}

/* While a thread waits for the agent's answer, collectives are still copied and
 * the watcher still sees their ends. */
static void wait_ended__while_another_asks(void **state)
{
	struct scene *s = *state;
	struct watcher *w = watcher_open(s->c);
	struct caller k = {.s = s};
	uint64_t h[4];

	for (uint32_t i = 0; i < 2; i++)
		h[i] = call(s, i); /* the first call makes the stages */
	watcher_await(w, 2);
	rig_hold(s->r);
	s->r->host->p.events.on_tune = note_tune;
	rig_go(s->r);
	pthread_create(&k.thread, NULL, ask, &k);
	while (!atomic_load(&is_asked))
		usleep(1000);
	for (uint32_t i = 2; i < 4; i++)
		h[i] = call(s, i);
	watcher_await(w, 4);
	assert_memory_equal(w->handles, h, sizeof(h));
	watcher_close(w);
	pthread_join(k.thread, NULL);
	assert_int_equal(k.err, SW_ECLOSED);
}

static void *poll_for_one(void *arg)
{
	struct watcher *w = arg;

	return sw_wait_polling(w->c, w->handles[0]) ? "another one has taken it"
						    : NULL;
}

static bool does_poll(struct sw_client *c)
{
	return atomic_load(&c->control->client_polls);
}

/* A polling thread gets its own end, as a sleeping thread does; the watcher
 * does not get it. */
static void polling__is_not_for_watchers(void **state)
{
	struct scene *s = *state;
	struct watcher *w = watcher_open(s->c), user = {.c = s->c};

	for (uint32_t n = 0; n < N; n++) {
		void *why;

		rig_mute(s->r, true);
		user.handles[0] = call(s, 1);
		pthread_create(&user.thread, NULL, poll_for_one, &user);
		while (!does_poll(s->c))
			usleep(100);
		rig_mute(s->r, false);
		pthread_join(user.thread, &why);
		assert_null(why);
		assert_false(does_poll(s->c));
	}
	assert_int_equal(w->n, 0);
	watcher_close(w);
}

/* While one thread of a client still polls, the agent rings no bell for the
 * client. */
static void polling__of_two_the_last_ends_it(void **state)
{
	struct scene *s = *state;
	struct watcher user = {.c = s->c};
	uint64_t h;
	void *why;

	rig_mute(s->r, true);
	user.handles[0] = call(s, 1);
	h = call(s, 2);
	pthread_create(&user.thread, NULL, poll_for_one, &user);
	while (!does_poll(s->c))
		usleep(100);
	s->c->settings.wait_timeout_s = 0;
	assert_int_equal(sw_wait_polling(s->c, h), SW_ETIMEDOUT);
	assert_true(does_poll(s->c));
	rig_mute(s->r, false);
	pthread_join(user.thread, &why);
	assert_null(why);
	assert_false(does_poll(s->c));
	assert_int_equal(sw_wait_for(s->c, h, RIG_WAIT_MS), 0);
}

/* A caller's timeout overrides the library's. */
static void wait_for__is_as_long_as_it_says(void **state)
{
	struct scene *s = *state;
	uint64_t h, got, before_ns = sw_edge_now_ns();

	rig_mute(s->r, true);
	h = call(s, 1);
	assert_int_equal(sw_wait_for(s->c, h, 0), SW_ETIMEDOUT);
	assert_int_equal(sw_wait_for(s->c, h, 20), SW_ETIMEDOUT);
	assert_contains(sw_last_error(s->c),
		"no sum after 0.02 s; the handle stays open");
	assert_int_equal(sw_wait_ended_for(s->c, 20, &got), SW_ETIMEDOUT);
	assert_int_equal(got, 0);
	assert_contains(
		sw_last_error(s->c), "no collective has ended in 0.02 s");
	assert_in_range(sw_edge_now_ns() - before_ns, 40000000,
		RIG_WAIT_MS * UINT64_C(500000));
	rig_mute(s->r, false);
	assert_int_equal(sw_wait_for(s->c, h, RIG_WAIT_MS), 0);
	assert_int_equal(sw_wait_for(s->c, h, 20), SW_EINVAL);
}

enum { MANY = 2048 }; /* too many descriptions for the socket's buffer */

static void *declare_many(void *arg)
{
	static struct sw_tensor_desc descs[MANY];
	static struct sw_tensor *tensors[MANY];
	static char names[MANY][16];
	struct caller *k = arg;

	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "many.%u", i);
		descs[i] = RIG_DESC(names[i], 1, SW_F32, 0);
	}
	k->err = sw_declare(k->s->c, descs, MANY, tensors);
	return NULL;
}

/* While the agent reads nothing, threads that send no message continue. */
static void socket__is_full(void **state)
{
	struct scene *s = *state;
	struct caller k = {.s = s};
	uint64_t h, before_ns = sw_edge_now_ns(), took_ns;

	rig_mute(s->r, true);
	h = call(s, 1);
	rig_hold(s->r);
	pthread_create(&k.thread, NULL, declare_many, &k);
	while (!is_asking(s->c))
		usleep(1000);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(sw_poll(s->c, h), SW_EAGAIN);
		usleep(1000);
	}
	took_ns = sw_edge_now_ns() - before_ns;
	rig_go(s->r);
	rig_mute(s->r, false);
	pthread_join(k.thread, NULL);
	assert_int_equal(k.err, 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	assert_in_range(took_ns, 0, RIG_WAIT_MS * UINT64_C(300000));
}

/* --- failed groups --- */

/* Counts the waits for failed groups and the failures that they saw. */
struct failure_watch {
	struct sw_client *c;
	pthread_t thread;
	atomic_uint n_seen, n_waits;
	int err;
};

static void *watch_failures(void *arg)
{
	struct failure_watch *w = arg;
	uint32_t n = 0;

	do {
		atomic_fetch_add(&w->n_waits, 1);
		w->err = sw_wait_group_failed_for(w->c, UINT32_MAX, &n);
		atomic_store(&w->n_seen, n);
	} while (!w->err);
	return NULL;
}

static void await_at_least(atomic_uint *n, uint32_t least)
{
	for (int i = 0; i < RIG_WAIT_MS && atomic_load(n) < least; i++)
		usleep(1000);
	assert_true(atomic_load(n) >= least);
}

static void fail_groups(struct rig *r, uint32_t n)
{
	atomic_store(&r->n_failing, n);
	rig_kick(r);
}

static void wait_failed__sees_each_and_ends_with_the_client(void **state)
{
	struct scene *s = *state;
	struct failure_watch w = {.c = s->c};

	pthread_create(&w.thread, NULL, watch_failures, &w);
	for (uint32_t n = 1; n <= 3; n++) {
		await_at_least(&w.n_waits, n);
		fail_groups(s->r, 1);
		await_at_least(&w.n_seen, n);
		assert_int_equal(atomic_load(&w.n_seen), n);
	}
	sw_leave(s->c);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.err, SW_ECLOSED);
	assert_int_equal(w.n_seen, 3);
}

static void wait_failed__agent_hangs_up(void **state)
{
	struct scene *s = *state;
	struct failure_watch w = {.c = s->c};
	uint64_t h;

	pthread_create(&w.thread, NULL, watch_failures, &w);
	await_at_least(&w.n_waits, 1);
	atomic_store(&s->r->end_err, SW_EPEER);
	assert_int_equal(sw_wait_ended(s->c, &h), SW_EPEER);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.err, SW_EPEER);
}

static void wait_failed__counts_what_it_did_not_see(void **state)
{
	struct scene *s = *state;
	uint32_t n = 0;
	int status;
	pid_t pid;

	assert_int_equal(sw_wait_group_failed_for(s->c, 20, &n), SW_ETIMEDOUT);
	assert_int_equal(n, 0);
	fail_groups(s->r, 2);
	while (n < 2)
		assert_int_equal(
			sw_wait_group_failed_for(s->c, RIG_WAIT_MS, &n), 0);
	assert_int_equal(n, 2);
	pid = rig_fork(s->r);
	if (!pid) {
		/* the child leaves a client that belongs to its parent */
		sw_leave(s->c);
		_exit(sw_wait_group_failed_for(s->c, RIG_WAIT_MS, &n) !=
			SW_ECLOSED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sw_wait_group_failed_for(s->c, 0, &n), SW_ETIMEDOUT);
	assert_int_equal(n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			wait_ended__gives_each_once, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			wait_ended__in_the_order_of_ends, scene_open,
			scene_close),
		cmocka_unit_test_setup_teardown(
			wait_ended__agent_hangs_up, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			wait_ended__not_of_what_has_not_begun, scene_open,
			scene_close),
		cmocka_unit_test_setup_teardown(
			wait_ended__leaves_what_others_wait_for, scene_open,
			scene_close),
		cmocka_unit_test_setup_teardown(wait_ended__while_another_asks,
			scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			socket__is_full, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			polling__is_not_for_watchers, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			polling__of_two_the_last_ends_it, scene_open,
			scene_close),
		cmocka_unit_test_setup_teardown(wait_for__is_as_long_as_it_says,
			scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			wait_failed__sees_each_and_ends_with_the_client,
			scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			wait_failed__agent_hangs_up, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			wait_failed__counts_what_it_did_not_see, scene_open,
			scene_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
