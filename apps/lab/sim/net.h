/* net.h - a simulated network: nodes, switches and the links between them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Time is virtual and all arithmetic uses integers, so equal descriptions and
 * seeds give equal results on every machine.  A node runs the loop of a daemon
 * (engine/loop/loop.h) over a port of this network.  A frame waits in the queue
 * of each link on its path, and each link forwards it whole (store and
 * forward).  Links keep frames in order, so one event per link and node
 * suffices, and memory grows with the frames in flight.
 */
#ifndef SW_APPS_LAB_SIM_NET_H
#define SW_APPS_LAB_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lab/sim/events.h"
#include "apps/lab/sim/straggler.h"
#include "engine/loop/loop.h"
#include "engine/wire/frame.h"

struct sw_handoff_port;

enum {
	SW_SIM_UDP = 5700,   /* UDP port of endpoint 0 */
	SW_SIM_HEADS = 46,   /* Ethernet with FCS, IPv4, UDP */
	SW_SIM_WIRE = 66,    /* these, with preamble and gap */
	SW_SIM_LOOPBACK = 1, /* index of a node's port to itself */
	SW_SIM_PORTS = 2,
	SW_SIM_QUEUED = 3,
	SW_SIM_SIZES = 4, /* number of memory sizes of frames */
	SW_SIM_TIMERS = 4096,
};

struct sw_sim_net;
struct sw_sim_link;

/* A segment or datagram of other traffic (traffic.c). */
struct sw_sim_segment {
	uint32_t flow; /* index of its flow */
	bool is_ack, has_echo;
	uint64_t number; /* ACK: the segment that it acknowledges */
	uint64_t next;   /* ACK: all segments below have arrived */
	uint64_t sent_ns;
};

struct sw_sim_frame {
	struct sw_sim_frame *next;
	uint64_t depart_ns, arrive_ns;
	uint32_t from, to; /* nodes */
	uint32_t len;      /* header and payload */
	uint32_t bytes;    /* bytes that it takes in a buffer */
	uint16_t from_udp, to_udp;
	uint8_t size;             /* index of its memory size */
	bool is_marked, is_other; /* is_other: no engine sent it */
	bool is_plain;            /* its sender does not use ECN */
	bool has_body;            /* it contains the payload */
	union {
		struct sw_sim_segment other; /* with is_other */
		uint8_t head[SW_HEAD_BYTES];
	};
	_Alignas(64) uint8_t body[];
};

/* Memory that the ports of a switch share.  A port may queue alpha times the
 * free memory (dynamic thresholds). */
struct sw_sim_pool {
	uint64_t bytes, used;
	uint64_t alpha_ppm;
};

/* Losses and other faults of a link; chances in parts per million. */
struct sw_sim_faults {
	uint32_t loss, corrupt, duplicate, reorder;
	uint64_t reorder_ns; /* longest additional delay of a reordered frame */
	/* Gilbert and Elliott: the chances that a frame finds the link turning
	 * bad, or good again, and the chance of loss while it is bad. */
	uint32_t bad, good, bad_loss;
};

struct sw_sim_counts {
	uint64_t bytes; /* bytes sent on the wire */
	uint64_t n_frames;
	uint64_t most; /* most bytes in the queue */
	uint64_t n_dropped, n_lost, n_marked, n_down;
};

/* One direction of a link, with the queue before it.  Fields that each frame
 * touches come first. */
struct sw_sim_link {
	_Alignas(64) struct sw_sim_frame *first; /* all in flight */
	struct sw_sim_frame **last;
	/* first frame that has not left the queue */
	struct sw_sim_frame *waiting;
	uint64_t queued;  /* bytes, as of the last update */
	uint64_t free_ns; /* time at which its queue becomes empty */
	uint64_t delay_ns;
	uint32_t index, to; /* to, from: nodes or switches */
	uint32_t rest_q16;
	uint32_t ns_q16; /* ns per byte, in fixed point with 16 bits */
	bool is_bad, is_down;
	/* an event will report the departure of its first frame */
	bool is_departing;
	uint32_t most_bytes; /* largest frame that its MTU allows */
	uint64_t buffer_bytes;
	struct sw_sim_pool *pool;           /* NULL: its own buffer */
	const struct sw_sim_faults *faults; /* NULL: none */
	/* queue from which it marks some, and all; 0: never */
	uint64_t ecn_bytes;
	uint64_t bucket_ns; /* lead that a pause gives: a token bucket */
	struct sw_sim_counts n;
	uint64_t ecn_most_bytes;
	uint64_t rng, rate_bit_s;
	uint32_t from;
};

/* Fields that each turn touches come first. */
struct sw_sim_node {
	_Alignas(64) struct sw_port port; /* first, for casts */
	struct sw_sim_net *net;
	struct sw_sim_link *up; /* to its switch */
	struct sw_loop *loop;   /* NULL: it runs no engine */
	struct sw_port *ports[SW_SIM_PORTS];
	struct sw_handoff_port *loopback;   /* NULL: it has only one engine */
	struct sw_sim_frame *first, **last; /* received */
	uint64_t wake_ns, turned_ns, last_ns;
	/* Times of the latest wake-ups in the event queue; 0: none. */
	uint64_t queued_ns[SW_SIM_QUEUED];
	uint32_t n_inbox, n_taken, room, n_sent;
	/* Called after each turn.  Returns the time of the next turn that it
	 * wants. */
	uint64_t (*step)(void *ctx, uint64_t now_ns);
	void *ctx;
	uint32_t index;
	uint32_t n_lcores; /* 0: one; each of the first endpoints has one */
	bool is_deaf;      /* its port hides all frames for the moment */
	struct sw_sim_frame *taken[SW_RX_BURST];
	uint32_t n_ports, n_endpoints;
	uint64_t n_full;
	/* The stall that is next, or that lasts, or that just ended. */
	uint64_t stall_ns, stall_end_ns, stall_rng;
	char name[32];
};

