/* net.c - connections for NCCL's send and receive: listen, connect, accept.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A connecting node sends the id of the handle first. Strangers can also
 * connect to that port: up to PENDING connections that have not sent an id may
 * wait, and one more replaces the oldest.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pmd/nccl/plugin.h"

enum { PENDING = 16, BACKLOG = 64, MAGIC = 0x4f4c4548 /* "HELO" */ };

/* NCCL repeats connect without a pause until it succeeds, so a connection that
 * it has not asked for in this time is abandoned. */
#define ABANDONED_NS UINT64_C(10000000000)

struct hello {
	uint32_t magic, version;
	struct sw_nccl_id id;
};

struct pending {
	int fd; /* 0: none */
	uint32_t got;
	struct hello hello;
};

struct listener {
	int fd;
	struct sw_nccl_id id;
	uint32_t next; /* oldest of pending */
	struct pending pending[PENDING];
};

/* A connection in progress, found by the address of its handle and its id. */
struct sw_nccl_dial {
	struct sw_nccl_dial *next;
	const void *handle;
	struct sw_nccl_id id;
	int fd;
	uint64_t asked_ns; /* when NCCL last asked for it */
};

static void set_options(int fd)
{
	int one = 1, idle_s = 10, tries = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* without keepalive, a dead machine would never be noticed */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

/* --- listen --- */

static int open_listener(struct listener *l, struct sw_nccl_handle *h)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sw_nccl_own_address(h->address);

	memcpy(&a, h->address, len);
	if (a.ss_family == AF_INET)
		((struct sockaddr_in *)&a)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&a)->sin6_port = 0;
	l->fd = socket(
		a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!len || l->fd < 0 || bind(l->fd, (void *)&a, len) ||
		listen(l->fd, BACKLOG) ||
		getsockname(l->fd, (void *)&a, &len) ||
		len > sizeof(h->address))
		return sw_nccl_fail(NCCL_SYSTEM, "cannot listen: %s",
			len ? strerror(errno) : "no network interface");
	memcpy(h->address, &a, len);
	h->address_bytes = (uint8_t)len;
	return NCCL_OK;
}

int sw_nccl_net_listen(int dev, void *handle, void **listen_comm)
{
	struct sw_nccl_handle h = {0};
	struct listener *l = calloc(1, sizeof(*l));
	int err;

	*listen_comm = NULL;
	if (!l || !handle || dev != 0) {
		free(l);
		return sw_nccl_fail(
			NCCL_INTERNAL, "cannot listen on device %d", dev);
	}
	l->fd = -1;
	err = sw_nccl_random(&h.id);
	if (!err)
		err = open_listener(l, &h);
	if (err) {
		sw_nccl_net_close_listen(l);
		return err;
	}
	l->id = h.id;
	sw_nccl_handle_seal(&h, SW_NCCL_NET);
	memcpy(handle, &h, sizeof(h));
	*listen_comm = l;
	return NCCL_OK;
}

int sw_nccl_net_close_listen(void *listen_comm)
{
	struct listener *l = listen_comm;

	if (!l)
		return NCCL_OK;
	for (uint32_t i = 0; i < PENDING; i++)
		if (l->pending[i].fd)
			close(l->pending[i].fd);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
	return NCCL_OK;
}

/* --- accept --- */

static void drop(struct pending *p)
{
	close(p->fd);
	*p = (struct pending){0};
}

