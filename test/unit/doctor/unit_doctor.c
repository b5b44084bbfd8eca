/* unit_doctor.c - each check of doctor fails where it should.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/scratch.h"
#include "apps/doctor/patience.h"

enum { LIMIT_MS = 60000, SHORT_MS = 300 };

struct file {
	const char *path, *text;
};

/* A machine without faults, for a server with two polling cores. */
static const struct file good[] = {
	{"/proc/self/limits",
		"Max file size             unlimited            unlimited\n"
		"Max open files            1024                 65536\n"
		"Max locked memory         67108864             67108864\n"
		"Max address space         unlimited            unlimited\n"},
	{"/proc/self/status", "CapEff:\t0000000000002000\n"
			      "Cpus_allowed_list:\t0-7\n"},
	{"/proc/self/cgroup", "0::/a/b\n"},
	{"/proc/meminfo", "HugePages_Total:     512\nHugePages_Free:      500\n"
			  "Hugepagesize:       2048 kB\n"},
	{"/proc/sys/net/core/rmem_max", "4259840\n"},
	{"/proc/sys/net/core/wmem_max", "524288\n"},
	{"/proc/loadavg", "2.50 1.00 1.00 1/200 300\n"},
	{"/proc/77/task/78/status",
		"Name:\tother\nState:\tR (running)\nCpus_allowed_list:\t0-7\n"},
	{"/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n"},
	{"/sys/fs/cgroup/a/cpu.max", "max 100000\n"},
	{"/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"tsc\n"},
	{"/sys/devices/system/clocksource/clocksource0/"
	 "available_clocksource",
		"tsc hpet\n"},
	{"/sys/devices/system/cpu/online", "0-7\n"},
	{"/sys/devices/system/cpu/isolated", "2-3\n"},
	{"/sys/devices/system/cpu/nohz_full", "2-3\n"},
	{"/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
		"performance\n"},
	{"/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2,6\n"},
	{"/sys/devices/system/node/node0/cpulist", "0-3\n"},
	{"/sys/devices/system/node/node1/cpulist", "4-7\n"},
	{"/sys/class/net/eth0/operstate", "up\n"},
	{"/sys/class/net/eth0/mtu", "9000\n"},
	{"/sys/class/net/eth0/speed", "10000\n"},
	{"/sys/class/net/eth0/device/numa_node", "0\n"},
};

static void put(const char *root, const char *path, const char *text)
{
	char whole[SW_EYES_PATH];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/'));
		at++) {
		*at = '\0';
		mkdir(whole, 0700);
		*at = '/';
	}
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void conf_make(struct sw_conf *c)
{
	sw_conf_defaults(c);
	c->node.role = SW_ROLE_SERVER;
	c->serve.lcores = 2;
	strcpy(c->lcore.cpus, "2-3");
	c->n_ports = 2;
	c->ports[0].type = SW_PORT_UDP;
	c->ports[0].subnet.ip = sw_ip_v4(0x7f000001);
	c->ports[0].subnet.bits = 8;
	strcpy(c->ports[0].label, "u");
	c->ports[1].type = SW_PORT_AF_PACKET;
	strcpy(c->ports[1].device, "eth0");
	strcpy(c->ports[1].label, "p");
}

struct machine {
	struct sw_scratch scratch;
	struct sw_conf conf;
	struct sw_eyes eyes;
	struct sw_doctor_report report;
};

static int machine_open(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	assert_int_equal(
		sw_scratch_open(&m->scratch, "/tmp", "unit_doctor"), 0);
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(good); i++)
		put(m->scratch.path, good[i].path, good[i].text);
	put(m->scratch.path, "/sys/class/net/lo/operstate", "unknown\n");
	put(m->scratch.path, "/sys/class/net/lo/mtu", "65536\n");
	conf_make(&m->conf);
	m->eyes = (struct sw_eyes){
		.root = m->scratch.path, .conf = &m->conf, .level = "avx2"};
	*state = m;
	return 0;
}

static int machine_close(void **state)
{
	struct machine *m = *state;

	sw_scratch_close(&m->scratch);
	free(m);
	return 0;
}

static void run_table(struct machine *m, const struct sw_doctor_check *rows,
	uint32_t limit_ms)
{
	assert_int_equal(
		sw_doctor_run(rows, &m->eyes, &m->report, limit_ms), 0);
}

static void look(struct machine *m)
{
	memset(&m->report, 0, sizeof(m->report));
	run_table(m, sw_doctor_system, LIMIT_MS);
	run_table(m, sw_doctor_cores, LIMIT_MS);
	run_table(m, sw_doctor_links, LIMIT_MS);
}

