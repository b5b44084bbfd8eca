/* port.c - open, close, link and counters of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "engine/error.h"
#include "pmd/dpdk/gate.h"
#include "pmd/dpdk/port_int.h"

enum {
	DIAL_PERIOD_US = 20 * 1000,
	REMOVE_POLL_US = 100,
	DIAL_PATIENCE_TICKS = 25, /* for an answer, before dialling again */
	NAME_MAX_BYTES = 31,
	POOL_ROOM_BYTES = 1 << 20, /* mempool headers, rings, rounding */
};

static const struct port_type *const port_types[SW_DPDK_N_TYPES] = {
	[SW_DPDK_MEMIF] = &sw_dpdk_memif,
};

const struct sw_dpdk_counter sw_dpdk_counters[SW_DPDK_N_COUNTERS] = {
#define SW_DPDK_COUNTER(name, text) {#name, text},
#include "pmd/dpdk/counters.def"
#undef SW_DPDK_COUNTER
};

_Static_assert(sizeof(struct sw_dpdk_port_stats) ==
		       SW_DPDK_N_COUNTERS * sizeof(uint64_t),
	"stats are an array of numbers");

void sw_dpdk_port_params_init(struct sw_dpdk_port_params *p)
{
	*p = (struct sw_dpdk_port_params){
		.type = SW_DPDK_MEMIF,
		.n_udp = 1,
		.payload_bytes = SW_PAYLOAD_MAX,
		.ring_slots = 64,
		.burst = 16,
		.is_listener = true,
	};
}

/* Sizes of the three pools. */
struct pools {
	uint32_t n_rx, n_head, n_copy;
	uint32_t rx_room, head_room, copy_room; /* bytes per buffer */
};

/* The buffers that can be out at once, and those that a cache withholds. */
static struct pools pools_size(const struct sw_dpdk_port_params *p)
{
	const struct port_type *t = port_types[p->type];
	uint32_t cached = POOL_CACHE * 3 / 2;
	uint32_t in_driver = t->is_sync ? 0 : p->ring_slots;
	uint32_t delayed =
		sw_dpdk_faults_is_set(&p->faults) ? 2 * SW_RX_BURST : 0;
	uint32_t frame = FRAME_HEAD_BYTES + p->payload_bytes + TRAILER_BYTES;

	return (struct pools){
		.n_rx = in_driver + SW_RX_BURST + delayed + cached,
		.n_head = 2 * (in_driver + p->burst) + cached,
		.n_copy = in_driver + p->burst + cached,
		.rx_room = RTE_PKTMBUF_HEADROOM + frame,
		.head_room = RTE_PKTMBUF_HEADROOM + FRAME_HEAD_BYTES,
		.copy_room = RTE_PKTMBUF_HEADROOM + frame,
	};
}

/* Without hugepages a buffer longer than a page is given whole pages. */
static uint64_t pool_bytes(uint32_t n, uint32_t room)
{
	uint64_t each = room + PRIV_BYTES + sizeof(struct rte_mbuf) + 192;

	return n * (each > 2048 ? RTE_ALIGN_CEIL(each, 4096) : each) +
	       POOL_ROOM_BYTES;
}

uint64_t sw_dpdk_port_bytes(const struct sw_dpdk_port_params *p)
{
	struct pools s = pools_size(p);

	return pool_bytes(s.n_rx, s.rx_room) +
	       pool_bytes(s.n_head, s.head_room) +
	       pool_bytes(s.n_copy, s.copy_room);
}

static int name_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const char *name = p->name ? p->name : "";

	if (name[0] && strlen(name) <= NAME_MAX_BYTES &&
		!name[strspn(name, ok)])
		return 0;
	sw_log(log, SW_LOG_ERROR,
		"port name \"%s\": 1 to %d letters, digits, - and _ expected",
		name, NAME_MAX_BYTES);
	return SW_ECONF;
}

static int params_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log)
{
	const char *what = NULL;

	if (name_check(p, log))
		return SW_ECONF;
	if ((uint32_t)p->type >= SW_DPDK_N_TYPES)
		what = "unknown type; memif expected";
	else if (!p->ip || !p->udp || !p->n_udp)
		what = "an IPv4 address and a UDP port are needed";
	else if (p->udp + p->n_udp > 65536)
		what = "its UDP ports go beyond 65535";
	else if (p->payload_bytes != 1344 && p->payload_bytes != 3328 &&
		 p->payload_bytes != SW_PAYLOAD_MAX)
		what = "payload of 1344, 3328 or 8192 bytes expected";
	else if (p->ring_slots < 16 || p->ring_slots > 16384 ||
		 p->ring_slots & (p->ring_slots - 1))
		what = "ring slots: a power of two from 16 to 16384 expected";
	else if (!p->burst || p->burst > SW_RX_BURST)
		what = "burst: 1 to 64 expected";
	if (!what)
		return 0;
	sw_log(log, SW_LOG_ERROR, "port %s: %s", p->name, what);
	return SW_ECONF;
}

