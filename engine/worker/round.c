/* round.c - one round of a tensor, from its start to its end.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A round is a task of the scheduler, which decides which part of which tensor
 * may start.  Its chunks then wait in todo.c, and leave by class and order as
 * the servers' grants allow (worker_tx.c).  A started chunk that was not sent
 * can still be overtaken.  Credit returns as chunks are folded. */
#include "engine/worker/round.h"

#include <assert.h>

#include "engine/base/bits.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/lanes.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"

enum { SAMPLES = 16 }; /* one round in so many is timed */

/* --- a round as a task --- */

/* Find the link and the record of this lane's chunk @c. */
static struct sw_link *find(struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t c, uint32_t *record)
{
	uint32_t chunk = sw_place_global(&t->own, c);
	uint32_t i = w->link_of[sw_place_owner(&w->map, t->first, chunk)];

	*record = sw_part_record(&t->parts[i], chunk);
	return &w->links[i];
}

/* Return the next part in bytes: whole chunks, at least one. */
static uint64_t part_of(
	const struct sw_task *task, uint64_t from, uint64_t unit)
{
	const struct sw_wtensor *t = sw_wtensor_of(task);
	uint64_t left = task->bytes - from, n = unit / t->chunk_bytes;

	return sw_min64(left, (n ? n : 1) * t->chunk_bytes);
}

static void start_part(struct sw_task *task, uint64_t from, uint64_t bytes)
{
	struct sw_wtensor *t = sw_wtensor_of(task);
	struct sw_worker *w = t->worker;
	uint64_t at = t->before + from;
	uint32_t c = (uint32_t)(at / t->chunk_bytes);
	uint32_t end = (uint32_t)((at + bytes - 1) / t->chunk_bytes) + 1;

	for (uint32_t n; c < end; c += n) { /* c counts this lane's chunks */
		uint32_t record;
		/* The first record of the run. */
		struct sw_link *l = find(w, t, c, &record);

		n = sw_place_run(&t->own, c);
		n = n < end - c ? n : end - c;
		sw_todo_start(l, t, record, n);
	}
}

/* Take back started chunks, from the last one on: chunks leave in ascending
 * order, so the last ones are still unsent. */
static uint64_t take_back(struct sw_task *task, uint64_t bytes)
{
	struct sw_wtensor *t = sw_wtensor_of(task);
	struct sw_worker *w = t->worker;
	uint32_t first = (uint32_t)(t->before / t->chunk_bytes);
	uint32_t i =
		(uint32_t)((t->before + task->started - 1) / t->chunk_bytes);
	uint32_t record, before;
	struct sw_link *l = find(w, t, i, &record), *next;
	uint64_t taken = 0;

	for (; i > first && taken < bytes &&
		sw_wchunk_is_unsent(&t->chunks[record]);
		i--) {
		next = find(w, t, i - 1, &before);
		if (!sw_wchunk_is_unsent(&t->chunks[before]))
			break;
		t->chunks[record].is_charged = false;
		sw_todo_remove(l, t, record);
		taken += sw_wtensor_bytes(t, record);
		l = next;
		record = before;
	}
	return taken;
}

static const struct sw_task_ops ops = {
	.partition = part_of, .start = start_part, .take_back = take_back};

/* Return the bytes of this lane's first @n chunks.  The tensor's last chunk may
 * be among them and shorter. */
static uint64_t own_bytes(const struct sw_wtensor *t, uint32_t n)
{
	uint64_t bytes = (uint64_t)n * t->chunk_bytes;

	return n == t->own.n_local && t->last != SW_PLACE_NONE
		       ? bytes - t->chunk_bytes + t->last_bytes
		       : bytes;
}

/* --- a buffer that is not fully written yet (growing tensors, below) --- */

static uint64_t buffer_bytes(const struct sw_wtensor *t)
{
	return t->decl.n_elems * t->elem_bytes;
}

/* Can @lacks bytes be missing at the end of the buffer? */
static bool may_lack(const struct sw_wtensor *t, uint64_t lacks)
{
	return lacks <= buffer_bytes(t) && lacks % t->elem_bytes == 0;
}

/* Publish, in lane 0, how many chunks are written, and return it. */
static uint32_t say_ready(struct sw_wtensor *t)
{
	uint64_t there = buffer_bytes(t) - t->lacks;
	uint32_t n =
		t->lacks ? (uint32_t)(there / t->chunk_bytes) : t->n_chunks;

	atomic_store_explicit(&t->n_ready, n, memory_order_release);
	return n;
}

