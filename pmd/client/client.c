/* client.c - libsumwire: messages of the agent, errors, small questions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "pmd/client/agent_error.h"

/* Threads of one client may fail at once; sw_open that fails leaves none. */
static _Thread_local char error[2 * SW_EDGE_TEXT_BYTES];

const char *sw_last_error(const struct sw_client *c)
{
	(void)c;
	return error;
}

int sw_client_fail(struct sw_client *c, int err, const char *fmt, ...)
{
	va_list ap;

	(void)c;
	va_start(ap, fmt);
	vsnprintf(error, sizeof(error), fmt, ap);
	va_end(ap);
	return err;
}

void sw_client_close(struct sw_client *c, int err, const char *fmt, ...)
{
	va_list ap;

	if (c->closed)
		return;
	c->closed = err;
	va_start(ap, fmt);
	vsnprintf(c->closed_text, sizeof(c->closed_text), fmt, ap);
	va_end(ap);
}

int sw_client_check(struct sw_client *c)
{
	if (!*c->is_ours)
		return sw_client_fail(c, SW_ECLOSED,
			"this process was forked from the one that is attached "
			"to the agent at %s; open your own",
			c->settings.agent);
	if (c->closed)
		return sw_client_fail(c, c->closed, "%s", c->closed_text);
	return 0;
}

void sw_client_log(const struct sw_settings *s, const char *fmt, ...)
{
	char line[2 * SW_EDGE_TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->log(s->log_ctx, line);
}

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
	case SW_EDGE_TUNED:
		return bytes == sizeof(m->text) && m->text.err <= 0 &&
		       !m->text.text[SW_EDGE_TEXT_BYTES - 1];
	default:
		return false;
	}
}

static bool is_text(uint32_t kind)
{
	return kind != SW_EDGE_ATTACHED && kind != SW_EDGE_DECLARED;
}

static int rx_formed(struct sw_client *c, union sw_edge_msg *m)
{
	if (is_text(m->kind))
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
			"the agent at %s is gone; its last error: %s",
			c->settings.agent, text);
	else
		sw_client_close(c, SW_ECLOSED, "the agent at %s is gone%s%s",
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

uint32_t sw_version(void)
{
	return SW_VERSION_NUMBER;
}

uint32_t sw_rank(const struct sw_client *c)
{
	return c->rank;
}

uint32_t sw_size(const struct sw_client *c)
{
	return c->size;
}

/* What the launcher says, or, if it does not, what the agent does. */
static uint32_t on_machine(
	const struct sw_client *c, enum sw_launch_key key, uint32_t at_agent)
{
	int64_t said = sw_launch_number(&c->launch, key);

	return said < 0 ? at_agent : (uint32_t)said;
}

uint32_t sw_local_rank(const struct sw_client *c)
{
	return on_machine(c, SW_LAUNCH_LOCAL_RANK, c->local_rank);
}

uint32_t sw_local_size(const struct sw_client *c)
{
	return on_machine(c, SW_LAUNCH_LOCAL_SIZE, c->local_size);
}

uint32_t sw_agent_rank(const struct sw_client *c)
{
	return c->local_rank;
}

uint32_t sw_agent_size(const struct sw_client *c)
{
	return c->local_size;
}

const char *sw_job(const struct sw_client *c, uint64_t *epoch_out)
{
	*epoch_out = c->epoch;
	return c->job;
}

void *sw_tensor_data(struct sw_tensor *t)
{
	return t->data;
}

const void *sw_tensor_result(struct sw_tensor *t)
{
	return t->result;
}

void sw_client_ring(const struct sw_client *c, _Atomic uint32_t *flag)
{
	if (sw_edge_is_asleep(flag))
		sw_edge_bell_write(c->bell);
}
