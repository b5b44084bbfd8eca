/* train_crew.c - start the processes of the training and watch over them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/examples/train.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "engine/base/error.h"

/* When one has failed, how long the others may say what they think of it,
 * and how long they may take to end when told so. */
#define GRACE_NS UINT64_C(3000000000)
#define TERM_NS  UINT64_C(2000000000)
#define NEVER    UINT64_MAX

/* The library gives up first: it knows what it waited for. */
#define SILENCE_EXTRA_NS UINT64_C(2000000000)

struct watch {
	struct sw_train_crew *crew;
	pid_t pid; /* of the command */
	sigset_t old_mask;
	int signals;
	int err; /* the first thing that went wrong */
	uint32_t n_running;
	uint32_t n_epochs;  /* that all have told about */
	uint64_t silent_ns; /* deadline for the next message */
	uint64_t end_ns;    /* when to send @end_signal */
	int end_signal;     /* SIGTERM, then SIGKILL */
};

int sw_train_crew_init(
	struct sw_train_crew *crew, const struct sw_train *t, uint32_t n)
{
	*crew = (struct sw_train_crew){.train = t, .n = n};
	crew->children = calloc(n, sizeof(*crew->children));
	if (!crew->children)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct sw_train_child *c = &crew->children[i];

		c->pipe = -1;
		c->epochs = calloc(t->n_epochs, sizeof(*c->epochs));
		if (!c->epochs) {
			sw_train_crew_fini(crew);
			return SW_ENOMEM;
		}
	}
	return 0;
}

void sw_train_crew_fini(struct sw_train_crew *crew)
{
	for (uint32_t i = 0; i < crew->n; i++)
		free(crew->children[i].epochs);
	free(crew->children);
	*crew = (struct sw_train_crew){0};
}

/* "worker 1 (agent /run/a1.sock)" on stderr, and what follows. */
static void name(const struct sw_train_child *c)
{
	if (!c->agent)
		fprintf(stderr, "sumwire train: the reference process: ");
	else if (c->is_joined)
		fprintf(stderr,
			"sumwire train: worker %u (agent %s): ", c->rank,
			c->agent);
	else
		fprintf(stderr,
			"sumwire train: worker of agent %s: ", c->agent);
}

/* Something went wrong: from now on the others have GRACE_NS. */
static void begin_end(struct watch *w, int err, uint64_t grace_ns)
{
	if (!w->err) {
		w->err = err;
		w->end_signal = SIGTERM;
		w->end_ns = sw_now_ns() + grace_ns;
	}
}

static void name_failure(struct watch *w, struct sw_train_child *c)
{
	int status = c->status;

	if (c->is_named)
		return;
	c->is_named = true;
	name(c);
	if (*c->failure)
		fprintf(stderr, "%s\n", c->failure);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "killed by signal %d (%s)\n", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "exited with status %d without a message\n",
			WEXITSTATUS(status));
	begin_end(w, SW_EPEER, GRACE_NS);
}

static void all_told(struct watch *w)
{
	struct sw_train_crew *crew = w->crew;

	for (;;) {
		for (uint32_t i = 0; i < crew->n; i++)
			if (crew->children[i].n_epochs <= w->n_epochs)
				return;
		int err = crew->on_epoch(crew->ctx, w->n_epochs++);

		if (err)
			begin_end(w, err, 0);
	}
}

static uint64_t next_silence(const struct watch *w)
{
	return sw_now_ns() + w->crew->train->timeout_ns + SILENCE_EXTRA_NS;
}

static void heard(
	struct watch *w, struct sw_train_child *c, const struct sw_train_msg *m)
{
	w->silent_ns = next_silence(w);
	switch (m->kind) {
	case SW_TRAIN_JOINED:
		c->is_joined = true;
		c->rank = m->joined.rank;
		c->size = m->joined.size;
		break;
	case SW_TRAIN_EPOCH:
		if (c->n_epochs < w->crew->train->n_epochs)
			c->epochs[c->n_epochs++] = m->epoch;
		all_told(w);
		break;
	case SW_TRAIN_DONE:
		c->is_done = true;
		c->traffic = m->traffic;
		break;
	case SW_TRAIN_FAILED:
		memcpy(c->failure, m->text, sizeof(c->failure) - 1);
		name_failure(w, c);
		break;
	}
}

/* Everything that is in the child's pipe. */
static void listen_to(struct watch *w, struct sw_train_child *c)
{
	struct sw_train_msg m;
	ssize_t n;

	while (c->pipe >= 0) {
		n = read(c->pipe, &m, sizeof(m));
		if (n == (ssize_t)sizeof(m)) {
			heard(w, c, &m);
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n < 0 && errno == EAGAIN) {
			return;
		} else {
			close(c->pipe);
			c->pipe = -1;
		}
	}
}

