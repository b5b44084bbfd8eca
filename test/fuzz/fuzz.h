/* fuzz.h - what every fuzz target starts with: its input, byte by byte.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A target reads its input from the front.  What is taken beyond the end is 0,
 * so that every input means something.
 */
#ifndef SW_FUZZ_H
#define SW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* LLVMFuzzerTestOneInput - called by libFuzzer; @data is exactly @n bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* LLVMFuzzerInitialize - called once before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

static inline const uint8_t *fuzz_take(struct fuzz_input *in, size_t *n)
{
	const uint8_t *at = in->at;

	*n = *n < in->left ? *n : in->left;
	in->at += *n;
	in->left -= *n;
	return at;
}

static inline uint64_t fuzz_number(struct fuzz_input *in, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, fuzz_take(in, &bytes), bytes);
	return v;
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	return (uint8_t)fuzz_number(in, 1);
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	return (uint16_t)fuzz_number(in, 2);
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	return (uint32_t)fuzz_number(in, 4);
}

#endif