/* Check that only @check failed, with @found and a proposed remedy. */
static void assert_red(
	const struct machine *m, const char *check, const char *found)
{
	for (uint32_t i = 0; i < m->report.n; i++) {
		const struct sw_doctor_line *line = &m->report.lines[i];

		if (!line->is_wrong)
			continue;
		if (strcmp(line->check, check))
			fail_msg("%s, not %s: %s", line->check, check,
				line->found);
		assert_contains(line->found, found);
		assert_true(line->cost[0] && line->mend[0]);
	}
	if (m->report.n_wrong != 1)
		fail_msg("%u lines are red for %s", m->report.n_wrong, check);
}

static void check__a_good_machine(void **state)
{
	struct machine *m = *state;

	look(m);
	for (uint32_t i = 0; i < m->report.n; i++)
		if (m->report.lines[i].is_wrong)
			fail_msg("%s: %s", m->report.lines[i].check,
				m->report.lines[i].found);
	assert_true(m->report.n >= 18);
	/* without a configuration no check needs more than a user's rights */
	m->eyes.conf = NULL;
	put(m->scratch.path, "/proc/self/limits",
		"Max locked memory         8388608  8388608\n");
	look(m);
	assert_int_equal(m->report.n_wrong, 0);
}

/* Each row changes one file and names the check that must fail. */
static void check__red_by_a_file(void **state)
{
	static const struct {
		const char *check, *path, *text, *found;
	} rows[] = {
		{"memlock", "/proc/self/limits",
			"Max open files 1 65536\n"
			"Max locked memory  65536  65536 bytes\n",
			"only 64 KiB"},
		{"open files", "/proc/self/limits",
			"Max open files  256  256  files\n", "only 256"},
		{"shared memory", "/proc/self/limits",
			"Max file size  1048576  1048576 bytes\n",
			"at most 1 MiB"},
		{"shared memory", "/proc/self/limits",
			"Max address space  1048576  1048576 bytes\n",
			"address space"},
		{"rights", "/proc/self/status",
			"CapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\n",
			"port p lacks CAP_NET_RAW"},
		{"CPUs", "/proc/self/status",
			"CapEff:\t0000000000002000\nCpus_allowed_list:\t0-2\n",
			"CPU 3 of [lcore] cpus is not among 0-2"},
		{"CPUs", "/proc/self/status",
			"CapEff:\t0000000000002000\nCpus_allowed_list:\t2-3\n",
			"2 CPUs (2-3) for 2 polling cores"},
		{"rmem_max", "/proc/sys/net/core/rmem_max", "212992\n",
			"asks for 4259840"},
		{"wmem_max", "/proc/sys/net/core/wmem_max", "212992\n",
			"asks for 524288"},
		{"clock",
			"/sys/devices/system/clocksource/clocksource0/"
			"current_clocksource",
			"hpet\n", "hpet"},
		{"CPU quota", "/sys/fs/cgroup/a/cpu.max", "150000 100000\n",
			"allows 1.5 CPUs"},
		{"CPU quota", "/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n",
			"need 3"},
		{"isolation", "/sys/devices/system/cpu/isolated", "2\n",
			"not isolated: 3"},
		{"isolation", "/sys/devices/system/cpu/nohz_full", "\n",
			"CPUs 2,3 have a tick"},
		{"governor",
			"/sys/devices/system/cpu/cpu2/cpufreq/"
			"scaling_governor",
			"powersave\n", "powersave"},
		{"siblings",
			"/sys/devices/system/cpu/cpu2/topology/"
			"thread_siblings_list",
			"2-3\n", "CPUs 2 and 3 are one core"},
		{"load", "/proc/loadavg", "11.00 1 1 1/2 3\n", "11.0 threads"},
		{"pollers", "/proc/77/task/78/status",
			"Name:\tother\nState:\tR (running)\n"
			"Cpus_allowed_list:\t3\n",
			"other (process 77) on CPU 3"},
		{"interface", "/sys/class/net/eth0/operstate", "down\n",
			"eth0: down"},
		{"interface", "/sys/class/net/eth0/mtu", "1200\n", "MTU 1200"},
		{"NUMA", "/sys/class/net/eth0/device/numa_node", "1\n",
			"port p is on node 1, CPU 2 on node 0"},
	};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		void *m;

		machine_open(&m);
		put(((struct machine *)m)->scratch.path, rows[i].path,
			rows[i].text);
		look(m);
		assert_red(m, rows[i].check, rows[i].found);
		machine_close(&m);
	}
	(void)state;
}

static void check__red_by_a_try(void **state)
{
	struct machine *m = *state;

	m->eyes.is_level_low = true;
	look(m);
	assert_red(m, "kernels", "no AVX2");
	m->eyes.is_level_low = false;
	m->eyes.memfd_errno = 1;
	look(m);
	assert_red(m, "shared memory", "memfd_create");
}

static void good_check(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	(void)e;
	sw_doctor_ok(r, name, "good");
}

static void dead_check(
	const struct sw_eyes *e, const char *name, struct sw_doctor_report *r)
{
	(void)e;
	(void)name;
	(void)r;
	kill(getpid(), SIGKILL);
}

/* A FIFO without a writer never answers. The check after it also runs and waits
 * for the same FIFO. */
