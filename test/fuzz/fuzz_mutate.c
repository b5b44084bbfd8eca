/* fuzz_mutate.c - mutate an input by steps, besides libFuzzer's own mutations.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It applies to inputs of one byte and steps (fuzz.h). libFuzzer does not know
 * steps, and most of its mutations shift all later ones.
 */
#include "test/fuzz/fuzz.h"

enum { MAX_STEPS = 128, STEP_BYTES = 6 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(
	uint8_t *data, size_t n, size_t max, unsigned int seed);

static uint32_t draw(uint64_t *rng, uint32_t below)
{
	*rng = *rng * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*rng >> 33) % below;
}

/* Write the offsets of the steps and of the end to @at; return the number of
 * steps. */
static uint32_t find_steps(
	const uint8_t *data, size_t n, size_t at[MAX_STEPS + 1])
{
	struct fuzz_input in = {data + 1, n - 1};
	static uint8_t unused[1 << 16];
	struct fuzz_step s;
	uint32_t n_steps = 0;

	at[0] = 1;
	while (n_steps < MAX_STEPS && fuzz_step(&in, &s)) {
		for (uint32_t i = 0; i < s.n_patches; i++)
			fuzz_patch(&in, unused, sizeof(unused));
		at[++n_steps] = (size_t)(in.at - data);
	}
	return n_steps;
}

/* Insert @m bytes at @at; leave the input unchanged if they do not fit. */
static size_t insert(uint8_t *data, size_t n, size_t max, size_t at,
	const uint8_t *what, size_t m)
{
	if (n + m > max)
		return n;
	memmove(data + at + m, data + at, n - at);
	memcpy(data + at, what, m);
	return n + m;
}

static size_t insert_new(
	uint8_t *data, size_t n, size_t max, size_t at, uint64_t *rng)
{
	uint8_t step[STEP_BYTES + 4] = {(uint8_t)draw(rng, 16),
		(uint8_t)draw(rng, 4), (uint8_t)draw(rng, 10)};
	size_t m = STEP_BYTES;

	for (uint32_t i = 3; i < STEP_BYTES; i++)
		step[i] = (uint8_t)draw(rng, draw(rng, 4) ? 4 : 256);
	if (!draw(rng, 4)) { /* add a patch of two bytes */
		step[0] |= 1 << 5;
		step[m++] = (uint8_t)draw(rng, 128);
		step[m++] = 2;
		step[m++] = (uint8_t)draw(rng, 256);
		step[m++] = (uint8_t)draw(rng, 4);
	}
	return insert(data, n, max, at, step, m);
}

/* Change one byte to another value; in who (fuzz_frames.h) flip one bit: a flag
 * or the peer. */
static void change(uint8_t *step, uint32_t n_bytes, uint64_t *rng)
{
	uint32_t i = draw(rng, n_bytes);

	if (i == 1)
		step[i] ^= (uint8_t)(1 << draw(rng, 8));
	else
		step[i] = (uint8_t)draw(rng, draw(rng, 2) ? 8 : 256);
}

size_t LLVMFuzzerCustomMutator(
	uint8_t *data, size_t n, size_t max, unsigned int seed)
{
	size_t at[MAX_STEPS + 1], from, m;
	uint8_t copy[64];
	uint64_t rng = seed;
	uint32_t n_steps, to;

	if (!n || draw(&rng, 2))
		return LLVMFuzzerMutate(data, n, max);
	n_steps = find_steps(data, n, at);
	to = draw(&rng, n_steps + 1);
	if (!n_steps || !draw(&rng, 3))
		return insert_new(data, n, max, at[to], &rng);
	from = draw(&rng, n_steps);
	m = at[from + 1] - at[from];
	from = at[from];
	switch (draw(&rng, 3)) {
	case 0:
		change(data + from, (uint32_t)m, &rng);
		return n;
	case 1: /* remove the step */
		memmove(data + from, data + from + m, n - from - m);
		return n - m;
	default: /* repeat the step */
		m = m < sizeof(copy) ? m : sizeof(copy);
		memcpy(copy, data + from, m);
		return insert(data, n, max, at[to], copy, m);
	}
}
