/* unit_topo_conf.c - valid and invalid descriptions of machines.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/topo/topo.h"

static const char *source; /* the root of the source tree */

static void said(void *ctx, enum sw_log_level level, const char *text)
{
	char *all = ctx;
	size_t n = strlen(all);

	snprintf(all + n, 4096 - n, "%s\n", text);
}

/* Apply the description @text to @m, and collect the errors in @all. */
static int describe(struct sw_machine *m, const char *text, char all[4096])
{
	char path[] = "/tmp/unit_topo_XXXXXX";
	const struct sw_log log = {said, all, SW_LOG_ERROR};
	int fd = mkstemp(path), err;
	double cross;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	all[0] = '\0';
	err = sw_topo_describe(m, &cross, path, &log);
	unlink(path);
	return err;
}

static void describe__the_example(void **state)
{
	struct sw_machine m = {.n_numa_nodes = 0};
	char path[1024], all[4096] = "", why[256];
	const struct sw_log log = {said, all, SW_LOG_ERROR};
	double cross = 0;

	snprintf(path, sizeof(path), "%s/conf/machines/pcie.ini", source);
	assert_int_equal(sw_topo_describe(&m, &cross, path, &log), 0);
	assert_string_equal(all, "");
	assert_null(sw_topo_check(&m, why, sizeof(why)));
	assert_true(m.n_numa_nodes == 2 && m.n_switches == 2 && m.n_gpus == 8 &&
		    m.n_nics == 1);
	assert_true(m.gpus[5].switch_no == 1 && m.gpus[5].numa_node == 1);
	assert_true(m.gpus[5].link == 13.1e9 && m.switches[1].link == 13.1e9);
	assert_true(m.nics[0].switch_no == SW_MACHINE_NONE &&
		    m.nics[0].numa_node == 0 && m.nics[0].wire == 12.5e9);
	assert_true(cross == 10e9);
}

/* Only the named items change; sections may come in any order. */
static void describe__changes(void **state)
{
	struct sw_machine m = {.n_numa_nodes = 2,
		.numa_nodes = {{.id = 0}, {.id = 1}},
		.n_switches = 1,
		.switches = {{.numa_node = 0, .link = 16e9}},
		.n_gpus = 2,
		.gpus = {{.switch_no = 0, .link = 16e9},
			{.switch_no = 0, .link = 16e9, .name = "x"}},
		.n_nics = 1,
		.nics = {{.name = "enP2s0", .switch_no = 0}}};
	char all[4096];

	assert_int_equal(describe(&m,
				 "[gpu 1]\nswitch = 1\nnvlink = 200Gb/s\n"
				 "[gpu 0]\nnuma_node = 1\n"
				 "[switch 1]\nnuma_node = 1\npcie = 8Gb/s\n"
				 "[machine]\npcie = 80Gb/s\n"
				 "[nic enp2s0]\nswitch = 1\nrate = 8Gb/s\n",
				 all),
		0);
	assert_string_equal(all, "");
	assert_true(m.gpus[1].switch_no == 1 && m.gpus[1].numa_node == 1 &&
		    m.gpus[1].nvlink == 25e9 && m.gpus[1].link == 10e9);
	assert_string_equal(m.gpus[1].name, "x");
	assert_true(m.gpus[0].switch_no == SW_MACHINE_NONE &&
		    m.gpus[0].numa_node == 1);
	assert_true(m.n_nics == 1 && m.nics[0].switch_no == 1 &&
		    m.nics[0].wire == 1e9);
	assert_true(m.switches[1].link == 1e9 && m.switches[0].link == 10e9);
}

static void describe__bad(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"[gpus 0]\n", ":1: [gpus 0]: unknown section"},
		{"[gpu]\n", ":1: [gpu]: has a number from 0 to 63"},
		{"[gpu 1]\nnuma_node = 0\n",
			":1: [gpu 1]: number 0 is missing"},
		{"[gpu 64]\n", ":1: [gpu 64]: has a number from 0 to 63"},
		{"[gpu 0]\nswich = 0\n",
			":2: [gpu 0] swich: unknown key; did you mean "
			"switch?"},
		{"[machine]\nwhole = yes\n",
			":2: [machine] whole: unknown key"},
		{"[switch 0]\nnuma_node = -1\n", ":2: [switch 0] numa_node: "},
		{"[switch 0]\nnuma_node = 1024\n",
			":2: [switch 0] numa_node: is 1024; it goes from 0 to "
			"1023"},
		{"[gpu 0]\nswitch = 0\n",
			":2: [gpu 0] switch: there is no switch 0: the machine "
			"has 0"},
		{"[switch 0]\nnuma_node = 0\n[gpu 0]\nswitch = 0\nnuma_node = "
		 "1\n",
			":5: [gpu 0] numa_node: is 1, but switch 0 is at "
			"NUMA node 0"},
		{"[gpu 0]\nnuma_node = 0\npcie = 13.1\n", ":3: [gpu 0] pcie: "},
		{"[gpu 0]\nnuma_node = 0\nnuma_node = 1\n",
			":3: [gpu 0] numa_node: is given twice, first on line "
			"2"},
		{"[nic ]\n", ":1: [nic]: a machine has "},
		{"[nic a23456789012345678901234567890123]\n",
			"names of 1 to 31"},
	};
	char all[4096];

	for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
		struct sw_machine m = {.n_numa_nodes = 0};

		assert_int_equal(describe(&m, cases[i].text, all), SW_ECONF);
		assert_contains(all, cases[i].want);
		/* one sentence per mistake */
		assert_ptr_equal(strchr(all, '\n'), all + strlen(all) - 1);
	}
}

static void describe__no_file(void **state)
{
	struct sw_machine m = {.n_numa_nodes = 0};
	double cross;

	assert_int_equal(
		sw_topo_describe(&m, &cross, "/nowhere", NULL), SW_ENOENT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(describe__the_example),
		cmocka_unit_test(describe__changes),
		cmocka_unit_test(describe__bad),
		cmocka_unit_test(describe__no_file),
	};

	source = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
