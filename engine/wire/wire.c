/* wire.c - encode and decode the header.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wire/wire.h"

#include <stddef.h>
#include <string.h>

#include "sum/sum.h"

enum { AHEAD = 4 }; /* frames between a header's fetch and its use */

_Static_assert(offsetof(struct sw_header, psn_high) == 44 &&
		       SW_HEAD_COVERED == 50 &&
		       SW_HEAD_COVERED + 4 == SW_HEAD_BYTES,
	"the header is 54 bytes without holes");
_Static_assert(offsetof(struct sw_header, chunk) + sizeof(uint32_t) ==
		       offsetof(struct sw_header, key) + SW_PLACE_BYTES,
	"what sw_data_crc is seeded with has no hole");
_Static_assert(offsetof(struct sw_header, ctl.taken) ==
			       offsetof(struct sw_header, aux) &&
		       offsetof(struct sw_header, stream.base) ==
			       offsetof(struct sw_header, aux),
	"views of the same bytes");
_Static_assert(offsetof(struct sw_header, session) == sizeof(uint64_t),
	"all that check_type looks at comes before");

/* Valid payload lengths per type: in [min, max], and min plus a multiple of
 * unit; unit 0: no such type. */
#define EXACTLY(payload) sizeof(payload), sizeof(payload), 1
#define OR_MAC(payload)  sizeof(payload), sizeof(payload) + 16, 16
#define FROM(payload)    sizeof(payload), SW_PAYLOAD_MAX, 1
#define ITEMS(min, max, item) \
	(min) * sizeof(item), (max) * sizeof(item), sizeof(item)
static const struct {
	uint16_t min, max, unit;
} frame_rules[SW_N_TYPES] = {
	[SW_HELLO] = {EXACTLY(struct sw_hello)},
	[SW_COOKIE] = {OR_MAC(struct sw_cookie)},
	[SW_JOIN] = {FROM(struct sw_join)},
	[SW_ACCEPT] = {FROM(struct sw_accept)},
	[SW_DECLARE] = {sizeof(struct sw_declare_head), SW_ORDERED_MAX, 1},
	[SW_DECLARED] = {sizeof(struct sw_declared), SW_ORDERED_MAX, 4},
	[SW_STATUS] = {EXACTLY(struct sw_status)},
	[SW_LEAVE] = {EXACTLY(struct sw_fault)},
	[SW_LEFT] = {0, 0, 1},
	[SW_KEEPALIVE] = {0, 0, 1},
	[SW_ERROR] = {OR_MAC(struct sw_fault)},
	[SW_TUNE] = {EXACTLY(struct sw_tune_ask)},
	[SW_END] = {EXACTLY(struct sw_fault)},
	[SW_CLOSE] = {EXACTLY(struct sw_fault)},
	[SW_PUSH] = {0, SW_PAYLOAD_MAX, 1},
	[SW_RESULT] = {1, SW_PAYLOAD_MAX, 1},
	[SW_ACK] = {ITEMS(0, SW_N_CLASSES, struct sw_sack)},
	[SW_QUERY] = {ITEMS(1, SW_QUERY_MAX, struct sw_query)},
	[SW_ANSWER] = {ITEMS(1, SW_QUERY_MAX, struct sw_answer)},
	[SW_WANT] = {0, 0, 1},
	[SW_PATHS] = {EXACTLY(struct sw_paths)},
	[SW_PROBE] = {SW_PAYLOAD_UNIT, SW_PAYLOAD_MAX, SW_PAYLOAD_UNIT},
};

enum verdict {
	RIGHT,
	SHORT,   /* shorter than a header */
	FOREIGN, /* wrong magic */
	VERSION, /* unknown version */
	TYPE,    /* no such type, flag or class */
	LENGTH,  /* payload_len is wrong, or invalid for the type */
};

static enum verdict check_type(const struct sw_header *h)
{
	uint32_t type = h->type, len = h->payload_len, unit;
	uint32_t flags = SW_FLAG_NO_CRC | SW_FLAG_RETX | SW_FLAG_CIPHER;
	bool is_data = sw_type_is_data(h->type);

