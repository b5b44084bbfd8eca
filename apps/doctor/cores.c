/* cores.c - checks of the CPUs on which polling cores run.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/doctor/checks.h"

enum { LIST = 512, PROCESSES = 65536, THREADS = 4096 };

/* --- available CPU time --- */

/* Return the CPU limit of a control group, version 2 or 1, in CPUs; 0: none. */
static double quota_v2(const struct sw_eyes *e, const char *group)
{
	char path[SW_EYES_PATH], text[64], *end;
	double quota, period;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%.400s/cpu.max", group);
	if (!sw_eyes_read(e, path, text, sizeof(text)) || text[0] == 'm')
		return 0;
	quota = strtod(text, &end);
	period = strtod(end, NULL);
	return period > 0 ? quota / period : 0;
}

static double quota_v1(const struct sw_eyes *e, const char *group)
{
	static const char *const mounts[] = {"cpu", "cpu,cpuacct"};
	char path[SW_EYES_PATH];

	for (uint32_t i = 0; i < 2; i++) {
		int64_t quota, period;

		snprintf(path, sizeof(path),
			"/sys/fs/cgroup/%s%.400s/cpu.cfs_quota_us", mounts[i],
			group);
		quota = sw_eyes_number(e, path, -1);
		snprintf(path, sizeof(path),
			"/sys/fs/cgroup/%s%.400s/cpu.cfs_period_us", mounts[i],
			group);
		period = sw_eyes_number(e, path, 0);
		if (quota > 0 && period > 0)
			return (double)quota / (double)period;
	}
	return 0;
}

