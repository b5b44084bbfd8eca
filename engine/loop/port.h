/* port.h - what the engine asks of a port; pmd/dpdk and the simulator have it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A port carries frames: our header and a payload.  What is around them
 * (Ethernet, IPv4, UDP) is the port's business, and so is dropping whatever is
 * not addressed to us.  All calls come from the one lcore that owns the port.
 *
 * Several engine instances may share a port.  Each is an endpoint: a UDP port
 * of ours, counted from the first one.  An endpoint may have more UDP ports,
 * its ways: the first ones of all endpoints, then the second ones, and so on.
 */
#ifndef SW_ENGINE_LOOP_PORT_H
#define SW_ENGINE_LOOP_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/wire/frame.h"

enum { SW_RX_BURST = 64 }; /* no rx call is asked for more */

/* How frames come to the lcore that has their endpoint. */
enum sw_steering {
	SW_STEER_ONE,     /* there is but one lcore */
	SW_STEER_RULES,   /* by UDP port: they land in its queue */
	SW_STEER_RSS,     /* by a hash: its source port says in which one */
	SW_STEER_HANDOFF, /* the port has one queue pair: by ring */
	SW_STEER_KINDS
};

struct sw_port;

struct sw_port_ops {
	/* Up to @max frames that have arrived; 0 when there are none or the
	 * link is down.  Never blocks. */
	uint32_t (*rx)(struct sw_port *, struct sw_rx_frame *out, uint32_t max);
	/* Give back every frame of the last rx. */
	void (*rx_release)(struct sw_port *);
	/* Number of frames that tx takes now.  0 while the driver's ring is
	 * full or the link is down; never blocks, never spins. */
	uint32_t (*tx_room)(struct sw_port *);
	/* Take @n frames, no more than tx_room has said.  They may leave at
	 * once or at tx_flush. */
	void (*tx)(struct sw_port *, const struct sw_tx_frame *, uint32_t n);
	/* Hand what tx took to the driver; what the driver does not take stays
	 * inside the port and counts against tx_room. */
	void (*tx_flush)(struct sw_port *);
};

struct sw_port {
	const struct sw_port_ops *ops;
	const char *name;     /* as configured */
	uint32_t ip;          /* our IPv4 address there, host order */
	uint32_t max_payload; /* largest payload class that fits its frames */
	uint64_t rate_bit_s;  /* payload to pace to; 0: no limit */
	uint64_t link_bit_s;  /* what the link carries; 0: not known */
	enum sw_steering steering;
	bool is_inner; /* both ends are in this process: nothing is damaged on
			  the way, and payloads carry no CRC */
};

#endif
