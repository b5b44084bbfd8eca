/* unit_host.c - a process attaches, declares, pushes, waits and leaves.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_rig.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "pmd/client/client.h"

static void attach__gives_ranks(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	uint64_t epoch;

	assert_int_equal(sw_rank(c), 3);
	assert_int_equal(sw_size(c), 4);
	assert_int_equal(sw_local_rank(c), 0);
	assert_int_equal(sw_local_size(c), 1);
	assert_string_equal(sw_job(c, &epoch), "digits");
	assert_int_equal(epoch, 4711);
	assert_false(sw_is_async(c));
	assert_string_equal(sw_last_error(c), "");
	sw_close(&c);
	assert_null(c);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "closed its attachment");
	rig_close(r);
}

static void round_trip__doubles_in_place(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct sw_tensor_desc descs[] = {
		RIG_DESC("w", 1000, SW_F32, 0), RIG_DESC("b", 3, SW_I32, 1)};
	struct sw_tensor *t[2];
	uint64_t h[2];
	float *w;
	int32_t *b;

	assert_int_equal(sw_declare(c, descs, 2, t), 0);
	w = sw_tensor_data(t[0]);
	b = sw_tensor_data(t[1]);
	assert_int_equal((uintptr_t)w % 64, 0);
	assert_int_equal((uintptr_t)b % 64, 0);
	assert_true(w[0] == 0 && w[999] == 0 && b[2] == 0);
	w[999] = 21;
	b[2] = -4;
	for (uint32_t step = 0; step < 3; step++) {
		assert_int_equal(sw_push_pull(c, t[0], step, &h[0]), 0);
		assert_int_equal(sw_push_pull(c, t[0], step, &h[1]), SW_EBUSY);
		assert_non_null(strstr(sw_last_error(c), "'w'"));
		assert_int_equal(sw_push_pull(c, t[1], step, &h[1]), 0);
		assert_int_equal(sw_wait(c, h[1]), 0);
		assert_int_equal(sw_wait(c, h[1]), SW_EINVAL);
		assert_int_equal(sw_wait_polling(c, h[0]), 0);
		assert_int_equal(sw_poll(c, h[0]), SW_EINVAL);
	}
	assert_true(w[999] == 21 * 8);
	assert_int_equal(b[2], -4 * 8);
	assert_int_equal(sw_poll(c, 0), SW_EINVAL);
	assert_int_equal(sw_poll(c, UINT64_MAX), SW_EINVAL);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "closed its attachment");
	rig_close(r);
}

/* If the lcore sleeps, a lost wake-up costs a timeout of at least 6 s. */
static void wake_often(
	const struct rig_how *how, uint32_t n, uint32_t longest_spin)
{
	struct rig *r = rig_open(how);
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t = rig_tensor(c, "w", 1);
	struct rusage before, after;
	uint64_t h, start_ns, longest_ns = 0;

	getrusage(RUSAGE_SELF, &before);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(sw_push_pull(c, t, i, &h), 0);
		start_ns = sw_edge_now_ns();
		/* Go to sleep at every possible moment of the agent's
		 * answer. */
		for (volatile uint32_t spin = i * 7919 % longest_spin; spin;
			spin--)
			;
		assert_int_equal(sw_wait(c, h), 0);
		start_ns = sw_edge_now_ns() - start_ns;
		longest_ns = start_ns > longest_ns ? start_ns : longest_ns;
	}
	assert_true(longest_ns < 5000000000);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_nvcsw - before.ru_nvcsw > n / 100);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void wake_ups__are_never_lost_by_a_sleeper(void **state)
{
	wake_often(&(struct rig_how){.idle_us = 3600000000u}, 4000, 65536);
}

static void wake_ups__are_never_lost_by_a_client(void **state)
{
	wake_often(&(struct rig_how){.idle_us = 1}, 8000, 8192);
}

/* A submit does not end a nap; a client that begins to wait does. */
static void wake_ups__are_never_lost_by_a_nap(void **state)
{
	wake_often(&(struct rig_how){.idle_us = 6000000, .is_napping = true},
		4000, 65536);
}

