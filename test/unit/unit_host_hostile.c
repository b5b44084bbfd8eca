/* unit_host_hostile.c - clients that write whatever they like.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A client without the library. */
struct raw {
	int sock, bell, memory;
	struct sw_edge_control *control;
	struct sw_spsc submits, completions;
};

static void raw_send(struct raw *w, const void *msg, size_t bytes)
{
	assert_int_equal(sw_edge_send(w->sock, msg, bytes, NULL, 0), 0);
}

/* The next message but progress lines; 0 after 3 s, or the error. */
static int raw_recv(struct raw *w, union sw_edge_msg *m, int *fds)
{
	struct pollfd fd = {.fd = w->sock, .events = POLLIN};
	int n;

	do {
		poll(&fd, 1, 3000);
		n = sw_edge_recv(w->sock, m, fds, 2);
	} while (n > 0 && m->kind == SW_EDGE_STATUS);
	return n == SW_EAGAIN ? 0 : n;
}

static void raw_connect(struct raw *w, const struct rig *r)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	*w = (struct raw){.bell = -1, .memory = -1};
	strcpy(a.sun_path, r->path);
	w->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(w->sock, (void *)&a, sizeof(a)), 0);
}

static void raw_open(struct raw *w, const struct rig *r)
{
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION, 0};
	union sw_edge_msg m;
	int fds[2];

	raw_connect(w, r);
	raw_send(w, &hello, sizeof(hello));
	assert_int_equal(raw_recv(w, &m, fds), sizeof(m.attached));
	assert_int_equal(m.kind, SW_EDGE_ATTACHED);
	w->memory = fds[0];
	w->bell = fds[1];
	w->control = mmap(NULL, sizeof(*w->control), PROT_READ | PROT_WRITE,
		MAP_SHARED, w->memory, 0);
	assert_true(w->control != MAP_FAILED);
	sw_spsc_init(&w->submits, w->control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	sw_spsc_init(&w->completions, w->control->completions, SW_EDGE_TENSORS,
		sizeof(struct sw_completion));
}

static void raw_close(struct raw *w)
{
	if (w->control)
		munmap(w->control, sizeof(*w->control));
	close(w->sock);
	close(w->bell);
	close(w->memory);
}

/* The agent hangs up with @err and a sentence with @text. */
static void raw_await_end(struct raw *w, enum sw_edge_kind kind, int err,
	const char *text)
{
	union sw_edge_msg m;
	int fds[2];

	assert_int_equal(raw_recv(w, &m, fds), sizeof(m.text));
	assert_int_equal(m.kind, kind);
	assert_int_equal(m.text.err, err);
	if (!strstr(m.text.text, text))
		fail_msg("the agent says: %s", m.text.text);
	assert_int_equal(raw_recv(w, &m, fds), SW_ECLOSED);
}

/* @m is a good batch of @n tensors with new names. */
static void good_declare(struct sw_edge_declare *m, uint32_t batch, uint32_t n)
{
	*m = (struct sw_edge_declare){.kind = SW_EDGE_DECLARE,
		.batch = batch,
		.n_total = n,
		.n = n};
	for (uint32_t i = 0; i < n; i++) {
		m->descs[i] = (struct sw_edge_desc){.n_elems = 4,
			.dtype = SW_F32};
		snprintf(m->descs[i].name, sizeof(m->descs[i].name),
			"batch%u.%u", batch, i);
	}
}

static size_t declare_bytes(uint32_t n)
{
	return offsetof(struct sw_edge_declare, descs) +
		n * sizeof(struct sw_edge_desc);
}

static void raw_declare(struct raw *w, uint32_t batch, uint32_t n)
{
	struct sw_edge_declare m;
	union sw_edge_msg answer;
	int fds[2];

	good_declare(&m, batch, n);
	raw_send(w, &m, declare_bytes(n));
	assert_int_equal(raw_recv(w, &answer, fds), sizeof(answer.declared));
	assert_int_equal(answer.kind, SW_EDGE_DECLARED);
	close(fds[0]);
}

