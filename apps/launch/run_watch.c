/* run_watch.c - sumwire run: start all, pass on, wait, stop all.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/cli/hangup.h"
#include "apps/launch/run.h"
#include "engine/base/error.h"
#include "pmd/host/tcp_port.h"

#define S     UINT64_C(1000000000)
#define NEVER UINT64_MAX

enum {
	START_S = 60, /* for the agents to listen */
	TERM_S = 5,   /* for ranks between SIGTERM and SIGKILL */
	STOP_S = 20,  /* for daemons to end after SIGTERM */
	FAILED = 1,   /* exit code when no rank has a better one */
	START_POLL_MS = 20,
	POLL_MS = 1000,
};

/* Given to the ranks as they come; those that end a program end the run. */
static const int passed_on[] = {
	SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2}; /* and SIGHUP */

static uint32_t n_running(const struct sw_run *r, bool is_rank)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_procs; i++)
		n += r->procs[i].pid && r->procs[i].is_rank == is_rank;
	return n;
}

static void signal_all(struct sw_run *r, bool is_rank, int number)
{
	for (uint32_t i = 0; i < r->n_procs; i++)
		if (r->procs[i].is_rank == is_rank)
			sw_run_signal(&r->procs[i], number);
}

/* Something went wrong: the ranks that are left have @grace_ns to end. */
static void begin_end(struct sw_run *r, int code, uint64_t grace_ns)
{
	if (r->end_signal)
		return;
	if (!r->code)
		r->code = code;
	r->limit_ns = sw_now_ns() + grace_ns;
	r->end_signal = SIGTERM;
}

static void has_ended(struct sw_run *r, struct sw_run_proc *p)
{
	uint32_t n;

	if (p->is_told ? p->is_rank || !p->code : p->is_rank && !p->code)
		return;
	fprintf(stderr, "sumwire run: %s %s\n", p->name, p->how);
	if (p->is_rank && r->is_async) {
		if (!r->code)
			r->code = p->code;
		return;
	}
	n = n_running(r, true);
	if (!r->end_signal && n)
		fprintf(stderr,
			"sumwire run: the other ranks have %.0f s to end\n",
			(double)r->grace_ns / 1e9);
	begin_end(r, p->is_rank ? p->code : FAILED, r->grace_ns);
}

static void reap(struct sw_run *r)
{
	for (uint32_t i = 0; i < r->n_procs; i++)
		if (sw_run_reap(&r->procs[i]))
			has_ended(r, &r->procs[i]);
}

/* They have been told to stop by SIGTERM; this is their second signal. */
static void hurry_daemons(struct sw_run *r, int code)
{
	if (!r->code)
		r->code = code;
	signal_all(r, false, SIGINT);
}

static void pass_on(struct sw_run *r, int number)
{
	signal_all(r, true, number);
	if (number == SIGUSR1 || number == SIGUSR2)
		return;
	if (r->procs[SW_NET_SERVER].is_told) {
		hurry_daemons(r, SW_RUN_SIGNALLED + number);
		return;
	}
	if (r->end_signal)
		return;
	fprintf(stderr, "sumwire run: %s: the ranks have %.0f s to end\n",
		strsignal(number), (double)r->grace_ns / 1e9);
	for (uint32_t i = 0; i < r->n_procs; i++)
		r->procs[i].is_told |= r->procs[i].is_rank;
	begin_end(r, SW_RUN_SIGNALLED + number, r->grace_ns);
}

static void signals_take(struct sw_run *r)
{
	struct signalfd_siginfo s;

	while (read(r->signals, &s, sizeof(s)) == (ssize_t)sizeof(s))
		if (s.ssi_signo != SIGCHLD)
			pass_on(r, (int)s.ssi_signo);
	reap(r);
}

static void lines_take(struct sw_run *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->n_procs; i++)
		for (int k = 0; k < 2; k++)
			err |= sw_lines_move(&r->procs[i].lines[k]);
	if (!err || r->end_signal)
		return;
	fprintf(stderr, "sumwire run: cannot write the output: ending\n");
	begin_end(r, FAILED, 0);
}

