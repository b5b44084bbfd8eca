/* frame.h - frames sealed, handed to a node and taken from it, shown as text.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of a frame is what a test compares:
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

/* A frame that was made or that a node has sent. */
struct test_frame {
	struct sw_header h;  /* as decoded, or to be encoded */
	struct sw_path peer; /* it comes from or goes to */
	uint32_t len;
	uint32_t seed; /* seed of a data payload's CRC (sw_epoch_seed), to seal
			  it */
	uint8_t bytes[SW_HEAD_BYTES + SW_PAYLOAD_MAX];
};

/* frame_ip - address of peer @i; its text is the letter and @i. */
uint32_t frame_ip(uint32_t i);

/* frame_crc - compute the right payload_crc by f->h, in the run of @seed. */
uint32_t frame_crc(const struct test_frame *f, uint32_t seed);

/* frame_seal - length, payload_crc and encoded header, for what f->h says and
 * for the payload that lies in f->bytes. */
void frame_seal(struct test_frame *f);

/* frame_read - decode f->h; one that does not decode has type 0. */
void frame_read(struct test_frame *f);

/* frame_is_intact - did it decode, and has its payload its CRC in the run of
 * @seed, or needs none? */
bool frame_is_intact(const struct test_frame *f, uint32_t seed);

/* frame_get - the first @n bytes of the payload. */
void frame_get(const struct test_frame *f, void *out, size_t n);

/* frame_value - the first element of a data frame of i32. */
int32_t frame_value(const struct test_frame *f);

/* frame_is_all - is @value every element, and is there one? */
bool frame_is_all(const struct test_frame *f, int32_t value);

/* frame_rx - hand @f to @node, in memory that ends where the frame ends. */
void frame_rx(
	struct sw_engine *node, uint64_t now_ns, const struct test_frame *f);

/* frame_rx_burst - hand @n frames to @node at once; they came in on one port.
 */
void frame_rx_burst(struct sw_engine *node, uint64_t now_ns,
	const struct test_frame *frames, uint32_t n);

/* frame_tx - take the next frame that @node sends on @port_i, and decode it.
 * The receiver checks that it is intact. */
bool frame_tx(struct sw_engine *node, uint64_t now_ns, uint32_t port_i,
	struct test_frame *f);

/* frame_is_probing - is it a STATUS that says PROBING? */
bool frame_is_probing(const struct test_frame *f);

/* frame_text - @f as text, @letter for its peer, after what is in @out and
 * "; ". */
void frame_text(
	const struct test_frame *f, char letter, char *out, size_t size);

#endif
