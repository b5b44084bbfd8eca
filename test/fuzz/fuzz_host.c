/* fuzz_host.c - the agent's messages and rings, written by hostile clients.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: a byte for the agent's kind, then steps (fuzz.h). One thread plays the
 * agent's thread, its lcore and the clients in turn.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pmd/host/host.h"
#include "sum/dtype.h"
#include "test/fuzz/fuzz.h"

enum {
	CLIENTS = 4,
	STEPS = 96,
	QUOTA = 6 << 20,
	/* Bits of the first byte: the number of local ranks, and what the agent
	 * refuses. */
	LOCALS = 1,
	REFUSES = 2,
	REFUSES_BATCH = 4,
	IS_SLOW = 8, /* the agent answers only in a step for it */
	CLASHES = 16,
};

struct client {
	int sock, bell;
	struct sw_edge_control *control;
	struct sw_spsc submits, colls, completions;
};

/* The agent's record of one attachment. */
struct seat {
	uint32_t id, batch;
	bool is_asked, is_asked_batch, is_tuned;
	struct sw_host_client *port;
};

static struct agent {
	struct sw_host *hosts[2]; /* one with one local rank, one with three */
	struct sw_host *host;
	char folder[64], paths[2][96];
	struct sw_log log;
	uint8_t kind;
	struct seat seats[CLIENTS + 1];
	struct client clients[CLIENTS];
	uint32_t n_local;
} agent;

/* --- the agent --- */

static struct seat *seat_of(uint32_t id)
{
	for (uint32_t i = 0; i < CLIENTS + 1; i++)
		if (agent.seats[i].id == id)
			return &agent.seats[i];
	return NULL;
}

/* Answer an ATTACH. Seats are local ranks, and there are more seats than
 * ranks. */
static void answer_attach(struct seat *t)
{
	uint32_t i = (uint32_t)(t - agent.seats), n = agent.n_local;

	if (!t->is_asked)
		return;
	t->is_asked = false;
	if (agent.kind & REFUSES || (n > 1 && i >= n)) {
		sw_host_refuse(agent.host, t->id, SW_EBUSY, "not now");
		t->id = 0;
	} else if (sw_host_attached(agent.host, t->id, 0, 3, n > 1 ? i : 0, n,
			   &t->port)) {
		t->id = 0;
	}
}

static void answer_batch(struct seat *t)
{
	if (!t->is_asked_batch)
		return;
	t->is_asked_batch = false;
	if (agent.kind & REFUSES_BATCH)
		sw_host_declare_failed(
			agent.host, t->id, t->batch, SW_ENOMEM, "no room");
	else
		sw_host_declared(agent.host, t->id, t->batch, 0,
			agent.kind & CLASHES ? SW_EMISMATCH : 0,
			agent.kind & CLASHES ? "declared otherwise" : "");
}

static void answer_tune(struct seat *t)
{
	if (t->is_tuned)
		sw_host_answer(agent.host, t->id, 0, "");
	t->is_tuned = false;
}

static void on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t local_rank)
{
	struct seat *t = seat_of(0);

	assert(t && id && pid == (uint32_t)getpid() && uid == getuid());
	*t = (struct seat){.id = id, .is_asked = true};
	if (!(agent.kind & IS_SLOW))
		answer_attach(t);
}

/* Check that every tensor has writable memory that no other tensor has. */
static void on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n)
{
	struct seat *t = seat_of(id);

	assert(t && t->port && !t->is_asked_batch && n > 0);
	for (uint32_t i = 0; i < n; i++) {
		assert(tensors[i].bytes ==
			tensors[i].n_elems *
				(tensors[i].ranks ? 2
						  : sw_dtype_bytes(
							    tensors[i].dtype)));
		assert(!tensors[i].ranks ==
			(tensors[i].kind != SW_EDGE_STREAM));
		assert(tensors[i].bytes > 0 && *tensors[i].name);
		memset(tensors[i].base, 1, tensors[i].bytes);
		if (tensors[i].result)
			memset(tensors[i].result, 2, tensors[i].bytes);
	}
	t->is_asked_batch = true;
	t->batch = batch;
	if (!(agent.kind & IS_SLOW))
		answer_batch(t);
}

static void release(struct seat *t)
{
	sw_host_release(agent.host, t->id);
	*t = (struct seat){0};
}

static void on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text)
{
	struct seat *t = seat_of(id);

	assert(t && *text);
	release(t);
}

static void on_tune(void *ctx, uint32_t id, const struct sw_edge_tune *tune)
{
	struct seat *t = seat_of(id);

	assert(t && !t->is_tuned && tune->what <= SW_EDGE_JOB);
	assert(strlen(tune->policy) < SW_EDGE_POLICY_BYTES);
	t->is_tuned = true;
	if (!(agent.kind & IS_SLOW))
		answer_tune(t);
}

