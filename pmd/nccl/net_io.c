/* net_io.c - messages of a connection, each preceded by its length.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages are sent and received in the order of the calls. A test of a request
 * moves as many bytes as the socket accepts or holds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmd/nccl/plugin.h"

enum { MAGIC = 0x4753454d /* "MESG" */ };

struct head {
	uint32_t magic, pad;
	uint64_t bytes;
};

struct message {
	struct sw_nccl_channel *channel;
	bool is_used, is_done;
	struct head head;
	char *data;
	size_t room, at; /* at: bytes moved, including the head */
};

struct sw_nccl_channel {
	int fd;
	bool is_sender, is_dead;
	uint32_t first, next; /* messages that are not done */
	struct message messages[NCCL_REQUESTS];
};

struct sw_nccl_channel *sw_nccl_channel_new(int fd, bool is_sender)
{
	struct sw_nccl_channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->is_sender = is_sender;
	return c;
}

int sw_nccl_net_close(void *comm)
{
	struct sw_nccl_channel *c = comm;

	if (c)
		close(c->fd);
	free(c);
	return NCCL_OK;
}

int sw_nccl_net_reg_mr(
	void *comm, void *data, size_t size, int type, void **mhandle)
{
	*mhandle = comm; /* no registration is needed */
	if (type != NCCL_PTR_HOST)
		return sw_nccl_fail(NCCL_INTERNAL,
			"memory of kind %d: only the host's is used", type);
	return NCCL_OK;
}

int sw_nccl_net_dereg_mr(void *comm, void *mhandle)
{
	return NCCL_OK;
}

static int die(struct sw_nccl_channel *c, const char *why)
{
	c->is_dead = true;
	return sw_nccl_fail(NCCL_REMOTE, "a connection of NCCL ended: %s", why);
}

/* Send or receive up to @n bytes; returns as send and recv. */
static ssize_t move(struct sw_nccl_channel *c, void *data, size_t n)
{
	return c->is_sender ? send(c->fd, data, n, MSG_NOSIGNAL)
			    : recv(c->fd, data, n, 0);
}

static bool is_head_good(const struct message *m)
{
	return m->head.magic == MAGIC && !m->head.pad &&
	       m->head.bytes <= m->room;
}

static bool is_moved(const struct message *m)
{
	return m->at >= sizeof(m->head) &&
	       m->at - sizeof(m->head) == m->head.bytes;
}

/* Move some bytes of @m. Sets *@is_blocked if the socket is full or empty. */
static int step(struct sw_nccl_channel *c, struct message *m, bool *is_blocked)
{
	bool is_head = m->at < sizeof(m->head);
	size_t done = is_head ? m->at : m->at - sizeof(m->head);
	char *from = is_head ? (char *)&m->head : m->data;
	size_t n = is_head ? sizeof(m->head) : m->head.bytes;
	ssize_t moved = move(c, from + done, n - done);

	*is_blocked = moved < 0 && (errno == EAGAIN || errno == EINTR);
	if (*is_blocked)
		return NCCL_OK;
	if (moved <= 0)
		return die(c, moved ? strerror(errno)
				    : "the other end closed "
				      "it");
	m->at += (size_t)moved;
	if (m->at == sizeof(m->head) && !is_head_good(m))
		return die(c, "received no message, or one larger than its "
			      "buffer");
	return NCCL_OK;
}

static int advance(struct sw_nccl_channel *c)
{
	bool is_blocked = false;
	int err = c->is_dead ? NCCL_REMOTE : NCCL_OK;

	while (!err && !is_blocked && c->first != c->next) {
		struct message *m = &c->messages[c->first % NCCL_REQUESTS];

		err = step(c, m, &is_blocked);
		if (err || !is_moved(m))
			continue;
		m->is_done = true;
		c->first++;
	}
	return err;
}

int sw_nccl_net_post(struct sw_nccl_channel *c, bool is_sender, void *data,
	size_t size, void **request)
{
	struct message *m;
	int err;

	*request = NULL;
	if (!c || c->is_sender != is_sender || (!data && size))
		return sw_nccl_fail(NCCL_INTERNAL, "send or receive: a comm of "
						   "another kind, or no data");
	m = &c->messages[c->next % NCCL_REQUESTS];
	if (c->is_dead)
		return NCCL_REMOTE;
	if (m->is_used)
		return NCCL_OK;
	*m = (struct message){
		.channel = c, .is_used = true, .data = data, .room = size};
	if (is_sender)
		m->head = (struct head){.magic = MAGIC, .bytes = size};
	c->next++;
	err = advance(c);
	if (!err)
		*request = m;
	return err;
}

int sw_nccl_net_test(void *request, int *done, int *size)
{
	struct message *m = request;

	*done = 0;
	if (!m || !m->is_used)
		return sw_nccl_fail(NCCL_INTERNAL, "test: no such request");
	if (!m->is_done) {
		int err = advance(m->channel);

		if (err && !m->is_done)
			return err;
	}
	if (!m->is_done)
		return NCCL_OK;
	*done = 1;
	if (size)
		*size = (int)m->head.bytes;
	m->is_used = false;
	return NCCL_OK;
}
