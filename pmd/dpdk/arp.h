/* arp.h - the Ethernet address of an IPv4 address; RFC 826, RFC 5227.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A table that the packet path reads, and extends when a peer is new. Another
 * thread asks again, gives up and logs: it calls sw_arp_tick. This file uses
 * nothing of DPDK and reads no clock.
 *
 * An address that answered once stays in use until another answer replaces it:
 * silence reveals a dead peer, not ARP. If another node claims an address that
 * we send to, we ask its first owner, which keeps the address if it answers.
 *
 * A full table evicts entries that we never sent to, then entries that never
 * answered, so strangers cannot keep a peer out.
 */
#ifndef SW_PMD_DPDK_ARP_H
#define SW_PMD_DPDK_ARP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"
#include "pmd/dpdk/frame.h"

enum {
	SW_ARP_SLOTS = 256,  /* peers and gateways; a power of two */
	SW_ARP_PROBES = 32,  /* slots in which an address may lie */
	SW_ARP_FRAME = 60,   /* bytes of a frame, padded; tag not counted */
	SW_ARP_TICK_MS = 50, /* interval of ticks */
};

/* Written by any thread unless it says otherwise. */
struct sw_arp_peer {
	_Atomic uint32_t ip;      /* 0: free */
	_Atomic bool is_new;      /* until the next tick */
	_Atomic bool is_wanted;   /* we have sent to it */
	_Atomic bool is_used;     /* since the last tick */
	_Atomic bool is_asked;    /* the lcore must ask for it */
	_Atomic bool is_answered; /* since the last tick */
	_Atomic uint64_t mac;     /* 0: not known */
	_Atomic uint64_t claim;   /* claim of another node, to be judged; 0:
				     none */
	/* used by the ticking thread */
	uint64_t used_ns, asked_ns, answered_ns, warned_ns, claimed_ns;
	uint32_t n_asked; /* requests since the last answer */
};

struct sw_arp {
	uint64_t mac;
	uint32_t ip, mask, gateway; /* gateway 0: none */
	/* The lcore has something to send: a request or an announcement. */
	_Atomic bool is_due;
	_Atomic bool is_announcing;
	_Atomic uint64_t rival; /* another node with our address; 0: none */
	_Atomic uint32_t n_evicted;
	uint64_t rival_ns; /* ticking thread: time of the last log line */
	struct sw_arp_peer peers[SW_ARP_SLOTS];
};

/* sw_arp_init - open a table for our @mac and @ip in a network of @bits;
 * @gateway leads to other networks, 0: none. */
void sw_arp_init(struct sw_arp *a, uint64_t mac, uint32_t ip, uint32_t bits,
	uint32_t gateway);

/* sw_arp_find - return the next hop's Ethernet address for a frame to @ip; 0
 * while unknown, which triggers a request. Thread: an lcore. */
uint64_t sw_arp_find(struct sw_arp *a, uint32_t ip);

/* sw_arp_take - learn from the ARP packet of @n bytes at @at. Returns true if
 * @reply_to and @reply_mac expect an answer. Thread: an lcore. */
bool sw_arp_take(struct sw_arp *a, const uint8_t *at, uint32_t n,
	uint32_t *reply_to, uint64_t *reply_mac);

/* sw_arp_due - return the next address to ask for, our own address to announce
 * it, or 0 if there is nothing to send. @from is 0 on the first call of a pass.
 * Thread: an lcore. */
uint32_t sw_arp_due(struct sw_arp *a, uint32_t *from);

/* sw_arp_write - write a frame at @at (SW_ARP_FRAME + SW_TAG_BYTES): with @mac,
 * the answer to @ip there; without, the request for @ip. Returns its bytes. */
uint32_t sw_arp_write(
	const struct sw_outer *o, uint8_t *at, uint32_t ip, uint64_t mac);

/* sw_arp_announce - announce our address, as after the link came up. */
void sw_arp_announce(struct sw_arp *a);

/* sw_arp_tick - ask again for peers in use, forget unused ones, and log to
 * @log, for port @port, peers that do not answer and nodes that claim our
 * address. Thread: one, every SW_ARP_TICK_MS. */
void sw_arp_tick(struct sw_arp *a, uint64_t now_ns, const char *port,
	const struct sw_log *log);

#endif
