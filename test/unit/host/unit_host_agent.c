/* unit_host_agent.c - the agent's side, call by call.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Upper limit for an immediate end; it is far below any timeout. */
#define LATEST_NS UINT64_C(10000000000)
enum { FOREVER_US = 60000000 };

/* An agent that records its calls and answers when the test tells it to. */
struct slow {
	struct rig *r; /* provides only the folder and the log */
	struct sw_host *host;
	uint32_t id, batch, n_attach, n_declare, n_detach, n_tensors;
	const struct sw_host_tensor *tensors;
	enum sw_host_why why;
	char text[SW_EDGE_TEXT_BYTES];
	bool is_releasing; /* on_detach releases at once */
	struct raw w;
};

static void slow_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t local_rank)
{
	struct slow *s = ctx;

	s->id = id;
	s->n_attach++;
}

static void slow_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	struct slow *s = ctx;

	assert_int_equal(id, s->id);
	s->batch = batch;
	s->tensors = tensors;
	s->n_tensors = n;
	s->n_declare++;
}

static void slow_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text)
{
	struct slow *s = ctx;

	assert_int_equal(id, s->id);
	s->why = why;
	snprintf(s->text, sizeof(s->text), "%s", text);
	s->n_detach++;
	if (s->is_releasing)
		sw_host_release(s->host, id);
}

static struct sw_host_params slow_params(struct slow *s)
{
	return (struct sw_host_params){.path = s->r->path,
		.n_local = 1,
		.max_clients = 2,
		.quota_bytes = 2 << 20,
		.events = {slow_attach, slow_declare, slow_detach},
		.ctx = s,
		.log = &s->r->log};
}

static void slow_open(struct slow *s)
{
	struct sw_host_params p;

	*s = (struct slow){.r = rig_new(NULL)};
	p = slow_params(s);
	assert_int_equal(rig_host_open(&p, &s->host), 0);
}

static void slow_close(struct slow *s)
{
	raw_close(&s->w);
	sw_host_close(&s->host);
	rig_close(s->r);
}

static void slow_poll(struct slow *s)
{
	for (int i = 0; i < 5; i++)
		sw_host_poll(s->host, 0);
}

static void say_hello(struct slow *s)
{
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX, 0};

	raw_connect(&s->w, s->r);
	raw_send(&s->w, &hello, sizeof(hello));
	slow_poll(s);
}

static void send_declare(struct slow *s, uint32_t batch)
{
	struct sw_edge_declare m;

	good_declare(&m, batch, 2);
	raw_send(&s->w, &m, declare_bytes(2));
	slow_poll(s);
}

static struct sw_host_client *admit(struct slow *s)
{
	struct sw_host_client *port;

	say_hello(s);
	assert_int_equal(s->n_attach, 1);
	assert_int_equal(
		sw_host_attached(s->host, s->id, 0, 1, 0, 1, &port), 0);
	return port;
}

static void listen__refuses(
	struct slow *s, const char *path, int err, const char *text)
{
	struct sw_host_params p = slow_params(s);
	struct sw_host *h = NULL;

	p.path = path;
	s->r->lines[0] = 0;
	assert_int_equal(rig_host_open(&p, &h), err);
	assert_null(h);
	if (!strstr(s->r->lines, text))
		fail_msg("log: %s", s->r->lines);
}

