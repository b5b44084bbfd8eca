/* proc_port_frame.c - outer headers: ours are parsed, all others refused.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pmd/dpdk/frame.h"

enum {
	OUR_IP = 0x0a000001,
	PEER_IP = 0x0a000002,
	OUR_UDP = 7000,
	BODY = SW_HEAD_BYTES + 64,
	FRAME = SW_OUTER_BYTES + BODY,
};

/* Make a good frame from 10.0.0.2:9 to us. */
static void make(uint8_t *at)
{
	struct sw_path to = {.ip = sw_ip_v4(OUR_IP), .udp = OUR_UDP};
	struct sw_outer o;

	memset(at, 0x5a, FRAME);
	sw_outer_init(
		&o, sw_mac_of_ip(sw_ip_v4(PEER_IP)), sw_ip_v4(PEER_IP), 9, 0);
	sw_outer_write(&o, at, sw_mac_of_ip(sw_ip_v4(OUR_IP)), 0, &to, 0, BODY);
}

/* Return our own headers, on a VLAN or none. */
static const struct sw_outer *us(uint16_t vlan)
{
	static struct sw_outer o;

	sw_outer_init(&o, sw_mac_of_ip(sw_ip_v4(OUR_IP)), sw_ip_v4(OUR_IP),
		OUR_UDP, vlan);
	return &o;
}

/* Check a copy of exactly @bytes, so that a read beyond its end is detected. */
static enum sw_outer_verdict check(const uint8_t *frame, uint32_t bytes)
{
	struct sw_rx_frame out = {0};
	uint8_t *exact = malloc(bytes ? bytes : 1);
	enum sw_outer_verdict v;

	memcpy(exact, frame, bytes);
	v = sw_outer_check(
		us(0), exact, bytes, (struct sw_outer_done){0}, &out);
	assert_int_equal(v == SW_OUTER_OURS, out.data != NULL);
	free(exact);
	return v;
}

/* Correct the IPv4 checksum after a change. */
static void mend(uint8_t *at)
{
	uint32_t sum = 0;

	at[24] = at[25] = 0;
	for (int i = 14; i < 34; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	at[24] = (uint8_t)(~sum >> 8);
	at[25] = (uint8_t)~sum;
}

static enum sw_outer_verdict check_with(int offset, uint8_t value)
{
	uint8_t at[FRAME];

	make(at);
	at[offset] = value;
	mend(at);
	return check(at, FRAME);
}

static void write__is_read(void **state)
{
	struct sw_rx_frame out = {.is_lent = true};
	uint8_t at[FRAME];

	(void)state;
	make(at);
	assert_int_equal(sw_outer_check(us(0), at, FRAME,
				 (struct sw_outer_done){0}, &out),
		SW_OUTER_OURS);
	assert_ptr_equal(out.data, at + SW_OUTER_BYTES);
	assert_int_equal(out.len, BODY);
	assert_true(sw_ip_is_same(out.from.ip, sw_ip_v4(PEER_IP)));
	assert_int_equal(out.from.udp, 9);
	assert_false(out.is_lent); /* in the driver's buffer */
}

static void write__bytes(void **state)
{
	static const uint8_t want[SW_OUTER_BYTES] = {0x02, 0x53, 10, 0, 0, 1,
		0x02, 0x53, 10, 0, 0, 2, 0x08, 0, /* Ethernet */
		0x45, 0xe2, 0, 146, 0, 0, 0x40, 0, 64, 17, 0x25,
		0x77,                            /* IPv4 */
		10, 0, 0, 2, 10, 0, 0, 1,        /* addresses */
		0, 9, 0x1b, 0x58, 0, 126, 0, 0}; /* UDP, no checksum */
	uint8_t at[FRAME];

	(void)state;
	make(at);
	assert_memory_equal(at, want, sizeof(want));
}

static void check__is_marked_by_a_switch(void **state)
{
	uint8_t at[FRAME];
	struct sw_rx_frame out;

	(void)state;
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		make(at);
		at[15] = (uint8_t)((at[15] & ~3u) | ecn);
		mend(at);
		assert_int_equal(sw_outer_check(us(0), at, FRAME,
					 (struct sw_outer_done){0}, &out),
			SW_OUTER_OURS);
		assert_int_equal(out.is_marked, ecn == 3);
	}
}

