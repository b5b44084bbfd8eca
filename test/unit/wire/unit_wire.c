/* unit_wire.c - a frame's header: layout, checks, and damage of every bit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>

#include "engine/wire/wire.h"
#include "sum/sum.h"
#include "test/support/header.h"

/* Return a valid header of @type with @len payload bytes. */
static struct sw_header header(uint8_t type, uint16_t len)
{
	return (struct sw_header){.version = SW_VERSION_MAX,
		.type = type,
		.class = sw_type_is_data(type) ? 3 : SW_CLASS_CTL,
		.payload_len = len};
}

/* Return the verdict on @h with h.payload_len bytes, in memory of exactly that
 * size. */
static enum header_verdict judge(const struct sw_header *h)
{
	uint32_t len = SW_HEAD_BYTES + h->payload_len;
	uint8_t *frame = calloc(1, len);
	struct sw_header out;
	struct sw_header intact = *h;
	enum header_verdict verdict;

	if (h->class == SW_CLASS_CTL)
		intact.payload_crc =
			sw_crc32c(0, frame + SW_HEAD_BYTES, h->payload_len);
	header_encode(&intact, frame);
	verdict = header_decode(frame, len, &out);
	free(frame);
	return verdict;
}

static void class_of__tells_the_first_layers_apart(void **state)
{
	static const struct {
		uint32_t priority;
		uint8_t class;
	} rows[] = {{0, 0}, {1, 1}, {2, 1}, {3, 2}, {6, 2}, {7, 3}, {14, 3},
		{15, 4}, {30, 4}, {31, 5}, {63, 6}, {126, 6}, {127, 7},
		{1000000, 7}, {UINT32_MAX, 7}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++)
		assert_int_equal(sw_class_of(rows[i].priority), rows[i].class);
}

static void header_encode__keeps_the_layout(void **state)
{
	struct sw_header h = {.version = SW_VERSION_MAX,
		.type = SW_PUSH,
		.flags = 2,
		.class = 5,
		.payload_len = 0x1234,
		.session = 0x01020304,
		.psn = 0x0000a1b2c3d4e5f6,
		.key = 0x11121314,
		.round = 0x21222324,
		.chunk = 0x31323334,
		.step = 0x4142,
		.weight = 0x5152,
		.dtype = 10,
		.op = 7,
		.aux = 0x6162,
		.consumed = 0x71727374,
		.grant = 0x81828384,
		.payload_crc = 0x91929394};
	static const uint8_t expected[SW_HEAD_BYTES - 4] = {0x53, 0x4d, 1, 16,
		2, 5, 0x34, 0x12, 4, 3, 2, 1, 0xf6, 0xe5, 0xd4, 0xc3, 0x14,
		0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32,
		0x31, 0x42, 0x41, 0x52, 0x51, 10, 7, 0x62, 0x61, 0x74, 0x73,
		0x72, 0x71, 0x84, 0x83, 0x82, 0x81, 0xb2, 0xa1, 0x94, 0x93,
		0x92, 0x91};
	uint8_t out[SW_HEAD_BYTES];

	header_encode(&h, out);
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(sw_load32(out + 50), sw_crc32c(0, out, 50));
}

static void header_decode__gives_back_every_field(void **state)
{
	uint8_t frame[SW_HEAD_BYTES + 7] = {0};
	struct sw_header h = header(SW_RESULT, 7), out;

	h.flags = SW_FLAG_NO_CRC | SW_FLAG_RETX;
	h.session = 0xfffefdfc;
	h.psn = 0xffffffffffffULL;
	h.key = 1;
	h.round = UINT32_MAX;
	h.chunk = 3;
	h.step = 4;
	h.weight = 5;
	h.dtype = 6;
	h.op = 7;
	h.aux = 8;
	h.consumed = 9;
	h.grant = 10;
	h.payload_crc = 11;
	h.head_crc = 12; /* the seed */
	header_encode(&h, frame);
	assert_int_equal(sw_load32(frame + 50), sw_crc32c(0, frame, 50) ^ 12);
	memset(&out, 0xff, sizeof(out));
	assert_int_equal(
		header_decode(frame, sizeof(frame), &out), HEADER_GOOD);
	assert_int_equal(out.version, h.version);
	assert_int_equal(out.type, h.type);
	assert_int_equal(out.flags, h.flags);
	assert_int_equal(out.class, h.class);
	assert_int_equal(out.payload_len, h.payload_len);
	assert_int_equal(out.session, h.session);
	assert_true(out.psn == h.psn);
	assert_int_equal(out.key, h.key);
	assert_int_equal(out.round, h.round);
	assert_int_equal(out.chunk, h.chunk);
	assert_int_equal(out.step, h.step);
	assert_int_equal(out.weight, h.weight);
	assert_int_equal(out.dtype, h.dtype);
	assert_int_equal(out.op, h.op);
	assert_int_equal(out.aux, h.aux);
	assert_int_equal(out.consumed, h.consumed);
	assert_int_equal(out.grant, h.grant);
	assert_int_equal(out.payload_crc, h.payload_crc);
	assert_int_equal(out.head_crc, h.head_crc);
}

