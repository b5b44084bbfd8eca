/* agent_shared.c - functions of the agent that several threads call.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/agent_shared.h"

enum { WINDOW_BYTES = 1 << 20 }; /* of a stream at a server's core, at most */

/* --- any thread: a declaration as the worker takes it --- */

/* As a client asks, but so small that a server's core has it in its cache. */
static uint8_t window_of(const struct agent_shared *shared, uint8_t log2)
{
	uint32_t payload = shared->daemon.params.payload;

	while (log2 > SW_WINDOW_MIN_LOG2 && payload << log2 > WINDOW_BYTES)
		log2--;
	return log2;
}

void sw_agent_tensor(const struct agent_shared *shared,
	const struct sw_host_tensor *t, uint32_t again,
	struct sw_worker_tensor *out)
{
	/* Of one that differs from another local rank's there is no result. */
	char *base = t->result ? t->result : t->base;

	if (t->kind == SW_EDGE_STREAM)
		*out = (struct sw_worker_tensor){.name = t->name,
			.priority = t->priority,
			.window_log2 = window_of(shared, (uint8_t)t->dtype),
			.n_ranks = (uint32_t)t->n_elems,
			.ranks = t->ranks,
			.again = again};
	else
		*out = (struct sw_worker_tensor){.name = t->name,
			.n_elems = t->n_elems,
			.dtype = t->dtype,
			.priority = t->priority,
			.base = sw_agent_n_local(shared) == 1 ? t->base
							      : t->result,
			.granules = t->kind == SW_EDGE_GROWING
					    ? (void *)(base + sw_edge_granules(
								      t->bytes))
					    : NULL,
			.is_async = t->kind == SW_EDGE_ASYNC};
}

/* --- any lcore: memory that is lent to our own server --- */

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
