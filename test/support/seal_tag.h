/* seal_tag.h - the tag of one frame, for tests that seal frames by hand.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_SEAL_TAG_H
#define SW_TEST_SUPPORT_SEAL_TAG_H

#include <string.h>

#include "engine/keys/seal.h"

/* Return the tag of a frame whose payload has @hash. */
static inline uint64_t seal_tag(struct sw_prf *prf, const void *head,
	uint8_t direction, const uint8_t hash[SW_POLYVAL_BLOCK])
{
	uint8_t block[1][SW_PRF_BYTES];
	uint64_t tag;

	sw_seal_block(block[0], head, direction);
	memcpy(block[0] + SW_SEAL_HASH_AT, hash, SW_POLYVAL_BLOCK);
	sw_prf_tags(prf, (const uint8_t(*)[SW_PRF_BYTES])block, 1, &tag);
	return tag;
}

#endif
