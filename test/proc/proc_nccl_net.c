/* proc_nccl_net.c - NCCL's send and receive, by the plugin's sockets.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   proc_nccl_net PLUGIN 8|11
 *
 * One process has both ends: no call of one may wait for the other.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/proc/proc_nccl.h"

enum { BYTES_MAX = 4 << 20, ADDRESS_AT = 48 /* offset in a handle */ };

struct pair {
	struct node *k;
	uint8_t handle[NCCL_HANDLE_BYTES];
	void *listen, *send, *recv;
};

/* --- both versions --- */

static int net_listen(struct pair *p)
{
	return p->k->net8 ? p->k->net8->listen(0, p->handle, &p->listen)
			  : p->k->net11->listen(
				    p->k->ctx, 0, p->handle, &p->listen);
}

static int net_connect(struct pair *p, void *handle)
{
	return p->k->net8 ? p->k->net8->connect(0, handle, &p->send, NULL)
			  : p->k->net11->connect(
				    p->k->ctx, 0, handle, &p->send, NULL);
}

static int net_accept(struct pair *p)
{
	return p->k->net8 ? p->k->net8->accept(p->listen, &p->recv, NULL)
			  : p->k->net11->accept(p->listen, &p->recv, NULL);
}

static int net_send(struct pair *p, void *data, size_t n, void **request)
{
	return p->k->net8 ? p->k->net8->isend(
				    p->send, data, (int)n, 0, p->send, request)
			  : p->k->net11->isend(p->send, data, n, 0, p->send,
				    NULL, request);
}

static int net_recv(struct pair *p, void *data, size_t n, void **request)
{
	int size = (int)n, tag = 0;

	return p->k->net8 ? p->k->net8->irecv(p->recv, 1, &data, &size, &tag,
				    &p->recv, request)
			  : p->k->net11->irecv(p->recv, 1, &data, &n, &tag,
				    &p->recv, NULL, request);
}

static int net_test(struct pair *p, void *request, int *done, int *size)
{
	return p->k->net8 ? p->k->net8->test(request, done, size)
			  : p->k->net11->test(request, done, size);
}

static void net_close(struct pair *p)
{
	int (*close_any)(void *) =
		p->k->net8 ? p->k->net8->close_send : p->k->net11->close_send;

	if (p->send)
		nccl_must(!close_any(p->send), "closeSend");
	if (p->recv)
		nccl_must(!close_any(p->recv), "closeRecv");
	p->send = p->recv = NULL;
}

static void net_close_listen(struct pair *p)
{
	nccl_must(!(p->k->net8 ? p->k->net8->close_listen(p->listen)
			       : p->k->net11->close_listen(p->listen)),
		"closeListen");
}

/* --- cases --- */

static void join(struct pair *p)
{
	uint32_t n_tries = 0;

	for (; !p->send || !p->recv; nccl_later(&n_tries)) {
		nccl_must(p->send || !net_connect(p, p->handle), "connect");
		nccl_must(p->recv || !net_accept(p), "accept");
	}
}

static void start(struct pair *p)
{
	nccl_must(!net_listen(p) && p->listen, "listen");
	join(p);
}

/* Wait until both are done; return the first error. */
static int await(struct pair *p, void *send, void *recv, int *size)
{
	int done[2] = {!send, !recv};
	uint32_t n_tries = 0;

	while (!done[0] || !done[1]) {
		int err = 0;

		if (!done[0])
			err = net_test(p, send, &done[0], NULL);
		if (!err && !done[1])
			err = net_test(p, recv, &done[1], size);
		if (err)
			return err;
		if (n_tries++ > 1000)
			nccl_later(&n_tries);
	}
	return 0;
}

