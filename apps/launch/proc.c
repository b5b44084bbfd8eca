/* proc.c - start and end one process of a crew.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/signals.h"
#include "engine/base/error.h"

/* Pipes of a process that is about to start: its stdout, its stderr, the error
 * of a failed exec, and its own pipe if it has one. */
struct pipes {
	int ends[4][2];
};

static void daemon_signals(sigset_t *set)
{
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sw_signals_ignored(set);
}

/* Prepare the new process to run @p.  Called in the child. */
static void adopt(const struct sw_crew *c, const struct sw_proc *p)
{
	sigset_t mask = c->old_mask;

	/* If the launcher dies, the ranks die with it, and the daemons, which
	 * have no ranks left, clean up and end. */
	prctl(PR_SET_PDEATHSIG, p->is_daemon ? SIGTERM : SIGKILL);
	if (getppid() != c->pid)
		_exit(1);
	signal(SIGPIPE, SIG_DFL);
	if (p->is_daemon) /* they may arrive before the daemon handles them */
		daemon_signals(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

static _Noreturn void child(
	const struct sw_crew *c, uint32_t i, const struct pipes *pipes)
{
	const struct sw_proc *p = &c->procs[i];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err;

	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(pipes->ends[0][1], STDOUT_FILENO);
	dup2(pipes->ends[1][1], STDERR_FILENO);
	adopt(c, p);
	if (p->is_fork) {
		close(c->signals);
		close(pipes->ends[2][1]); /* no exec will report an error */
		err = c->be(c->ctx, i, pipes->ends[3][1]);
		fflush(NULL);
		_exit(err);
	}
	c->be(c->ctx, i, pipes->ends[3][1]);
	err = errno;
	while (write(pipes->ends[2][1], &err, sizeof(err)) < 0 &&
		errno == EINTR)
		;
	_exit(127);
}

static int pipes_open(struct pipes *pipes)
{
	for (int i = 0; i < 4; i++)
		if (pipe2(pipes->ends[i], O_CLOEXEC)) {
			while (i--) {
				close(pipes->ends[i][0]);
				close(pipes->ends[i][1]);
			}
			return SW_EIO;
		}
	return 0;
}

/* Wait until the child has executed its program.  Returns 0, or the child's
 * errno. */
static int await_exec(int fd)
{
	int err = 0;

	while (read(fd, &err, sizeof(err)) < 0 && errno == EINTR)
		;
	close(fd);
	return err;
}

static int cannot_start(
	const struct sw_crew *c, const struct sw_proc *p, int err)
{
	fprintf(stderr, "%s: cannot start %s%s%s: %s\n", c->who,
		p->program ? p->program : "", p->program ? " as " : "", p->name,
		strerror(err));
	return SW_EIO;
}

/* Keep this process's ends of the pipes. */
static void keep(struct sw_proc *p, const struct pipes *pipes)
{
	for (int k = 0; k < 4; k++)
		close(pipes->ends[k][1]);
	sw_lines_init(&p->lines[0], pipes->ends[0][0],
		p->is_daemon ? stderr : stdout, p->tag);
	sw_lines_init(&p->lines[1], pipes->ends[1][0], stderr, p->tag);
	p->pipe = pipes->ends[3][0];
	fcntl(p->pipe, F_SETFL, O_NONBLOCK);
	if (p->has_pipe)
		return;
	close(p->pipe);
	p->pipe = -1;
}

int sw_proc_start(struct sw_crew *c, uint32_t i)
{
	struct sw_proc *p = &c->procs[i];
	struct pipes pipes;
	int err;

	p->pipe = -1;
	for (int k = 0; k < 2; k++)
		p->lines[k] = (struct sw_lines){.fd = -1, .to = stderr};
	if (pipes_open(&pipes))
		return cannot_start(c, p, errno);
	fflush(NULL);
	p->pid = fork();
	if (!p->pid)
		child(c, i, &pipes);
	err = errno;
	keep(p, &pipes);
	if (p->pid > 0) {
		/* parent and child both call it: either may be first */
		setpgid(p->pid, p->pid);
		err = await_exec(pipes.ends[2][0]);
		if (err)
			waitpid(p->pid, NULL, 0);
		p->pid = err ? 0 : p->pid;
	} else {
		p->pid = 0;
		close(pipes.ends[2][0]);
	}
	return err ? cannot_start(c, p, err) : 0;
}

static void describe(struct sw_proc *p, const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED) {
		p->code = info->si_status;
		snprintf(p->how, sizeof(p->how), "ended with exit code %d",
			p->code);
		return;
	}
	p->code = SW_CREW_SIGNALLED + info->si_status;
	snprintf(p->how, sizeof(p->how), "was killed by signal %d (%s)",
		info->si_status, strsignal(info->si_status));
}

void sw_proc_signal(const struct sw_proc *p, int number)
{
	if (kill(-p->pid, number)) /* a filter may have denied setpgid */
		kill(p->pid, number);
}

bool sw_proc_reap(struct sw_proc *p)
{
	siginfo_t info = {0};

	if (!p->pid ||
		waitid(P_PID, (id_t)p->pid, &info,
			WEXITED | WNOHANG | WNOWAIT) ||
		!info.si_pid)
		return false;
	describe(p, &info);
	/* Until the leader is reaped, the kernel does not reuse the number of
	 * its group. */
	sw_proc_signal(p, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
	for (int i = 0; i < 2; i++) {
		(void)sw_lines_move(&p->lines[i]);
		sw_lines_fini(&p->lines[i]);
	}
	return true;
}
