/* client_await.c - libsumwire: ask the agent, wait for its answer.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>

#include "pmd/client/client.h"

/* While one leads nobody else is sure to work: what comes before the message,
 * and what is to be copied, may be of calls for which no thread waits. */
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
