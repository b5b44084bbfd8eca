/* server.c - sumwire server: the summation service.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/args.h"
#include "apps/cmd.h"
#include "apps/daemon.h"
#include "engine/error.h"
#include "engine/server.h"
#include "pmd/host/memory.h"

enum {
	FINISH_MS = 2000, /* for what is in flight at SIGTERM */
	TELL_MS = 300,    /* for the members to hear that we stop */
	POLL_MS = 20,
	TABLES_BYTES = 2 << 20,  /* of a job and its sessions */
	FRAME_HEADS_BYTES = 192, /* around a payload in a ring */
};

/* What the control thread wants of the lcore. */
enum stage { RUN, FINISH, TELL };

struct server {
	struct sw_daemon daemon;
	struct sw_server engine;
	struct sw_poller poller;
	_Atomic int wanted;    /* enum stage */
	int done;              /* lcore: stages entered */
	_Atomic bool is_quiet; /* lcore: nothing is in flight */
	_Atomic uint64_t open_chunks;
};

/* On the lcore, before each turn. */
static uint32_t work(void *ctx, uint64_t now_ns)
{
	struct server *s = ctx;
	int wanted = atomic_load_explicit(&s->wanted, memory_order_acquire);

	(void)now_ns;
	sw_reserve_turn(&s->daemon.reserve, s->daemon.ports, s->daemon.n_ports);
	if (wanted == RUN)
		return 0;
	atomic_store(&s->open_chunks, sw_server_open_chunks(&s->engine));
	atomic_store(&s->is_quiet, !s->engine.node.is_busy(&s->engine.node));
	if (s->done == wanted)
		return 0;
	s->done = wanted;
	if (wanted == FINISH)
		sw_server_stop(&s->engine);
	else
		sw_server_fail_all(&s->engine, "the server stops");
	return 1;
}

static void fill_stats(void *ctx,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	struct server *s = ctx;

	sw_daemon_put_stats(&s->daemon, &s->engine.stats, put, out);
	put(out, "open_chunks", sw_server_open_chunks(&s->engine));
	put(out, "memory_used_bytes", s->engine.used_bytes);
	put(out, "memory_quota_bytes", s->engine.quota_bytes);
	put(out, "memory_resident_bytes", sw_memory_resident());
}

/* What this process takes besides tensors: what is resident now, the rings of
 * the ports once frames have gone through them, tables and sessions. */
static uint64_t fixed_bytes(const struct sw_conf *c)
{
	uint64_t bytes = sw_memory_resident() + TABLES_BYTES;

	for (uint32_t i = 0; i < c->n_ports; i++)
		bytes += 2ULL * c->ports[i].ring *
			 (c->job.payload_bytes + FRAME_HEADS_BYTES);
	return bytes;
}

static void print_budget(const struct server *s)
{
	const struct sw_daemon *d = &s->daemon;
	const struct sw_conf *c = &d->conf;

	sw_log(&d->log, SW_LOG_INFO,
		"memory: at most %llu MiB for tensors (2 x declared bytes, 3 x "
		"for 16-bit types, 64 B per chunk of %u B and rank bits), "
		"fixed part %llu MiB",
		(unsigned long long)(c->serve.quota_bytes >> 20),
		c->job.payload_bytes,
		(unsigned long long)(fixed_bytes(c) >> 20));
	for (uint32_t i = 0; i < c->n_ports; i++)
		sw_log(&d->log, SW_LOG_INFO,
			"port %s: %u.%u.%u.%u:%u, payload %u B",
			c->ports[i].label, c->ports[i].subnet.ip >> 24,
			c->ports[i].subnet.ip >> 16 & 255,
			c->ports[i].subnet.ip >> 8 & 255,
			c->ports[i].subnet.ip & 255, c->serve.udp_port,
			d->ports[i]->max_payload);
}

static void control(struct server *s)
{
	while (!sw_daemon_signalled(POLL_MS)) {
		sw_stats_serve_poll(s->daemon.stats);
		sw_reserve_work(&s->daemon.reserve);
	}
	sw_log(&s->daemon.log, SW_LOG_INFO,
		"stopping: finishing what is in flight");
	atomic_store(&s->wanted, FINISH);
	for (uint32_t ms = 0; ms < FINISH_MS; ms += POLL_MS) {
		sw_daemon_signalled(POLL_MS);
		if (atomic_load(&s->is_quiet) && !atomic_load(&s->open_chunks))
			break;
	}
	if (atomic_load(&s->open_chunks))
		sw_log(&s->daemon.log, SW_LOG_WARN,
			"dropped %llu chunks that wait for members",
			(unsigned long long)atomic_load(&s->open_chunks));
	else
		sw_log(&s->daemon.log, SW_LOG_INFO,
			"finished: no chunk waits for a member");
	atomic_store(&s->wanted, TELL);
	for (uint32_t ms = 0; ms < TELL_MS; ms += POLL_MS)
		sw_daemon_signalled(POLL_MS);
}

static int run(struct server *s)
{
	struct sw_daemon *d = &s->daemon;
	int err = sw_daemon_serve_stats(d, fill_stats, s);

	if (!err)
		err = sw_daemon_start(d);
	if (!err)
		err = sw_server_open(&s->engine, &d->params, &d->env, d->ports,
			d->n_ports, d->conf.serve.quota_bytes);
	if (err)
		return err;
	s->poller = (struct sw_poller){.daemon = d, .ctx = s, .work = work};
	sw_poller_node(&s->poller, &s->engine.node, sw_now_ns());
	print_budget(s);
	err = sw_dpdk_launch(d->dpdk, 0, sw_poller_run, &s->poller);
	if (!err) {
		sw_log(&d->log, SW_LOG_INFO, "server %s is ready",
			d->conf.node.name);
		control(s);
		atomic_store(&s->poller.stop, true);
		err = sw_dpdk_join(d->dpdk, 0);
	}
	sw_server_close(&s->engine);
	return err;
}

int sw_cmd_server(int argc, char **argv)
{
	struct sw_daemon_options o;
	int err = sw_daemon_parse(&o, "server",
		"sum what agents push, until SIGTERM", argc, argv);
	struct server *s;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	s = calloc(1, sizeof(*s));
	if (!s)
		return 1;
	err = sw_daemon_open(&s->daemon, &o, SW_ROLE_SERVER);
	if (!err)
		err = run(s);
	sw_daemon_close(&s->daemon);
	free(s);
	return err ? 1 : 0;
}
