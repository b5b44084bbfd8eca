/* proc_port_neigh.c - neighbours: questions, answers and false claims.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pmd/dpdk/neigh.h"

/* Numbers of addresses; ip() makes addresses of them. */
enum {
	OUR_IP = 0x0a000001,
	PEER_IP = 0x0a000002,
	GATEWAY = 0x0a0000fe,
	FAR_IP = 0x0b000001,
	ETH = 14,
	ARP = 28, /* bytes of a packet */
	DISCOVERY = 40 + 24 + 8,
};
#define OUR_MAC  UINT64_C(0x010000005202)
#define PEER_MAC UINT64_C(0x020000005202)
#define MS       UINT64_C(1000000)

/* One node, and its log. */
struct bed {
	bool is_v6;
	struct sw_neigh table;
	struct sw_outer me, peer;
	struct sw_log log;
	char text[1024];
};

static void log_line(void *ctx, enum sw_log_level level, const char *text)
{
	struct bed *b = ctx;

	(void)level;
	strncat(b->text, text, sizeof(b->text) - strlen(b->text) - 1);
}

static struct sw_ip ip(const struct bed *b, uint32_t n)
{
	return b->is_v6 ? (struct sw_ip){UINT64_C(0xfd) << 56, n} : sw_ip_v4(n);
}

static struct bed *bed_new(bool is_v6)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->is_v6 = is_v6;
	b->log = (struct sw_log){log_line, b, SW_LOG_INFO};
	sw_neigh_init(&b->table, OUR_MAC, ip(b, OUR_IP), is_v6 ? 120 : 24,
		ip(b, GATEWAY));
	sw_outer_init(&b->me, OUR_MAC, ip(b, OUR_IP), 1, 0);
	sw_outer_init(&b->peer, PEER_MAC, ip(b, PEER_IP), 1, 0);
	return b;
}

static int bed_up(void **state)
{
	*state = bed_new(false);
	return 0;
}

static int bed6_up(void **state)
{
	*state = bed_new(true);
	return 0;
}

static int bed_down(void **state)
{
	free(*state);
	return 0;
}

/* Give the peer this Ethernet address and this number. */
static void be(struct bed *b, uint64_t mac, uint32_t n)
{
	sw_outer_init(&b->peer, mac, ip(b, n), 1, 0);
}

static uint32_t bytes_of(const struct bed *b)
{
	return b->is_v6 ? DISCOVERY : ARP;
}

/* Receive a packet of the peer: an answer to @n if @mac, otherwise a
 * question. */
static bool take(struct bed *b, uint32_t n, uint64_t mac)
{
	uint8_t at[SW_NEIGH_FRAME + SW_TAG_BYTES];
	struct sw_ip to;
	uint64_t to_mac;

	sw_neigh_write(&b->peer, at, ip(b, n), mac);
	return sw_neigh_take(&b->table, at + ETH, bytes_of(b), &to, &to_mac);
}

static uint32_t due(struct bed *b)
{
	uint32_t from = 0;

	return (uint32_t)sw_neigh_due(&b->table, &from).low;
}

static uint64_t find(struct bed *b, uint32_t n)
{
	return sw_neigh_find(&b->table, ip(b, n));
}

static void ticks(struct bed *b, uint64_t from_ms, uint64_t to_ms, bool is_used)
{
	for (uint64_t t = from_ms; t < to_ms; t += SW_NEIGH_TICK_MS) {
		if (is_used)
			find(b, PEER_IP);
		sw_neigh_tick(&b->table, t * MS, "a", &b->log);
	}
}

static void write__bytes_of_a_question(void **state)
{
	static const uint8_t want[ETH + ARP] = {0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 2, 0x52, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2,
		0x52, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};
	uint8_t at[SW_NEIGH_FRAME + SW_TAG_BYTES];
	struct bed *b = *state;

	assert_int_equal(sw_neigh_write(&b->me, at, ip(b, PEER_IP), 0), 60);
	assert_memory_equal(at, want, sizeof(want));
}

