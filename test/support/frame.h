/* frame.h - frames made, handed to a node, and rendered as short text.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of a frame is what a test compares:
 *	w1 RESULT k0 r3 c1 +256 w2	to peer 1: key, round, chunk, bytes
 *	s0 PUSH k0 r3 c1 +256 again	sent before
 *	w0 ACK 0:1-3,5 2:9		per class the numbers received
 *	s0 PULL k0r3c1 k0r3c2
 *	w0 ANSWER NEED k0r3c1, WAIT k0r3c2 for 2
 */
#ifndef SW_TEST_FRAME_H
#define SW_TEST_FRAME_H

#include <stddef.h>

#include "engine/loop/node.h"
#include "engine/wire/wire.h"

/* A frame that was made or that a node has sent. */
struct test_frame {
	struct sw_header h;
	struct sw_path peer; /* it comes from or goes to */
	uint32_t len;
	uint8_t bytes[SW_HEAD_BYTES + SW_PAYLOAD_MAX];
};

/* frame_ip - address of peer @i; its text is the letter and @i. */
uint32_t frame_ip(uint32_t i);

/* frame_make - encode @h with h->payload_len bytes of @payload; payload_crc is
 * filled in unless @keep_crc. */
void frame_make(struct test_frame *f, const struct sw_header *h,
	const void *payload, struct sw_path peer, bool keep_crc);

/* frame_rx - hand @f to @node, in memory that ends where the frame ends. */
void frame_rx(
	struct sw_node *node, uint64_t now_ns, const struct test_frame *f);

/* frame_tx - take the next frame that @node sends on @port_i.  Fails the test
 * when its own header does not decode. */
bool frame_tx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	struct test_frame *f);

/* frame_text - @f as text, @letter for its peer. */
void frame_text(
	const struct test_frame *f, char letter, char *out, size_t size);

#endif