struct litmus {
	_Alignas(64) _Atomic uint32_t flag;
	_Alignas(64) _Atomic uint32_t entry;
	_Alignas(64) _Atomic uint32_t round, n_done;
	_Atomic bool is_seen;
};

enum { N_LITMUS = 50000 };

/* Let both sides start a round at the same moment: the second one to arrive
 * releases both. */
static void meet(struct litmus *l, uint32_t round)
{
	if (atomic_fetch_add(&l->n_done, 1) % 2)
		atomic_store(&l->round, round);
	for (uint32_t i = 1; atomic_load(&l->round) != round; i++)
		if (i % 4096 == 0)
			sched_yield();
}

static void *sleepy(void *arg)
{
	struct litmus *l = arg;

	for (uint32_t i = 1; i <= N_LITMUS; i++) {
		meet(l, 2 * i);
		sw_edge_doze(&l->flag);
		atomic_store_explicit(&l->is_seen,
			atomic_load_explicit(&l->entry, memory_order_acquire) ==
				i,
			memory_order_relaxed);
		meet(l, 2 * i + 1);
	}
	return NULL;
}

/* Either the sleeper sees the entry, or the other side sees the flag. */
static void sleep_flag__cannot_be_missed(void **state)
{
	struct litmus l = {0};
	uint32_t n_missed = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, sleepy, &l);
	for (uint32_t i = 1; i <= N_LITMUS; i++) {
		bool is_asleep;

		meet(&l, 2 * i);
		atomic_store_explicit(&l.entry, i, memory_order_release);
		is_asleep = sw_edge_is_asleep(&l.flag);
		meet(&l, 2 * i + 1);
		n_missed += !is_asleep && !atomic_load(&l.is_seen);
		atomic_store(&l.flag, 0);
	}
	pthread_join(thread, NULL);
	assert_int_equal(n_missed, 0);
}

static void all_tensors__can_be_open_at_once(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct sw_tensor_desc *d = calloc(SW_EDGE_TENSORS, sizeof(*d));
	struct sw_tensor *t[SW_EDGE_TENSORS], *extra;
	static char names[SW_EDGE_TENSORS][16];
	static uint64_t h[SW_EDGE_TENSORS];

	for (uint32_t i = 0; i < SW_EDGE_TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "layer%u", i);
		d[i] = RIG_DESC(names[i], 1 + i % 5, SW_I32, i);
	}
	assert_int_equal(sw_declare(c, d, SW_EDGE_TENSORS, t), 0);
	assert_int_equal(sw_declare(c, d, 1, &extra), SW_EINVAL);
	assert_non_null(strstr(sw_last_error(c), "4096"));
	for (uint32_t round = 1; round < 4; round++) {
		for (uint32_t i = 0; i < SW_EDGE_TENSORS; i++) {
			*(int32_t *)sw_tensor_data(t[i]) = (int32_t)i;
			assert_int_equal(
				sw_push_pull(c, t[i], round, &h[i]), 0);
		}
		for (uint32_t i = SW_EDGE_TENSORS; i-- > 0;) {
			assert_int_equal(sw_wait(c, h[i]), 0);
			assert_int_equal(*(int32_t *)sw_tensor_data(t[i]),
				2 * (int32_t)i);
		}
	}
	free(d);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

/* One large batch, which is reserved in several slices, among small ones. */
static void declare__repeats(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t[20];
	char name[16];
	uint64_t h, n = 80 << 18;

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		t[i] = rig_tensor(c, name, i == 7 ? n : 33);
	}
	((float *)sw_tensor_data(t[7]))[n - 1] = 4;
	((float *)sw_tensor_data(t[19]))[32] = 5;
	assert_int_equal(sw_push_pull(c, t[7], 0, &h), 0);
	assert_int_equal(sw_wait(c, h), 0);
	assert_int_equal(sw_push_pull(c, t[19], 0, &h), 0);
	assert_int_equal(sw_wait(c, h), 0);
	assert_true(((float *)sw_tensor_data(t[7]))[n - 1] == 8);
	assert_true(((float *)sw_tensor_data(t[19]))[32] == 10);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void declare_fails(
	struct sw_client *c, struct sw_tensor_desc d, int err, const char *text)
{
	struct sw_tensor_desc both[] = {RIG_DESC("good", 1, SW_F32, 0), d};
	struct sw_tensor *t[2] = {0};

