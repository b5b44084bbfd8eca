/* fuzz_frames.h - steps that are frames, for the rigs of the engine's tests.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A patch may change the length of the payload. After the patches the checksums
 * are mended, so that a changed frame passes the first check.
 */
#ifndef SW_TEST_FUZZ_FUZZ_FRAMES_H
#define SW_TEST_FUZZ_FUZZ_FRAMES_H

#include "test/fuzz/fuzz.h"
#include "test/support/peer.h"

enum {
	/* steps of one input; further steps are not read */
	FUZZ_STEPS = 96,
	FUZZ_WHO = 7,   /* bits of who: the peer */
	FUZZ_SHORT = 8, /* the payload is d bytes shorter, or 4 */
	/* after this step the fuzzer takes no due frames */
	FUZZ_QUIET = 16,
	FUZZ_LENT = 32,    /* the payload is lent, at an inner port */
	FUZZ_BAD_CRC = 64, /* the payload's checksum is wrong */
	FUZZ_AS_IS = 128,  /* no checksum is mended */
	/* more frames due at once than this: an endless loop */
	FUZZ_TX_MAX = 20000,
	FUZZ_LENT_MAX = 96, /* one per step */
	FUZZ_TENSORS = 4,
};

/* Payloads that a server may still read. */
struct fuzz_lent {
	uint8_t *of[FUZZ_LENT_MAX];
	uint32_t n;
};

/* fuzz_init - let failed assertions of the rigs abort. With FUZZ_TRACE=1 in the
 * environment, show all frames on stderr. */
void fuzz_init(void);

/* fuzz_later - return the length of a time step: up to some 20 minutes. */
uint64_t fuzz_later(const struct fuzz_step *s);

/* fuzz_elems - return the number of elements of tensor @i, as in seeds.py. */
uint32_t fuzz_elems(uint32_t i);

/* fuzz_payload_len - return the number of bytes of a chunk of @tensor. */
uint16_t fuzz_payload_len(uint32_t tensor, uint32_t chunk);

/* fuzz_fault - make a fault with error a about key b; c and d choose its kind,
 * its calls and whether its text is terminated. */
struct sw_fault fuzz_fault(const struct fuzz_step *s);

/* fuzz_sack - make a block of class a up to number b; c and d choose the delay
 * and the bits. */
struct sw_sack fuzz_sack(const struct fuzz_step *s);

/* fuzz_mend - read the patches of @s, apply them to @f and mend it. */
void fuzz_mend(
	struct fuzz_input *in, const struct fuzz_step *s, struct test_frame *f);

/* fuzz_show - show a sent frame when FUZZ_TRACE is set. */
void fuzz_show(const char *what, const struct test_frame *f);

/* fuzz_rx - hand @f to @node in memory of exactly its size. @lent keeps lent
 * payloads; NULL: no payload is lent. */
void fuzz_rx(struct sw_engine *node, uint64_t now_ns,
	const struct test_frame *f, struct fuzz_lent *lent);

/* fuzz_lent_free - free the payloads; no engine may read them afterwards. */
void fuzz_lent_free(struct fuzz_lent *lent);

#endif
