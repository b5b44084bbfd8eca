/* unit_cpus.c - turn a list of CPUs into one of lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "pmd/dpdk/cpus.h"

/* Lcore 0 polls on the first CPU of the list, not on the lowest one. */
static void cpus_at__keeps_the_order(void **state)
{
	assert_int_equal(sw_cpus_at("5,2", 0), 5);
	assert_int_equal(sw_cpus_at("5,2", 1), 2);
	assert_int_equal(sw_cpus_at("7,2-4", 0), 7);
	assert_int_equal(sw_cpus_at("7,2-4", 3), 4);
}

static void cpus_at__none(void **state)
{
	assert_int_equal(sw_cpus_at("5,2", 2), -1);
	assert_int_equal(sw_cpus_at("auto", 0), -1);
	assert_int_equal(sw_cpus_at("2,1-3", 0), -1);
	assert_int_equal(sw_cpus_at("1023", 0), 1023);
	assert_int_equal(sw_cpus_at("1024", 0), -1);
}

/* The CPUs that this process may use, in descending order. */
static void cpus_to_lcores__keeps_the_order(void **state)
{
	char cpus[64] = "", want[128] = "", out[4096];
	uint32_t n = 0;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = CPU_SETSIZE; cpu-- > 0 && n < 4;) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		sprintf(cpus + strlen(cpus), "%s%d", n ? "," : "", cpu);
		sprintf(want + strlen(want), ",%u@%d", ++n, cpu);
	}
	assert_int_equal(sw_cpus_to_lcores(cpus, n, NULL, out, sizeof(out)), 0);
	assert_non_null(strchr(out, ','));
	assert_string_equal(strstr(out, ",1@"), want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_at__keeps_the_order),
		cmocka_unit_test(cpus_at__none),
		cmocka_unit_test(cpus_to_lcores__keeps_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
