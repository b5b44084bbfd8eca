/* net.h - a simulated network: nodes, links with faults, virtual time.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SIM_NET_H
#define SW_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/loop.h"
#include "engine/port.h"

enum { SIM_NODES = 24, SIM_INBOX = 4096 };

/* Chances are per frame, in parts per million. */
struct sim_faults {
	uint32_t loss, dup, late, corrupt, truncate;
	uint64_t jitter_ns;	/* uniform extra delay: reorders */
	uint64_t late_ns;	/* longest delay of a replay */
	uint32_t nap;		/* chance that a poll is followed by a gap */
	uint64_t nap_ns;	/* longest gap */
};

struct sim_frame {
	struct sim_frame *next; /* in an inbox */
	uint64_t at_ns;
	uint32_t to, from_ip, len;
	uint8_t bytes[];
};

struct sim_net;

/* One node with one port. */
struct sim_node {
	struct sw_port port;
	struct sw_port *ports[1];
	struct sw_loop loop;
	struct sim_net *net;
	uint32_t index;
	bool is_up;
	uint64_t wake_ns;
	uint64_t gap_until_ns; /* it does not poll before then */
	uint64_t sent_until_ns; /* its link is busy until then */
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
	uint64_t rate_bits_s, latency_ns;
	struct sim_faults faults;
	struct sim_node nodes[SIM_NODES];
	uint32_t n_nodes;
	struct sim_frame **heap; /* by at_ns */
	uint32_t n_heap, heap_size;
	uint64_t n_frames;
	/* Says which frames a test wants to lose; NULL: none. */
	bool (*drop)(void *ctx, const uint8_t *bytes, uint32_t len);
	void *drop_ctx;
};

void sim_net_init(struct sim_net *net, uint64_t seed);
void sim_net_fini(struct sim_net *net);

/* Address of node @i. */
uint32_t sim_ip(uint32_t i);

/* Add a node; @node is polled through its own loop. */
struct sim_node *sim_net_add(struct sim_net *net, uint32_t max_payload);
void sim_node_start(struct sim_node *n, struct sw_node *node,
	uint64_t stop_gap_ns);

/* A node stops: its frames vanish.  What it sent stays on its way. */
void sim_node_stop(struct sim_node *n);

/* Let virtual time pass until @done says so or @until_ns.  Returns false when
 * the time ran out. */
bool sim_net_run(struct sim_net *net, uint64_t until_ns,
	bool (*done)(void *ctx), void *ctx);

/* Seeded randomness, 64 bits; below @n; true once in a million @ppm times. */
uint64_t sim_random(uint64_t *rng);
uint64_t sim_below(uint64_t *rng, uint64_t n);
bool sim_chance(uint64_t *rng, uint32_t ppm);

#endif
