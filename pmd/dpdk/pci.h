/* pci.h - check whether DPDK may use a PCI device, without DPDK.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_PCI_H
#define SW_PMD_DPDK_PCI_H

#include <stddef.h>
#include <stdint.h>

/* sw_pci_check - check that @address (such as 0000:81:00.0) is a network
 * device, that its driver lets DPDK use it, and that this process has the
 * rights.
 * @root  prefix of /sys and /dev: "", or a test's folder
 * @why   on error, the reason and the remedy; @size bytes
 * Errors: SW_ECONF.  Thread: control. */
int sw_pci_check(const char *root, const char *address, char *why, size_t size);

/* sw_pci_huge_free - return the bytes of free hugepages; @root as above. */
uint64_t sw_pci_huge_free(const char *root);

#endif
