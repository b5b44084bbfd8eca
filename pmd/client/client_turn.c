/* client_turn.c - libsumwire: receive from the agent, in turns for all threads.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One thread leads: it receives messages and completions, and copies staged
 * collectives, for all threads of the process.  The leader is a thread that
 * waits for the agent's answer or for a handle, else a thread in sw_wait_ended,
 * else the library's own thread (client_group_end.c).  So a process with one
 * thread needs no second thread.  The other threads check their handles after
 * each turn of the leader.  Any thread that finds a piece to copy copies it.
 * If a thread stops while pieces are left, it wakes another thread. */
#include "pmd/client/client_turn.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "pmd/client/agent_error.h"

enum { TAKE_BURST = 32 };

/* --- messages --- */

static void close_fds(int *fds)
{
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static bool has_form(const union sw_edge_msg *m, size_t bytes)
{
	if (bytes < sizeof(m->kind))
		return false;
	switch (m->kind) {
	case SW_EDGE_ATTACHED:
		return bytes == sizeof(m->attached) &&
		       !m->attached.job[SW_EDGE_NAME_BYTES - 1];
	case SW_EDGE_DECLARED:
		return bytes == sizeof(m->declared) && m->declared.err <= 0 &&
		       !m->declared.text[SW_EDGE_TEXT_BYTES - 1];
	case SW_EDGE_REFUSED:
	case SW_EDGE_FAILED:
	case SW_EDGE_STATUS:
	case SW_EDGE_CLOSED:
	case SW_EDGE_ANSWER:
		return bytes == sizeof(m->text) && m->text.err <= 0 &&
		       !m->text.text[SW_EDGE_TEXT_BYTES - 1];
	default:
		return false;
	}
}

static int rx_formed(struct sw_client *c, union sw_edge_msg *m)
{
	if (m->kind != SW_EDGE_ATTACHED && m->kind != SW_EDGE_DECLARED)
		sw_text_clean(m->text.text, sizeof(m->text.text));
	switch (m->kind) {
	case SW_EDGE_STATUS:
		memcpy(c->status, m->text.text, sizeof(c->status));
		sw_client_log(&c->settings, "%s", c->status);
		return 0;
	case SW_EDGE_CLOSED:
		sw_client_close(c, m->text.err,
			"the agent at %s closed the "
			"connection: %s",
			c->settings.agent, m->text.text);
		return sw_client_check(c);
	default:
		return (int)m->kind;
	}
}

static int agent_is_gone(struct sw_client *c)
{
	char text[SW_EDGE_TEXT_BYTES];

	if (sw_agent_error_read(c->error_fd, text))
		sw_client_close(c, SW_ECLOSED,
			"the agent at %s has ended; its last error: %s",
			c->settings.agent, text);
	else
		sw_client_close(c, SW_ECLOSED, "the agent at %s has ended%s%s",
			c->settings.agent,
			c->status[0] ? "; last message from the agent: " : "",
			c->status);
	return sw_client_check(c);
}

int sw_client_rx(struct sw_client *c, union sw_edge_msg *m, int *fds)
{
	int n, kind;

	fds[0] = fds[1] = -1;
	if (c->closed)
		return sw_client_check(c);
	n = sw_edge_recv(c->sock, m, sizeof(*m), fds, 2);
	if (n == SW_EAGAIN)
		return 0;
	if (n == SW_ECLOSED)
		return agent_is_gone(c);
	if (n < 0 || !has_form(m, (size_t)n)) {
		close_fds(fds);
		sw_client_close(c, SW_EPROTO,
			"the agent at %s sent a message that this library does "
			"not know: install the same release of both",
			c->settings.agent);
		return sw_client_check(c);
	}
	kind = rx_formed(c, m);
	if (kind <= 0)
		close_fds(fds);
	return kind;
}

/* Receive a status line or a hang-up: between requests the agent sends no other
 * messages. */
void sw_client_rx_messages(struct sw_client *c)
{
	union sw_edge_msg m;
	int fds[2], kind = sw_client_rx(c, &m, fds);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind > 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s sent unexpected message kind %d",
			c->settings.agent, kind);
}

/* --- completions --- */

struct sw_tensor *sw_client_find_tensor(struct sw_client *c, uint64_t handle)
{
	uint32_t i = handle & (SW_EDGE_TENSORS - 1);

	if (i >= c->n_tensors || c->tensors[i]->handle != handle ||
		c->tensors[i]->state == SW_TENSOR_IDLE)
		return NULL;
	return c->tensors[i];
}

