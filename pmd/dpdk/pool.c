/* pool.c - the buffers of a queue pair.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "engine/base/error.h"
#include "pmd/dpdk/fault.h"
#include "pmd/dpdk/pool.h"

enum {
	POOL_ROOM_BYTES = 1 << 20, /* mempool headers, rings, rounding */
	PAGE_BYTES = 4096,
	OBJECT_BYTES = RTE_MEMPOOL_ALIGN, /* mempool's header before each */
};

/* Sizes of the three pools. */
struct pools {
	uint32_t n_rx, n_head, n_copy;
	uint32_t rx_room, head_room, copy_room; /* bytes per buffer */
};

/* Return the bytes of a page that are left for a frame and its headroom. */
static uint32_t page_room(const struct sw_dpdk_port_params *p)
{
	return PAGE_BYTES - OBJECT_BYTES - (uint32_t)sizeof(struct rte_mbuf) -
	       priv_bytes(p->ip);
}

/* Return the room of a receive buffer for @frame. A NIC requires room for a
 * frame of its MTU with two tags and the FCS. */
static uint32_t rx_room(const struct port_type *t, uint32_t frame)
{
	const uint32_t spare = SW_TAG_BYTES + RTE_ETHER_CRC_LEN;

	if (!t->rx_unit)
		return frame + t->rx_extra;
	return RTE_ALIGN_CEIL(
		RTE_MAX(frame, RTE_ETHER_MAX_LEN + SW_TAG_BYTES) + spare,
		t->rx_unit);
}

/* Size the pools: buffers in use at once, plus buffers held in caches. */
static struct pools pools_size(const struct sw_dpdk_port_params *p)
{
	const struct port_type *t = sw_port_types[p->type];
	uint32_t slots = p->ring_slots ? p->ring_slots : t->ring_slots;
	uint32_t burst = p->burst ? p->burst : t->burst;
	uint32_t cached = POOL_CACHE * 3 / 2;
	uint32_t in_driver = t->is_sync ? 0 : slots;
	uint32_t delayed = sw_dpdk_faults_is_set(p) ? 2 * SW_RX_BURST : 0;
	uint32_t frame = FRAME_REST_BYTES + p->payload_bytes;

	if (t->n_lent)
		return (struct pools){
			.n_rx = t->n_lent + 2 * slots + SW_RX_BURST + burst +
				delayed + cached,
			.rx_room = page_room(p),
		};
	return (struct pools){
		.n_rx = in_driver + SW_RX_BURST + delayed + cached,
		.n_head = 2 * (in_driver + burst) + cached,
		.n_copy = in_driver + burst + cached,
		.rx_room = RTE_PKTMBUF_HEADROOM + rx_room(t, frame),
		.head_room =
			RTE_PKTMBUF_HEADROOM + SW_OUTER_MAX + SW_HEAD_BYTES,
		.copy_room = RTE_PKTMBUF_HEADROOM + frame,
	};
}

/* Return the memory of a pool. Without hugepages, a buffer of more than half a
 * page takes whole pages. */
static uint64_t pool_bytes(
	const struct sw_dpdk_port_params *p, uint32_t n, uint32_t room)
{
	uint64_t each = room + priv_bytes(p->ip) + sizeof(struct rte_mbuf) +
			(room == page_room(p) ? OBJECT_BYTES : 192);

	if (!n)
		return 0;
	return n * (each > 2048 ? RTE_ALIGN_CEIL(each, 4096) : each) +
	       POOL_ROOM_BYTES;
}

uint64_t sw_dpdk_port_bytes(const struct sw_dpdk_port_params *p)
{
	struct pools s;

	if (sw_port_types[p->type]->bytes)
		return sw_port_types[p->type]->bytes(p);
	s = pools_size(p);
	return p->n_queues * (pool_bytes(p, s.n_rx, s.rx_room) +
				     pool_bytes(p, s.n_head, s.head_room) +
				     pool_bytes(p, s.n_copy, s.copy_room));
}

