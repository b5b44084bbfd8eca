/* agent_shared.c - agent functions that several threads call.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/agent_shared.h"

#include <stdio.h>

enum { WINDOW_BYTES = 1 << 20 }; /* limit for a stream at a server's lcore */

/* --- any thread: declarations in the worker's form --- */

/* Return the window that the client asks for, limited to the cache of a
 * server's lcore.  All agents must compute the same value. */
static uint8_t window_of(const struct agent_shared *shared, uint8_t log2)
{
	uint32_t payload = sw_worker_payload(shared->parts[0].worker);

	while (log2 > SW_WINDOW_MIN_LOG2 && payload << log2 > WINDOW_BYTES)
		log2--;
	return log2;
}

void sw_agent_tensor(const struct agent_shared *shared,
	const struct sw_host_tensor *t, uint32_t again,
	struct sw_worker_tensor *out)
{
	/* A tensor whose declaration differs between local ranks has no
	 * result. */
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

/* --- any lcore: questions of the control thread --- */

static void add_sessions(struct agent_shared *shared, uint32_t lcore,
	const struct sw_worker *worker)
{
	struct sw_worker_path path;

	for (uint32_t i = 0; shared->n_sessions < SW_MAX_SERVERS &&
			     sw_worker_path(worker, i, &path);
		i++) {
		struct agent_session *s =
			&shared->sessions[shared->n_sessions++];

		*s = (struct agent_session){.lane = lcore, .path = path};
		snprintf(s->server, sizeof(s->server), "%s", path.server);
		s->path.server = NULL;
	}
}

void sw_agent_describe(struct agent_shared *shared, uint32_t lcore,
	const struct sw_worker *worker)
{
	bool is_last = lcore == shared->n_others;
	struct sw_bell *bell;

	if (worker)
		add_sessions(shared, lcore, worker);
	atomic_store_explicit(&shared->look,
		is_last ? AGENT_LOOK_TOLD : AGENT_LOOK_ASKED + lcore + 1,
		memory_order_release);
	bell = &shared->daemon.pollers[lcore + !is_last].bell;
	if (!is_last && sw_bell_is_awaited(bell))
		sw_bell_ring(bell);
}

/* --- any lcore: memory lent to our own server --- */

/* Copy the frames in flight to our own server. */
static void copy_sent(struct agent_shared *shared, uint32_t lcore)
{
	if (shared->is_serving)
		sw_loopback_copy_lent(shared->daemon.loopbacks[lcore]);
}

/* Return the server of that lcore, or NULL. */
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
