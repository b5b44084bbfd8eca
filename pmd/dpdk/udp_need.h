/* udp_need.h - the receive buffer that a socket of a udp port asks for.
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
	/* Send buffer: nothing overtakes frames between us and the wire. */
	SW_UDP_SEND_BYTES = 8 * 65536,
};

/* sw_udp_charge - return the largest charge to a receive buffer of a full frame
 * with @payload, of @frame bytes in all, or of as many small ones as its credit
 * allows. */
static inline uint32_t sw_udp_charge(uint32_t payload, uint32_t frame)
{
	uint32_t large = 1,
		 small = sw_quanta(payload) * SW_SKB_MIN_BYTES / SW_QUANTA_MIN;

	while (large < frame + SW_SKB_REST_BYTES)
		large *= 2;
	large += SW_SKB_BYTES;
	return large > small ? large : small;
}

/* sw_udp_slots - return how many full frames it holds: @ring, or as many as
 * carry @queue bytes. */
static inline uint32_t sw_udp_slots(
	uint32_t ring, uint32_t queue, uint32_t payload)
{
	uint32_t n = queue / (sw_quanta(payload) * SW_QUANTUM) + 1;

	return n > ring ? n : ring;
}

#endif
