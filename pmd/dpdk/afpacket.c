/* afpacket.c - the af_packet driver's settings: rings, socket filters, rights.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "pmd/dpdk/packet.h"
#include "pmd/dpdk/rights.h"
#include "pmd/dpdk/steer.h"

/* Sizes of a ring's frame, including the kernel's header, and of a block of
 * whole frames. The driver expects frames without gaps, so a block is a
 * multiple of both the frame and the page. */
struct shape {
	uint32_t frame_bytes, block_bytes;
};

enum {
	KERNEL_BYTES = 82, /* kernel's header before a received frame */
	/* Bytes of a ring's frame beyond our largest frame, which the driver
	 * still requires in a receive buffer. */
	RX_EXTRA = 576,
	PAGE_BYTES = 4096,
	UNIT_MIN = 128, /* smallest unit of frame sizes; a power of two */
	UNITS = 32,     /* most units per frame, so blocks stay small */
	/* Without the gate, the driver spreads frames over its sockets by its
	 * own hash, and our filters would drop most of them. */
	QUEUES_MAX = SW_DPDK_GATE ? SW_DPDK_QUEUES : 1,
};

/* Return the ring's shape for @payload. A frame's size is never a power of two,
 * because all headers would then share a few cache sets. */
static struct shape shape_of(uint32_t payload)
{
	uint32_t bytes = KERNEL_BYTES + FRAME_REST_BYTES + payload;
	uint32_t unit = RTE_MAX(rte_align32pow2(bytes / UNITS), UNIT_MIN);
	struct shape s = {.frame_bytes = RTE_ALIGN_CEIL(bytes, unit)};

	if (rte_is_power_of_2(s.frame_bytes))
		s.frame_bytes += unit;
	s.block_bytes = s.frame_bytes;
	while (s.block_bytes % PAGE_BYTES)
		s.block_bytes *= 2;
	return s;
}

/* Return the frames of a ring: the requested slots rounded up to whole
 * blocks. */
static uint32_t ring_frames(const struct sw_dpdk_port_params *p, struct shape s)
{
	uint32_t per_block = s.block_bytes / s.frame_bytes;

	return (p->ring_slots + per_block - 1) / per_block * per_block;
}

static int devargs(const struct sw_dpdk_port_params *p, uint32_t payload,
	const struct sw_log *log, char *args, size_t size)
{
	struct shape s = shape_of(payload);

	(void)log;
	snprintf(args, size,
		"iface=%s,qpairs=%u,blocksz=%u,framesz=%u,framecnt=%u,"
		"qdisc_bypass=1",
		p->device, RTE_MIN(p->n_queues, QUEUES_MAX), s.block_bytes,
		s.frame_bytes, ring_frames(p, s));
	return 0;
}

static void missing(const struct sw_dpdk_port_params *p, uint64_t bytes,
	char *out, size_t size)
{
	struct shape s = shape_of(p->payload_bytes);

	(void)bytes; /* rings are locked, DPDK's memory is not */
	sw_rights_packet(2ull * p->n_queues * ring_frames(p, s) * s.frame_bytes,
		out, size);
}

/* Attach a filter to each queue pair's socket, so that the kernel copies a
 * frame only to the socket of its endpoint. For RSS, join the sockets to a
 * fan-out group instead of separating endpoints. */
static int steer(struct port *p)
{
	const struct sw_dpdk_port_params *c = &p->params;
	bool is_rss = p->n_queues > 1 && c->steering == SW_STEER_RSS;
	int fds[SW_DPDK_QUEUES + 1], err = 0;
	uint32_t n = sw_packet_sockets(p->if_index, fds, SW_DPDK_QUEUES + 1);
	struct sw_packet_filter f = {.ip = c->ip,
		.udp = c->udp,
		.n_udp = (uint16_t)(c->n_udp * c->n_ways),
		.n_endpoints = c->n_udp};

	if (n != p->n_queues)
		err = SW_EIO;
	for (uint32_t i = 0; i < p->n_queues && !err; i++) {
		f.has_neighbours = is_rss || i == 0;
		f.endpoints = 0;
		for (uint32_t e = 0; e < f.n_endpoints; e++)
			if (is_rss || sw_dpdk_queue_of(p, e) == i)
				f.endpoints |= 1u << e;
		err = sw_packet_filter(fds[i], &f);
	}
	for (uint32_t i = 0; i < p->n_queues && !err; i++)
		atomic_store(&p->wake_fds[i], fds[i]);
	if (is_rss && !err)
		err = sw_packet_fanout(fds, n);
	if (p->n_queues > 1)
		p->steering = is_rss ? SW_STEER_RSS : SW_STEER_RULES;
	if (err)
		sw_log(p->log, SW_LOG_ERROR,
			"port %s: cannot filter what its %u sockets (%u found) "
			"receive of %s: %s",
			c->name, p->n_queues, n, c->device, strerror(errno));
	return err;
}

const struct port_type sw_dpdk_af_packet = {
	.name = "af_packet",
	.devargs = devargs,
	.rx_extra = RX_EXTRA,
	.ring_slots = 256,
	.burst = 16,
	.is_sync = true,
	.steer = steer,
	.is_locked = true,
	.max_queues = QUEUES_MAX,
	.missing = missing,
};