/* Return how many chunks of the tensor all local ranks have written. */
static uint32_t n_ready(const struct sw_worker *w, const struct sw_wtensor *t)
{
	if (w->lane_i)
		t = &w->lanes->zero->tensors[t->index];
	return atomic_load_explicit(&t->n_ready, memory_order_acquire);
}

/* Give the scheduler this lane's newly written chunks.  A task that has
 * finished all of its chunks begins again. */
static void give_written(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t n = sw_place_below(&t->own, n_ready(w, t));
	uint64_t before = own_bytes(t, t->n_given);
	int err;

	if (n <= t->n_given)
		return;
	if (t->task.state == SW_TASK_IDLE)
		t->before = before;
	t->n_given = n;
	err = sw_task_extend(&w->sched, &t->task, own_bytes(t, n) - before);
	assert(!err);
	(void)err;
	sw_sched_run(&w->sched);
}

/* Give the scheduler all chunks of a fully written buffer, the usual case. */
static void give_all(struct sw_worker *w, struct sw_wtensor *t)
{
	int err;

	t->before = 0;
	t->n_given = t->own.n_local;
	t->task.bytes = own_bytes(t, t->own.n_local);
	err = sw_task_ready(&w->sched, &t->task);
	assert(!err);
	(void)err;
	sw_sched_run(&w->sched);
}

/* Give the scheduler the chunks that were written since it got the last ones.
 * Does nothing if the round is over or dead. */
static void extend_round(struct sw_worker *w, struct sw_wtensor *t)
{
	if (w->left_by_ns || !t->is_begun || !t->n_missing)
		return;
	t->progress_ns = w->now_ns;
	give_written(w, t);
}

/* Open a round, with its operation, when the first local rank asks for it. */
static void open_round(struct sw_worker *w, struct sw_wtensor *t, uint8_t op,
	uint16_t step, uint16_t root)
{
	bool is_copy = op == SW_ROUND_COPY;
	bool has_root = root >= w->first && root < w->first + w->n_local;

	sw_wtensor_set_open(t, true);
	t->op = op;
	t->result_op = t->mode == SW_MODE_ASYNC ? SW_ROUND_COPY : op;
	t->step = step;
	t->root = is_copy ? root : 0;
	t->gives = is_copy ? has_root : w->n_local;
	t->progress_ns = t->opened_ns = w->now_ns;
	w->n_open++;
}

/* Begin the round when all local ranks have asked: count it, tell the other
 * lanes, give this lane's written chunks to the scheduler. */
static void start_round(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t n;

	t->round++;
	w->highest_round = (uint32_t)sw_max64(w->highest_round, t->round);
	if (sw_wtensor_is_dead(t, t->round)) { /* already killed here */
		sw_round_end(w, t, sw_wtensor_why(t)->err);
		return;
	}
	t->is_edited = false;
	t->is_begun = true;
	t->weight = 0;
	t->n_missing = t->own.n_local;
	n = w->lane_i ? n_ready(w, t) : say_ready(t);
	sw_set_word(&t->awaited, 0);
	t->progress_ns = w->now_ns;
	t->busy_lanes = t->lanes;
	if (t->lanes) {
		atomic_store(&t->said_round, t->round);
		sw_lanes_tell(w, t, t->lanes);
	}
	if (!t->n_missing)
		return;
	/* All are HELD until the scheduler starts them. */
	sw_todo_set_class(w, t);
	t->task = (struct sw_task){.ops = &ops, .priority = t->decl.priority};
	t->n_given = 0;
	if (n == t->n_chunks)
		give_all(w, t);
	else
		give_written(w, t);
}

/* --- its end --- */

/* Tell the local ranks in @asked, a set of the 64 from @first on, that the
 * round has ended. */
static void tell(struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t first, uint64_t asked, int err)
{
	for (; asked; asked &= asked - 1) {
		uint32_t local = first + (uint32_t)__builtin_ctzll(asked);

		w->events.done(w->events.ctx, t->id, local,
			t->locals[local].cookie, err, t->weight);
	}
}

/* Tell all local ranks that have asked that the round has ended.  A rank may
 * ask for the next round in the callback, so clear the sets first. */
static void end_local(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	uint32_t n_words = w->n_local / 64;
	uint64_t lowest = t->asked[0], asked[SW_LOCAL_WORDS];

	for (uint32_t i = 1; i <= n_words; i++) {
		asked[i] = t->asked[i];
		t->asked[i] = 0;
	}
	t->asked[0] = 0;
	t->n_asked = 0;
	tell(w, t, 0, lowest, err);
	for (uint32_t i = 1; i <= n_words; i++)
		tell(w, t, 64 * i, asked[i], err);
}