static void on_end(void *ctx, uint32_t id, const struct sw_edge_end *end)
{
	struct seat *t = seat_of(id);

	assert(t && !t->is_tuned && end->what <= SW_EDGE_CLOSE_GROUP);
	assert(end->what != SW_EDGE_ABORT || end->err == SW_EABORTED ||
		end->err == SW_EEXPIRED);
	assert(strlen(end->why) < SW_EDGE_WHY_BYTES);
	t->is_tuned = true;
	if (!(agent.kind & IS_SLOW))
		answer_tune(t);
}

static void no_line(void *ctx, enum sw_log_level level, const char *text)
{
	assert(strlen(text) > 0);
}

static void open_host(uint32_t i)
{
	struct sw_host_params p = {.path = agent.paths[i],
		.numa_node = SW_NUMA_ANY,
		.n_local = i ? 3 : 1,
		.max_clients = CLIENTS,
		.quota_bytes = QUOTA,
		.events = {on_attach, on_declare, on_detach, on_tune, on_end},
		.log = &agent.log};

	agent.log = (struct sw_log){no_line, NULL, SW_LOG_DEBUG};
	snprintf(agent.paths[i], sizeof(agent.paths[i]), "%s/%u.sock",
		agent.folder, i);
	if (sw_host_open(&p, &agent.hosts[i]) || sw_host_listen(agent.hosts[i]))
		abort();
}

static void close_hosts(void)
{
	sw_host_close(&agent.hosts[0]);
	sw_host_close(&agent.hosts[1]);
	rmdir(agent.folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		agent.clients[i] = (struct client){.sock = -1, .bell = -1};
	fuzz_folder(agent.folder, sizeof(agent.folder));
	open_host(0);
	open_host(1);
	atexit(close_hosts);
	return 0;
}

/* --- clients --- */

static void hang_up(struct client *c)
{
	if (c->control)
		munmap(c->control, sizeof(*c->control));
	if (c->sock >= 0)
		close(c->sock);
	if (c->bell >= 0)
		close(c->bell);
	*c = (struct client){.sock = -1, .bell = -1};
}

static void dial(struct client *c)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	hang_up(c);
	strcpy(a.sun_path, agent.paths[agent.host == agent.hosts[1]]);
	c->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	if (connect(c->sock, (struct sockaddr *)&a, sizeof(a)))
		hang_up(c); /* the agent has not accepted for too long */
}

