/* neigh.h - map IP addresses to Ethernet addresses.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * IPv4 uses ARP (RFC 826, RFC 5227), IPv6 neighbour discovery (RFC 4861).
 *
 * The packet path reads the table and adds new peers. Another thread calls
 * sw_neigh_tick, which repeats requests, gives up and logs. This file uses
 * nothing of DPDK and reads no clock.
 *
 * An address that answered once stays in use until another answer replaces it.
 * The table does not detect dead peers; the protocol does. If another node
 * claims an address that we send to, we ask its first owner, which keeps the
 * address if it answers.
 *
 * A full table evicts entries that we never sent to, then entries that never
 * answered, so strangers cannot keep a peer out.
 */
#ifndef SW_PMD_DPDK_NEIGH_H
#define SW_PMD_DPDK_NEIGH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"
#include "pmd/dpdk/frame.h"

enum {
	SW_NEIGH_SLOTS = 256,  /* peers and gateways; a power of two */
	SW_NEIGH_PROBES = 32,  /* slots that may hold an address */
	SW_NEIGH_FRAME = 86,   /* largest frame, without tag */
	SW_NEIGH_TICK_MS = 50, /* interval of ticks */
};

/* An entry. Any thread writes its fields, except where a comment says
 * otherwise. */
struct sw_neigh_peer {
	/* Odd while a thread replaces the address; each replacement adds 2. */
	_Atomic uint32_t version;
	_Atomic uint64_t high, low; /* struct sw_ip; none: free */
	_Atomic bool is_new;        /* until the next tick */
	_Atomic bool is_wanted;     /* we have sent to it */
	_Atomic bool is_used;       /* since the last tick */
	_Atomic bool is_asked;      /* the lcore must ask for it */
	_Atomic bool is_answered;   /* since the last tick */
	_Atomic uint64_t mac;       /* 0: not known */
	_Atomic uint64_t claim; /* Ethernet address of a claimant; 0: none */
	/* used by the ticking thread */
	uint64_t used_ns, asked_ns, answered_ns, warned_ns, claimed_ns;
	uint32_t n_asked; /* requests since the last answer */
};

struct sw_neigh {
	uint64_t mac;
	struct sw_ip ip;
	uint32_t bits; /* prefix of our network */
	struct sw_ip gateway;
	/* The lcore has something to send: a request or an announcement. */
	_Atomic bool is_due;
	_Atomic bool is_announcing;
	_Atomic uint64_t rival; /* another node with our address; 0: none */
	_Atomic uint32_t n_evicted;
	uint64_t rival_ns; /* ticking thread: time of the last log line */
	struct sw_neigh_peer peers[SW_NEIGH_SLOTS];
};

/* sw_neigh_init - open a table for our @mac and @ip in a network of @bits;
 * @gateway leads to other networks; none if there is no gateway. */
void sw_neigh_init(struct sw_neigh *t, uint64_t mac, struct sw_ip ip,
	uint32_t bits, struct sw_ip gateway);

/* sw_neigh_find - return the next hop's Ethernet address for a frame to @ip; 0
 * while unknown, which triggers a request. Thread: an lcore. */
uint64_t sw_neigh_find(struct sw_neigh *t, struct sw_ip ip);

/* sw_neigh_take - learn from the packet of @n bytes at @at, for which
 * sw_outer_check returned SW_OUTER_NEIGHBOUR. Returns true if the sender
 * expects an answer at @reply_to and @reply_mac; @reply_to is none if the
 * sender probes whether our address is free. Thread: an lcore. */
bool sw_neigh_take(struct sw_neigh *t, const uint8_t *at, uint32_t n,
	struct sw_ip *reply_to, uint64_t *reply_mac);

/* sw_neigh_due - return the next address to ask for, our own address to
 * announce it, or none if there is nothing to send. @from is 0 on the first
 * call of a pass. Thread: an lcore. */
struct sw_ip sw_neigh_due(struct sw_neigh *t, uint32_t *from);

/* sw_neigh_write - write a frame at @at (SW_NEIGH_FRAME + SW_TAG_BYTES): the
 * answer to @ip at @mac or, if @mac is 0, the request for @ip, which announces
 * our address if it is our own. Returns its bytes. */
uint32_t sw_neigh_write(
	const struct sw_outer *o, uint8_t *at, struct sw_ip ip, uint64_t mac);

/* sw_neigh_announce - make the lcore announce our address, such as after the
 * link came up. */
void sw_neigh_announce(struct sw_neigh *t);

/* sw_neigh_tick - ask again for peers in use, forget unused ones, and log to
 * @log, for port @port, peers that do not answer and nodes that claim our
 * address. Thread: one, every SW_NEIGH_TICK_MS. */
void sw_neigh_tick(struct sw_neigh *t, uint64_t now_ns, const char *port,
	const struct sw_log *log);

/* Between neigh_frame.c, which reads packets, and the table: */

/* sw_neigh_heard - learn that @from claims to have @mac. @is_for_us: @from asks
 * for us, so it gets an entry, because we may soon need its address. Returns
 * false if @from is our own address, which the next tick logs. */
bool sw_neigh_heard(
	struct sw_neigh *t, struct sw_ip from, uint64_t mac, bool is_for_us);

#endif
