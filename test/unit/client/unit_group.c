/* unit_group.c - libsumwire: how groups end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/client/group_rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum {
	LARGE = 8 << 20,
	CALLS = 5
}; /* elements: more pieces than the agent processes at once */

static atomic_bool is_answered; /* end_late waits for this */

static int close_answered(void **state)
{
	atomic_store(&is_answered, true);
	return scene_close(state);
}

static int call(struct scene *s, struct sw_group *g, enum sw_coll_kind kind,
	uint64_t count, uint64_t *h)
{
	struct sw_coll_args a = SW_COLL_ARGS_INIT;

	a.kind = kind;
	a.dtype = SW_I32;
	a.count = count;
	a.send = a.recv = s->buffer;
	return sw_coll(g, &a, h);
}

static void mute(struct scene *s, bool is_mute)
{
	rig_mute(s->r, is_mute);
}

/* Start large and small collectives, all with copied buffers; the agent ends
 * none of them by itself. */
static void call_some(struct scene *s, uint64_t h[CALLS])
{
	mute(s, true);
	for (uint32_t i = 0; i < CALLS; i++)
		assert_int_equal(
			call(s, s->g, i % 2 ? SW_BARRIER : SW_ALL_REDUCE,
				i ? 100 : LARGE, &h[i]),
			0);
}

static void abort__ends_all_that_is_open(void **state)
{
	struct scene *s = *state;
	const char *why = "rank 3 aborted group 'dp': enough";
	uint64_t h[CALLS], h2;

	call_some(s, h);
	assert_int_equal(sw_group_abort(s->g, SW_EABORTED, "enough"), 0);
	assert_int_equal(s->r->end.what, SW_EDGE_ABORT);
	assert_string_equal(s->r->end.why, why);
	for (uint32_t i = 0; i < CALLS; i++)
		fails(s, sw_poll(s->c, h[i]), SW_EABORTED, why);
	fails(s, call(s, s->g, SW_ALL_GATHER, 1, &h2), SW_EABORTED, why);
	assert_int_equal(sw_group_abort(s->g, SW_EABORTED, "again"), 0);
	fails(s, call(s, s->g, SW_BARRIER, 0, &h2), SW_EABORTED, why);
	mute(s, false);
	assert_int_equal(call(s, s->other, SW_BARRIER, 0, &h2), 0);
	assert_int_equal(sw_wait(s->c, h2), 0);
}

/* A caller may abort with its own timeout, which gives SW_EEXPIRED; other
 * errors are refused. */
static void abort__for_a_reason(void **state)
{
	struct scene *s = *state;
	uint64_t h[CALLS];

	call_some(s, h);
	fails(s, sw_group_abort(s->g, SW_EPEER, "gone"), SW_EINVAL,
		"a group is aborted with SW_EABORTED or SW_EEXPIRED, not -7");
	assert_int_equal(sw_group_abort(s->g, SW_EEXPIRED, "late"), 0);
	assert_int_equal(s->r->end.err, SW_EEXPIRED);
	for (uint32_t i = 0; i < CALLS; i++)
		fails(s, sw_poll(s->c, h[i]), SW_EEXPIRED,
			"rank 3 aborted group 'dp': late");
}

/* Other ranks may be waiting, so the abort opens a stream and ends it. */
static void abort__before_anything_was_called(void **state)
{
	struct scene *s = *state;
	uint64_t h;

	assert_int_equal(sw_group_abort(s->g, SW_EABORTED, NULL), 0);
	assert_string_equal(s->r->tensors[0].name, "dp/barrier");
	assert_int_equal(s->r->end.stream, RIG_FIRST);
	fails(s, call(s, s->g, SW_BARRIER, 0, &h), SW_EABORTED,
		"rank 3 aborted group 'dp'");
}

static void timeout__aborts(void **state)
{
	struct scene *s = *state;
	const char *why = "rank 3 timed out in all_reduce 1 of group 'dp' "
			  "(group timeout 3 s)";
	uint64_t h[CALLS];

	assert_int_equal(sw_group_set_timeout(s->g, 3), 0);
	call_some(s, h);
	fails(s, sw_wait(s->c, h[2]), SW_EEXPIRED, why);
	assert_int_equal(s->r->end.what, SW_EDGE_ABORT);
	assert_int_equal(s->r->end.err, SW_EEXPIRED);
	assert_string_equal(s->r->end.why, why);
	for (uint32_t i = 0; i < CALLS; i++)
		if (i != 2)
			fails(s, sw_wait(s->c, h[i]), SW_EEXPIRED, why);
}

