/* net.h - a simulated network: nodes, switches and the links between them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Time is virtual and all arithmetic is in integers, so equal descriptions and
 * seeds give equal results on every machine. A node runs the loop of a daemon
 * (engine/loop/loop.h) over a port of this network. A frame waits in the queue
 * of each link on its way and leaves it whole (store and forward). Links keep
 * frames in order, so there is one event per link and node, and memory grows
 * with the frames in flight.
 */
#ifndef SW_APPS_LAB_SIM_NET_H
#define SW_APPS_LAB_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lab/sim/events.h"
#include "engine/loop/loop.h"
#include "engine/wire/frame.h"

struct sw_handoff_port;

enum {
	SW_SIM_UDP = 5700,   /* of endpoint 0 */
	SW_SIM_HEADS = 46,   /* Ethernet with FCS, IPv4, UDP */
	SW_SIM_WIRE = 66,    /* these, and preamble and gap */
	SW_SIM_LOOPBACK = 1, /* a node's port to itself */
	SW_SIM_PORTS = 2,
	SW_SIM_QUEUED = 3,
	SW_SIM_SIZES = 4, /* sizes of frames' memory */
	SW_SIM_TIMERS = 4096,
};

struct sw_sim_net;
struct sw_sim_link;

/* Segment or datagram of other traffic (traffic.c). */
struct sw_sim_segment {
	uint32_t flow; /* its index */
	bool is_ack, has_echo;
	uint64_t number; /* ACK: the segment that it acknowledges */
	uint64_t next;   /* ACK: all below have arrived */
	uint64_t sent_ns;
};

struct sw_sim_frame {
	struct sw_sim_frame *next;
	uint64_t depart_ns, arrive_ns;
	uint32_t from, to; /* nodes */
	uint32_t len;      /* header and payload */
	uint32_t bytes;    /* its room in a buffer */
	uint16_t from_udp, to_udp;
	uint8_t size;             /* which of the sizes its memory has */
	bool is_marked, is_other; /* other: not of an engine */
	bool is_plain;            /* its sender does not know ECN */
	bool has_body;            /* the payload is in it */
	union {
		struct sw_sim_segment other; /* is_other */
		uint8_t head[SW_HEAD_BYTES];
	};
	_Alignas(64) uint8_t body[];
};

/* Memory that the ports of a switch share. A port may queue alpha times what
 * is free (dynamic thresholds). */
struct sw_sim_pool {
	uint64_t bytes, used;
	uint64_t alpha_ppm;
};

/* Losses and other faults of a link; chances in parts per million. */
struct sw_sim_faults {
	uint32_t loss, corrupt, duplicate, reorder;
	uint64_t reorder_ns; /* longest additional delay of a reordered frame */
	/* Gilbert and Elliott: chances that a frame finds the link turning bad,
	 * or good again, and of loss while it is bad. */
	uint32_t bad, good, bad_loss;
};

struct sw_sim_counts {
	uint64_t bytes; /* sent, as they count on the wire */
	uint64_t n_frames, n_dropped, n_lost, n_marked, n_down;
	uint64_t most; /* bytes in the queue */
};

/* One direction of a link, with the queue before it. */
struct sw_sim_link {
	uint32_t index, from, to; /* nodes or switches */
	uint64_t rate_bit_s, delay_ns;
	uint64_t ns_q16; /* ns per byte, times 2^16 */
	uint64_t buffer_bytes;
	uint32_t most_bytes; /* largest frame that its MTU allows */
	uint64_t ecn_bytes, ecn_most_bytes; /* mark from, mark all; 0: never */
	struct sw_sim_pool *pool;           /* NULL: a buffer of its own */
	const struct sw_sim_faults *faults;
	bool is_bad, is_down;
	bool is_departing; /* an event waits for its first frame to leave */
	uint64_t rng;
	uint64_t free_ns; /* when the queue is empty */
	uint32_t rest_q16;
	uint64_t queued;              /* bytes, as of the last look */
	struct sw_sim_frame *waiting; /* first that has not left the queue */
	struct sw_sim_frame *first, **last; /* all in flight */
	struct sw_sim_counts n;
};

struct sw_sim_node {
	struct sw_port port; /* first: it is cast back */
	struct sw_sim_net *net;
	uint32_t index;
	char name[32];
	struct sw_sim_link *up; /* to its switch */
	struct sw_port *ports[SW_SIM_PORTS];
	struct sw_handoff_port *loopback; /* NULL: it has one engine alone */
	uint32_t n_ports, n_endpoints;
	uint32_t n_lcores;    /* 0: one; the first endpoints have one each */
	struct sw_loop *loop; /* NULL: it runs no engine */
	struct sw_sim_frame *first, **last; /* received */
	uint32_t n_inbox, n_taken, room, n_sent;
	struct sw_sim_frame *taken[SW_RX_BURST];
	uint64_t wake_ns, turned_ns, last_ns, n_full;
	/* Times of its wake-ups in the queue, the latest ones; 0: none. */
	uint64_t queued_ns[SW_SIM_QUEUED];
	bool is_deaf; /* its port shows no frames for the moment */
	/* Called after each turn; returns when it wants the next one. */
	uint64_t (*step)(void *ctx, uint64_t now_ns);
	void *ctx;
};

/* Next hops from one switch to another: links[first] and those behind it. */
struct sw_sim_hops {
	uint32_t first, n;
};