/* Return the smallest limit of our control group and its ancestors; 0: none. */
static double quota_of(const struct sw_eyes *e)
{
	char group[LIST], *slash;
	double least = 0;

	if (!sw_eyes_field(e, "/proc/self/cgroup", "0::", group, sizeof(group)))
		group[0] = '\0';
	do {
		double v2 = quota_v2(e, group), v1 = quota_v1(e, group);
		double now = v2 > 0 ? v2 : v1;

		if (now > 0 && (!(least > 0) || now < least))
			least = now;
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return least;
}

static uint32_t lcores_of(const struct sw_eyes *e)
{
	return e->conf ? sw_conf_n_lcores(e->conf) : 1;
}

static void check_quota(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint32_t n = lcores_of(e);
	double quota = quota_of(e);

	if (!(quota > 0))
		sw_doctor_ok(r, name, "no limit of a control group");
	else if (quota >= n + 1)
		sw_doctor_ok(r, name, "%.1f CPUs for %u polling core%s", quota,
			n, n == 1 ? "" : "s");
	else
		sw_doctor_wrong(r, name,
			"polling cores stop for the rest of each period of "
			"100 ms, and all ranks wait",
			"give the container more CPUs (docker run --cpus, "
			"CPUQuota= in the unit), or none",
			"a control group allows %.1f CPUs; %u polling core%s "
			"and the control thread need %u",
			quota, n, n == 1 ? "" : "s", n + 1);
}

static bool allowed(const struct sw_eyes *e, char list[LIST])
{
	return sw_eyes_field(
		e, "/proc/self/status", "Cpus_allowed_list:", list, LIST);
}

static void check_number(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint32_t cpus[SW_EYES_CPUS], own[SW_CONF_CPUS_MAX];
	uint32_t n = lcores_of(e), n_own = sw_eyes_own_cpus(e, own), n_cpus;
	char list[LIST];

	if (!allowed(e, list)) {
		sw_doctor_ok(r, name, "the number of CPUs is not known");
		return;
	}
	n_cpus = sw_eyes_cpus(list, cpus);
	for (uint32_t i = 0; i < n_own; i++) {
		if (sw_eyes_has(list, own[i]))
			continue;
		sw_doctor_wrong(r, name, "the daemon does not start",
			"correct [lcore] cpus, or taskset and CPUAffinity=",
			"CPU %u of [lcore] cpus is not among %s", own[i], list);
		return;
	}
	if (n_cpus > n)
		sw_doctor_ok(r, name, "%u CPUs (%s) for %u polling core%s",
			n_cpus, list, n, n == 1 ? "" : "s");
	else
		sw_doctor_wrong(r, name,
			"polling cores and training processes take turns, and "
			"each turn is a delay for all ranks",
			"use fewer lcores ([serve] and [agent] lcores), or a "
			"machine with more CPUs",
			"%u CPUs (%s) for %u polling core%s and all else",
			n_cpus, list, n, n == 1 ? "" : "s");
}

/* --- disturbances --- */

static void list_add(char out[LIST], uint32_t cpu)
{
	size_t n = strlen(out);

	snprintf(out + n, LIST - n, "%s%u", n ? "," : "", cpu);
}

/* List our CPUs that the file's list lacks.  Returns their number. */
static uint32_t missing(const struct sw_eyes *e, const char *path,
	const uint32_t *own, uint32_t n, char out[LIST])
{
	char list[LIST];
	uint32_t n_missing = 0;

	sw_eyes_read(e, path, list, sizeof(list));
	for (uint32_t i = 0; i < n; i++)
		if (!sw_eyes_has(list, own[i])) {
			list_add(out, own[i]);
			n_missing++;
		}
	return n_missing;
}

static void check_isolation(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint32_t own[SW_CONF_CPUS_MAX], n = sw_eyes_own_cpus(e, own);
	char shared[LIST] = "", ticking[LIST] = "", mend[SW_DOCTOR_TEXT];

	if (!n) {
		sw_doctor_ok(r, name, "[lcore] cpus names no CPUs");
		return;
	}
	if (missing(e, "/sys/devices/system/cpu/isolated", own, n, shared)) {
		snprintf(mend, sizeof(mend),
			"boot with isolcpus=%.100s nohz_full=%.100s", shared,
			shared);
		sw_doctor_wrong(r, name,
			"the scheduler may put other threads there, whose "
			"turns delay all ranks",
			mend, "of our CPUs, these are not isolated: %s",
			shared);
	} else if (missing(e, "/sys/devices/system/cpu/nohz_full", own, n,
			   ticking)) {
		snprintf(mend, sizeof(mend), "boot with nohz_full=%.200s",
			ticking);
		sw_doctor_wrong(r, name,
			"the timer interrupts polling up to 1,000 times a "
			"second",
			mend, "CPUs %s have a tick", ticking);
	} else {
		sw_doctor_ok(r, name, "CPUs %s are isolated, without a tick",
			e->conf->lcore.cpus);
	}
}

static void check_governor(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint32_t own[SW_CONF_CPUS_MAX], n = sw_eyes_own_cpus(e, own);
	char path[128], text[64] = "";

	if (!n)
		own[0] = 0;
	for (uint32_t i = 0; i < (n ? n : 1); i++) {
		snprintf(path, sizeof(path),
			"/sys/devices/system/cpu/cpu%u/cpufreq/"
			"scaling_governor",
			own[i]);
		if (!sw_eyes_read(e, path, text, sizeof(text)) ||
			!strcmp(text, "performance"))
			continue;
		sw_doctor_wrong(r, name,
			"the clock rises late after each pause between steps",
			"sudo cpupower frequency-set -g performance",
			"CPU %u has the governor \"%s\"", own[i], text);
		return;
	}
	sw_doctor_ok(r, name, "%s",
		*text ? "performance" : "the kernel does not set frequencies");
}

static void check_siblings(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint32_t own[SW_CONF_CPUS_MAX], n = sw_eyes_own_cpus(e, own);
	char path[128], list[LIST];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path),
			"/sys/devices/system/cpu/cpu%u/topology/"
			"thread_siblings_list",
			own[i]);
		if (!sw_eyes_read(e, path, list, sizeof(list)))
			continue;
		for (uint32_t k = i + 1; k < n; k++) {
			if (!sw_eyes_has(list, own[k]))
				continue;
			sw_doctor_wrong(r, name,
				"two polling cores share one core's units, and "
				"each has about half of its speed",
				"set [lcore] cpus to CPUs of different cores "
				"(lscpu -e)",
				"CPUs %u and %u are one core", own[i], own[k]);
			return;
		}
	}
	sw_doctor_ok(r, name, "%s",
		n ? "each polling core is a core of its own"
		  : "[lcore] cpus names no CPUs");
}

