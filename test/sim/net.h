/* net.h - a simulated network: nodes, links with faults, virtual time.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame waits in its sender's queue, leaves (only then are gathered bytes
 * read, as a NIC does it), meets the faults, queues again at the switch for
 * its receiver, and arrives.
 */
#ifndef SW_TEST_SIM_NET_H
#define SW_TEST_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "pmd/lcores/handoff.h"
#include "engine/loop/loop.h"
#include "engine/loop/port.h"
#include "engine/wire/wire.h"
#include "test/support/random.h"

enum {
	SIM_UDP = 5700, /* of endpoint 0 */
	SIM_ENDPOINTS = SW_LOOP_ENGINES,
	SIM_WAYS = 64,
	SIM_LOOPBACK = 1, /* a node's second port leads back to it */
	SIM_PORTS = 2,
	SIM_NODES = 72,
	SIM_INBOX = 4096, /* frames that a port keeps for a node */
	SIM_HELD = 64,
	SIM_STORY = 256,
	SIM_TRUNKS = 2,
	SIM_WIRE_BYTES = 66, /* around our header and payload, on the wire */
};

/* Chances are per frame, in parts per million. */
struct sim_faults {
	uint32_t loss, dup, late, corrupt, truncate;
	uint64_t jitter_ns; /* uniform extra delay: reorders */
	uint64_t late_ns;   /* longest delay of a replay */
	uint32_t nap;       /* chance that a poll is followed by a gap */
	uint64_t nap_ns;    /* longest gap */
	/* Bursts (Gilbert and Elliott): a sender's link turns bad, loses
	 * burst_loss while it is, and turns good again after burst_ns at
	 * most. */
	uint32_t burst_enter, burst_loss;
	uint64_t burst_ns;
	/* Frames of these types (bits) are lost more often; with last_only of
	 * data frames only the last chunk of a tensor is. */
	uint32_t type_mask, type_loss;
	bool last_only;
	/* Longest extra time between tx and the moment the bytes are read. */
	uint64_t gather_ns;
	/* Bytes that the switch queues for one receiver, 0: no limit. */
	uint32_t queue_bytes;
	/* ACKs that are changed to acknowledge everything. */
	uint32_t false_ack;
	/* From the nodes of one mask to those of the other nothing arrives;
	 * bit i stands for nodes i, i + 32, … */
	uint32_t cut_from, cut_to;
	uint64_t cut_at_ns, cut_until_ns;
};

struct sim_frame {
	struct sim_frame *next; /* in an inbox */
	uint64_t at_ns;
	uint32_t from, to, len;
	uint16_t from_udp, to_udp; /* UDP ports */
	bool is_leaving;           /* it has not left its sender yet */
	bool is_marked;            /* by a trunk */
	const void *payload;       /* then: bytes to gather, NULL: gathered */
	uint8_t bytes[];
};

enum sim_fate {
	SIM_PASS,
	SIM_LOST,
	SIM_HOLD, /* kept, until sim_net_release */
	SIM_N_FATES,
};

/* One line of the story: a frame as it left. */
struct sim_line {
	uint64_t at_ns;
	uint32_t from, to, len;
	enum sim_fate fate;
	uint8_t head[SW_HEAD_BYTES];
};

/* A link of the network's core, one way: a rate and a finite queue that every
 * flow from one set of nodes to another shares (tail drop). */
struct sim_trunk {
	uint64_t from_mask, to_mask; /* nodes 0 to 63 */
	uint64_t rate_bits_s;        /* 0: there is no trunk */
	uint32_t queue_bytes;
	uint32_t mark_bytes; /* 1 + queue from which on it marks; 0: never */
	uint64_t busy_until_ns;
	uint64_t n_data, n_dropped; /* data frames offered; frames dropped */
	uint64_t n_marked;
	uint64_t max_queued; /* bytes */
};

/* A part of the network's core with a smaller MTU, one way: it drops frames
 * between the nodes of two masks whose header and payload have more bytes. */
struct sim_narrow {
	uint64_t from_mask, to_mask; /* nodes 0 to 63 */
	uint32_t max_len;            /* 0: none */
};

struct sim_net;

/* One machine: a port to the others and one to itself.  Or one more lcore of a
 * machine, which has a queue of the first, or not, reaches the second by a
 * hand-off and polls in its own time. */
/* A port of an engine, with an oracle. */
struct sim_watch {
	struct sw_port_ops ops; /* first: it is cast back */
	const struct sw_port_ops *theirs;
	struct sim_node *node;
};

