/* frame.h - seal frames, hand them to a node, receive them, show them as text.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A test compares frames by their text:
 *	w1 RESULT k0 r3 c1 +256 w2	to peer 1: key, round, chunk, bytes
 *	s0 PUSH k0 r3 c1 +256 again	sent before
 *	w0 ACK 0:1-3,5 2:9		per class the numbers received
 *	s0 QUERY k0r3c1 k0r3c2
 *	w0 ANSWER NEED k0r3c1, WAIT k0r3c2 for 2
 */
#ifndef SW_TEST_SUPPORT_FRAME_H
#define SW_TEST_SUPPORT_FRAME_H

#include <stddef.h>

#include "engine/loop/engine.h"
#include "engine/wire/wire.h"

/* A frame that a test made or that a node sent. */
struct test_frame {
	struct sw_header h;  /* as decoded, or to be encoded */
	struct sw_path peer; /* sender or destination */
	uint32_t len;
	/* seed of a data payload's CRC (sw_epoch_seed), used to seal the
	 * frame */
	uint32_t seed;
	uint8_t bytes[SW_HEAD_BYTES + SW_PAYLOAD_MAX];
};

/* frame_ip - return the address of peer @i, which text shows as a letter and
 * @i. */
uint32_t frame_ip(uint32_t i);

/* frame_crc - compute the payload_crc for f->h in the epoch with @seed. */
uint32_t frame_crc(const struct test_frame *f, uint32_t seed);

/* frame_seal - compute length and payload_crc from f->h and the payload in
 * f->bytes, and encode the header. */
void frame_seal(struct test_frame *f);

/* frame_read - decode f->h; an invalid header gets type 0. */
void frame_read(struct test_frame *f);

/* frame_is_intact - did the header decode, and is the payload's CRC right for
 * @seed, or is none needed? */
bool frame_is_intact(const struct test_frame *f, uint32_t seed);

/* frame_get - copy the first @n bytes of the payload. */
void frame_get(const struct test_frame *f, void *out, size_t n);

/* frame_value - return the first element of a data frame of i32. */
int32_t frame_value(const struct test_frame *f);

/* frame_is_all - is there at least one element, and does every element equal
 * @value? */
bool frame_is_all(const struct test_frame *f, int32_t value);

/* frame_rx - hand @f to @node, in memory that ends where the frame ends. */
void frame_rx(
	struct sw_engine *node, uint64_t now_ns, const struct test_frame *f);

/* frame_rx_burst - hand @n frames from one port to @node at once. */
void frame_rx_burst(struct sw_engine *node, uint64_t now_ns,
	const struct test_frame *frames, uint32_t n);

/* frame_tx - take and decode the next frame that @node sends on @port_i. The
 * caller checks that the frame is intact. */
bool frame_tx(struct sw_engine *node, uint64_t now_ns, uint32_t port_i,
	struct test_frame *f);

/* frame_is_probing - is this a STATUS with the state PROBING? */
bool frame_is_probing(const struct test_frame *f);

/* frame_text - append "; " and the text of @f to @out, with @letter for its
 * peer. */
void frame_text(
	const struct test_frame *f, char letter, char *out, size_t size);

#endif
