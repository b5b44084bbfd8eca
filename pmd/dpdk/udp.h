/* udp.h - a port over kernel datagram sockets.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_UDP_H
#define SW_PMD_DPDK_UDP_H

#include "pmd/dpdk/port_int.h"

enum {
	SW_UDP_DATAGRAM = 65535 - 20 - 8, /* most data of a datagram (RFC 768,
					     RFC 791) */
	SW_UDP_JOINED = 64, /* most frames in one datagram: UDP_MAX_SEGMENTS */
};

/* A frame to send. Its slot holds the header, and the payload if it is copied.
 */
struct sw_udp_out {
	const void *payload; /* NULL: the payload follows the header */
	uint32_t payload_len, len;
	struct sw_path to;
	uint16_t endpoint;
	uint8_t class;
	bool asks; /* asks for an ACK, as about four frames per window do */
	bool is_passing; /* the payload's memory changes after tx */
};

/* State of a queue pair besides struct queue. */
struct sw_udp_queue {
	int fds[SW_DPDK_ENDPOINTS]; /* by endpoint; -1: another lcore owns it */
	uint32_t n_overruns[SW_DPDK_ENDPOINTS]; /* drops reported by the kernel
						 */
	uint32_t next;                          /* next endpoint to read */
	uint32_t n_single;                      /* frames to send one by one */
	/* Send side: slot numbers; the first n_tx_held slots hold frames. */
	uint8_t order[SW_RX_BURST];
	uint32_t slot_bytes;
	uint8_t *slots; /* SW_RX_BURST slots */
	struct sw_udp_out out[SW_RX_BURST];
	/* Receive side: the datagram read last, with frames of @unit bytes. */
	uint32_t at, len, unit;
	uint16_t endpoint;
	bool is_marked; /* a switch marked its frames (ECN) */
	struct sw_path from;
	_Alignas(64) uint8_t in[65536];
};

extern const struct sw_port_ops sw_udp_ops;

/* Plan the queue pairs, open, close, drop held frames, and return the
 * descriptors for sw_dpdk_port_wake_fds. */
void sw_udp_plan(struct port *p);
int sw_udp_open(struct port *p);
void sw_udp_close(struct port *p);
void sw_udp_drop_held(struct queue *q, uint32_t counter);
uint32_t sw_udp_fds(const struct queue *q, int fds[], uint32_t max);

#endif
