/* poll.c - control thread: accept clients and read their messages.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "pmd/host/host.h"

enum {
	FDS_PER_SLOT = 2,
	FIXED_FDS = 2,
	MAX_FDS = FIXED_FDS + FDS_PER_SLOT * SW_HOST_SLOTS_MAX,
	ACCEPTS_PER_POLL = 16,
	MESSAGES_PER_POLL = 80, /* per client: a batch of 4,096 tensors */
	HELLO_TIMEOUT_S = 2,
};

static struct sw_slot *free_slot(struct sw_host *h)
{
	for (uint32_t i = 0; i < h->n_slots; i++)
		if (h->slots[i].state == SW_SLOT_FREE)
			return &h->slots[i];
	return NULL;
}

static void send_away(int sock, int err, const char *text)
{
	struct sw_edge_text m;

	sw_edge_text(&m, SW_EDGE_REFUSED, err, 0, text);
	sw_edge_send(sock, &m, sizeof(m), NULL, 0);
	close(sock);
}

/* Return a descriptor that signals the end of process @pid, or -1 on Linux
 * before 5.3, where only the socket signals it. glibc has the call since 2.36.
 */
static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Admit a connection. Watch the process as well as its socket, because forked
 * children keep the socket open after the process dies. */
static void take_in(struct sw_host *h, int sock)
{
	struct sw_slot *s = free_slot(h);
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	char text[SW_EDGE_TEXT_BYTES];

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		close(sock);
		return;
	}
	if (!sw_host_admits(h, cred.uid)) {
		snprintf(text, sizeof(text),
			"the agent at %s runs as user %u and does not admit "
			"user %u; [agent] users lists the admitted users",
			h->p.path, geteuid(), cred.uid);
		if (sw_host_may_say(h))
			sw_log(h->p.log, SW_LOG_WARN, "process %d refused: %s",
				cred.pid, text);
		send_away(sock, SW_EPERM, text);
		return;
	}
	if (!s) {
		send_away(sock, SW_EBUSY,
			"too many processes are attaching to this agent at "
			"once");
		return;
	}
	s->sock = sock;
	s->pid = (uint32_t)cred.pid;
	s->uid = cred.uid;
	s->pid_fd = cred.pid > 0 ? open_pidfd(cred.pid) : -1;
	s->state = SW_SLOT_HELLO;
	s->deadline_ns = sw_edge_now_ns() + HELLO_TIMEOUT_S * 1000000000ull;
}

/* Log that no descriptor is left, once until a process gets in. The refused
 * process stays in the backlog, so pause to keep the control thread from
 * spinning. */