static void write__on_a_vlan(void **state)
{
	uint8_t at[SW_NEIGH_FRAME + SW_TAG_BYTES];
	struct sw_rx_frame out;
	struct bed *b = *state;
	struct sw_outer o;
	uint32_t n;

	sw_outer_init(&o, OUR_MAC, ip(b, OUR_IP), 1, 9);
	n = sw_neigh_write(&o, at, ip(b, PEER_IP), PEER_MAC);
	assert_int_equal(n, SW_TAG_BYTES + (b->is_v6 ? SW_NEIGH_FRAME : 60));
	assert_int_equal(
		sw_outer_check(&o, at, n, (struct sw_outer_done){0}, &out),
		SW_OUTER_NEIGHBOUR);
	assert_ptr_equal(out.data, at + ETH + SW_TAG_BYTES);
}

static void find__unknown_is_asked_once(void **state)
{
	struct bed *b = *state;

	assert_int_equal(find(b, PEER_IP), 0);
	assert_int_equal(find(b, PEER_IP), 0);
	assert_true(b->table.is_due);
	assert_int_equal(due(b), PEER_IP);
	assert_int_equal(due(b), 0);
	assert_false(b->table.is_due);
}

static void find__answered(void **state)
{
	struct bed *b = *state;

	find(b, PEER_IP);
	assert_false(take(b, OUR_IP, OUR_MAC));
	assert_int_equal(find(b, PEER_IP), PEER_MAC);
}

static void find__far_goes_by_the_gateway(void **state)
{
	struct bed *b = *state;

	find(b, FAR_IP);
	assert_int_equal(due(b), GATEWAY);
	b->table.gateway = (struct sw_ip){0, 0};
	assert_int_equal(find(b, FAR_IP + 1), 0);
	assert_int_equal(due(b), 0);
}

/* An IPv6 router has a link-local address, and sends questions from it. */
static void find__gateway_on_the_link(void **state)
{
	struct sw_ip router = {UINT64_C(0xfe80) << 48, 1};
	struct bed *b = *state;

	b->table.gateway = router;
	find(b, FAR_IP);
	assert_int_equal(due(b), 1);
	sw_outer_init(&b->peer, PEER_MAC, router, 1, 0);
	assert_true(take(b, OUR_IP, 0));
	assert_false(take(b, OUR_IP, OUR_MAC));
	assert_int_equal(find(b, FAR_IP), PEER_MAC);
}

static void find__more_peers_than_slots(void **state)
{
	struct bed *b = *state;

	b->table.bits -= 8;
	for (uint32_t i = 0; i < 60000; i++)
		assert_int_equal(find(b, OUR_IP + 1 + i), 0);
	for (uint32_t i = 0; i < SW_NEIGH_SLOTS; i++)
		sw_neigh_tick(&b->table, i * 100 * MS, "a", &b->log);
	/* An address without any packet is evicted to make room. */
	assert_int_equal(find(b, PEER_IP), 0);
	take(b, OUR_IP, OUR_MAC);
	assert_int_equal(find(b, PEER_IP), PEER_MAC);
}

static void take__question_is_answered_and_learnt(void **state)
{
	struct bed *b = *state;

	assert_true(take(b, OUR_IP, 0));
	assert_int_equal(find(b, PEER_IP), PEER_MAC);
	assert_false(take(b, PEER_IP + 1, 0));
}

static void take__strangers_are_not_learnt(void **state)
{
	struct bed *b = *state;

	take(b, PEER_IP + 1, 0); /* asks for another address */
	assert_int_equal(find(b, PEER_IP), 0);
	be(b, PEER_MAC, FAR_IP);
	take(b, OUR_IP, 0);
	b->table.gateway = (struct sw_ip){0, 0};
	assert_int_equal(find(b, FAR_IP), 0);
}

static void take__new_address_of_a_known_one(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	be(b, PEER_MAC + (1ull << 40), PEER_IP);
	take(b, PEER_IP, 0); /* announces itself before we send to it */
	assert_int_equal(find(b, PEER_IP), PEER_MAC + (1ull << 40));
}