static void write__checksum_of_many(void **state)
{
	uint8_t at[FRAME], mended[FRAME];

	(void)state;
	memset(at, 0, sizeof(at));
	for (uint32_t i = 1; i < 100000; i++) {
		struct sw_path to = {.ip = sw_ip_v4(i * 2654435761u), .udp = 1};
		struct sw_outer o;

		sw_outer_init(&o, i, sw_ip_v4(i * 40503u << 13 | 1), 2, 0);
		sw_outer_write(&o, at, i, 0, &to, (uint8_t)i, i % 8300);
		memcpy(mended, at, FRAME);
		mend(mended);
		assert_memory_equal(at, mended, FRAME);
	}
}

/* Make a good frame from 10.0.0.2:9 to us, on VLAN 5. */
static void make_tagged(uint8_t *at)
{
	struct sw_path to = {.ip = sw_ip_v4(OUR_IP), .udp = OUR_UDP};
	struct sw_outer o;

	sw_outer_init(
		&o, sw_mac_of_ip(sw_ip_v4(PEER_IP)), sw_ip_v4(PEER_IP), 9, 5);
	assert_int_equal(o.n_bytes, SW_OUTER_BYTES + SW_TAG_BYTES);
	sw_outer_write(&o, at, sw_mac_of_ip(sw_ip_v4(OUR_IP)), 0, &to, 0, BODY);
}

static void write__tagged_is_read_on_its_vlan_alone(void **state)
{
	static const uint8_t tag[] = {0x81, 0, 0, 5, 0x08, 0, 0x45};
	struct sw_outer_done none = {0};
	struct sw_rx_frame out;
	uint8_t at[FRAME + SW_TAG_BYTES];

	(void)state;
	make_tagged(at);
	assert_memory_equal(at + 12, tag, sizeof(tag));
	assert_int_equal(sw_outer_check(us(5), at, sizeof(at), none, &out), 0);
	assert_ptr_equal(out.data, at + SW_OUTER_BYTES + SW_TAG_BYTES);
	assert_int_equal(sw_outer_check(us(6), at, sizeof(at), none, &out),
		SW_OUTER_NOT_OURS);
	assert_int_equal(sw_outer_check(us(0), at, sizeof(at), none, &out),
		SW_OUTER_NOT_OURS);
	for (uint32_t n = 0; n < sizeof(at); n++)
		assert_int_equal(sw_outer_check(us(5), at, n, none, &out),
			SW_OUTER_SHORT);
}

/* The driver removed the tag and verified the checksum. */
static void check__what_the_driver_did(void **state)
{
	struct sw_outer_done done = {.is_tag_off = true, .vlan = 0x6005};
	struct sw_rx_frame out;
	uint8_t at[FRAME];

	(void)state;
	make(at);
	assert_int_equal(
		sw_outer_check(us(5), at, FRAME, done, &out), SW_OUTER_OURS);
	assert_int_equal(sw_outer_check(us(4), at, FRAME, done, &out),
		SW_OUTER_NOT_OURS);
	at[22] ^= 1;
	assert_int_equal(
		sw_outer_check(us(5), at, FRAME, done, &out), SW_OUTER_BAD_IP);
	done.is_sum_good = true;
	assert_int_equal(
		sw_outer_check(us(5), at, FRAME, done, &out), SW_OUTER_OURS);
}

/* The device adds to the pseudo header's sum: RFC 768. */
static void write__start_of_a_udp_sum(void **state)
{
	struct sw_path to = {.ip = sw_ip_v4(OUR_IP), .udp = OUR_UDP};
	uint32_t sum = 0x0a00 + 2 + 0x0a00 + 1 + 17 + 8 + BODY;
	uint8_t at[FRAME];
	struct sw_outer o;

	(void)state;
	sw_outer_init(&o, 1, sw_ip_v4(PEER_IP), 9, 0);
	o.has_udp_sum = true;
	sw_outer_write(&o, at, 1, 0, &to, 0, BODY);
	assert_int_equal(at[40] << 8 | at[41], sum);
}

