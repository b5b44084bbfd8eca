/* agent_memory.c - memory of sw_alloc that processes give back.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * No collective uses it, but frames that were sent from it once more may still
 * be under way inside this process: each lcore sees that none of its ports
 * refers to what was sent before.  Then the control thread unmaps it.
 */
#include "apps/node/agent.h"

/* What was sent to our own server, which has not received it. */
static void copy_sent(struct agent_shared *shared, uint32_t lcore)
{
	if (shared->is_serving)
		sw_loopback_copy_lent(shared->daemon.loopbacks[lcore]);
}

/* The server of that lcore, or NULL. */
static struct sw_server *server_at(
	const struct agent_shared *shared, uint32_t lcore)
{
	return shared->is_serving && lcore < shared->serve.n_cores
		       ? shared->serve.cores[lcore].engine
		       : NULL;
}

bool sw_agent_copy_lent(struct agent_shared *shared, uint32_t lcore)
{
	struct sw_server *srv = server_at(shared, lcore);

	copy_sent(shared, lcore);
	return !srv || sw_server_copy_lent(srv);
}

bool sw_agent_keep_stream(
	struct agent_shared *shared, uint32_t lcore, uint32_t key)
{
	struct sw_server *srv = server_at(shared, lcore);

	copy_sent(shared, lcore);
	return !srv || sw_server_keep_stream(srv, key);
}

void sw_agent_free(struct agent_core *core, const struct agent_command *o)
{
	struct sw_host_client *client = core->clients[o->local];

	core->freed.local = o->local;
	core->freed.item = o->n;
	core->freed.at = 0;
	if (!client || !sw_host_forget(client, o->n, &core->freed.base,
			       &core->freed.bytes))
		return;
	if (core->freed.base)
		core->freed.client = client;
	else /* of a stream no port has anything */
		sw_agent_tell(core, &(struct agent_report){.kind = AGENT_TUNED,
					    .local = o->local});
}

void sw_agent_find_use(struct agent_core *core)
{
	struct sw_host_client *client = core->freed.client;
	uint32_t local = core->freed.local;

	if (sw_worker_uses(&core->worker, local, core->freed.base,
		    core->freed.bytes, &core->freed.at))
		sw_host_evict(client, "freed memory that it uses, item",
			core->freed.item);
	else if (core->freed.at < SW_TENSORS)
		return;
	else {
		core->n_freeing += !core->is_freeing[local];
		core->is_freeing[local] = true;
		core->freed_at[local] =
			atomic_fetch_add(&core->shared->n_freed, 1) + 1;
	}
	core->freed.client = NULL;
}

void sw_agent_lane_free(struct agent_lane *l)
{
	uint32_t n = atomic_load(&l->shared->n_freed);

	if (atomic_load(&l->n_freed) == n)
		return;
	if (!l->freeing.is_begun)
		l->n_marked = n;
	if (sw_daemon_release(&l->shared->daemon, l->i, &l->freeing))
		atomic_store(&l->n_freed, l->n_marked);
}

static bool are_lanes_done(struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++) {
		struct agent_lane *l = &shared->others[i];

		if (atomic_load(&l->stage) == AGENT_LANE_OPEN &&
			atomic_load(&l->n_freed) !=
				atomic_load(&shared->n_freed))
			return false;
	}
	return true;
}

/* Frames that the lanes have handed to lcore 0 come before its own mark. */
static void begin_freeing(struct agent_core *core)
{
	struct agent_shared *shared = core->shared;

	core->n_marked = atomic_load(&shared->n_freed);
	for (uint32_t i = 0; i < shared->n_others; i++)
		sw_handoff_release(&shared->daemon.handoff, i + 1);
}

void sw_agent_work_free(struct agent_core *core)
{
	struct agent_shared *shared = core->shared;

	if (!core->n_freeing ||
		(!core->freeing.is_begun && !are_lanes_done(shared)))
		return;
	if (!core->freeing.is_begun)
		begin_freeing(core);
	if (!sw_daemon_release(&shared->daemon, 0, &core->freeing))
		return;
	for (uint32_t i = 0; i < sw_agent_n_local(shared); i++) {
		if (!core->is_freeing[i] ||
			(int32_t)(core->freed_at[i] - core->n_marked) > 0)
			continue;
		core->is_freeing[i] = false;
		core->n_freeing--;
		sw_agent_tell(core, &(struct agent_report){
					    .kind = AGENT_TUNED, .local = i});
	}
}