/* Record one completion.  Returns false if no such tensor or piece is open. */
static bool end_one(struct sw_client *c, const struct sw_completion *done)
{
	struct sw_tensor *t;

	if (done->handle & SW_EDGE_COLL_HANDLE)
		return sw_client_end_piece(c, done);
	t = sw_client_find_tensor(c, done->handle);
	if (!t || t->state != SW_TENSOR_OPEN || done->status > 0)
		return false;
	t->status = done->status;
	t->state = SW_TENSOR_ENDED;
	sw_client_call_thread(c); /* another thread may wait for it */
	return true;
}

/* Receive all completions. */
void sw_client_rx_completions(struct sw_client *c)
{
	struct sw_completion done[TAKE_BURST];
	int n;

	do {
		n = sw_spsc_take(&c->completions, done, TAKE_BURST);
		for (int i = 0; i < n; i++) {
			if (!end_one(c, &done[i])) {
				n = SW_EPROTO;
				break;
			}
		}
	} while (n == TAKE_BURST);
	if (n < 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s corrupted the completion ring",
			c->settings.agent);
}

/* --- turns --- */

void sw_client_turn(struct sw_client *c, uint64_t until_ns)
{
	if (sw_client_move(c, 1))
		return;
	if (c->turn.has_leader || c->turn.n_claims) {
		sw_client_wait_changed(c, until_ns);
		return;
	}
	c->turn.has_leader = true;
	/* until the agent or another thread wakes it */
	if (sw_client_doze(c, POLLIN, until_ns))
		sw_client_rx_messages(c);
	sw_client_rx_completions(c);
	sw_client_follow(c);
}

/* --- requests: ask the agent, await its answer --- */

/* Work for all threads: while this thread leads, no other thread may be
 * working, and copies may belong to calls for which no thread waits. */
static void work_meanwhile(struct sw_client *c, short events, uint64_t until_ns)
{
	if (sw_client_move(c, 1))
		return;
	sw_client_doze(c, events, until_ns);
	sw_client_rx_completions(c);
	sw_client_changed(c);
}

int sw_client_await(
	struct sw_client *c, uint64_t until_ns, union sw_edge_msg *m, int *fds)
{
	for (;;) {
		int kind = sw_client_rx(c, m, fds);

		if (kind)
			return kind;
		if (sw_edge_now_ns() >= until_ns)
			return SW_ETIMEDOUT;
		if (c->control)
			work_meanwhile(c, POLLIN, until_ns);
		else /* it is not attached yet */
			sw_client_sleep(c, POLLIN, until_ns);
	}
}

int sw_client_send(
	struct sw_client *c, const void *m, size_t bytes, uint64_t until_ns)
{
	for (;;) {
		int err = c->closed ? sw_client_check(c)
				    : sw_edge_send(c->sock, m, bytes, NULL, 0);

		if (err != SW_EAGAIN)
			return err;
		if (sw_edge_now_ns() >= until_ns)
			return sw_client_fail(c, SW_ETIMEDOUT,
				"the agent at %s has not read its socket in %u "
				"s",
				c->settings.agent, c->settings.open_timeout_s);
		work_meanwhile(c, POLLOUT, until_ns);
	}
}

static int await_answer(
	struct sw_client *c, const char *what, uint64_t until_ns)
{
	union sw_edge_msg m;
	int fds[2], kind = sw_client_await(c, until_ns, &m, fds);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (kind == SW_EDGE_ANSWER && m.text.err)
		return sw_client_fail(c, m.text.err, "%s", m.text.text);
	if (kind == SW_EDGE_ANSWER)
		return 0;
	if (kind == SW_ETIMEDOUT)
		sw_client_close(c, SW_ETIMEDOUT,
			"the agent at %s did not answer the %s request within "
			"%u s",
			c->settings.agent, what, c->settings.open_timeout_s);
	else if (kind > 0)
		sw_client_close(c, SW_EPROTO,
			"the agent at %s answered the %s request with "
			"unexpected message kind %d",
			c->settings.agent, what, kind);
	return sw_client_check(c);
}

int sw_client_ask(
	struct sw_client *c, const void *m, size_t bytes, const char *what)
{
	uint64_t until_ns;
	int err;

	sw_client_lead(c);
	until_ns =
		sw_client_after_ms(c->settings.open_timeout_s * UINT64_C(1000));
	err = sw_client_send(c, m, bytes, until_ns);
	/* The next message carries the reason of a hang-up. */
	if (!err || err == SW_ECLOSED)
		err = await_answer(c, what, until_ns);
	sw_client_follow(c);
	return err;
}
