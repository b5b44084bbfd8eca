/* run_all.c - start daemons and ranks, pass signals on, wait, stop everything.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/launch/crew.h"
#include "apps/launch/rank_env.h"
#include "apps/launch/run.h"
#include "engine/base/error.h"
#include "pmd/host/tcp_port.h"

#define S UINT64_C(1000000000)

enum {
	PROCS_MAX = SW_NET_DAEMONS_MAX + SW_RUN_RANKS_MAX,
	START_S = 60, /* wait for the agents to listen */
	FAILED = 1,   /* exit code if no rank supplies one */
	START_POLL_MS = 20,
	POLL_MS = 1000,
};

_Static_assert((int)PROCS_MAX <= SW_CREW_MAX, "room for all processes");
_Static_assert((int)SW_RUN_SIGNALLED == SW_CREW_SIGNALLED, "one meaning");

/* A job. procs has the daemons first, as in net.h, then the ranks. */
struct run {
	struct sw_run *r;
	struct sw_crew crew;
	struct sw_proc procs[PROCS_MAX];
	uint32_t n_daemons;
	char sumwire[PATH_MAX]; /* program of the daemons */
	int port;               /* for MASTER_PORT */
	int code;               /* exit code of the first failure; 0: none */
	bool is_stopping;
};

/* End the job after a failure: the remaining ranks have @grace_ns. */
static void begin_end(struct run *x, int code, uint64_t grace_ns)
{
	if (sw_crew_end(&x->crew, grace_ns) && !x->code)
		x->code = code;
}

/* --- the programs --- */

/* Find the daemons' program: the sumwire beside this program. */
static int find_sumwire(char out[PATH_MAX])
{
	static const char name[] = "sumwire";
	char *slash;
	ssize_t n = readlink(
		"/proc/self/exe", out, PATH_MAX - 1 - (int)sizeof(name));

	if (n < 0)
		return SW_EIO;
	out[n] = '\0';
	slash = strrchr(out, '/');
	memcpy(slash + 1, name, sizeof(name));
	return 0;
}

static int be(void *ctx, uint32_t i, int pipe)
{
	const struct run *x = ctx;
	const struct sw_run *r = x->r;
	char conf[SW_NET_PATH_BYTES];

	(void)pipe;
	if (i < x->n_daemons) {
		setenv("SUMWIRE_LAUNCHER", "none", 1);
		sw_net_conf(&r->net, i, conf);
		return execl(x->sumwire, "sumwire", sw_net_role(&r->net, i),
			"--config", conf, (char *)NULL);
	}
	if (r->work)
		return r->work(r->ctx, &r->net);
	sw_rank_env_set(r, i - x->n_daemons, x->port);
	return execvp(r->command[0], r->command);
}

/* Set a process's name and tag: "rank 1" and "[1] ", "agent 1" and "[agent 1]
 * ". */
static void describe(struct run *x, uint32_t i)
{
	const struct sw_run *r = x->r;
	struct sw_proc *p = &x->procs[i];
	char daemon[SW_NET_NAME_BYTES];

	p->is_daemon = i < x->n_daemons;
	p->is_fork = !p->is_daemon && r->work;
	if (p->is_daemon) {
		p->program = x->sumwire;
		sw_net_name(&r->net, i, daemon);
		memcpy(p->name, daemon, sizeof(daemon));
		snprintf(p->tag, sizeof(p->tag), "[%s] ", daemon);
	} else if (r->work) {
		snprintf(p->name, sizeof(p->name), "%s", r->work_name);
	} else {
		p->program = r->command[0];
		snprintf(p->name, sizeof(p->name), "rank %u", i - x->n_daemons);
		snprintf(p->tag, sizeof(p->tag), "[%u] ", i - x->n_daemons);
	}
	if (r->has_no_tags)
		p->tag[0] = '\0';
}

/* --- events --- */

