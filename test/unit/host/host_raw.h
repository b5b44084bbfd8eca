/* host_raw.h - a client without the library, and a bystander of its mistakes.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_HOST_HOST_RAW_H
#define SW_TEST_UNIT_HOST_HOST_RAW_H

#include "test/unit/host/host_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The connection, memory and rings of a client without the library. */
struct raw {
	int sock, bell, memory;
	struct sw_edge_control *control;
	struct sw_spsc submits, colls, completions;
};

static inline void raw_send(struct raw *w, const void *msg, size_t bytes)
{
	assert_int_equal(sw_edge_send(w->sock, msg, bytes, NULL, 0), 0);
}

/* Receive the next message, skipping progress lines. Return 0 if none arrives,
 * or an error. */
static inline int raw_recv(struct raw *w, union sw_edge_msg *m, int *fds)
{
	struct pollfd fd = {.fd = w->sock, .events = POLLIN};
	int n;

	do {
		poll(&fd, 1, RIG_WAIT_MS);
		n = sw_edge_recv(w->sock, m, sizeof(*m), fds, 2);
	} while (n > 0 && m->kind == SW_EDGE_STATUS);
	return n == SW_EAGAIN ? 0 : n;
}

static inline void raw_connect(struct raw *w, const struct rig *r)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	*w = (struct raw){.bell = -1, .memory = -1};
	strcpy(a.sun_path, r->path);
	w->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(w->sock, (void *)&a, sizeof(a)), 0);
}

/* Receive the message that admits this client, and map its memory. */
static inline void raw_attached(struct raw *w)
{
	union sw_edge_msg m;
	int fds[2];

	assert_int_equal(raw_recv(w, &m, fds), sizeof(m.attached));
	assert_int_equal(m.kind, SW_EDGE_ATTACHED);
	w->memory = fds[0];
	w->bell = fds[1];
	w->control = mmap(NULL, sizeof(*w->control), PROT_READ | PROT_WRITE,
		MAP_SHARED, w->memory, 0);
	assert_true(w->control != MAP_FAILED);
	sw_spsc_init(&w->submits, w->control->submits, SW_EDGE_TENSORS,
		sizeof(struct sw_submit));
	sw_spsc_init(&w->colls, w->control->colls, SW_EDGE_COLLS,
		sizeof(struct sw_edge_coll));
	sw_spsc_init(&w->completions, w->control->completions,
		SW_EDGE_COMPLETIONS, sizeof(struct sw_completion));
}

static inline void raw_open(struct raw *w, const struct rig *r)
{
	struct sw_edge_attach hello = {SW_EDGE_ATTACH, SW_EDGE_MAGIC,
		SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX, 0};

	raw_connect(w, r);
	raw_send(w, &hello, sizeof(hello));
	raw_attached(w);
}

static inline void raw_close(struct raw *w)
{
	if (w->control)
		munmap(w->control, sizeof(*w->control));
	close(w->sock);
	close(w->bell);
	close(w->memory);
}

/* Check that the agent hangs up with @err and a message that contains @text. */
static inline void raw_await_end(
	struct raw *w, enum sw_edge_kind kind, int err, const char *text)
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

/* Fill @m with a valid batch of @n tensors that have new names. */
static inline void good_declare(
	struct sw_edge_declare *m, uint32_t batch, uint32_t n)
{
	*m = (struct sw_edge_declare){
		.kind = SW_EDGE_DECLARE, .batch = batch, .n_total = n, .n = n};
	for (uint32_t i = 0; i < n; i++) {
		m->descs[i] =
			(struct sw_edge_desc){.n_elems = 4, .dtype = SW_F32};
		snprintf(m->descs[i].name, sizeof(m->descs[i].name),
			"batch%u.%u", batch, i);
	}
}

static inline size_t declare_bytes(uint32_t n)
{
	return offsetof(struct sw_edge_declare, descs) +
	       n * sizeof(struct sw_edge_desc);
}

/* Declare a batch, which the agent must admit. */
static inline void raw_declare_as(
	struct raw *w, const struct sw_edge_declare *m)
{
	union sw_edge_msg answer;
	int fds[2];

	raw_send(w, m, declare_bytes(m->n));
	assert_int_equal(raw_recv(w, &answer, fds), sizeof(answer.declared));
	assert_int_equal(answer.kind, SW_EDGE_DECLARED);
	close(fds[0]);
}

static inline void raw_declare(struct raw *w, uint32_t batch, uint32_t n)
{
	struct sw_edge_declare m;

	good_declare(&m, batch, n);
	raw_declare_as(w, &m);
}

static inline uint32_t n_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline struct sw_spsc_shared *ring_of(unsigned char *memory)
{
	return (struct sw_spsc_shared *)(void *)memory;
}

/* One agent for all cases, and a bystander that must not be affected. */
struct scene {
	struct rig *r;
	struct sw_client *bystander;
	struct sw_tensor *t;
	uint32_t n_gone, n_fds, n_pushed;
};

static inline void check_bystander(struct scene *s)
{
	float *data = sw_tensor_data(s->t);
	uint64_t h;

	*data = 1;
	assert_int_equal(
		sw_push_pull(s->bystander, s->t, s->n_pushed++, &h), 0);
	assert_int_equal(sw_wait(s->bystander, h), 0);
	assert_true(*data == 2);
}

static inline int scene_open(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->r = rig_open(&(struct rig_how){.quota_bytes = 32 << 20});
	s->bystander = rig_client(s->r);
	s->t = rig_tensor(s->bystander, "w", 1);
	/* the agent has closed the descriptors that it passed on */
	rig_hold(s->r);
	s->n_fds = n_open_fds();
	rig_go(s->r);
	*state = s;
	return 0;
}

/* Check that no descriptor of a client that left is open. */
static inline void check_fds(const struct scene *s)
{
	for (int i = 0; i < RIG_WAIT_MS && n_open_fds() != s->n_fds; i++)
		usleep(1000);
	assert_int_equal(n_open_fds(), s->n_fds);
}

/* Check that the client left for reason @why, that all of its resources are
 * released, and that the bystander still works. */
static inline void scene_check(
	struct scene *s, enum sw_host_why why, const char *text)
{
	rig_await(s->r, ++s->n_gone, why, text);
	check_fds(s);
	check_bystander(s);
}

static inline int scene_close(void **state)
{
	struct scene *s = *state;

	check_bystander(s);
	sw_close(&s->bystander);
	rig_await(s->r, ++s->n_gone, SW_HOST_CLOSED, "");
	rig_close(s->r);
	free(s);
	return 0;
}

#endif
