/* raw.h - the least that push, sum and pull cost over a port, to compare with.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two processes, one port, the same sw_port ops as the product.  The client
 * sends a tensor in frames gathered from its memory; the server adds each to an
 * accumulator of the same size and sends that piece back from it; the client
 * copies it to a destination.  No CRC, no acknowledgement, no retransmission,
 * and no window but a fixed number of frames under way.
 */
#ifndef SW_PMD_DPDK_RAW_H
#define SW_PMD_DPDK_RAW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/loop/port.h"
#include "sum/sum.h"

struct sw_raw {
	struct sw_port *port; /* its owner is the calling thread */
	uint64_t bytes;       /* bytes of the tensor; a multiple of 4, the same
				 at both ends */
	const struct sw_sum_ops *f32; /* server: the kernels to add with */
	const atomic_bool *stop;      /* ends either side early; may be NULL */
	/* client: */
	struct sw_ip ip;   /* the server's */
	uint16_t udp;      /* the server's */
	uint32_t window;   /* frames under way, 1 …; the ring of the port or
			      less, or frames wait inside */
	uint32_t burst;    /* frames per port call at both ends, 1 …
			      SW_RX_BURST */
	uint32_t n_passes; /* over the tensor */
};

/* sw_raw_server - answer one client until it says good-bye.
 * Allocates bytes of zeroed memory, freed on return.
 * Errors: SW_EINVAL bytes; SW_ENOMEM; SW_ECLOSED stop was set. */
int sw_raw_server(const struct sw_raw *r);

/* sw_raw_client - n_passes over a tensor of ones.
 * @gbit_s   set on success: tensor bits per second in each direction, frame
 *           headers not counted
 * Allocates 2 * bytes, freed on return.  sw_raw_bye ends the server.
 * Errors: SW_EINVAL a field; SW_ENOMEM; SW_ETIMEDOUT nothing came back for 2 s;
 * SW_ECORRUPT what came back is not a sum of ones; SW_ECLOSED stop was set. */
int sw_raw_client(const struct sw_raw *r, double *gbit_s);

/* sw_raw_bye - tell the server to return; sends @r->window frames or fewer. */
void sw_raw_bye(const struct sw_raw *r);

#endif
