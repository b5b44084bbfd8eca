/* daemon_ports.c - a daemon's ports: as configured, each lcore's part of them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "apps/node/daemon.h"
#include "engine/base/error.h"

struct sw_dpdk_port_params sw_daemon_port_params(
	const struct sw_daemon *d, const struct sw_conf_port *c)
{
	static const enum sw_dpdk_type types[] = {
		[SW_PORT_MEMIF] = SW_DPDK_MEMIF,
		[SW_PORT_AF_PACKET] = SW_DPDK_AF_PACKET,
		[SW_PORT_AF_XDP] = SW_DPDK_AF_XDP,
		[SW_PORT_PCI] = SW_DPDK_PCI,
		[SW_PORT_VDEV] = SW_DPDK_VDEV,
		[SW_PORT_UDP] = SW_DPDK_UDP};
	struct sw_dpdk_port_params p;

	sw_dpdk_port_params_init(&p);
	p.name = c->label;
	p.type = types[c->type];
	p.ip = c->subnet.ip;
	p.prefix_bits = c->subnet.bits;
	p.gateway = c->gateway;
	p.vlan = (uint16_t)c->vlan;
	p.device = c->device;
	p.args = c->args;
	p.mtu = c->mtu;
	p.udp = (uint16_t)d->conf.serve.udp_port;
	p.n_udp = (uint16_t)sw_conf_n_udp(&d->conf);
	p.n_ways = (uint16_t)sw_conf_n_ways(&d->conf);
	p.n_queues = (uint16_t)d->n_lcores;
	p.steering = (enum sw_steering)c->steering;
	for (uint32_t e = 0; e < p.n_udp; e++)
		p.owners[e] = (uint8_t)sw_daemon_owner(d, e);
	if (d->conf.job.payload_bytes)
		p.payload_bytes = d->conf.job.payload_bytes;
	p.ring_slots = c->ring;
	p.burst = c->burst;
	p.socket_path = c->socket;
	p.memif_id = c->id;
	p.trusted_uid = d->trusted_uid;
	p.n_link_queues = (uint16_t)c->queues;
	p.is_listener = c->side == SW_SIDE_LISTEN;
	p.faults.drop_percent = c->fault_loss_ppm / 1e4;
	p.faults.duplicate_percent = c->fault_dup_ppm / 1e4;
	p.faults.reorder_percent = c->fault_reorder_ppm / 1e4;
	p.faults.seed = c->fault_seed;
	return p;
}

/* The lcores that have a queue pair share the port's rate equally. */
static int open_port(struct sw_daemon *d, uint32_t i)
{
	struct sw_dpdk_port_params p =
		sw_daemon_port_params(d, &d->conf.ports[i]);
	struct sw_port *q;
	uint32_t n = 0;
	int err = sw_dpdk_port_open(&p, (uint16_t)i, &d->log, &d->queues[0][i]);

	if (err)
		return err;
	d->n_ports = ++d->n_dpdk_ports;
	while (n < d->n_lcores && (q = sw_dpdk_port_queue(d->queues[0][i], n)))
		d->queues[n++][i] = q;
	for (uint32_t k = 0; k < n; k++)
		d->queues[k][i]->rate_bit_s = d->conf.ports[i].rate_bit_s / n;
	return 0;
}

/* Each lcore has its own, so that what it sends to its own server stays. */
static int open_loopbacks(struct sw_daemon *d)
{
	d->loopbacks = malloc(d->n_lcores * sizeof(*d->loopbacks));
	if (!d->loopbacks)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < d->n_lcores; i++) {
		sw_loopback_init(&d->loopbacks[i]);
		d->queues[i][d->n_ports] = sw_loopback_port(&d->loopbacks[i]);
	}
	d->n_ports++;
	return 0;
}

/* The class that all ports carry; where one was asked for, that one. */
static int choose_payload(struct sw_daemon *d)
{
	uint32_t asked = d->conf.job.payload_bytes;

	d->params.payload = SW_PAYLOAD_MAX;
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		uint32_t most = d->queues[0][i]->max_payload;

		if (most < d->params.payload)
			d->params.payload = most;
		if (asked <= most)
			continue;
		sw_log(&d->log, SW_LOG_ERROR,
			"port %s: [job] payload = %u does not fit the MTU of "
			"%s: at most %u; raise the MTU or use a smaller "
			"payload",
			d->conf.ports[i].label, asked, d->conf.ports[i].device,
			most);
		return SW_ECONF;
	}
	if (asked)
		d->params.payload = asked;
	sw_log(&d->log, SW_LOG_INFO, "payload class: %u B", d->params.payload);
	return 0;
}

int sw_daemon_open_ports(struct sw_daemon *d)
{
	int err = 0;

	for (uint32_t i = 0; i < d->conf.n_ports && !err; i++)
		err = open_port(d, i);
	if (!err)
		err = choose_payload(d);
	if (!err && d->conf.node.role == SW_ROLE_BOTH)
		err = open_loopbacks(d);
	return err ? err
		   : sw_handoff_open(&d->handoff, d->n_lcores, d->n_ports,
			     (struct sw_port *const(*)[SW_MAX_PORTS])d->queues);
}

uint32_t sw_daemon_owner(const struct sw_daemon *d, uint32_t endpoint)
{
	uint32_t first = sw_daemon_endpoint(d, 0);

	return endpoint < first ? endpoint : endpoint - first;
}

uint32_t sw_daemon_endpoint(const struct sw_daemon *d, uint32_t lcore)
{
	return (d->conf.node.role == SW_ROLE_AGENT ? 0 : d->conf.serve.lcores) +
	       lcore;
}

bool sw_daemon_release(struct sw_daemon *d, uint32_t lcore)
{
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		if (d->queues[lcore][i] &&
			!sw_dpdk_port_release(d->queues[lcore][i]))
			return false;
	/* Its frames are taken in the next turn, none needs to be dropped. */
	return !d->loopbacks || sw_loopback_is_drained(&d->loopbacks[lcore]);
}
