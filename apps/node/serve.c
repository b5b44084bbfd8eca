/* serve.c - the summation service inside a daemon: memory, stages, the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "apps/node/serve_view.h"
#include "engine/base/error.h"
#include "pmd/host/memory.h"

enum {
	FINISH_MS = 2000, /* wait for requests in flight at SIGTERM */
	TELL_MS = 300,    /* wait for the members to learn of the stop */
	POLL_MS = 20,
	FRAME_HEADS_BYTES = 192, /* headers around a payload in a ring */
};

/* The owner of an lcore's description of its jobs. */
enum look { LOOK_NONE, LOOK_ASKED, LOOK_TOLD, LOOK_ADDED };

/* Return the memory that this process needs besides jobs: its resident memory,
 * and the rings of the ports after frames have touched them. */
static uint64_t fixed_bytes(const struct sw_daemon *d)
{
	uint64_t bytes = sw_memory_resident();

	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		bytes += 2ULL * sw_dpdk_port_slots(d->queues[0][i]) *
			 (d->params.payload + FRAME_HEADS_BYTES);
	return bytes;
}

static void print_budget(const struct sw_daemon *d)
{
	const struct sw_conf *c = &d->conf;
	char at[SW_IP_PORT_TEXT];
	uint64_t job = sw_job_bytes(0), member = sw_job_bytes(1) - job;

	sw_log(&d->log, SW_LOG_INFO,
		"memory: at most %llu MiB for tensors (2 x declared bytes, 3 x "
		"for 16-bit types, 64 B per chunk of %u B and rank bits), "
		"fixed part %llu MiB, a job %llu KiB and %llu KiB for each of "
		"its members%s",
		(unsigned long long)(c->serve.quota_bytes >> 20),
		d->params.payload, (unsigned long long)(fixed_bytes(d) >> 20),
		(unsigned long long)(job + 1023) >> 10,
		(unsigned long long)(member + 1023) >> 10,
		c->serve.lcores > 1 ? ", at each lcore" : "");
	for (uint32_t i = 0; i < c->n_ports; i++)
		sw_log(&d->log, SW_LOG_INFO, "port %s: %s, payload %u B",
			c->ports[i].label,
			sw_ip_port_text(c->ports[i].subnet.ip,
				(uint16_t)c->serve.udp_port, at),
			d->queues[0][i]->max_payload);
}

static struct sw_share share_of(
	struct sw_serve_core *c, uint32_t i, uint32_t weight, uint64_t quota)
{
	return (struct sw_share){.job = c->serve->daemon->conf.shares[i].label,
		.weight = weight,
		.quota_bytes = quota,
		.all_used = &c->serve->share_used[i]};
}

/* Give every lcore the job's weight.  All lcores share one quota, since the
 * parts of a job at each lcore differ by some bytes. */
static int open_shares(struct sw_serve_core *c, const struct sw_conf *conf)
{
	for (uint32_t i = 0; i < conf->n_shares; i++)
		c->shares[i] = share_of(c, i, conf->shares[i].weight,
			conf->shares[i].quota_bytes);
	return sw_server_share(c->engine, c->shares, conf->n_shares);
}

/* Set which jobs and networks may join, for all lcores. */
static void open_guests(struct sw_serve *s, const struct sw_conf *conf)
{
	struct sw_conf_subnet nets[SW_CONF_NETWORKS_MAX];
	int n = sw_conf_networks_list(conf->serve.from, nets);

	for (int i = 0; i < n; i++)
		s->nets[i] = (struct sw_net){nets[i].ip, nets[i].bits};
	s->guests = (struct sw_guests){.jobs = conf->serve.jobs,
		.nets = s->nets,
		.n_nets = n > 0 ? (uint32_t)n : 0};
}

static int open_core(struct sw_serve *s, uint32_t i)
{
	struct sw_serve_core *c = &s->cores[i];
	struct sw_daemon *d = s->daemon;
	int err;

	c->serve = s;
	c->i = i;
	c->reserve = &d->reserves[i];
	sw_reserve_open(c->reserve);
	sw_daemon_env(d, i, c->reserve, &c->env);
	err = sw_server_open(&c->engine, &d->params, &c->env,
		sw_handoff_ports(&d->handoff, i), d->n_ports,
		d->conf.serve.quota_bytes);
	if (err)
		return err;
	sw_server_set_lcores(c->engine, s->n_cores, &s->used);
	sw_server_limit(c->engine, &s->guests);
	atomic_store(&c->keys, atomic_load(&s->keys));
	sw_server_set_keys(c->engine, atomic_load(&c->keys));
	return open_shares(c, &d->conf);
}