static void check__no_answer(void **state)
{
	struct machine *m = *state;
	char path[SW_EYES_PATH];

	snprintf(path, sizeof(path), "%s/sys/class/net/eth0/mtu", m->eyes.root);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	run_table(m, sw_doctor_links, SHORT_MS);
	assert_int_equal(m->report.n_wrong, 2);
	for (uint32_t i = 0; i < m->report.n; i++)
		if (m->report.lines[i].is_wrong)
			assert_contains(m->report.lines[i].found,
				"the kernel has not answered for 0.3 s (its "
				"network");
	assert_string_equal(m->report.lines[m->report.n - 1].check, "NUMA");
}

static void check__ends_the_child(void **state)
{
	static const struct sw_doctor_check rows[] = {
		{"bad", dead_check}, {"good", good_check}, {NULL, NULL}};
	struct machine *m = *state;

	run_table(m, rows, LIMIT_MS);
	assert_int_equal(m->report.n, 2);
	assert_red(m, "bad", "the check has failed");
}

static void check__module_for_pytorch(void **state)
{
	struct machine *m = *state;

	for (uint32_t i = 0; i < 2; i++) {
		const struct sw_doctor_line *l = NULL;

		m->eyes.has_quick = i;
		look(m);
		for (uint32_t k = 0; k < m->report.n; k++)
			if (!strcmp(m->report.lines[k].check, "PyTorch"))
				l = &m->report.lines[k];
		assert_non_null(l);
		assert_false(l->is_wrong);
		assert_non_null(strstr(
			l->found, i ? "carries small" : "go through Python"));
	}
}

/* Ports of NICs need huge pages and a driver. */
static void check__nic_ports(void **state)
{
	struct machine *m = *state;
	char path[SW_EYES_PATH];

	m->conf.ports[1].type = SW_PORT_PCI;
	strcpy(m->conf.ports[1].device, "0000:81:00.0");
	look(m);
	assert_red(m, "rights", "bound to the driver \"none\"");
	put(m->scratch.path, "/sys/bus/pci/devices/0000:81:00.0/numa_node",
		"0\n");
	sw_eyes_path(
		&m->eyes, path, "/sys/bus/pci/devices/0000:81:00.0/driver");
	assert_int_equal(symlink("../drivers/vfio-pci", path), 0);
	look(m);
	assert_int_equal(m->report.n_wrong, 0);
	put(m->scratch.path, "/proc/meminfo", "HugePages_Total: 0\n");
	look(m);
	assert_red(m, "hugepages", "none are reserved");
}

static void check__ports(void **state)
{
	struct machine *m = *state;

	m->conf.ports[0].subnet.ip = sw_ip_v4(0xc0000201);
	look(m);
	assert_red(m, "interface", "no interface has 192.0.2.1");
	conf_make(&m->conf);
	m->conf.serve.udp_port = 80;
	look(m);
	assert_red(m, "rights", "port u lacks CAP_NET_BIND_SERVICE");
}

/* On an empty machine everything is unknown, and only the checks of what a
 * daemon cannot do without fail. */
static void check__an_empty_machine(void **state)
{
	struct machine *m = *state;

	m->eyes.root = "/nowhere";
	m->eyes.conf = NULL;
	look(m);
	assert_red(m, "interface", "no interface except lo");
}

static void report__for_people_and_programs(void **state)
{
	struct machine *m = *state;
	char text[4096] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	memset(&m->report, 0, sizeof(m->report));
	sw_doctor_ok(&m->report, "a", "fine");
	sw_doctor_wrong(&m->report, "longer", "much", "do it", "bad %d\x1b", 7);
	assert_int_equal(sw_doctor_print(&m->report, false, f), 0);
	fclose(f);
	assert_string_equal(text, "OK     a       fine\n"
				  "WRONG  longer  bad 7?\n"
				  "               cost: much\n"
				  "               mend: do it\n"
				  "1 of 2 checks found something wrong\n");
	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text), "w");
	assert_int_equal(sw_doctor_print(&m->report, true, f), 0);
	fclose(f);
	assert_contains(text, "\"is_good\": false");
	assert_contains(text, "\"mend\": \"do it\"");
	for (uint32_t i = 0; i < SW_DOCTOR_LINES + 3; i++)
		sw_doctor_wrong(&m->report, "b", "c", "d", "e");
	assert_int_equal(m->report.n, SW_DOCTOR_LINES);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define MACHINE(f) \
	cmocka_unit_test_setup_teardown(f, machine_open, machine_close)
		MACHINE(check__a_good_machine),
		MACHINE(check__red_by_a_file),
		MACHINE(check__red_by_a_try),
		MACHINE(check__no_answer),
		MACHINE(check__ends_the_child),
		MACHINE(check__module_for_pytorch),
		MACHINE(check__nic_ports),
		MACHINE(check__ports),
		MACHINE(check__an_empty_machine),
		MACHINE(report__for_people_and_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
