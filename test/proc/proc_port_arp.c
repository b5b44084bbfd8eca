/* proc_port_arp.c - ARP: who is asked, who is answered, what is believed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pmd/dpdk/arp.h"

enum {
	OUR_IP = 0x0a000001,
	PEER_IP = 0x0a000002,
	GATEWAY = 0x0a0000fe,
	FAR_IP = 0x0b000001,
	ETH = 14,
	ARP = 28,
};
#define OUR_MAC  UINT64_C(0x010000005202)
#define PEER_MAC UINT64_C(0x020000005202)
#define MS       UINT64_C(1000000)

/* One node, and what it logged. */
struct bed {
	struct sw_arp arp;
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

static int bed_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->log = (struct sw_log){log_line, b, SW_LOG_INFO};
	sw_arp_init(&b->arp, OUR_MAC, OUR_IP, 24, GATEWAY);
	sw_outer_init(&b->me, OUR_MAC, OUR_IP, 1, 0);
	sw_outer_init(&b->peer, PEER_MAC, PEER_IP, 1, 0);
	*state = b;
	return 0;
}

static int bed_down(void **state)
{
	free(*state);
	return 0;
}

/* A packet of the peer's: with @mac an answer to @ip, else a question. */
static bool take(struct bed *b, uint32_t ip, uint64_t mac)
{
	uint8_t at[SW_ARP_FRAME + SW_TAG_BYTES];
	uint32_t to;
	uint64_t to_mac;

	sw_arp_write(&b->peer, at, ip, mac);
	return sw_arp_take(&b->arp, at + ETH, ARP, &to, &to_mac);
}

static uint32_t due(struct bed *b)
{
	uint32_t from = 0;

	return sw_arp_due(&b->arp, &from);
}

static void ticks(struct bed *b, uint64_t from_ms, uint64_t to_ms, bool is_used)
{
	for (uint64_t t = from_ms; t < to_ms; t += SW_ARP_TICK_MS) {
		if (is_used)
			sw_arp_find(&b->arp, PEER_IP);
		sw_arp_tick(&b->arp, t * MS, "a", &b->log);
	}
}

static void write__bytes_of_a_question(void **state)
{
	static const uint8_t want[ETH + ARP] = {0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 2, 0x52, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2,
		0x52, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};
	uint8_t at[SW_ARP_FRAME + SW_TAG_BYTES];
	struct bed *b = *state;

	assert_int_equal(sw_arp_write(&b->me, at, PEER_IP, 0), SW_ARP_FRAME);
	assert_memory_equal(at, want, sizeof(want));
}

static void write__on_a_vlan(void **state)
{
	uint8_t at[SW_ARP_FRAME + SW_TAG_BYTES];
	struct sw_rx_frame out;
	struct sw_outer o;

	(void)state;
	sw_outer_init(&o, OUR_MAC, OUR_IP, 1, 9);
	assert_int_equal(sw_arp_write(&o, at, PEER_IP, PEER_MAC), sizeof(at));
	assert_int_equal(sw_outer_check(&o, at, sizeof(at),
				 (struct sw_outer_done){0}, &out),
		SW_OUTER_ARP);
	assert_ptr_equal(out.data, at + ETH + SW_TAG_BYTES);
}

static void find__unknown_is_asked_once(void **state)
{
	struct bed *b = *state;

	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
	assert_true(b->arp.is_due);
	assert_int_equal(due(b), PEER_IP);
	assert_int_equal(due(b), 0);
	assert_false(b->arp.is_due);
}

static void find__answered(void **state)
{
	struct bed *b = *state;

	sw_arp_find(&b->arp, PEER_IP);
	assert_false(take(b, OUR_IP, OUR_MAC));
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
}

static void find__far_goes_by_the_gateway(void **state)
{
	struct bed *b = *state;

	sw_arp_find(&b->arp, FAR_IP);
	assert_int_equal(due(b), GATEWAY);
	b->arp.gateway = 0;
	assert_int_equal(sw_arp_find(&b->arp, FAR_IP + 1), 0);
	assert_int_equal(due(b), 0);
}

static void find__more_peers_than_slots(void **state)
{
	struct bed *b = *state;

	b->arp.mask = 0xffff0000;
	for (uint32_t i = 0; i < 60000; i++)
		assert_int_equal(sw_arp_find(&b->arp, OUR_IP + 1 + i), 0);
	for (uint32_t i = 0; i < SW_ARP_SLOTS; i++)
		sw_arp_tick(&b->arp, i * 100 * MS, "a", &b->log);
	/* an address never heard from is evicted, which makes room */
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
	take(b, OUR_IP, OUR_MAC);
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
}

