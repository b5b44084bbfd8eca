/* pci.c - check whether DPDK may use a PCI device.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/pci.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"

enum { PATH_BYTES = 512, NETWORK = 0x02 };

#define DEVICES "/sys/bus/pci/devices"
#define HUGE    "/sys/kernel/mm/hugepages"

/* Return the number in a sysfs file; 0 if there is no such file. */
static uint64_t number_in(const char *path)
{
	FILE *f = fopen(path, "r");
	char text[32] = "";

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strtoull(text, NULL, 0);
}

static uint32_t class_of(const char *root, const char *address)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s" DEVICES "/%s/class", root, address);
	return (uint32_t)number_in(path) >> 16;
}

/* Write the last path component of the target of the device's link @name to
 * @out; "" if there is no link. */
static void link_end(const char *root, const char *address, const char *name,
	char *out, size_t size)
{
	char path[PATH_BYTES], to[PATH_BYTES];
	const char *end;
	ssize_t n;

	snprintf(
		path, sizeof(path), "%s" DEVICES "/%s/%s", root, address, name);
	n = readlink(path, to, sizeof(to) - 1);
	to[n < 0 ? 0 : n] = '\0';
	end = strrchr(to, '/');
	snprintf(out, size, "%.*s", (int)size - 1, end ? end + 1 : to);
}

/* List network devices, as "0000:03:00.0, 0000:03:00.1". */
static void names(const char *root, char *out, size_t size)
{
	char path[PATH_BYTES];
	const struct dirent *e;
	size_t at = 0;
	DIR *dir;

	snprintf(out, size, "none");
	snprintf(path, sizeof(path), "%s" DEVICES, root);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && at < size)
		if (e->d_name[0] != '.' && class_of(root, e->d_name) == NETWORK)
			at += (size_t)snprintf(out + at, size - at, "%s%s",
				at ? ", " : "", e->d_name);
	if (dir)
		closedir(dir);
}

static bool exists(const char *root, const char *address)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s" DEVICES "/%s", root, address);
	return !access(path, F_OK);
}

/* Return whether the kernel and DPDK can share a device of @driver. */
static bool is_shared(const char *driver)
{
	return !strcmp(driver, "mlx5_core") || !strcmp(driver, "mlx4_core");
}

static int vfio_check(
	const char *root, const char *address, char *why, size_t size)
{
	char path[PATH_BYTES], group[32];

	link_end(root, address, "iommu_group", group, sizeof(group));
	snprintf(path, sizeof(path), "%s/dev/vfio/%s", root, group);
	if (!*group)
		snprintf(why, size,
			"%s is in no IOMMU group: enable the IOMMU in the "
			"firmware and with intel_iommu=on or amd_iommu=on at "
			"boot",
			address);
	else if (access(path, R_OK | W_OK))
		snprintf(why, size,
			"%s is in IOMMU group %s, but %s: %s; give it to the "
			"user of this process (chown)",
			address, group, path, strerror(errno));
	else
		return 0;
	return SW_ECONF;
}

int sw_pci_check(const char *root, const char *address, char *why, size_t size)
{
	char text[256];

	if (!exists(root, address)) {
		names(root, text, sizeof(text));
		snprintf(why, size,
			"there is no PCI device %s; network devices here: %s",
			address, text);
		return SW_ECONF;
	}
	if (class_of(root, address) != NETWORK) {
		snprintf(why, size,
			"PCI device %s is not a network device "
			"(%02x)",
			address, class_of(root, address));
		return SW_ECONF;
	}
	link_end(root, address, "driver", text, sizeof(text));
	if (!strcmp(text, "vfio-pci"))
		return vfio_check(root, address, why, size);
	if (is_shared(text))
		return 0;
	snprintf(why, size,
		"PCI device %s is bound to %s%s: bind it to vfio-pci "
		"(dpdk-devbind.py --bind=vfio-pci %s); mlx5_core and mlx4_core "
		"may stay",
		address, *text ? "the kernel's driver " : "no driver", text,
		address);
	return SW_ECONF;
}

uint64_t sw_pci_huge_free(const char *root)
{
	char path[PATH_BYTES];
	const struct dirent *e;
	uint64_t bytes = 0, kib;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" HUGE, root);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, "hugepages-", 10) != 0)
			continue;
		kib = strtoull(e->d_name + 10, NULL, 10);
		snprintf(path, sizeof(path), "%s" HUGE "/%s/free_hugepages",
			root, e->d_name);
		bytes += number_in(path) * kib << 10;
	}
	if (dir)
		closedir(dir);
	return bytes;
}
