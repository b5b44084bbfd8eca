/* bench_loopback.c - a small job on this machine, for one benchmark.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/hangup.h"
#include "conf/value.h"
#include "engine/base/error.h"
#include "engine/base/log.h"

enum { START_MS = 20000, STOP_MS = 15000, STEP_MS = 10 };

static const char *name_of(const struct bench_loopback *l, uint32_t i)
{
	static const char *const names[2][BENCH_DAEMONS] = {
		{"server", "agent"}, {"node0", "node1"}};

	return names[l->is_colocated][i];
}

static bool is_agent(const struct bench_loopback *l, uint32_t i)
{
	return l->is_colocated || i;
}

static void path_of(const struct bench_loopback *l, uint32_t i,
	const char *suffix, char out[BENCH_DIR + 32])
{
	snprintf(out, BENCH_DIR + 32, "%s/%s.%s", l->scratch.path,
		name_of(l, i), suffix);
}

const char *sw_bench_cpus(uint32_t i, uint32_t n, char out[BENCH_CPUS])
{
	uint32_t first = n == 1 ? i : 0, seen = 0;
	cpu_set_t set;
	size_t at = 0;

	snprintf(out, BENCH_CPUS, "auto");
	if (sched_getaffinity(0, sizeof(set), &set) ||
		(uint32_t)CPU_COUNT(&set) < first + n || CPU_COUNT(&set) < 2)
		return out;
	for (int cpu = 0; cpu < CPU_SETSIZE && seen < first + n; cpu++)
		if (CPU_ISSET(cpu, &set) && seen++ >= first)
			at += (size_t)snprintf(out + at, BENCH_CPUS - at,
				"%s%d", at ? "," : "", cpu);
	return out;
}

static const char *role_of(const struct bench_loopback *l, uint32_t i)
{
	return l->is_colocated ? "both" : is_agent(l, i) ? "agent" : "server";
}

/* Agents: where processes attach, and who sums. */
static void write_agent(const struct bench_loopback *l,
	const struct bench_options *o, uint32_t i, FILE *f)
{
	uint32_t n_servers = l->is_colocated ? BENCH_DAEMONS : 1;
	char ip[SW_IP_TEXT];

	if (!is_agent(l, i))
		return;
	fprintf(f,
		"[agent]\nsocket = %s/%s.sock\nlocal_ranks = %u\nlcores = %u\n"
		"quota = 64GiB\n",
		l->scratch.path, name_of(l, i), o->local_ranks, o->n_lcores);
	for (uint32_t k = 0; k < n_servers; k++)
		fprintf(f, "[server %s]\nip = %s\nport = a\n", name_of(l, k),
			sw_ip_text(o->net + 1 + k, ip));
}

const char *sw_bench_device(const struct bench_options *o, uint32_t i)
{
	static const char *const names[] = {"sw0", "sw1", "sw2", "sw3"};

	return i < o->devices.n ? o->devices.items[i] : names[i];
}

/* Where the port of side @i leads. */
static void write_link(const struct bench_loopback *l,
	const struct bench_options *o, uint32_t i, FILE *f)
{
	fprintf(f, "[port a]\ntype = %s\n", o->port);
	if (!strcmp(o->port, "udp"))
		return;
	if (strcmp(o->port, "memif"))
		fprintf(f, "device = %s\n", sw_bench_device(o, i));
	else
		fprintf(f, "socket = %s/link\nside = %s\nqueues = %u\n",
			l->scratch.path, i ? "connect" : "listen", o->n_lcores);
}

static int write_conf(const struct bench_loopback *l,
	const struct bench_options *o, uint32_t i)
{
	const char *faults = o->faults ? o->faults : "0%";
	char path[BENCH_DIR + 32], cpus[BENCH_CPUS], rate[32], ip[SW_IP_TEXT];
	uint64_t bit_s = o->rate_bit_s;
	FILE *f;

	if (i == 0 && o->is_results)
		bit_s /= 2;
	sw_value_format(bit_s, SW_UNIT_RATE, rate, sizeof(rate));

	path_of(l, i, "ini", path);
	f = fopen(path, "w");
	if (!f)
		return SW_EIO;
	fprintf(f,
		"[node]\nrole = %s\nname = %s\nruntime_dir = %s\n"
		"[job]\nworkers = %u\nrank = %u\npolicy = %s\ncrc = %s\n"
		"server_lcores = %u\n[log]\nlevel = warn\n"
		"[stats]\nsocket = %s/%s.stats\n[serve]\nlcores = %u\n"
		"[lcore]\ncpus = %s\n",
		role_of(l, i), name_of(l, i), l->scratch.path, l->n_agents,
		l->is_colocated ? i : 0, o->policy,
		o->has_no_crc ? "no" : "yes", o->n_lcores, l->scratch.path,
		name_of(l, i), o->n_lcores,
		sw_bench_cpus(i, o->n_lcores, cpus));
	write_link(l, o, i, f);
	fprintf(f,
		"ip = %s/24\nring = %u\nburst = %u\nrate = "
		"%s\nfault_loss = %s\n"
		"fault_dup = %s\nfault_reorder = %s\n",
		sw_ip_text(o->net + 1 + i, ip), o->ring, o->burst, rate, faults,
		faults, faults);
	write_agent(l, o, i, f);
	return fclose(f) ? SW_EIO : 0;
}