/* --- other threads --- */

static void check_load(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	uint32_t cpus[SW_EYES_CPUS], n;
	char list[LIST], text[64];
	double load;

	if (!sw_eyes_read(e, "/proc/loadavg", text, sizeof(text)) ||
		!sw_eyes_read(e, "/sys/devices/system/cpu/online", list,
			sizeof(list))) {
		sw_doctor_ok(r, name, "the load average is unavailable");
		return;
	}
	n = sw_eyes_cpus(list, cpus);
	load = strtod(text, NULL);
	if (load <= n)
		sw_doctor_ok(r, name, "%.1f threads run on %u CPUs", load, n);
	else
		sw_doctor_wrong(r, name,
			"threads wait for a CPU, and polling cores with them",
			"list the threads with top -H, and stop those not "
			"needed",
			"%.1f threads want to run on %u CPUs", load, n);
}

/* Running threads of other processes that may only run on our CPUs. */
struct pinned {
	uint32_t own[SW_CONF_CPUS_MAX], n_own;
	uint32_t n;
	char first[160];
};

static bool is_pinned_here(const struct pinned *p, const char *list)
{
	uint32_t cpus[SW_EYES_CPUS], n = sw_eyes_cpus(list, cpus);
	uint32_t shared = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < p->n_own; k++)
			shared += cpus[i] == p->own[k];
	return n && shared == n;
}

static void thread_look(const struct sw_eyes *e, struct pinned *p,
	const char *process, const char *thread)
{
	char path[SW_EYES_PATH], text[LIST], name[32];

	snprintf(path, sizeof(path), "/proc/%.16s/task/%.16s/status", process,
		thread);
	if (!sw_eyes_field(e, path, "State:", text, sizeof(text)) ||
		text[0] != 'R')
		return;
	if (!sw_eyes_field(e, path, "Cpus_allowed_list:", text, sizeof(text)) ||
		!is_pinned_here(p, text))
		return;
	if (!p->n++) {
		sw_eyes_field(e, path, "Name:", name, sizeof(name));
		snprintf(p->first, sizeof(p->first),
			"%s (process %.16s) on CPU %.40s", name, process, text);
	}
}

static void process_look(
	const struct sw_eyes *e, struct pinned *p, const char *process)
{
	char path[SW_EYES_PATH];
	struct dirent *at;
	uint32_t n = 0;
	DIR *dir;

	sw_eyes_path(e, path, "/proc/%.16s/task", process);
	dir = opendir(path);
	while (dir && n++ < THREADS && (at = readdir(dir)))
		if (isdigit((unsigned char)at->d_name[0]))
			thread_look(e, p, process, at->d_name);
	if (dir)
		closedir(dir);
}

static void check_pollers(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	struct pinned p = {.n = 0};
	char path[SW_EYES_PATH];
	struct dirent *at;
	uint32_t n = 0;
	DIR *dir;

	p.n_own = sw_eyes_own_cpus(e, p.own);
	sw_eyes_path(e, path, "/proc");
	dir = p.n_own ? opendir(path) : NULL;
	while (dir && n++ < PROCESSES && (at = readdir(dir)))
		if (isdigit((unsigned char)at->d_name[0]))
			process_look(e, &p, at->d_name);
	if (dir)
		closedir(dir);
	if (!p.n_own)
		sw_doctor_ok(r, name, "[lcore] cpus names no CPUs");
	else if (!p.n)
		sw_doctor_ok(r, name, "no other thread is pinned to them");
	else
		sw_doctor_wrong(r, name,
			"both take turns on that CPU, which delays all ranks",
			"give one of them another CPU ([lcore] cpus, taskset)",
			"%u running thread%s pinned to our CPUs: %s", p.n,
			p.n == 1 ? " is" : "s are", p.first);
}

const struct sw_doctor_check sw_doctor_cores[] = {
	{"CPU quota", check_quota},
	{"CPUs", check_number},
	{"isolation", check_isolation},
	{"governor", check_governor},
	{"siblings", check_siblings},
	{"load", check_load},
	{"pollers", check_pollers},
	{NULL, NULL},
};
