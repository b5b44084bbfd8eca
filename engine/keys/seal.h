/* seal.h - the keys of a session, and the tags of its frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tag is the first 64 bits of AES-128-CMAC over 64 bytes: the header without
 * its two checksums (46), the direction (1), a zero byte, and h, the POLYVAL of
 * the payload (16).  All RESULTs of a job's run have the same hash key, so that
 * one h serves all members; each session has its own CMAC key.
 *
 * Thread: the lcore of the session. */
#ifndef SW_ENGINE_KEYS_SEAL_H
#define SW_ENGINE_KEYS_SEAL_H

#include <string.h>

#include "engine/keys/crypto.h"
#include "sum/polyval.h"

enum {
	SW_SEAL_HEAD_BYTES = 46, /* part of the header that the tag covers */
	SW_SEAL_HASH_AT = 48,    /* offset of h in the tagged bytes */
	SW_SEAL_SPACES = 9,      /* spaces of packet numbers */
	SW_NONCE_BYTES = 12,     /* before the 4-byte block counter */
	SW_TAKEN_WORDS = 4,
	SW_TAKEN_BITS = 64 * SW_TAKEN_WORDS,
};

/* The packet numbers taken in one space: the largest, and a bit for each of the
 * 255 numbers below it. */
struct sw_taken {
	uint64_t largest;
	uint64_t bits[SW_TAKEN_WORDS]; /* a ring, by number */
};

void sw_taken_skip(struct sw_taken *t, uint64_t psn);

/* sw_taken_add - take @psn from a frame of the peer that has a right tag.
 * Returns false if the number was taken before, or is too far behind. */
static inline bool sw_taken_add(struct sw_taken *t, uint64_t psn)
{
	uint64_t *word = &t->bits[psn / 64 % SW_TAKEN_WORDS];

	if (psn == t->largest + 1) /* no skipped bits to clear */
		t->largest = psn;
	else if (psn > t->largest)
		sw_taken_skip(t, psn);
	else if (t->largest - psn >= SW_TAKEN_BITS || *word >> psn % 64 & 1)
		return false;
	*word |= 1ULL << psn % 64;
	return true;
}

/* The keys that encrypt RESULTs, one for each era.  Nonces consist of 32-bit
 * numbers, which wrap: an era ends before a nonce repeats.  All keys derive
 * from the first. */
struct sw_era_keys {
	struct sw_ctr first; /* the key of era 0 */
	struct sw_ctr of[2]; /* later keys, by the lowest bit of the era */
	uint32_t era[2];
};

/* sw_era_keys_open - prepare the keys from the key of era 0.  Returns false if
 * there is no memory.
 * sw_era_keys_close - wipe and free them; they may be zeroed.
 * sw_era_keys_turn - derive the key of @era, and replace an older key.
 * sw_era_key - return the key of @era.  The next call may replace it.
 * sw_era_near - return the era with the lowest 4 bits @bits, at most one above
 * @newest. */
bool sw_era_keys_open(struct sw_era_keys *k, const uint8_t key[SW_BLOCK_BYTES]);
void sw_era_keys_close(struct sw_era_keys *k);
void sw_era_keys_turn(struct sw_era_keys *k, uint32_t era);

static inline struct sw_ctr *sw_era_key(struct sw_era_keys *k, uint32_t era)
{
	if (!era)
		return &k->first;
	if (k->era[era & 1] != era)
		sw_era_keys_turn(k, era);
	return &k->of[era & 1];
}

static inline uint32_t sw_era_near(uint32_t newest, uint32_t bits)
{
	uint32_t ahead = (bits - newest) & 15;

	return newest + ahead - (ahead > 1 ? 16 : 0);
}

/* The keys of a session, and the packet numbers that it has taken.  The
 * encryption contexts are open only if the session is encrypted. */
struct sw_seal {
	struct sw_polyval_key tx_hash, rx_hash;
	/* At a worker: the hash key of received results.  A server hashes
	 * results under the key of their job (sw_result_keys). */
	struct sw_polyval_key result_hash;
	struct sw_prf tx, rx;
	struct sw_ctr tx_cipher, rx_cipher;
	struct sw_era_keys results; /* at a worker */
	struct sw_taken taken[SW_SEAL_SPACES];
	uint8_t direction; /* of sent frames: 0 worker to server, 1 back */
	bool is_encrypted; /* payloads are encrypted */
	/* The newest era of results that this end knows; at a server also the
	 * newest that its worker has confirmed. */
	uint32_t era, confirmed;
};