int sw_serve_open(struct sw_serve *s, struct sw_daemon *d)
{
	uint32_t n = d->conf.serve.lcores;
	int err = 0;

	s->daemon = d;
	s->cores = calloc(n, sizeof(*s->cores));
	if (!s->cores)
		return SW_ENOMEM;
	s->n_cores = n;
	open_guests(s, &d->conf);
	atomic_store(&s->keys, &d->secrets->serve);
	snprintf(s->farewell, sizeof(s->farewell),
		"the server at node %s stops", d->conf.node.name);
	for (uint32_t i = 0; i < n && !err; i++)
		err = open_core(s, i);
	if (err)
		return err;
	print_budget(d);
	if (n > 1)
		sw_log(&d->log, SW_LOG_INFO,
			"%u lcores, UDP ports %u to %u, a part of each job at "
			"each",
			n, d->conf.serve.udp_port,
			d->conf.serve.udp_port + n - 1);
	return 0;
}

void sw_serve_close(struct sw_serve *s)
{
	for (uint32_t i = 0; i < s->n_cores; i++)
		sw_server_close(s->cores[i].engine);
	free(s->cores);
	s->cores = NULL;
	s->n_cores = 0;
}

/* --- on the lcores --- */

/* Apply the shares of the last reload. */
static void follow_shares(struct sw_serve_core *c)
{
	struct sw_daemon *d = c->serve->daemon;
	uint32_t n = atomic_load_explicit(&d->n_reloads, memory_order_acquire);

	if (c->n_reloads == n)
		return;
	c->n_reloads = n;
	for (uint32_t i = 0; i < d->conf.n_shares; i++)
		c->shares[i] = share_of(c, i, atomic_load(&d->shares[i].weight),
			atomic_load(&d->shares[i].quota));
	sw_server_reshare(c->engine);
}

/* Publish this lcore's state, and enter the stage that the control thread has
 * ordered. */
static uint32_t follow(struct sw_serve_core *c)
{
	const struct sw_engine *engine = sw_server_engine(c->engine);
	int wanted =
		atomic_load_explicit(&c->serve->wanted, memory_order_acquire);

	atomic_store_explicit(&c->open_chunks, sw_server_open_chunks(c->engine),
		memory_order_relaxed);
	atomic_store_explicit(&c->has_job, sw_server_has_job(c->engine),
		memory_order_relaxed);
	follow_shares(c);
	if (wanted == SW_SERVE_RUN)
		return 0;
	atomic_store(&c->is_quiet, !engine->is_busy(engine));
	if (c->done == wanted)
		return 0;
	c->done = wanted;
	if (wanted == SW_SERVE_FINISH)
		sw_server_stop(c->engine);
	else
		sw_server_fail_all(c->engine, c->serve->farewell);
	return 1;
}

/* Switch to the newest secrets, for all frames of this turn. */
static void follow_keys(struct sw_serve_core *c)
{
	const struct sw_keyring *keys =
		atomic_load_explicit(&c->serve->keys, memory_order_acquire);

	if (keys == atomic_load_explicit(&c->keys, memory_order_relaxed))
		return;
	sw_server_set_keys(c->engine, keys);
	atomic_store_explicit(&c->keys, keys, memory_order_release);
}

/* Describe the jobs of this lcore, if the control thread has asked. */
static void show_jobs(struct sw_serve_core *c, uint64_t now_ns)
{
	if (atomic_load_explicit(&c->look, memory_order_acquire) != LOOK_ASKED)
		return;
	if (!sw_server_describe(c->engine, now_ns, &c->now))
		return; /* the next turn continues */
	atomic_store_explicit(&c->look, LOOK_TOLD, memory_order_release);
}

static uint32_t core_turn(void *ctx, uint64_t now_ns)
{
	struct sw_serve_core *c = ctx;

	follow_keys(c);
	sw_reserve_turn(c->reserve);
	if (sw_reserve_is_leaving(c->reserve) && !atomic_load(&c->is_released))
		atomic_store(&c->is_released,
			sw_daemon_release(c->serve->daemon, c->i, &c->own));
	show_jobs(c, now_ns);
	return follow(c);
}

/* Pass on the memory of each lcore, once its own queue pairs have released it,
 * and also the queue pairs of lcore 0, through which that lcore may send. */
static void pass_memory(struct sw_serve *s)
{
	for (uint32_t i = 0; i < s->n_cores; i++) {
		struct sw_serve_core *c = &s->cores[i];

		if (!sw_reserve_is_leaving(c->reserve) ||
			!atomic_load(&c->is_released))
			continue;
		if (!c->first.is_begun)
			sw_handoff_release(&s->daemon->handoff, i);
		if (!sw_daemon_release(s->daemon, 0, &c->first))
			continue;
		sw_reserve_pass(c->reserve);
		atomic_store(&c->is_released, false); /* for the next release */
	}
}

static uint32_t first_turn(void *ctx, uint64_t now_ns)
{
	struct sw_serve_core *c = ctx;
	uint32_t n = core_turn(c, now_ns);

	pass_memory(c->serve);
	return n;
}

/* --- on the control thread --- */

void sw_serve_start(struct sw_serve *s)
{
	for (uint32_t i = 0; i < s->n_cores; i++) {
		struct sw_serve_core *c = &s->cores[i];
		struct sw_poller *p = &s->daemon->pollers[i];

		p->is_serving = true;
		sw_loop_set(&p->loop, i, sw_server_engine(c->engine));
		sw_poller_add(p, i ? core_turn : first_turn, c);
	}
}