/* A peer that we send to has moved: its old interface does not answer. */
static void take__a_peer_that_moves(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	ticks(b, 0, 1000, true);
	be(b, PEER_MAC + (1ull << 40), PEER_IP);
	take(b, PEER_IP, 0); /* logged once */
	assert_int_equal(find(b, PEER_IP), PEER_MAC);
	ticks(b, 1000, 1000 + SW_NEIGH_TICK_MS, true);
	assert_int_equal(due(b), PEER_IP);
	ticks(b, 1000 + SW_NEIGH_TICK_MS, 1350, true);
	assert_int_equal(find(b, PEER_IP), PEER_MAC + (1ull << 40));
	assert_string_equal(b->text, "");
}

/* Another node claims the address of a peer that we send to and that
 * answers. */
static void take__a_claim_is_refuted(void **state)
{
	struct sw_outer owner;
	struct bed *b = *state;
	uint32_t n_asked = 0;

	owner = b->peer;
	take(b, OUR_IP, 0);
	ticks(b, 0, 1000, true);
	for (uint64_t t = 1000; t < 11000; t += SW_NEIGH_TICK_MS) {
		be(b, PEER_MAC + (1ull << 40), PEER_IP);
		for (int i = 0; i < 10; i++)
			take(b, OUR_IP, i & 1 ? OUR_MAC : 0);
		ticks(b, t, t + 1, true);
		if (due(b) == PEER_IP) {
			b->peer = owner;
			take(b, OUR_IP, OUR_MAC);
			n_asked++;
		}
		assert_int_equal(find(b, PEER_IP), PEER_MAC);
	}
	assert_in_range(n_asked, 1, 10000 / SW_NEIGH_TICK_MS);
	assert_non_null(strstr(b->text,
		b->is_v6 ? "port a: 02:52:00:00:00:03 claims fd00::a00:2, "
			   "whose first owner still answers"
			 : "port a: 02:52:00:00:00:03 claims 10.0.0.2, whose "
			   "first owner still answers"));
	assert_null(strstr(strstr(b->text, "claims") + 1, "claims"));
}

/* More strangers than slots ask for us; or we send to unused addresses. A peer
 * still gets a slot and keeps it. */
static void take__strangers_keep_no_peer_out(void **state)
{
	struct bed *b = *state;

	b->table.bits -= 8;
	for (uint32_t i = 0; i < 60000; i++) {
		be(b, PEER_MAC, PEER_IP + 1 + i);
		take(b, OUR_IP, 0);
	}
	be(b, PEER_MAC, PEER_IP);
	assert_int_equal(find(b, PEER_IP), 0);
	take(b, OUR_IP, OUR_MAC);
	for (uint32_t i = 0; i < 60000; i++) {
		be(b, PEER_MAC, PEER_IP + 1 + i);
		take(b, OUR_IP, 0);
		find(b, PEER_IP + 5000 + i);
		assert_int_equal(find(b, PEER_IP), PEER_MAC);
	}
	assert_int_equal(find(b, OUR_IP + 50), 0);
	be(b, PEER_MAC + (1ull << 40), OUR_IP + 50);
	take(b, OUR_IP, OUR_MAC);
	assert_int_equal(find(b, OUR_IP + 50), PEER_MAC + (1ull << 40));
}

/* Check that a packet cut anywhere is refused, and that nothing behind it is
 * read. */
static void refuse_shorter(struct bed *b, const uint8_t *good)
{
	struct sw_ip to;
	uint64_t mac;

	for (uint32_t n = 0; n < bytes_of(b); n++) {
		uint8_t *exact = malloc(n + 1);

		memcpy(exact, good + ETH, n);
		assert_false(sw_neigh_take(&b->table, exact, n, &to, &mac));
		free(exact);
	}
}