static void timeout__not_of_what_ends(void **state)
{
	struct scene *s = *state;
	uint64_t h, h2;

	assert_int_equal(sw_group_set_timeout(s->g, 1), 0);
	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	mute(s, true);
	assert_int_equal(call(s, s->other, SW_BARRIER, 0, &h2), 0);
	usleep(1200000);
	mute(s, false);
	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	assert_int_equal(sw_wait(s->c, h2), 0);
}

/* No thread watches the calls until their caller waits, after the timeout. The
 * agent has ended both in time: one needs no copy, the caller copies the
 * other. */
static void timeout__not_of_what_has_ended(void **state)
{
	struct scene *s = *state;
	struct sw_coll_args a = SW_COLL_ARGS_INIT;
	void *shared;
	uint64_t h, h2;

	assert_int_equal(sw_alloc(s->c, 4096, &shared), 0);
	assert_int_equal(sw_group_set_timeout(s->g, 1), 0);
	a.kind = SW_ALL_REDUCE;
	a.count = 1024;
	a.send = a.recv = shared;
	assert_int_equal(sw_coll(s->g, &a, &h), 0);
	assert_int_equal(call(s, s->g, SW_ALL_REDUCE, 100, &h2), 0);
	usleep(1500000);
	assert_int_equal(sw_wait(s->c, h), 0);
	assert_int_equal(sw_wait(s->c, h2), 0);
	assert_int_equal(s->r->end.kind, 0); /* the agent heard of no timeout */
}

static void close__ends_all_that_is_open(void **state)
{
	struct scene *s = *state;
	uint64_t h[CALLS];

	call_some(s, h);
	assert_int_equal(sw_group_close(s->g), 0);
	assert_int_equal(s->r->end.what, SW_EDGE_CLOSE_GROUP);
	for (uint32_t i = 0; i < CALLS; i++)
		fails(s, sw_wait(s->c, h[i]), SW_ECLOSED,
			"group 'dp' was closed");
}

struct waiter {
	struct scene *s;
	uint64_t handle;
	pthread_t thread;
	int err;
};

static void *wait_for_one(void *arg)
{
	struct waiter *w = arg;

	w->err = sw_wait(w->s->c, w->handle);
	return NULL;
}

/* Any thread may collect the last result; the group exists until its close has
 * finished. */
static void close__while_others_wait(void **state)
{
	struct scene *s = *state;
	struct waiter w[CALLS];
	uint64_t h[CALLS];

	call_some(s, h);
	for (uint32_t i = 0; i < CALLS; i++) {
		w[i] = (struct waiter){.s = s, .handle = h[i]};
		pthread_create(&w[i].thread, NULL, wait_for_one, &w[i]);
	}
	assert_int_equal(sw_group_close(s->g), 0);
	for (uint32_t i = 0; i < CALLS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].err, SW_ECLOSED);
	}
	assert_ptr_equal(s->c->groups, s->other);
	assert_null(s->other->next);
}

/* A call that ended before the close still returns its result, without
 * error. */
static void close__what_ended_before(void **state)
{
	struct scene *s = *state;
	uint64_t h, last;

	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &h), 0);
	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &last), 0);
	/* the calls end in order, so h has also ended */
	assert_int_equal(sw_wait(s->c, last), 0);
	assert_int_equal(sw_group_close(s->g), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	assert_ptr_equal(s->c->groups, s->other);
}

static bool is_locked_true(struct scene *s, bool (*is)(const struct scene *s))
{
	bool yes;

	assert_true(sw_client_lock(s->c));
	yes = is(s);
	sw_client_unlock(s->c);
	return yes;
}

static void await_locked(struct scene *s, bool (*is)(const struct scene *s))
{
	int i = 0;

	while (i++ < RIG_WAIT_MS && !is_locked_true(s, is))
		usleep(1000);
	assert_in_range(i, 0, RIG_WAIT_MS);
}

static bool is_thread_claiming(const struct scene *s)
{
	return s->c->turn.n_claims > 0;
}

static bool has_ended(const struct scene *s)
{
	return s->c->calls.done || !sw_spsc_is_empty(&s->c->completions);
}

/* Play an agent that ends no call of a group and answers late. */
static void end_late(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct rig *r = ctx;

	r->end = *end;
	while (!atomic_load(&is_answered))
		usleep(100);
	sw_host_answer(r->host, id, 0, "");
}

static void be_late(struct rig *r, bool is_late)
{
	atomic_store(&is_answered, !is_late);
	rig_hold(r);
	r->host->p.events.on_end = end_late;
	rig_go(r);
}

static void *call_large(void *arg)
{
	struct waiter *w = arg;

	w->err = call(w->s, w->s->g, SW_ALL_REDUCE, LARGE, &w->handle);
	return NULL;
}

/* The library's thread first looks before the call has reached the agent, and
 * no thread waits for the call. The call still expires. */