/* Next hops from one switch to another: links[first] and the n - 1 that
 * follow. */
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
	uint64_t turn_ns, frame_ns; /* time of a turn, and in it of a frame */
	struct sw_sim_straggler *stall, *stall_gap; /* NULL: none */
	bool is_paced; /* nodes know the rates of their links */
	/* limit of a node's payload rate; 0: none */
	uint64_t port_bit_s;
	uint32_t ring; /* most frames in a core's ring */
	bool is_bare;  /* frames omit the payloads of tensors */
	bool is_over;
	struct sw_sim_events events;
	bool is_running; /* within sw_sim_run */
	/* The node whose turn is the next event, and the only event of this
	 * nanosecond; NULL: none. */
	struct sw_sim_node *ready;
	/* [n_cores]: the nodes, then the second core of each node, and so
	 * on. */
	struct sw_sim_node *nodes;
	uint32_t n_nodes, n_cores, n_switches;
	struct sw_sim_link *links;
	uint32_t n_links;
	struct sw_sim_pool *pools; /* by switch; NULL: none */
	struct sw_sim_faults faults;
	uint32_t *switch_of;      /* by node */
	uint32_t *down;           /* by node: the link from its switch */
	struct sw_sim_hops *hops; /* [from switch][to switch] */
	uint32_t *hop_links;
	struct sw_sim_timer timers[SW_SIM_TIMERS];
	uint32_t n_timers;
	struct sw_sim_frame *free[SW_SIM_SIZES];
	void *slabs; /* memory of frames, as a list */
	struct sw_sim_frame **strays;
	struct sw_sim_link **stray_links;
	uint32_t n_strays;
	uint64_t n_arrived, n_events, n_alive, most_alive;
	/* Called for each frame that reaches the end of a link; NULL: no
	 * call. */
	void (*tap)(void *ctx, const struct sw_sim_link *l,
		const struct sw_sim_frame *f);
	void *tap_ctx;
	/* Functions of node.c: receive a frame, wake up, take a turn. */
	void (*take)(struct sw_sim_node *n, struct sw_sim_frame *f);
	void (*wake)(struct sw_sim_node *n);
	void (*turn)(struct sw_sim_node *n);
	/* Receives frames of other traffic. */
	void (*other)(
		void *ctx, struct sw_sim_node *n, const struct sw_sim_frame *f);
	void *other_ctx;
};

/* sw_sim_ip - return the address of node @i. */
static inline uint32_t sw_sim_ip(uint32_t i)
{
	return 0x0a000001 + i;
}

/* sw_sim_nodes_init - connect the nodes, after the network has been built. */
void sw_sim_nodes_init(struct sw_sim_net *net);

/* sw_sim_node_payload - return the largest payload that fits its link's MTU. */
uint32_t sw_sim_node_payload(const struct sw_sim_node *n);

/* sw_sim_node_open - let a node run engines: give it a loop and a port, whose
 * rate @n_lcores cores share, and with @has_loopback a port to itself. */
void sw_sim_node_open(struct sw_sim_node *n, uint32_t n_lcores,
	bool has_loopback, uint64_t stop_gap_ns);

/* sw_sim_node_lcores - give an open node more cores over the same port.
 * sw_sim_core - return core @i; core 0 is the node itself. */
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
 * sw_sim_frame_free - free a frame. */
struct sw_sim_frame *sw_sim_frame_new(struct sw_sim_net *net, uint32_t payload);
struct sw_sim_frame *sw_sim_frame_other(struct sw_sim_net *net, uint32_t from,
	uint32_t to, uint32_t bytes, const struct sw_sim_segment *segment);
void sw_sim_frame_free(struct sw_sim_net *net, struct sw_sim_frame *f);

/* sw_sim_send - put a frame into a link's queue, or drop it. */
void sw_sim_send(
	struct sw_sim_net *net, struct sw_sim_link *l, struct sw_sim_frame *f);

/* sw_sim_queued - return the bytes that are in a link's queue now. */
uint64_t sw_sim_queued(const struct sw_sim_net *net, struct sw_sim_link *l);

/* sw_sim_timer_add - call @fire at @at_ns, and then at each time that it
 * returns. */
void sw_sim_timer_add(struct sw_sim_net *net, uint64_t at_ns,
	uint64_t (*fire)(void *ctx, uint64_t now_ns), void *ctx);

/* sw_sim_below - return a random number below @n. sw_sim_chance - return true
 * with a chance of @ppm in a million. */
uint64_t sw_sim_below(uint64_t *rng, uint64_t n);
bool sw_sim_chance(uint64_t *rng, uint32_t ppm);

/* sw_sim_run - run until @until_ns, or until is_over is set. */
void sw_sim_run(struct sw_sim_net *net, uint64_t until_ns);

/* sw_sim_close - free all memory of the network. */
void sw_sim_close(struct sw_sim_net *net);

#endif
