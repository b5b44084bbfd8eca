/* handoff.h - the ports of a process as each of its lcores has them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An lcore has a queue pair of its own at a port, or none.  It polls its own
 * ones, and a frame that landed there but is for another lcore's endpoint goes
 * to that one by a ring.  An lcore without a queue pair at a port sends by a
 * ring, too: lcore 0, which has one everywhere, does it.
 *
 * To its loop an lcore's ports are one list, by the same index on all lcores,
 * whichever way frames come and go; the endpoints of another lcore are an
 * engine to it.
 *
 * A ring has one producer and one consumer. Received frames are copied into it;
 * payloads to send are copied only if they are not stable. A ring that is full
 * drops what came, as a NIC's does, and counts it; the flow sends it again.
 *
 * A loopback leads back to its own lcore: what one engine instance sends to
 * another of the same lcore.  The same frames, so neither end has special
 * cases, but a stable payload is read where it lies, by who receives it;
 * nothing is copied on the way.  A path's udp is an endpoint.  Nobody waits for
 * anybody: a full ring says so by tx_room, and since each turn of the loop
 * takes all that lies in it before it sends, there is room in the next turn.
 *
 * Thread: each function says whose it is.
 */
#ifndef SW_PMD_LCORES_HANDOFF_H
#define SW_PMD_LCORES_HANDOFF_H

#include <stdatomic.h>

#include "engine/loop/engine.h"

enum {
	SW_HANDOFF_SLOTS = 64,
	/* So many frames of 8 KB leave room in L2 for what they are added to.
	 */
	SW_LOOPBACK_SLOTS = 32,
	SW_LOOPBACK_IP = 0x7f000001, /* localhost; not looked at */
};

struct sw_handoff_slot {
	struct sw_tx_frame frame; /* to: of what came, where from */
	_Alignas(64) uint8_t copy[SW_PAYLOAD_MAX];
};

/* Indices count slots since the start. */
struct sw_handoff_ring {
	_Alignas(64) _Atomic uint32_t n_put;
	_Alignas(64) _Atomic uint32_t n_taken;
	uint32_t size; /* a power of two */
	struct sw_handoff_slot slots[];
};

/* A port as one lcore has it. */
struct sw_handoff_port {
	struct sw_port port; /* first: it is cast back */
	struct sw_port *own; /* its queue pair; NULL: none */
	/* Frames that landed at the other lcores; NULL: that one has no
	 * queue. */
	struct sw_handoff_ring *in[SW_MAX_LCORES];
	/* To lcore 0, NULL: its own sends; of a loopback in[0]. */
	struct sw_handoff_ring *out;
	uint32_t n_lcores, first; /* the ring to begin with */
	uint32_t n_given[SW_MAX_LCORES];
};

struct sw_handoff;

/* One lcore's place for the endpoints of another. */
struct sw_handoff_engine {
	struct sw_engine engine; /* first: it is cast back */
	struct sw_stats stats;
	struct sw_handoff *all;
	uint32_t from, to;
	/* So many of the oldest slots of the other's out are with the port. */
	uint32_t n_sending[SW_MAX_PORTS];
};

struct sw_handoff {
	uint32_t n_lcores, n_ports;
	struct sw_handoff_port *ports[SW_MAX_LCORES][SW_MAX_PORTS];
	struct sw_port *lists[SW_MAX_LCORES][SW_MAX_PORTS];
	struct sw_handoff_engine *others; /* n_lcores x n_lcores, by from */
};

/* sw_handoff_open - @n_lcores lcores at @n_ports ports.
 * @queues  by lcore and port: its queue pair, which is borrowed, or NULL; lcore
 *          0 has all
 * A ring is 0.5 MB of memory, touched when it is used: one for each lcore
 * that may find frames of another at a port, one for each that sends through
 * lcore 0.  Before any lcore runs.  Errors: SW_ENOMEM. */
int sw_handoff_open(struct sw_handoff *h, uint32_t n_lcores, uint32_t n_ports,
	struct sw_port *const (*queues)[SW_MAX_PORTS]);

/* sw_handoff_close - after all lcores have ended; also of what was zeroed. */
void sw_handoff_close(struct sw_handoff *h);

/* sw_handoff_ports - the list of ports for the loop of @lcore. */
struct sw_port *const *sw_handoff_ports(
	const struct sw_handoff *h, uint32_t lcore);

/* sw_handoff_engine - for the loop of lcore @from, under each endpoint of lcore
 * @to. */
struct sw_engine *sw_handoff_engine(
	const struct sw_handoff *h, uint32_t from, uint32_t to);

/* sw_handoff_has - do frames from lcore @from wait for lcore @to?  Either of
 * them. */
bool sw_handoff_has(const struct sw_handoff *h, uint32_t from, uint32_t to);

/* sw_handoff_release - drop what waits to be sent for @lcore: for memory that
 * is to be unmapped, while a port may never take it.  Lcore 0. */
void sw_handoff_release(struct sw_handoff *h, uint32_t lcore);

/* sw_handoff_add_stats - add the counters of all lcores to @sum.  Any thread.
 */
void sw_handoff_add_stats(const struct sw_handoff *h, struct sw_stats *sum);

/* sw_loopback_open - a loopback, 0.3 MB; NULL: no memory. */
struct sw_handoff_port *sw_loopback_open(void);

/* sw_loopback_port - it as a port; lives as long. */
static inline struct sw_port *sw_loopback_port(struct sw_handoff_port *p)
{
	return &p->port;
}

/* sw_loopback_close - also NULL. */
void sw_loopback_close(struct sw_handoff_port *p);

/* sw_loopback_copy_lent - copy what the frames refer to: it is about to change,
 * or to be unmapped.  Not while frames are borrowed.  Its lcore. */
void sw_loopback_copy_lent(struct sw_handoff_port *p);

#endif