static void timeout__of_stages_that_are_late(void **state)
{
	struct scene *s = *state;
	struct waiter w = {.s = s};

	assert_int_equal(call(s, s->g, SW_ALL_REDUCE, 1, &w.handle), 0);
	assert_int_equal(sw_wait(s->c, w.handle), 0);
	assert_int_equal(sw_group_set_timeout(s->g, 1), 0);
	mute(s, true);
	rig_hold(s->r);
	pthread_create(&w.thread, NULL, call_large, &w);
	usleep(1200000);
	assert_true(sw_client_lock(s->c));
	sw_client_call_thread(s->c);
	sw_client_unlock(s->c);
	usleep(100000);
	rig_go(s->r);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.err, 0);
	await_locked(s, has_ended);
	assert_int_equal(s->r->end.err, SW_EEXPIRED);
	assert_int_equal(sw_wait(s->c, w.handle), SW_EEXPIRED);
}

static void *close_it(void *arg)
{
	struct scene *s = arg;

	return sw_group_close(s->g) ? "it was not closed" : NULL;
}

/* The agent forgets the group while the library's thread waits to report its
 * timeout: the report is then dropped. */
static void timeout__while_it_is_closed(void **state)
{
	struct scene *s = *state;
	pthread_t thread;
	void *why;
	uint64_t h;

	assert_int_equal(sw_group_set_timeout(s->g, 1), 0);
	mute(s, true);
	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &h), 0);
	be_late(s->r, true);
	pthread_create(&thread, NULL, close_it, s);
	await_locked(s, is_thread_claiming); /* the timeout has passed */
	atomic_store(&s->r->is_aborting, true);
	rig_kick(s->r);
	await_locked(s, has_ended);
	atomic_store(&is_answered, true);
	pthread_join(thread, &why);
	assert_null(why);
	assert_int_equal(sw_wait(s->c, h), SW_ECLOSED);
	atomic_store(&s->r->is_aborting, false);
	mute(s, false);
	for (uint32_t i = 0; i < 3; i++) { /* the agent has not hung up */
		assert_int_equal(call(s, s->other, SW_BARRIER, 0, &h), 0);
		assert_int_equal(sw_wait(s->c, h), 0);
	}
	assert_int_equal(s->r->end.what, SW_EDGE_CLOSE_GROUP);
}

enum { LATE = 1 << 19 }; /* bytes: more than one call copies at once */

/* Memory whose reader blocks until the test continues. */
static struct {
	void *at;
	atomic_bool is_read, may_go;
} late;

static void on_fault(int number)
{
	(void)number;
	atomic_store(&late.is_read, true);
	while (!atomic_load(&late.may_go))
		usleep(100);
	mprotect(late.at, LATE, PROT_READ | PROT_WRITE);
}

struct late_call {
	struct scene *s;
	pthread_t thread;
	uint64_t handle;
	int err;
};

static void *call_late(void *arg)
{
	struct late_call *k = arg;
	struct sw_coll_args a = SW_COLL_ARGS_INIT;

	a.kind = SW_ALL_REDUCE;
	a.count = LATE / sizeof(float);
	a.send = a.recv = late.at;
	k->err = sw_coll(k->s->g, &a, &k->handle);
	return NULL;
}

/* Another thread is copying a piece of the preceding channel during the
 * close. */
