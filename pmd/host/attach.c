/* attach.c - control thread: admit, answer and release clients.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmd/client/denied.h"
#include "pmd/host/host.h"

/* Largest backlog of unread status lines of one client, as the kernel counts
 * it. */
enum { STATUS_BYTES_MAX = 32 << 10 };

enum { CONTROL_BYTES = (sizeof(struct sw_edge_control) + 4095) / 4096 * 4096 };

void sw_host_refuse(struct sw_host *h, uint32_t id, int err, const char *text)
{
	struct sw_slot *s = sw_slot_find(h, id);

	if (s && s->state == SW_SLOT_ASKED)
		sw_slot_refuse(s, err, text);
}

/* Make the resources that client and lcore share, and set *@peer_bell to the
 * client's end of the bell. After an error, sw_slot_free frees them. */
static int open_client(struct sw_slot *s, int *peer_bell)
{
	struct sw_host *h = s->host;
	int bells[2], err;

	if (!sw_quota_take(h, CONTROL_BYTES))
		return SW_ENOMEM;
	err = sw_segment_create(&s->control, "sumwire-control", CONTROL_BYTES);
	if (err) {
		sw_quota_give(h, CONTROL_BYTES);
		return err;
	}
	err = sw_segment_reserve(&s->control, 0, s->control.bytes);
	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bells))
		return SW_EIO;
	err = sw_host_client_open(
		s->control.base, bells[0], h->kick_fd, &s->client);
	if (err) {
		close(bells[0]);
		close(bells[1]);
		return err;
	}
	sw_spsc_init(&s->notes,
		((struct sw_edge_control *)s->control.base)->notes,
		SW_EDGE_NOTES, sizeof(struct sw_edge_note));
	sw_slot_trace(s);
	*peer_bell = bells[1];
	return 0;
}

void sw_host_job(
	struct sw_host *h, const char *name, uint64_t epoch, bool is_async)
{
	snprintf(h->job, sizeof(h->job), "%s", name);
	h->epoch = epoch;
	h->is_async = is_async;
}

int sw_host_attached(struct sw_host *h, uint32_t id, uint32_t rank,
	uint32_t size, uint32_t local_rank, uint32_t local_size,
	struct sw_host_client **client_out)
{
	struct sw_slot *s = sw_slot_find(h, id);
	struct sw_edge_attached m = {SW_EDGE_ATTACHED, rank, size, local_rank,
		local_size, s ? s->version : 0, h->epoch, "", h->is_async, 0};
	char limit[SW_LIMIT_TEXT], why[SW_EDGE_TEXT_BYTES];
	int fds[2], err;

	if (!s || s->state != SW_SLOT_ASKED)
		return SW_ENOENT;
	err = open_client(s, &fds[1]);
	if (err) {
		snprintf(why, sizeof(why),
			"the agent has no memory or descriptors left for "
			"another client%s",
			sw_segment_limit(CONTROL_BYTES, limit));
		sw_slot_refuse(s, err, why);
		return err;
	}
	s->local_rank = local_rank;
	s->state = SW_SLOT_ATTACHED;
	fds[0] = s->control.fd;
	memcpy(m.job, h->job, sizeof(m.job));
	/* This fails only if the client has ended, which poll will detect. */
	sw_edge_send(s->sock, &m, sizeof(m), fds, 2);
	close(fds[1]);
	*client_out = s->client;
	return 0;
}

void sw_host_answer(struct sw_host *h, uint32_t id, int err, const char *text)
{
	struct sw_slot *s = sw_slot_find(h, id);

	if (!s || s->state != SW_SLOT_ATTACHED || !s->is_asking)
		return;
	s->is_asking = false;
	if (s->is_freeing && !err)
		sw_declared_unmap(h, s->declared, s->freeing);
	s->is_freeing = false;
	sw_slot_say(s, SW_EDGE_ANSWER, err, 0, text);
}

/* Send a status line, or drop it if many are unread: a process that computes
 * for long reads nothing, and status lines must not take the room of answers.
 */
