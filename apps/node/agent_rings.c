/* agent_rings.c - between the agent's two threads: orders one way, news back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

int sw_agent_open_rings(struct agent *a)
{
	void *orders = aligned_alloc(64, sizeof(struct agent_rings));

	if (!orders)
		return SW_ENOMEM;
	a->shared.rings = memset(orders, 0, sizeof(struct agent_rings));
	sw_spsc_init(&a->control.orders, a->shared.rings->orders, AGENT_RING,
		sizeof(struct agent_order));
	sw_spsc_init(&a->core.orders, a->shared.rings->orders, AGENT_RING,
		sizeof(struct agent_order));
	sw_spsc_init(&a->core.news, a->shared.rings->news, AGENT_RING,
		sizeof(struct agent_news));
	sw_spsc_init(&a->control.news, a->shared.rings->news, AGENT_RING,
		sizeof(struct agent_news));
	return 0;
}

void sw_agent_order(struct agent *a, const struct agent_order *order)
{
	if (sw_spsc_put(&a->control.orders, order, 1) != 1)
		sw_log(&a->daemon.log, SW_LOG_ERROR,
			"the command ring to lcore 0 is full");
}

void sw_agent_tell(struct agent *a, const struct agent_news *news)
{
	struct agent_news counted = *news;
	int n;

	if (news->kind == AGENT_STATUS &&
		sw_spsc_room(&a->core.news) <= AGENT_NEWS_MAX) {
		a->core.n_lost++;
		return;
	}
	counted.n_lost = a->core.n_lost;
	a->core.n_lost = 0;
	n = sw_spsc_put(&a->core.news, &counted, 1);
	assert(n == 1);
	(void)n;
	sw_host_kick(a->host);
}