void sw_round_drop(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_task_cancel(&w->sched, &t->task);
	sw_todo_drop(w, t);
	if (t->kind->is_group)
		sw_stream_drop(w, t);
	t->n_missing = 0; /* later results are stale */
}

void sw_round_end(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	if (!err && sw_wtensor_is_dead(t, t->round))
		err = sw_wtensor_why(t)->err;
	if (!err && t->is_edited)
		err = SW_ECORRUPT;
	sw_wtensor_set_open(t, false);
	t->is_begun = false;
	w->n_open--;
	sw_task_cancel(&w->sched, &t->task);
	if (!w->lane_i) {
		if (!err) {
			sw_count(&w->stats.rounds, 1);
			if (!(t->round & (SAMPLES - 1)))
				sw_histogram_note(&w->stats.round_ns,
					w->now_ns - t->opened_ns);
		}
		end_local(w, t, err);
		return;
	}
	if (w->left_by_ns)
		return;
	atomic_store(&t->said_round, t->round);
	sw_lane_tell(w, t);
}

uint32_t sw_round_end_some(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	if (t->kind->is_group) {
		if (t->n_missing)
			sw_round_drop(w, t);
		sw_coll_end(w, t, sw_stream_oldest(t->stream), err);
	} else {
		sw_round_end(w, t, err);
	}
	return w->n_local;
}

static uint32_t end_some(struct sw_worker *w, struct sw_wtensor *t)
{
	return sw_round_end_some(
		w, t, w->state == SW_WORKER_FAILED ? w->fault.err : SW_ECLOSED);
}

uint32_t sw_rounds_end(struct sw_worker *w)
{
	return sw_sweep(w, &w->open, end_some);
}

/* --- requests of local ranks --- */

void sw_worker_source(
	struct sw_worker *w, uint32_t tensor, uint32_t local, const void *base)
{
	struct sw_wtensor *t = &w->tensors[sw_id_index(tensor)];

	/* Else it was freed, or this is not lane 0. */
	if (t->id == tensor && t->locals)
		t->locals[local].from = base;
}

/* Return the lowest member of a set that is not empty. */
static uint32_t first_of(const uint64_t *set)
{
	uint32_t i = 0;

	while (!set[i])
		i++;
	return 64 * i + (uint32_t)__builtin_ctzll(set[i]);
}

/* Kill the tensor, because a local rank's request differs from that of the
 * first local rank. */
static int kill_differs(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round)
{
	struct sw_fault why = {.err = SW_EMISMATCH,
		.one = {.rank = (uint16_t)(w->first + round->local),
			.root = round->root,
			.step = (uint16_t)round->step,
			.op = (uint8_t)round->op},
		.other = {.rank = (uint16_t)(w->first + first_of(t->asked)),
			.root = t->root,
			.step = t->step,
			.op = t->op}};

	why.kind = (uint8_t)sw_fault_rounds(&why.one, &why.other);
	sw_tensor_kill(w, t, t->round + 1, &why);
	return SW_EMISMATCH;
}

static int ask(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round)
{
	if (round->lacks) { /* else all is written, as after a round */
		if (!may_lack(t, round->lacks))
			return SW_EINVAL;
		t->locals[round->local].lacks = round->lacks;
		t->lacks = sw_max64(t->lacks, round->lacks);
	}
	if (!t->n_asked)
		open_round(w, t, (uint8_t)round->op, (uint16_t)round->step,
			round->root);
	else if (t->op != round->op || t->step != (uint16_t)round->step ||
		 (t->op == SW_ROUND_COPY && t->root != round->root))
		return kill_differs(w, t, round);
	t->n_asked++;
	sw_bits_add(t->asked, round->local);
	t->locals[round->local].cookie = round->cookie;
	sw_deaths_check_local(w, t);
	return 0; /* also if the round has ended in the call */
}

int sw_worker_begin(struct sw_worker *w, const struct sw_worker_round *round)
{
	struct sw_wtensor *t;
	int err;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	t = sw_tensor_at(w, round->tensor);
	if (!t || round->local >= w->n_local ||
		(round->op == SW_ROUND_COPY && round->root >= w->size))
		return SW_EINVAL;
	if (t->number >= w->n_admitted)
		return SW_EAGAIN;
	if ((w->n_local > 1 && !t->locals[round->local].from &&
		    !t->life->from) ||
		(t->mode == SW_MODE_ASYNC && !t->round &&
			round->op == SW_ROUND_SUM))
		return SW_EINVAL;
	if (sw_bits_has(t->asked, round->local))
		return SW_EBUSY;
	if (!t->is_begun && sw_wtensor_is_dead(t, t->round + 1))
		return sw_wtensor_why(t)->err;
	err = ask(w, t, round);
	if (!err && t->n_asked == w->n_local)
		start_round(w, t);
	return err;
}