/* sw_seal_hear - handle the low bits of the era in a control frame with a right
 * tag: a server announces the era, a worker confirms it. */
static inline void sw_seal_hear(struct sw_seal *s, uint16_t era)
{
	int16_t ahead = (int16_t)(era - (uint16_t)s->era);

	if (!s->direction && ahead > 0)
		s->era += (uint32_t)ahead;
	else if (s->direction && !ahead)
		s->confirmed = s->era;
}

/* sw_seal_new - make a session's keys from the two keys of the handshake; NULL:
 * no memory.
 * sw_seal_set_results - store the two keys of results that a worker has
 * received.
 * sw_seal_free - wipe and free the keys; takes NULL. */
struct sw_seal *sw_seal_new(const uint8_t to_server[32],
	const uint8_t to_worker[32], bool is_server, bool is_encrypted);
bool sw_seal_set_results(
	struct sw_seal *s, const uint8_t secret[2 * SW_BLOCK_BYTES]);
void sw_seal_free(struct sw_seal *s);

/* sw_seal_crypt - encrypt or decrypt a frame's payload under the key of its
 * direction.  Never use the same @space and @psn for two frames of a direction.
 */
static inline void sw_seal_crypt(struct sw_ctr *ctr, uint8_t space,
	uint64_t psn, const void *p, size_t n, void *out)
{
	uint8_t block[SW_BLOCK_BYTES] = {space};

	memcpy(block + 4, &psn, sizeof(psn));
	sw_ctr(ctr, block, p, n, out);
}

/* sw_seal_crypt_result - do so under the key of results.  @place: key, round
 * and chunk in the header; a place has the same bytes for all members. */
static inline void sw_seal_crypt_result(struct sw_ctr *ctr, const void *place,
	const void *p, size_t n, void *out)
{
	uint8_t block[SW_BLOCK_BYTES] = {0};

	memcpy(block, place, SW_NONCE_BYTES);
	sw_ctr(ctr, block, p, n, out);
}

/* sw_seal_block - write the bytes that a tag covers, except h: the caller
 * writes h at SW_SEAL_HASH_AT.
 * @head  a header */
static inline void sw_seal_block(
	uint8_t block[SW_PRF_BYTES], const void *head, uint8_t direction)
{
	memcpy(block, head, SW_SEAL_HASH_AT);
	block[SW_SEAL_HEAD_BYTES] = direction;
	block[SW_SEAL_HEAD_BYTES + 1] = 0;
}

/* sw_seal_is_good - return whether @tag equals the tag after the first
 * SW_SEAL_HEAD_BYTES of @head, in constant time. */
static inline bool sw_seal_is_good(uint64_t tag, const uint8_t *head)
{
	uint64_t got;

	memcpy(&got, head + SW_SEAL_HEAD_BYTES, sizeof(got));
	return !(tag ^ got);
}

/* --- the results of one run of a job at one lcore of a server --- */

enum { SW_RESULT_ROWS = 2048 }; /* hashes of results in the cache */

/* A result by its place: the header's key, round and chunk, or a stream's
 * fields at their offsets. */
struct sw_result_row {
	uint32_t key, round, chunk;
	uint32_t era; /* 1 + the era of the hash; 0: not reusable */
	uint8_t hash[SW_POLYVAL_BLOCK];
};

struct sw_result_keys {
	struct sw_polyval_key hash;
	struct sw_era_keys ciphers; /* open if the job is encrypted */
	uint32_t era;               /* the newest */
	uint64_t era_from, era_ns;  /* contributions before it; its start */
	uint8_t secret[2][SW_BLOCK_BYTES]; /* sent to members: hash, cipher */
	struct sw_result_row rows[SW_RESULT_ROWS];
};

/* sw_result_keys_new - make the keys from the two 16-byte keys at @secret;
 * NULL: no memory.
 * sw_result_keys_free - wipe and free the keys; takes NULL. */
struct sw_result_keys *sw_result_keys_new(
	const uint8_t secret[2 * SW_BLOCK_BYTES], bool is_encrypted);
void sw_result_keys_free(struct sw_result_keys *r);

/* sw_result_keys_row - return the row of a result.  Its hash is valid if the
 * row's fields match the result and the current era. */
static inline struct sw_result_row *sw_result_keys_row(
	struct sw_result_keys *r, uint32_t key, uint32_t round, uint32_t chunk)
{
	uint32_t at =
		key * 2654435761u + round * 2246822519u + chunk * 3266489917u;

	return &r->rows[at >> 21];
}

_Static_assert(SW_RESULT_ROWS == 1 << (32 - 21), "the highest bits");

#endif
