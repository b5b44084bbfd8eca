/* device.c - make, configure and remove the DPDK device of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>

#include "engine/base/error.h"
#include "pmd/dpdk/device.h"
#include "pmd/dpdk/fault.h"
#include "pmd/dpdk/netif.h"
#include "pmd/dpdk/pool.h"
#include "pmd/dpdk/steer.h"

static int refused(const struct port *p, const char *what, int ret)
{
	char lacks[256] = "";

	if (ret == -EFAULT) /* from rte_eal_hotplug_add */
		snprintf(lacks, sizeof(lacks),
			"DPDK has no such driver here (in the command of a "
			"wheel it has memif and af_packet alone)");
	else if (p->type->missing)
		p->type->missing(&p->params, sw_dpdk_port_bytes(&p->params),
			lacks, sizeof(lacks));
	sw_log(p->log, SW_LOG_ERROR, "port %s: dpdk refuses %s: %s%s%s",
		p->params.name, what, rte_strerror(-ret), *lacks ? "; " : "",
		lacks);
	return SW_EIO;
}

static const char *bus_of(const struct port *p)
{
	return p->type->bus ? p->type->bus : "vdev";
}

static int name_device(struct port *p)
{
	int n;

	if (p->type->bus)
		n = asprintf(&p->dev_name, "%s", p->params.device);
	else
		n = asprintf(&p->dev_name, "net_%s%u", p->type->name, p->index);
	if (n >= 0)
		return 0;
	p->dev_name = NULL;
	return SW_ENOMEM;
}

/* Find the first ethdev of the device @p->dev_name. Search by device, because
 * each driver names its ethdevs differently. */
static bool has_ethdev(struct port *p)
{
	struct rte_eth_dev_info info;
	uint16_t i;

	RTE_ETH_FOREACH_DEV(i)
	{
		if (rte_eth_dev_info_get(i, &info) || !info.device ||
			strcmp(rte_dev_name(info.device), p->dev_name) != 0)
			continue;
		p->eth_i = i;
		return true;
	}
	return false;
}

static int device_add(struct port *p)
{
	char args[512], what[600];
	int err = p->type->devargs(&p->params, p->params.payload_bytes, p->log,
		args, sizeof(args));

	if (!err)
		err = name_device(p);
	if (err)
		return err;
	err = rte_eal_hotplug_add(bus_of(p), p->dev_name, args);
	if (!err && has_ethdev(p))
		return 0;
	snprintf(what, sizeof(what), "%s with %s", p->dev_name,
		*args ? args : "no arguments");
	refused(p, what, err);
	free(p->dev_name);
	p->dev_name = NULL;
	return SW_EIO;
}

/* Set our own addresses on the port. */
static int name_ourselves(struct port *p)
{
	const struct sw_dpdk_port_params *c = &p->params;
	struct rte_ether_addr mac;
	bool is_sum_later = p->me.is_sum_later, has_sum = p->me.has_udp_sum;
	uint64_t m = sw_mac_of_ip(c->ip);

	if (!p->type->is_link) {
		if (rte_eth_macaddr_get(p->eth_i, &mac))
			return SW_EIO;
		m = sw_mac_load(mac.addr_bytes);
		sw_neigh_init(p->neigh, m, c->ip, c->prefix_bits, c->gateway);
	}
	sw_outer_init(&p->me, m, c->ip, c->udp, c->vlan);
	p->me.is_sum_later = is_sum_later;
	p->me.has_udp_sum = has_sum;
	p->me.n_udp = c->n_udp;
	p->me.n_ways = c->n_ways;
	p->head_bytes = p->me.n_bytes + SW_HEAD_BYTES;
	p->must_sum = !sw_ip_is_v4(c->ip) && !has_sum;
	return 0;
}

static int queue_setup(struct port *p, uint16_t i)
{
	unsigned int node = (unsigned int)sw_dpdk_port_node(p);
	int ret = rte_eth_rx_queue_setup(
		p->eth_i, i, p->n_rx_slots, node, NULL, p->queues[i]->rx_pool);

	return ret ? ret
		   : rte_eth_tx_queue_setup(
			     p->eth_i, i, p->n_tx_slots, node, NULL);
}

/* Set up all queue pairs and, if it must change, a NIC's MTU. memif and
 * af_packet refuse an MTU above 1500 although they carry frames of any size
 * that fits their buffers. */
static int queues_open(struct port *p)
{
	int ret = rte_eth_dev_configure(
		p->eth_i, p->n_queues, p->n_queues, &p->conf);
	char what[64];

	if (!ret && p->is_mtu_new)
		ret = rte_eth_dev_set_mtu(p->eth_i, p->mtu);
	if (ret == -ENOTSUP)
		ret = 0; /* keep the configured MTU */
	for (uint16_t i = 0; i < p->n_queues && !ret; i++)
		ret = queue_setup(p, i);
	if (!ret)
		return name_ourselves(p);
	snprintf(what, sizeof(what), "%u queue pairs, rings of %u slots",
		p->n_queues, p->params.ring_slots);
	return refused(p, what, ret);
}

int sw_dpdk_device_make(struct port *p)
{
	int err = device_add(p);

	if (!err)
		err = sw_dpdk_steer_plan(p);
	if (!err)
		err = sw_dpdk_caps_take(p);
	if (err)
		sw_dpdk_device_close(p);
	return err;
}

int sw_dpdk_device_open(struct port *p)
{
	int err = queues_open(p);

	for (uint16_t i = 0; i < p->n_queues && !err; i++)
		err = sw_dpdk_faults_open(p->queues[i]);
	if (err)
		sw_dpdk_device_close(p);
	return err;
}

int sw_dpdk_device_start(struct port *p)
{
	/* the watch starts the device of a dialling end when it dials */
	bool is_dialled = p->type->is_link && p->params.side != SW_DPDK_LISTEN;
	int ret = is_dialled ? 0 : rte_eth_dev_start(p->eth_i);

	p->is_started = !is_dialled && !ret;
	/* Neighbour solicitations arrive by multicast. A driver that supports
	 * neither mode receives all frames anyway. */
	if (p->neigh && !sw_ip_is_v4(p->params.ip) && !ret &&
		rte_eth_allmulticast_enable(p->eth_i))
		rte_eth_promiscuous_enable(p->eth_i);
	if (!ret)
		return sw_dpdk_steer_start(p);
	sw_log(p->log, SW_LOG_ERROR, "port %s: does not start: %s",
		p->params.name, rte_strerror(-ret));
	return SW_EIO;
}

void sw_dpdk_device_close(struct port *p)
{
	if (!p->dev_name)
		return;
	for (uint16_t i = 0; i < p->n_queues; i++)
		if (p->queues[i])
			sw_dpdk_faults_close(p->queues[i]);
	for (uint16_t i = 0; i < SW_DPDK_QUEUES; i++)
		atomic_store(&p->wake_fds[i], -1);
	rte_eth_dev_stop(p->eth_i);
	rte_eal_hotplug_remove(bus_of(p), p->dev_name);
	if (p->type->removed && p->claim_path)
		p->type->removed(p->claim_path);
	free(p->dev_name);
	p->dev_name = NULL;
}