static void header_decode__truncated(void **state)
{
	struct sw_header h = header(SW_PUSH, 100), out = {.key = 77};
	uint8_t whole[SW_HEAD_BYTES + 100] = {0};

	header_encode(&h, whole);
	for (uint32_t len = 0; len < sizeof(whole); len++) {
		uint8_t *part = malloc(len ? len : 1);

		memcpy(part, whole, len);
		assert_int_equal(header_decode(part, len, &out),
			len < SW_HEAD_BYTES ? HEADER_SHORT : HEADER_LENGTH);
		assert_int_equal(out.key, 77); /* written only if it is good */
		free(part);
	}
}

static void header_decode__oversized(void **state)
{
	struct sw_header h = header(SW_PUSH, 100), out;
	uint8_t whole[SW_HEAD_BYTES + 101] = {0};

	header_encode(&h, whole);
	assert_int_equal(
		header_decode(whole, sizeof(whole), &out), HEADER_LENGTH);
	/* 65536 bytes more than its length says */
	uint8_t *large = calloc(1, SW_HEAD_BYTES + 100 + 65536);

	memcpy(large, whole, SW_HEAD_BYTES);
	assert_int_equal(
		header_decode(large, SW_HEAD_BYTES + 100 + 65536, &out),
		HEADER_LENGTH);
	free(large);
}

static void header_decode__wrong_magic(void **state)
{
	struct sw_header h = header(SW_LEFT, 0), out;
	uint8_t frame[SW_HEAD_BYTES];

	header_encode(&h, frame);
	frame[0] ^= 1;
	assert_int_equal(
		header_decode(frame, sizeof(frame), &out), HEADER_MAGIC);
	frame[0] ^= 1;
	frame[1] = 0;
	assert_int_equal(
		header_decode(frame, sizeof(frame), &out), HEADER_MAGIC);
}

