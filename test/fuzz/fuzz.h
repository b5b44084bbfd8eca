/* fuzz.h - read a fuzz target's input byte by byte, as all targets do.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A target reads its input from the front. Bytes beyond the end read as 0, so
 * that every input means something.
 *
 * Most targets read it as a sequence of steps, each a call, a frame or a
 * message. A step is six bytes: kind, who, a, b, c, d. The upper three bits of
 * the kind are the number of patches that follow and change the step's message.
 * A patch is: offset (one byte, or 255 and two more), number of bytes, the
 * bytes. seeds.py writes the same format.
 */
#ifndef SW_TEST_FUZZ_FUZZ_H
#define SW_TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* fuzz_folder - make a folder with a short path for sockets and files. */
static inline void fuzz_folder(char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, size, "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(path))
		abort();
}

/* fuzz_edge - return a number near an edge: up to 127, or up to 128 below
 * 2^32. */
static inline uint32_t fuzz_edge(uint8_t v)
{
	return (uint32_t)(int8_t)v;
}

struct fuzz_step {
	uint8_t kind, who, a, b, c, d;
	uint8_t n_patches;
};

/* fuzz_step - take the next step; returns false at the end. */
static inline bool fuzz_step(struct fuzz_input *in, struct fuzz_step *s)
{
	if (!in->left)
		return false;
	s->kind = fuzz_u8(in);
	s->n_patches = s->kind >> 5;
	s->kind &= 31;
	s->who = fuzz_u8(in);
	s->a = fuzz_u8(in);
	s->b = fuzz_u8(in);
	s->c = fuzz_u8(in);
	s->d = fuzz_u8(in);
	return true;
}

/* fuzz_patch - read a patch and apply it to @bytes. */
static inline void fuzz_patch(
	struct fuzz_input *in, uint8_t *bytes, size_t n_bytes)
{
	size_t at = fuzz_u8(in), n, room;

	if (at == 255)
		at = fuzz_u16(in);
	at %= n_bytes;
	n = fuzz_u8(in);
	room = n_bytes - at;
	n = n < room ? n : room;
	memcpy(bytes + at, fuzz_take(in, &n), n);
}

#endif
