/* cpus.c - convert a list of CPUs to DPDK's --lcores argument.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* CPUs in the order of the lcores that poll on them. */
struct list {
	uint32_t n;
	uint32_t cpus[CPU_SETSIZE];
};

/* Parse a list such as "2,4-6". Returns false if @s is not a list or names a
 * CPU twice. */
static bool parse(const char *s, struct list *l)
{
	l->n = sw_text_list(s, CPU_SETSIZE, l->cpus, CPU_SETSIZE);
	return l->n;
}

/* Print @set as "(0-3,8)", the form that --lcores expects after an @. */
static void print_set(const cpu_set_t *set, char *out, size_t size)
{
	size_t at = 0;
	char sep = '(';

	for (int cpu = 0; cpu < CPU_SETSIZE && at + 24 < size; cpu++) {
		int to = cpu;

		if (!CPU_ISSET(cpu, set))
			continue;
		while (to + 1 < CPU_SETSIZE && CPU_ISSET(to + 1, set))
			to++;
		at += (size_t)snprintf(
			out + at, size - at, "%c%d-%d", sep, cpu, to);
		sep = ',';
		cpu = to;
	}
	snprintf(out + at, size - at, ")");
}

static int pinned_check(const char *cpus, uint32_t n_lcores,
	const cpu_set_t *allowed, const char *allowed_text, struct list *l,
	const struct sw_log *log)
{
	if (!parse(cpus, l)) {
		sw_log(log, SW_LOG_ERROR,
			"cpus \"%s\": \"auto\" or a list of different CPUs "
			"like \"2,4-6\" expected",
			cpus);
		return SW_ECONF;
	}
	if (l->n != n_lcores) {
		sw_log(log, SW_LOG_ERROR,
			"cpus \"%s\": names %u CPUs, one for each of %u lcores "
			"expected",
			cpus, l->n, n_lcores);
		return SW_ECONF;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		if (CPU_ISSET(l->cpus[i], allowed))
			continue;
		sw_log(log, SW_LOG_ERROR,
			"cpus \"%s\": CPU %u is not among %s, which this "
			"process may use",
			cpus, l->cpus[i], allowed_text);
		return SW_ECONF;
	}
	return 0;
}

/* Check that sysfs describes the CPUs. If sysfs is missing, DPDK prints its
 * usage instead of the cause. */
static int sysfs_check(const cpu_set_t *allowed, const struct sw_log *log)
{
	char path[64];
	int cpu = 0;

	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, allowed))
		cpu++;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology",
		cpu);
	if (!access(path, F_OK))
		return 0;
	sw_log(log, SW_LOG_ERROR,
		"%s: %s; DPDK looks for CPUs there: mount sysfs at /sys", path,
		strerror(errno));
	return SW_EIO;
}

int sw_cpus_to_lcores(const char *cpus, uint32_t n_lcores,
	const struct sw_log *log, char *out, size_t size)
{
	bool is_auto = strcmp(cpus, "auto") == 0;
	cpu_set_t allowed;
	struct list list;
	char all[512];
	size_t at;

	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		sw_log(log, SW_LOG_ERROR, "cannot read the allowed CPUs: %s",
			strerror(errno));
		return SW_EIO;
	}
	if (sysfs_check(&allowed, log))
		return SW_EIO;
	print_set(&allowed, all, sizeof(all));
	if (!is_auto) {
		int err =
			pinned_check(cpus, n_lcores, &allowed, all, &list, log);

		if (err)
			return err;
	}
	at = (size_t)snprintf(out, size, "--lcores=0@%s", all);
	for (uint32_t i = 1; i <= n_lcores && at < size; i++)
		at += (size_t)(is_auto ? snprintf(out + at, size - at, ",%u@%s",
						 i, all)
				       : snprintf(out + at, size - at, ",%u@%u",
						 i, list.cpus[i - 1]));
	if (at < size)
		return 0;
	sw_log(log, SW_LOG_ERROR,
		"%u lcores over CPUs %s: too long for dpdk; give a list in "
		"cpus",
		n_lcores, all);
	return SW_ECONF;
}

int sw_cpus_at(const char *cpus, uint32_t i)
{
	struct list list;

	/* parse() refuses "auto" */
	return parse(cpus, &list) && i < list.n ? (int)list.cpus[i] : -1;
}
