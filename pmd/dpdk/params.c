/* params.c - a port's parameters: types, defaults, checks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/base/error.h"
#include "pmd/dpdk/fault.h"
#include "pmd/dpdk/netif.h"
#include "pmd/dpdk/params.h"

enum { NAME_MAX_BYTES = 31, SLOTS_MAX = 16384 };

const struct port_type *const sw_port_types[SW_DPDK_N_TYPES] = {
	[SW_DPDK_MEMIF] = &sw_dpdk_memif,
	[SW_DPDK_AF_PACKET] = &sw_dpdk_af_packet,
	[SW_DPDK_AF_XDP] = &sw_dpdk_af_xdp,
	[SW_DPDK_PCI] = &sw_dpdk_pci,
	[SW_DPDK_VDEV] = &sw_dpdk_vdev,
	[SW_DPDK_UDP] = &sw_dpdk_udp,
};

int sw_dpdk_type_find(const char *name)
{
	for (int i = 0; i < SW_DPDK_N_TYPES; i++)
		if (!strcmp(sw_port_types[i]->name, name))
			return i;
	return SW_ENOENT;
}

void sw_dpdk_port_params_init(struct sw_dpdk_port_params *p)
{
	*p = (struct sw_dpdk_port_params){
		.type = SW_DPDK_MEMIF,
		.n_udp = 1,
		.n_ways = 1,
		.n_queues = 1,
		.n_link_queues = 1,
		.payload_bytes = SW_PAYLOAD_MAX,
		.side = SW_DPDK_LISTEN,
		.trusted_uid = UINT32_MAX,
		.prefix_bits = 24,
	};
}

uint32_t sw_dpdk_port_payload(uint32_t mtu, struct sw_ip ip)
{
	uint32_t rest = packet_rest(ip);

	return sw_payload_within(mtu > rest ? mtu - rest : 0);
}

static int name_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const char *name = p->name ? p->name : "";

	if (name[0] && strlen(name) <= NAME_MAX_BYTES &&
		!name[strspn(name, ok)])
		return 0;
	sw_log(log, SW_LOG_ERROR,
		"port name \"%s\": 1 to %d letters, digits, -, _ and . "
		"expected",
		name, NAME_MAX_BYTES);
	return SW_ECONF;
}

int sw_dpdk_params_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log)
{
	const char *what = NULL;

	if (name_check(p, log))
		return SW_ECONF;
	if ((uint32_t)p->type >= SW_DPDK_N_TYPES) {
		sw_log(log, SW_LOG_ERROR, "port %s: unknown type", p->name);
		return SW_ECONF;
	}
	if (sw_ip_is_none(p->ip) || !p->udp || !p->n_udp || !p->n_ways)
		what = "an address and a UDP port are needed";
	else if (p->udp + p->n_udp * p->n_ways > 65536)
		what = "its UDP ports exceed 65535";
	else if (!sw_payload_is_good(p->payload_bytes))
		what = "payload: a multiple of 64 from 1152 to 8192 expected";
	else if (p->prefix_bits < 1 || p->prefix_bits >= sw_ip_bits(p->ip))
		what = "prefix of at least 1 bit, and fewer than the address "
		       "has, expected";
	else if (p->vlan > 4094)
		what = "VLAN of 1 to 4094, or 0 for none, expected";
	else if (p->ring_slots && (p->ring_slots < SW_DPDK_SLOTS_MIN ||
					  p->ring_slots > SLOTS_MAX ||
					  p->ring_slots & (p->ring_slots - 1)))
		what = "ring slots: a power of two from 16 to 16384 expected";
	if (p->burst > SW_RX_BURST)
		what = "burst: at most 64 expected";
	if (!p->n_link_queues || p->n_link_queues > p->n_queues)
		what = "a memif has at least one queue pair, and at most one "
		       "per lcore";
	if (!p->n_queues || p->n_queues > SW_DPDK_QUEUES)
		what = "1 to 16 queue pairs expected";
	if (sw_port_types[p->type]->is_kernel && sw_dpdk_faults_is_set(p))
		what = "type = udp cannot inject faults (fault_loss, "
		       "fault_dup, fault_reorder): use another type";
	if (p->n_udp > SW_DPDK_ENDPOINTS)
		what = "at most 32 UDP ports expected";
	if (!what)
		return 0;
	sw_log(log, SW_LOG_ERROR, "port %s: %s", p->name, what);
	return SW_ECONF;
}

static int address_missing(const struct sw_dpdk_port_params *p,
	const char *device, const struct sw_log *log)
{
	char ip[SW_IP_TEXT];

	sw_log(log, SW_LOG_ERROR,
		"port %s: the kernel does not have our address %s%s%s; "
		"type = udp needs it there (ip address add)",
		p->name, sw_ip_text(p->ip, ip), device ? " on " : "",
		device ? device : "");
	return SW_ECONF;
}

/* Check that the named interface has the address of a kernel socket port, or
 * find the interface if the parameters name none. */
int sw_dpdk_address_find(struct sw_dpdk_port_params *p,
	const struct sw_log *log, char *name, size_t size)
{
	const char *device = p->device && *p->device ? p->device : NULL;

	if (!sw_netif_of_ip(p->ip, device, name, size) ||
		(device && strcmp(device, name) != 0))
		return address_missing(p, device, log);
	p->device = name;
	return 0;
}

/* Check the kernel's interface; lower @payload to fit its MTU. */
int sw_dpdk_interface_check(const struct sw_dpdk_port_params *p,
	const struct sw_log *log, uint32_t *if_index, uint32_t *payload)
{
	struct sw_netif now;
	char text[256];

	if (!p->device || sw_netif_get(p->device, &now)) {
		sw_netif_names(text, sizeof(text));
		sw_log(log, SW_LOG_ERROR,
			"port %s: there is no interface \"%s\"; this machine "
			"has: %s",
			p->name, p->device ? p->device : "", text);
		return SW_ECONF;
	}
	*if_index = now.index;
	*payload = RTE_MIN(*payload, sw_dpdk_port_payload(now.mtu, p->ip));
	if (sw_port_types[p->type]->payload_max)
		*payload =
			RTE_MIN(*payload, sw_port_types[p->type]->payload_max);
	if (!*payload) {
		sw_log(log, SW_LOG_ERROR,
			"port %s: %s has an MTU of %u; the smallest frames "
			"need %u",
			p->name, p->device, now.mtu,
			SW_PAYLOAD_MIN + packet_rest(p->ip));
		return SW_ECONF;
	}
	if (!sw_port_types[p->type]->is_kernel &&
		sw_netif_of_ip(p->ip, NULL, text, sizeof(text)))
		sw_log(log, SW_LOG_WARN,
			"port %s: the kernel has our address on %s too and "
			"answers our peers with ICMP errors; remove it (ip "
			"address del)",
			p->name, text);
	return 0;
}
