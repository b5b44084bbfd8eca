/* run_proc.c - sumwire run: how one process begins and ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/error.h"

/* The pipes of a process that is about to begin: its stdout, its stderr, and
 * one that tells why it could not be executed. */
struct pipes {
	int ends[3][2];
};

static void set_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

/* Where the library is that came with this command, for programs that load it,
 * as those in Python do. */
static void library_env_set(void)
{
	static const char *const folders[] = {"../pmd/client", SW_LIBDIR};
	char exe[PATH_MAX] = "", path[2 * PATH_MAX];

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		bool is_absolute = folders[i][0] == '/';

		snprintf(path, sizeof(path), "%.*s%s/libsumwire.so.0",
			is_absolute ? 0 : (int)(strrchr(exe, '/') + 1 - exe),
			exe, folders[i]);
		if (!access(path, R_OK))
			setenv("SUMWIRE_LIBRARY", path, 0); /* not the user's */
	}
}

/* What a rank finds in its environment: ours, and what programs made for
 * torchrun look for.  All ranks are on this machine. */
static void rank_env_set(const struct sw_run *r, uint32_t rank)
{
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{"SUMWIRE_RANK", rank},
		{"SUMWIRE_SIZE", r->n_ranks},
		{"SUMWIRE_LOCAL_RANK", rank},
		{"SUMWIRE_LOCAL_SIZE", r->n_ranks},
		{"RANK", rank},
		{"WORLD_SIZE", r->n_ranks},
		{"LOCAL_RANK", rank},
		{"LOCAL_WORLD_SIZE", r->n_ranks},
	};
	char agent[SW_NET_PATH_BYTES];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		set_number(numbers[i].name, numbers[i].value);
	sw_net_agent(&r->net, rank / r->net.n_local, agent);
	setenv("SUMWIRE_AGENT", agent, 1);
	setenv("SUMWIRE_LAUNCHER", "run", 1); /* whoever has started us */
	library_env_set();
	if (getenv("MASTER_ADDR") || getenv("MASTER_PORT"))
		return; /* the user has chosen */
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	set_number("MASTER_PORT", (uint32_t)r->port);
}

/* In the child.  Returns only if it cannot be executed. */
static void become(const struct sw_run *r, uint32_t i)
{
	const struct sw_run_proc *p = &r->procs[i];
	sigset_t mask = r->old_mask;
	char conf[SW_NET_PATH_BYTES];

	/* A daemon may clean up, whatever becomes of us. */
	prctl(PR_SET_PDEATHSIG, p->is_rank ? SIGKILL : SIGTERM);
	if (getppid() != r->pid)
		_exit(1);
	signal(SIGPIPE, SIG_DFL);
	if (!p->is_rank) /* it may come before a daemon is ready for it */
		sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (p->is_rank) {
		rank_env_set(r, i - 1 - r->net.n_agents);
		execvp(r->command[0], r->command);
		return;
	}
	setenv("SUMWIRE_LAUNCHER", "none", 1);
	sw_net_conf(&r->net, i, conf);
	execl("/proc/self/exe", "sumwire", sw_net_role(i), "--config", conf,
		(char *)NULL);
}

static _Noreturn void child(
	const struct sw_run *r, uint32_t i, const struct pipes *pipes)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err;

	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(pipes->ends[0][1], STDOUT_FILENO);
	dup2(pipes->ends[1][1], STDERR_FILENO);
	become(r, i);
	err = errno;
	while (write(pipes->ends[2][1], &err, sizeof(err)) < 0 &&
		errno == EINTR)
		;
	_exit(127);
}

static int pipes_open(struct pipes *pipes)
{
	for (int i = 0; i < 3; i++)
		if (pipe2(pipes->ends[i], O_CLOEXEC)) {
			while (i--) {
				close(pipes->ends[i][0]);
				close(pipes->ends[i][1]);
			}
			return SW_EIO;
		}
	return 0;
}

/* Waits until the child is another program; 0, or its errno. */
static int await_exec(int fd)
{
	int err = 0;

	while (read(fd, &err, sizeof(err)) < 0 && errno == EINTR)
		;
	close(fd);
	return err;
}

/* "rank 1" and "[1] ", "agent 1" and "[agent 1] ". */
static void name_set(struct sw_run *r, uint32_t i)
{
	struct sw_run_proc *p = &r->procs[i];
	char who[20] = "server";

	p->is_rank = i > r->net.n_agents;
	if (p->is_rank)
		snprintf(who, sizeof(who), "rank %u", i - 1 - r->net.n_agents);
	else if (i != SW_NET_SERVER)
		snprintf(who, sizeof(who), "agent %u", i - 1);
	memcpy(p->name, who, sizeof(p->name));
	if (!r->has_no_tags)
		snprintf(p->tag, sizeof(p->tag), "[%s] ",
			p->is_rank ? who + strlen("rank ") : who);
}

static int cannot_start(const struct sw_run *r, struct sw_run_proc *p, int err)
{
	fprintf(stderr, "sumwire run: cannot start %s%s%s: %s\n",
		p->is_rank ? r->command[0] : p->name, p->is_rank ? " as " : "",
		p->is_rank ? p->name : "", strerror(err));
	return SW_EIO;
}

int sw_run_start(struct sw_run *r, uint32_t i)
{
	struct sw_run_proc *p = &r->procs[i];
	struct pipes pipes;
	int err;

	name_set(r, i);
	if (pipes_open(&pipes))
		return cannot_start(r, p, errno);
	fflush(NULL);
	p->pid = fork();
	if (!p->pid)
		child(r, i, &pipes);
	err = errno;
	for (int k = 0; k < 3; k++)
		close(pipes.ends[k][1]);
	if (p->pid > 0) {
		setpgid(p->pid, p->pid); /* whoever is first */
		err = await_exec(pipes.ends[2][0]);
		if (err)
			waitpid(p->pid, NULL, 0);
		p->pid = err ? 0 : p->pid;
	} else {
		p->pid = 0;
		close(pipes.ends[2][0]);
	}
	sw_lines_init(&p->lines[0], pipes.ends[0][0],
		p->is_rank ? stdout : stderr, p->tag);
	sw_lines_init(&p->lines[1], pipes.ends[1][0], stderr, p->tag);
	return err ? cannot_start(r, p, err) : 0;
}

static void describe(struct sw_run_proc *p, const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED) {
		p->code = info->si_status;
		snprintf(p->how, sizeof(p->how), "ended with exit code %d",
			p->code);
		return;
	}
	p->code = SW_RUN_SIGNALLED + info->si_status;
	snprintf(p->how, sizeof(p->how), "was killed by signal %d (%s)",
		info->si_status, strsignal(info->si_status));
}

bool sw_run_reap(struct sw_run_proc *p)
{
	siginfo_t info = {0};

	if (!p->pid ||
		waitid(P_PID, (id_t)p->pid, &info,
			WEXITED | WNOHANG | WNOWAIT) ||
		!info.si_pid)
		return false;
	describe(p, &info);
	/* While the leader is not reaped, its group's number is not given to
	 * others. */
	kill(-p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
	for (int i = 0; i < 2; i++) {
		(void)sw_lines_move(&p->lines[i]);
		sw_lines_fini(&p->lines[i]);
	}
	return true;
}

void sw_run_signal(const struct sw_run_proc *p, int number)
{
	if (p->pid)
		kill(-p->pid, number);
}