int sw_dpdk_port_node(const struct port *p)
{
	int node =
		p->dev_name ? rte_eth_dev_socket_id(p->eth_i) : SOCKET_ID_ANY;
	void *probe;

	if (node < 0)
		return SOCKET_ID_ANY;
	/* DPDK may have no memory on this node */
	probe = rte_malloc_socket(NULL, POOL_ROOM_BYTES, 0, node);
	rte_free(probe);
	return probe ? node : SOCKET_ID_ANY;
}

/* Exclude buffers from core dumps, because they hold frames. This also excludes
 * data that shares their first and last page. */
static void hide_from_dumps(struct rte_mempool *pool, void *arg,
	struct rte_mempool_memhdr *mem, unsigned int i)
{
	uintptr_t from = RTE_ALIGN_FLOOR((uintptr_t)mem->addr, PAGE_BYTES);
	uintptr_t to = RTE_ALIGN_CEIL(
		(uintptr_t)mem->addr + mem->len, (uintptr_t)PAGE_BYTES);

	(void)pool;
	(void)arg;
	(void)i;
	(void)!madvise((void *)from, to - from, MADV_DONTDUMP);
}

static struct rte_mempool *pool_open(
	const struct queue *q, const char *what, uint32_t n, uint32_t room)
{
	const struct port *p = q->port;
	uint32_t priv_size = priv_bytes(p->params.ip);
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = (uint16_t)room,
		.mbuf_priv_size = (uint16_t)priv_size};
	/* Lent buffers must be contiguous, without padding between them. */
	uint32_t flags =
		room == page_room(&p->params) ? RTE_MEMPOOL_F_NO_SPREAD : 0;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "%s%u.%u", what, p->index, q->index);
	pool = rte_mempool_create(name, n,
		sizeof(struct rte_mbuf) + priv_size + room, POOL_CACHE,
		sizeof(priv), rte_pktmbuf_pool_init, &priv, rte_pktmbuf_init,
		NULL, sw_dpdk_port_node(p), flags);
	if (!pool)
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: no memory for %u %s buffers of %u bytes: %s",
			p->params.name, n, what, room, rte_strerror(rte_errno));
	else
		rte_mempool_mem_iter(pool, hide_from_dumps, NULL);
	return pool;
}

static void queue_close(struct queue *q)
{
	if (q->copy_pool != q->rx_pool)
		rte_mempool_free(q->copy_pool);
	rte_mempool_free(q->rx_pool);
	rte_mempool_free(q->head_pool);
	q->rx_pool = q->head_pool = q->copy_pool = NULL;
}

static int queue_open(struct queue *q, const struct pools *s)
{
	const struct port *p = q->port;

	q->rx_pool = pool_open(q, "rx", s->n_rx, s->rx_room);
	if (p->type->n_lent) {
		q->copy_pool = q->rx_pool;
	} else {
		q->head_pool = pool_open(q, "head", s->n_head, s->head_room);
		q->copy_pool = pool_open(q, "copy", s->n_copy, s->copy_room);
	}
	if (!q->rx_pool || !q->copy_pool || (!q->head_pool && !p->type->n_lent))
		return SW_ENOMEM;
	return 0;
}

void sw_dpdk_pools_close(struct port *p)
{
	for (uint32_t i = 0; i < p->n_queues; i++)
		if (p->queues[i])
			queue_close(p->queues[i]);
}

int sw_dpdk_pools_open(struct port *p)
{
	struct pools s = pools_size(&p->params);
	int err = 0;

	for (uint32_t i = 0; i < p->n_queues && !err; i++)
		err = queue_open(p->queues[i], &s);
	if (err) {
		sw_dpdk_pools_close(p);
		return err;
	}
	sw_log(p->log, SW_LOG_INFO,
		"port %s: %s, %u queue pair%s, ring %u, burst %u; buffers of "
		"each: receive %u x %u, header %u x %u, copy %u x %u; %llu KiB",
		p->params.name, p->type->name, p->n_queues,
		p->n_queues == 1 ? "" : "s", p->params.ring_slots, p->burst,
		s.n_rx, s.rx_room, s.n_head, s.head_room, s.n_copy, s.copy_room,
		(unsigned long long)sw_dpdk_port_bytes(&p->params) >> 10);
	return 0;
}