static void on_end(void *ctx, uint32_t i)
{
	struct run *x = ctx;
	const struct sw_run *r = x->r;
	const struct sw_proc *p = &x->procs[i];

	if (p->is_stopping ? !p->is_daemon || !p->code
			   : !p->is_daemon && !p->code)
		return;
	fprintf(stderr, "%s: %s %s\n", r->who, p->name, p->how);
	if (!p->is_daemon && r->is_async) {
		if (!x->code)
			x->code = p->code;
		return;
	}
	if (sw_crew_running(&x->crew, false) && !x->crew.end_signal)
		fprintf(stderr, "%s: the other ranks have %.0f s to exit\n",
			r->who, (double)r->grace_ns / 1e9);
	begin_end(x, p->is_daemon ? FAILED : p->code, r->grace_ns);
	/* A rank that a signal has ended is the cause, even if other ranks that
	 * failed because of it were reaped first. */
	if (!p->is_daemon && !p->is_stopping && p->code > SW_RUN_SIGNALLED &&
		x->code && x->code < SW_RUN_SIGNALLED)
		x->code = p->code;
}

static void on_signal(void *ctx, int number)
{
	struct run *x = ctx;
	struct sw_run *r = x->r;

	sw_crew_signal(&x->crew, false, number);
	if (number == SIGUSR1 || number == SIGUSR2 || number == SIGALRM)
		return;
	r->number = number;
	/* daemons already have SIGQUIT; SIGINT is their second signal */
	if (x->is_stopping) {
		if (!x->code)
			x->code = SW_RUN_SIGNALLED + number;
		sw_crew_signal(&x->crew, true, SIGINT);
		return;
	}
	if (x->crew.end_signal)
		return;
	fprintf(stderr, "%s: %s: the ranks have %.0f s to exit\n", r->who,
		strsignal(number), (double)r->grace_ns / 1e9);
	sw_crew_tell(&x->crew, false);
	begin_end(x, SW_RUN_SIGNALLED + number, r->grace_ns);
}

static void turn(struct run *x, uint32_t max_ms)
{
	if (!sw_crew_turn(&x->crew, max_ms) || x->crew.end_signal)
		return;
	fprintf(stderr, "%s: cannot write the output: ending\n", x->r->who);
	begin_end(x, FAILED, 0);
}

/* --- from beginning to end --- */

static int start(struct run *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		describe(x, x->crew.n);
		if (sw_crew_start(&x->crew)) {
			begin_end(x, FAILED, 0);
			return SW_EIO;
		}
	}
	return 0;
}

static void start_daemons(struct run *x)
{
	uint64_t until_ns = sw_now_ns() + START_S * S;
	int missing = 0;

	if (start(x, x->n_daemons))
		return;
	while (!x->code && (missing = sw_net_missing(&x->r->net)) >= 0 &&
		sw_now_ns() < until_ns)
		turn(x, START_POLL_MS);
	if (x->code || missing < 0)
		return;
	fprintf(stderr, "%s: agent %d does not listen after %d s\n", x->r->who,
		missing, START_S);
	begin_end(x, FAILED, 0);
}

static void run_ranks(struct run *x)
{
	if (!x->code)
		start(x, x->r->n_ranks);
	while (sw_crew_running(&x->crew, false)) {
		turn(x, POLL_MS);
		sw_crew_press(&x->crew);
	}
}

static int run_open(struct run *x, struct sw_run *r)
{
	*x = (struct run){.r = r, .n_daemons = sw_net_daemons(&r->net)};
	x->crew = (struct sw_crew){.who = r->who,
		.procs = x->procs,
		.be = be,
		.ended = on_end,
		.signalled = on_signal,
		.ctx = x};
	x->port = sw_tcp_port_free();
	if (x->port >= 0 && !find_sumwire(x->sumwire))
		return sw_crew_open(&x->crew);
	fprintf(stderr, "%s: cannot start: %s\n", r->who, strerror(errno));
	return SW_EIO;
}

int sw_run_all(struct sw_run *r)
{
	struct run x;

	if (run_open(&x, r))
		return FAILED;
	if (sw_net_open(&r->net)) {
		x.code = FAILED;
	} else {
		start_daemons(&x);
		run_ranks(&x);
		x.is_stopping = true;
		sw_crew_stop(&x.crew);
		sw_net_close(&r->net);
	}
	sw_crew_close(&x.crew);
	return x.code;
}