static pid_t start(const struct bench_loopback *l, uint32_t i)
{
	char conf[BENCH_DIR + 32], log[BENCH_DIR + 32];
	pid_t pid;
	int fd;

	path_of(l, i, "ini", conf);
	path_of(l, i, "log", log);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* whatever becomes of us */
	setpgid(0, 0); /* a terminal's signals are not for it */
	sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
	execl("/proc/self/exe", "sumwire", is_agent(l, i) ? "agent" : "server",
		"--config", conf, (char *)NULL);
	_exit(127);
}

static void show_log(const struct bench_loopback *l, uint32_t i)
{
	char path[BENCH_DIR + 32], line[512];
	FILE *f;

	path_of(l, i, "log", path);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		fprintf(stderr, "%s: %s", name_of(l, i), line);
	if (f)
		fclose(f);
}

/* Those that end a program, and what ends a nap. */
static void signals_list(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sw_hangup_add(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

/* Returns the signal that came, as does each one's sender want us to end; 0:
 * none. */
static int nap(struct bench_loopback *l)
{
	struct timespec t = {.tv_nsec = STEP_MS * 1000000L};
	sigset_t set;
	int number;

	signals_list(&set);
	number = sigtimedwait(&set, NULL, &t);
	if (number <= 0 || number == SIGCHLD)
		return 0;
	l->number = number;
	return number;
}

/* Has daemon @i ended?  Then its log is shown, if it did not end well. */
static bool has_ended(struct bench_loopback *l, uint32_t i, int *status)
{
	if (l->pids[i] <= 0 || waitpid(l->pids[i], status, WNOHANG) == 0)
		return false;
	l->pids[i] = 0;
	return true;
}

static int open_folder(struct bench_loopback *l, struct bench_options *o)
{
	char path[BENCH_DIR + 32];
	sigset_t set;

	setenv("SUMWIRE_LAUNCHER", "none", 1); /* ranks are in the files */
	*l = (struct bench_loopback){.is_colocated = o->is_colocated};
	signals_list(&set);
	sigprocmask(SIG_BLOCK, &set, &l->old_mask);
	if (sw_scratch_open(&l->scratch, "/tmp", "sumwire-bench")) {
		fprintf(stderr, "sumwire bench: a folder in /tmp: %s\n",
			strerror(errno));
		return SW_EIO;
	}
	o->folder = l->scratch.path;
	for (uint32_t i = 0; i < BENCH_DAEMONS; i++) {
		path_of(l, i, "sock", path);
		if (is_agent(l, i))
			strcpy(l->agents[l->n_agents++], path);
	}
	return 0;
}

static bool are_there(const struct bench_loopback *l)
{
	struct stat st;

	for (uint32_t i = 0; i < l->n_agents; i++)
		if (stat(l->agents[i], &st))
			return false;
	return true;
}

int sw_bench_loopback_start(struct bench_loopback *l, struct bench_options *o)
{
	int status, err = open_folder(l, o);

	if (err)
		return err;
	for (uint32_t i = 0; i < BENCH_DAEMONS && !err; i++) {
		err = write_conf(l, o, i);
		l->pids[i] = err ? 0 : start(l, i);
	}
	for (uint32_t ms = 0; !err && !are_there(l); ms += STEP_MS) {
		nap(l);
		if (l->number)
			return SW_EAGAIN;
		if (ms >= START_MS)
			err = SW_ETIMEDOUT;
		for (uint32_t i = 0; i < BENCH_DAEMONS; i++)
			if (has_ended(l, i, &status)) {
				show_log(l, i);
				err = SW_EIO;
			}
	}
	if (err)
		fprintf(stderr,
			"sumwire bench: the loopback did not start: "
			"%s\n",
			sw_error_text(err));
	return err;
}

static int stop_one(struct bench_loopback *l, uint32_t i)
{
	int status = 0;

	if (l->pids[i] <= 0)
		return 0;
	kill(l->pids[i], SIGTERM);
	for (uint32_t ms = 0; !has_ended(l, i, &status); ms += STEP_MS) {
		if (nap(l)) /* shortens its stop, too */
			kill(l->pids[i], SIGTERM);
		if (ms >= STOP_MS)
			kill(l->pids[i], SIGKILL);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	show_log(l, i);
	fprintf(stderr, "sumwire bench: the %s ended with an error\n",
		name_of(l, i));
	return SW_EIO;
}

int sw_bench_loopback_work(
	struct bench_loopback *l, int (*work)(void *ctx), void *ctx)
{
	int status, number, err;
	sigset_t set;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
		err = work(ctx);
		fflush(stdout);
		_exit(err ? 1 : 0);
	}
	if (pid < 0) {
		fprintf(stderr, "sumwire bench: cannot start a process: %s\n",
			strerror(errno));
		return SW_EIO;
	}
	signals_list(&set);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		number = sigwaitinfo(&set, NULL);
		if (number <= 0 || number == SIGCHLD)
			continue;
		l->number = number;
		kill(pid, SIGKILL);
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : SW_EPEER;
}

int sw_bench_loopback_stop(struct bench_loopback *l, int code)
{
	for (uint32_t i = BENCH_DAEMONS; i-- > 0;) /* the agent first */
		if (stop_one(l, i))
			code = 1;
	sw_scratch_close(&l->scratch);
	return l->number ? 128 + l->number : code;
}
