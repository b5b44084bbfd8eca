/* handoff.h - pass frames between the lcores of a process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An lcore has a queue pair of its own at a port, or none. It polls its own
 * queue pairs. If a frame for another lcore's endpoint lands there, the lcore
 * passes it to that lcore through a ring. An lcore without a queue pair at a
 * port also sends through a ring: lcore 0, which has a queue pair at every
 * port, sends for it.
 *
 * An lcore's loop sees one list of ports, with the same indices on all lcores,
 * whether frames pass through queues or rings. The endpoints of another lcore
 * appear to it as an engine.
 *
 * A ring has one producer and one consumer. Received frames are copied into it;
 * payloads to send are copied only if they are not stable. A full ring drops
 * received frames and counts them, as a NIC does; the flow retransmits them.
 *
 * A loopback carries frames between engine instances of the same lcore. They
 * are ordinary frames, so neither end has special cases, but the receiver reads
 * a stable payload in place, without a copy. A path's udp is an endpoint.
 * Neither end waits for the other: tx_room reports a full ring, and each turn
 * of the loop empties the ring before it sends, so the next turn has room.
 *
 * Thread: each function names its thread.
 */
#ifndef SW_PMD_LCORES_HANDOFF_H
#define SW_PMD_LCORES_HANDOFF_H

#include <stdatomic.h>

#include "engine/loop/engine.h"

enum {
	SW_HANDOFF_SLOTS = 64,
	/* 32 frames of 8 KB leave room in L2 for the accumulators to which they
	 * are added. */
	SW_LOOPBACK_SLOTS = 32,
	SW_LOOPBACK_IP = 0x7f000001, /* localhost; ignored */
};

struct sw_handoff_slot {
	struct sw_tx_frame frame; /* to: a received frame's sender */
	_Alignas(64) uint8_t copy[SW_PAYLOAD_MAX];
};

/* A ring; its indices count slots since the start. */
struct sw_handoff_ring {
	_Alignas(64) _Atomic uint32_t n_put;
	_Alignas(64) _Atomic uint32_t n_taken;
	uint32_t size; /* a power of two */
	struct sw_handoff_slot slots[];
};

/* A port as one lcore sees it. */
struct sw_handoff_port {
	struct sw_port port; /* first member: cast back */
	struct sw_port *own; /* the lcore's queue pair; NULL: none */
	/* Frames that landed at other lcores, by lcore; NULL: that lcore has no
	 * queue pair here. */
	struct sw_handoff_ring *in[SW_MAX_LCORES];
	/* Frames that lcore 0 sends for this one; NULL: the lcore sends them by
	 * its own queue pair. Loopback: in[0]. */
	struct sw_handoff_ring *out;
	uint32_t n_lcores, first; /* first: the ring to read first */
	uint32_t n_given[SW_MAX_LCORES];
};

struct sw_handoff;

/* The engine by which lcore @from reaches the endpoints of lcore @to. */
struct sw_handoff_engine {
	struct sw_engine engine; /* first member: cast back */
	struct sw_stats stats;
	struct sw_handoff *all;
	uint32_t from, to;
	/* Number of oldest slots in lcore @to's out rings whose frames the port
	 * is sending, by port. */
	uint32_t n_sending[SW_MAX_PORTS];
};

struct sw_handoff {
	uint32_t n_lcores, n_ports;
	struct sw_handoff_port *ports[SW_MAX_LCORES][SW_MAX_PORTS];
	struct sw_port *lists[SW_MAX_LCORES][SW_MAX_PORTS];
	struct sw_handoff_engine *others; /* n_lcores x n_lcores, by from */
};

/* sw_handoff_open - connect @n_lcores lcores at @n_ports ports.
 * @queues  queue pair by lcore and port, borrowed; NULL: none. Lcore 0 has one
 *          at every port
 * Makes, for each port, a ring from each lcore with a queue pair to each other
 * lcore, and a ring from each lcore without one to lcore 0. A ring takes 0.5 MB
 * of memory, touched on first use. Call it before any lcore runs. Errors:
 * SW_ENOMEM. */
int sw_handoff_open(struct sw_handoff *h, uint32_t n_lcores, uint32_t n_ports,
	struct sw_port *const (*queues)[SW_MAX_PORTS]);

/* sw_handoff_close - free everything after all lcores have ended; @h may be
 * zeroed. */
void sw_handoff_close(struct sw_handoff *h);

/* sw_handoff_ports - return the list of ports for the loop of @lcore. */
struct sw_port *const *sw_handoff_ports(
	const struct sw_handoff *h, uint32_t lcore);

/* sw_handoff_engine - return the engine that the loop of lcore @from has at
 * each endpoint of lcore @to. */
struct sw_engine *sw_handoff_engine(
	const struct sw_handoff *h, uint32_t from, uint32_t to);

/* sw_handoff_has - return whether frames from lcore @from wait for lcore @to.
 * Thread: either of the two. */
bool sw_handoff_has(const struct sw_handoff *h, uint32_t from, uint32_t to);

/* sw_handoff_release - drop the frames that lcore 0 has yet to send for @lcore,
 * before their memory is unmapped, because a port may never accept them.
 * Thread: lcore 0. */
void sw_handoff_release(struct sw_handoff *h, uint32_t lcore);

/* sw_handoff_add_stats - add the counters of all lcores to @sum. Thread:
 * any. */
void sw_handoff_add_stats(const struct sw_handoff *h, struct sw_stats *sum);

/* sw_loopback_open - make a loopback of 0.3 MB; NULL: no memory. */
struct sw_handoff_port *sw_loopback_open(void);

/* sw_loopback_port - return the loopback's port, which lives as long as @p. */
static inline struct sw_port *sw_loopback_port(struct sw_handoff_port *p)
{
	return &p->port;
}

/* sw_loopback_close - free the loopback; @p may be NULL. */
void sw_loopback_close(struct sw_handoff_port *p);

/* sw_loopback_copy_lent - copy the stable payloads of all frames, because their
 * memory is about to change or to be unmapped. Must not be called while
 * received frames are borrowed. Thread: its lcore. */
void sw_loopback_copy_lent(struct sw_handoff_port *p);

#endif
