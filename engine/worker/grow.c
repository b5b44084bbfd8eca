/* grow.c - growing tensors: track written buffers, report summed granules.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A local rank may ask for a round before all of its buffer is written, and say
 * later how much more is.  The least of all local ranks counts: lane 0 writes
 * it to a word that the other lanes read, and each lane gives its chunks up to
 * there to its scheduler (round.c).  Chunks beyond stay HELD, as before the
 * round, and so are never pushed.
 *
 * Results are reported by granules of SW_GRANULE bytes.  When all results of a
 * granule are written, its word in the local ranks' memory becomes the number
 * of the round.  Each lane counts its own missing chunks; a shared count shows
 * which lane is the last. */
#include "engine/worker/round.h"

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/lanes.h"

/* --- buffers --- */

static uint64_t most_lacking(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < w->n_local; i++)
		if (sw_grow_lacks(t, i))
			most = sw_max64(most, t->locals[i].lacks);
	return most;
}

static void grow(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t before =
		atomic_load_explicit(&t->n_ready, memory_order_relaxed);

	if (sw_grow_say(t) == before)
		return;
	sw_lanes_tell(w, t, t->lanes);
	sw_round_extend(w, t);
}

int sw_worker_grow(
	struct sw_worker *w, uint32_t tensor, uint32_t local, uint64_t lacks)
{
	struct sw_wtensor *t = sw_tensor_at(w, tensor);
	uint64_t before;

	if (!t || local >= w->n_local)
		return SW_EINVAL;
	if (sw_worker_end_of(w) || !sw_bits_has(t->asked, local))
		return 0;
	before = t->locals[local].lacks;
	if (lacks > before || !sw_grow_is_possible(t, lacks))
		return SW_EINVAL;
	if (lacks == before) /* a repetition */
		return 0;
	t->locals[local].lacks = lacks;
	t->progress_ns = w->now_ns;
	if (before != t->lacks)
		return 0;
	t->lacks = most_lacking(w, t);
	if (t->is_begun)
		grow(w, t);
	return 0;
}

/* --- results --- */

/* Report a granule, all of whose chunks are held. */
static void note_summed(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t granule)
{
	atomic_store_explicit(
		&t->decl.granules[granule], t->round, memory_order_release);
	if (w->lane_i)
		sw_lane_report(w, SW_LANE_SUMMED);
	else
		w->has_summed = true;
}

/* Return how many chunks lie in a granule, wholly or partly; *own: how many are
 * this lane's. */
static uint32_t chunks_in(
	const struct sw_wtensor *t, uint32_t granule, uint32_t *own)
{
	uint64_t at = (uint64_t)granule * SW_GRANULE;
	uint32_t first = (uint32_t)(at / t->chunk_bytes);
	uint32_t end = (uint32_t)sw_min64(
		t->n_chunks, (at + SW_GRANULE - 1) / t->chunk_bytes + 1);

	*own = sw_place_below(&t->own, end) - sw_place_below(&t->own, first);
	return end - first;
}

/* Count one more held chunk of a granule. */
static void hold_in(struct sw_worker *w, struct sw_wtensor *t, uint32_t granule)
{
	uint32_t n, own;

	if (t->left[granule] > 1) {
		t->left[granule]--;
		return;
	}
	n = chunks_in(t, granule, &own);
	if (!t->left[granule])
		t->left[granule] = (uint16_t)own;
	if (--t->left[granule] ||
		atomic_fetch_add(&t->held[granule], own) + own < n)
		return;
	atomic_store(&t->held[granule], 0); /* for the next round */
	note_summed(w, t, granule);
}

void sw_granules_held(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	uint64_t at = (uint64_t)chunk * t->chunk_bytes;
	uint64_t end = sw_min64(at + t->chunk_bytes, sw_grow_bytes(t));
	uint32_t first = (uint32_t)(at / SW_GRANULE);
	uint32_t last = (uint32_t)((end - 1) / SW_GRANULE);

	hold_in(w, t, first);
	if (last != first) /* the chunk lies in two */
		hold_in(w, t, last);
}

bool sw_granules_tell(struct sw_worker *w)
{
	bool has = w->has_summed;

	w->has_summed = false;
	if (has)
		w->events.summed(w->events.ctx);
	return has;
}