static void close__while_another_is_copied(void **state)
{
	struct scene *s = *state;
	struct late_call k = {.s = s};
	struct sigaction old;
	uint64_t h;
	int err;

	late.at = mmap(NULL, LATE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(call(s, s->other, SW_ALL_REDUCE, 1, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
	call_late(&k);
	assert_int_equal(sw_wait(s->c, k.handle), 0);
	sigaction(SIGSEGV, &(struct sigaction){.sa_handler = on_fault}, &old);
	mprotect(late.at, LATE, PROT_NONE);
	pthread_create(&k.thread, NULL, call_late, &k);
	for (int i = 0; i < RIG_WAIT_MS && !atomic_load(&late.is_read); i++)
		usleep(1000);
	err = sw_group_close(s->other);
	atomic_store(&late.may_go, true);
	pthread_join(k.thread, NULL);
	sigaction(SIGSEGV, &old, NULL);
	assert_true(atomic_load(&late.is_read));
	assert_int_equal(err, 0);
	assert_ptr_equal(s->c->calls.turn, &s->g->channels[SW_ALL_REDUCE]);
	assert_int_equal(k.err, 0);
	assert_int_equal(sw_wait(s->c, k.handle), 0);
	munmap(late.at, LATE);
}

static bool is_given_back(const struct scene *s)
{
	return s->c->groups == s->other && !s->c->calls.channels;
}

/* The agent takes too long: the group is released with its last handle. A
 * second close fails meanwhile. */
static void close__in_vain(void **state)
{
	struct scene *s = *state;
	uint64_t h;

	s->c->settings.wait_timeout_s = 1;
	mute(s, true);
	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &h), 0);
	be_late(s->r, false);
	fails(s, sw_group_close(s->g), SW_ETIMEDOUT,
		"the agent still uses its buffers after 1 s");
	fails(s, sw_group_close(s->g), SW_EINVAL,
		"group 'dp' was closed before");
	mute(s, false);
	assert_int_equal(sw_wait(s->c, h), SW_ECLOSED);
	await_locked(s, is_given_back);
	assert_int_equal(sw_group_open(s->c, "dp", NULL, 0, &s->g), 0);
	assert_int_equal(call(s, s->g, SW_BARRIER, 0, &h), 0);
	assert_string_equal(s->r->tensors[1].name, "dp#2/barrier");
	assert_int_equal(sw_wait(s->c, h), 0);
	assert_int_equal(call(s, s->other, SW_BARRIER, 0, &h), 0);
	assert_int_equal(sw_wait(s->c, h), 0);
}

/* A reopened group has streams with new names, and reuses stages. */
static void close__and_open_again(void **state)
{
	static const char *const names[] = {
		"dp/all_reduce", "dp#2/all_reduce", "dp#3/all_reduce"};
	struct scene *s = *state;
	uint32_t n_allocs = 0;
	uint64_t h;

	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(call(s, s->g, SW_ALL_REDUCE, LARGE, &h), 0);
		assert_string_equal(s->r->tensors[i].name, names[i]);
		assert_int_equal(sw_wait(s->c, h), 0);
		assert_int_equal(sw_group_close(s->g), 0);
		assert_int_equal(sw_group_open(s->c, "dp", NULL, 0, &s->g), 0);
		if (i)
			assert_int_equal(s->c->n_allocs, n_allocs);
		n_allocs = s->c->n_allocs;
	}
	assert_int_equal(n_allocs, 1);
	/* a group without calls */
	assert_int_equal(sw_group_close(s->other), 0);
}

static void open__names_that_are_taken(void **state)
{
	struct scene *s = *state;
	struct sw_group *g;
	char name[16];

	fails(s, sw_group_open(s->c, "dp", NULL, 0, &g), SW_EBUSY,
		"group 'dp' is open: close it first");
	fails(s, sw_group_open(s->c, "dp#2", NULL, 0, &g), SW_EINVAL,
		"does not end with # and digits");
	assert_int_equal(sw_group_open(s->c, "dp#", NULL, 0, &g), 0);
	for (uint32_t i = 3; i < 256; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(sw_group_open(s->c, name, NULL, 0, &g), 0);
	}
	fails(s, sw_group_open(s->c, "more", NULL, 0, &s->g), SW_EBUSY,
		"256 groups are open: close one first");
	assert_int_equal(sw_group_close(g), 0);
	assert_int_equal(sw_group_open(s->c, "more", NULL, 0, &g), 0);
}

static void end__after_the_job(void **state)
{
	struct scene *s = *state;
	uint64_t h[CALLS];

	call_some(s, h);
	atomic_store(&s->r->end_err, SW_EPEER);
	assert_int_equal(sw_wait(s->c, h[0]), SW_EPEER);
	fails(s, sw_group_abort(s->g, SW_EABORTED, "enough"), SW_EPEER,
		"server 2 is silent");
	fails(s, sw_group_close(s->g), SW_EPEER, "server 2 is silent");
	fails(s, sw_group_set_timeout(s->g, 1), SW_EPEER, "server 2 is silent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(abort__ends_all_that_is_open,
			scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			abort__for_a_reason, scene_open, scene_close),
		cmocka_unit_test_setup_teardown(
			abort__before_anything_was_called, scene_open,
			close_answered),
		cmocka_unit_test_setup_teardown(
			timeout__aborts, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			timeout__not_of_what_ends, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(timeout__not_of_what_has_ended,
			scene_open, close_answered),
		cmocka_unit_test_setup_teardown(close__ends_all_that_is_open,
			scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			close__while_others_wait, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			close__what_ended_before, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			timeout__of_stages_that_are_late, scene_open,
			close_answered),
		cmocka_unit_test_setup_teardown(timeout__while_it_is_closed,
			scene_open, close_answered),
		cmocka_unit_test_setup_teardown(close__while_another_is_copied,
			scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			close__in_vain, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			close__and_open_again, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			open__names_that_are_taken, scene_open, close_answered),
		cmocka_unit_test_setup_teardown(
			end__after_the_job, scene_open, close_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