static uint32_t n_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* One agent for all cases, with a bystander who must notice nothing. */
struct scene {
	struct rig *r;
	struct sw_client *bystander;
	struct sw_tensor *t;
	uint32_t n_gone, n_fds, n_pushed;
};

static void check_bystander(struct scene *s)
{
	float *data = sw_tensor_data(s->t);
	uint64_t h;

	*data = 1;
	assert_int_equal(sw_push_pull(s->bystander, s->t, s->n_pushed++, &h),
		0);
	assert_int_equal(sw_wait(s->bystander, h), 0);
	assert_true(*data == 2);
}

static int scene_open(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->r = rig_open(&(struct rig_how){.quota_bytes = 4 << 20});
	s->bystander = rig_client(s->r);
	s->t = rig_tensor(s->bystander, "w", 1);
	/* The agent closes what it has passed on. */
	usleep(100000);
	s->n_fds = n_open_fds();
	*state = s;
	return 0;
}

/* The client is gone for the reason given, all that it had is given back, and
 * the bystander goes on. */
static void scene_check(struct scene *s, enum sw_host_why why, const char *text)
{
	rig_await(s->r, ++s->n_gone, why, text);
	for (int i = 0; i < 1000 && n_open_fds() != s->n_fds; i++)
		usleep(1000);
	assert_int_equal(n_open_fds(), s->n_fds);
	check_bystander(s);
}

static int scene_close(void **state)
{
	struct scene *s = *state;

	check_bystander(s);
	sw_close(&s->bystander);
	rig_await(s->r, ++s->n_gone, SW_HOST_CLOSED, "");
	rig_close(s->r);
	free(s);
	return 0;
}

static void hello__must_be_ours(void **state)
{
	static const struct {
		uint32_t words[5];
		size_t bytes;
		int err;
		const char *text;
	} cases[] = {
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, 7, 0}, 16, SW_EVERSION,
			"speaks version 1 of the attachment, this process "
			"version 7"},
		{{SW_EDGE_ATTACH, 0x47455420, 1, 0}, 16, SW_EPROTO, "not one"},
		{{SW_EDGE_DECLARE, SW_EDGE_MAGIC, 1, 0}, 16, SW_EPROTO, "not one"},
		{{SW_EDGE_ATTACH, SW_EDGE_MAGIC, 1, 0, 0}, 20, SW_EPROTO,
			"not one"},
		{{SW_EDGE_ATTACH}, 3, SW_EPROTO, "not one"},
	};
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_connect(&w, s->r);
		raw_send(&w, cases[i].words, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_REFUSED, cases[i].err,
			cases[i].text);
		raw_close(&w);
	}
	check_bystander(s);
}

static void hello__must_come_soon(void **state)
{
	struct scene *s = *state;
	struct raw w;

	raw_connect(&w, s->r);
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "said nothing");
	raw_close(&w);
	check_bystander(s);
}

static void crowd__is_sent_away(void **state)
{
	struct scene *s = *state;
	struct raw w[40], late;

	for (int i = 0; i < 40; i++)
		raw_connect(&w[i], s->r);
	for (int i = 0; i < 200 && s->r->host; i++)
		usleep(100);
	raw_connect(&late, s->r);
	raw_await_end(&late, SW_EDGE_REFUSED, SW_EBUSY, "too many processes");
	raw_close(&late);
	for (int i = 0; i < 40; i++)
		raw_close(&w[i]);
	check_bystander(s);
}

static void places__are_limited(void **state)
{
	struct scene *s = *state;
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION, 0};
	struct raw w[3], late;

	for (int i = 0; i < 3; i++)
		raw_open(&w[i], s->r);
	raw_connect(&late, s->r);
	raw_send(&late, &hello, sizeof(hello));
	raw_await_end(&late, SW_EDGE_REFUSED, SW_EBUSY, "admits 4 processes");
	raw_close(&late);
	for (int i = 0; i < 3; i++)
		raw_close(&w[i]);
	s->n_gone += 2;
	scene_check(s, SW_HOST_DIED, "hung up");
}

