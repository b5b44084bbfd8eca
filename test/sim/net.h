/* net.h - a simulated network: nodes, links with faults, virtual time.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame waits in its sender's queue and leaves; only then does the port read
 * gathered bytes, as a NIC does. Then it passes the faults, waits in the
 * switch's queue for its receiver, and arrives.
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
	SIM_INBOX = 4096, /* frames that a port queues for a node */
	SIM_HELD = 64,
	SIM_STORY = 256,
	SIM_TRUNKS = 2,
	SIM_WIRE_BYTES = 66, /* besides our header and payload */
};

/* Chances are per frame, in parts per million. */
struct sim_faults {
	uint32_t loss, dup, late, corrupt, truncate;
	uint64_t jitter_ns; /* uniform extra delay; causes reordering */
	uint64_t late_ns;   /* longest delay of a replay */
	uint32_t nap;       /* chance that a gap follows a poll */
	uint64_t nap_ns;    /* longest gap */
	/* Bursts (Gilbert and Elliott): a sender's link turns bad, loses frames
	 * with chance burst_loss, and recovers after at most burst_ns. */
	uint32_t burst_enter, burst_loss;
	uint64_t burst_ns;
	/* Extra loss for frames of these types (bits). With last_only it
	 * applies to the last chunk of a tensor, among data frames. */
	uint32_t type_mask, type_loss;
	bool last_only;
	/* Longest delay between tx and the moment the port reads the bytes. */
	uint64_t gather_ns;
	/* Bytes that the switch queues for one receiver, 0: no limit. */
	uint32_t queue_bytes;
	/* Chance that an ACK is changed to acknowledge everything. */
	uint32_t false_ack;
	/* Frames from the nodes of one mask to the nodes of the other are lost;
	 * bit i stands for nodes i, i + 32, … */
	uint32_t cut_from, cut_to;
	uint64_t cut_at_ns, cut_until_ns;
};

struct sim_frame {
	struct sim_frame *next; /* in an inbox */
	uint64_t at_ns;
	uint32_t from, to, len;
	uint16_t from_udp, to_udp; /* UDP ports */
	bool is_leaving;           /* still in its sender's port */
	bool is_marked;            /* a trunk has set the mark */
	const void *payload;       /* bytes still to gather, or NULL */
	uint8_t bytes[];
};

enum sim_fate {
	SIM_PASS,
	SIM_LOST,
	SIM_HOLD, /* hold it until sim_net_release */
	SIM_N_FATES,
};

/* One line of the log: a frame at its departure. */
struct sim_line {
	uint64_t at_ns;
	uint32_t from, to, len;
	enum sim_fate fate;
	uint8_t head[SW_HEAD_BYTES];
};

/* A link of the network's core, in one direction: a rate and a finite queue
 * (tail drop), shared by all flows from one set of nodes to another. */
struct sim_trunk {
	uint64_t from_mask, to_mask; /* nodes 0 to 63 */
	uint64_t rate_bits_s;        /* 0: no trunk */
	uint32_t queue_bytes;
	uint32_t mark_bytes; /* 1 + queue length for a mark; 0: never */
	uint64_t busy_until_ns;
	uint64_t n_data, n_dropped; /* data frames offered; frames dropped */
	uint64_t n_marked;
	uint64_t max_queued; /* bytes */
};

/* A path with a smaller MTU, in one direction: it drops frames between the
 * nodes of two masks whose header and payload exceed max_len. */
struct sim_narrow {
	uint64_t from_mask, to_mask; /* nodes 0 to 63 */
	uint32_t max_len;            /* 0: none */
};

struct sim_net;

/* One machine, with a port to the others and a loopback port; or one more lcore
 * of a machine. Such an lcore has a queue of the machine's port or none. It has
 * a loopback of its own and polls independently. */
/* A port of an engine, which shows its frames to the oracle. */
struct sim_watch {
	struct sw_port_ops ops; /* first: cast back */
	const struct sw_port_ops *theirs;
	struct sim_node *node;
};

