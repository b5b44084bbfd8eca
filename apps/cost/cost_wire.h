/* cost_wire.h - a wire between a server and its workers in one process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire has two ports: a frame that one end sends lies in the slots of the
 * other end.  A frame is copied as by a driver, so an end reads the same few
 * hundred KB, however many members and tensors there are.  The core of the
 * other end has used these lines last, so the copy may cost more than
 * everything else: therefore it can be timed separately.  Thread: one at a
 * time.
 */
#ifndef SW_APPS_COST_COST_WIRE_H
#define SW_APPS_COST_COST_WIRE_H

#include "engine/loop/port.h"

enum {
	COST_SERVER,  /* the server's end */
	COST_WORKERS, /* the workers' end */
	COST_ENDS,
};

/* Kinds of frames that are counted separately. */
enum cost_kind {
	COST_ACK,
	COST_OTHER,
	COST_DATA, /* PUSH and RESULT */
	COST_KINDS,
};

struct cost_slot {
	uint32_t payload_len;
	uint16_t from, to;    /* from, to: endpoints */
	const void *gathered; /* payload to send, not yet copied */
	uint8_t head[SW_HEAD_BYTES];
	_Alignas(64) uint8_t payload[SW_PAYLOAD_MAX];
};

struct cost_queue {
	uint32_t n;
	struct cost_slot slots[SW_RX_BURST];
};

struct cost_end {
	struct sw_port port; /* first, for casts */
	struct cost_end *peer;
	bool is_sorted; /* a burst has frames of one kind */
	bool is_apart;  /* sends only in sw_cost_wire_carry */
	/* slots of the current burst; slots in use */
	uint32_t n_given, n_slots;
	struct cost_queue *given;
	struct cost_queue queues[COST_KINDS];
	struct cost_queue sent; /* frames that the peer has not taken */
};

/* sw_cost_wire_init - connect zeroed @ends.  @is_sorted: a received burst has
 * frames of one kind, control before data; otherwise frames arrive in the order
 * of their sending. */
void sw_cost_wire_init(struct cost_end ends[COST_ENDS], bool is_sorted);

/* sw_cost_wire_carry - copy the frames that @end has sent to its peer, as a
 * driver does.  Without is_apart, tx_flush calls it. */
void sw_cost_wire_carry(struct cost_end *end);

/* sw_cost_kind - return the kind of a frame with header @head. */
enum cost_kind sw_cost_kind(const uint8_t *head);

#endif