static void message__must_be_known(void **state)
{
	static const struct {
		uint32_t kind;
		size_t bytes;
		const char *text;
	} cases[] = {
		{SW_EDGE_ATTACH, sizeof(struct sw_edge_attach), "kind 1"},
		{SW_EDGE_ATTACHED, 24, "kind 4"},
		{0, 4, "kind 0"},
		{UINT32_MAX, sizeof(union sw_edge_msg), "kind 4294967295"},
		{SW_EDGE_CLOSE, 5, "kind 3 and 5 bytes"},
		{SW_EDGE_CLOSE, 3, "kind 0 and 3 bytes"},
		{SW_EDGE_CLOSE, sizeof(union sw_edge_msg) + 1, "more than"},
		{SW_EDGE_DECLARE, 100000, "more than"},
	};
	static char msg[100000];
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_open(&w, s->r);
		memcpy(msg, &cases[i].kind, sizeof(cases[i].kind));
		raw_send(&w, msg, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, cases[i].text);
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, cases[i].text);
	}
}

static void descriptors__are_not_taken(void **state)
{
	struct scene *s = *state;
	uint32_t kind = SW_EDGE_CLOSE;
	int fds[2] = {0, 0};
	struct raw w;

	raw_open(&w, s->r);
	assert_int_equal(sw_edge_send(w.sock, &kind, sizeof(kind), fds, 2), 0);
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "descriptor");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "descriptor");
}

/* What breaks the order of pieces ends the client. */
static void declare__must_come_in_order(void **state)
{
	static const struct {
		uint32_t batch, n_total, first_i, n;
		size_t bytes;
		const char *text;
	} cases[] = {
		{0, 1, 0, 1, 10, "10 bytes"},
		{0, 1, 0, 1, 24, "24 bytes"},
		{0, 2, 0, 2, 24 + 144, "168 bytes"},
		{0, 2, 0, 1, 24 + 288, "312 bytes"},
		{0, 65, 0, 65, 24 + 64 * 144, "bytes as a piece"},
		{0, 1, 0, 0, 24, "24 bytes"},
		{1, 1, 0, 1, 24 + 144, "of batch 1, expected"},
		{UINT32_MAX, 1, 0, 1, 24 + 144, "expected was tensor 0"},
		{0, 2, 1, 1, 24 + 144, "tensors 1 to 2 of 2"},
		{0, 0, 0, 1, 24 + 144, "tensors 0 to 1 of 0"},
		{0, 4097, 0, 1, 24 + 144, "of 4097"},
		{0, UINT32_MAX, 0, 1, 24 + 144, "of 4294967295"},
		{0, UINT32_MAX, UINT32_MAX, 1, 24 + 144, "of 4294967295"},
	};
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_open(&w, s->r);
		good_declare(&m, 0, 2);
		m.batch = cases[i].batch;
		m.n_total = cases[i].n_total;
		m.first_i = cases[i].first_i;
		m.n = cases[i].n;
		raw_send(&w, &m, cases[i].bytes);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, cases[i].text);
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, cases[i].text);
	}
}

static void declare__second_piece_must_fit_the_first(void **state)
{
	static const struct {
		uint32_t batch, n_total, first_i, n;
	} cases[] = {
		{0, 100, 0, 64}, {0, 100, 63, 1}, {0, 100, 65, 1},
		{0, 101, 64, 1}, {1, 100, 64, 1}, {0, 100, 64, 37},
	};
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_open(&w, s->r);
		good_declare(&m, 0, 64);
		m.n_total = 100;
		raw_send(&w, &m, declare_bytes(64));
		m.batch = cases[i].batch;
		m.n_total = cases[i].n_total;
		m.first_i = cases[i].first_i;
		m.n = cases[i].n;
		raw_send(&w, &m, declare_bytes(m.n));
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"expected was tensor 64 of batch 0");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "expected was tensor 64");
	}
}