	if ((h->version < SW_VERSION_MIN || h->version > SW_VERSION_MAX) &&
		type != SW_HELLO && type != SW_JOIN)
		return VERSION;
	if (is_data)
		flags |= SW_FLAG_ACK;
	if (type == SW_PUSH || type == SW_KEEPALIVE)
		flags |= 15 * SW_FLAG_BACKLOG;
	if (type == SW_RESULT)
		flags |= 15 * SW_FLAG_ERA;
	if (type >= SW_N_TYPES || (h->flags & ~flags))
		return TYPE;
	unit = frame_rules[type].unit;
	if (!unit ||
		(is_data ? h->class >= SW_N_CLASSES : h->class != SW_CLASS_CTL))
		return TYPE;
	if (len < frame_rules[type].min || len > frame_rules[type].max)
		return LENGTH;
	return unit == 1 || (len - frame_rules[type].min) % unit == 0 ? RIGHT
								      : LENGTH;
}

/* Decode a header.  @out is valid only if the verdict is RIGHT.  *known is the
 * first word of the last good header: a header that starts with the same word
 * needs fewer checks. */
static inline enum verdict decode(const uint8_t *data, uint32_t len,
	struct sw_header *out, uint64_t *known, bool is_raw)
{
	enum verdict verdict;
	uint64_t begin;

	if (len < SW_HEAD_BYTES)
		return SHORT;
	memcpy(out, data, SW_HEAD_BYTES);
	memcpy(&begin, out, sizeof(begin));
	if (out->magic != SW_MAGIC)
		return FOREIGN;
	if (!is_raw)
		out->head_crc ^= sw_crc32c(0, data, SW_HEAD_COVERED);
	if (out->payload_len != len - SW_HEAD_BYTES)
		return LENGTH;
	out->psn = out->psn_low | (uint64_t)out->psn_high << 32;
	if (begin == *known)
		return RIGHT;
	verdict = check_type(out);
	if (verdict == RIGHT)
		*known = begin;
	return verdict;
}

const char *sw_mode_name(uint32_t mode)
{
	static const char *const names[] = {
		"synchronous", "asynchronous", "stream"};

	return mode < SW_N_MODES ? names[mode] : "of no known mode";
}

static void count_bad(enum verdict verdict, struct sw_stats *st)
{
	uint64_t *const counters[] = {[SHORT] = &st->rx_short,
		[FOREIGN] = &st->rx_magic,
		[VERSION] = &st->rx_version,
		[TYPE] = &st->rx_type,
		[LENGTH] = &st->rx_length};

	sw_count(counters[verdict], 1);
}

/* Return whether a control frame's payload matches its CRC. */
static inline bool is_intact(
	const struct sw_rx_frame *f, const struct sw_header *h)
{
	return h->class != SW_CLASS_CTL ||
	       sw_crc32c(0, f->payload, h->payload_len) == h->payload_crc;
}

bool sw_frame_judge(const struct sw_rx_frame *f, struct sw_header *h)
{
	h->head_crc ^= sw_crc32c(0, f->data, SW_HEAD_COVERED);
	return is_intact(f, h);
}

static inline bool open_one(const struct sw_rx_frame *f, struct sw_header *h,
	uint64_t *known, bool is_raw, struct sw_stats *st)
{
	enum verdict verdict = decode(f->data, f->len, h, known, is_raw);

	if (verdict != RIGHT) {
		count_bad(verdict, st);
		return false;
	}
	if (is_raw || is_intact(f, h))
		return true;
	sw_count(&st->rx_payload_crc, 1);
	return false;
}

static inline __attribute__((always_inline)) void open_all(
	const struct sw_rx_frame *frames, uint32_t n, struct sw_header *heads,
	bool is_raw, struct sw_stats *st)
{
	uint64_t bytes = 0, known = 0;

	for (uint32_t i = 0; i < n && i < AHEAD; i++)
		__builtin_prefetch(frames[i].data);
	for (uint32_t left = n; left; left--, frames++, heads++) {
		if (left > AHEAD)
			__builtin_prefetch(frames[AHEAD].data);
		bytes += frames->len;
		if (!open_one(frames, heads, &known, is_raw, st))
			heads->type = 0;
	}
	sw_count(&st->rx_frames, n);
	sw_count(&st->rx_bytes, bytes);
}

/* Each branch gets a loop of its own, which saves a test per frame. */
void sw_frames_open(const struct sw_rx_frame *frames, uint32_t n,
	struct sw_header *heads, bool is_raw, struct sw_stats *st)
{
	if (is_raw)
		open_all(frames, n, heads, true, st);
	else
		open_all(frames, n, heads, false, st);
}