struct sim_node {
	struct sw_port port; /* first: it is cast back */
	struct sw_handoff_port *loopback;
	struct sim_watch loopback_watch, handoff_watch;
	struct sw_port *ports[SIM_PORTS];
	uint32_t main;  /* index of the machine; its own: it is one */
	uint32_t lcore; /* of the machine */
	/* of a machine: */
	struct sim_node *lcores[SW_MAX_LCORES];
	uint32_t n_lcores;
	uint8_t owners[SW_LOOP_ENGINES]; /* lcores, by endpoint */
	struct sw_handoff handoff;
	struct sw_loop loop;
	struct sim_net *net;
	uint32_t index;
	bool is_up;
	uint64_t bad_until_ns; /* its link is in a burst of losses */
	uint64_t wake_ns;
	uint64_t gap_until_ns;  /* it does not poll before then */
	uint64_t sent_until_ns; /* its link is busy until then */
	uint64_t rate_bits_s;
	uint64_t turn_ns;                /* a turn of its loop takes so long */
	uint64_t queued_until_ns;        /* the switch's link to it is busy */
	struct sim_frame *first, **last; /* inbox */
	uint32_t n_inbox;
	struct sim_frame *taken[SW_RX_BURST];
	uint32_t n_taken;
	/* Called after every turn: submit work, check results. */
	void (*step)(void *ctx, uint64_t now_ns);
	void *ctx;
};

struct sim_net {
	uint64_t now_ns;
	uint64_t rng;
	uint64_t latency_ns;
	uint32_t rx_burst, tx_burst; /* most frames that a port has at once */
	enum sw_steering steering;   /* at machines of several lcores */
	uint64_t hash_key;  /* key of SW_STEER_RSS; may change at any time */
	bool is_deaf;       /* the hash ignores ports */
	uint64_t rehash_ns; /* it changes then; 0: never */
	struct sim_faults faults;
	struct sim_trunk trunks[SIM_TRUNKS];
	struct sim_narrow narrow;
	struct sim_node nodes[SIM_NODES];
	uint32_t n_nodes;
	struct sim_frame **heap; /* by at_ns */
	uint32_t n_heap, heap_size;
	uint64_t n_frames, n_lost, n_false_acks;
	uint64_t n_overflown[SW_N_TYPES]; /* share of n_lost dropped by the
					     switch */
	/* Sees every frame that the engine gives to a port. */
	void (*on_tx)(void *ctx, uint32_t from, const struct sw_tx_frame *t);
	/* Number of chunks of tensor @key, for last_only. */
	uint32_t (*n_chunks)(void *ctx, uint32_t key);
	void *ctx;
	/* Decides about every frame as it leaves, and may change its bytes;
	 * NULL: all pass. */
	enum sim_fate (*hook)(void *ctx, struct sim_frame *f);
	void *hook_ctx;
	struct sim_frame *held[SIM_HELD]; /* by the hook, in order */
	uint32_t n_held;
	struct sim_line story[SIM_STORY];
	uint64_t n_story;
};

void sim_net_init(struct sim_net *net, uint64_t seed);
void sim_net_fini(struct sim_net *net);

/* Address of node @i. */
uint32_t sim_ip(uint32_t i);

/* Add a node. */
struct sim_node *sim_net_add(struct sim_net *net, uint32_t max_payload);
/* Add one more lcore to machine @main. */
struct sim_node *sim_net_add_lcore(struct sim_net *net, uint32_t main);
/* @node runs there, as endpoint @endpoint of the machine. */
void sim_node_start(struct sim_node *n, uint32_t endpoint,
	struct sw_engine *node, uint64_t stop_gap_ns);

/* A node stops, with all that runs there: frames to it and in its queue vanish,
 * what has left stays on its way. */
void sim_node_stop(struct sim_node *n);

/* Memory goes: frames that wait to be gathered from it vanish. */
void sim_net_forget(struct sim_net *net, const void *mem, uint64_t bytes);

/* Something was put into a ring for a node: it polls soon. */
void sim_node_poke(struct sim_node *n);

/* A node does not poll for @gap_ns, as a stopped process. */
void sim_node_freeze(struct sim_node *n, uint64_t gap_ns);

/* Deliver held frame @i now and forget it; or deliver a copy of it. */
void sim_net_release(struct sim_net *net, uint32_t i);
void sim_net_replay(struct sim_net *net, const struct sim_frame *f);

/* Let virtual time pass until @done says so or @until_ns.  Returns false when
 * the time ran out. */
bool sim_net_run(struct sim_net *net, uint64_t until_ns,
	bool (*done)(void *ctx), void *ctx);

/* Print the last frames. */
void sim_net_tell(const struct sim_net *net);

/* --- road.c: what happens to a frame between two nodes --- */

void sim_road_depart(struct sim_net *net, struct sim_frame *f);

/* --- heap.c --- */

void sim_heap_put(struct sim_net *net, struct sim_frame *f);
struct sim_frame *sim_heap_take(struct sim_net *net);

/* @bytes of zeros as the engine wants them (env.h); free. */
void *sim_zeros(uint64_t bytes);

/* Seeded randomness: below @n; true once in a million @ppm times. */
uint64_t sim_below(uint64_t *rng, uint64_t n);
bool sim_chance(uint64_t *rng, uint32_t ppm);

#endif