static void take__question_is_answered_and_learnt(void **state)
{
	struct bed *b = *state;

	assert_true(take(b, OUR_IP, 0));
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
	assert_false(take(b, PEER_IP + 1, 0));
}

static void take__strangers_are_not_learnt(void **state)
{
	struct bed *b = *state;

	take(b, PEER_IP + 1, 0); /* asks for somebody else */
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
	sw_outer_init(&b->peer, PEER_MAC, FAR_IP, 1, 0);
	take(b, OUR_IP, 0);
	b->arp.gateway = 0;
	assert_int_equal(sw_arp_find(&b->arp, FAR_IP), 0);
}

static void take__new_address_of_a_known_one(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	sw_outer_init(&b->peer, PEER_MAC + (1ull << 40), PEER_IP, 1, 0);
	take(b, PEER_IP, 0); /* announces itself, before we send to it */
	assert_int_equal(
		sw_arp_find(&b->arp, PEER_IP), PEER_MAC + (1ull << 40));
}

/* A peer that we send to has moved: its old interface does not answer. */
static void take__a_peer_that_moves(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	ticks(b, 0, 1000, true);
	sw_outer_init(&b->peer, PEER_MAC + (1ull << 40), PEER_IP, 1, 0);
	take(b, PEER_IP, 0); /* says it once */
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
	ticks(b, 1000, 1000 + SW_ARP_TICK_MS, true);
	assert_int_equal(due(b), PEER_IP);
	ticks(b, 1000 + SW_ARP_TICK_MS, 1350, true);
	assert_int_equal(
		sw_arp_find(&b->arp, PEER_IP), PEER_MAC + (1ull << 40));
	assert_string_equal(b->text, "");
}

/* Another node claims the address of a peer that we send to, which is there. */
static void take__a_claim_is_refuted(void **state)
{
	struct sw_outer owner;
	struct bed *b = *state;
	uint32_t n_asked = 0;

	owner = b->peer;
	take(b, OUR_IP, 0);
	ticks(b, 0, 1000, true);
	for (uint64_t t = 1000; t < 11000; t += SW_ARP_TICK_MS) {
		sw_outer_init(&b->peer, PEER_MAC + (1ull << 40), PEER_IP, 1, 0);
		for (int i = 0; i < 10; i++)
			take(b, OUR_IP, i & 1 ? OUR_MAC : 0);
		ticks(b, t, t + 1, true);
		if (due(b) == PEER_IP) {
			b->peer = owner;
			take(b, OUR_IP, OUR_MAC);
			n_asked++;
		}
		assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
	}
	assert_in_range(n_asked, 1, 10000 / SW_ARP_TICK_MS);
	assert_non_null(strstr(b->text,
		"port a: 02:52:00:00:00:03 claims 10.0.0.2, whose first owner "
		"still answers"));
	assert_null(strstr(strstr(b->text, "claims") + 1, "claims"));
}

/* Strangers ask for us, more than there are slots; or we send to addresses
 * where nobody is.  A peer comes in, and stays. */
static void take__strangers_keep_no_peer_out(void **state)
{
	struct bed *b = *state;

	b->arp.mask = 0xffff0000;
	for (uint32_t i = 0; i < 60000; i++) {
		sw_outer_init(&b->peer, PEER_MAC, PEER_IP + 1 + i, 1, 0);
		take(b, OUR_IP, 0);
	}
	sw_outer_init(&b->peer, PEER_MAC, PEER_IP, 1, 0);
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
	take(b, OUR_IP, OUR_MAC);
	for (uint32_t i = 0; i < 60000; i++) {
		sw_outer_init(&b->peer, PEER_MAC, PEER_IP + 1 + i, 1, 0);
		take(b, OUR_IP, 0);
		sw_arp_find(&b->arp, PEER_IP + 5000 + i);
		assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
	}
	assert_int_equal(sw_arp_find(&b->arp, OUR_IP + 50), 0);
	sw_outer_init(&b->peer, PEER_MAC + (1ull << 40), OUR_IP + 50, 1, 0);
	take(b, OUR_IP, OUR_MAC);
	assert_int_equal(
		sw_arp_find(&b->arp, OUR_IP + 50), PEER_MAC + (1ull << 40));
}

