/* fuzz_frames.h - steps that are frames, for the rigs of the engine's tests.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A patch may change the length of the payload.  After all of them the
 * checksums are mended, so that a changed frame comes further than to the first
 * check.
 */
#ifndef SW_TEST_FUZZ_FUZZ_FRAMES_H
#define SW_TEST_FUZZ_FUZZ_FRAMES_H

#include "test/fuzz/fuzz.h"
#include "test/support/peer.h"

enum {
	FUZZ_STEPS = 96,     /* steps of one input; the rest is not read */
	FUZZ_WHO = 7,        /* bits of who: the peer */
	FUZZ_SHORT = 8,      /* the payload is d bytes shorter, or 4 */
	FUZZ_QUIET = 16,     /* after this step due frames are not sent */
	FUZZ_LENT = 32,      /* the payload is lent, at an inner port */
	FUZZ_BAD_CRC = 64,   /* the payload's checksum is wrong */
	FUZZ_AS_IS = 128,    /* no checksum is mended */
	FUZZ_TX_MAX = 20000, /* frames that are due at once: no end */
	FUZZ_LENT_MAX = 96,  /* one per step */
	FUZZ_TENSORS = 4,
};

/* Payloads that a server may still look at. */
struct fuzz_lent {
	uint8_t *of[FUZZ_LENT_MAX];
	uint32_t n;
};

/* fuzz_init - failed assertions of the rigs abort.  With FUZZ_TRACE=1 in the
 * environment all frames are shown on stderr. */
void fuzz_init(void);

/* fuzz_later - how long a step of time lasts: up to some 20 minutes. */
uint64_t fuzz_later(const struct fuzz_step *s);

/* fuzz_elems - elements of tensor @i, as seeds and targets agree. */
uint32_t fuzz_elems(uint32_t i);

/* fuzz_payload_len - bytes of a chunk of it. */
uint16_t fuzz_payload_len(uint32_t tensor, uint32_t chunk);

/* fuzz_fault - make a fault: error a about key b; c and d choose its kind, its
 * calls and whether its text ends. */
struct sw_fault fuzz_fault(const struct fuzz_step *s);

/* fuzz_sack - a block of class a, up to b; c and d choose the rest. */
struct sw_sack fuzz_sack(const struct fuzz_step *s);

/* fuzz_mend - read the patches of @s, apply them to @f and mend it. */
void fuzz_mend(
	struct fuzz_input *in, const struct fuzz_step *s, struct test_frame *f);

/* fuzz_show - a frame that was sent. */
void fuzz_show(const char *what, const struct test_frame *f);

/* fuzz_rx - hand @f to @node in memory of just its size; @lent keeps what is
 * lent, NULL: nothing is. */
void fuzz_rx(struct sw_engine *node, uint64_t now_ns,
	const struct test_frame *f, struct fuzz_lent *lent);

/* fuzz_lent_free - free payloads that nobody reads. */
void fuzz_lent_free(struct fuzz_lent *lent);

#endif
