/* bench_wire.h - a wire between a server and its workers in one process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ports: what one end sends lies in the slots of the other.  A frame is
 * copied as a driver would: so what an end reads lies in the same few hundred
 * KB, however many members and tensors there are.  The other end's core had
 * those lines last, so the copy may cost more than all else: it can be timed
 * apart.  Thread: one at a time.
 */
#ifndef SW_APPS_BENCH_BENCH_WIRE_H
#define SW_APPS_BENCH_BENCH_WIRE_H

#include "engine/loop/port.h"

enum {
	BENCH_SERVER,  /* end of the wire, and */
	BENCH_WORKERS, /* the other */
	BENCH_ENDS,
};

/* What a frame is to who counts. */
enum bench_kind {
	BENCH_ACK,
	BENCH_OTHER,
	BENCH_DATA, /* PUSH and RESULT */
	BENCH_KINDS,
};

struct bench_slot {
	uint32_t payload_len;
	uint16_t from, to;    /* endpoints */
	const void *gathered; /* of what is sent: the payload, where it lies */
	uint8_t head[SW_HEAD_BYTES];
	_Alignas(64) uint8_t payload[SW_PAYLOAD_MAX];
};

struct bench_queue {
	uint32_t n;
	struct bench_slot slots[SW_RX_BURST];
};

struct bench_end {
	struct sw_port port; /* first: it is cast back */
	struct bench_end *peer;
	bool is_sorted;            /* a burst has frames of one kind */
	bool is_apart;             /* it sends by sw_bench_wire_carry alone */
	uint32_t n_given, n_slots; /* of the burst; that are taken, of all */
	struct bench_queue *given;
	struct bench_queue queues[BENCH_KINDS];
	struct bench_queue sent; /* that the peer does not have yet */
};

/* sw_bench_wire_init - join zeroed @ends.  @is_sorted: a burst that is received
 * is of one kind, control before data; else all lie as they were sent. */
void sw_bench_wire_init(struct bench_end ends[BENCH_ENDS], bool is_sorted);

/* sw_bench_wire_carry - what @end has sent is copied to its peer, as a driver
 * does; where !is_apart, tx_flush does it. */
void sw_bench_wire_carry(struct bench_end *end);

/* sw_bench_kind - of a frame by its header. */
enum bench_kind sw_bench_kind(const uint8_t *head);

#endif
