/* loopback.h - a port that leads back to its own lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What one engine instance of an lcore sends to another of the same lcore goes
 * through here: the same frames, so neither end has special cases, but they are
 * kept as pointers.  A stable payload is read where it lies, by who receives
 * it; nothing is copied on the way.
 *
 * Addresses: a path's udp is an endpoint.  ip is that of localhost and is not
 * looked at.
 *
 * Nobody waits for anybody: a full ring says so by tx_room, and since each turn
 * of the loop takes all that lies in it before it sends, there is room again in
 * the next turn.
 *
 * Thread: one lcore.
 */
#ifndef SW_LOOPBACK_H
#define SW_LOOPBACK_H

#include "engine/loop/port.h"

enum {
	/* So many frames of 8 KB leave room in L2 for what they are added to.
	 */
	SW_LOOPBACK_SLOTS = 32,
	SW_LOOPBACK_IP = 0x7f000001,
};

struct sw_loopback_slot {
	const uint8_t *payload;
	uint32_t payload_len;
	uint16_t from, to; /* endpoints */
	bool is_stable;
	uint8_t head[SW_HEAD_BYTES];
	uint8_t copy[SW_PAYLOAD_MAX]; /* of what is not stable */
};

struct sw_loopback {
	struct sw_port port; /* first: it is cast back */
	uint32_t n_put, n_taken, n_given;
	struct sw_loopback_slot slots[SW_LOOPBACK_SLOTS];
};

/* sw_loopback_init - an empty port; 0.3 MB, by its owner. */
void sw_loopback_init(struct sw_loopback *l);

/* sw_loopback_port - it as a port; lives as long. */
static inline struct sw_port *sw_loopback_port(struct sw_loopback *l)
{
	return &l->port;
}

/* sw_loopback_copy_lent - copy what the frames refer to: it is about to change.
 * Not while frames are borrowed. */
void sw_loopback_copy_lent(struct sw_loopback *l);

/* sw_loopback_is_drained - does no frame refer to a stable payload any more?
 * Then their memory may be unmapped. */
bool sw_loopback_is_drained(const struct sw_loopback *l);

#endif
