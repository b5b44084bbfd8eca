/* client_await.c - libsumwire: wait for an answer of the agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client.h"

/* While one leads nobody else is sure to work: what comes before the message,
 * and what is to be copied, may be of calls for which no thread waits. */
static void work_meanwhile(struct sw_client *c, uint64_t until_ns)
{
	if (sw_client_move(c, 1))
		return;
	sw_client_doze(c, until_ns);
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
			work_meanwhile(c, until_ns);
		else /* it is not attached yet */
			sw_client_sleep(c, until_ns);
	}
}