	assert_int_equal(sw_declare(c, both, 2, t), err);
	assert_null(t[0]);
	if (!strstr(sw_last_error(c), text))
		fail_msg("last error: %s", sw_last_error(c));
}

/* After each refusal the attachment continues, and the name "good" is still
 * free. */
static void declare__refuses_what_is_wrong(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.quota_bytes = 8 << 20});
	struct sw_client *c = rig_client(r);
	char long_name[200];

	memset(long_name, 'x', sizeof(long_name));
	long_name[199] = 0;
	declare_fails(c, RIG_DESC(long_name, 1, SW_F32, 0), SW_EINVAL,
		"1 to 127 bytes");
	declare_fails(c, RIG_DESC("", 1, SW_F32, 0), SW_EINVAL, "tensor 1");
	declare_fails(c, RIG_DESC(NULL, 1, SW_F32, 0), SW_EINVAL, "tensor 1");
	declare_fails(c, RIG_DESC("a\nb", 1, SW_F32, 0), SW_EINVAL,
		"bytes of UTF-8 that print");
	declare_fails(c, RIG_DESC("w", 1, 7, 0), SW_EINVAL, "code 7");
	declare_fails(
		c, RIG_DESC("w", 0, SW_F32, 0), SW_EINVAL, "'w': 0 elements");
	declare_fails(c, RIG_DESC("w", UINT64_MAX / 2, SW_F64, 0), SW_EINVAL,
		"64 GiB");
	declare_fails(c, RIG_DESC("w", (1ull << 34) + 1, SW_F32, 0), SW_EINVAL,
		"64 GiB");
	declare_fails(c, RIG_DESC("good", 1, SW_F32, 0), SW_EINVAL,
		"'good' is declared already");
	declare_fails(c, RIG_DESC("w", 4 << 20, SW_F32, 0), SW_ENOMEM,
		"16.0 MiB needed, 6.9 of 8.0 MiB left");
	rig_tensor(c, "good", 1);
	declare_fails(c, RIG_DESC("w", 1, SW_F32, 0), SW_EINVAL,
		"'good' is declared already");
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void declare__passes_on_the_agents_refusal(void **state)
{
	struct rig *r =
		rig_open(&(struct rig_how){.refuse_batch = SW_EREFUSED});
	struct sw_client *c = rig_client(r);
	struct sw_tensor_desc d = RIG_DESC("w", 1, SW_F32, 0);
	struct sw_tensor *t;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(sw_declare(c, &d, 1, &t), SW_EREFUSED);
		assert_string_equal(
			sw_last_error(c), "a server's quota: 3 needed, 2 left");
	}
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void open__passes_on_the_agents_refusal(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.refuse = SW_EBUSY});
	struct sw_settings s = rig_settings(r);
	struct sw_client *c;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(sw_open(&s, &c), SW_EBUSY);
		assert_string_equal(sw_last_error(NULL), "no place for you");
	}
	rig_close(r);
}

static void open__times_out_and_tells_what_is_missing(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.is_silent = true});
	struct sw_settings s = rig_settings(r);
	struct sw_client *c;

	s.open_timeout_s = 1;
	assert_int_equal(sw_open(&s, &c), SW_ETIMEDOUT);
	assert_non_null(strstr(sw_last_error(NULL), "waiting for rank 2 of 4"));
	assert_non_null(strstr(sw_last_error(NULL), r->path));
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void open__names_the_path_without_an_agent(void **state)
{
	struct sw_settings s;
	struct sw_client *c;
	char path[200] = "/tmp/sw-nobody/agent.sock";

	sw_settings_init(&s);
	s.log = rig_no_log;
	s.agent = path;
	s.open_timeout_s = 1;
	assert_int_equal(sw_open(&s, &c), SW_ECLOSED);
	assert_non_null(strstr(sw_last_error(NULL), path));
	memset(path, 'x', sizeof(path) - 1);
	assert_int_equal(sw_open(&s, &c), SW_EINVAL);
}