static void header_decode__every_flipped_bit(void **state)
{
	struct sw_header h = header(SW_PUSH, 4), out;
	uint8_t frame[SW_HEAD_BYTES + 4] = {0};

	header_encode(&h, frame);
	for (uint32_t bit = 0; bit < 8 * SW_HEAD_BYTES; bit++) {
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(header_decode(frame, sizeof(frame), &out) !=
				    HEADER_GOOD ||
			    out.head_crc != h.head_crc);
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(
		header_decode(frame, sizeof(frame), &out), HEADER_GOOD);
}

static void header_decode__wrong_version(void **state)
{
	struct sw_header h = header(SW_KEEPALIVE, 0);

	h.version = 0;
	assert_int_equal(judge(&h), HEADER_VERSION);
	h.version = SW_VERSION_MAX + 1;
	assert_int_equal(judge(&h), HEADER_VERSION);
	h.version = 255;
	assert_int_equal(judge(&h), HEADER_VERSION);
}

/* HELLO and JOIN carry a range of versions, so the header's version is not
 * checked. */
static void header_decode__any_version_of_hello_and_join(void **state)
{
	struct sw_header h = header(SW_HELLO, sizeof(struct sw_hello));

	h.version = 200;
	assert_int_equal(judge(&h), HEADER_GOOD);
	h = header(SW_JOIN, sizeof(struct sw_join));
	h.version = 0;
	assert_int_equal(judge(&h), HEADER_GOOD);
}

static void header_decode__unknown_type_flag_class(void **state)
{
	struct sw_header h;

	for (uint32_t type = 0; type < 256; type++) {
		h = header((uint8_t)type, 0);
		if (type == 0 || type >= SW_N_TYPES)
			assert_int_equal(judge(&h), HEADER_TYPE);
		else
			assert_int_not_equal(judge(&h), HEADER_TYPE);
	}
	for (uint32_t flags = 0; flags < 256; flags++) {
		h = header(SW_PUSH, 8);
		h.flags = (uint8_t)flags;
		assert_int_equal(judge(&h), HEADER_GOOD);
		h = header(SW_RESULT, 8);
		h.flags = (uint8_t)flags;
		assert_int_equal(judge(&h), HEADER_GOOD);
		h = header(SW_WANT, 0);
		h.flags = (uint8_t)flags;
		assert_int_equal(
			judge(&h), flags >= 16 ? HEADER_TYPE : HEADER_GOOD);
		h = header(SW_ACK, 0);
		h.flags = (uint8_t)flags;
		assert_int_equal(
			judge(&h), flags & ~11u ? HEADER_TYPE : HEADER_GOOD);
	}
	for (uint32_t class = 0; class < 256; class ++) {
		h = header(SW_PUSH, 8);
		h.class = (uint8_t) class;
		assert_int_equal(judge(&h),
			class < SW_N_CLASSES ? HEADER_GOOD : HEADER_TYPE);
		h = header(SW_KEEPALIVE, 0);
		h.class = (uint8_t) class;
		assert_int_equal(judge(&h),
			class == SW_CLASS_CTL ? HEADER_GOOD : HEADER_TYPE);
	}
}

/* The backlog is sent as a number of digits, so the receiver assumes the
 * largest value with that many. */
static void flags_backlog__is_not_less(void **state)
{
	for (uint64_t quanta = 0; quanta < 40000; quanta++) {
		uint32_t told = sw_flags_backlog(
			sw_backlog_flags(quanta) | SW_FLAG_RETX);

		assert_true(told >= (quanta < 32767 ? quanta : 32767));
		assert_true(told <= 2 * quanta);
	}
	assert_int_equal(sw_flags_backlog(sw_backlog_flags(UINT64_MAX)), 32767);
}

/* The payload lengths that each type allows. */
static void header_decode__length_of_every_type(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t min, max, unit;
	} rows[] = {{SW_HELLO, 64, 64, 1}, {SW_COOKIE, 24, 40, 16},
		{SW_JOIN, 368, SW_PAYLOAD_MAX, 1},
		{SW_ACCEPT, 16, SW_PAYLOAD_MAX, 1},
		{SW_DECLARE, 8, SW_ORDERED_MAX, 1},
		{SW_DECLARED, 8, SW_ORDERED_MAX, 4}, {SW_STATUS, 440, 440, 1},
		{SW_LEAVE, 264, 264, 1}, {SW_LEFT, 0, 0, 1},
		{SW_KEEPALIVE, 0, 0, 1}, {SW_ERROR, 264, 280, 16},
		{SW_TUNE, 24, 24, 1}, {SW_PUSH, 0, SW_PAYLOAD_MAX, 1},
		{SW_RESULT, 1, SW_PAYLOAD_MAX, 1}, {SW_ACK, 0, 8 * 48, 48},
		{SW_QUERY, 12, 64 * 12, 12}, {SW_ANSWER, 24, 64 * 24, 24},
		{SW_WANT, 0, 0, 1}};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++)
		for (uint32_t len = 0; len <= SW_PAYLOAD_MAX + 8; len++) {
			struct sw_header h =
				header(rows[i].type, (uint16_t)len);
			bool is_good = len >= rows[i].min &&
				       len <= rows[i].max &&
				       !((len - rows[i].min) % rows[i].unit);

			if (len > SW_ORDERED_MAX + 8 &&
				len < SW_PAYLOAD_MAX - 8)
				continue;
			assert_int_equal(judge(&h),
				is_good ? HEADER_GOOD : HEADER_LENGTH);
		}
}

/* No answer to a stranger is longer than the question. */
static void sizes__answers_are_not_larger(void **state)
{
	assert_true(sizeof(struct sw_cookie) <= sizeof(struct sw_hello));
	assert_true(sizeof(struct sw_accept) <= sizeof(struct sw_join));
	assert_true(sizeof(struct sw_fault) <= sizeof(struct sw_join));
}

/* Two adjacent fields of equal size could be exchanged unnoticed, because both
 * ends use the same struct. PROTOCOL.md 2 gives the place of each field. */