static void open__checks_its_path(void **state)
{
	struct slow s = {.r = rig_new(NULL)};
	struct sw_host_params p = slow_params(&s);
	const uint32_t uid = 1;
	char path[160];
	struct stat st;
	FILE *file;

	memset(path, 'x', sizeof(path));
	path[108] = 0;
	listen__refuses(&s, path, SW_EINVAL, "1 to 107 bytes");
	listen__refuses(&s, "", SW_EINVAL, "1 to 107 bytes");
	listen__refuses(&s, "/nowhere/agent.sock", SW_EIO, "/nowhere");
	file = fopen(s.r->path, "w");
	fclose(file);
	listen__refuses(&s, s.r->path, SW_EINVAL, "is not a socket");
	assert_int_equal(unlink(s.r->path), 0);

	assert_int_equal(rig_host_open(&p, &s.host), 0);
	assert_int_equal(stat(s.r->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	sw_host_close(&s.host);
	p.uids = &uid;
	/* the agent asks for the user of each client, so the socket is open to
	 * all */
	p.n_uids = 1;
	assert_int_equal(rig_host_open(&p, &s.host), 0);
	assert_int_equal(stat(s.r->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	listen__refuses(&s, s.r->path, SW_EBUSY, "another process listens");
	p.max_clients = 0;
	assert_int_equal(rig_host_open(&p, &s.host), SW_EINVAL);
	p.max_clients = 2 * 1023 + 9;
	assert_int_equal(rig_host_open(&p, &s.host), SW_EINVAL);
	sw_host_close(&s.host);
	assert_int_equal(access(s.r->path, F_OK), -1);
	sw_host_close(&s.host);
	rig_close(s.r);
}

static void open__replaces_a_stale_socket(void **state)
{
	struct slow s = {.r = rig_new(NULL)};
	struct sw_host_params p = slow_params(&s);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(a.sun_path, s.r->path);
	assert_int_equal(bind(sock, (void *)&a, sizeof(a)), 0);
	close(sock);
	assert_int_equal(rig_host_open(&p, &s.host), 0);
	sw_host_close(&s.host);
	rig_close(s.r);
}

/* The close does not remove a file that replaced our socket. */
static void close__leaves_other_files(void **state)
{
	struct slow s = {.r = rig_new(NULL)};
	struct sw_host_params p = slow_params(&s);

	assert_int_equal(rig_host_open(&p, &s.host), 0);
	assert_int_equal(unlink(s.r->path), 0);
	assert_int_equal(mkdir(s.r->path, 0700), 0);
	sw_host_close(&s.host);
	assert_int_equal(rmdir(s.r->path), 0);
	rig_close(s.r);
}

static void poll__keeps_its_time(void **state)
{
	uint64_t start, took, least = UINT64_MAX;
	struct slow s;

	slow_open(&s);
	for (int i = 0; i < 20;
		i++) { /* other processes may take our core now and then */
		start = sw_edge_now_ns();
		sw_host_poll(s.host, 0);
		took = sw_edge_now_ns() - start;
		least = took < least ? took : least;
	}
	assert_true(least < 5000000);
	start = sw_edge_now_ns();
	sw_host_poll(s.host, 30);
	assert_in_range(sw_edge_now_ns() - start, 29000000, LATEST_NS);
	s.w = (struct raw){-1, -1, -1, .control = NULL};
	slow_close(&s);
}

static void attach__client_leaves_before_the_answer(void **state)
{
	struct sw_host_client *port;
	struct slow s;

	slow_open(&s);
	say_hello(&s);
	close(s.w.sock);
	s.w.sock = -1;
	slow_poll(&s);
	assert_int_equal(s.n_detach, 1);
	assert_int_equal(s.why, SW_HOST_DIED);
	assert_int_equal(
		sw_host_attached(s.host, s.id, 0, 1, 0, 1, &port), SW_ENOENT);
	sw_host_refuse(s.host, s.id, SW_EBUSY, "too late");
	sw_host_release(s.host, s.id);
	sw_host_release(s.host, s.id);
	assert_int_equal(
		sw_host_attached(s.host, s.id, 0, 1, 0, 1, &port), SW_ENOENT);
	slow_close(&s);
}

static void attach__declaring_before_the_answer_is_a_violation(void **state)
{
	struct slow s;

	slow_open(&s);
	s.is_releasing = true;
	say_hello(&s);
	send_declare(&s, 0);
	assert_int_equal(s.n_detach, 1);
	assert_int_equal(s.why, SW_HOST_VIOLATION);
	assert_non_null(strstr(s.text, "before it is admitted"));
	slow_close(&s);
}

/* The reason reaches a client even if the client has sent more than the agent
 * read. */
static void violation__is_told_ahead_of_the_reset(void **state)
{
	uint32_t bad = 77;
	struct slow s;

	slow_open(&s);
	s.is_releasing = true;
	admit(&s);
	raw_attached(&s.w);
	for (int i = 0; i < 5; i++)
		raw_send(&s.w, &bad, sizeof(bad));
	slow_poll(&s);
	raw_await_end(&s.w, SW_EDGE_CLOSED, SW_EPROTO, "kind 77");
	slow_close(&s);
}

/* The mapping outlives the client until its release. */
static void declare__client_leaves_before_the_answer(void **state)
{
	struct slow s;

	slow_open(&s);
	admit(&s);
	send_declare(&s, 0);
	assert_int_equal(s.n_declare, 1);
	assert_int_equal(s.n_tensors, 2);
	assert_string_equal(s.tensors[1].name, "batch0.1");
	assert_int_equal(s.tensors[1].bytes, 16);
	raw_close(&s.w);
	slow_poll(&s);
	assert_int_equal(s.n_detach, 1);
	assert_int_equal(
		sw_host_declared(s.host, s.id, s.batch, 0, 0, ""), SW_ENOENT);
	sw_host_declare_failed(s.host, s.id, s.batch, SW_EREFUSED, "late");
	sw_host_status(s.host, s.id, "nobody reads it");
	sw_host_end(s.host, s.id, SW_EPEER, "nobody reads it");
	memset(s.tensors[0].base, 1, s.tensors[0].bytes);
	sw_host_release(s.host, s.id);
	s.w = (struct raw){-1, -1, -1, .control = NULL};
	slow_close(&s);
}

static void declare__before_the_answer_is_a_violation(void **state)
{
	struct slow s;

	slow_open(&s);
	admit(&s);
	send_declare(&s, 0);
	assert_int_equal(
		sw_host_declared(s.host, s.id, 1, 0, 0, ""), SW_ENOENT);
	send_declare(&s, 1);
	assert_int_equal(s.n_declare, 1);
	assert_int_equal(s.why, SW_HOST_VIOLATION);
	assert_non_null(strstr(s.text, "before the answer to the last one"));
	sw_host_release(s.host, s.id);
	slow_close(&s);
}

static void declare__answer_may_be_asked_for_once(void **state)
{
	struct slow s;

	slow_open(&s);
	admit(&s);
	send_declare(&s, 0);
	assert_int_equal(sw_host_declared(s.host, s.id, 0, 70, 0, ""), 0);
	assert_int_equal(
		sw_host_declared(s.host, s.id, 0, 70, 0, ""), SW_ENOENT);
	sw_host_declare_failed(s.host, s.id, 0, SW_EREFUSED, "no");
	assert_int_equal(s.n_detach, 0);
	slow_close(&s);
}

/* Open an agent with one client that is admitted. */
static struct sw_host_client *slow_admit(struct slow *s)
{
	struct sw_host_client *port;

	slow_open(s);
	port = admit(s);
	raw_attached(&s->w);
	return port;
}

/* Tensors get the numbers that the lcore assigned, across several batches. */
static void take__translates_tensors(void **state)
{
	struct sw_submit in[4] = {
		{1, 0, 5, 0}, {2, 1, 5, 0}, {3, 2, 5, 0}, {4, 3, 5, 0}};
	struct sw_host_submit out[8];
	struct sw_host_client *port;
	struct slow s;

	port = slow_admit(&s);
	send_declare(&s, 0);
	assert_int_equal(sw_host_declared(s.host, s.id, 0, 70, 0, ""), 0);
	send_declare(&s, 1);
	assert_int_equal(sw_host_declared(s.host, s.id, 1, 20, 0, ""), 0);
	assert_int_equal(sw_spsc_put(&s.w.submits, in, 4), 4);
	assert_int_equal(sw_host_take(port, out, 1), 1);
	assert_int_equal(out[0].tensor, 70);
	assert_int_equal(sw_host_take(port, out, 8), 3);
	assert_int_equal(out[0].tensor, 71);
	assert_int_equal(out[1].tensor, 20);
	assert_int_equal(out[2].tensor, 21);
	assert_int_equal(out[2].handle, 4);
	assert_int_equal(out[2].step, 5);
	assert_int_equal(sw_host_take(port, out, 8), 0);
	slow_close(&s);
}

static void evict__detaches_the_client(void **state)
{
	struct sw_submit in = {1, 0, 0, 0};
	struct sw_host_submit out;
	struct sw_host_client *port;
	struct slow s;

	port = slow_admit(&s);
	send_declare(&s, 0);
	assert_int_equal(sw_host_declared(s.host, s.id, 0, 0, 0, ""), 0);
	sw_host_evict(port, "pushed a tensor twice", 71);
	sw_host_evict(port, "said later", 1);
	sw_spsc_put(&s.w.submits, &in, 1);
	assert_int_equal(sw_host_take(port, &out, 1), 0);
	slow_poll(&s);
	assert_int_equal(s.why, SW_HOST_VIOLATION);
	assert_string_equal(s.text, "pushed a tensor twice (71)");
	/* The port stays usable until its release, but has no effect. */
	sw_host_complete(port, &(struct sw_completion){1, 0, 0});
	sw_host_idle_wait(&port, 1, NULL, 0, 100);
	sw_host_release(s.host, s.id);
	slow_close(&s);
}

static void idle_wait__keeps_its_time(void **state)
{
	struct sw_submit in = {1, 0, 0, 0};
	struct sw_host_submit out;
	struct sw_host_client *port;
	struct slow s;
	uint64_t start;

	port = slow_admit(&s);
	start = sw_edge_now_ns();
	sw_host_idle_wait(&port, 1, NULL, 0, 20000);
	assert_in_range(sw_edge_now_ns() - start, 19000000, LATEST_NS);
	start = sw_edge_now_ns();
	sw_host_idle_wait(NULL, 0, NULL, 0, 20000);
	assert_in_range(sw_edge_now_ns() - start, 19000000, LATEST_NS);
	/* A submit before the sleep ends it, even without a bell. */
	sw_spsc_put(&s.w.submits, &in, 1);
	start = sw_edge_now_ns();
	sw_host_idle_wait(&port, 1, NULL, 0, FOREVER_US);
	assert_true(sw_edge_now_ns() - start < LATEST_NS);
	sw_host_take(port, &out, 1);
	/* After a client's hang-up the sleep has its normal length. */
	raw_close(&s.w);
	s.w = (struct raw){-1, -1, -1, .control = NULL};
	sw_host_idle_wait(&port, 1, NULL, 0, 20000);
	start = sw_edge_now_ns();
	sw_host_idle_wait(&port, 1, NULL, 0, 20000);
	assert_in_range(sw_edge_now_ns() - start, 19000000, LATEST_NS);
	slow_close(&s);
}

static void nap__lasts_while_a_client_computes(void **state)
{
	struct sw_submit in = {1, 0, 0, 0};
	struct sw_host_client *port;
	struct slow s;
	uint64_t start;

	port = slow_admit(&s);
	sw_spsc_put(&s.w.submits, &in, 1);
	start = sw_edge_now_ns();
	sw_host_nap(&port, 1, 20000);
	assert_in_range(sw_edge_now_ns() - start, 19000000, LATEST_NS);
	start = sw_edge_now_ns();
	atomic_store(&s.w.control->client_sleeps, 1);
	sw_host_nap(&port, 1, FOREVER_US);
	atomic_store(&s.w.control->client_sleeps, 0);
	atomic_store(&s.w.control->client_polls, 1);
	sw_host_nap(&port, 1, FOREVER_US);
	sw_host_nap(NULL, 0, FOREVER_US);
	assert_true(sw_edge_now_ns() - start < LATEST_NS);
	slow_close(&s);
}

/* A port's socket ends the sleep while frames wait, and once for an error. */
static void idle_wait__other_descriptors(void **state)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	int fds[2] = {eventfd(0, 0), socket(AF_INET, SOCK_DGRAM, 0)};
	struct pollfd refused = {.fd = fds[1], .events = POLLIN};
	uint64_t start, one = 1;
	socklen_t len = sizeof(to);
	int other = socket(AF_INET, SOCK_DGRAM, 0);

	/* Sending to a closed UDP port causes an error on the socket. */
	assert_int_equal(bind(other, (void *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(other, (void *)&to, &len), 0);
	close(other);
	assert_int_equal(connect(fds[1], (void *)&to, sizeof(to)), 0);
	assert_int_equal(send(fds[1], "x", 1, 0), 1);
	assert_int_equal(poll(&refused, 1, 5000), 1);
	assert_true(refused.revents & POLLERR);
	start = sw_edge_now_ns();
	sw_host_idle_wait(NULL, 0, fds, 2, FOREVER_US);
	assert_true(sw_edge_now_ns() - start < LATEST_NS);
	start = sw_edge_now_ns();
	sw_host_idle_wait(NULL, 0, fds, 2, 20000);
	assert_in_range(sw_edge_now_ns() - start, 19000000, LATEST_NS);
	assert_int_equal(write(fds[0], &one, sizeof(one)), sizeof(one));
	start = sw_edge_now_ns();
	sw_host_idle_wait(NULL, 0, fds, 2, FOREVER_US);
	assert_true(sw_edge_now_ns() - start < LATEST_NS);
	close(fds[0]);
	close(fds[1]);
}

/* Unread progress lines must not take the room for answers. */
static void status__never_makes_a_client_deaf(void **state)
{
	union sw_edge_msg m;
	struct slow s;
	int fds[2];

	slow_open(&s);
	admit(&s);
	raw_attached(&s.w);
	for (int i = 0; i < 10000; i++)
		sw_host_status(s.host, s.id, "waiting for rank 2 of 4");
	send_declare(&s, 0);
	sw_host_declare_failed(s.host, s.id, 0, SW_EPEER, "no");
	assert_int_equal(raw_recv(&s.w, &m, fds), sizeof(m.text));
	assert_int_equal(m.kind, SW_EDGE_FAILED);
	slow_poll(&s);
	assert_int_equal(s.n_detach, 0);
	slow_close(&s);
}

static void place__keeps_local_ranks_apart(void **state)
{
	uint64_t residue[SW_EDGE_RUNS];

	for (uint32_t rank = 0; rank < SW_EDGE_RUNS; rank++) {
		uint64_t end = 0, last_end = 0;

		for (uint64_t bytes = 1; bytes < 100000; bytes += 777) {
			uint64_t at = sw_edge_place(rank, bytes, &end);

			assert_true(at >= last_end && end >= at + bytes);
			assert_true(at - last_end < 8192);
			assert_int_equal(at % 64, 0);
			if (last_end)
				assert_int_equal(at % 4096, residue[rank]);
			residue[rank] = at % 4096;
			last_end = end;
		}
		for (uint32_t other = 0; other < rank; other++)
			assert_int_not_equal(residue[rank], residue[other]);
	}
	/* Few ranks are far apart: four ranks are a quarter of a page apart. */
	for (uint32_t rank = 0; rank < 4; rank++)
		assert_int_equal(residue[rank] % 1024, 0);
}

/* Attach as another user; needs root to become one. */
static void user__must_be_admitted(uint32_t admitted, int err)
{
	struct rig *r = rig_open(&(struct rig_how){.uid = admitted});
	int status;
	pid_t pid;

	assert_int_equal(chmod(r->folder, 0711), 0);
	pid = rig_fork(r);
	if (!pid) {
		struct sw_settings s = rig_settings(r);
		struct sw_client *c = NULL;

		if (setuid(65534))
			_exit(2);
		_exit(sw_open(&s, &c) != err ||
			(err && !strstr(sw_last_error(NULL), "65534")));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	if (!err)
		rig_await(r, 1, SW_HOST_DIED, "");
	rig_close(r);
}

static void users__are_checked(void **state)
{
	if (geteuid())
		skip();
	user__must_be_admitted(0, SW_EPERM);
	user__must_be_admitted(1, SW_EPERM);
	user__must_be_admitted(65534, 0);
}

/* Take @want notes (0 or 1) and return how many have been lost. */
static uint32_t take_note(struct slow *s, struct sw_host_note *n, uint32_t want)
{
	uint32_t n_lost = 0;

	assert_int_equal(sw_host_take_notes(s->host, n, 1, &n_lost), want);
	return n_lost;
}

static void notes__are_taken_while_somebody_traces(void **state)
{
	struct sw_edge_note old = {.t_ns = 1, .kind = SW_EDGE_READY};
	struct sw_edge_note odd = {.t_ns = 2, .kind = SW_EDGE_N_NOTES};
	struct sw_edge_note good = {.t_ns = 3,
		.handle = 77,
		.bytes = 5,
		.ns = 1,
		.kind = SW_EDGE_COPY_OUT};
	struct sw_host_note got;
	struct sw_spsc ring;
	struct slow s;

	slow_open(&s);
	admit(&s);
	raw_attached(&s.w);
	sw_spsc_init(&ring, s.w.control->notes, SW_EDGE_NOTES, sizeof(old));
	assert_int_equal(atomic_load(&s.w.control->is_traced), 0);
	sw_spsc_put(&ring, &old, 1); /* noted before the trace started */
	atomic_store(&s.w.control->n_unnoted, 4);
	sw_host_trace(s.host, true);
	assert_int_equal(atomic_load(&s.w.control->is_traced), 1);
	assert_int_equal(take_note(&s, &got, 0), 0);
	sw_spsc_put(&ring, &odd, 1);
	sw_spsc_put(&ring, &good, 1);
	atomic_fetch_add(&s.w.control->n_unnoted, 3);
	/* a note of an unknown kind counts as lost */
	assert_int_equal(take_note(&s, &got, 0), 3);
	assert_int_equal(take_note(&s, &got, 1), 3);
	assert_memory_equal(&got.note, &good, sizeof(good));
	assert_int_equal(got.local_rank, 0);
	sw_host_trace(s.host, false);
	assert_int_equal(atomic_load(&s.w.control->is_traced), 0);
	atomic_store(&ring.shared->n_put, 123456789);
	take_note(&s, &got, 0);
	assert_int_equal(s.n_detach, 1);
	assert_int_equal(s.why, SW_HOST_VIOLATION);
	assert_non_null(strstr(s.text, "index into the ring of notes"));
	sw_host_release(s.host, s.id);
	slow_close(&s);
}

enum { MANY_NOTES = 20000 };

/* Play a process that writes notes faster than the agent takes them. */
static void *note_many(void *ctx)
{
	struct sw_edge_control *control = ctx;
	struct sw_spsc ring;

	sw_spsc_init(&ring, control->notes, SW_EDGE_NOTES,
		sizeof(struct sw_edge_note));
	for (uint32_t i = 1; i <= MANY_NOTES; i++) {
		struct sw_edge_note n = {.t_ns = i,
			.handle = i,
			.bytes = 3 * (uint64_t)i,
			.kind = SW_EDGE_COPY_IN};

		if (sw_spsc_put(&ring, &n, 1) != 1)
			atomic_fetch_add_explicit(
				&control->n_unnoted, 1, memory_order_relaxed);
	}
	return NULL;
}

/* Each note arrives whole and in order, or counts as lost. */
static void notes__are_whole_while_they_are_written(void **state)
{
	struct sw_host_note some[7];
	uint64_t last = 0, n_got = 0;
	uint32_t n, n_lost = 0;
	pthread_t thread;
	struct slow s;

	slow_open(&s);
	admit(&s);
	raw_attached(&s.w);
	sw_host_trace(s.host, true);
	assert_int_equal(
		pthread_create(&thread, NULL, note_many, s.w.control), 0);
	while (n_got + n_lost < MANY_NOTES) {
		n = sw_host_take_notes(s.host, some, 7, &n_lost);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(some[i].note.handle > last);
			last = some[i].note.handle;
			assert_int_equal(some[i].note.bytes, 3 * last);
			assert_int_equal(some[i].note.t_ns, last);
		}
		n_got += n;
	}
	pthread_join(thread, NULL);
	assert_int_equal(n_got + n_lost, MANY_NOTES);
	sw_host_release(s.host, s.id);
	slow_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__checks_its_path),
		cmocka_unit_test(open__replaces_a_stale_socket),
		cmocka_unit_test(close__leaves_other_files),
		cmocka_unit_test(poll__keeps_its_time),
		cmocka_unit_test(attach__client_leaves_before_the_answer),
		cmocka_unit_test(
			attach__declaring_before_the_answer_is_a_violation),
		cmocka_unit_test(violation__is_told_ahead_of_the_reset),
		cmocka_unit_test(declare__client_leaves_before_the_answer),
		cmocka_unit_test(declare__before_the_answer_is_a_violation),
		cmocka_unit_test(declare__answer_may_be_asked_for_once),
		cmocka_unit_test(take__translates_tensors),
		cmocka_unit_test(evict__detaches_the_client),
		cmocka_unit_test(idle_wait__keeps_its_time),
		cmocka_unit_test(idle_wait__other_descriptors),
		cmocka_unit_test(nap__lasts_while_a_client_computes),
		cmocka_unit_test(status__never_makes_a_client_deaf),
		cmocka_unit_test(place__keeps_local_ranks_apart),
		cmocka_unit_test(users__are_checked),
		cmocka_unit_test(notes__are_taken_while_somebody_traces),
		cmocka_unit_test(notes__are_whole_while_they_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