static void *open_late(void *arg)
{
	struct rig *r = arg;

	usleep(200000);
	rig_start(r);
	return NULL;
}

static void open__waits_for_an_agent_that_starts_late(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sw_client *c;
	pthread_t thread;

	pthread_create(&thread, NULL, open_late, r);
	c = rig_client(r);
	pthread_join(thread, NULL);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void wait__reports_the_status(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.status = SW_EPEER});
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t = rig_tensor(c, "w", 1);
	uint64_t h;

	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_wait(c, h), SW_EPEER);
	assert_string_equal(sw_last_error(c),
		"tensor 'w': another member of the job failed or left");
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_wait(c, h), SW_EPEER);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void wait__times_out_and_keeps_the_handle(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.is_mute = true});
	struct sw_settings s = rig_settings(r);
	struct sw_client *c;
	struct sw_tensor *t;
	uint64_t h;

	s.wait_timeout_s = 1;
	assert_int_equal(sw_open(&s, &c), 0);
	t = rig_tensor(c, "w", 1);
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_poll(c, h), SW_EAGAIN);
	assert_int_equal(sw_wait(c, h), SW_ETIMEDOUT);
	assert_non_null(strstr(sw_last_error(c), "'w': no sum after 1 s"));
	assert_int_equal(sw_wait_polling(c, h), SW_ETIMEDOUT);
	assert_int_equal(sw_push_pull(c, t, 1, &h), SW_EBUSY);
	assert_int_equal(sw_poll(c, h), SW_EAGAIN);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void *stop_late(void *arg)
{
	usleep(100000);
	rig_stop(arg);
	return NULL;
}

/* Wait for a push_pull while the agent stops; @wait_for must return with
 * @text. */
static void wait_through_the_end(
	int (*wait_for)(struct sw_client *, uint64_t), const char *text)
{
	struct rig *r = rig_open(&(struct rig_how){.is_mute = true});
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t = rig_tensor(c, "w", 1);
	struct sw_tensor *t2 = rig_tensor(c, "x", 1);
	struct sw_tensor_desc d = RIG_DESC("y", 1, SW_F32, 0);
	pthread_t thread;
	uint64_t h, h2, before = sw_edge_now_ns();

	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_push_pull(c, t2, 0, &h2), 0);
	pthread_create(&thread, NULL, stop_late, r);
	assert_int_equal(wait_for(c, h), SW_ECLOSED);
	assert_true(sw_edge_now_ns() - before < 3000000000ull);
	if (!strstr(sw_last_error(c), r->path) ||
		!strstr(sw_last_error(c), text))
		fail_msg("last error: %s", sw_last_error(c));
	pthread_join(thread, NULL);
	assert_int_equal(sw_poll(c, h2), SW_ECLOSED);
	assert_int_equal(sw_poll(c, h2), SW_EINVAL);
	assert_int_equal(sw_push_pull(c, t, 0, &h), SW_ECLOSED);
	assert_int_equal(sw_declare(c, &d, 1, &t), SW_ECLOSED);
	*(float *)sw_tensor_data(t2) = 1;
	sw_close(&c);
	rig_close(r);
}

static void leave__keeps_the_tensors_memory(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.is_mute = true});
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t = rig_tensor(c, "w", 3);
	float *w = sw_tensor_data(t);
	uint64_t h;

	w[2] = 7;
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	sw_leave(c);
	rig_await(r, 1, SW_HOST_CLOSED, "closed its attachment");
	assert_int_equal(sw_wait(c, h), SW_ECLOSED);
	assert_non_null(strstr(sw_last_error(c), "has left the job"));
	assert_int_equal(sw_push_pull(c, t, 0, &h), SW_ECLOSED);
	sw_leave(c);
	assert_true(w[2] == 7);
	w[0] = 1;
	sw_close(&c);
	assert_null(c);
	rig_close(r);
}

