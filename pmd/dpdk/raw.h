/* raw.h - a baseline: the least that push, sum and pull cost over a port.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two processes, one port, the same sw_port ops as the product. The client
 * sends a tensor in frames gathered from its memory; the server adds each piece
 * to an accumulator of the same size and sends the sum back from there; the
 * client copies the sum to a destination. There is no CRC, acknowledgement or
 * retransmission, and the window is a fixed number of frames in flight.
 */
#ifndef SW_PMD_DPDK_RAW_H
#define SW_PMD_DPDK_RAW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/loop/port.h"
#include "sum/sum.h"

struct sw_raw {
	struct sw_port *port; /* owned by the calling thread */
	uint64_t bytes;       /* bytes of the tensor; a multiple of 4, the same
				 at both ends */
	const struct sw_sum_ops *f32; /* server: summation kernels */
	const atomic_bool *stop;      /* stops either side early; may be NULL */
	/* client: */
	struct sw_ip ip;   /* the server's */
	uint16_t udp;      /* the server's */
	uint32_t window;   /* frames in flight, at least 1; at most the port's
			      ring, or frames wait in the port */
	uint32_t burst;    /* frames per port call at both ends, 1 …
			      SW_RX_BURST */
	uint32_t n_passes; /* passes over the tensor */
};

/* sw_raw_server - answer one client until it says good-bye.
 * Allocates bytes of zeroed memory, freed on return.
 * Errors: SW_EINVAL bytes; SW_ENOMEM; SW_ECLOSED stop was set. */
int sw_raw_server(const struct sw_raw *r);

/* sw_raw_client - push a tensor of ones n_passes times and check the sums.
 * @gbit_s   set on success: tensor bits per second in each direction, frame
 *           headers not counted
 * Allocates 2 * bytes, freed on return.  sw_raw_bye ends the server.
 * Errors: SW_EINVAL a field; SW_ENOMEM; SW_ETIMEDOUT no answer for 2 s;
 * SW_ECORRUPT an element is not a sum of ones; SW_ECLOSED stop was set. */
int sw_raw_client(const struct sw_raw *r, double *gbit_s);

/* sw_raw_bye - tell the server to return; sends @r->window frames or fewer. */
void sw_raw_bye(const struct sw_raw *r);

#endif
