/* neigh.c - the table of neighbours: request, learn, refresh, evict.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/neigh.h"

#include <string.h>

#define MS         UINT64_C(1000000)
#define S          UINT64_C(1000000000)
#define ASK_MIN    (100 * MS) /* doubles with each unanswered request */
#define ASK_MAX    (1 * S)
#define ASK_LIMIT  8u
#define REFRESH    (30 * S) /* asks a used peer that was silent so long */
#define FORGET     (300 * S)
#define GIVE_UP    (10 * S)   /* FORGET if it never answered */
#define CLAIM_WAIT (250 * MS) /* waits for the first owner's answer */
#define WARN_AFTER (3 * S)
#define WARN_EVERY (30 * S)

#define GET(x)    atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, v) atomic_store_explicit(&(x), v, memory_order_relaxed)

void sw_neigh_init(struct sw_neigh *t, uint64_t mac, struct sw_ip ip,
	uint32_t bits, struct sw_ip gateway)
{
	memset(t, 0, sizeof(*t));
	t->mac = mac;
	t->ip = ip;
	t->bits = bits;
	t->gateway = gateway;
}

static uint32_t slot_of(struct sw_ip ip, uint32_t probe)
{
	return ((sw_ip_fold(ip) * 2654435761u >> 16) + probe) % SW_NEIGH_SLOTS;
}

/* Return the entry's address and set @version to the version that has it; none
 * if the entry is free or being replaced. */
static struct sw_ip ip_of(const struct sw_neigh_peer *p, uint32_t *version)
{
	struct sw_ip ip;

	*version = atomic_load_explicit(&p->version, memory_order_acquire);
	ip.high = GET(p->high);
	ip.low = GET(p->low);
	atomic_thread_fence(memory_order_acquire);
	if (*version & 1 || GET(p->version) != *version)
		return (struct sw_ip){0, 0};
	return ip;
}

/* Return the entry of @ip, or NULL. */
static struct sw_neigh_peer *find(struct sw_neigh *t, struct sw_ip ip)
{
	uint32_t version;

	for (uint32_t i = 0; i < SW_NEIGH_PROBES; i++) {
		struct sw_neigh_peer *p = &t->peers[slot_of(ip, i)];

		if (sw_ip_is_same(ip_of(p, &version), ip))
			return p;
	}
	return NULL;
}

/* Replace the entry's address, last seen at @version, by @ip. Returns false if
 * another thread was faster. Also clears any answer of the previous peer. */
static bool take_place(
	struct sw_neigh_peer *p, uint32_t version, struct sw_ip ip)
{
	if (version & 1 || !atomic_compare_exchange_strong(
				   &p->version, &version, version + 1))
		return false;
	atomic_thread_fence(memory_order_release);
	SET(p->high, ip.high);
	SET(p->low, ip.low);
	SET(p->mac, 0);
	SET(p->claim, 0);
	SET(p->is_answered, false);
	SET(p->is_wanted, false);
	SET(p->is_new, true);
	atomic_store_explicit(&p->version, version + 2, memory_order_release);
	return true;
}

/* Return whether the entry may be evicted: we never sent to it or, unless
 * @is_strict, it never answered. */
static bool may_evict(const struct sw_neigh_peer *p, bool is_strict)
{
	return !GET(p->is_wanted) || (!is_strict && !GET(p->mac));
}

/* Evict an entry for @ip; returns NULL if none may be evicted. Each search
 * begins at another slot, so that a new entry lasts until its answer
 * arrives. */
static struct sw_neigh_peer *evict(
	struct sw_neigh *t, struct sw_ip ip, bool is_strict)
{
	uint32_t first = atomic_fetch_add(&t->n_evicted, 1), version;

	for (uint32_t i = 0; i < SW_NEIGH_PROBES; i++) {
		struct sw_neigh_peer *p =
			&t->peers[slot_of(ip, (first + i) % SW_NEIGH_PROBES)];

		ip_of(p, &version);
		if (may_evict(p, is_strict) && take_place(p, version, ip))
			return p;
	}
	return NULL;
}

/* Return the entry of @ip, a new one if needed; NULL if there is no room. */
static struct sw_neigh_peer *make(
	struct sw_neigh *t, struct sw_ip ip, bool is_wanted)
{
	struct sw_neigh_peer *p = find(t, ip);
	uint32_t version;

