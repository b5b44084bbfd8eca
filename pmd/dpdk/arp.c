/* arp.c - which Ethernet address an IPv4 address has; RFC 826, RFC 5227.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/arp.h"

#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>

#define BROADCAST UINT64_C(0xffffffffffff)

#define MS         UINT64_C(1000000)
#define S          UINT64_C(1000000000)
#define ASK_MIN    (100 * MS) /* doubles with every ask without answer */
#define ASK_MAX    (1 * S)
#define ASK_LIMIT  8u
#define REFRESH    (30 * S) /* asks who is used and was silent so long */
#define FORGET     (300 * S)
#define GIVE_UP    (10 * S)   /* on who never answered and is not used */
#define CLAIM_WAIT (250 * MS) /* for the first owner's answer */
#define WARN_AFTER (3 * S)
#define WARN_EVERY (30 * S)

#define GET(x)    atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, v) atomic_store_explicit(&(x), v, memory_order_relaxed)

void sw_arp_init(struct sw_arp *a, uint64_t mac, uint32_t ip, uint32_t bits,
	uint32_t gateway)
{
	memset(a, 0, sizeof(*a));
	a->mac = mac;
	a->ip = ip;
	a->mask = ~UINT32_C(0) << (32 - bits);
	a->gateway = gateway;
}

static uint32_t slot_of(uint32_t ip, uint32_t probe)
{
	return ((ip * 2654435761u >> 16) + probe) % SW_ARP_SLOTS;
}

/* The entry of @ip; NULL: none. */
static struct sw_arp_peer *find(struct sw_arp *a, uint32_t ip)
{
	for (uint32_t i = 0; i < SW_ARP_PROBES; i++) {
		struct sw_arp_peer *p = &a->peers[slot_of(ip, i)];

		if (GET(p->ip) == ip)
			return p;
	}
	return NULL;
}

/* Take the place @p of address @old, 0: it is free, for @ip.  The old one may
 * have answered at that moment: its answer is not of @ip. */
static bool take_place(struct sw_arp_peer *p, uint32_t old, uint32_t ip)
{
	if (!atomic_compare_exchange_strong(&p->ip, &old, ip))
		return false;
	SET(p->mac, 0);
	SET(p->claim, 0);
	SET(p->is_answered, false);
	SET(p->is_wanted, false);
	SET(p->is_new, true);
	return true;
}

/* May the entry be evicted?  @is_strict: only if we have never sent to it. */
static bool may_evict(const struct sw_arp_peer *p, bool is_strict)
{
	return !GET(p->is_wanted) || (!is_strict && !GET(p->mac));
}

/* Evict an entry for @ip; NULL: none may be.  The search begins at another one
 * each time, so that an entry lasts until its answer comes. */
static struct sw_arp_peer *evict(struct sw_arp *a, uint32_t ip, bool is_strict)
{
	uint32_t first = atomic_fetch_add(&a->n_evicted, 1);

	for (uint32_t i = 0; i < SW_ARP_PROBES; i++) {
		struct sw_arp_peer *p =
			&a->peers[slot_of(ip, (first + i) % SW_ARP_PROBES)];

		if (may_evict(p, is_strict) && take_place(p, GET(p->ip), ip))
			return p;
	}
	return NULL;
}

/* The entry of @ip, which may be new; NULL: no room. */
static struct sw_arp_peer *make(struct sw_arp *a, uint32_t ip, bool is_wanted)
{
	struct sw_arp_peer *p = find(a, ip);

	for (uint32_t i = 0; !p && i < SW_ARP_PROBES; i++) {
		struct sw_arp_peer *q = &a->peers[slot_of(ip, i)];

		if (!GET(q->ip) && take_place(q, 0, ip))
			p = q;
	}
	if (!p)
		p = evict(a, ip, true);
	return p || !is_wanted ? p : evict(a, ip, false);
}

static void ask(struct sw_arp *a, struct sw_arp_peer *p)
{
	SET(p->is_asked, true);
	atomic_store_explicit(&a->is_due, true, memory_order_release);
}

uint64_t sw_arp_find(struct sw_arp *a, uint32_t ip)
{
	bool is_near = !((ip ^ a->ip) & a->mask);
	uint32_t hop = is_near ? ip : a->gateway;
	struct sw_arp_peer *p;
	bool is_new;

	if (!hop)
		return 0;
	p = find(a, hop);
	is_new = !p;
	if (is_new)
		p = make(a, hop, true);
	if (!p)
		return 0;
	if (!GET(p->is_wanted))
		SET(p->is_wanted, true);
	if (!GET(p->is_used))
		SET(p->is_used, true);
	if (is_new)
		ask(a, p);
	return GET(p->mac);
}