struct sim_node {
	struct sw_port port; /* first: cast back */
	struct sw_handoff_port *loopback;
	struct sim_watch loopback_watch, handoff_watch;
	struct sw_port *ports[SIM_PORTS];
	uint32_t main;  /* index of its machine; its own: a machine */
	uint32_t lcore; /* index within the machine */
	/* Fields of a machine: */
	struct sim_node *lcores[SW_MAX_LCORES];
	uint32_t n_lcores;
	uint8_t owners[SW_LOOP_ENGINES]; /* lcore of each endpoint */
	struct sw_handoff handoff;
	struct sw_loop loop;
	struct sim_net *net;
	uint32_t index;
	bool is_up;
	uint64_t bad_until_ns; /* end of a burst of losses */
	uint64_t wake_ns;
	uint64_t gap_until_ns;  /* end of a gap in polling */
	uint64_t sent_until_ns; /* end of transmission on its link */
	uint64_t rate_bits_s;
	uint64_t turn_ns;                /* duration of a turn of its loop */
	uint64_t queued_until_ns;        /* end of sending at the switch */
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
	uint32_t rx_burst, tx_burst; /* most frames per call of a port */
	enum sw_steering steering;   /* for machines with several lcores */
	uint64_t hash_key;  /* key of SW_STEER_RSS; may change at any time */
	bool is_deaf;       /* the hash ignores ports */
	uint64_t rehash_ns; /* when it changes; 0: never */
	struct sim_faults faults;
	struct sim_trunk trunks[SIM_TRUNKS];
	struct sim_narrow narrow;
	struct sim_node nodes[SIM_NODES];
	uint32_t n_nodes;
	struct sim_frame **heap; /* by at_ns */
	uint32_t n_heap, heap_size;
	uint64_t n_frames, n_lost, n_false_acks;
	uint64_t n_overflown[SW_N_TYPES]; /* dropped by the switch */
	/* Called for every frame that an engine gives to a port. */
	void (*on_tx)(void *ctx, uint32_t from, const struct sw_tx_frame *t);
	/* Number of chunks of tensor @key, for last_only. */
	uint32_t (*n_chunks)(void *ctx, uint32_t key);
	void *ctx;
	/* Decides about every frame at its departure, and may change its bytes;
	 * NULL: all pass. */
	enum sim_fate (*hook)(void *ctx, struct sim_frame *f);
	void *hook_ctx;
	struct sim_frame *held[SIM_HELD]; /* held by the hook, in order */
	uint32_t n_held;
	struct sim_line story[SIM_STORY];
	uint64_t n_story;
};

void sim_net_init(struct sim_net *net, uint64_t seed);
void sim_net_fini(struct sim_net *net);

/* Return the address of node @i. */
uint32_t sim_ip(uint32_t i);

/* Add a node. */
struct sim_node *sim_net_add(struct sim_net *net, uint32_t max_payload);
/* Add one more lcore to machine @main. */
struct sim_node *sim_net_add_lcore(struct sim_net *net, uint32_t main);
/* Run @node there, as endpoint @endpoint of the machine. */
void sim_node_start(struct sim_node *n, uint32_t endpoint,
	struct sw_engine *node, uint64_t stop_gap_ns);

/* Stop a node and everything that runs there: frames to it and in its queue
 * vanish; frames that have left it stay in flight. */
void sim_node_stop(struct sim_node *n);

/* Drop frames that the ports still have to gather from memory that is about to
 * be freed. */
void sim_net_forget(struct sim_net *net, const void *mem, uint64_t bytes);

/* Make a node poll soon, after a write to one of its rings. */
void sim_node_poke(struct sim_node *n);

/* Stop a node's polling for @gap_ns, as a stopped process would. */
void sim_node_freeze(struct sim_node *n, uint64_t gap_ns);

/* Deliver held frame @i now and remove it; or deliver a copy of it. */
void sim_net_release(struct sim_net *net, uint32_t i);
void sim_net_replay(struct sim_net *net, const struct sim_frame *f);

/* Run until @done returns true or virtual time reaches @until_ns. Return false
 * on timeout. */
bool sim_net_run(struct sim_net *net, uint64_t until_ns,
	bool (*done)(void *ctx), void *ctx);

/* Print the last frames. */
void sim_net_tell(const struct sim_net *net);

/* --- road.c: frames between two nodes --- */

void sim_road_depart(struct sim_net *net, struct sim_frame *f);

/* --- heap.c --- */

void sim_heap_put(struct sim_net *net, struct sim_frame *f);
struct sim_frame *sim_heap_take(struct sim_net *net);

/* Return @bytes of zeros, aligned as the engine needs them (env.h); free
 * them. */
void *sim_zeros(uint64_t bytes);

/* Seeded randomness: a number below @n; true with a chance of @ppm in a
 * million. */
uint64_t sim_below(uint64_t *rng, uint64_t n);
bool sim_chance(uint64_t *rng, uint32_t ppm);

#endif