	for (uint32_t i = 0; !p && i < SW_NEIGH_PROBES; i++) {
		struct sw_neigh_peer *q = &t->peers[slot_of(ip, i)];

		if (sw_ip_is_none(ip_of(q, &version)) &&
			take_place(q, version, ip))
			p = q;
	}
	if (!p)
		p = evict(t, ip, true);
	return p || !is_wanted ? p : evict(t, ip, false);
}

static void ask(struct sw_neigh *t, struct sw_neigh_peer *p)
{
	SET(p->is_asked, true);
	atomic_store_explicit(&t->is_due, true, memory_order_release);
}

uint64_t sw_neigh_find(struct sw_neigh *t, struct sw_ip ip)
{
	bool is_near = sw_ip_is_near(ip, t->ip, t->bits);
	struct sw_ip hop = is_near ? ip : t->gateway;
	struct sw_neigh_peer *p;
	bool is_new;

	if (sw_ip_is_none(hop))
		return 0;
	p = find(t, hop);
	is_new = !p;
	if (is_new)
		p = make(t, hop, true);
	if (!p)
		return 0;
	if (!GET(p->is_wanted))
		SET(p->is_wanted, true);
	if (!GET(p->is_used))
		SET(p->is_used, true);
	if (is_new)
		ask(t, p);
	return GET(p->mac);
}

/* Learn that @from has @mac. */
static void learn(struct sw_neigh_peer *p, struct sw_ip from, uint64_t mac)
{
	uint64_t known = GET(p->mac);
	uint32_t version;

	if (known && known != mac && GET(p->is_wanted)) {
		if (!GET(p->claim))
			SET(p->claim, mac);
		return;
	}
	SET(p->mac, mac);
	SET(p->is_answered, true);
	if (!sw_ip_is_same(ip_of(p, &version), from)) /* evicted meanwhile */
		SET(p->mac, 0);
}

bool sw_neigh_heard(
	struct sw_neigh *t, struct sw_ip from, uint64_t mac, bool is_for_us)
{
	struct sw_neigh_peer *p;

	if (sw_ip_is_same(from, t->ip)) {
		SET(t->rival, mac);
		return false;
	}
	if (sw_ip_is_none(from) || (!sw_ip_is_near(from, t->ip, t->bits) &&
					   !sw_ip_is_same(from, t->gateway)))
		return true;
	p = is_for_us ? make(t, from, false) : find(t, from);
	if (p)
		learn(p, from, mac);
	return true;
}

struct sw_ip sw_neigh_due(struct sw_neigh *t, uint32_t *from)
{
	uint32_t version;

	if (!*from) {
		atomic_exchange(&t->is_due, false);
		if (atomic_exchange(&t->is_announcing, false))
			return t->ip;
	}
	while (*from < SW_NEIGH_SLOTS) {
		struct sw_neigh_peer *p = &t->peers[(*from)++];
		struct sw_ip ip = ip_of(p, &version);

		if (!sw_ip_is_none(ip) && GET(p->is_asked) &&
			atomic_exchange(&p->is_asked, false))
			return ip;
	}
	return (struct sw_ip){0, 0};
}

void sw_neigh_announce(struct sw_neigh *t)
{
	SET(t->is_announcing, true);
	atomic_store_explicit(&t->is_due, true, memory_order_release);
}

