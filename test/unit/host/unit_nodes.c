/* unit_nodes.c - the choice of NUMA nodes for memory, and the calls on node 0.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <errno.h>
#include <numaif.h>
#include <sys/mman.h>

#include "engine/base/error.h"
#include "pmd/host/nodes.h"

enum { ANY = SW_NUMA_ANY, BYTES = 1 << 20 };

static struct sw_numa_plan plan(const struct sw_numa_facts *f)
{
	struct sw_numa_plan p;

	sw_numa_make_plan(f, &p);
	return p;
}

static void plan__one_node_binds_nothing(void **state)
{
	struct sw_numa_plan p = plan(&(struct sw_numa_facts){.n_nodes = 1,
		.n_lcores = 2,
		.n_ports = 1,
		.lcores = {0, 0},
		.ports = {0}});

	assert_int_equal(p.home, ANY);
	assert_int_equal(p.lcores[0], ANY);
	assert_int_equal(p.lcores[15], ANY);
	assert_int_equal(p.far[0], 0);
}

static void plan__pinned_lcores_rule(void **state)
{
	struct sw_numa_plan p = plan(&(struct sw_numa_facts){.n_nodes = 2,
		.n_lcores = 3,
		.n_ports = 3,
		.lcores = {1, 1, 0},
		.ports = {1, 0, ANY}});

	assert_int_equal(p.home, 1);
	assert_int_equal(p.lcores[0], 1);
	assert_int_equal(p.lcores[1], 1);
	assert_int_equal(p.lcores[2], 0);
	assert_int_equal(p.far[0], 2); /* the number of the second port */
	assert_int_equal(p.far[1], 2);
	assert_int_equal(p.far[2], 1);
}

static void plan__floating_lcores_follow_the_ports(void **state)
{
	struct sw_numa_plan p = plan(&(struct sw_numa_facts){.n_nodes = 4,
		.n_lcores = 2,
		.n_ports = 2,
		.lcores = {ANY, ANY},
		.ports = {ANY, 3}});

	assert_int_equal(p.home, 3);
	assert_int_equal(p.lcores[0], 3);
	assert_int_equal(p.lcores[1], 3);
	assert_int_equal(p.far[0] | p.far[1], 0);
}

static void plan__nothing_known(void **state)
{
	struct sw_numa_plan p = plan(&(struct sw_numa_facts){.n_nodes = 2,
		.n_lcores = 1,
		.n_ports = 1,
		.lcores = {ANY},
		.ports = {ANY}});

	assert_int_equal(p.home, ANY);
	assert_int_equal(p.lcores[0], ANY);
}

static void of__what_is_not_there(void **state)
{
	assert_true(sw_numa_nodes() >= 1);
	assert_int_equal(sw_numa_of_cpu(1 << 20), ANY);
	assert_int_equal(sw_numa_of_device(""), ANY);
	/* a device without hardware */
	assert_int_equal(sw_numa_of_device("lo"), ANY);
	assert_int_equal(sw_numa_of_device("no-such-device"), ANY);
}

/* Skip if a container's filter forbids the calls or the kernel has no nodes.
 * Any other error is a failure. */
static void skip_if_forbidden(void)
{
	if (get_mempolicy(NULL, NULL, 0, NULL, 0)) {
		assert_true(errno == EPERM || errno == ENOSYS);
		print_message("SKIP: get_mempolicy is forbidden here\n");
		skip();
	}
}

/* The real call sets the policy for exactly the block, and its pages are on
 * that node. */
static void bind__node_0(void **state)
{
	unsigned long mask = 0;
	int mode = -1, node = -1;
	char *mem;

	skip_if_forbidden();
	mem = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(mem != MAP_FAILED);
	assert_int_equal(sw_numa_bind(mem, BYTES, ANY), 0);
	assert_int_equal(get_mempolicy(&mode, NULL, 0, mem, MPOL_F_ADDR), 0);
	assert_int_equal(mode, MPOL_DEFAULT);
	assert_int_equal(sw_numa_bind(mem, BYTES, 0), 0);
	assert_int_equal(get_mempolicy(&mode, &mask, 64, mem, MPOL_F_ADDR), 0);
	assert_int_equal(mode, MPOL_PREFERRED);
	assert_int_equal(mask, 1);
	assert_int_equal(
		get_mempolicy(&mode, NULL, 0, mem + BYTES, MPOL_F_ADDR), 0);
	assert_int_equal(mode, MPOL_DEFAULT);
	mem[0] = 1;
	assert_int_equal(
		get_mempolicy(&node, NULL, 0, mem, MPOL_F_ADDR | MPOL_F_NODE),
		0);
	assert_int_equal(node, 0);
	for (int none = 62; none < 64; none++) /* nodes that do not exist */
		assert_int_equal(sw_numa_bind(mem, BYTES, none), SW_EIO);
	assert_int_equal(sw_numa_bind(mem, BYTES, 64), SW_EIO);
	munmap(mem, 2 * BYTES);
}

static void prefer__and_back(void **state)
{
	int mode = -1;

	skip_if_forbidden();
	assert_int_equal(sw_numa_prefer(0), 0);
	assert_int_equal(get_mempolicy(&mode, NULL, 0, NULL, 0), 0);
	assert_int_equal(mode, MPOL_PREFERRED);
	assert_int_equal(sw_numa_prefer(ANY), 0);
	assert_int_equal(get_mempolicy(&mode, NULL, 0, NULL, 0), 0);
	assert_int_equal(mode, MPOL_DEFAULT);
	assert_int_equal(sw_numa_prefer(63), SW_EIO);
	assert_int_equal(sw_numa_prefer(64), SW_EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan__one_node_binds_nothing),
		cmocka_unit_test(plan__pinned_lcores_rule),
		cmocka_unit_test(plan__floating_lcores_follow_the_ports),
		cmocka_unit_test(plan__nothing_known),
		cmocka_unit_test(of__what_is_not_there),
		cmocka_unit_test(bind__node_0),
		cmocka_unit_test(prefer__and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