static void say_full(struct sw_host *h, int no)
{
	if (!h->is_full)
		sw_log(h->p.log, SW_LOG_ERROR,
			"no process can attach at %s: %s; raise the limit of "
			"the agent (ulimit -n, LimitNOFILE= of its unit)%s",
			h->p.path, strerror(no),
			no == ENFILE ? ", and fs.file-max of the machine" : "");
	h->is_full = true;
	nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void accept_some(struct sw_host *h)
{
	for (int i = 0; i < ACCEPTS_PER_POLL; i++) {
		int sock = accept4(
			h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (sock < 0 && (errno == EMFILE || errno == ENFILE))
			say_full(h, errno);
		if (sock < 0)
			return;
		h->is_full = false;
		take_in(h, sock);
	}
}

static uint32_t n_clients(const struct sw_host *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n_slots; i++)
		n += h->slots[i].state > SW_SLOT_HELLO;
	return n;
}

/* Return the highest version that both speak; 0: none. */
static uint32_t choose_version(const struct sw_edge_attach *m)
{
	uint32_t max = m->version_max < SW_EDGE_VERSION_MAX
			       ? m->version_max
			       : SW_EDGE_VERSION_MAX;

	return max < m->version_min || max < SW_EDGE_VERSION_MIN ? 0 : max;
}

static void rx_attach(
	struct sw_slot *s, const struct sw_edge_attach *m, size_t bytes)
{
	struct sw_host *h = s->host;
	char text[SW_EDGE_TEXT_BYTES];

	if (bytes != sizeof(*m) || m->kind != SW_EDGE_ATTACH ||
		m->magic != SW_EDGE_MAGIC) {
		sw_slot_refuse(s, SW_EPROTO,
			"the first message is not from libsumwire");
		return;
	}
	s->version = choose_version(m);
	if (!s->version) {
		snprintf(text, sizeof(text),
			"the agent at %s speaks versions %u to %u of the "
			"attachment, this process %u to %u: install releases "
			"that have one in common",
			h->p.path, SW_EDGE_VERSION_MIN, SW_EDGE_VERSION_MAX,
			m->version_min, m->version_max);
		sw_slot_refuse(s, SW_EVERSION, text);
		return;
	}
	if (n_clients(h) >= h->p.max_clients) {
		snprintf(text, sizeof(text),
			"the agent at %s admits %u processes, and all have "
			"attached",
			h->p.path, h->p.max_clients);
		sw_slot_refuse(s, SW_EBUSY, text);
		return;
	}
	s->declared = calloc(1, sizeof(*s->declared));
	if (!s->declared) {
		sw_slot_refuse(s, SW_ENOMEM, "the agent is out of memory");
		return;
	}
	s->state = SW_SLOT_ASKED;
	h->p.events.on_attach(
		h->p.ctx, s->id, s->pid, s->uid, m->local_rank - 1);
}

static bool is_tune(
	const struct sw_slot *s, const struct sw_edge_tune *m, size_t bytes)
{
	return bytes == sizeof(*m) && s->state == SW_SLOT_ATTACHED &&
	       !s->is_asking && m->what <= SW_EDGE_JOB &&
	       !m->policy[sizeof(m->policy) - 1];
}

static void rx_tune(struct sw_slot *s, const struct sw_edge_tune *m)
{
	struct sw_host *h = s->host;

	s->is_asking = true;
	h->p.events.on_tune(h->p.ctx, s->id, m);
}

static bool has_item(
	const struct sw_slot *s, uint32_t id, enum sw_edge_item kind)
{
	const struct sw_host_item *m = sw_host_item(s->client, id);

	return m && m->kind == kind;
}

/* Check a group's end: an existing stream, a reason and a sentence. */
static bool is_end(
	const struct sw_slot *s, const struct sw_edge_end *m, size_t bytes)
{
	return bytes == sizeof(*m) && s->state == SW_SLOT_ATTACHED &&
	       !s->is_asking &&
	       (m->what == SW_EDGE_CLOSE_GROUP ||
		       (m->what == SW_EDGE_ABORT &&
			       (m->err == SW_EABORTED ||
				       m->err == SW_EEXPIRED))) &&
	       !m->why[sizeof(m->why) - 1] &&
	       has_item(s, m->stream, SW_EDGE_STREAM);
}

static void rx_end(struct sw_slot *s, struct sw_edge_end m)
{
	struct sw_host *h = s->host;

	s->is_asking = true;
	m.stream = sw_host_item(s->client, m.stream)->name;
	sw_text_clean(m.why, sizeof(m.why));
	h->p.events.on_end(h->p.ctx, s->id, &m);
}

static bool is_free(
	const struct sw_slot *s, const struct sw_edge_free *m, size_t bytes)
{
	return bytes == sizeof(*m) && s->state == SW_SLOT_ATTACHED &&
	       !s->is_asking &&
	       (has_item(s, m->item, SW_EDGE_MEMORY) ||
		       has_item(s, m->item, SW_EDGE_STREAM));
}

static void rx_free(struct sw_slot *s, uint32_t item)
{
	struct sw_host *h = s->host;

	s->is_asking = true;
	s->is_freeing = true;
	s->freeing = item;
	h->p.events.on_free(h->p.ctx, s->id, item);
}

/* Return whether the message ends the job with a reason. */
static bool is_give_up(const struct sw_edge_text *m, size_t bytes)
{
	return bytes == sizeof(*m) && m->kind == SW_EDGE_CLOSE && *m->text &&
	       !m->text[sizeof(m->text) - 1];
}

static void rx_give_up(struct sw_slot *s, struct sw_edge_text m)
{
	sw_text_clean(m.text, sizeof(m.text));
	sw_slot_detach(s, SW_HOST_DIED, "%s", m.text);
}

static void rx_attached(
	struct sw_slot *s, const union sw_edge_request *r, size_t bytes)
{
	const union sw_edge_msg *m = &r->any;
	uint32_t kind = bytes >= sizeof(kind) ? m->kind : 0;

	if (kind == SW_EDGE_CLOSE && bytes == sizeof(kind))
		sw_slot_detach(s, SW_HOST_CLOSED, "closed its attachment");
	else if (is_give_up(&m->text, bytes))
		rx_give_up(s, m->text);
	else if (kind == SW_EDGE_TUNE && is_tune(s, &m->tune, bytes))
		rx_tune(s, &m->tune);
	else if (kind == SW_EDGE_END && is_end(s, &m->end, bytes))
		rx_end(s, m->end);
	else if (kind == SW_EDGE_FREE && is_free(s, &m->free, bytes))
		rx_free(s, m->free.item);
	else if (kind == SW_EDGE_DECLARE && s->state == SW_SLOT_ATTACHED)
		sw_slot_rx_declare(s, &m->declare, bytes);
	else if (kind == SW_EDGE_OPEN && s->state == SW_SLOT_ATTACHED)
		sw_slot_rx_open(s, &r->open, bytes);
	else
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"sent a message of kind %u and %zu bytes, which is not "
			"allowed %s",
			kind, bytes,
			s->state == SW_SLOT_ATTACHED ? "here"
						     : "before it is admitted");
}