static void run_messages(struct pair *p, char *from, char *to)
{
	static const size_t sizes[] = {0, 1, 4096, 100003, BYTES_MAX};
	void *send, *recv;

	start(p);
	for (uint32_t i = 0; i < 5; i++) {
		int size = -1;

		for (size_t k = 0; k < sizes[i]; k++)
			from[k] = (char)(k * 31 + i);
		nccl_must(!net_recv(p, to, BYTES_MAX, &recv) && recv, "irecv");
		nccl_must(!net_send(p, from, sizes[i], &send) && send, "isend");
		nccl_must(!await(p, send, recv, &size) &&
				  size == (int)sizes[i] &&
				  !memcmp(from, to, sizes[i]),
			"%d bytes of %zu", size, sizes[i]);
	}
	net_close(p);
	net_close_listen(p);
}

/* Start as many as possible, then more; they arrive in order. */
static void run_many(struct pair *p, char *from, char *to)
{
	void *sends[NCCL_REQUESTS], *recvs[NCCL_REQUESTS], *more;

	start(p);
	for (uint32_t i = 0; i < NCCL_REQUESTS; i++) {
		memset(from + i * 64, (int)i, 64);
		nccl_must(!net_send(p, from + i * 64, 64, &sends[i]) &&
				  sends[i] &&
				  !net_recv(p, to + i * 64, 64, &recvs[i]) &&
				  recvs[i],
			"request %u", i);
	}
	nccl_must(!net_send(p, from, 64, &more) && !more, "one more send");
	nccl_must(!net_recv(p, to, 64, &more) && !more, "one more receive");
	for (uint32_t i = 0; i < NCCL_REQUESTS; i++)
		nccl_must(!await(p, sends[i], recvs[i], NULL), "test %u", i);
	nccl_must(!memcmp(from, to, NCCL_REQUESTS * 64), "another order");
	net_close(p);
	net_close_listen(p);
}

/* Request unsupported features: memory of a GPU, and several messages at
 * once. */
static void ask_too_much(struct pair *p, char *to)
{
	void *data[2] = {to, to}, *mrs[2] = {p->recv, p->recv};
	void *request = to, *mr = NULL;
	size_t sizes[2] = {8, 8};
	int sizes8[2] = {8, 8}, tags[2] = {0, 0}, err;

	err = p->k->net8 ? p->k->net8->irecv(p->recv, 2, data, sizes8, tags,
				   mrs, &request)
			 : p->k->net11->irecv(p->recv, 2, data, sizes, tags,
				   mrs, NULL, &request);
	nccl_must(err && !request, "two messages at once were taken");
	err = p->k->net8
		      ? p->k->net8->reg_mr(p->recv, to, 8, NCCL_PTR_CUDA, &mr)
		      : p->k->net11->reg_mr(p->recv, to, 8, NCCL_PTR_CUDA, &mr);
	nccl_must(err, "memory of a GPU was taken");
}

/* Send a message larger than its buffer, and close in mid-flight. */
static void run_errors(struct pair *p, char *from, char *to)
{
	void *send, *recv;

	start(p);
	ask_too_much(p, to);
	memset(to, 0x55, 200);
	nccl_must(
		!net_recv(p, to, 100, &recv) && !net_send(p, from, 101, &send),
		"start");
	nccl_must(await(p, NULL, recv, NULL) && to[0] == 0x55,
		"101 bytes in 100");
	net_close(p);
	join(p);
	nccl_must(!net_recv(p, to, BYTES_MAX, &recv) &&
			  !net_send(p, from, BYTES_MAX, &send),
		"start");
	net_close(&(struct pair){.k = p->k, .send = p->send});
	p->send = NULL;
	nccl_must(await(p, NULL, recv, NULL), "a message whose sender closed");
	nccl_must(net_recv(p, to, 100, &recv) && !recv, "a dead connection");
	net_close(p);
	join(p);
	net_close(&(struct pair){.k = p->k, .recv = p->recv});
	p->recv = NULL;
	for (int i = 0, err = 0; !err; i++) {
		nccl_must(i < 1000, "nobody noticed that the receiver closed");
		err = net_send(p, from, BYTES_MAX, &send) ||
		      (send && await(p, send, NULL, NULL));
	}
	net_close(p);
	net_close_listen(p);
}

