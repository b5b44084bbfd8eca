/* handoff.h - frames handed from the lcore that polls the ports to another.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a port has one queue pair, one lcore polls it.  For every other lcore
 * it has a hand-off: to the polling lcore that is a node, which takes the
 * frames of the other's endpoints and sends what the other sends; to the other
 * lcore it is one port for each port there is, under the same index.  Between
 * the two there are two rings per port with one producer and one consumer each.
 *
 * Received payloads are copied into the ring.  Payloads to send are copied only
 * if they are not stable.  A ring that is full drops what came, as a NIC's
 * does, and counts it; the flow sends it again.
 *
 * Thread: each function says whose it is.
 */
#ifndef SW_HANDOFF_H
#define SW_HANDOFF_H

#include <stdatomic.h>

#include "engine/node.h"

enum { SW_HANDOFF_SLOTS = 64 };

struct sw_handoff_slot {
	struct sw_path path; /* from, or to */
	const void *payload;
	uint32_t payload_len;
	uint16_t endpoint;
	uint8_t class;
	bool is_stable;
	uint8_t head[SW_HEAD_BYTES];
	_Alignas(64) uint8_t copy[SW_PAYLOAD_MAX];
};

/* Indices count slots since the start. */
struct sw_handoff_ring {
	_Alignas(64) _Atomic uint32_t n_put;
	_Alignas(64) _Atomic uint32_t n_taken;
	struct sw_handoff_slot slots[SW_HANDOFF_SLOTS];
};

struct sw_handoff_port {
	struct sw_port port; /* first: it is cast back; the far lcore's */
	uint32_t n_given;    /* far: borrowed by the node */
	bool is_sending; /* polling lcore: the oldest slot of out is with a port
			  */
	struct sw_handoff_ring in, out; /* as the far lcore sees them */
};

struct sw_handoff {
	struct sw_node node; /* first: it is cast back; the polling lcore's */
	struct sw_stats stats;
	uint32_t n_ports;
	struct sw_handoff_port *ports[SW_MAX_PORTS];
	struct sw_port *list[SW_MAX_PORTS]; /* for the far lcore's loop */
};

/* sw_handoff_open - rings for @n_ports ports, 1.1 MB each.  Before either lcore
 * runs.  Errors: SW_ENOMEM. */
int sw_handoff_open(
	struct sw_handoff *h, struct sw_port *const *ports, uint32_t n_ports);

/* sw_handoff_close - after both lcores have ended. */
void sw_handoff_close(struct sw_handoff *h);

/* sw_handoff_let_go - drop what waits to be sent: for memory that is to be
 * unmapped, while a port may never take it.  Polling lcore. */
void sw_handoff_let_go(struct sw_handoff *h);

#endif