/* The device's verdict about a checksum counts only if the frame has one. */
static void check__bad_udp_sum(void **state)
{
	struct sw_outer_done done = {.is_udp_bad = true};
	struct sw_rx_frame out;
	uint8_t at[FRAME];

	(void)state;
	make(at);
	assert_int_equal(
		sw_outer_check(us(0), at, FRAME, done, &out), SW_OUTER_OURS);
	at[40] = 1;
	assert_int_equal(
		sw_outer_check(us(0), at, FRAME, done, &out), SW_OUTER_BAD_UDP);
	done.is_udp_bad = false;
	assert_int_equal(
		sw_outer_check(us(0), at, FRAME, done, &out), SW_OUTER_OURS);
}

static void check__cut_at_every_length(void **state)
{
	uint8_t at[FRAME];

	(void)state;
	make(at);
	for (uint32_t n = 0; n < FRAME; n++)
		assert_int_equal(check(at, n), SW_OUTER_SHORT);
}

static void check__padding_is_ignored(void **state)
{
	uint8_t at[FRAME + 20] = {0};

	(void)state;
	make(at);
	assert_int_equal(check(at, FRAME + 20), SW_OUTER_OURS);
}

static void check__not_ours(void **state)
{
	(void)state;
	assert_int_equal(check_with(12, 0x86), SW_OUTER_NOT_OURS); /* type */
	assert_int_equal(check_with(23, 6), SW_OUTER_NOT_OURS);    /* TCP */
	assert_int_equal(check_with(33, 9), SW_OUTER_NOT_OURS);    /* address */
	assert_int_equal(check_with(37, 0), SW_OUTER_NOT_OURS);    /* port */
}

static void check__bad_ip(void **state)
{
	uint8_t at[FRAME];

	(void)state;
	assert_int_equal(check_with(14, 0x65), SW_OUTER_BAD_IP);
	assert_int_equal(check_with(14, 0x44), SW_OUTER_BAD_IP);
	make(at);
	at[22] ^= 1; /* without a correct checksum */
	assert_int_equal(check(at, FRAME), SW_OUTER_BAD_IP);
}

static void check__options_and_fragments(void **state)
{
	(void)state;
	assert_int_equal(check_with(14, 0x46), SW_OUTER_OPTIONS);
	assert_int_equal(check_with(20, 0x20), SW_OUTER_FRAGMENT);
	assert_int_equal(check_with(21, 1), SW_OUTER_FRAGMENT);
}

static void check__lengths_that_lie(void **state)
{
	(void)state;
	assert_int_equal(check_with(16, 0xff), SW_OUTER_SHORT); /* IP */
	assert_int_equal(check_with(17, 27), SW_OUTER_SHORT);
	assert_int_equal(check_with(38, 0xff), SW_OUTER_SHORT); /* UDP */
	assert_int_equal(check_with(39, 7), SW_OUTER_SHORT);
	assert_int_equal(check_with(39, 8 + SW_HEAD_BYTES - 1), SW_OUTER_SHORT);
	assert_int_equal(check_with(39, 8 + SW_HEAD_BYTES), SW_OUTER_OURS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__is_read),
		cmocka_unit_test(write__bytes),
		cmocka_unit_test(check__is_marked_by_a_switch),
		cmocka_unit_test(write__checksum_of_many),
		cmocka_unit_test(write__tagged_is_read_on_its_vlan_alone),
		cmocka_unit_test(check__what_the_driver_did),
		cmocka_unit_test(write__start_of_a_udp_sum),
		cmocka_unit_test(check__bad_udp_sum),
		cmocka_unit_test(check__cut_at_every_length),
		cmocka_unit_test(check__padding_is_ignored),
		cmocka_unit_test(check__not_ours),
		cmocka_unit_test(check__bad_ip),
		cmocka_unit_test(check__options_and_fragments),
		cmocka_unit_test(check__lengths_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
