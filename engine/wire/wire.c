/* wire.c - encode and decode the header.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wire/wire.h"

#include "engine/base/bytes.h"
#include "sum/sum.h"

/* Offsets of the header's fields; PROTOCOL.md has the same table. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 2,
	AT_TYPE = 3,
	AT_FLAGS = 4,
	AT_CLASS = 5,
	AT_PAYLOAD_LEN = 6,
	AT_SESSION = 8,
	AT_PSN = 12,
	AT_KEY = 16,
	AT_ROUND = 20,
	AT_CHUNK = 24,
	AT_STEP = 28,
	AT_WEIGHT = 30,
	AT_DTYPE = 32,
	AT_OP = 33,
	AT_AUX = 34,
	AT_CONSUMED = 36,
	AT_GRANT = 40,
	AT_PSN_HIGH = 44,
	AT_PAYLOAD_CRC = 46,
	AT_HEAD_CRC = 50,
};

_Static_assert(AT_HEAD_CRC + 4 == SW_HEAD_BYTES, "the header is 54 bytes");

/* What the header alone must satisfy, per type: the payload's length lies in
 * [min, max], is min plus a multiple of unit, and only data frames use the
 * data spaces. */
static const struct {
	uint16_t min, max, unit;
	bool is_known, is_data;
} frame_rules[SW_N_TYPES] = {
	[SW_HELLO] = {sizeof(struct sw_hello), sizeof(struct sw_hello), 1, 1,
		0},
	[SW_COOKIE] = {sizeof(struct sw_cookie), sizeof(struct sw_cookie), 1, 1,
		0},
	[SW_JOIN] = {sizeof(struct sw_join), SW_PAYLOAD_MAX, 1, 1, 0},
	[SW_ACCEPT] = {sizeof(struct sw_accept), SW_PAYLOAD_MAX, 1, 1, 0},
	[SW_DECLARE] = {sizeof(struct sw_declare_head), SW_PAYLOAD_MAX, 1, 1,
		0},
	[SW_DECLARED] = {sizeof(struct sw_declared), SW_PAYLOAD_MAX, 4, 1, 0},
	[SW_STATUS] = {sizeof(struct sw_status), sizeof(struct sw_status), 1, 1,
		0},
	[SW_LEAVE] = {sizeof(struct sw_fault), sizeof(struct sw_fault), 1, 1,
		0},
	[SW_LEFT] = {0, 0, 1, 1, 0},
	[SW_KEEPALIVE] = {0, 0, 1, 1, 0},
	[SW_ERROR] = {sizeof(struct sw_fault), sizeof(struct sw_fault), 1, 1,
		0},
	[SW_TUNE] = {sizeof(struct sw_tune_ask), sizeof(struct sw_tune_ask), 1,
		1, 0},
	[SW_MISMATCH] = {sizeof(struct sw_fault), sizeof(struct sw_fault), 1, 1,
		0},
	[SW_PUSH] = {0, SW_PAYLOAD_MAX, 1, 1, 1},
	[SW_RESULT] = {1, SW_PAYLOAD_MAX, 1, 1, 1},
	[SW_ACK] = {0, SW_N_CLASSES * sizeof(struct sw_sack),
		sizeof(struct sw_sack), 1, 0},
	[SW_PULL] = {sizeof(struct sw_pull),
		SW_PULL_MAX * sizeof(struct sw_pull), sizeof(struct sw_pull), 1,
		0},
	[SW_ANSWER] = {sizeof(struct sw_answer),
		SW_PULL_MAX * sizeof(struct sw_answer),
		sizeof(struct sw_answer), 1, 0},
};

void sw_header_encode(const struct sw_header *h, uint8_t out[SW_HEAD_BYTES])
{
	sw_store16(out + AT_MAGIC, SW_MAGIC);
	out[AT_VERSION] = h->version;
	out[AT_TYPE] = h->type;
	out[AT_FLAGS] = h->flags;
	out[AT_CLASS] = h->class;
	sw_store16(out + AT_PAYLOAD_LEN, h->payload_len);
	sw_store32(out + AT_SESSION, h->session);
	sw_store32(out + AT_PSN, (uint32_t)h->psn);
	sw_store32(out + AT_KEY, h->key);
	sw_store32(out + AT_ROUND, h->round);
	sw_store32(out + AT_CHUNK, h->chunk);
	sw_store16(out + AT_STEP, h->step);
	sw_store16(out + AT_WEIGHT, h->weight);
	out[AT_DTYPE] = h->dtype;
	out[AT_OP] = h->op;
	sw_store16(out + AT_AUX, h->aux);
	sw_store32(out + AT_CONSUMED, h->consumed);
	sw_store32(out + AT_GRANT, h->grant);
	sw_store16(out + AT_PSN_HIGH, (uint16_t)(h->psn >> 32));
	sw_store32(out + AT_PAYLOAD_CRC, h->payload_crc);
	sw_store32(out + AT_HEAD_CRC, sw_crc32c(0, out, AT_HEAD_CRC));
}

static uint32_t known_flags(uint8_t type)
{
	return SW_FLAG_NO_CRC | SW_FLAG_RETX | SW_FLAG_FIFO |
	       (type == SW_PUSH ? 15 * SW_FLAG_BACKLOG : 0);
}