static bool is_host(uint64_t mac)
{
	return mac && !(mac & 1); /* not a group */
}

/* Of Ethernet and IPv4, a question or an answer? */
static bool is_spoken(const struct rte_arp_hdr *h)
{
	return h->arp_hardware == RTE_BE16(RTE_ARP_HRD_ETHER) &&
	       h->arp_protocol == RTE_BE16(RTE_ETHER_TYPE_IPV4) &&
	       h->arp_hlen == RTE_ETHER_ADDR_LEN &&
	       h->arp_plen == sizeof(h->arp_data.arp_sip) &&
	       (h->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST) ||
		       h->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY));
}

/* Learn that @from has @mac. */
static void learn(struct sw_arp_peer *p, uint32_t from, uint64_t mac)
{
	uint64_t known = GET(p->mac);

	if (known && known != mac && GET(p->is_wanted)) {
		if (!GET(p->claim))
			SET(p->claim, mac);
		return;
	}
	SET(p->mac, mac);
	SET(p->is_answered, true);
	if (GET(p->ip) != from) /* evicted meanwhile */
		SET(p->mac, 0);
}

bool sw_arp_take(struct sw_arp *a, const uint8_t *at, uint32_t n,
	uint32_t *reply_to, uint64_t *reply_mac)
{
	const struct rte_arp_hdr *h = (const void *)at;
	struct sw_arp_peer *p;
	uint32_t from, to;
	uint64_t mac;

	if (n < sizeof(*h) || !is_spoken(h))
		return false;
	mac = sw_mac_load(h->arp_data.arp_sha.addr_bytes);
	from = rte_be_to_cpu_32(h->arp_data.arp_sip);
	to = rte_be_to_cpu_32(h->arp_data.arp_tip);
	if (!is_host(mac) || mac == a->mac)
		return false;
	if (from == a->ip) {
		SET(a->rival, mac);
		return false;
	}
	if (from && !((from ^ a->ip) & a->mask)) {
		p = to == a->ip ? make(a, from, false) : find(a, from);
		if (p)
			learn(p, from, mac);
	}
	*reply_to = from; /* 0: somebody probes whether our address is free */
	*reply_mac = mac;
	return to == a->ip && h->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
}

uint32_t sw_arp_due(struct sw_arp *a, uint32_t *from)
{
	if (!*from) {
		atomic_exchange(&a->is_due, false);
		if (atomic_exchange(&a->is_announcing, false))
			return a->ip;
	}
	while (*from < SW_ARP_SLOTS) {
		struct sw_arp_peer *p = &a->peers[(*from)++];

		if (GET(p->is_asked) && atomic_exchange(&p->is_asked, false))
			return GET(p->ip);
	}
	return 0;
}

uint32_t sw_arp_write(
	const struct sw_outer *o, uint8_t *at, uint32_t ip, uint64_t mac)
{
	uint32_t n = sw_outer_ethernet(
		o, at, mac ? mac : BROADCAST, RTE_ETHER_TYPE_ARP);
	struct rte_arp_hdr *h = (void *)(at + n);

	memset(h, 0, SW_ARP_FRAME - sizeof(struct rte_ether_hdr));
	h->arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	h->arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	h->arp_hlen = RTE_ETHER_ADDR_LEN;
	h->arp_plen = sizeof(h->arp_data.arp_sip);
	h->arp_opcode =
		rte_cpu_to_be_16(mac ? RTE_ARP_OP_REPLY : RTE_ARP_OP_REQUEST);
	sw_mac_store(h->arp_data.arp_sha.addr_bytes, o->mac);
	h->arp_data.arp_sip = rte_cpu_to_be_32(o->ip);
	sw_mac_store(h->arp_data.arp_tha.addr_bytes, mac);
	h->arp_data.arp_tip = rte_cpu_to_be_32(ip);
	return n + SW_ARP_FRAME - (uint32_t)sizeof(struct rte_ether_hdr);
}

void sw_arp_announce(struct sw_arp *a)
{
	SET(a->is_announcing, true);
	atomic_store_explicit(&a->is_due, true, memory_order_release);
}