static void take__malformed(void **state)
{
	uint8_t good[SW_NEIGH_FRAME + SW_TAG_BYTES], at[sizeof(good)];
	struct bed *b = *state;
	struct sw_ip to;
	uint64_t mac;

	sw_neigh_write(&b->peer, good, ip(b, OUR_IP), 0);
	refuse_shorter(b, good);
	for (uint32_t i = 0; i < 8; i++) { /* types, lengths, operation */
		memcpy(at, good, sizeof(at));
		at[ETH + i] ^= 0x10;
		assert_false(
			sw_neigh_take(&b->table, at + ETH, ARP, &to, &mac));
	}
	memcpy(at, good, sizeof(at));
	at[ETH + 8] |= 1; /* a multicast address as the sender */
	assert_false(sw_neigh_take(&b->table, at + ETH, ARP, &to, &mac));
	assert_int_equal(find(b, PEER_IP), 0);
}

/* Every bit matters, in an address, a type, a length or the checksum. */
static void take__malformed_discovery(void **state)
{
	uint8_t good[SW_NEIGH_FRAME + SW_TAG_BYTES];
	struct bed *b = *state;
	struct sw_ip to;
	uint64_t mac;

	sw_neigh_write(&b->peer, good, ip(b, OUR_IP), 0);
	refuse_shorter(b, good);
	for (uint32_t i = 7 * 8; i < DISCOVERY * 8; i++) { /* from hops on */
		good[ETH + i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(sw_neigh_take(
			&b->table, good + ETH, DISCOVERY, &to, &mac));
		good[ETH + i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(find(b, PEER_IP), 0);
	assert_true(sw_neigh_take(&b->table, good + ETH, DISCOVERY, &to, &mac));
}

/* Set the checksum of the packet at @at, which starts with IPv6 (RFC 4443,
 * section 2.3). */
static void mend(uint8_t *at)
{
	uint32_t n = (uint32_t)at[4] << 8 | at[5], sum = n + 58;

	at[42] = at[43] = 0;
	for (uint32_t i = 8; i < 40 + n; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	at[42] = (uint8_t)(sum >> 8);
	at[43] = (uint8_t)sum;
}

/* A node without an address asks whether ours is free (RFC 4862, section 5.4):
 * we answer to all nodes. */
static void take__is_our_address_free(void **state)
{
	uint8_t at[SW_NEIGH_FRAME + SW_TAG_BYTES];
	struct bed *b = *state;
	struct sw_ip to;
	uint64_t mac;

	sw_neigh_write(&b->peer, at, ip(b, OUR_IP), 0);
	memset(at + ETH + 8, 0, 16); /* no source, so no option */
	at[ETH + 5] -= 8;
	mend(at + ETH);
	assert_true(
		sw_neigh_take(&b->table, at + ETH, DISCOVERY - 8, &to, &mac));
	assert_true(sw_ip_is_none(to));
	sw_neigh_write(&b->me, at, to, mac);
	assert_memory_equal(at, "\x33\x33\0\0\0\1", 6);
	assert_int_equal(at[ETH + 40], 136);
	assert_int_equal(at[ETH + 24], 0xff);
}

static void write__bytes_of_a_solicitation(void **state)
{
	static const uint8_t head[] = {0x33, 0x33, 0xff, 0, 0, 2, 2, 0x52, 0, 0,
		0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255};
	uint8_t at[SW_NEIGH_FRAME + SW_TAG_BYTES], sum[2];
	struct bed *b = *state;

	assert_int_equal(
		sw_neigh_write(&b->me, at, ip(b, PEER_IP), 0), SW_NEIGH_FRAME);
	assert_memory_equal(at, head, sizeof(head));
	assert_memory_equal(
		at + ETH + 24, "\xff\2\0\0\0\0\0\0\0\0\0\1\xff\0\0\2", 16);
	memcpy(sum, at + ETH + 42, 2);
	mend(at + ETH);
	assert_memory_equal(sum, at + ETH + 42, 2);
	assert_memory_equal(at + ETH + 64, "\1\1\2\x52\0\0\0\1", 8);
}

static void tick__says_who_else_has_our_address(void **state)
{
	struct bed *b = *state;

	be(b, PEER_MAC, OUR_IP);
	assert_false(take(b, OUR_IP, 0));
	ticks(b, 1, 500, false);
	assert_non_null(
		strstr(b->text, b->is_v6 ? "port a: two nodes have our address "
					   "fd00::a00:1: 02:52:00:00:00:02"
					 : "port a: two nodes have our address "
					   "10.0.0.1: 02:52:00:00:00:02"));
	assert_int_equal(due(b), OUR_IP); /* tell the other node as well */
	memset(b->text, 0, sizeof(b->text));
	take(b, OUR_IP, 0);
	ticks(b, 500, 1000, false);
	assert_string_equal(b->text, ""); /* not every time */
}

static void tick__our_own_echo_is_no_rival(void **state)
{
	struct bed *b = *state;

	be(b, OUR_MAC, OUR_IP);
	take(b, OUR_IP, 0);
	ticks(b, 1, 500, false);
	assert_string_equal(b->text, "");
}

static void tick__asks_again_and_says_who_is_silent(void **state)
{
	struct bed *b = *state;
	uint32_t n = 0;

	for (uint64_t t = 0; t < 10000; t += SW_NEIGH_TICK_MS) {
		ticks(b, t + 1, t + 2, true);
		n += due(b) != 0;
		if (t < 2900)
			assert_string_equal(b->text, "");
	}
	assert_non_null(strstr(b->text,
		b->is_v6 ? "no neighbour discovery answer from fd00::a00:2 on "
			   "port a (asked"
			 : "no ARP answer from 10.0.0.2 on port a (asked"));
	assert_in_range(n, 8, 20); /* at growing intervals, up to a second */
}

static void tick__refreshes_who_is_used(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	ticks(b, 1, 29000, true);
	assert_int_equal(due(b), 0);
	ticks(b, 29000, 32000, true);
	assert_int_equal(due(b), PEER_IP);
	assert_int_equal(find(b, PEER_IP), PEER_MAC);
	assert_string_equal(b->text, "");
}

static void tick__forgets_who_is_not_used(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	ticks(b, 1, 310000, false);
	assert_int_equal(find(b, PEER_IP), 0);
}

/* An entry is forgotten just when an answer was written: the next answer there
 * belongs to another address. */
static void find__in_the_place_of_another(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < SW_NEIGH_SLOTS; i++) {
		atomic_store(&b->table.peers[i].mac, PEER_MAC);
		atomic_store(&b->table.peers[i].is_answered, true);
	}
	assert_int_equal(find(b, PEER_IP), 0);
	ticks(b, 1, 5000, true);
	assert_non_null(strstr(b->text,
		b->is_v6 ? "no neighbour discovery answer from fd00::a00:2"
			 : "no ARP answer from 10.0.0.2"));
}

static void announce__is_sent_once(void **state)
{
	struct bed *b = *state;

	sw_neigh_announce(&b->table);
	assert_true(b->table.is_due);
	assert_int_equal(due(b), OUR_IP);
	assert_int_equal(due(b), 0);
}

#define V4(f) cmocka_unit_test_setup_teardown(f, bed_up, bed_down)
#define V6(f)                                        \
	{                                            \
#f "_v6", f, bed6_up, bed_down, NULL \
	}
#define BOTH(f) V4(f), V6(f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		V4(write__bytes_of_a_question),
		V6(write__bytes_of_a_solicitation),
		BOTH(write__on_a_vlan),
		BOTH(find__unknown_is_asked_once),
		BOTH(find__answered),
		BOTH(find__far_goes_by_the_gateway),
		V6(find__gateway_on_the_link),
		BOTH(find__more_peers_than_slots),
		BOTH(find__in_the_place_of_another),
		BOTH(take__question_is_answered_and_learnt),
		BOTH(take__strangers_are_not_learnt),
		BOTH(take__new_address_of_a_known_one),
		BOTH(take__a_peer_that_moves),
		BOTH(take__a_claim_is_refuted),
		BOTH(take__strangers_keep_no_peer_out),
		V4(take__malformed),
		V6(take__malformed_discovery),
		V6(take__is_our_address_free),
		BOTH(tick__says_who_else_has_our_address),
		BOTH(tick__our_own_echo_is_no_rival),
		BOTH(tick__asks_again_and_says_who_is_silent),
		BOTH(tick__refreshes_who_is_used),
		BOTH(tick__forgets_who_is_not_used),
		BOTH(announce__is_sent_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