static void take__malformed(void **state)
{
	uint8_t good[SW_ARP_FRAME + SW_TAG_BYTES], at[sizeof(good)];
	struct bed *b = *state;
	uint64_t mac;
	uint32_t ip;

	sw_arp_write(&b->peer, good, OUR_IP, 0);
	for (uint32_t n = 0; n < ARP; n++) {
		uint8_t *exact = malloc(n + 1);

		memcpy(exact, good + ETH, n);
		assert_false(sw_arp_take(&b->arp, exact, n, &ip, &mac));
		free(exact);
	}
	for (uint32_t i = 0; i < 8; i++) { /* types, lengths, operation */
		memcpy(at, good, sizeof(at));
		at[ETH + i] ^= 0x10;
		assert_false(sw_arp_take(&b->arp, at + ETH, ARP, &ip, &mac));
	}
	memcpy(at, good, sizeof(at));
	at[ETH + 8] |= 1; /* a group as the sender */
	assert_false(sw_arp_take(&b->arp, at + ETH, ARP, &ip, &mac));
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
}

static void tick__says_who_else_has_our_address(void **state)
{
	struct bed *b = *state;

	sw_outer_init(&b->peer, PEER_MAC, OUR_IP, 1, 0);
	assert_false(take(b, OUR_IP, 0));
	ticks(b, 1, 500, false);
	assert_non_null(strstr(b->text, "port a: two nodes have our address "
					"10.0.0.1: 02:52:00:00:00:02"));
	assert_int_equal(due(b), OUR_IP); /* the other is to know too */
	memset(b->text, 0, sizeof(b->text));
	take(b, OUR_IP, 0);
	ticks(b, 500, 1000, false);
	assert_string_equal(b->text, ""); /* not every time */
}

static void tick__our_own_echo_is_no_rival(void **state)
{
	struct bed *b = *state;

	sw_outer_init(&b->peer, OUR_MAC, OUR_IP, 1, 0);
	take(b, OUR_IP, 0);
	ticks(b, 1, 500, false);
	assert_string_equal(b->text, "");
}

static void tick__asks_again_and_says_who_is_silent(void **state)
{
	struct bed *b = *state;
	uint32_t n = 0;

	for (uint64_t t = 0; t < 10000; t += SW_ARP_TICK_MS) {
		ticks(b, t + 1, t + 2, true);
		n += due(b) != 0;
		if (t < 2900)
			assert_string_equal(b->text, "");
	}
	assert_non_null(strstr(
		b->text, "no ARP answer from 10.0.0.2 on port a (asked"));
	assert_in_range(n, 8, 20); /* slower and slower, up to once a second */
}

static void tick__refreshes_who_is_used(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	ticks(b, 1, 29000, true);
	assert_int_equal(due(b), 0);
	ticks(b, 29000, 32000, true);
	assert_int_equal(due(b), PEER_IP);
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), PEER_MAC);
	assert_string_equal(b->text, "");
}

static void tick__forgets_who_is_not_used(void **state)
{
	struct bed *b = *state;

	take(b, OUR_IP, 0);
	ticks(b, 1, 310000, false);
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
}

/* An answer was written just when its entry was forgotten: the next one there
 * is another's. */
static void find__in_the_place_of_another(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < SW_ARP_SLOTS; i++) {
		atomic_store(&b->arp.peers[i].mac, PEER_MAC);
		atomic_store(&b->arp.peers[i].is_answered, true);
	}
	assert_int_equal(sw_arp_find(&b->arp, PEER_IP), 0);
	ticks(b, 1, 5000, true);
	assert_non_null(strstr(b->text, "no ARP answer from 10.0.0.2"));
}

static void announce__is_sent_once(void **state)
{
	struct bed *b = *state;

	sw_arp_announce(&b->arp);
	assert_true(b->arp.is_due);
	assert_int_equal(due(b), OUR_IP);
	assert_int_equal(due(b), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bed_up, bed_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(write__bytes_of_a_question),
		CASE(write__on_a_vlan),
		CASE(find__unknown_is_asked_once),
		CASE(find__answered),
		CASE(find__far_goes_by_the_gateway),
		CASE(find__more_peers_than_slots),
		CASE(find__in_the_place_of_another),
		CASE(take__question_is_answered_and_learnt),
		CASE(take__strangers_are_not_learnt),
		CASE(take__new_address_of_a_known_one),
		CASE(take__a_peer_that_moves),
		CASE(take__a_claim_is_refuted),
		CASE(take__strangers_keep_no_peer_out),
		CASE(take__malformed),
		CASE(tick__says_who_else_has_our_address),
		CASE(tick__our_own_echo_is_no_rival),
		CASE(tick__asks_again_and_says_who_is_silent),
		CASE(tick__refreshes_who_is_used),
		CASE(tick__forgets_who_is_not_used),
		CASE(announce__is_sent_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
