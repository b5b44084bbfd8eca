/* nic.c - ports over NICs and over DPDK's software devices.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * ethdev reports capabilities (caps.c); this file says what a refused NIC
 * lacks. */
#include <stdio.h>

#include "engine/base/error.h"
#include "pmd/dpdk/pci.h"
#include "pmd/dpdk/port_int.h"

/* NICs need receive buffers whose size is a multiple of this. */
enum { RX_UNIT = 1024 };

static int devargs(const struct sw_dpdk_port_params *p, uint32_t payload,
	const struct sw_log *log, char *args, size_t size)
{
	(void)payload;
	(void)log;
	snprintf(args, size, "%s", p->args ? p->args : "");
	return 0;
}

static int pci_check(const struct sw_dpdk_port_params *p,
	const struct sw_log *log, int *fd_out)
{
	char why[512];

	(void)fd_out;
	if (!sw_pci_check("", p->device, why, sizeof(why)))
		return 0;
	sw_log(log, SW_LOG_ERROR, "port %s: %s", p->name, why);
	return SW_ECONF;
}

const struct port_type sw_dpdk_pci = {
	.name = "pci",
	.bus = "pci",
	.devargs = devargs,
	.claim = pci_check,
	.rx_unit = RX_UNIT,
	.ring_slots = 512,
	.burst = 16,
	.is_nic = true,
	.is_dma = true,
};

const struct port_type sw_dpdk_vdev = {
	.name = "vdev",
	.bus = "vdev",
	.devargs = devargs,
	.rx_unit = RX_UNIT,
	.ring_slots = 256,
	.burst = 16,
	.is_nic = true,
};
