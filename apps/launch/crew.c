/* crew.c - processes side by side: turns, signals, the end of all.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/crew.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/cli/signals.h"
#include "apps/launch/proc.h"
#include "engine/base/error.h"

#define MS    UINT64_C(1000000)
#define NEVER UINT64_MAX

enum {
	TERM_MS = 5000,  /* wait between SIGTERM and SIGKILL */
	STOP_MS = 20000, /* wait for daemons to end after SIGTERM */
	POLL_MS = 1000,
};

/* The signals that the crew takes: SIGCHLD, and the signals for its owner.
 * sw_crew_open adds SIGHUP. */
static const int taken[] = {
	SIGCHLD, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

int sw_crew_open(struct sw_crew *c)
{
	sigset_t set;

	c->pid = getpid();
	c->end_ns = NEVER;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&set, taken[i]);
	sw_hangup_add(&set);
	c->old_sigpipe = signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, &c->old_mask);
	c->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (c->signals >= 0)
		return 0;
	fprintf(stderr, "%s: cannot start: signalfd4: %s\n", c->who,
		strerror(errno));
	return SW_EIO;
}

/* Discard the signals that arrived after the last turn: the end answers
 * them. */
static void drain(struct sw_crew *c)
{
	struct signalfd_siginfo s;

	while (read(c->signals, &s, sizeof(s)) == (ssize_t)sizeof(s))
		;
	close(c->signals);
}

void sw_crew_close(struct sw_crew *c)
{
	if (c->signals >= 0)
		drain(c);
	sigprocmask(SIG_SETMASK, &c->old_mask, NULL);
	signal(SIGPIPE, c->old_sigpipe);
}

int sw_crew_start(struct sw_crew *c)
{
	return sw_proc_start(c, c->n++);
}

uint32_t sw_crew_running(const struct sw_crew *c, bool is_daemon)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += c->procs[i].pid && c->procs[i].is_daemon == is_daemon;
	return n;
}

void sw_crew_signal(struct sw_crew *c, bool is_daemon, int number)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->procs[i].pid && c->procs[i].is_daemon == is_daemon)
			sw_proc_signal(&c->procs[i], number);
}

void sw_crew_tell(struct sw_crew *c, bool is_daemon)
{
	for (uint32_t i = 0; i < c->n; i++)
		c->procs[i].is_stopping |= c->procs[i].is_daemon == is_daemon;
}

/* --- a turn --- */

static int lines_take(struct sw_crew *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->n; i++)
		for (int k = 0; k < 2; k++)
			err |= sw_lines_move(&c->procs[i].lines[k]);
	return err ? SW_EIO : 0;
}

static void signals_take(struct sw_crew *c)
{
	struct signalfd_siginfo s;

	while (read(c->signals, &s, sizeof(s)) == (ssize_t)sizeof(s))
		if (s.ssi_signo != SIGCHLD)
			c->signalled(c->ctx, (int)s.ssi_signo);
	for (uint32_t i = 0; i < c->n; i++)
		if (sw_proc_reap(&c->procs[i]))
			c->ended(c->ctx, i);
}

static int ms_until_end(const struct sw_crew *c, uint32_t max_ms)
{
	uint64_t now = sw_now_ns();

	if (c->end_ns <= now)
		return 0;
	if ((c->end_ns - now) / MS < max_ms)
		return (int)((c->end_ns - now) / MS) + 1;
	return (int)max_ms;
}

int sw_crew_turn(struct sw_crew *c, uint32_t max_ms)
{
	struct pollfd polls[3 * SW_CREW_MAX + 1];
	uint32_t n = 0;
	int err;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct sw_proc *p = &c->procs[i];

		polls[n++] = (struct pollfd){p->lines[0].fd, POLLIN, 0};
		polls[n++] = (struct pollfd){p->lines[1].fd, POLLIN, 0};
		polls[n++] = (struct pollfd){p->pipe, POLLIN, 0};
	}
	polls[n++] = (struct pollfd){c->signals, POLLIN, 0};
	poll(polls, n, ms_until_end(c, max_ms));
	err = lines_take(c);
	signals_take(c);
	return err;
}

/* --- the end --- */

bool sw_crew_end(struct sw_crew *c, uint64_t grace_ns)
{
	if (c->end_signal)
		return false;
	c->end_ns = sw_now_ns() + grace_ns;
	c->end_signal = SIGTERM;
	c->is_hurried = !grace_ns;
	return true;
}

/* Log each process that still runs, and the signal that it gets.  SIGTERM
 * without grace time is not logged. */
void sw_crew_press(struct sw_crew *c)
{
	bool is_term = c->end_signal == SIGTERM;

	if (!c->end_signal || sw_now_ns() < c->end_ns)
		return;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct sw_proc *p = &c->procs[i];

		if (p->pid && !p->is_daemon && !(is_term && c->is_hurried))
			fprintf(stderr, "%s: %s still runs, sending %s\n",
				c->who, p->name,
				is_term ? "SIGTERM" : "SIGKILL");
	}
	sw_crew_tell(c, false);
	sw_crew_signal(c, false, c->end_signal);
	c->end_ns = is_term ? sw_now_ns() + TERM_MS * MS : NEVER;
	c->end_signal = SIGKILL;
}

void sw_crew_stop(struct sw_crew *c)
{
	c->end_ns = sw_now_ns() + STOP_MS * MS;
	sw_crew_tell(c, true);
	sw_crew_signal(c, true, SIGQUIT); /* daemons do not drain */
	while (sw_crew_running(c, true)) {
		(void)sw_crew_turn(c, POLL_MS);
		if (sw_now_ns() < c->end_ns)
			continue;
		fprintf(stderr, "%s: daemons still run after %d s: SIGKILL\n",
			c->who, STOP_MS / 1000);
		sw_crew_signal(c, true, SIGKILL);
		c->end_ns = NEVER;
	}
}
