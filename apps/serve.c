/* serve.c - the summation service inside a daemon: memory, stages, the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/serve.h"

#include <stdio.h>

#include "pmd/host/memory.h"

enum {
	FINISH_MS = 2000, /* for what is in flight at SIGTERM */
	TELL_MS = 300,    /* for the members to hear that we stop */
	POLL_MS = 20,
	TABLES_BYTES = 2 << 20,  /* of a job and its sessions */
	FRAME_HEADS_BYTES = 192, /* around a payload in a ring */
};

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

static void print_budget(const struct sw_daemon *d)
{
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

int sw_serve_open(struct sw_serve *s, struct sw_daemon *d)
{
	const struct sw_conf *c = &d->conf;
	int err = sw_server_open(&s->engine, &d->params, &d->env, d->ports,
		d->n_ports, c->serve.quota_bytes);

	s->daemon = d;
	for (uint32_t i = 0; i < c->n_shares; i++)
		s->shares[i] = (struct sw_share){.job = c->shares[i].label,
			.weight = c->shares[i].weight,
			.quota_bytes = c->shares[i].quota_bytes};
	if (!err)
		err = sw_server_share(&s->engine, s->shares, c->n_shares);
	if (!err)
		print_budget(d);
	return err;
}

void sw_serve_close(struct sw_serve *s)
{
	sw_server_close(&s->engine);
}

uint32_t sw_serve_turn(struct sw_serve *s)
{
	int wanted = atomic_load_explicit(&s->wanted, memory_order_acquire);

	sw_reserve_turn(&s->daemon->reserve, s->daemon);
	if (wanted == SW_SERVE_RUN)
		return 0;
	atomic_store(&s->open_chunks, sw_server_open_chunks(&s->engine));
	atomic_store(&s->is_quiet, !s->engine.node.is_busy(&s->engine.node));
	if (s->done == wanted)
		return 0;
	s->done = wanted;
	if (wanted == SW_SERVE_FINISH)
		sw_server_stop(&s->engine);
	else
		sw_server_fail_all(&s->engine, "the server stops");
	return 1;
}

void sw_serve_work(struct sw_serve *s)
{
	sw_reserve_work(&s->daemon->reserve);
}

void sw_serve_finish(struct sw_serve *s)
{
	const struct sw_log *log = &s->daemon->log;

	atomic_store(&s->wanted, SW_SERVE_FINISH);
	for (uint32_t ms = 0; ms < FINISH_MS; ms += POLL_MS) {
		sw_daemon_signalled(POLL_MS);
		if (atomic_load(&s->is_quiet) && !atomic_load(&s->open_chunks))
			break;
	}
	if (atomic_load(&s->open_chunks))
		sw_log(log, SW_LOG_WARN,
			"dropped %llu chunks that wait for members",
			(unsigned long long)atomic_load(&s->open_chunks));
	else
		sw_log(log, SW_LOG_INFO,
			"finished: no chunk waits for a member");
	atomic_store(&s->wanted, SW_SERVE_TELL);
	for (uint32_t ms = 0; ms < TELL_MS; ms += POLL_MS)
		sw_daemon_signalled(POLL_MS);
}

void sw_serve_put_stats(const struct sw_serve *s, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	if (prefix)
		sw_daemon_put_engine(&s->engine.stats, prefix, put, out);
	put(out, "open_chunks", sw_server_open_chunks(&s->engine));
	put(out, "memory_used_bytes", s->engine.used_bytes);
	put(out, "memory_quota_bytes", s->engine.quota_bytes);
	put(out, "memory_resident_bytes", sw_memory_resident());
}