struct sw_sim_timer {
	uint64_t (*fire)(
		void *ctx, uint64_t now_ns); /* returns the next time */
	void *ctx;
};

struct sw_sim_net {
	uint64_t now_ns, seed;
	uint64_t turn_ns, frame_ns; /* time of a turn, and of a frame in it */
	bool is_paced;              /* nodes know the rates of their links */
	uint64_t port_bit_s;        /* limit of a node's payload; 0: none */
	uint32_t ring;              /* frames that a core's ring holds */
	bool is_bare;               /* frames carry no payloads of tensors */
	bool is_over;
	struct sw_sim_events events;
	bool is_running; /* in sw_sim_run */
	/* Its turn is the next event, which would be the only one of this
	 * nanosecond; NULL: none. */
	struct sw_sim_node *ready;
	/* [n_cores]: the nodes, then their second cores, and so on. */
	struct sw_sim_node *nodes;
	uint32_t n_nodes, n_cores, n_switches;
	struct sw_sim_link *links;
	uint32_t n_links;
	struct sw_sim_pool *pools; /* by switch; NULL: none */
	struct sw_sim_faults faults;
	uint32_t *switch_of;      /* by node */
	uint32_t *down;           /* by node: the link to it */
	struct sw_sim_hops *hops; /* [switch][switch] */
	uint32_t *hop_links;
	struct sw_sim_timer timers[SW_SIM_TIMERS];
	uint32_t n_timers;
	struct sw_sim_frame *free[SW_SIM_SIZES];
	void *slabs; /* memory of frames, as a list */
	struct sw_sim_frame **strays;
	struct sw_sim_link **stray_links;
	uint32_t n_strays;
	uint64_t n_arrived, n_events, n_alive, most_alive;
	/* Sees each frame that leaves a link, at its end; NULL: nobody. */
	void (*tap)(void *ctx, const struct sw_sim_link *l,
		const struct sw_sim_frame *f);
	void *tap_ctx;
	/* A node's part (node.c): take a frame, wake up, take a turn. */
	void (*take)(struct sw_sim_node *n, struct sw_sim_frame *f);
	void (*wake)(struct sw_sim_node *n);
	void (*turn)(struct sw_sim_node *n);
	/* Takes frames of other traffic. */
	void (*other)(
		void *ctx, struct sw_sim_node *n, const struct sw_sim_frame *f);
	void *other_ctx;
};

/* sw_sim_ip - return the address of node @i. */
static inline uint32_t sw_sim_ip(uint32_t i)
{
	return 0x0a000001 + i;
}

/* sw_sim_nodes_init - connect the nodes of a network that is built. */
void sw_sim_nodes_init(struct sw_sim_net *net);

/* sw_sim_node_payload - return the largest payload that fits its link's MTU. */
uint32_t sw_sim_node_payload(const struct sw_sim_node *n);

/* sw_sim_node_open - let a node run engines: it gets a loop and a port, whose
 * rate @n_lcores cores share, and with @has_loopback one to itself. */
void sw_sim_node_open(struct sw_sim_node *n, uint32_t n_lcores,
	bool has_loopback, uint64_t stop_gap_ns);

/* sw_sim_node_lcores - let an open node have more cores, with the same port.
 * sw_sim_core - return a core, from 0: the node itself. */
void sw_sim_node_lcores(
	struct sw_sim_node *n, uint32_t n_lcores, uint64_t stop_gap_ns);
static inline struct sw_sim_node *sw_sim_core(struct sw_sim_node *n, uint32_t i)
{
	return n + (uint64_t)i * n->net->n_nodes;
}

/* sw_sim_node_poke - let a node take a turn soon. */
void sw_sim_node_poke(struct sw_sim_node *n);

/* sw_sim_frame_new - return a frame with room for @payload bytes.
 * sw_sim_frame_other - return a frame of @bytes that no engine sends.
 * sw_sim_frame_free - give it back. */
struct sw_sim_frame *sw_sim_frame_new(struct sw_sim_net *net, uint32_t payload);
struct sw_sim_frame *sw_sim_frame_other(struct sw_sim_net *net, uint32_t from,
	uint32_t to, uint32_t bytes, const struct sw_sim_segment *segment);
void sw_sim_frame_free(struct sw_sim_net *net, struct sw_sim_frame *f);

/* sw_sim_send - put a frame into a link's queue, or drop it. */
void sw_sim_send(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f);

/* sw_sim_queued - return the bytes in a link's queue now. */
uint64_t sw_sim_queued(const struct sw_sim_net *net, struct sw_sim_link *l);

/* sw_sim_timer_add - call @fire at @at_ns, and whenever it says then. */
void sw_sim_timer_add(struct sw_sim_net *net, uint64_t at_ns,
	uint64_t (*fire)(void *ctx, uint64_t now_ns), void *ctx);

/* sw_sim_below - return a number below @n; sw_sim_chance - return true @ppm
 * times in a million. */
uint64_t sw_sim_below(uint64_t *rng, uint64_t n);
bool sw_sim_chance(uint64_t *rng, uint32_t ppm);

/* sw_sim_run - let time pass until @until_ns, or is_over. */
void sw_sim_run(struct sw_sim_net *net, uint64_t until_ns);

/* sw_sim_close - free all memory of the network. */
void sw_sim_close(struct sw_sim_net *net);

#endif