/* --- growing tensors ---
 *
 * A local rank may ask for a round before its buffer is fully written, and
 * report later how much more is written.  The least length of all local ranks
 * counts: lane 0 writes it to a word that the other lanes read, and each lane
 * gives its scheduler the chunks below that length.  Chunks above it stay HELD,
 * as before the round, and so are never pushed.
 *
 * Results are reported by granules of SW_GRANULE bytes.  When all results of a
 * granule are written, its word in the local ranks' memory becomes the number
 * of the round.  Each lane counts its own missing chunks; a shared count shows
 * which lane is the last. */

int sw_worker_grow(
	struct sw_worker *w, uint32_t tensor, uint32_t local, uint64_t lacks)
{
	struct sw_wtensor *t = sw_tensor_at(w, tensor);
	uint64_t before, most = 0;
	uint32_t n;

	if (!t || local >= w->n_local)
		return SW_EINVAL;
	if (sw_worker_end_of(w) || !sw_bits_has(t->asked, local))
		return 0;
	before = t->locals[local].lacks;
	if (lacks > before || !may_lack(t, lacks))
		return SW_EINVAL;
	if (lacks == before) /* a repetition */
		return 0;
	t->locals[local].lacks = lacks;
	t->progress_ns = w->now_ns;
	if (before != t->lacks)
		return 0;
	for (uint32_t i = 0; i < w->n_local; i++)
		if (sw_grow_lacks(t, i))
			most = sw_max64(most, t->locals[i].lacks);
	t->lacks = most;
	n = atomic_load_explicit(&t->n_ready, memory_order_relaxed);
	if (!t->is_begun || say_ready(t) == n)
		return 0;
	sw_lanes_tell(w, t, t->lanes);
	extend_round(w, t);
	return 0;
}

/* Return how many chunks lie in a granule, wholly or partly; *own: how many of
 * these chunks are this lane's. */
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

/* Count one more held chunk of a granule.  Report it when all are held. */
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
	atomic_store_explicit(
		&t->decl.granules[granule], t->round, memory_order_release);
	if (w->lane_i)
		sw_lane_report(w, SW_LANE_SUMMED);
	else
		w->has_summed = true;
}

void sw_granules_held(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk)
{
	uint64_t at = (uint64_t)chunk * t->chunk_bytes;
	uint64_t end = sw_min64(at + t->chunk_bytes, buffer_bytes(t));
	uint32_t first = (uint32_t)(at / SW_GRANULE);
	uint32_t last = (uint32_t)((end - 1) / SW_GRANULE);

	hold_in(w, t, first);
	if (last != first) /* the chunk lies in two granules */
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

/* --- a tensor's functions (struct sw_kind) --- */

/* Return the local ranks that have not asked, or have not written all of their
 * buffer. */
static uint64_t lagging(const struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t i, uint64_t which)
{
	uint32_t n = w->n_local - 64 * i;
	uint64_t out = ~t->asked[i] & (n < 64 ? (1ULL << n) - 1 : ~0ULL);

	for (uint64_t m = t->lacks ? t->asked[i] : 0; m; m &= m - 1)
		if (sw_grow_lacks(t, 64 * i + (uint32_t)__builtin_ctzll(m)))
			out |= m & -m;
	return out & which;
}

/* Begin the round that lane 0 has begun, or continue it: more of a growing
 * tensor may be written.  A round that begins reads the newest length itself.
 */
static void follow(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_wtensor *zero)
{
	if (atomic_load(&zero->said_round) == t->round) {
		extend_round(w, t);
		return;
	}
	open_round(w, t, zero->op, zero->step, zero->root);
	t->n_asked = w->n_local;
	start_round(w, t);
}

/* Drop the open round of a killed tensor.  End the round when the other lanes
 * have also dropped it. */
static void killed(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_lane_tell(w, t);
	if (!t->is_open || !sw_wtensor_is_dead(t, t->round + !t->is_begun))
		return;
	sw_round_drop(w, t);
	if (!t->busy_lanes)
		sw_round_end(w, t, sw_wtensor_why(t)->err);
	sw_sched_run(&w->sched);
}

const struct sw_kind sw_tensor_kind = {.lagging = lagging,
	.follow = follow,
	.is_known = sw_link_knows,
	.killed = killed};
