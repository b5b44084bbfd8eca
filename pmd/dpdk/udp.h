/* udp.h - a port over the kernel's datagram sockets, from inside udp*.c.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_UDP_H
#define SW_PMD_DPDK_UDP_H

#include "pmd/dpdk/port_int.h"

enum {
	SW_UDP_DATAGRAM = 65535 - 20 - 8, /* RFC 768, RFC 791: data of one */
	SW_UDP_JOINED = 64, /* frames that the kernel cuts one into:
			       UDP_MAX_SEGMENTS */
};

/* A frame to send.  Its header, and its payload where that is copied, lie in a
 * slot of its own. */
struct sw_udp_out {
	const void *payload; /* NULL: it follows the header */
	uint32_t payload_len, len;
	struct sw_path to;
	uint16_t endpoint;
	uint8_t class;
};

/* What a queue pair has besides struct queue. */
struct sw_udp_queue {
	int fds[SW_DPDK_ENDPOINTS]; /* by endpoint; -1: another lcore's */
	uint32_t n_overruns[SW_DPDK_ENDPOINTS]; /* that the kernel has told */
	uint32_t next;                          /* endpoint that is read next */
	uint32_t n_single; /* frames to be sent one by one */
	/* To send: of all slots, first those of n_tx_held frames. */
	uint8_t order[SW_RX_BURST];
	uint32_t slot_bytes;
	uint8_t *slots; /* SW_RX_BURST of them */
	struct sw_udp_out out[SW_RX_BURST];
	/* What was read, a datagram of frames of @unit bytes. */
	uint32_t at, len, unit;
	uint16_t endpoint;
	struct sw_path from;
	_Alignas(64) uint8_t in[65536];
};

extern const struct sw_port_ops sw_udp_ops;

#endif
