/* aes.h - AES-128 in counter mode and in chains, by the CPU's instructions.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * There is no kernel for a CPU without these instructions: table look-ups would
 * reveal the key through the caches, so the caller then uses its library. A
 * kernel's time depends on the length alone.
 */
#ifndef SW_SUM_AES_H
#define SW_SUM_AES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SW_AES_BLOCK = 16,
	SW_AES_KEYS = 11,
	SW_AES_MESSAGE = 4 * SW_AES_BLOCK, /* bytes of a message of macs */
};

/* The round keys; as secret as the 16-byte key. */
struct sw_aes_key {
	_Alignas(16) uint8_t rounds[SW_AES_KEYS][SW_AES_BLOCK];
};

/* A kernel. */
struct sw_aes {
	const char *name; /* "aesni", "vaes256", …; as in the file name */
	/* Encrypt or decrypt @n bytes from @p to @out, which is @p or does not
	 * overlap it. @block is the first counter block; its last four bytes
	 * are a big-endian counter that must not wrap. */
	void (*ctr)(const struct sw_aes_key *key, const uint8_t *block,
		const void *p, size_t n, void *out);
	/* Continue the CBC-MAC in @mac over @n blocks at @p. A block depends on
	 * the one before, so all rows share one function. */
	void (*chain)(const struct sw_aes_key *key, uint8_t *mac, const void *p,
		size_t n);
	/* Set @out to the first 64 bits of the CBC-MAC of each of @n messages
	 * of SW_AES_MESSAGE bytes at @p, with @last added to each last block.
	 * The messages go through the rounds in parallel. */
	void (*macs)(const struct sw_aes_key *key, const uint8_t *last,
		const uint8_t *p, uint32_t n, uint64_t *out);
};

/* sw_aes_best - return the widest kernel that this CPU supports; NULL: none.
 * sw_aes_prepare - prepare the key of SW_AES_BLOCK bytes at @bytes, for a CPU
 * that supports a kernel.
 * sw_aes_row - return row @i of the table of kernels, NULL past its end; the
 * widest last. Set @runs (or NULL) to whether this CPU supports the kernel. */
const struct sw_aes *sw_aes_best(void);
void sw_aes_prepare(struct sw_aes_key *key, const uint8_t *bytes);
const struct sw_aes *sw_aes_row(uint32_t i, bool *runs);

/* Inside sum/ only: the rows, and the functions that all rows share. */
extern const struct sw_aes sw_aes_aesni;
extern const struct sw_aes sw_aes_vaes256;
extern const struct sw_aes sw_aes_vaes512;
void sw_aes_prepare_aesni(struct sw_aes_key *key, const uint8_t *bytes);
void sw_aes_chain_aesni(
	const struct sw_aes_key *key, uint8_t *mac, const void *p, size_t n);
void sw_aes_macs_aesni(const struct sw_aes_key *key, const uint8_t *last,
	const uint8_t *p, uint32_t n, uint64_t *out);

#endif