/* What is wrong with the tensors ends the batch, told in its last piece. */
static void declare__fails_with_the_batch(void **state)
{
	struct scene *s = *state;
	struct sw_edge_declare m;
	union sw_edge_msg answer;
	struct raw w;
	int fds[2];

	raw_open(&w, s->r);
	for (uint32_t batch = 0; batch < 300; batch++) {
		good_declare(&m, batch, 64);
		m.n_total = 100;
		switch (batch % 4) {
		case 0:
			memset(m.descs[5].name, 'x', SW_EDGE_NAME_BYTES);
			break;
		case 1:
			strcpy(m.descs[5].name, m.descs[60].name);
			break;
		case 2:
			m.descs[63].n_elems = UINT64_MAX;
			break;
		default:
			m.descs[0].dtype = UINT32_MAX;
		}
		raw_send(&w, &m, declare_bytes(64));
		good_declare(&m, batch, 64);
		m.n_total = 100;
		m.first_i = 64;
		m.n = 36;
		for (uint32_t i = 0; i < 36; i++)
			m.descs[i].name[0] = 'B';
		raw_send(&w, &m, declare_bytes(36));
		assert_int_equal(raw_recv(&w, &answer, fds),
			sizeof(answer.text));
		assert_int_equal(answer.kind, SW_EDGE_FAILED);
		assert_int_equal(answer.text.batch, batch);
		assert_int_equal(answer.text.err, SW_EINVAL);
	}
	/* Refused batches do not count, but admitted ones do. */
	for (uint32_t batch = 300; batch < 556; batch++)
		raw_declare(&w, batch, 1);
	good_declare(&m, 556, 1);
	raw_send(&w, &m, declare_bytes(1));
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "256 batches");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "256 batches");
}

static void declare__half_a_batch_is_given_up(void **state)
{
	struct scene *s = *state;
	struct sw_edge_declare m;
	struct raw w;

	raw_open(&w, s->r);
	raw_declare(&w, 0, 3);
	good_declare(&m, 1, 64);
	m.n_total = 100;
	raw_send(&w, &m, declare_bytes(64));
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "hung up");
}

static void quota__is_given_back(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 20; i++) {
		struct sw_client *c = rig_client(s->r);

		rig_tensor(c, "large", 600000);
		sw_close(&c);
		scene_check(s, SW_HOST_CLOSED, "closed");
	}
}

static void submits__must_be_of_declared_tensors(void **state)
{
	static const uint32_t beyond[] = {3, 4096, UINT32_MAX};
	struct scene *s = *state;
	struct raw w;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		struct sw_submit bad = {1, beyond[i], 0};

		raw_open(&w, s->r);
		raw_declare(&w, 0, 3);
		assert_int_equal(sw_spsc_put(&w.submits, &bad, 1), 1);
		sw_edge_bell_write(w.bell);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"submitted a tensor not declared");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "not declared");
	}
}

static struct sw_spsc_shared *ring_of(unsigned char *memory)
{
	return (struct sw_spsc_shared *)(void *)memory;
}

static void rings__must_have_possible_indices(void **state)
{
	static const uint32_t beyond[] = {4097, 1u << 31, UINT32_MAX};
	struct scene *s = *state;
	struct sw_submit good = {0, 0, 0};
	struct raw w;

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		raw_open(&w, s->r);
		atomic_store(&ring_of(w.control->submits)->n_put, beyond[i]);
		sw_edge_bell_write(w.bell);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"ring of submits");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "ring of submits");
		raw_open(&w, s->r);
		raw_declare(&w, 0, 1);
		atomic_store(&ring_of(w.control->completions)->n_taken,
			beyond[i]);
		for (int n = 0; n < 4097; sw_edge_bell_write(w.bell))
			n += sw_spsc_put(&w.submits, &good, 1);
		raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO,
			"ring of completions");
		raw_close(&w);
		scene_check(s, SW_HOST_VIOLATION, "ring of completions");
	}
}

