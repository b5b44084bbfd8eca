/* port.c - open, close and counters of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/port.h"

#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "engine/base/error.h"
#include "engine/base/stats.h"
#include "pmd/dpdk/device.h"
#include "pmd/dpdk/io.h"
#include "pmd/dpdk/params.h"
#include "pmd/dpdk/pool.h"
#include "pmd/dpdk/steer.h"
#include "pmd/dpdk/udp.h"
#include "pmd/dpdk/watch.h"

const struct sw_dpdk_counter sw_dpdk_counters[SW_DPDK_N_COUNTERS] = {
#define SW_DPDK_COUNTER(name, unit, text) {#name, unit, text},
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
};

_Static_assert(sizeof(struct sw_dpdk_port_stats) ==
		       SW_DPDK_N_COUNTERS * sizeof(uint64_t),
	"stats are an array of numbers");

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
	rte_free(p->neigh);
	rte_free(p);
}

/* Return the default number of slots of a queue's rings. If rings are locked
 * memory, which is scarce, more queue pairs have smaller rings. */
static uint32_t slots_of(const struct port_type *type, uint32_t n_queues)
{
	uint32_t n = type->ring_slots;

	while (type->is_locked && n_queues > 1 && n > SW_DPDK_SLOTS_MIN) {
		n /= 2;
		n_queues = (n_queues + 1) / 2;
	}
	return n;
}

/* Copy the parameters with their texts, and fill in defaults. */
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

static bool has_neighbours(const struct port_type *t)
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
	if (has_neighbours(p->type))
		p->neigh = rte_zmalloc("neigh", sizeof(*p->neigh), 64);
	if (params_copy(p, params) || (has_neighbours(p->type) && !p->neigh)) {
		port_delete(p);
		return NULL;
	}
	pthread_mutex_init(&p->device_lock, NULL);
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
		.udp = p->params.udp,
		.max_payload = p->params.payload_bytes,
		.is_trusted = p->params.is_trusted};
	q->port = p;
	q->index = i;
	queue_refs_init(q);
	return 0;
}

static int queues_new(struct port *p)
{
	int err = 0;

	for (uint16_t i = 0; i < p->n_queues && !err; i++)
		err = queue_new(p, i);
	return err;
}

/* Open the sockets and start the watch; undo all on an error. */
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
	int err = sw_dpdk_params_check(params, log);

	if (!err && sw_port_types[params->type]->is_kernel)
		err = sw_dpdk_address_find(&fit, log, name, sizeof(name));
	if (!err && !sw_port_types[params->type]->is_link &&
		!sw_port_types[params->type]->is_nic)
		err = sw_dpdk_interface_check(
			&fit, log, &if_index, &fit.payload_bytes);
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
	sw_dpdk_port_set_rate(*out, fit.rate_bit_s);
	return 0;
}

struct sw_port *sw_dpdk_port_queue(const struct sw_port *first, uint32_t i)
{
	const struct port *p = port_of(first);

	return i < p->n_queues ? &p->queues[i]->base : NULL;
}

void sw_dpdk_port_set_rate(struct sw_port *first, uint64_t bit_s)
{
	struct port *p = port_of(first);
	uint64_t each = bit_s / p->n_queues;

	if (bit_s && !each)
		each = 1; /* 0 would mean no limit */
	for (uint32_t i = 0; i < p->n_queues; i++)
		sw_set_word(&p->queues[i]->base.rate_bit_s, each);
}

uint64_t sw_dpdk_port_rate(const struct sw_port *base)
{
	return base ? sw_word(&base->rate_bit_s) : 0;
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

uint32_t sw_dpdk_port_holds(const struct sw_port *base)
{
	return port_of(base)->holds_bytes;
}

uint32_t sw_dpdk_port_slots(const struct sw_port *base)
{
	return port_of(base)->params.ring_slots * port_of(base)->n_queues;
}

static bool has_refs(const struct queue *q, uint32_t epoch)
{
	return rte_mbuf_ext_refcnt_read(&q->refs[epoch & 1]) != 1;
}

bool sw_dpdk_port_is_drained(struct sw_port *base)
{
	struct queue *q = queue_of(base);

	if (!q->port->type->is_sync)
		rte_eth_tx_done_cleanup(q->port->eth_i, q->index, 0);
	return !has_refs(q, 0) && !has_refs(q, 1);
}

uint32_t sw_dpdk_port_mark(const struct sw_port *base)
{
	return ((const struct queue *)base)->epoch;
}

/* Begin an epoch. Drop held frames first: the driver may never accept them, so
 * the last epoch must not wait for them. */
static void next_epoch(struct queue *q)
{
	if (q->udp)
		sw_udp_drop_held(q, SW_DPDK_I_tx_released);
	else
		sw_io_drop_held(q, SW_DPDK_I_tx_released);
	q->epoch++;
}

bool sw_dpdk_port_release(struct sw_port *base, uint32_t mark)
{
	struct queue *q = queue_of(base);

	if (sw_dpdk_port_is_drained(base))
		return true;
	if (q->epoch == mark && !has_refs(q, mark + 1))
		next_epoch(q);
	if (q->epoch == mark)
		return false;
	return q->epoch - mark > 1 || !has_refs(q, mark);
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
