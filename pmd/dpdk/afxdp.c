/* afxdp.c - the af_xdp driver's settings; the kernel shares its buffers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include <rte_log.h>

#include "pmd/dpdk/netif.h"
#include "pmd/dpdk/port_int.h"
#include "pmd/dpdk/rights.h"

enum {
	LENT = 2048, /* receive buffers that the driver lends to the kernel */
	/* A frame fits one page. The kernel reserves 256 bytes before it, and
	 * veth reserves a socket buffer's tail (skb_shared_info) after it. */
	MTU_MAX = 3498,
};

/* Write the messages of libxdp and libbpf to DPDK's log instead of stderr. Only
 * the driver links these libraries, so redirect() looks their setters up at run
 * time. */
static int say(int level, const char *format, va_list args)
{
	(void)level;
	return rte_vlog(RTE_LOG_NOTICE, RTE_LOGTYPE_EAL, format, args);
}

static void redirect(const char *library, const char *setter)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	void *(*set)(int (*)(int, const char *, va_list));

	if (!lib)
		return;
	*(void **)&set = dlsym(lib, setter);
	if (set)
		set(say);
	dlclose(lib);
}

static int devargs(const struct sw_dpdk_port_params *p, uint32_t payload,
	const struct sw_log *log, char *args, size_t size)
{
	uint32_t n = sw_netif_queues(p->device);

	(void)payload;
	if (n > 1)
		sw_log(log, SW_LOG_WARN,
			"port %s: af_xdp receives only from queue 0, "
			"and %s has %u: ethtool -L %s combined 1",
			p->name, p->device, n, p->device);
	if (p->vlan && sw_netif_strips_tags(p->device))
		sw_log(log, SW_LOG_WARN,
			"port %s: %s may take VLAN tags off, which XDP then "
			"does not see: ethtool -K %s rxvlan off (of a veth: "
			"txvlan off at its other end)",
			p->name, p->device, p->device);
	redirect("libxdp.so.1", "libxdp_set_print");
	redirect("libbpf.so.1", "libbpf_set_print");
	/* The driver's busy polling costs a system call per empty poll. */
	snprintf(args, size,
		"iface=%s,start_queue=0,queue_count=1,busy_budget=0",
		p->device);
	return 0;
}

static void missing(const struct sw_dpdk_port_params *p, uint64_t bytes,
	char *out, size_t size)
{
	struct sw_netif now;

	if (!sw_netif_get(p->device, &now) && now.mtu > MTU_MAX)
		snprintf(out, size,
			"with XDP a frame fits a page, but %s has an MTU of "
			"%u: at most %d, which carries a payload of %u",
			p->device, now.mtu, MTU_MAX,
			sw_dpdk_af_xdp.payload_max);
	else
		sw_rights_xdp(bytes, out, size);
}

const struct port_type sw_dpdk_af_xdp = {
	.name = "af_xdp",
	.devargs = devargs,
	.missing = missing,
	.n_lent = LENT,
	.payload_max = 3328,
	.ring_slots = 256,
	.burst = 16,
	.is_sync = true,
	.max_queues = 1,
};