/* Give new secrets to the lcores, and free old ones that no lcore uses. */
static void pass_secrets(struct sw_serve *s)
{
	const struct sw_keyring *keys = &s->daemon->secrets->serve;

	if (!s->daemon->secrets->older)
		return;
	atomic_store_explicit(&s->keys, keys, memory_order_release);
	for (uint32_t i = 0; i < s->n_cores; i++) {
		struct sw_bell *bell = &s->daemon->pollers[i].bell;

		if (atomic_load_explicit(
			    &s->cores[i].keys, memory_order_acquire) == keys)
			continue;
		if (sw_bell_is_awaited(bell))
			sw_bell_ring(bell);
		return;
	}
	sw_daemon_drop_secrets(s->daemon);
}

bool sw_serve_work(struct sw_serve *s)
{
	bool has_worked = false;

	pass_secrets(s);
	for (uint32_t i = 0; i < s->n_cores; i++)
		has_worked |= sw_reserve_work(s->cores[i].reserve);
	return has_worked;
}

bool sw_serve_is_idle(const struct sw_serve *s)
{
	for (uint32_t i = 0; i < s->n_cores; i++)
		if (atomic_load(&s->cores[i].has_job))
			return false;
	return true;
}

/* Ask a core to describe its jobs.  Returns whether it has answered. */
static bool look_at(struct sw_serve_core *c)
{
	struct sw_bell *bell = &c->serve->daemon->pollers[c->i].bell;
	int look = atomic_load_explicit(&c->look, memory_order_acquire);

	if (look >= LOOK_TOLD)
		return true;
	if (look == LOOK_NONE) {
		c->now = (struct sw_server_view){0};
		atomic_store(&c->look, LOOK_ASKED);
	}
	if (sw_bell_is_awaited(bell))
		sw_bell_ring(bell);
	return false;
}

/* Add a core's jobs to the view of the first core. */
static void add_told(struct sw_serve *s, struct sw_serve_core *c)
{
	if (!c->i || atomic_load(&c->look) == LOOK_ADDED)
		return;
	sw_serve_view_add(&s->cores[0].now, &c->now);
	atomic_store(&c->look, LOOK_ADDED);
}

const struct sw_server_view *sw_serve_look(struct sw_serve *s)
{
	bool have_all = true;

	for (uint32_t i = 0; i < s->n_cores; i++)
		have_all = look_at(&s->cores[i]) && have_all;
	for (uint32_t i = 0; have_all && i < s->n_cores; i++)
		add_told(s, &s->cores[i]);
	return have_all ? &s->cores[0].now : NULL;
}

void sw_serve_looked(struct sw_serve *s)
{
	for (uint32_t i = 0; i < s->n_cores; i++)
		atomic_store(&s->cores[i].look, LOOK_NONE);
}

static uint64_t open_chunks(const struct sw_serve *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->n_cores; i++)
		n += atomic_load(&s->cores[i].open_chunks);
	return n;
}

static bool is_quiet(const struct sw_serve *s)
{
	for (uint32_t i = 0; i < s->n_cores; i++)
		if (!atomic_load(&s->cores[i].is_quiet))
			return false;
	return !open_chunks(s);
}

void sw_serve_finish(struct sw_serve *s, bool is_hurried)
{
	const struct sw_log *log = &s->daemon->log;
	uint32_t ms = 0;
	uint64_t n_open;

	atomic_store(&s->wanted, SW_SERVE_FINISH);
	while (!is_hurried && ms < FINISH_MS && !is_quiet(s)) {
		is_hurried = sw_daemon_hurried(s->daemon, POLL_MS);
		ms += POLL_MS;
	}
	n_open = open_chunks(s);
	if (n_open)
		sw_log(log, SW_LOG_WARN,
			"dropped %llu chunks that wait for agents",
			(unsigned long long)n_open);
	else
		sw_log(log, SW_LOG_INFO, "drained: no sum is open");
	atomic_store(&s->wanted, SW_SERVE_TELL);
	for (ms = 0; ms < TELL_MS && !sw_daemon_hurried(s->daemon, POLL_MS);)
		ms += POLL_MS;
}

void sw_serve_add_stats(const struct sw_serve *s, struct sw_stats *sum)
{
	for (uint32_t i = 0; i < s->n_cores; i++)
		sw_stats_add(sum, sw_server_stats(s->cores[i].engine));
}

void sw_serve_put_stats(const struct sw_serve *s,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[32];

	put(out, "open_chunks", open_chunks(s));
	put(out, "memory_used_bytes", atomic_load(&s->used));
	put(out, "memory_quota_bytes", s->daemon->conf.serve.quota_bytes);
	put(out, "memory_resident_bytes", sw_memory_resident());
	put(out, "keys", s->daemon->secrets->serve.n);
	put(out, "lcores", s->n_cores);
	for (uint32_t i = 0; i < s->n_cores; i++) {
		snprintf(name, sizeof(name), "lcore%u.push_bytes", i);
		put(out, name,
			sw_word(&sw_server_stats(s->cores[i].engine)
					 ->push_bytes));
	}
}
