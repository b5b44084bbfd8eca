/* unit_host_memory.c - clients that write shared memory, or are killed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void submits__must_be_of_declared_tensors(void **state)
{
	static const uint32_t beyond[] = {3, 4096, UINT32_MAX};
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		struct sw_submit bad = {1, beyond[i], 0, 0};

		raw_open(&w, s->r);
		raw_declare(&w, 0, 3);
		assert_int_equal(sw_spsc_put(&w.submits, &bad, 1), 1);
		sw_edge_bell_write(w.bell);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"submitted an undeclared tensor");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "undeclared tensor");
	}
}

static void rings__must_have_possible_indices(void **state)
{
	static const uint32_t beyond[] = {4097, 1u << 31, UINT32_MAX};
	struct scene *s = *state;
	struct sw_submit good = {0, 0, 0, 0};
	struct raw w;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		raw_open(&w, s->r);
		atomic_store(&ring_of(w.control->submits)->n_put, beyond[i]);
		sw_edge_bell_write(w.bell);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "submit ring");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "submit ring");
		raw_open(&w, s->r);
		raw_declare(&w, 0, 1);
		atomic_store(&ring_of(w.control->completions)->n_taken,
			i ? beyond[i] : SW_EDGE_COMPLETIONS + 1);
		for (int n = 0; n <= SW_EDGE_COMPLETIONS;
			sw_edge_bell_write(w.bell))
			n += sw_spsc_put(&w.submits, &good, 1);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "completion ring");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "completion ring");
	}
}

/* The limit is reported as an error; SIGXFSZ must not kill the agent. */
static void declare__beyond_a_limit_names_it(void **state)
{
	struct scene *s = *state;
	struct sw_edge_declare declare;
	struct rlimit old, low;
	union sw_edge_msg m;
	struct raw w;
	int fds[2];

	raw_open(&w, s->r);
	good_declare(&declare, 0, 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){.rlim_cur = 4000, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	raw_send(&w, &declare, declare_bytes(1));
	assert_int_equal(raw_recv(&w, &m, fds), sizeof(m.text));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(m.kind, SW_EDGE_FAILED);
	assert_int_equal(m.text.err, SW_ENOMEM);
	assert_non_null(
		strstr(m.text.text, "limit RLIMIT_FSIZE is 4000 bytes"));
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "");
}

static void completions__must_be_taken(void **state)
{
	struct scene *s = *state;
	struct sw_submit again = {0, 0, 0, 0};
	struct raw w;

	raw_open(&w, s->r);
	raw_declare(&w, 0, 1);
	for (int i = 0; i <= SW_EDGE_COMPLETIONS;) {
		i += sw_spsc_put(&w.submits, &again, 1);
		sw_edge_bell_write(w.bell);
	}
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "overflow");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "overflow");
}

/* A client can clear O_NONBLOCK of the bell and fill its buffer; neither may
 * block the lcore. */
static void bell__cannot_block_the_lcore(void **state)
{
	struct scene *s = *state;
	struct sw_submit again = {0, 0, 0, 0};
	struct sw_completion done;
	char bytes[4096] = {0};
	struct raw w;

	raw_open(&w, s->r);
	raw_declare(&w, 0, 1);
	fcntl(w.bell, F_SETFL, 0);
	while (send(w.bell, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	for (int i = 0; i < 3000; i++) {
		while (!sw_spsc_put(&w.submits, &again, 1))
			;
		atomic_store(&w.control->client_sleeps, 1);
		while (!sw_spsc_take(&w.completions, &done, 1))
			sw_edge_bell_write(w.bell);
	}
	check_bystander(s);
	/* After a half-close the lcore must not take the bell for a permanent
	 * wake-up. */
	shutdown(w.bell, SHUT_RDWR);
	check_bystander(s);
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

/* A client cannot shrink the memory, and holes in it read as zeros. */
static void memory__cannot_shrink(void **state)
{
	struct scene *s = *state;
	struct sw_submit good = {0, 0, 0, 0};
	struct sw_edge_declare m;
	union sw_edge_msg answer;
	struct raw w;
	int fds[2];

	raw_open(&w, s->r);
	assert_int_equal(ftruncate(w.memory, 0), -1);
	good_declare(&m, 0, 1);
	raw_send(&w, &m, declare_bytes(1));
	assert_int_equal(raw_recv(&w, &answer, fds), sizeof(answer.declared));
	assert_int_equal(ftruncate(fds[0], 0), -1);
	assert_int_equal(ftruncate(fds[0], 1 << 20), -1);
	assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(
		fallocate(fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			(off_t)answer.declared.bytes),
		0);
	close(fds[0]);
	sw_spsc_put(&w.submits, &good, 1);
	sw_edge_bell_write(w.bell);
	check_bystander(s);
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "closed the connection");
}

/* Answers that a client does not read fill the socket, and then the client is
 * evicted. */
static void answers__must_be_read(void **state)
{
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	raw_open(&w, s->r);
	for (uint32_t batch = 0;; batch++) {
		int err;

		good_declare(&m, batch, 1);
		m.descs[0].dtype = 7;
		while ((err = sw_edge_send(w.sock, &m, declare_bytes(1), NULL,
				0)) == SW_EAGAIN)
			usleep(100);
		if (err)
			break;
		assert_true(batch < 100000);
	}
	rig_await(s->r, ++s->n_gone, SW_HOST_VIOLATION, "does not read");
	raw_close(&w);
	check_bystander(s);
}

static void push_for_ever(struct rig *r)
{
	struct sw_client *c = rig_client(r);
	struct sw_tensor *t[8];
	uint64_t h[8];
	char name[16];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		t[i] = rig_tensor(c, name, 4000);
	}
	for (uint32_t step = 0;; step++) {
		for (int i = 0; i < 8; i++)
			sw_push_pull(c, t[i], step, &h[i]);
		for (int i = 0; i < 8; i++)
			sw_wait(c, h[i]);
	}
}

static void killed_client__is_detached(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 20; i++) {
		pid_t pid = rig_fork(s->r);

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			push_for_ever(s->r);
		}
		usleep(10000 + (useconds_t)i * 3000);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		check_bystander(s);
	}
	rig_await_ports(s->r, 1);
	s->n_gone = rig_n_detached(s->r);
}