static struct rte_mempool *pool_open(
	const struct port *p, const char *what, uint32_t n, uint32_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "%s%u", what, p->index);
	pool = rte_pktmbuf_pool_create(
		name, n, POOL_CACHE, PRIV_BYTES, (uint16_t)room, SOCKET_ID_ANY);
	if (!pool)
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: no memory for %u %s buffers of %u bytes: %s",
			p->base.name, n, what, room, rte_strerror(rte_errno));
	return pool;
}

static void pools_close(struct port *p)
{
	rte_mempool_free(p->rx_pool);
	rte_mempool_free(p->head_pool);
	rte_mempool_free(p->copy_pool);
}

static int pools_open(struct port *p, const struct sw_dpdk_port_params *params)
{
	struct pools s = pools_size(params);

	p->rx_pool = pool_open(p, "rx", s.n_rx, s.rx_room);
	p->head_pool = pool_open(p, "head", s.n_head, s.head_room);
	p->copy_pool = pool_open(p, "copy", s.n_copy, s.copy_room);
	if (!p->rx_pool || !p->head_pool || !p->copy_pool) {
		pools_close(p);
		return SW_ENOMEM;
	}
	sw_log(p->log, SW_LOG_INFO,
		"port %s: %s, ring %u, burst %u; buffers: receive %u x %u, "
		"header %u x %u, copy %u x %u, %llu KiB",
		p->base.name, p->type->name, params->ring_slots, p->burst,
		s.n_rx, s.rx_room, s.n_head, s.head_room, s.n_copy, s.copy_room,
		(unsigned long long)sw_dpdk_port_bytes(params) >> 10);
	return 0;
}

/* Make DPDK's device and learn its number. */
static int device_open(struct port *p, const struct sw_dpdk_port_params *params)
{
	char args[512];
	int err = p->type->devargs(params, p->log, args, sizeof(args));

	if (err)
		return err;
	if (asprintf(&p->dev_name, "net_%s%u", p->type->name, p->index) < 0) {
		p->dev_name = NULL;
		return SW_ENOMEM;
	}
	err = rte_eal_hotplug_add("vdev", p->dev_name, args);
	if (!err && !rte_eth_dev_get_port_by_name(p->dev_name, &p->eth_i))
		return 0;
	sw_log(p->log, SW_LOG_ERROR, "port %s: dpdk refuses %s (%s): %s",
		p->base.name, p->dev_name, args, rte_strerror(-err));
	free(p->dev_name);
	p->dev_name = NULL;
	return SW_EIO;
}

/* On DPDK's interrupt thread, which is the one that handles the driver's
 * messages: stopping or removing a device on another thread frees what that
 * one may be using. */
static void device_remove(void *arg)
{
	struct port *p = arg;

	sw_gate_drain();
	rte_eth_dev_stop(p->eth_i);
	rte_eal_hotplug_remove("vdev", p->dev_name);
	if (p->type->removed && p->claim_path)
		p->type->removed(p->claim_path);
	atomic_store(&p->is_removed, true);
}

static void device_close(struct port *p)
{
	if (!p->dev_name)
		return;
	if (rte_eal_alarm_set(1, device_remove, p))
		device_remove(p);
	while (!atomic_load(&p->is_removed))
		usleep(REMOVE_POLL_US);
	free(p->dev_name);
}

/* One queue each way.  The MTU stays as the driver says: memif refuses a
 * larger one although it carries whatever fits its buffers. */
static int queues_open(struct port *p, const struct sw_dpdk_port_params *params)
{
	struct rte_eth_conf conf = {0};
	uint16_t n = (uint16_t)params->ring_slots;
	int ret;

	if (p->type->can_gather)
		conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	ret = rte_eth_dev_configure(p->eth_i, 1, 1, &conf);
	if (!ret)
		ret = rte_eth_rx_queue_setup(
			p->eth_i, 0, n, SOCKET_ID_ANY, NULL, p->rx_pool);
	if (!ret)
		ret = rte_eth_tx_queue_setup(
			p->eth_i, 0, n, SOCKET_ID_ANY, NULL);
	if (!ret)
		return 0;
	sw_log(p->log, SW_LOG_ERROR, "port %s: the driver refuses %u slots: %s",
		p->base.name, n, rte_strerror(-ret));
	return SW_EIO;
}

/* Start the device again when its link was lost or nobody answered.  Runs on
 * DPDK's interrupt thread, which is the one that handles the driver's
 * messages, so the two never meet. */
