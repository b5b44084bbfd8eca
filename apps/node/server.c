/* server.c - sumwire server: the summation service.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/node/serve.h"

enum { POLL_MS = 20 };

struct server {
	struct sw_daemon daemon;
	struct sw_serve serve;
};

static void fill_stats(void *ctx,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	struct server *s = ctx;
	struct sw_stats sum = {0};

	sw_daemon_add_stats(&s->daemon, &sum);
	sw_serve_add_stats(&s->serve, &sum);
	sw_daemon_put_stats(&s->daemon, &sum, put, out);
	sw_serve_put_stats(&s->serve, put, out);
}

static bool must_end(struct server *s, uint32_t ms)
{
	sw_daemon_await_signal(&s->daemon, ms);
	return sw_daemon_must_end(&s->daemon, sw_serve_is_idle(&s->serve));
}

static void control(struct server *s)
{
	bool is_busy = false;

	while (!must_end(
		s, is_busy ? 0 : sw_trace_wait_ms(&s->daemon, POLL_MS))) {
		sw_stats_serve_poll(s->daemon.stats);
		(void)!sw_about_poll(&s->daemon, &s->serve, NULL);
		sw_trace_poll(&s->daemon);
		sw_daemon_write_lines(&s->daemon);
		sw_daemon_is_alive(&s->daemon);
		is_busy = sw_serve_work(&s->serve);
	}
	sw_daemon_is_ending(&s->daemon);
	sw_log(&s->daemon.log, SW_LOG_INFO,
		"shutting down: draining open requests");
	sw_serve_finish(&s->serve, false);
}

static int run(struct server *s)
{
	struct sw_daemon *d = &s->daemon;
	int err = sw_daemon_serve_stats(d, fill_stats, s), err2;

	if (!err)
		err = sw_daemon_start(d);
	if (!err)
		err = sw_serve_open(&s->serve, d);
	if (err)
		return err;
	sw_serve_start(&s->serve);
	sw_about_open(d);
	err = sw_daemon_launch(d);
	if (!err) {
		sw_log(&d->log, SW_LOG_INFO, "server %s is ready",
			d->conf.node.name);
		sw_daemon_is_ready(d);
		control(s);
	}
	err2 = sw_daemon_join(d);
	return err ? err : err2;
}

int sw_cmd_server(int argc, char **argv)
{
	struct sw_daemon_options o;
	int err = sw_daemon_parse(&o, "server",
		"run a summation server until SIGTERM", argc, argv);
	struct server *s;
	int code;

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	s = calloc(1, sizeof(*s));
	if (!s)
		return 1;
	err = sw_daemon_open(&s->daemon, &o, SW_ROLE_SERVER);
	code = sw_daemon_exit_code(err);
	if (!err)
		code = run(s) ? 1 : 0;
	sw_serve_close(&s->serve);
	sw_daemon_close(&s->daemon);
	free(s);
	return code;
}
