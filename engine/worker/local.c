/* local.c - take the local ranks' requests for rounds.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bits.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"

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

/* Kill the tensor: a local rank asks for something else than the first one did.
 */
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

/* Note how much of its buffer is not written yet.  If this is not called,
 * nothing lacks, as after a round. */
static int note_lacks(struct sw_wtensor *t, const struct sw_worker_round *round)
{
	if (!sw_grow_is_possible(t, round->lacks))
		return SW_EINVAL;
	t->locals[round->local].lacks = round->lacks;
	t->lacks = sw_max64(t->lacks, round->lacks);
	return 0;
}

static int ask(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_round *round)
{
	if (round->lacks && note_lacks(t, round))
		return SW_EINVAL;
	if (!t->n_asked)
		sw_round_open(w, t, (uint8_t)round->op, (uint16_t)round->step,
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
		sw_round_start(w, t);
	return err;
}
