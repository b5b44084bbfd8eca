/* params.c - the engine's parameters, from a configuration.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/params.h"

#include "engine/sched/policy.h"

void sw_params_of_conf(struct sw_params *p, const struct sw_conf_job *job,
	const struct sw_conf_agent *agent, const struct sw_conf_node *node)
{
	sw_params_init(p);
	p->dead_after = job->dead_after_ns;
	p->stall_warn = job->stall_warn_ns;
	p->stall_limit = job->stall_limit_ns;
	p->join_timeout = job->join_timeout_ns;
	p->has_crc = job->crc;
	p->is_encrypted = job->encrypt;
	p->mode = (uint8_t)job->mode;
	p->is_by_rank = job->order;
	p->policy = sw_policy_at((uint32_t)job->policy);
	p->credit_bytes = job->credit_bytes;
	p->part_bytes = agent->part_bytes;
	if (node->queue_bytes)
		p->queue_bytes = (uint32_t)node->queue_bytes;
}
