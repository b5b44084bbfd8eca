/* afpacket.c - what is special about af_packet: the shape of its rings.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/error.h"
#include "pmd/dpdk/port_int.h"

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

/* Rings hold whole blocks, so a little more than was asked for. */
static int devargs(const struct sw_dpdk_port_params *p, uint32_t payload,
	const struct sw_log *log, char *args, size_t size)
{
	const struct shape *s = shapes;
	uint32_t per_block, n;

	(void)log;
	while (s->payload != payload)
		s++;
	per_block = s->block_bytes / s->frame_bytes;
	n = (p->ring_slots + per_block - 1) / per_block * per_block;
	snprintf(args, size,
		"iface=%s,qpairs=1,blocksz=%u,framesz=%u,framecnt=%u,"
		"qdisc_bypass=1",
		p->device, s->block_bytes, s->frame_bytes, n);
	return 0;
}

const struct port_type sw_dpdk_af_packet = {
	.name = "af_packet",
	.devargs = devargs,
	.rx_extra = RX_EXTRA,
	.ring_slots = 256,
	.is_sync = true,
	.is_kernel = true,
	.needs = "CAP_NET_RAW (root, setcap cap_net_raw+ep, or a network "
		 "namespace of one's own) and its rings as locked memory "
		 "(ulimit -l, or a smaller ring)",
};
