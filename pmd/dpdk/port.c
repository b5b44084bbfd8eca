/* port.c - open, close and counters of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/port.h"

#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "engine/base/error.h"
#include "pmd/dpdk/netif.h"
#include "pmd/dpdk/port_int.h"

enum { NAME_MAX_BYTES = 31, SLOTS_MIN = 16, SLOTS_MAX = 16384 };

const struct port_type *const sw_port_types[SW_DPDK_N_TYPES] = {
	[SW_DPDK_MEMIF] = &sw_dpdk_memif,
	[SW_DPDK_AF_PACKET] = &sw_dpdk_af_packet,
	[SW_DPDK_AF_XDP] = &sw_dpdk_af_xdp,
	[SW_DPDK_PCI] = &sw_dpdk_pci,
	[SW_DPDK_VDEV] = &sw_dpdk_vdev,
	[SW_DPDK_UDP] = &sw_dpdk_udp,
};

const struct sw_dpdk_counter sw_dpdk_counters[SW_DPDK_N_COUNTERS] = {
#define SW_DPDK_COUNTER(name, text) {#name, text},
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
};

_Static_assert(sizeof(struct sw_dpdk_port_stats) ==
		       SW_DPDK_N_COUNTERS * sizeof(uint64_t),
	"stats are an array of numbers");

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
		.is_listener = true,
		.trusted_uid = UINT32_MAX,
		.prefix_bits = 24,
	};
}

uint32_t sw_dpdk_port_payload(uint32_t mtu)
{
	static const uint32_t classes[] = {SW_PAYLOAD_MAX, 3328, 1344};

	for (uint32_t i = 0; i < 3; i++)
		if (classes[i] + PACKET_REST_BYTES <= mtu)
			return classes[i];
	return 0;
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

static int params_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log)
{
	const char *what = NULL;

	if (name_check(p, log))
		return SW_ECONF;
	if ((uint32_t)p->type >= SW_DPDK_N_TYPES) {
		sw_log(log, SW_LOG_ERROR, "port %s: unknown type", p->name);
		return SW_ECONF;
	}
	if (!p->ip || !p->udp || !p->n_udp || !p->n_ways)
		what = "an IPv4 address and a UDP port are needed";
	else if (p->udp + p->n_udp * p->n_ways > 65536)
		what = "its UDP ports go beyond 65535";
	else if (!sw_port_is_class(p->payload_bytes))
		what = "payload of 1344, 3328 or 8192 bytes expected";
	else if (p->prefix_bits < 1 || p->prefix_bits > 31)
		what = "prefix of 1 to 31 bits expected";
	else if (p->vlan > 4094)
		what = "VLAN of 1 to 4094, or 0 for none, expected";
	else if (p->ring_slots &&
		 (p->ring_slots < SLOTS_MIN || p->ring_slots > SLOTS_MAX ||
			 p->ring_slots & (p->ring_slots - 1)))
		what = "ring slots: a power of two from 16 to 16384 expected";
	if (p->burst > SW_RX_BURST)
		what = "burst: at most 64 expected";
	if (!p->n_link_queues || p->n_link_queues > p->n_queues)
		what = "a memif has at least one queue pair, and no more than "
		       "there are lcores";
	if (!p->n_queues || p->n_queues > SW_DPDK_QUEUES)
		what = "1 to 16 queue pairs expected";
	if (sw_port_types[p->type]->is_kernel &&
		sw_dpdk_faults_is_set(&p->faults))
		what = "type = udp injects no faults (fault_loss, fault_dup, "
		       "fault_reorder): take another type";
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

/* The kernel's sockets need its address: find where, if nobody said. */
static int address_find(struct sw_dpdk_port_params *p, const struct sw_log *log,
	char *name, size_t size)
{
	const char *device = p->device && *p->device ? p->device : NULL;

	if (!sw_netif_of_ip(p->ip, device, name, size) ||
		(device && strcmp(device, name) != 0))
		return address_missing(p, device, log);
	p->device = name;
	return 0;
}