static void run_handles(struct pair *p)
{
	uint8_t torn[NCCL_HANDLE_BYTES];

	nccl_must(!net_listen(p), "listen");
	for (uint32_t i = 0; i < NCCL_HANDLE_BYTES; i++) {
		memcpy(torn, p->handle, sizeof(torn));
		torn[i] ^= (uint8_t)(1 << i % 8);
		nccl_must(net_connect(p, torn) && !p->send,
			"a handle whose byte %u is wrong was taken", i);
	}
	net_close_listen(p);
	/* No socket listens at the handle now. */
	for (uint32_t n_tries = 0; !net_connect(p, p->handle);
		nccl_later(&n_tries))
		nccl_must(!p->send, "connected to nobody");
}

/* Connect strangers, more than may wait; most are silent and one sends
 * bytes. */
static void run_strangers(struct pair *p)
{
	struct sockaddr_storage a = {0};
	int fds[40];

	nccl_must(!net_listen(p), "listen");
	memcpy(&a, p->handle + ADDRESS_AT, 28);
	for (uint32_t i = 0; i < 40; i++) {
		fds[i] = socket(a.ss_family, SOCK_STREAM, 0);
		nccl_must(fds[i] >= 0 &&
				  !connect(fds[i], (void *)&a,
					  a.ss_family == AF_INET ? 16 : 28),
			"a stranger cannot connect");
		if (i % 2)
			nccl_must(send(fds[i], p->handle, 32, MSG_NOSIGNAL) > 0,
				"a stranger cannot send");
		nccl_must(!net_accept(p) && !p->recv, "a stranger was taken");
	}
	join(p);
	for (uint32_t i = 0; i < 40; i++)
		close(fds[i]);
	net_close(p);
	net_close_listen(p);
}

static uint32_t n_descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	uint32_t n = 0;

	nccl_must(all, "no /proc");
	while (readdir(all))
		n++;
	closedir(all);
	return n;
}

/* When NCCL abandons a connection, the next one closes it. */
static void run_abandoned(struct pair *p)
{
	struct sockaddr_storage a = {0};
	uint32_t n_fds = 0, before;
	int fds[200];

	nccl_must(!net_listen(p), "listen");
	memcpy(&a, p->handle + ADDRESS_AT, 28);
	before = n_descriptors();
	nccl_must(!net_connect(p, p->handle), "connect");
	while (p->send) { /* until the queue of connections is full */
		nccl_must(n_fds < 200, "the backlog has no end");
		net_close(p);
		fds[n_fds] =
			socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		nccl_must(fds[n_fds] >= 0, "a socket");
		(void)!connect(fds[n_fds++], (void *)&a,
			a.ss_family == AF_INET ? 16 : 28);
		nccl_must(!net_connect(p, p->handle), "connect");
	}
	nccl_must(n_descriptors() == before + n_fds + 1, "nothing is dialled");
	while (n_fds)
		close(fds[--n_fds]);
	net_close_listen(p);
	sleep(11);
	nccl_must(!net_listen(p), "listen");
	join(p);
	nccl_must(n_descriptors() == before + 2, "%u descriptors, not %u",
		n_descriptors(), before + 2);
	net_close(p);
	net_close_listen(p);
}

int main(int argc, char **argv)
{
	struct node k = {.version = argc > 2 ? (uint32_t)atoi(argv[2]) : 0};
	struct pair p = {.k = &k};
	char *from = malloc(BYTES_MAX), *to = malloc(BYTES_MAX);
	int n_coll;

	if (argc != 3 || !from || !to)
		return 2;
	nccl_load(&k, argv[1], &n_coll);
	run_messages(&p, from, to);
	run_many(&p, from, to);
	run_errors(&p, from, to);
	run_handles(&p);
	run_strangers(&p);
	run_abandoned(&p);
	free(from);
	free(to);
	printf("done\n");
	return 0;
}
