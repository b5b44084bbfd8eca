/* agent_declare.c - the agent's worker learns of tensors and streams.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/node/agent.h"

enum { BURST = 512, CLASH = 32 }; /* looked at in a turn; one that differs */

/* The batch is admitted; one of it may be dead. */
void sw_agent_on_declared(void *ctx)
{
	struct agent_core *core = ctx;
	const struct agent_command *b = &core->batch;
	struct agent_report report = {
		.kind = AGENT_DECLARED, .first = b->first};
	uint32_t tensor;

	for (uint32_t i = 0;
		sw_worker_has_dead(&core->worker) && i < b->n && !report.err;
		i++) {
		tensor = sw_worker_view(&core->worker).n_local == 1
				 ? report.first + i
				 : b->tensors[i].node_id;
		report.err = sw_worker_death(&core->worker, tensor);
	}
	report.is_dead = report.err != 0;
	if (report.err)
		snprintf(report.text, sizeof(report.text), "%s",
			sw_worker_why(&core->worker, tensor));
	sw_agent_tell(core, &report);
}

/* The local rank declares something else than those before it. */
static void clash(struct agent_core *core, const struct sw_host_tensor *t)
{
	struct sw_worker_tensor d;

	sw_agent_tensor(core->shared, t, 0, &d);
	sw_worker_clash(&core->worker, t->node_id, core->batch.local, &d);
}

void sw_agent_declare(struct agent_core *core)
{
	const struct agent_command *b = &core->batch;
	uint32_t n_local = sw_worker_view(&core->worker).n_local, n = 0;

	if (sw_agent_is_over(core)) {
		core->is_declaring = false;
		return;
	}
	for (; n < BURST && core->n_looked < b->n && n_local > 1; n++)
		if (!b->tensors[core->n_looked++].result) {
			clash(core, &b->tensors[core->n_looked - 1]);
			n += BURST / CLASH;
		}
	if (n_local > 1 && core->n_looked < b->n)
		return;
	core->is_declaring = false;
	if (!b->n_new)
		sw_agent_on_declared(core);
	else
		(void)!sw_worker_add(&core->worker); /* else it is over */
	sw_loop_look(sw_agent_loop(core->shared));   /* timers may be set */
}