/* Sleep until there is output or a signal, at most until the limit. */
static void turn(struct sw_run *r, uint32_t max_ms)
{
	struct pollfd polls[2 * SW_RUN_PROCS_MAX + 1];
	uint64_t now = sw_now_ns(), ms = max_ms;
	uint32_t n = 0;

	if (r->limit_ns <= now)
		ms = 0;
	else if ((r->limit_ns - now) / 1000000 < ms)
		ms = (r->limit_ns - now) / 1000000 + 1;
	for (uint32_t i = 0; i < r->n_procs; i++)
		for (int k = 0; k < 2; k++)
			polls[n++] = (struct pollfd){
				r->procs[i].lines[k].fd, POLLIN, 0};
	polls[n++] = (struct pollfd){r->signals, POLLIN, 0};
	poll(polls, n, (int)ms);
	lines_take(r);
	signals_take(r);
}

static int start(struct sw_run *r, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		r->n_procs = i + 1;
		if (sw_run_start(r, i)) {
			begin_end(r, FAILED, 0);
			return SW_EIO;
		}
	}
	return 0;
}

static void start_daemons(struct sw_run *r)
{
	int missing = 0;

	if (start(r, 0, 1 + r->net.n_agents))
		return;
	r->limit_ns = sw_now_ns() + START_S * S;
	while (!r->code && (missing = sw_net_missing(&r->net)) >= 0 &&
		sw_now_ns() < r->limit_ns)
		turn(r, START_POLL_MS);
	if (!r->code && missing >= 0) {
		fprintf(stderr,
			"sumwire run: agent %d does not listen after %d s\n",
			missing, START_S);
		begin_end(r, FAILED, 0);
	}
	if (!r->code)
		r->limit_ns = NEVER;
}

/* The grace is over: SIGTERM, later SIGKILL. */
static void press(struct sw_run *r)
{
	for (uint32_t i = 0; i < r->n_procs; i++) {
		struct sw_run_proc *p = &r->procs[i];

		if (!p->pid || !p->is_rank)
			continue;
		fprintf(stderr, "sumwire run: %s still runs: %s\n", p->name,
			r->end_signal == SIGTERM ? "SIGTERM" : "SIGKILL");
		p->is_told = true;
	}
	signal_all(r, true, r->end_signal);
	r->limit_ns =
		r->end_signal == SIGTERM ? sw_now_ns() + TERM_S * S : NEVER;
	r->end_signal = SIGKILL;
}

static void run_ranks(struct sw_run *r)
{
	if (!r->code)
		start(r, 1 + r->net.n_agents, r->n_ranks);
	while (n_running(r, true)) {
		turn(r, POLL_MS);
		if (r->end_signal && sw_now_ns() >= r->limit_ns)
			press(r);
	}
}

static void stop_daemons(struct sw_run *r)
{
	r->limit_ns = sw_now_ns() + STOP_S * S;
	for (uint32_t i = 0; i < r->n_procs; i++)
		r->procs[i].is_told = true;
	signal_all(r, false, SIGTERM);
	while (n_running(r, false)) {
		turn(r, POLL_MS);
		if (sw_now_ns() < r->limit_ns)
			continue;
		fprintf(stderr,
			"sumwire run: daemons still run after %d s: SIGKILL\n",
			STOP_S);
		signal_all(r, false, SIGKILL);
		r->limit_ns = NEVER;
	}
}

static int signals_open(struct sw_run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	sw_hangup_add(&set);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return r->signals < 0 ? SW_EIO : 0;
}

int sw_run_all(struct sw_run *r)
{
	r->pid = getpid();
	r->limit_ns = NEVER;
	r->port = sw_tcp_port_free();
	if (r->port < 0 || signals_open(r)) {
		fprintf(stderr, "sumwire run: cannot start: %s\n",
			strerror(errno));
		return FAILED;
	}
	if (sw_net_open(&r->net))
		return FAILED;
	start_daemons(r);
	run_ranks(r);
	stop_daemons(r);
	sw_net_close(&r->net);
	close(r->signals);
	return r->code;
}
