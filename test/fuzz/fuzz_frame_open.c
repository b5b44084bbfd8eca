/* fuzz_frame_open.c - read our header as the engine does.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/wire/wire.h"
#include "sum/sum.h"
#include "test/fuzz/fuzz_frame.h"
#include "test/support/header.h"

static void open_and_close(const struct sw_rx_frame *rx)
{
	uint8_t again[SW_HEAD_BYTES];
	struct sw_header h;

	if (header_decode(rx->data, rx->len, &h) == HEADER_GOOD) {
		header_encode(&h, again);
		assert(!memcmp(again, rx->data, SW_HEAD_BYTES));
		assert(h.payload_len == rx->len - SW_HEAD_BYTES);
	}
}

void fuzz_frame_open(const struct sw_rx_frame *rx)
{
	uint8_t *data = malloc(rx->len);
	uint32_t n = rx->len - SW_HEAD_BYTES;
	struct sw_rx_frame mended = *rx;

	open_and_close(rx);
	memcpy(data, rx->data, rx->len);
	sw_store32(data + 46, sw_crc32c(0, data + SW_HEAD_BYTES, n));
	sw_store32(data + 50, sw_crc32c(0, data, 50));
	mended.data = data;
	mended.payload = data + SW_HEAD_BYTES;
	open_and_close(&mended);
	free(data);
}
