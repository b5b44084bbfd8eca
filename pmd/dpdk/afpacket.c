/* afpacket.c - what is special about af_packet: the shape of its rings.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/error.h"
#include "pmd/dpdk/port_int.h"
#include "pmd/dpdk/rights.h"

/* A frame of a ring, header of the kernel included, and the block that holds a
 * whole number of them: a multiple of both the frame and the page, because the
 * driver takes all frames to follow each other.  Not a power of two, or the
 * frames' headers would share a few cache sets. */
struct shape {
	uint32_t payload, frame_bytes, block_bytes;
};

static const struct shape shapes[] = {
	{1344, 1664, 53248},
	{3328, 3584, 28672},
	{8192, 8704, 69632},
};

enum {
	KERNEL_BYTES = 82, /* in front of a received frame, in the ring */
	/* Of a ring's frame that the driver demands of a receive buffer, but no
	 * frame of ours needs. */
	RX_EXTRA = 384,
	PAGE_BYTES = 4096,
};
_Static_assert(1664 >= KERNEL_BYTES + FRAME_REST_BYTES + 1344 &&
		       3584 >= KERNEL_BYTES + FRAME_REST_BYTES + 3328 &&
		       8704 >= KERNEL_BYTES + FRAME_REST_BYTES + 8192,
	"a frame fits its place");
_Static_assert(53248 % 1664 == 0 && 53248 % PAGE_BYTES == 0 &&
		       28672 % 3584 == 0 && 28672 % PAGE_BYTES == 0 &&
		       69632 % 8704 == 0 && 69632 % PAGE_BYTES == 0,
	"blocks hold whole frames");

static const struct shape *shape_of(uint32_t payload)
{
	const struct shape *s = shapes;

	while (s->payload != payload)
		s++;
	return s;
}

/* Rings hold whole blocks, so a little more than was asked for. */
static uint32_t ring_frames(
	const struct sw_dpdk_port_params *p, const struct shape *s)
{
	uint32_t per_block = s->block_bytes / s->frame_bytes;

	return (p->ring_slots + per_block - 1) / per_block * per_block;
}

static int devargs(const struct sw_dpdk_port_params *p, uint32_t payload,
	const struct sw_log *log, char *args, size_t size)
{
	const struct shape *s = shape_of(payload);

	(void)log;
	snprintf(args, size,
		"iface=%s,qpairs=1,blocksz=%u,framesz=%u,framecnt=%u,"
		"qdisc_bypass=1",
		p->device, s->block_bytes, s->frame_bytes, ring_frames(p, s));
	return 0;
}

static void missing(const struct sw_dpdk_port_params *p, char *out, size_t size)
{
	const struct shape *s = shape_of(p->payload_bytes);

	sw_rights_packet(2ull * ring_frames(p, s) * s->frame_bytes, out, size);
}

const struct port_type sw_dpdk_af_packet = {
	.name = "af_packet",
	.devargs = devargs,
	.rx_extra = RX_EXTRA,
	.ring_slots = 256,
	.is_sync = true,
	.is_kernel = true,
	.missing = missing,
};