/* Handle one message; return false if none is left or the client has detached.
 */
static bool rx_one(struct sw_slot *s)
{
	union sw_edge_request m;
	uint32_t id = s->id;
	int n = sw_edge_recv(s->sock, &m, sizeof(m), NULL, 0);

	if (n == SW_EAGAIN)
		return false;
	if (n == SW_ECLOSED)
		sw_slot_detach(s, SW_HOST_DIED, "closed the connection");
	else if (n < 0)
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"sent a descriptor, or a message of more than %zu "
			"bytes",
			sizeof(m));
	else if (s->state == SW_SLOT_HELLO)
		rx_attach(s, &m.any.attach, (size_t)n);
	else
		rx_attached(s, &m, (size_t)n);
	return s->id == id && s->sock >= 0;
}

/* A callback may free the slot, so each step checks its id again. No other
 * process gets the slot before the next accept. */
static void serve(
	struct sw_slot *s, uint32_t id, bool is_readable, bool is_dead)
{
	if (is_readable && s->sock >= 0 && s->id == id)
		for (int i = 0; i < MESSAGES_PER_POLL && rx_one(s); i++)
			;
	if (is_dead && s->sock >= 0 && s->id == id)
		sw_slot_detach(s, SW_HOST_DIED, "died");
	if (s->id == id && s->state == SW_SLOT_HELLO &&
		sw_edge_now_ns() > s->deadline_ns)
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"connected, but sent nothing for %u s",
			HELLO_TIMEOUT_S);
	if (s->id == id && s->sock >= 0 && s->is_deaf)
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"does not read the answers from its socket");
	if (s->id == id && s->state == SW_SLOT_ATTACHED &&
		atomic_load_explicit(
			&s->client->is_evicted, memory_order_acquire))
		sw_slot_detach(s, SW_HOST_VIOLATION, "%s (%llu)",
			s->client->reason,
			(unsigned long long)s->client->value);
	if (s->id == id && s->state == SW_SLOT_ATTACHED)
		sw_slot_reserve(s);
}

/* Return the time until the next timer, at most @timeout_ms. */
static int patience_ms(const struct sw_host *h, uint32_t timeout_ms)
{
	uint64_t now = sw_edge_now_ns(), ms = timeout_ms;

	for (uint32_t i = 0; i < h->n_slots; i++) {
		const struct sw_slot *s = &h->slots[i];
		uint64_t left_ms = 0;

		if (s->state == SW_SLOT_ATTACHED && sw_slot_is_reserving(s))
			return 0;
		if (s->state != SW_SLOT_HELLO)
			continue;
		if (s->deadline_ns > now)
			left_ms = (s->deadline_ns - now) / 1000000 + 1;
		ms = left_ms < ms ? left_ms : ms;
	}
	return ms < 3600000 ? (int)ms : 3600000;
}

static void wait_for(struct sw_host *h, struct pollfd *fds, uint32_t timeout_ms)
{
	uint64_t count;
	nfds_t n = FIXED_FDS + FDS_PER_SLOT * h->n_slots;

	fds[0] = (struct pollfd){.fd = h->listener, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = h->kick_fd, .events = POLLIN};
	for (uint32_t i = 0; i < h->n_slots; i++) {
		struct pollfd *f = fds + FIXED_FDS + FDS_PER_SLOT * i;

		f[0] = (struct pollfd){
			.fd = h->slots[i].sock, .events = POLLIN};
		f[1] = (struct pollfd){
			.fd = h->slots[i].pid_fd, .events = POLLIN};
	}
	/* If a signal interrupts poll, all revents are still zero. */
	poll(fds, n, patience_ms(h, timeout_ms));
	if (fds[1].revents && read(h->kick_fd, &count, sizeof(count)) < 0)
		return;
}

void sw_host_poll(struct sw_host *h, uint32_t timeout_ms)
{
	struct pollfd fds[MAX_FDS];
	uint32_t ids[SW_HOST_SLOTS_MAX];

	wait_for(h, fds, timeout_ms);
	for (uint32_t i = 0; i < h->n_slots; i++)
		ids[i] = h->slots[i].id;
	for (uint32_t i = 0; i < h->n_slots; i++) {
		const struct pollfd *f = fds + FIXED_FDS + FDS_PER_SLOT * i;

		serve(&h->slots[i], ids[i], f[0].revents, f[1].revents);
	}
	if (fds[0].revents)
		accept_some(h);
	sw_host_say_unsaid(h);
}