/* What the kernel says of the interface; @payload becomes what fits it. */
static int interface_check(const struct sw_dpdk_port_params *p,
	const struct sw_log *log, uint32_t *if_index, uint32_t *payload)
{
	struct sw_netif now;
	char text[256];

	if (!p->device || sw_netif_get(p->device, &now)) {
		sw_netif_names(text, sizeof(text));
		sw_log(log, SW_LOG_ERROR,
			"port %s: there is no interface \"%s\"; those here: %s",
			p->name, p->device ? p->device : "", text);
		return SW_ECONF;
	}
	*if_index = now.index;
	*payload = RTE_MIN(*payload, sw_dpdk_port_payload(now.mtu));
	if (sw_port_types[p->type]->payload_max)
		*payload =
			RTE_MIN(*payload, sw_port_types[p->type]->payload_max);
	if (!*payload) {
		sw_log(log, SW_LOG_ERROR,
			"port %s: %s has an MTU of %u; the smallest frame "
			"class needs %u",
			p->name, p->device, now.mtu, 1344 + PACKET_REST_BYTES);
		return SW_ECONF;
	}
	if (!sw_port_types[p->type]->is_kernel &&
		sw_netif_of_ip(p->ip, NULL, text, sizeof(text)))
		sw_log(log, SW_LOG_WARN,
			"port %s: the kernel has our address on %s too and "
			"answers our peers with ICMP errors; take it away "
			"(ip address del)",
			p->name, text);
	return 0;
}

static int claim(struct port *p, const struct sw_dpdk_port_params *params)
{
	if (!p->type->claim)
		return 0;
	p->claim_path = strdup(params->socket_path);
	if (!p->claim_path)
		return SW_ENOMEM;
	return p->type->claim(params, p->log, &p->claim_fd);
}

static void unclaim(struct port *p)
{
	if (p->claim_fd >= 0)
		p->type->unclaim(p->claim_path, p->claim_fd);
	free(p->claim_path);
}

static void port_delete(struct port *p)
{
	for (uint32_t i = 0; i < SW_DPDK_QUEUES; i++)
		rte_free(p->queues[i]);
	free((void *)(uintptr_t)p->params.name);
	free((void *)(uintptr_t)p->params.socket_path);
	free((void *)(uintptr_t)p->params.device);
	free((void *)(uintptr_t)p->params.args);
	rte_free(p->arp);
	rte_free(p);
}

/* Slots of a queue's rings where nobody says how many. */
static uint32_t slots_of(const struct port_type *type, uint32_t n_queues)
{
	uint32_t n = type->ring_slots;

	while (type->is_locked && n_queues > 1 && n > SLOTS_MIN) {
		n /= 2;
		n_queues = (n_queues + 1) / 2;
	}
	return n;
}

/* Texts that outlive the caller's. */
static int params_copy(struct port *p, const struct sw_dpdk_port_params *params)
{
	struct sw_dpdk_port_params *c = &p->params;

	*c = *params;
	c->name = strdup(params->name);
	c->socket_path = strdup(params->socket_path ? params->socket_path : "");
	c->device = strdup(params->device ? params->device : "");
	c->args = strdup(params->args ? params->args : "");
	if (p->type->is_link)
		c->n_queues = c->n_link_queues;
	else if (c->steering == SW_STEER_HANDOFF)
		c->n_queues = 1;
	if (!c->ring_slots)
		c->ring_slots = slots_of(p->type, c->n_queues);
	if (!c->burst)
		c->burst = p->type->burst;
	return c->name && c->socket_path && c->device && c->args ? 0
								 : SW_ENOMEM;
}

static bool has_arp(const struct port_type *t)
{
	return !t->is_link && !t->is_kernel;
}

static struct port *port_new(const struct sw_dpdk_port_params *params,
	uint16_t index, const struct sw_log *log)
{
	struct port *p = rte_zmalloc("port", sizeof(*p), 64);

	if (!p)
		return NULL;
	p->type = sw_port_types[params->type];
	if (has_arp(p->type))
		p->arp = rte_zmalloc("arp", sizeof(*p->arp), 64);
	if (params_copy(p, params) || (has_arp(p->type) && !p->arp)) {
		port_delete(p);
		return NULL;
	}
	p->log = log;
	p->claim_fd = -1;
	p->index = index;
	p->n_lcores = params->n_queues;
	p->burst = (uint16_t)p->params.burst;
	p->frame_max = FRAME_REST_BYTES + params->payload_bytes;
	for (uint32_t i = 0; i < SW_DPDK_QUEUES; i++)
		atomic_store(&p->wake_fds[i], -1);
	return p;
}

static int queue_new(struct port *p, uint16_t i)
{
	struct queue *q = rte_zmalloc("queue", sizeof(*q), 64);

	if (!q)
		return SW_ENOMEM;
	p->queues[i] = q;
	q->base = (struct sw_port){.ops = &sw_dpdk_ops,
		.name = p->params.name,
		.ip = p->params.ip,
		.max_payload = p->params.payload_bytes};
	q->port = p;
	q->index = i;
	rte_mbuf_ext_refcnt_set(&q->shinfo, 1);
	return 0;
}