/* A process is killed while its child keeps the socket open. */
static void killed_client__is_seen_behind_its_children(void **state)
{
	struct scene *s = *state;
	int pipes[2];
	pid_t pid, grandchild;

	assert_int_equal(pipe(pipes), 0);
	pid = rig_fork(s->r);
	if (!pid) {
		struct sw_client *c = rig_client(s->r);

		rig_tensor(c, "w", 10);
		grandchild = fork();
		if (!grandchild)
			for (;;)
				pause();
		if (write(pipes[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &grandchild, sizeof(grandchild)),
		sizeof(grandchild));
	close(pipes[0]);
	close(pipes[1]);
	kill(pid, SIGKILL);
	rig_await(s->r, ++s->n_gone, SW_HOST_DIED, "died");
	kill(grandchild, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	check_bystander(s);
}

/* Write random bytes to every place that a client can write. */
static void noise__ends_only_the_noisy(void **state)
{
	struct scene *s = *state;

	srandom(7);
	for (int round = 0; round < 60; round++) {
		union sw_edge_msg m;
		unsigned char *bytes = (unsigned char *)&m;
		uint32_t n_before = rig_n_detached(s->r);
		uint32_t *words;
		struct raw w;

		raw_open(&w, s->r);
		raw_declare(&w, 0, 3);
		words = (uint32_t *)(void *)w.control;
		for (int i = 0; i < 200; i++) {
			size_t at = (size_t)random() %
				    (sizeof(*w.control) / sizeof(uint32_t));

			if (round % 2)
				at %= 128;
			words[at] = (uint32_t)random() >> random() % 32;
			sw_edge_bell_write(w.bell);
		}
		good_declare(&m.declare, 1, 3);
		for (int i = 0; i < 3; i++)
			bytes[(size_t)random() % declare_bytes(3)] =
				(unsigned char)random();
		sw_edge_send(w.sock, &m, (size_t)random() % declare_bytes(4),
			NULL, 0);
		raw_close(&w);
		for (int i = 0;
			i < RIG_WAIT_MS && rig_n_detached(s->r) == n_before;
			i++)
			usleep(1000);
		assert_int_equal(rig_n_detached(s->r), n_before + 1);
		check_bystander(s);
	}
	s->n_gone = rig_n_detached(s->r);
	check_fds(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(submits__must_be_of_declared_tensors),
		cmocka_unit_test(rings__must_have_possible_indices),
		cmocka_unit_test(declare__beyond_a_limit_names_it),
		cmocka_unit_test(completions__must_be_taken),
		cmocka_unit_test(bell__cannot_block_the_lcore),
		cmocka_unit_test(memory__cannot_shrink),
		cmocka_unit_test(answers__must_be_read),
		cmocka_unit_test(killed_client__is_detached),
		cmocka_unit_test(killed_client__is_seen_behind_its_children),
		cmocka_unit_test(noise__ends_only_the_noisy),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