static void take_all(struct listener *l)
{
	int fd;

	while ((fd = accept4(l->fd, NULL, NULL,
			SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct pending *p = &l->pending[l->next++ % PENDING];

		if (p->fd)
			drop(p);
		p->fd = fd;
	}
}

/* Read the hello. Returns true if it is complete and valid; drops a
 * stranger. */
static bool has_said(const struct listener *l, struct pending *p)
{
	ssize_t n = recv(p->fd, (char *)&p->hello + p->got,
		sizeof(p->hello) - p->got, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0)
		p->got += (uint32_t)n;
	if (n > 0 && p->got < sizeof(p->hello))
		return false;
	if (n > 0 && p->hello.magic == MAGIC && p->hello.version == 1 &&
		sw_nccl_is_same(&p->hello.id, &l->id))
		return true;
	sw_nccl_say(true, "closed a connection from a process outside this "
			  "communicator");
	drop(p);
	return false;
}

int sw_nccl_net_accept(void *listen_comm, void **recv_comm)
{
	struct listener *l = listen_comm;

	*recv_comm = NULL;
	if (!l)
		return sw_nccl_fail(NCCL_INTERNAL, "accept: no listen");
	take_all(l);
	for (uint32_t i = 0; i < PENDING; i++) {
		struct pending *p = &l->pending[i];

		if (!p->fd || !has_said(l, p))
			continue;
		set_options(p->fd);
		*recv_comm = sw_nccl_channel_new(p->fd, false);
		if (*recv_comm)
			p->fd = 0;
		return *recv_comm ? NCCL_OK
				  : sw_nccl_fail(NCCL_SYSTEM, "no memory");
	}
	return NCCL_OK;
}

/* --- connect --- */

static struct sw_nccl_dial **find_dial(struct sw_nccl_process *p,
	const void *handle, const struct sw_nccl_id *id)
{
	struct sw_nccl_dial **at = &p->dials;

	while (*at &&
		((*at)->handle != handle || !sw_nccl_is_same(&(*at)->id, id)))
		at = &(*at)->next;
	return at;
}

static void close_dial(struct sw_nccl_dial *d)
{
	if (d)
		close(d->fd);
	free(d);
}

/* Close connections that NCCL has not asked for in ABANDONED_NS, because their
 * communicators were aborted. */
static void close_abandoned(struct sw_nccl_process *p, uint64_t now_ns)
{
	for (struct sw_nccl_dial **at = &p->dials; *at;) {
		struct sw_nccl_dial *d = *at;

		if (now_ns - d->asked_ns < ABANDONED_NS) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		close_dial(d);
	}
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct sw_nccl_dial *take_dial(
	const void *handle, const struct sw_nccl_id *id)
{
	struct sw_nccl_process *p = sw_nccl_process();
	struct sw_nccl_dial **at, *d;

	pthread_mutex_lock(&p->lock);
	at = find_dial(p, handle, id);
	d = *at;
	if (d)
		*at = d->next;
	close_abandoned(p, now_ns());
	pthread_mutex_unlock(&p->lock);
	return d;
}

static void put_dial(struct sw_nccl_dial *d)
{
	struct sw_nccl_process *p = sw_nccl_process();

	pthread_mutex_lock(&p->lock);
	d->asked_ns = now_ns();
	d->next = p->dials;
	p->dials = d;
	pthread_mutex_unlock(&p->lock);
}

static struct sw_nccl_dial *start_dial(
	const void *handle, const struct sw_nccl_handle *h)
{
	struct sw_nccl_dial *d = calloc(1, sizeof(*d));
	struct sockaddr_storage a = {0};

	memcpy(&a, h->address, h->address_bytes);
	if (!d)
		return NULL;
	d->handle = handle;
	d->id = h->id;
	d->fd = socket(
		a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd >= 0 && (!connect(d->fd, (void *)&a, h->address_bytes) ||
				  errno == EINPROGRESS))
		return d;
	if (d->fd >= 0)
		close(d->fd);
	free(d);
	return NULL;
}

/* Return the outcome: 0, EAGAIN, or the error. */
static int look(struct sw_nccl_dial *d)
{
	struct pollfd p = {.fd = d->fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int no = 0;

	if (poll(&p, 1, 0) <= 0)
		return EAGAIN;
	return getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &no, &len) ? errno : no;
}

static int finish_dial(struct sw_nccl_dial *d, void **send_comm)
{
	struct hello hello = {MAGIC, 1, d->id};
	int fd = d->fd;

	free(d);
	set_options(fd);
	/* A new connection has room for its first bytes. */
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello))
		*send_comm = sw_nccl_channel_new(fd, true);
	if (*send_comm)
		return NCCL_OK;
	close(fd);
	return sw_nccl_fail(NCCL_REMOTE, "a node closed the connection");
}

int sw_nccl_net_connect(int dev, void *handle, void **send_comm)
{
	struct sw_nccl_handle h;
	struct sw_nccl_dial *d;
	int err = sw_nccl_handle_read(handle, SW_NCCL_NET, &h), no;

	*send_comm = NULL;
	if (err)
		return err;
	if (dev != 0)
		return sw_nccl_fail(NCCL_INTERNAL, "no device %d", dev);
	d = take_dial(handle, &h.id);
	if (!d)
		d = start_dial(handle, &h);
	no = d ? look(d) : errno;
	if (d && no == EAGAIN) {
		put_dial(d);
		return NCCL_OK;
	}
	if (!no)
		return finish_dial(d, send_comm);
	close_dial(d);
	return sw_nccl_fail(
		NCCL_REMOTE, "cannot connect to a node: %s", strerror(no));
}