void sw_host_status(struct sw_host *h, uint32_t id, const char *text)
{
	struct sw_slot *s = sw_slot_find(h, id);
	int unread_bytes;

	if (s && s->sock >= 0 && !ioctl(s->sock, SIOCOUTQ, &unread_bytes) &&
		unread_bytes < STATUS_BYTES_MAX)
		sw_slot_say(s, SW_EDGE_STATUS, 0, 0, text);
}

void sw_host_wake_watches(struct sw_host *h)
{
	for (uint32_t i = 0; i < h->n_slots; i++) {
		struct sw_edge_control *control = h->slots[i].control.base;

		if (h->slots[i].state == SW_SLOT_ATTACHED)
			sw_edge_word_wake(&control->n_failed);
	}
}

void sw_host_end(struct sw_host *h, uint32_t id, int err, const char *text)
{
	struct sw_slot *s = sw_slot_find(h, id);

	if (!s || (s->state != SW_SLOT_ASKED && s->state != SW_SLOT_ATTACHED))
		return;
	sw_slot_say(s,
		s->state == SW_SLOT_ASKED ? SW_EDGE_REFUSED : SW_EDGE_CLOSED,
		err, 0, text);
	sw_slot_hang_up(s);
}

void sw_host_release(struct sw_host *h, uint32_t id)
{
	struct sw_slot *s = sw_slot_find(h, id);

	if (s && s->state == SW_SLOT_DETACHED)
		sw_slot_free(s);
}

static int check_params(const struct sw_host_params *p)
{
	if (p->max_clients >= 1 && p->max_clients <= SW_HOST_CLIENTS_MAX &&
		p->n_local >= 1 && p->n_local <= SW_HOST_LOCAL_MAX)
		return 0;
	sw_log(p->log, SW_LOG_ERROR,
		"%u clients and %u local ranks asked for, allowed are 1 to %u "
		"and 1 to %u",
		p->max_clients, p->n_local, SW_HOST_CLIENTS_MAX,
		SW_HOST_LOCAL_MAX);
	return SW_EINVAL;
}

static struct sw_host *host_new(const struct sw_host_params *p)
{
	uint32_t n = p->max_clients + SW_HOST_SPARE_SLOTS;
	struct sw_host *h = calloc(1, sizeof(*h) + n * sizeof(h->slots[0]));

	if (!h)
		return NULL;
	h->p = *p;
	h->n_slots = n;
	h->listener = -1;
	h->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->uids = calloc(p->n_uids + 1, sizeof(h->uids[0]));
	for (uint32_t i = 0; i < n; i++)
		h->slots[i] = (struct sw_slot){.host = h,
			.id = i | 1u << SW_HOST_SLOT_BITS,
			.sock = -1,
			.pid_fd = -1};
	if (h->uids && h->kick_fd >= 0)
		return h;
	if (h->kick_fd >= 0)
		close(h->kick_fd);
	free(h->uids);
	free(h);
	return NULL;
}

int sw_host_open(const struct sw_host_params *p, struct sw_host **out)
{
	struct sw_host *h;
	int err = check_params(p);

	if (err)
		return err;
	errno = 0;
	h = host_new(p);
	if (!h) {
		err = errno;
		sw_log(p->log, SW_LOG_ERROR,
			"no memory or event descriptor (eventfd) for the "
			"agent's socket: %s%s",
			strerror(err), sw_denied_text(err));
		return SW_ENOMEM;
	}
	for (uint32_t i = 0; i < p->n_uids; i++)
		h->uids[i] = p->uids[i];
	err = sw_host_check_path(h);
	if (err) {
		sw_host_close(&h);
		return err;
	}
	*out = h;
	return 0;
}

void sw_host_close(struct sw_host **host)
{
	struct sw_host *h = *host;

	if (!h)
		return;
	for (uint32_t i = 0; i < h->n_slots; i++) {
		struct sw_slot *s = &h->slots[i];

		if (s->state == SW_SLOT_HELLO || s->state == SW_SLOT_ASKED)
			sw_slot_say(s, SW_EDGE_REFUSED, SW_ECLOSED, 0,
				"the agent stops");
		else
			sw_slot_say(s, SW_EDGE_CLOSED, SW_ECLOSED, 0,
				"the agent stops");
		sw_slot_free(s);
	}
	sw_host_unlisten(h);
	close(h->kick_fd);
	free(h->uids);
	free(h);
	*host = NULL;
}
