/* replay_loopback.c - run a server, agents and ranks on this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "apps/lab/replay.h"
#include "apps/launch/run.h"
#include "engine/base/error.h"
#include "engine/sched/policy.h"

#define GRACE_NS UINT64_C(15000000000)

enum { ARGS = 24, TEXT = 40 };

/* The command line of a rank: this command again. */
struct command {
	char *argv[ARGS];
	char text[ARGS][TEXT], device[TEXT];
	uint32_t n;
};

static void add(struct command *c, const char *name, const char *value)
{
	c->argv[c->n++] = (char *)(uintptr_t)name;
	if (value)
		c->argv[c->n++] = (char *)(uintptr_t)value;
}

static void add_number(struct command *c, const char *name, double value)
{
	char *text = c->text[c->n];

	snprintf(text, TEXT, "%.9g", value);
	add(c, name, text);
}

/* Add the device.  Its copies are dilated like all other times. */
static void add_device(
	const struct sw_replay *r, double dilation, struct command *c)
{
	if (r->copy_bit_s && dilation > 0)
		snprintf(c->device, sizeof(c->device), "%s:mbit=%llu",
			r->device,
			(unsigned long long)fmax(
				1, 1e-6 * (double)r->copy_bit_s / dilation));
	else
		snprintf(c->device, sizeof(c->device), "%s", r->device);
	add(c, "--device", c->device);
	add_number(c, "--piece", (double)r->piece_bytes);
}

static void build(const struct sw_replay *r, bool is_probe, const char *policy,
	double dilation, const char *report, struct command *c)
{
	*c = (struct command){0};
	add(c, "/proc/self/exe", "replay");
	add(c, "--model", r->model_name);
	add(c, "--report", report);
	add_number(c, "--iters", r->n_iters);
	add_number(c, "--dilate", dilation);
	if (r->device && !is_probe) /* a probe measures only the network */
		add_device(r, dilation, c);
	if (r->has_barrier)
		add(c, "--barrier", NULL);
	if (is_probe)
		add(c, "--probe", NULL);
	else if (r->is_tuned && sw_policy_find(policy)->is_tunable)
		add(c, "--tune", NULL);
	add(c, NULL, NULL);
}

/* Keys to add to the configurations of sumwire run. */
struct keys {
	char job[128], agent[64], port[64];
};

static struct keys keys_of(
	const struct sw_replay *r, const char *policy, double dilation)
{
	struct keys k = {.job = ""};
	/* fifo has no tuning, even if r->policy has */
	bool takes_tuning = sw_policy_find(policy)->is_tunable;
	int n = snprintf(k.job, sizeof(k.job), "policy = %s\n", policy);

	if (dilation > 0) {
		snprintf(k.port, sizeof(k.port), "rate = %lluMb/s\n",
			(unsigned long long)((double)r->rate_bit_s / dilation /
					     1e6));
	}
	if (takes_tuning && r->credit_bytes)
		snprintf(k.job + n, sizeof(k.job) - (size_t)n,
			"credit = %lluB\n",
			(unsigned long long)r->credit_bytes);
	if (takes_tuning && r->partition_bytes)
		snprintf(k.agent, sizeof(k.agent), "partition = %lluB\n",
			(unsigned long long)r->partition_bytes);
	return k;
}

static int run(
	const struct sw_replay *r, const struct keys *k, struct command *c)
{
	const struct sw_net_end end = {.keys = k->port};
	struct sw_run run = {.who = "sumwire-lab replay",
		.n_ranks = r->n_ranks,
		.grace_ns = GRACE_NS,
		.command = c->argv,
		.net = {.n_agents = r->n_ranks,
			.n_local = 1,
			.log_level = "warn",
			.quota_bytes = 3 * r->model.bytes + (256 << 20),
			.job_keys = k->job,
			.agent_keys = k->agent,
			.ends = {end, end}}};
	int code = sw_run_all(&run);

	if (run.number)
		/* all processes have ended: die of the same signal */
		raise(run.number);
	return code ? SW_EPEER : 0;
}

static int read_report(FILE *f, struct sw_replay_result *out)
{
	int n = fscanf(f, "%lf %lf %lf %lf %lf", &out->iteration_s,
		&out->spread, &out->bytes_s, &out->part_bytes, &out->latency_s);

	if (n == 5)
		return 0;
	fprintf(stderr, "sumwire-lab replay: the ranks reported nothing\n");
	return SW_EPROTO;
}

/* Show a user what runs; the next line overwrites it. */
static void show(const struct sw_replay *r, bool is_probe, const char *policy)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "%-12s %5.4g %-14s %s ...\r", r->model.name,
			1e-9 * (double)r->rate_bit_s, policy,
			is_probe ? "what is carried" : "iterations");
}

/* --- other load of this machine --- */

/* CPU time of this machine outside this command and its children, including a
 * hypervisor's, and the time at which it was read. */
struct used {
	double others_s, at_s;
};

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static struct used used_now(void)
{
	/* user, nice, system, idle, iowait, irq, softirq, steal */
	unsigned long long n[8] = {0};
	FILE *f = fopen("/proc/stat", "r");
	struct rusage own, children;
	struct timespec at;
	double busy;

	if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &n[0],
			 &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]) != 8)
		memset(n, 0, sizeof(n));
	if (f)
		fclose(f);
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	clock_gettime(CLOCK_MONOTONIC, &at);
	busy = (double)(n[0] + n[1] + n[2] + n[5] + n[6] + n[7]) /
	       (double)sysconf(_SC_CLK_TCK);
	return (struct used){.others_s = busy - seconds(own.ru_utime) -
					 seconds(own.ru_stime) -
					 seconds(children.ru_utime) -
					 seconds(children.ru_stime),
		.at_s = (double)at.tv_sec + 1e-9 * (double)at.tv_nsec};
}

int sw_replay_loopback(const struct sw_replay *r, bool is_probe,
	const char *policy, double dilation, struct sw_replay_result *out)
{
	char path[TEXT];
	struct keys k = keys_of(r, policy, dilation);
	/* A file without a name: all processes inherit it, and it disappears
	 * with the last of them. */
	FILE *report = tmpfile();
	struct used from, to;
	struct command c;
	int err;

	if (!report) {
		fprintf(stderr,
			"sumwire-lab replay: no file for a report: %s\n",
			strerror(errno));
		return SW_EIO;
	}
	snprintf(path, sizeof(path), "/dev/fd/%d", fileno(report));
	build(r, is_probe, policy, dilation, path, &c);
	show(r, is_probe, policy);
	from = used_now();
	err = run(r, &k, &c);
	to = used_now();
	if (!err)
		err = read_report(report, out);
	out->other_cores =
		(to.others_s - from.others_s) / (to.at_s - from.at_s);
	fclose(report);
	return err;
}
