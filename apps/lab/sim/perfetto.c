/* perfetto.c - write agents' stages and tensors as JSON for Perfetto.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/perfetto.h"

#include <inttypes.h>

#include "apps/lab/sim/sim.h"

enum {
	PID_NETWORK = 1,
	PID_NODE = 2, /* + node */
	TID_STAGES = 1,
	TID_TENSOR = 2, /* + tensor */
};

static uint32_t pid_of(const struct sw_sim_agent *a)
{
	return PID_NODE + a->node->index;
}

static void name_agent(struct sw_chrome *c, const struct sw_sim_agent *a)
{
	char name[2 * SW_SIM_NAME + 16];

	snprintf(name, sizeof(name), "%s, job %s", a->node->name,
		a->job->desc->label);
	sw_chrome_name(c, pid_of(a), 0, "process_name", name);
	sw_chrome_name(c, pid_of(a), TID_STAGES, "thread_name", "compute");
	for (uint32_t t = 0; t < a->job->n_tensors; t++) {
		snprintf(name, sizeof(name), "tensor %u", t);
		sw_chrome_name(
			c, pid_of(a), TID_TENSOR + t, "thread_name", name);
	}
}

void sw_sim_perfetto_begin(
	struct sw_chrome *c, FILE *to, const struct sw_sim *s)
{
	*c = (struct sw_chrome){.to = to, .zero_ns = (int64_t)s->net.now_ns};
	sw_chrome_begin(c);
	fprintf(to, "\"seed\":%" PRIu64, s->desc->run.seed);
	sw_chrome_events(c);
	sw_chrome_name(c, PID_NETWORK, 0, "process_name", "network");
	for (uint32_t j = 0; j < s->n_jobs; j++)
		for (uint32_t r = 0; r < s->jobs[j].n_agents; r++)
			name_agent(c, &s->jobs[j].agents[r]);
}

void sw_sim_perfetto_stage(struct sw_chrome *c, const struct sw_sim_agent *a,
	const char *what, uint64_t number)
{
	sw_chrome_slice(c, pid_of(a), TID_STAGES, (int64_t)a->stage_begin_ns,
		(int64_t)a->stage_end_ns);
	fprintf(c->to, ",\"name\":\"%s %" PRIu64 "\",\"args\":{\"round\":%u}}",
		what, number, a->round);
}

void sw_sim_perfetto_tensor(struct sw_chrome *c, const struct sw_sim_agent *a,
	uint32_t tensor, uint64_t round, uint64_t from_ns)
{
	sw_chrome_slice(c, pid_of(a), TID_TENSOR + tensor, (int64_t)from_ns,
		(int64_t)a->job->sim->net.now_ns);
	fprintf(c->to,
		",\"name\":\"tensor %u\",\"args\":{\"round\":%" PRIu64
		",\"bytes\":%" PRIu64 "}}",
		tensor, round, a->job->n_elems[tensor] * 4);
}

void sw_sim_perfetto_count(struct sw_chrome *c, uint64_t now_ns,
	const char *what, const char *from, const char *to, uint64_t value)
{
	sw_chrome_event(c, "C", PID_NETWORK, 0);
	sw_chrome_time(c, "ts", (int64_t)now_ns - c->zero_ns);
	fprintf(c->to,
		",\"name\":\"%s %s%s%s\",\"args\":{\"value\":%" PRIu64 "}}",
		what, from, *to ? " to " : "", to, value);
}