static void join__keeps_the_layout(void **state)
{
	static const struct {
		size_t offset, at;
	} fields[] = {
		{offsetof(struct sw_join, nonce), 0},
		{offsetof(struct sw_join, cookie), 8},
		{offsetof(struct sw_join, epoch), 24},
		{offsetof(struct sw_join, session), 32},
		{offsetof(struct sw_join, version_min), 36},
		{offsetof(struct sw_join, version_max), 37},
		{offsetof(struct sw_join, member), 38},
		{offsetof(struct sw_join, n_members), 40},
		{offsetof(struct sw_join, n_local), 42},
		{offsetof(struct sw_join, server_i), 44},
		{offsetof(struct sw_join, n_servers), 46},
		{offsetof(struct sw_join, payload), 48},
		{offsetof(struct sw_join, has_crc), 50},
		{offsetof(struct sw_join, is_encrypted), 51},
		{offsetof(struct sw_join, job), 52},
		{offsetof(struct sw_join, node), 180},
		{offsetof(struct sw_join, n_colocated), 308},
		{offsetof(struct sw_join, policy), 310},
		{offsetof(struct sw_join, n_lcores), 311},
		{offsetof(struct sw_join, credit_bytes), 312},
		{offsetof(struct sw_join, mode), 320},
	};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(fields); i++)
		assert_int_equal(fields[i].offset, fields[i].at);
}

static void data_crc__is_bound_to_its_place(void **state)
{
	uint8_t payload[64];
	struct sw_header h = {.key = 1, .round = 2, .chunk = 3}, other;
	uint32_t crc;

	memset(payload, 0x5a, sizeof(payload));
	crc = sw_data_crc(0, &h, payload, sizeof(payload));
	other = h;
	other.key++;
	assert_int_not_equal(crc, sw_data_crc(0, &other, payload, 64));
	other = h;
	other.round++;
	assert_int_not_equal(crc, sw_data_crc(0, &other, payload, 64));
	other = h;
	other.chunk++;
	assert_int_not_equal(crc, sw_data_crc(0, &other, payload, 64));
	assert_int_not_equal(crc, sw_data_crc(0, &h, payload, 63));
	payload[63] ^= 0x80;
	assert_int_not_equal(crc, sw_data_crc(0, &h, payload, 64));
}

/* Frames of two sessions in one tx get the tags of their own sessions. */
static void tagging__of_two_sessions(void **state)
{
	static const uint8_t keys[3][32] = {{1}, {2}, {3}};
	struct sw_tagging t = {0};
	struct sw_tx_frame f[2][2];
	struct sw_seal *seals[2];

	for (uint32_t i = 0; i < 2; i++) {
		struct sw_seal *seal = seals[i] =
			sw_seal_new(keys[i], keys[2], false, false);

		assert_non_null(seal);
		f[0][i] = f[1][i] =
			(struct sw_tx_frame){.header = header(SW_PUSH, 0)};
		sw_frame_tag(&f[0][i], (struct sw_path){0}, NULL, true, seal);
		sw_tagging_for(&t, seal);
		sw_polyval(&seal->tx_hash, NULL, 0,
			sw_frame_seal(
				&f[1][i], (struct sw_path){0}, NULL, true, &t));
	}
	sw_tagging_for(&t, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		assert_memory_equal(f[0][i].head, f[1][i].head, SW_HEAD_BYTES);
		sw_seal_free(seals[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class_of__tells_the_first_layers_apart),
		cmocka_unit_test(header_encode__keeps_the_layout),
		cmocka_unit_test(header_decode__gives_back_every_field),
		cmocka_unit_test(header_decode__truncated),
		cmocka_unit_test(header_decode__oversized),
		cmocka_unit_test(header_decode__wrong_magic),
		cmocka_unit_test(header_decode__every_flipped_bit),
		cmocka_unit_test(header_decode__wrong_version),
		cmocka_unit_test(header_decode__any_version_of_hello_and_join),
		cmocka_unit_test(header_decode__unknown_type_flag_class),
		cmocka_unit_test(flags_backlog__is_not_less),
		cmocka_unit_test(header_decode__length_of_every_type),
		cmocka_unit_test(sizes__answers_are_not_larger),
		cmocka_unit_test(join__keeps_the_layout),
		cmocka_unit_test(data_crc__is_bound_to_its_place),
		cmocka_unit_test(tagging__of_two_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
