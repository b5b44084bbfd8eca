/* proc_port_pci.c - which PCI devices a port accepts, and the refusals' text.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/dpdk/pci.h"

#define DEVICES "/sys/bus/pci/devices/"
#define NIC     "0000:81:00.1"

/* A folder with a /sys and a /dev. */
struct tree {
	char root[64], why[512];
};

static void path_of(const struct tree *t, const char *name, char out[256])
{
	snprintf(out, 256, "%s%s", t->root, name);
}

/* Create the parent folders of @path. */
static void folders(char *path)
{
	for (char *s = path + 1; *s; s++)
		if (*s == '/') {
			*s = '\0';
			mkdir(path, 0700);
			*s = '/';
		}
}

static void file(const struct tree *t, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	path_of(t, name, path);
	folders(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void link_to(const struct tree *t, const char *name, const char *to)
{
	char path[256];

	path_of(t, name, path);
	folders(path);
	unlink(path);
	assert_int_equal(symlink(to, path), 0);
}

static int tree_up(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	strcpy(t->root, "/tmp/sw-pci-XXXXXX");
	assert_non_null(mkdtemp(t->root));
	file(t, DEVICES "0000:00:1f.0/class", "0x060100\n");
	file(t, DEVICES NIC "/class", "0x020000\n");
	*state = t;
	return 0;
}

static int entry_remove(
	const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int tree_down(void **state)
{
	struct tree *t = *state;

	nftw(t->root, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static void refused(struct tree *t, const char *address, const char *why)
{
	assert_int_equal(sw_pci_check(t->root, address, t->why, sizeof(t->why)),
		SW_ECONF);
	if (!strstr(t->why, why))
		fail_msg("\"%s\" has no \"%s\"", t->why, why);
}

static void taken(struct tree *t)
{
	assert_int_equal(sw_pci_check(t->root, NIC, t->why, sizeof(t->why)), 0);
}

static void check__no_such_device(void **state)
{
	refused(*state, "0000:81:00.0",
		"there is no PCI device 0000:81:00.0; network devices here: "
		"0000:81:00.1");
}

static void check__no_network_device(void **state)
{
	refused(*state, "0000:00:1f.0", "is not a network device");
}

static void check__bound_to_another_driver(void **state)
{
	struct tree *t = *state;

	refused(t, NIC, "is bound to no driver: bind it to vfio-pci");
	link_to(t, DEVICES NIC "/driver", "../../bus/pci/drivers/ixgbe");
	refused(t, NIC, "bound to the kernel's driver ixgbe: bind it");
}

static void check__a_driver_that_shares(void **state)
{
	struct tree *t = *state;

	link_to(t, DEVICES NIC "/driver", "../../bus/pci/drivers/mlx5_core");
	taken(t);
}

static void check__vfio(void **state)
{
	struct tree *t = *state;

	link_to(t, DEVICES NIC "/driver", "../../bus/pci/drivers/vfio-pci");
	refused(t, NIC, "enable the IOMMU");
	link_to(t, DEVICES NIC "/iommu_group", "../../kernel/iommu_groups/27");
	refused(t, NIC, "/dev/vfio/27: No such file");
	file(t, "/dev/vfio/27", "");
	taken(t);
	if (geteuid()) { /* root would not be refused */
		char path[256];

		path_of(t, "/dev/vfio/27", path);
		chmod(path, 0400);
		refused(t, NIC, "Permission denied; give it to the user");
	}
}

static void huge_free__all_sizes(void **state)
{
	struct tree *t = *state;

	assert_int_equal(sw_pci_huge_free(t->root), 0);
	file(t, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
		"3\n");
	file(t, "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages",
		"1\n");
	assert_int_equal(sw_pci_huge_free(t->root), (3ull << 21) + (1 << 30));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, tree_up, tree_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(check__no_such_device),
		CASE(check__no_network_device),
		CASE(check__bound_to_another_driver),
		CASE(check__a_driver_that_shares),
		CASE(check__vfio),
		CASE(huge_free__all_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
