/* udp_need.h - size the receive buffers of a udp port's sockets.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_UDP_NEED_H
#define SW_PMD_DPDK_UDP_NEED_H

#include <stdint.h>

#include "engine/wire/wire.h"

enum {
	/* The kernel's charge for a frame in a receive buffer (skb->truesize):
	 * a power of two that holds the frame, its headroom and its fragments'
	 * list, plus the sk_buff; and the minimum for a small frame. */
	SW_SKB_REST_BYTES = 64 + 320,
	SW_SKB_BYTES = 256,
	SW_SKB_MIN_BYTES = 1280,
	/* Send buffer: short, because no frame can overtake those in it. */
	SW_UDP_SEND_BYTES = 8 * 65536,
};

/* sw_udp_charge - return the kernel's charge for a full frame of @frame bytes
 * with @payload, or for as many small frames as its credit allows, if that is
 * larger. */
static inline uint32_t sw_udp_charge(uint32_t payload, uint32_t frame)
{
	uint32_t large = 1,
		 small = sw_quanta(payload) * SW_SKB_MIN_BYTES / SW_QUANTA_MIN;

	while (large < frame + SW_SKB_REST_BYTES)
		large *= 2;
	large += SW_SKB_BYTES;
	return large > small ? large : small;
}

/* sw_udp_slots - return how many full frames a receive buffer should hold:
 * @ring, or as many as carry @queue bytes if that is more. */
static inline uint32_t sw_udp_slots(
	uint32_t ring, uint32_t queue, uint32_t payload)
{
	uint32_t n = queue / (sw_quanta(payload) * SW_QUANTUM) + 1;

	return n > ring ? n : ring;
}

#endif