static int poll_for_ever(struct sw_client *c, uint64_t handle)
{
	int err;

	while ((err = sw_poll(c, handle)) == SW_EAGAIN)
		;
	return err;
}

static void wait__ends_with_the_agent(void **state)
{
	wait_through_the_end(sw_wait, "the agent stops");
	wait_through_the_end(sw_wait_polling, "the agent stops");
	wait_through_the_end(poll_for_ever, "the agent stops");
}

/* The agent runs in a process of its own, which is killed. */
static void wait__ends_with_a_killed_agent(void **state)
{
	struct rig *r = rig_new(&(struct rig_how){.is_mute = true});
	struct sw_client *c;
	struct sw_tensor *t;
	uint64_t h;
	pid_t pid = fork();

	if (!pid) {
		rig_start(r);
		for (;;)
			pause();
	}
	c = rig_client(r);
	t = rig_tensor(c, "w", 1);
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	kill(pid, SIGKILL);
	assert_int_equal(sw_wait(c, h), SW_ECLOSED);
	assert_non_null(strstr(sw_last_error(c), "has ended"));
	assert_non_null(strstr(sw_last_error(c), r->path));
	sw_close(&c);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* The next agent replaces the socket file that the killed one left. */
	rig_start(r);
	c = rig_client(r);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void end__reaches_open_handles_and_later_calls(void **state)
{
	struct rig *r = rig_open(&(struct rig_how){.is_mute = true});
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t = rig_tensor(c, "w", 1);
	uint64_t h;

	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	atomic_store(&r->end_err, SW_ESERVER);
	assert_int_equal(sw_wait(c, h), SW_ESERVER);
	assert_non_null(strstr(sw_last_error(c), "server 2 is silent"));
	assert_int_equal(sw_push_pull(c, t, 0, &h), SW_ESERVER);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

static void forked_child__is_told(void **state)
{
	struct rig *r = rig_open(NULL);
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t = rig_tensor(c, "w", 1);
	uint64_t h;
	int status;
	pid_t pid;

	atomic_store(&c->control->client_polls, 1); /* copied from the parent */
	pid = rig_fork(r);
	if (!pid) {
		bool is_good = sw_push_pull(c, t, 0, &h) == SW_ECLOSED &&
			       sw_wait(c, 4096) == SW_ECLOSED &&
			       sw_wait_polling(c, 4096) == SW_ECLOSED &&
			       strstr(sw_last_error(c), "forked");

		sw_close(&c);
		_exit(!is_good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(atomic_load(&c->control->client_polls), 1);
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_wait(c, h), 0);
	sw_close(&c);
	rig_await(r, 1, SW_HOST_CLOSED, "");
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach__gives_ranks),
		cmocka_unit_test(round_trip__doubles_in_place),
		cmocka_unit_test(wake_ups__are_never_lost_by_a_sleeper),
		cmocka_unit_test(wake_ups__are_never_lost_by_a_client),
		cmocka_unit_test(wake_ups__are_never_lost_by_a_nap),
		cmocka_unit_test(sleep_flag__cannot_be_missed),
		cmocka_unit_test(all_tensors__can_be_open_at_once),
		cmocka_unit_test(declare__repeats),
		cmocka_unit_test(declare__refuses_what_is_wrong),
		cmocka_unit_test(declare__passes_on_the_agents_refusal),
		cmocka_unit_test(open__passes_on_the_agents_refusal),
		cmocka_unit_test(open__times_out_and_tells_what_is_missing),
		cmocka_unit_test(open__names_the_path_without_an_agent),
		cmocka_unit_test(open__waits_for_an_agent_that_starts_late),
		cmocka_unit_test(wait__reports_the_status),
		cmocka_unit_test(wait__times_out_and_keeps_the_handle),
		cmocka_unit_test(wait__ends_with_the_agent),
		cmocka_unit_test(wait__ends_with_a_killed_agent),
		cmocka_unit_test(leave__keeps_the_tensors_memory),
		cmocka_unit_test(end__reaches_open_handles_and_later_calls),
		cmocka_unit_test(forked_child__is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
