/* agent_declare.c - the agent's worker learns of tensors and streams.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

enum { WINDOW_BYTES = 1 << 20 }; /* of a stream at a server's core, at most */

/* The batch is admitted; one of it may be dead. */
void sw_agent_on_declared(void *ctx)
{
	struct agent_core *core = ctx;
	struct agent_report report = {.kind = AGENT_DECLARED,
		.first = sw_worker_view(&core->worker).n_tensors -
			 core->n_batch};
	uint32_t tensor;

	for (uint32_t i = 0; i < core->n_in_batch && !report.err; i++) {
		tensor = sw_worker_view(&core->worker).n_local == 1
				 ? report.first + i
				 : core->batch_tensors[i].node_i;
		report.err = sw_worker_death(&core->worker, tensor);
	}
	report.is_dead = report.err != 0;
	if (report.err)
		snprintf(report.text, sizeof(report.text), "%s",
			sw_worker_why(&core->worker, tensor));
	sw_agent_tell(core, &report);
}

/* As a client asks, but so small that a server's core has it in its cache. */
static uint8_t window_of(const struct agent_core *core, uint8_t log2)
{
	uint32_t payload = core->shared->daemon.params.payload;

	while (log2 > SW_WINDOW_MIN_LOG2 && payload << log2 > WINDOW_BYTES)
		log2--;
	return log2;
}

static struct sw_worker_tensor tensor_of(const struct agent_core *core,
	const struct sw_host_tensor *t, bool is_alone)
{
	if (t->kind == SW_EDGE_STREAM)
		return (struct sw_worker_tensor){.name = t->name,
			.priority = t->priority,
			.window_log2 = window_of(core, (uint8_t)t->dtype),
			.n_ranks = (uint32_t)t->n_elems,
			.ranks = t->ranks};
	return (struct sw_worker_tensor){.name = t->name,
		.n_elems = t->n_elems,
		.dtype = t->dtype,
		.priority = t->priority,
		.base = is_alone ? t->base : t->result,
		.is_async = t->kind == SW_EDGE_ASYNC};
}

/* Those tensors of a batch that no local rank has declared before. */
static uint32_t list_new(struct agent_core *core, const struct agent_command *o,
	struct sw_worker_tensor *list)
{
	bool is_alone = sw_worker_view(&core->worker).n_local == 1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		const struct sw_host_tensor *t = &o->tensors[i];

		if (!is_alone &&
			t->node_i < sw_worker_view(&core->worker).n_tensors)
			continue;
		list[n++] = tensor_of(core, t, is_alone);
	}
	return n;
}

/* Where a local rank has its contributions; or it declares something else than
 * those before it. */
static void take_source(
	struct agent_core *core, const struct sw_host_tensor *t, uint32_t local)
{
	struct sw_worker_tensor d = tensor_of(core, t, false);

	if (t->result)
		sw_worker_source(&core->worker, t->node_i, local, t->base);
	else
		sw_worker_clash(&core->worker, t->node_i, local, &d);
}

void sw_agent_declare(struct agent_core *core)
{
	struct sw_worker_tensor list[SW_TENSORS];
	struct agent_report report = {.kind = AGENT_DECLARED};
	const struct agent_command *o = &core->declaring;

	if (sw_agent_is_over(core)) {
		core->declaring.n = 0;
		return;
	}
	core->batch_tensors = o->tensors;
	core->n_in_batch = o->n;
	core->n_batch = list_new(core, o, list);
	if (core->n_batch)
		report.err =
			sw_worker_declare(&core->worker, list, core->n_batch);
	if (report.err == SW_EAGAIN)
		return;
	sw_loop_look(sw_agent_loop(core->shared)); /* timers may be set */
	for (uint32_t i = 0; i < o->n && !report.err &&
			     sw_worker_view(&core->worker).n_local > 1;
		i++)
		take_source(core, &o->tensors[i], o->local);
	core->declaring.n = 0;
	if (!core->n_batch)
		sw_agent_on_declared(core);
	if (!report.err)
		return; /* the servers are asked */
	snprintf(report.text, sizeof(report.text), "%s",
		report.err == SW_EINVAL && o->tensors[0].kind == SW_EDGE_STREAM
			? "a group has different ranks of the job, this one "
			  "among them"
			: sw_error_text(report.err));
	sw_agent_tell(core, &report);
}
