/* header.h - decode and encode a header alone, as the first bytes of a frame.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_HEADER_H
#define SW_TEST_SUPPORT_HEADER_H

#include <string.h>

#include "engine/base/stats.h"
#include "engine/wire/wire.h"

/* The counter in which sw_frames_open counts a frame; HEADER_GOOD has none. */
enum header_verdict {
	HEADER_GOOD,
	HEADER_SHORT,
	HEADER_MAGIC,
	HEADER_VERSION,
	HEADER_TYPE,
	HEADER_LENGTH,
	HEADER_PAYLOAD_CRC,
};

static inline void header_encode(
	const struct sw_header *h, uint8_t out[SW_HEAD_BYTES])
{
	struct sw_header sealed = *h;

	sw_header_seal(&sealed);
	memcpy(out, &sealed, SW_HEAD_BYTES);
}

/* header_decode - decode and check a header; writes @h only if it is good. */
static inline enum header_verdict header_decode(
	const uint8_t *data, uint32_t len, struct sw_header *h)
{
	struct sw_rx_frame f = {
		.data = data, .len = len, .payload = data + SW_HEAD_BYTES};
	struct sw_stats st = {0};
	struct sw_header got;

	sw_frames_open(&f, 1, &got, false, &st);
	if (!got.type)
		return st.rx_short         ? HEADER_SHORT
		       : st.rx_magic       ? HEADER_MAGIC
		       : st.rx_version     ? HEADER_VERSION
		       : st.rx_type        ? HEADER_TYPE
		       : st.rx_payload_crc ? HEADER_PAYLOAD_CRC
					   : HEADER_LENGTH;
	*h = got;
	return HEADER_GOOD;
}

/* header_read - read the header of a frame with CRCs or a tag; returns false if
 * the header is malformed. */
static inline bool header_read(
	const uint8_t *data, uint32_t len, struct sw_header *h)
{
	struct sw_rx_frame f = {
		.data = data, .len = len, .payload = data + SW_HEAD_BYTES};
	struct sw_stats st = {0};

	sw_frames_open(&f, 1, h, true, &st);
	return h->type != 0;
}

#endif
