/* pci.h - may DPDK take the PCI device at an address?  No DPDK in here.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_PCI_H
#define SW_PMD_DPDK_PCI_H

#include <stddef.h>
#include <stdint.h>

/* sw_pci_check - is @address (like 0000:81:00.0) a network device that is bound
 * to a driver which lets DPDK have it, and may this process use it?
 * @root  in front of /sys and /dev: "", or a test's folder
 * @why   on error, what is wrong and what would be right; @size bytes
 * Errors: SW_ECONF.  Thread: control. */
int sw_pci_check(const char *root, const char *address, char *why, size_t size);

/* sw_pci_huge_free - bytes of hugepages that nobody uses; @root as above. */
uint64_t sw_pci_huge_free(const char *root);

#endif