static int queues_new(struct port *p)
{
	int err = 0;

	for (uint16_t i = 0; i < p->n_queues && !err; i++)
		err = queue_new(p, i);
	return err;
}

/* Everything that can fail, in this order. */
static int sockets_fill(struct port *p)
{
	int err;

	sw_udp_plan(p);
	err = queues_new(p);
	if (!err)
		err = sw_udp_open(p);
	if (!err)
		err = sw_dpdk_steer_start(p);
	if (!err)
		err = sw_dpdk_watch_start(p);
	if (err)
		sw_udp_close(p);
	return err;
}

static int device_fill(struct port *p)
{
	int err = claim(p, &p->params);

	if (!err)
		err = sw_dpdk_device_make(p);
	if (!err)
		err = queues_new(p);
	if (!err)
		err = sw_dpdk_pools_open(p);
	if (!err)
		err = sw_dpdk_device_open(p);
	if (!err)
		err = sw_dpdk_device_start(p);
	if (!err)
		err = sw_dpdk_watch_start(p);
	if (!err)
		return 0;
	sw_dpdk_device_close(p);
	sw_dpdk_pools_close(p);
	return err;
}

int sw_dpdk_port_open(const struct sw_dpdk_port_params *params, uint16_t index,
	const struct sw_log *log, struct sw_port **out)
{
	struct sw_dpdk_port_params fit = *params;
	uint32_t if_index = 0;
	struct port *p;
	char name[64];
	int err = params_check(params, log);

	if (!err && sw_port_types[params->type]->is_kernel)
		err = address_find(&fit, log, name, sizeof(name));
	if (!err && !sw_port_types[params->type]->is_link &&
		!sw_port_types[params->type]->is_nic)
		err = interface_check(&fit, log, &if_index, &fit.payload_bytes);
	if (err)
		return err;
	p = port_new(&fit, index, log);
	if (!p)
		return SW_ENOMEM;
	p->if_index = if_index;
	err = p->type->is_kernel ? sockets_fill(p) : device_fill(p);
	if (err) {
		unclaim(p);
		port_delete(p);
		return err;
	}
	for (uint32_t i = 0; i < p->n_queues; i++)
		p->queues[i]->base.steering = p->steering;
	*out = &p->queues[0]->base;
	return 0;
}

struct sw_port *sw_dpdk_port_queue(const struct sw_port *first, uint32_t i)
{
	const struct port *p = port_of(first);

	return i < p->n_queues ? &p->queues[i]->base : NULL;
}

void sw_dpdk_port_close(struct sw_port **base)
{
	struct port *p;

	if (!*base)
		return;
	p = port_of(*base);
	sw_dpdk_watch_stop(p);
	for (uint32_t i = 0; i < p->n_queues; i++) {
		struct queue *q = p->queues[i];

		rte_pktmbuf_free_bulk(q->rx_held, q->n_rx_held);
		rte_pktmbuf_free_bulk(q->tx_held, q->n_tx_held);
	}
	sw_udp_close(p);
	sw_dpdk_pools_close(p);
	unclaim(p);
	port_delete(p);
	*base = NULL;
}

bool sw_dpdk_port_is_up(const struct sw_port *base)
{
	return port_is_up(port_of(base));
}

uint32_t sw_dpdk_port_wake_fds(
	const struct sw_port *base, int fds[], uint32_t max)
{
	const struct queue *q = (const struct queue *)base;
	int fd;

	if (!port_is_up(q->port))
		return 0;
	if (q->udp)
		return sw_udp_fds(q, fds, max);
	fd = atomic_load(&q->port->wake_fds[q->index]);
	if (fd < 0)
		return 0;
	if (max)
		fds[0] = fd;
	return 1;
}

uint32_t sw_dpdk_port_slots(const struct sw_port *base)
{
	return port_of(base)->params.ring_slots * port_of(base)->n_queues;
}

bool sw_dpdk_port_is_drained(struct sw_port *base)
{
	struct queue *q = queue_of(base);

	if (!q->port->type->is_sync)
		rte_eth_tx_done_cleanup(q->port->eth_i, q->index, 0);
	return rte_mbuf_ext_refcnt_read(&q->shinfo) == 1;
}

void sw_dpdk_port_stats_get(
	const struct sw_port *base, struct sw_dpdk_port_stats *out)
{
	const struct queue *q = (const struct queue *)base;
	uint64_t *to = (uint64_t *)out;

	for (uint32_t i = 0; i < SW_DPDK_N_COUNTERS; i++)
		to[i] = atomic_load_explicit(
			&q->counters[i], memory_order_relaxed);
}
