/* port.h - the engine's interface to a port (pmd/dpdk, and the simulator).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A port carries frames: a sumwire header and a payload.  The port adds and
 * removes the outer headers (Ethernet, IP, UDP), and drops frames for other
 * addresses.  All calls come from the one lcore that owns the port.
 *
 * Several engine instances may share a port.  Each engine is an endpoint: a
 * local UDP port, counted from the first one.  An endpoint may have several UDP
 * ports (ways): first come the first ways of all endpoints, then the second
 * ways, and so on. */
#ifndef SW_ENGINE_LOOP_PORT_H
#define SW_ENGINE_LOOP_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/wire/frame.h"

enum { SW_RX_BURST = 64 }; /* most frames of one rx call */

/* How frames reach the lcore of their endpoint. */
enum sw_steering {
	SW_STEER_ONE,     /* only one lcore */
	SW_STEER_RULES,   /* by UDP port, into its queue */
	SW_STEER_RSS,     /* by a hash; the source port selects the queue */
	SW_STEER_HANDOFF, /* by a ring between lcores; the port has one queue
			     pair */
	SW_STEER_KINDS
};

struct sw_port;

struct sw_port_ops {
	/* Receive up to @max frames; return 0 if none arrived or the link is
	 * down.  Never blocks. */
	uint32_t (*rx)(struct sw_port *, struct sw_rx_frame *out, uint32_t max);
	/* Release every frame of the last rx. */
	void (*rx_release)(struct sw_port *);
	/* Return how many frames tx accepts now; 0 while the driver's ring is
	 * full or the link is down. Never blocks, never spins. */
	uint32_t (*tx_room)(struct sw_port *);
	/* Accept @n frames, at most what tx_room returned.  The port sends them
	 * at once or at tx_flush. */
	void (*tx)(struct sw_port *, const struct sw_tx_frame *, uint32_t n);
	/* Hand accepted frames to the driver. Frames that the driver refuses
	 * stay inside the port and count against tx_room. */
	void (*tx_flush)(struct sw_port *);
};

struct sw_port {
	const struct sw_port_ops *ops;
	const char *name;     /* as configured */
	struct sw_ip ip;      /* local address */
	uint16_t udp;         /* UDP port of the first endpoint */
	uint32_t max_payload; /* largest payload that fits its frames */
	uint64_t rate_bit_s;  /* payload rate to pace to; 0: no limit */
	uint64_t link_bit_s;  /* rate of the link; 0: unknown */
	enum sw_steering steering;
	bool is_inner;   /* both ends are in this process: nothing is damaged in
			    transit, and payloads carry no CRC */
	bool is_trusted; /* the operator trusts both ends: no attacker reaches
			    the port, so its sessions have no keys */
};

#endif