static enum sw_verdict check_type(const uint8_t *d, uint32_t payload_len)
{
	uint8_t type = d[AT_TYPE];
	bool carries_range = type == SW_HELLO || type == SW_JOIN;

	if (!carries_range && (d[AT_VERSION] < SW_VERSION_MIN ||
				      d[AT_VERSION] > SW_VERSION_MAX))
		return SW_FRAME_VERSION;
	if (type >= SW_N_TYPES || !frame_rules[type].is_known ||
		(d[AT_FLAGS] & ~known_flags(type)))
		return SW_FRAME_TYPE;
	if (frame_rules[type].is_data ? d[AT_CLASS] >= SW_N_CLASSES
				      : d[AT_CLASS] != SW_CLASS_CTL)
		return SW_FRAME_TYPE;
	if (payload_len < frame_rules[type].min ||
		payload_len > frame_rules[type].max ||
		(payload_len - frame_rules[type].min) % frame_rules[type].unit)
		return SW_FRAME_LENGTH;
	return SW_FRAME_OK;
}

enum sw_verdict sw_header_decode(
	const uint8_t *d, uint32_t len, struct sw_header *h)
{
	enum sw_verdict verdict;

	if (len < SW_HEAD_BYTES)
		return SW_FRAME_SHORT;
	if (sw_load16(d + AT_MAGIC) != SW_MAGIC)
		return SW_FRAME_MAGIC;
	if (sw_load32(d + AT_HEAD_CRC) != sw_crc32c(0, d, AT_HEAD_CRC))
		return SW_FRAME_CRC;
	if (sw_load16(d + AT_PAYLOAD_LEN) != len - SW_HEAD_BYTES)
		return SW_FRAME_LENGTH;
	verdict = check_type(d, len - SW_HEAD_BYTES);
	if (verdict != SW_FRAME_OK)
		return verdict;
	*h = (struct sw_header){
		.version = d[AT_VERSION],
		.type = d[AT_TYPE],
		.flags = d[AT_FLAGS],
		.class = d[AT_CLASS],
		.payload_len = sw_load16(d + AT_PAYLOAD_LEN),
		.session = sw_load32(d + AT_SESSION),
		.psn = sw_load32(d + AT_PSN) |
		       (uint64_t)sw_load16(d + AT_PSN_HIGH) << 32,
		.key = sw_load32(d + AT_KEY),
		.round = sw_load32(d + AT_ROUND),
		.chunk = sw_load32(d + AT_CHUNK),
		.step = sw_load16(d + AT_STEP),
		.weight = sw_load16(d + AT_WEIGHT),
		.dtype = d[AT_DTYPE],
		.op = d[AT_OP],
		.aux = sw_load16(d + AT_AUX),
		.consumed = sw_load32(d + AT_CONSUMED),
		.grant = sw_load32(d + AT_GRANT),
		.payload_crc = sw_load32(d + AT_PAYLOAD_CRC),
	};
	return SW_FRAME_OK;
}

uint32_t sw_data_crc(
	const struct sw_header *h, const void *payload, uint32_t len)
{
	uint32_t place[3] = {h->key, h->round, h->chunk};

	return sw_crc32c(sw_crc32c(0, place, sizeof(place)), payload, len);
}

const char *sw_mode_name(uint32_t mode)
{
	static const char *const names[] = {"synchronous", "asynchronous"};

	return mode < SW_N_MODES ? names[mode] : "of no known mode";
}

bool sw_frame_open(
	const struct sw_rx_frame *f, struct sw_header *h, struct sw_stats *st)
{
	uint64_t *const counters[] = {[SW_FRAME_SHORT] = &st->rx_short,
		[SW_FRAME_MAGIC] = &st->rx_magic,
		[SW_FRAME_CRC] = &st->rx_head_crc,
		[SW_FRAME_VERSION] = &st->rx_version,
		[SW_FRAME_TYPE] = &st->rx_type,
		[SW_FRAME_LENGTH] = &st->rx_length};
	enum sw_verdict verdict = sw_header_decode(f->data, f->len, h);

	sw_count(&st->rx_frames, 1);
	sw_count(&st->rx_bytes, f->len);
	if (verdict != SW_FRAME_OK) {
		sw_count(counters[verdict], 1);
		return false;
	}
	if (h->class == SW_CLASS_CTL &&
		sw_crc32c(0, f->payload, h->payload_len) != h->payload_crc) {
		sw_count(&st->rx_payload_crc, 1);
		return false;
	}
	return true;
}

void sw_frame_build(struct sw_header *h, struct sw_path to, const void *payload,
	bool is_stable, struct sw_tx_frame *out, struct sw_stats *st)
{
	h->version = SW_VERSION_MAX;
	if (h->class == SW_CLASS_CTL)
		h->payload_crc = sw_crc32c(0, payload, h->payload_len);
	sw_header_encode(h, out->head);
	out->payload = payload;
	out->payload_len = h->payload_len;
	out->is_stable = is_stable;
	out->class = h->class == SW_CLASS_CTL ? 0 : h->class;
	out->to = to;
	sw_count(&st->tx_frames, 1);
	sw_count(&st->tx_bytes, SW_HEAD_BYTES + h->payload_len);
}
