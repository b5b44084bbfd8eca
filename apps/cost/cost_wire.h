/* cost_wire.h - a wire between a server and its workers in one process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ports: what one end sends lies in the slots of the other.  A frame is
 * copied as a driver would: so what an end reads lies in the same few hundred
 * KB, however many members and tensors there are.  The other end's core had
 * those lines last, so the copy may cost more than all else: it can be timed
 * apart.  Thread: one at a time.
 */
#ifndef SW_APPS_COST_COST_WIRE_H
#define SW_APPS_COST_COST_WIRE_H

#include "engine/loop/port.h"

enum {
	COST_SERVER,  /* end of the wire, and */
	COST_WORKERS, /* the other */
	COST_ENDS,
};

/* The kind of a frame, for counting. */
enum cost_kind {
	COST_ACK,
	COST_OTHER,
	COST_DATA, /* PUSH and RESULT */
	COST_KINDS,
};

struct cost_slot {
	uint32_t payload_len;
	uint16_t from, to;    /* endpoints */
	const void *gathered; /* payload to send, where it lies */
	uint8_t head[SW_HEAD_BYTES];
	_Alignas(64) uint8_t payload[SW_PAYLOAD_MAX];
};

struct cost_queue {
	uint32_t n;
	struct cost_slot slots[SW_RX_BURST];
};

struct cost_end {
	struct sw_port port; /* first: it is cast back */
	struct cost_end *peer;
	bool is_sorted;            /* a burst has frames of one kind */
	bool is_apart;             /* it sends by sw_cost_wire_carry alone */
	uint32_t n_given, n_slots; /* slots of the burst; slots taken in all */
	struct cost_queue *given;
	struct cost_queue queues[COST_KINDS];
	struct cost_queue sent; /* frames that the peer has not taken */
};

/* sw_cost_wire_init - join zeroed @ends.  @is_sorted: a burst that is received
 * is of one kind, control before data; else all lie as they were sent. */
void sw_cost_wire_init(struct cost_end ends[COST_ENDS], bool is_sorted);

/* sw_cost_wire_carry - copy to the peer what @end has sent, as a driver does;
 * if !is_apart, tx_flush does it. */
void sw_cost_wire_carry(struct cost_end *end);

/* sw_cost_kind - return the kind of a frame by its header. */
enum cost_kind sw_cost_kind(const uint8_t *head);

#endif