static void use(struct client *c, const int fds[2])
{
	assert(!c->control && fds[0] >= 0 && fds[1] >= 0);
	c->bell = fds[1];
	c->control = mmap(NULL, sizeof(*c->control), PROT_READ | PROT_WRITE,
		MAP_SHARED, fds[0], 0);
	assert(c->control != MAP_FAILED);
	close(fds[0]);
	sw_spsc_init(&c->submits, c->control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	sw_spsc_init(&c->colls, c->control->colls, SW_EDGE_COLLS,
		sizeof(struct sw_edge_coll));
	sw_spsc_init(&c->completions, c->control->completions,
		SW_EDGE_COMPLETIONS, sizeof(struct sw_completion));
}

/* Receive the agent's messages and close the tensors' descriptors. */
static void hear(struct client *c)
{
	union sw_edge_msg m;
	int fds[2];

	while (c->sock >= 0 &&
		sw_edge_recv(c->sock, &m, sizeof(m), fds, 2) > 0) {
		if (m.kind == SW_EDGE_ATTACHED) {
			use(c, fds);
			continue;
		}
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
}

/* --- messages; each maker returns the length --- */

static size_t attach(union sw_edge_msg *m, const struct fuzz_step *s)
{
	m->attach = (struct sw_edge_attach){SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, (uint16_t)(SW_EDGE_VERSION_MAX + s->a),
		s->b & 128 ? SW_EDGE_IF_FREE | s->b : s->b};
	return sizeof(m->attach);
}

static size_t declare(union sw_edge_msg *m, const struct fuzz_step *s)
{
	uint32_t n = 1 + s->b % 8;

	m->declare = (struct sw_edge_declare){.kind = SW_EDGE_DECLARE,
		.batch = s->a & 15,
		.n_total = n + (s->b >> 6),
		.first_i = s->b >> 3 & 7,
		.n = n};
	for (uint32_t i = 0; i < n; i++) {
		m->declare.descs[i] = (struct sw_edge_desc){
			.n_elems = 1 + (uint64_t)(s->c & 15) * 1000,
			.dtype = s->c >> 4,
			.kind = s->a >> 4 & 7};
		snprintf(m->declare.descs[i].name, SW_EDGE_NAME_BYTES, "t%u.%u",
			s->a, i);
	}
	return offsetof(struct sw_edge_declare, descs) +
	       n * sizeof(struct sw_edge_desc);
}

/* Make the longest message; say() has room for it. */
static size_t open_stream(union sw_edge_msg *m, const struct fuzz_step *s)
{
	struct sw_edge_open *o = &((union sw_edge_request *)m)->open;

	o->kind = SW_EDGE_OPEN;
	o->batch = s->a & 15;
	o->desc = (struct sw_edge_desc){
		.n_elems = s->b, .dtype = s->c & 15, .kind = SW_EDGE_STREAM};
	snprintf(o->desc.name, SW_EDGE_NAME_BYTES, "s%u", s->c >> 4);
	for (uint32_t i = 0; i < s->b; i++)
		o->ranks[i] = (uint16_t)(i * (s->a >> 4));
	return offsetof(struct sw_edge_open, ranks) +
	       s->b * sizeof(o->ranks[0]);
}

static size_t tune(union sw_edge_msg *m, const struct fuzz_step *s)
{
	m->tune = (struct sw_edge_tune){.kind = SW_EDGE_TUNE,
		.what = s->a,
		.value = {(uint64_t)s->b << 12, s->c},
		.policy = "fifo"};
	return sizeof(m->tune);
}

static size_t end_group(union sw_edge_msg *m, const struct fuzz_step *s)
{
	m->end = (struct sw_edge_end){
		.kind = SW_EDGE_END, .what = s->a & 3, .stream = s->b & 15};
	snprintf(m->end.why, sizeof(m->end.why), "%0159u", s->c);
	return sizeof(m->end);
}

static size_t bye(union sw_edge_msg *m, const struct fuzz_step *s)
{
	m->kind = SW_EDGE_CLOSE;
	if (!(s->a & 1))
		return sizeof(m->kind);
	sw_edge_text(&m->text, SW_EDGE_CLOSE, SW_EDEVICE, 0, "a device failed");
	m->text.text[s->b & 15] = (char)s->c;
	return sizeof(m->text);
}

static size_t any(union sw_edge_msg *m, const struct fuzz_step *s)
{
	m->kind = s->a;
	return s->b + 256u * s->c;
}

static size_t (*const makers[])(
	union sw_edge_msg *, const struct fuzz_step *) = {
	attach, declare, tune, bye, any, open_stream, end_group};

/* Send the step's message, @d bytes longer or shorter. */
static void say(
	struct client *c, struct fuzz_input *in, const struct fuzz_step *s)
{
	static union {
		union sw_edge_msg m;
		union sw_edge_request r;
		uint8_t bytes[sizeof(union sw_edge_request)];
	} u;
	int fds[2] = {0, 0};
	size_t n;

	memset(&u.m, 0, sizeof(u.m));
	n = makers[s->kind % 7](&u.m, s) + (size_t)(int8_t)s->d;
	for (uint32_t i = 0; i < s->n_patches; i++)
		fuzz_patch(in, u.bytes, sizeof(u.m));
	n = n < sizeof(u) ? n : 0;
	if (c->sock >= 0)
		sw_edge_send(c->sock, &u, n, fds, s->who & 128 ? 2 : 0);
}

/* --- steps --- */

static struct client *client_of(const struct fuzz_step *s)
{
	return &agent.clients[s->who % CLIENTS];
}

static void submit(struct client *c, const struct fuzz_step *s)
{
	struct sw_submit e = {.handle = s->d,
		.tensor = fuzz_edge(s->a),
		.step = s->b,
		.root = s->c};

	if (c->control)
		sw_spsc_put(&c->submits, &e, 1);
}

/* Call a collective on the first items, all at one place in memory. */
static void collective(struct client *c, const struct fuzz_step *s)
{
	struct sw_edge_coll e = {
		.handle = SW_EDGE_COLL_HANDLE | (s->a & 15) |
			  (s->d & 128 ? (uint64_t)s->d << 4 : 0),
		.count = fuzz_edge(s->b),
		.stream = s->a & 15,
		.root = s->c,
		.kind = s->c & 7,
		.dtype = s->c >> 4,
		.from = {.item = s->a >> 4, .offset = s->d & 127},
		.to = {.item = s->a >> 4}};

	if (c->control)
		sw_spsc_put(&c->colls, &e, 1);
}

/* Write anything into the shared memory: its first part, or a ring's index. */
static void scribble(
	struct client *c, struct fuzz_input *in, const struct fuzz_step *s)
{
	struct sw_edge_control *k = c->control;
	struct sw_spsc_shared *ring;

	if (!k)
		return;
	ring = (void *)(s->a & 1    ? k->submits
			: s->a & 32 ? k->colls
				    : k->completions);
	if (s->a & 2)
		atomic_fetch_add(&ring->n_put, s->b + 256u * s->c);
	if (s->a & 4)
		atomic_fetch_add(&ring->n_taken, s->b + 256u * s->c);
	if (s->a & 8)
		atomic_store(&k->client_sleeps, s->b);
	if (s->a & 16)
		atomic_store(&k->client_polls, s->b);
	for (uint32_t i = 0; i < s->n_patches; i++)
		fuzz_patch(in, (uint8_t *)k->submits, 1 << 16);
}

/* Let the lcore take one client's submits and complete up to @n_complete. */
static void serve(struct seat *t, uint32_t n_complete)
{
	struct sw_host_submit e[8];
	uint32_t n = sw_host_take(t->port, e, 8), tensor;
	const struct sw_edge_why why = {.text = "why"};
	uint64_t lacks;

	assert(n <= 8);
	for (uint32_t i = 0; i < n_complete && i < n; i++) {
		struct sw_completion c = {e[i].handle, 0, 0};

		sw_host_explain(t->port, c.handle, &why);
		sw_host_complete(t->port, &c);
	}
	for (uint32_t i = 0; i < 8; i++)
		if (sw_host_take_grown(t->port, &tensor, &lacks))
			sw_host_note_summed(t->port);
}

/* Take collectives; complete those whose bit in @room is set, put back the
 * others. */
static void serve_colls(struct seat *t, uint32_t room)
{
	struct sw_host_coll m;
	uint32_t n_left = 8;

	for (uint32_t i = 0; sw_host_take_coll(t->port, &m, &n_left); i++) {
		struct sw_completion c = {m.handle, 0, 0};

		assert(m.from && m.to && m.count);
		*(volatile char *)m.to = *(const volatile char *)m.from;
		if (room >> i & 1)
			sw_host_complete(t->port, &c);
		else
			sw_host_put_back(t->port, &m);
	}
}

static void lcore(const struct fuzz_step *s)
{
	struct sw_host_tuning tuning = {s->b, s->c, s->d, 1, 1, "fifo"};
	struct sw_host_client *ports[CLIENTS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < CLIENTS + 1; i++) {
		struct seat *t = &agent.seats[i];

		if (!t->port)
			continue;
		serve(t, s->a);
		serve_colls(t, s->d);
		sw_host_show_tuning(t->port, &tuning);
		if (s->b == 255)
			sw_host_evict(t->port, "is not liked", s->c);
		if (n < CLIENTS)
			ports[n++] = t->port;
	}
	if (s->c & 1)
		sw_host_idle_wait(ports, n, NULL, 0, 0);
	if (s->c & 2)
		sw_host_nap(ports, n, 0);
}

static void answer(const struct fuzz_step *s)
{
	struct seat *t = &agent.seats[s->a % (CLIENTS + 1)];

	if (!t->id)
		return;
	sw_host_status(agent.host, t->id, "waiting");
	answer_tune(t);
	answer_batch(t);
	answer_attach(t);
	if (!(s->b & 1) || !t->id)
		return;
	sw_host_end(agent.host, t->id, SW_EPEER, "the job failed");
	release(t);
}

static void run(struct fuzz_input *in, const struct fuzz_step *s)
{
	struct client *c = client_of(s);

	switch (s->kind) {
	case 0:
		lcore(s);
		break;
	case 1:
		dial(c);
		break;
	case 2:
		hang_up(c);
		break;
	case 3:
		submit(c, s);
		break;
	case 4:
		scribble(c, in, s);
		break;
	case 5:
		answer(s);
		break;
	case 6:
		hear(c);
		break;
	case 7:
		collective(c, s);
		break;
	default:
		say(c, in, s);
	}
}

/* Disconnect all clients and check that the agent has released everything. */
static void check_end(void)
{
	struct sw_host *h = agent.host;

	for (uint32_t i = 0; i < CLIENTS; i++)
		hang_up(&agent.clients[i]);
	for (uint32_t i = 0; i < 4; i++)
		sw_host_poll(h, 0);
	for (uint32_t i = 0; i < CLIENTS + 1; i++)
		assert(!agent.seats[i].id);
	for (uint32_t i = 0; i < h->n_slots; i++)
		assert(h->slots[i].state == SW_SLOT_FREE);
	assert(h->used_bytes == 0 && !h->results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_input in = {data, n};
	struct fuzz_step s;
	int fd = dup(0), fd_after;

	close(fd);
	agent.kind = fuzz_u8(&in);
	agent.host = agent.hosts[agent.kind & LOCALS];
	agent.n_local = agent.kind & LOCALS ? 3 : 1;
	for (uint32_t i = 0; i < STEPS && fuzz_step(&in, &s); i++) {
		run(&in, &s);
		if (!(s.who & 16)) {
			sw_host_poll(agent.host, 0);
			hear(client_of(&s));
		}
	}
	check_end();
	fd_after = dup(0);
	close(fd_after);
	assert(fd == fd_after); /* the lowest free one: none has leaked */
	return 0;
}