static void rival_tick(struct sw_arp *a, uint64_t now_ns, const char *port,
	const struct sw_log *log)
{
	uint64_t rival = atomic_exchange(&a->rival, 0);
	uint8_t mac[6];
	char ip[16];

	if (!rival || (a->rival_ns && now_ns - a->rival_ns < WARN_EVERY))
		return;
	a->rival_ns = now_ns;
	sw_mac_store(mac, rival);
	sw_log(log, SW_LOG_ERROR,
		"port %s: two nodes have our address %s: "
		"%02x:%02x:%02x:%02x:%02x:%02x has it too; give each its own",
		port, sw_ip_text(a->ip, ip), mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	sw_arp_announce(a); /* so that the other learns of it */
}

/* It is asked for and does not answer. */
static void warn(const struct sw_arp *a, struct sw_arp_peer *p, uint64_t now_ns,
	const char *port, const struct sw_log *log)
{
	uint32_t ip = GET(p->ip);
	bool is_gateway = ip == a->gateway;
	char text[16];

	if (now_ns - p->answered_ns < WARN_AFTER ||
		(p->warned_ns && now_ns - p->warned_ns < WARN_EVERY))
		return;
	p->warned_ns = now_ns;
	sw_log(log, SW_LOG_WARN,
		"no ARP answer from %s%s on port %s (asked %u times): is it "
		"up, with that address, on this network%s?",
		is_gateway ? "gateway " : "", sw_ip_text(ip, text), port,
		p->n_asked, is_gateway ? "; is [port] gateway right" : "");
}

/* Unless it was evicted meanwhile. */
static void forget(struct sw_arp_peer *p, uint32_t ip)
{
	SET(p->is_used, false);
	SET(p->is_asked, false);
	SET(p->mac, 0);
	atomic_compare_exchange_strong(&p->ip, &ip, 0);
}

static void begin(struct sw_arp_peer *p, uint64_t now_ns)
{
	p->used_ns = p->asked_ns = p->answered_ns = now_ns;
	p->warned_ns = p->claimed_ns = 0;
	p->n_asked = 0;
}

/* Another node claims an address that we send to.  Its first owner is asked for
 * a while: if it answers, it keeps the address. */
static void judge(struct sw_arp *a, struct sw_arp_peer *p, bool is_answered,
	uint64_t now_ns, const char *port, const struct sw_log *log)
{
	uint64_t claim = GET(p->claim);
	uint8_t mac[6];
	char ip[16];

	if (!p->claimed_ns) {
		p->claimed_ns = now_ns;
		ask(a, p);
		return;
	}
	if (!is_answered && now_ns - p->claimed_ns < CLAIM_WAIT) {
		ask(a, p);
		return;
	}
	p->claimed_ns = 0;
	SET(p->claim, 0);
	if (!is_answered) {
		SET(p->mac, claim);
		p->answered_ns = now_ns;
		return;
	}
	if (p->warned_ns && now_ns - p->warned_ns < WARN_EVERY)
		return;
	p->warned_ns = now_ns;
	sw_mac_store(mac, claim);
	sw_log(log, SW_LOG_WARN,
		"port %s: %02x:%02x:%02x:%02x:%02x:%02x claims %s, whose first "
		"owner still answers and keeps it; give each node its own "
		"address",
		port, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5],
		sw_ip_text(GET(p->ip), ip));
}

static void peer_tick(struct sw_arp *a, struct sw_arp_peer *p, uint64_t now_ns,
	const char *port, const struct sw_log *log)
{
	bool is_known = GET(p->mac), is_used = atomic_exchange(&p->is_used, 0);
	bool is_answered, is_new = atomic_exchange(&p->is_new, false);
	uint32_t ip = GET(p->ip);
	uint64_t wait = ASK_MIN << (p->n_asked < ASK_LIMIT ? p->n_asked : 8u);

	if (is_new)
		begin(p, now_ns);
	if (is_used)
		p->used_ns = now_ns;
	is_answered = atomic_exchange(&p->is_answered, false);
	if (GET(p->claim)) {
		judge(a, p, is_answered, now_ns, port, log);
		return;
	}
	if (is_answered) {
		p->answered_ns = now_ns;
		p->n_asked = 0;
		return;
	}
	if (now_ns - p->used_ns > (is_known ? FORGET : GIVE_UP)) {
		forget(p, ip);
		return;
	}
	if (!is_used || (is_known && now_ns - p->answered_ns < REFRESH) ||
		now_ns - p->asked_ns < (wait < ASK_MAX ? wait : ASK_MAX))
		return;
	p->asked_ns = now_ns;
	p->n_asked++;
	ask(a, p);
	if (!is_known)
		warn(a, p, now_ns, port, log);
}

void sw_arp_tick(struct sw_arp *a, uint64_t now_ns, const char *port,
	const struct sw_log *log)
{
	rival_tick(a, now_ns, port, log);
	for (uint32_t i = 0; i < SW_ARP_SLOTS; i++)
		if (GET(a->peers[i].ip))
			peer_tick(a, &a->peers[i], now_ns, port, log);
}
