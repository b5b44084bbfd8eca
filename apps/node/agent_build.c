/* agent_build.c - the control thread opens, fills and closes a worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It takes all memory and builds all tensors; an lcore has a worker from JOIN
 * to LEFT, and of its tensors those that were added.
 */

#include "apps/node/agent.h"
#include "engine/base/error.h"

/* --- a worker of all lanes --- */

void sw_agent_init_parts(struct agent *a)
{
	struct agent_part *parts = a->shared.parts;

	parts[0] = (struct agent_part){
		.worker = &a->core.worker, .events = sw_agent_events(&a->core)};
	for (uint32_t i = 0; i < a->shared.n_others; i++)
		parts[i + 1] = (struct agent_part){
			.worker = &a->shared.others[i].worker,
			.events = sw_agent_lane_events(&a->shared.others[i])};
}

static int open_part(struct agent_shared *shared, uint32_t i)
{
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX];
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4];
	struct agent_part *p = &shared->parts[i];
	struct sw_worker_job job;

	sw_agent_job(shared, &job, servers, names);
	job.lane_i = (uint8_t)i;
	sw_daemon_env(
		&shared->daemon, i, &shared->daemon.lane_reserves[i], &p->env);
	if (i)
		sw_lane_init(&shared->lanes[i - 1], shared->parts[0].worker);
	return sw_worker_open(p->worker, &shared->daemon.params, &p->env,
		&p->events, &job, sw_handoff_ports(&shared->daemon.handoff, i),
		shared->daemon.n_ports, sw_now_ns());
}

int sw_agent_open_worker(struct agent_shared *shared)
{
	int err = 0;

	for (uint32_t i = 0; i <= shared->n_others && !err; i++)
		err = open_part(shared, i);
	return err;
}

void sw_agent_close_worker(struct agent_shared *shared)
{
	for (uint32_t i = 0; i <= shared->n_others; i++)
		sw_worker_close(shared->parts[i].worker);
}

bool sw_agent_make_memory(struct agent_shared *shared)
{
	bool has_worked = false;

	for (uint32_t i = 0; i <= shared->n_others; i++) {
		struct sw_reserve *r = &shared->daemon.lane_reserves[i];

		/* Of what was put back no port knows since LEFT. */
		sw_reserve_turn(r);
		sw_reserve_pass(r);
		has_worked |= sw_reserve_work(r);
	}
	return has_worked;
}

/* --- a batch --- */

/* The id that a stream, which is alone in its batch, has at the index of one
 * that has gone; 0: the batch goes on behind those that there are. */
static uint32_t again_of(const struct agent_control *c)
{
	const struct sw_host_tensor *t = &c->building.tensors[0];

	if (sw_agent_n_local(c->shared) > 1)
		return t->is_again ? t->node_id : 0;
	return t->kind == SW_EDGE_STREAM && c->n_reused != c->n_freed
		       ? sw_id_next(c->freed[c->n_reused % SW_TENSORS])
		       : 0;
}

/* Those tensors of a batch that no local rank has declared before. */
static uint32_t list_new(
	const struct agent_control *c, struct sw_worker_tensor *list)
{
	const struct agent_command *b = &c->building;
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++)
		if (sw_agent_n_local(c->shared) == 1 || b->tensors[i].is_new)
			sw_agent_tensor(c->shared, &b->tensors[i], c->again,
				&list[n++]);
	return n;
}

/* In the lanes that lack it.  Returns 0, SW_EAGAIN, or why it cannot be. */
static int build(struct agent_control *c)
{
	struct sw_worker_tensor list[SW_TENSORS];
	uint32_t n;
	int err = 0;

	if (!c->n_lanes_built) /* in each lane the same: more may go meanwhile
				*/
		c->again = again_of(c);
	n = c->building.n_new = list_new(c, list);
	c->building.first = c->again ? c->again : c->n_places;
	for (; n && !err && c->n_lanes_built <= c->shared->n_others;
		c->n_lanes_built += !err)
		err = sw_worker_build(
			c->shared->parts[c->n_lanes_built].worker, list, n);
	if (err && err != SW_EAGAIN)
		while (c->n_lanes_built)
			sw_worker_unbuild(
				c->shared->parts[--c->n_lanes_built].worker,
				c->n_built);
	return err;
}

/* Where a local rank has its contributions; what it declares differently than
 * those before it has no result, and is the lcore's to say (sw_agent_declare).
 */
static void set_sources(const struct agent_control *c)
{
	const struct agent_command *b = &c->building;

	for (uint32_t i = 0; i < b->n && sw_agent_n_local(c->shared) > 1; i++)
		if (b->tensors[i].result)
			sw_worker_source(c->shared->parts[0].worker,
				b->tensors[i].node_id, b->local,
				b->tensors[i].base);
}

static void free_one(struct agent_control *c, uint32_t tensor)
{
	for (uint32_t i = 0; i <= c->shared->n_others; i++)
		sw_worker_free(c->shared->parts[i].worker, tensor);
	if (sw_agent_n_local(c->shared) > 1)
		sw_host_gone(c->shared->host, tensor);
	else if (sw_id_next(tensor))
		c->freed[c->n_freed++ % SW_TENSORS] = tensor;
}

static void note_built(struct agent_control *c)
{
	c->n_built += c->building.n_new;
	if (!c->again)
		c->n_places += c->building.n_new;
	else if (sw_agent_n_local(c->shared) == 1)
		c->n_reused++;
}

void sw_agent_take_gone(struct agent_control *c, bool is_closed)
{
	if (!atomic_exchange(&c->shared->has_gone, false))
		return;
	for (uint32_t w = 0; w < SW_TENSORS / 64; w++) {
		uint64_t gone = atomic_exchange(&c->shared->gone[w], 0);

		for (; gone && !is_closed; gone &= gone - 1)
			free_one(c,
				c->shared->gone_ids[64 * w +
						    (uint32_t)__builtin_ctzll(
							    gone)]);
	}
}

/* Why the batch cannot be built, in words. */
static const char *describe(const struct agent_control *c, int err)
{
	if (err == SW_EBUSY)
		return "there are as many tensors and streams as can be; those "
		       "of a group go when all of its ranks have closed it";
	if (err == SW_EINVAL && c->building.tensors[0].kind == SW_EDGE_STREAM)
		return "a group has different ranks of the job, this one among "
		       "them, and at most 16 streams";
	return sw_error_text(err);
}

void sw_agent_build(struct agent_control *c)
{
	int err;

	if (c->is_ended) /* all will be told that it is over */
		c->building.n = c->n_lanes_built = 0;
	if (!c->building.n)
		return;
	err = build(c);
	if (err == SW_EAGAIN)
		return;
	if (err) {
		sw_host_declare_failed(c->shared->host, c->declarer, c->batch,
			err, describe(c, err));
	} else {
		set_sources(c);
		note_built(c);
		sw_agent_command(c, &c->building);
	}
	c->building.n = c->n_lanes_built = 0;
}
