/* agent_memory.c - memory of sw_alloc that processes give back.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * No collective uses it, but frames that were sent from it once more may still
 * be under way inside this process: each lcore sees that none of its ports
 * refers to what was sent before.  Then the control thread unmaps it.
 */
#include "apps/cli/clock.h"
#include "apps/node/agent.h"

/* A driver that does DMA may have a full ring before it, during which nothing
 * is to come behind. */
#define PAUSE_NS (10 * SW_MS)

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

/* Before a turn, so that no frame is borrowed.  What is lent to a sum is of a
 * collective that is open, and so not there.  False: ask again. */
static bool is_done(struct agent_shared *shared, uint32_t lcore)
{
	uint64_t until_ns = sw_now_ns() + PAUSE_NS;

	copy_sent(shared, lcore);
	while (!sw_daemon_release(&shared->daemon, lcore))
		if (sw_now_ns() >= until_ns)
			return false;
	return true;
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
		atomic_fetch_add(&core->shared->n_freed, 1);
	}
	core->freed.client = NULL;
}

void sw_agent_lane_free(struct agent_lane *l)
{
	uint32_t n = atomic_load(&l->shared->n_freed);

	if (atomic_load(&l->n_freed) != n && is_done(l->shared, l->i))
		atomic_store(&l->n_freed, n);
}

/* What they have handed on waits for lcore 0. */
static bool are_lanes_done(struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++) {
		struct agent_lane *l = &shared->others[i];

		if (atomic_load(&l->stage) == AGENT_LANE_OPEN &&
			atomic_load(&l->n_freed) !=
				atomic_load(&shared->n_freed))
			return false;
		sw_handoff_release(&shared->daemon.handoff, i + 1);
	}
	return true;
}

void sw_agent_work_free(struct agent_core *core)
{
	if (!core->n_freeing || !are_lanes_done(core->shared) ||
		!is_done(core->shared, 0))
		return;
	for (uint32_t i = 0; i < sw_agent_n_local(core->shared); i++) {
		if (!core->is_freeing[i])
			continue;
		core->is_freeing[i] = false;
		sw_agent_tell(core, &(struct agent_report){
					    .kind = AGENT_TUNED, .local = i});
	}
	core->n_freeing = 0;
}
