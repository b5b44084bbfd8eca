/* tensor_memory.c - what a worker's tensor has besides its record.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One block of zeros, which somebody else has made present (env.h): the lcore
 * takes no page faults for it, at the declaration or at the first submit.
 */
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/worker_int.h"
#include "sum/sum.h"

enum { CHUNKS, COOKIES, FROM, SETS, PLACES, WORDS, N_PARTS, PAGE = 4096 };

uint32_t sw_wtensor_chunks(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t per_chunk = w->params.payload / sw_dtype_bytes(in->dtype);

	return (uint32_t)((in->n_elems - 1) / per_chunk + 1);
}

/* Words of one set for each link: how the chunks divide is known with the key,
 * until then the most that it can be. */
static uint64_t most_words(const struct sw_worker *w, uint32_t n_chunks)
{
	uint64_t divided = (n_chunks + w->n_links) / 63 + 1 +
			   SW_BITMAP_LEVELS * w->n_links;

	return sw_min64(divided, w->n_links * sw_bitmap_words(n_chunks));
}

static uint64_t size_parts(
	const struct sw_worker *w, uint32_t n_chunks, uint64_t bytes[N_PARTS])
{
	uint64_t sum = 0;

	bytes[CHUNKS] = (uint64_t)n_chunks * sizeof(struct sw_wchunk);
	bytes[COOKIES] = w->n_local * sizeof(uint64_t);
	bytes[FROM] = w->lane_i ? 0 : w->n_local * sizeof(uint8_t *);
	bytes[SETS] = 3 * w->n_links * sizeof(struct sw_bitmap);
	bytes[PLACES] = (w->n_links * sizeof(struct sw_place) + 7) / 8 * 8;
	bytes[WORDS] = 3 * most_words(w, n_chunks) * sizeof(uint64_t);
	for (uint32_t i = 0; i < N_PARTS; i++)
		sum += bytes[i];
	return sum;
}

uint64_t sw_wtensor_need(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint64_t bytes[N_PARTS];

	return size_parts(w, sw_wtensor_chunks(w, in), bytes) + PAGE;
}

int sw_wtensor_take(struct sw_worker *w, struct sw_wtensor *t)
{
	uint64_t bytes[N_PARTS];
	void *parts[N_PARTS];
	char *next;

	t->mem_bytes = size_parts(w, t->n_chunks, bytes);
	t->mem = next = w->env->mem_get(w->env->ctx, t->mem_bytes);
	if (!t->mem)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < N_PARTS; i++) {
		parts[i] = next;
		next += bytes[i];
	}
	t->chunks = parts[CHUNKS];
	t->cookies = parts[COOKIES];
	t->from = w->lane_i ? NULL : parts[FROM];
	t->todo = parts[SETS];
	t->again = t->todo + w->n_links;
	t->late = t->again + w->n_links;
	t->places = parts[PLACES];
	t->words = parts[WORDS];
	return 0;
}

void sw_wtensor_give(const struct sw_worker *w, struct sw_wtensor *t)
{
	if (t->mem)
		w->env->mem_put(w->env->ctx, t->mem, t->mem_bytes);
	*t = (struct sw_wtensor){0};
}