static void child_ended(struct watch *w, struct sw_train_child *c, int status)
{
	listen_to(w, c);
	if (c->pipe >= 0)
		close(c->pipe);
	c->pipe = -1;
	c->pid = 0;
	c->status = status;
	w->n_running--;
	if (w->end_signal == SIGKILL || w->err == SW_EAGAIN)
		return; /* we did that */
	if (status || !c->is_done)
		name_failure(w, c);
}

static void reap(struct watch *w)
{
	for (uint32_t i = 0; i < w->crew->n; i++) {
		struct sw_train_child *c = &w->crew->children[i];
		int status;

		if (c->pid && waitpid(c->pid, &status, WNOHANG) == c->pid)
			child_ended(w, c, status);
	}
}

static void signals(struct watch *w)
{
	struct signalfd_siginfo s;

	while (read(w->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		if (w->err != SW_EAGAIN)
			fprintf(stderr, "sumwire train: %s: ending all\n",
				strsignal((int)s.ssi_signo));
		begin_end(w, SW_EAGAIN, 0);
	}
	reap(w);
}

static void name_silent(const struct watch *w)
{
	for (uint32_t i = 0; i < w->crew->n; i++) {
		const struct sw_train_child *c = &w->crew->children[i];

		if (!c->pid || c->n_epochs > w->n_epochs)
			continue;
		name(c);
		fprintf(stderr,
			"no message for more than %.0f s, %u epochs done\n",
			(double)w->crew->train->timeout_ns / 1e9, c->n_epochs);
	}
}

static void send_end(struct watch *w)
{
	for (uint32_t i = 0; i < w->crew->n; i++)
		if (w->crew->children[i].pid)
			kill(w->crew->children[i].pid, w->end_signal);
	w->end_ns = w->end_signal == SIGKILL ? NEVER : sw_now_ns() + TERM_NS;
	w->end_signal = SIGKILL;
}

static void deadlines(struct watch *w)
{
	uint64_t now_ns = sw_now_ns();

	if (!w->err && now_ns >= w->silent_ns) {
		name_silent(w);
		begin_end(w, SW_ETIMEDOUT, 0);
	}
	if (w->err && now_ns >= w->end_ns)
		send_end(w);
}

static int poll_ms(const struct watch *w)
{
	uint64_t now_ns = sw_now_ns();
	uint64_t at_ns = w->err ? w->end_ns : w->silent_ns;

	if (at_ns <= now_ns)
		return 0;
	return at_ns - now_ns > 1000000000
		       ? 1000
		       : (int)((at_ns - now_ns) / 1000000) + 1;
}

static void wait_for_all(struct watch *w, struct pollfd *polls)
{
	struct sw_train_crew *crew = w->crew;

	while (w->n_running) {
		for (uint32_t i = 0; i < crew->n; i++)
			polls[i] = (struct pollfd){
				crew->children[i].pipe, POLLIN, 0};
		polls[crew->n] = (struct pollfd){w->signals, POLLIN, 0};
		poll(polls, crew->n + 1, poll_ms(w));
		for (uint32_t i = 0; i < crew->n; i++)
			listen_to(w, &crew->children[i]);
		signals(w);
		deadlines(w);
	}
}

/* In the child: nothing of the command's but the pipe, and no life after it. */
static _Noreturn void be_child(
	const struct watch *w, uint32_t i, uint32_t size, int pipe)
{
	const struct sw_train_crew *crew = w->crew;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != w->pid)
		_exit(1);
	close(w->signals);
	for (uint32_t j = 0; j < i; j++)
		if (crew->children[j].pipe >= 0)
			close(crew->children[j].pipe);
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
	sw_train_worker(crew->train, crew->children[i].agent, size, pipe);
}

static int start(struct watch *w, uint32_t i, uint32_t size)
{
	struct sw_train_child *c = &w->crew->children[i];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return SW_EIO;
	fflush(NULL);
	c->pid = fork();
	if (!c->pid) {
		close(ends[0]);
		be_child(w, i, size, ends[1]);
	}
	close(ends[1]);
	if (c->pid < 0) {
		c->pid = 0;
		close(ends[0]);
		return SW_EIO;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	c->pipe = ends[0];
	w->n_running++;
	return 0;
}

static int open_signals(struct watch *w)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &w->old_mask);
	w->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return w->signals < 0 ? SW_EIO : 0;
}

int sw_train_crew_run(struct sw_train_crew *crew, uint32_t size)
{
	struct watch w = {.crew = crew, .pid = getpid(), .end_ns = NEVER};
	struct pollfd *polls = calloc(crew->n + 1, sizeof(*polls));
	int err = polls ? open_signals(&w) : SW_ENOMEM;

	w.silent_ns = next_silence(&w);
	for (uint32_t i = 0; i < crew->n && !err; i++)
		err = start(&w, i, size);
	if (err) {
		fprintf(stderr, "sumwire train: cannot start a process: %s\n",
			strerror(errno));
		begin_end(&w, err, 0);
	}
	if (polls)
		wait_for_all(&w, polls);
	free(polls);
	if (polls) {
		close(w.signals);
		sigprocmask(SIG_SETMASK, &w.old_mask, NULL);
	}
	return w.err;
}
