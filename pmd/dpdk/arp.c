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
#define GIVE_UP    (10 * S) /* on who never answered and is not used */
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

/* The entry of @ip, which may be new; NULL: no room.  Whose was forgotten there
 * may have answered at that moment: what came of it is not of @ip. */
static struct sw_arp_peer *make(struct sw_arp *a, uint32_t ip)
{
	struct sw_arp_peer *p = find(a, ip);

	for (uint32_t i = 0; !p && i < SW_ARP_PROBES; i++) {
		struct sw_arp_peer *q = &a->peers[slot_of(ip, i)];
		uint32_t none = 0;

		if (!GET(q->ip) &&
			atomic_compare_exchange_strong(&q->ip, &none, ip)) {
			SET(q->mac, 0);
			SET(q->is_answered, false);
			p = q;
		}
	}
	return p;
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
		p = make(a, hop);
	if (!p)
		return 0;
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
		p = to == a->ip ? make(a, from) : find(a, from);
		if (p) {
			SET(p->mac, mac);
			SET(p->is_answered, true);
		}
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

static void forget(struct sw_arp_peer *p)
{
	p->used_ns = p->asked_ns = p->answered_ns = p->warned_ns = 0;
	p->n_asked = 0;
	SET(p->is_used, false);
	SET(p->is_asked, false);
	SET(p->mac, 0);
	atomic_store_explicit(&p->ip, 0, memory_order_release);
}

static void peer_tick(struct sw_arp *a, struct sw_arp_peer *p, uint64_t now_ns,
	const char *port, const struct sw_log *log)
{
	bool is_known = GET(p->mac), is_used = atomic_exchange(&p->is_used, 0);
	uint64_t wait = ASK_MIN << (p->n_asked < ASK_LIMIT ? p->n_asked : 8u);

	if (!p->used_ns)
		p->asked_ns = p->answered_ns = now_ns; /* it is new */
	if (is_used || !p->used_ns)
		p->used_ns = now_ns;
	if (atomic_exchange(&p->is_answered, false)) {
		p->answered_ns = now_ns;
		p->warned_ns = p->n_asked = 0;
		return;
	}
	if (now_ns - p->used_ns > (is_known ? FORGET : GIVE_UP)) {
		forget(p);
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