static void completions__must_be_taken(void **state)
{
	struct scene *s = *state;
	struct sw_submit again = {0, 0, 0};
	struct raw w;

	raw_open(&w, s->r);
	raw_declare(&w, 0, 1);
	for (int i = 0; i < 4097;) {
		i += sw_spsc_put(&w.submits, &again, 1);
		sw_edge_bell_write(w.bell);
	}
	raw_await_end(&w, SW_EDGE_CLOSED, SW_EPROTO, "run over");
	raw_close(&w);
	scene_check(s, SW_HOST_VIOLATION, "run over");
}

/* O_NONBLOCK of the bell is the client's to change, and its buffer to fill:
 * neither may stop the lcore. */
static void bell__cannot_block_the_lcore(void **state)
{
	struct scene *s = *state;
	struct sw_submit again = {0, 0, 0};
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
	/* Half a hang-up: the lcore must not take it for a wake-up for ever. */
	shutdown(w.bell, SHUT_RDWR);
	check_bystander(s);
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "hung up");
}

/* The memory cannot be made smaller; holes read as zeros. */
static void memory__cannot_shrink(void **state)
{
	struct scene *s = *state;
	struct sw_submit good = {0, 0, 0};
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
	assert_int_equal(fallocate(fds[0],
				 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				 (off_t)answer.declared.bytes),
		0);
	close(fds[0]);
	sw_spsc_put(&w.submits, &good, 1);
	sw_edge_bell_write(w.bell);
	check_bystander(s);
	raw_close(&w);
	scene_check(s, SW_HOST_DIED, "hung up");
}

/* Answers that nobody reads fill the socket, and then the client is gone. */
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
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			push_for_ever(s->r);
		}
		usleep(10000 + (useconds_t)i * 3000);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		usleep(20000);
		check_bystander(s);
	}
}

/* A process that is killed while a child of its own keeps the socket open. */
static void killed_client__is_seen_behind_its_children(void **state)
{
	struct scene *s = *state;
	uint32_t n_before = s->r->n_detached;
	int pipes[2];
	pid_t pid, grandchild;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
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
	s->n_gone = n_before;
	kill(pid, SIGKILL);
	rig_await(s->r, ++s->n_gone, SW_HOST_DIED, "died");
	kill(grandchild, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	check_bystander(s);
}

/* Random bytes in every place that a client can write. */
static void noise__ends_only_the_noisy(void **state)
{
	struct scene *s = *state;

	srandom(7);
	for (int round = 0; round < 60; round++) {
		union sw_edge_msg m;
		unsigned char *bytes = (unsigned char *)&m;
		uint32_t n_before = s->r->n_detached;
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
		for (int i = 0; i < 4000 && s->r->n_detached == n_before; i++)
			usleep(1000);
		assert_int_equal(s->r->n_detached, n_before + 1);
		check_bystander(s);
	}
	s->n_gone = s->r->n_detached;
	assert_int_equal(n_open_fds(), s->n_fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__must_be_ours),
		cmocka_unit_test(hello__must_come_soon),
		cmocka_unit_test(crowd__is_sent_away),
		cmocka_unit_test(places__are_limited),
		cmocka_unit_test(message__must_be_known),
		cmocka_unit_test(descriptors__are_not_taken),
		cmocka_unit_test(declare__must_come_in_order),
		cmocka_unit_test(declare__second_piece_must_fit_the_first),
		cmocka_unit_test(declare__fails_with_the_batch),
		cmocka_unit_test(declare__half_a_batch_is_given_up),
		cmocka_unit_test(quota__is_given_back),
		cmocka_unit_test(submits__must_be_of_declared_tensors),
		cmocka_unit_test(rings__must_have_possible_indices),
		cmocka_unit_test(completions__must_be_taken),
		cmocka_unit_test(bell__cannot_block_the_lcore),
		cmocka_unit_test(memory__cannot_shrink),
		cmocka_unit_test(answers__must_be_read),
		cmocka_unit_test(noise__ends_only_the_noisy),
		cmocka_unit_test(killed_client__is_detached),
		cmocka_unit_test(killed_client__is_seen_behind_its_children),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