static void dial(void *arg)
{
	struct port *p = arg;

	if (port_is_up(p)) {
		p->was_connected = true;
		p->n_dial_ticks = 0;
	} else if (p->is_started &&
		   (p->was_connected ||
			   ++p->n_dial_ticks > DIAL_PATIENCE_TICKS)) {
		sw_gate_drain();
		rte_eth_dev_stop(p->eth_i);
		p->is_started = false;
		p->was_connected = false;
		p->n_dial_ticks = 0;
	}
	if (!p->is_started)
		p->is_started = !rte_eth_dev_start(p->eth_i);
	rte_eal_alarm_set(DIAL_PERIOD_US, dial, p);
}

static int start(struct port *p, bool is_dialling)
{
	int ret = rte_eth_dev_start(p->eth_i);

	p->is_started = !ret;
	if (is_dialling && p->type->is_redialling)
		ret = rte_eal_alarm_set(DIAL_PERIOD_US, dial, p);
	if (!ret)
		return 0;
	sw_log(p->log, SW_LOG_ERROR, "port %s: does not start: %s",
		p->base.name, rte_strerror(-ret));
	return SW_EIO;
}

static int claim(struct port *p, const struct sw_dpdk_port_params *params)
{
	p->claim_fd = -1;
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

static struct port *port_new(const struct sw_dpdk_port_params *params,
	uint16_t index, const struct sw_log *log)
{
	struct port *p = rte_zmalloc("port", sizeof(*p), 64);

	if (!p)
		return NULL;
	p->base.ops = &sw_dpdk_ops;
	p->base.ip = params->ip;
	p->base.max_payload = params->payload_bytes;
	p->base.name = strdup(params->name);
	if (!p->base.name) {
		rte_free(p);
		return NULL;
	}
	p->type = port_types[params->type];
	p->log = log;
	p->index = index;
	p->udp = params->udp;
	p->n_udp = params->n_udp;
	p->burst = (uint16_t)params->burst;
	p->frame_max = FRAME_HEAD_BYTES + params->payload_bytes + TRAILER_BYTES;
	rte_mbuf_ext_refcnt_set(&p->shinfo, 1);
	sw_outer_init(&p->outer, p->base.ip, p->udp);
	return p;
}

static void port_delete(struct port *p)
{
	free((void *)(uintptr_t)p->base.name);
	rte_free(p);
}

int sw_dpdk_port_open(const struct sw_dpdk_port_params *params, uint16_t index,
	const struct sw_log *log, struct sw_port **out)
{
	struct port *p;
	int err = params_check(params, log);

	if (err)
		return err;
	p = port_new(params, index, log);
	if (!p)
		return SW_ENOMEM;
	err = claim(p, params);
	if (err)
		goto undo_claim;
	err = pools_open(p, params);
	if (err)
		goto undo_claim;
	err = device_open(p, params);
	if (err)
		goto undo_pools;
	err = queues_open(p, params);
	if (err)
		goto undo_device;
	err = sw_dpdk_faults_open(p, &params->faults);
	if (err)
		goto undo_device;
	err = start(p, !params->is_listener);
	if (err)
		goto undo_faults;
	*out = &p->base;
	return 0;

undo_faults:
	sw_dpdk_faults_close(p);
undo_device:
	device_close(p);
undo_pools:
	pools_close(p);
undo_claim:
	unclaim(p);
	port_delete(p);
	return err;
}

void sw_dpdk_port_close(struct sw_port **base)
{
	struct port *p;

	if (!*base)
		return;
	p = port_of(*base);
	rte_eal_alarm_cancel(dial, p);
	sw_dpdk_faults_close(p);
	device_close(p);
	rte_pktmbuf_free_bulk(p->rx_held, p->n_rx_held);
	rte_pktmbuf_free_bulk(p->tx_held, p->n_tx_held);
	pools_close(p);
	unclaim(p);
	port_delete(p);
	*base = NULL;
}

bool sw_dpdk_port_is_up(const struct sw_port *base)
{
	return port_is_up((const struct port *)base);
}

bool sw_dpdk_port_is_drained(struct sw_port *base)
{
	struct port *p = port_of(base);

	if (!p->type->is_sync)
		rte_eth_tx_done_cleanup(p->eth_i, 0, 0);
	return rte_mbuf_ext_refcnt_read(&p->shinfo) == 1;
}

void sw_dpdk_port_stats_get(
	const struct sw_port *base, struct sw_dpdk_port_stats *out)
{
	const struct port *p = (const struct port *)base;
	uint64_t *to = (uint64_t *)out;

	for (uint32_t i = 0; i < SW_DPDK_N_COUNTERS; i++)
		to[i] = atomic_load_explicit(
			&p->counters[i], memory_order_relaxed);
}