static void rival_tick(struct sw_neigh *t, uint64_t now_ns, const char *port,
	const struct sw_log *log)
{
	uint64_t rival = atomic_exchange(&t->rival, 0);
	uint8_t mac[6];
	char ip[SW_IP_TEXT];

	if (!rival || (t->rival_ns && now_ns - t->rival_ns < WARN_EVERY))
		return;
	t->rival_ns = now_ns;
	sw_mac_store(mac, rival);
	sw_log(log, SW_LOG_ERROR,
		"port %s: two nodes have our address %s: "
		"%02x:%02x:%02x:%02x:%02x:%02x has it too; give each its own",
		port, sw_ip_text(t->ip, ip), mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	sw_neigh_announce(t); /* so that the other node notices the conflict */
}

/* Warn that a peer does not answer requests, at most once per WARN_EVERY. */
static void warn(const struct sw_neigh *t, struct sw_neigh_peer *p,
	uint64_t now_ns, const char *port, const struct sw_log *log)
{
	uint32_t version;
	struct sw_ip ip = ip_of(p, &version);
	bool is_gateway = sw_ip_is_same(ip, t->gateway);
	char text[SW_IP_TEXT];

	if (now_ns - p->answered_ns < WARN_AFTER ||
		(p->warned_ns && now_ns - p->warned_ns < WARN_EVERY))
		return;
	p->warned_ns = now_ns;
	sw_log(log, SW_LOG_WARN,
		"no %s answer from %s%s on port %s (asked %u times): is it "
		"up, with that address, on this network%s?",
		sw_ip_is_v4(ip) ? "ARP" : "neighbour discovery",
		is_gateway ? "gateway " : "", sw_ip_text(ip, text), port,
		p->n_asked, is_gateway ? "; is [port] gateway right" : "");
}

/* Free the entry, unless it was evicted since @version. */
static void forget_answer(struct sw_neigh_peer *p, uint32_t version)
{
	SET(p->is_used, false);
	SET(p->is_asked, false);
	SET(p->mac, 0);
	take_place(p, version, (struct sw_ip){0, 0});
}

static void begin(struct sw_neigh_peer *p, uint64_t now_ns)
{
	p->used_ns = p->asked_ns = p->answered_ns = now_ns;
	p->warned_ns = p->claimed_ns = 0;
	p->n_asked = 0;
}

/* Judge another node's claim to an address that we send to. Ask the first owner
 * until CLAIM_WAIT has passed: if it answers, it keeps the address. */
static void judge(struct sw_neigh *t, struct sw_neigh_peer *p, bool is_answered,
	uint64_t now_ns, const char *port, const struct sw_log *log)
{
	uint64_t claim = GET(p->claim);
	uint32_t version;
	uint8_t mac[6];
	char ip[SW_IP_TEXT];

	if (!p->claimed_ns) {
		p->claimed_ns = now_ns;
		ask(t, p);
		return;
	}
	if (!is_answered && now_ns - p->claimed_ns < CLAIM_WAIT) {
		ask(t, p);
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
		sw_ip_text(ip_of(p, &version), ip));
}

/* Refresh, judge or forget an entry, which was in use at @version. */
static void peer_tick(struct sw_neigh *t, struct sw_neigh_peer *p,
	uint32_t version, uint64_t now_ns, const char *port,
	const struct sw_log *log)
{
	bool is_known = GET(p->mac), is_used = atomic_exchange(&p->is_used, 0);
	bool is_answered, is_new = atomic_exchange(&p->is_new, false);
	uint64_t wait = ASK_MIN << (p->n_asked < ASK_LIMIT ? p->n_asked : 8u);

	if (is_new)
		begin(p, now_ns);
	if (is_used)
		p->used_ns = now_ns;
	is_answered = atomic_exchange(&p->is_answered, false);
	if (GET(p->claim)) {
		judge(t, p, is_answered, now_ns, port, log);
		return;
	}
	if (is_answered) {
		p->answered_ns = now_ns;
		p->n_asked = 0;
		return;
	}
	if (now_ns - p->used_ns > (is_known ? FORGET : GIVE_UP)) {
		forget_answer(p, version);
		return;
	}
	if (!is_used || (is_known && now_ns - p->answered_ns < REFRESH) ||
		now_ns - p->asked_ns < (wait < ASK_MAX ? wait : ASK_MAX))
		return;
	p->asked_ns = now_ns;
	p->n_asked++;
	ask(t, p);
	if (!is_known)
		warn(t, p, now_ns, port, log);
}

void sw_neigh_tick(struct sw_neigh *t, uint64_t now_ns, const char *port,
	const struct sw_log *log)
{
	uint32_t version;

	rival_tick(t, now_ns, port, log);
	for (uint32_t i = 0; i < SW_NEIGH_SLOTS; i++)
		if (!sw_ip_is_none(ip_of(&t->peers[i], &version)))
			peer_tick(t, &t->peers[i], version, now_ns, port, log);
}
