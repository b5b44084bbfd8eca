/* ends.c - how a group ends: local ranks abort it, or close it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Its streams are dead from then on as those that members call differently
 * (mismatch.c), or, if nothing of them was open, forgotten.  Both are said to
 * the servers until they have confirmed it; servers tell the other members.
 */
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/worker/stream.h"

enum { NAMED_MAX = 6 }; /* ranks that are missing */

uint64_t sw_group_closed(const struct sw_worker *w, const struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_tensors; i++)
		if (&w->tensors[i] != t &&
			sw_wtensor_are_kin(&w->tensors[i], t))
			return w->tensors[i].closed & t->stream->group.here;
	return 0;
}

/* Does an open collective of the stream wait for this rank? */
static bool is_missing(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_wrank *r)
{
	uint64_t local = sw_round_lacks(w, t);

	if (!t->is_open)
		return false;
	return r->member == w->rank ? local >> r->local & 1
				    : t->missing >> r->member & 1;
}

static bool is_missing_in_any(const struct sw_worker *w,
	const struct sw_wtensor *of, const struct sw_wrank *r)
{
	for (uint32_t i = 0; i < w->n_tensors; i++)
		if (sw_wtensor_are_kin(&w->tensors[i], of) &&
			is_missing(w, &w->tensors[i], r))
			return true;
	return false;
}

/* "; missing: rank 2, 5", or a server, when nobody was named. */
static void add_missing(const struct sw_worker *w, const struct sw_wtensor *t,
	char text[SW_TEXT_MAX])
{
	const struct sw_wgroup *g = &t->stream->group;
	size_t at = strlen(text);
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n && at < SW_TEXT_MAX; i++) {
		if (!is_missing_in_any(w, t, &g->ranks[i]))
			continue;
		if (++n > NAMED_MAX) {
			snprintf(text + at, SW_TEXT_MAX - at, ", ...");
			return;
		}
		at += (size_t)snprintf(text + at, SW_TEXT_MAX - at, "%s%u",
			n > 1 ? ", " : "; missing: rank ", g->ranks[i].rank);
	}
	if (!n && at < SW_TEXT_MAX)
		snprintf(text + at, SW_TEXT_MAX - at, "; missing: a server");
}

/* The one at @i, if it is a stream that may still end. */
static struct sw_wtensor *stream_at(struct sw_worker *w, uint32_t i)
{
	return i < w->n_tensors && w->tensors[i].stream && !sw_worker_end_of(w)
		       ? &w->tensors[i]
		       : NULL;
}

void sw_worker_abort(struct sw_worker *w, uint32_t stream, const char *why,
	bool names_missing)
{
	struct sw_wtensor *t = stream_at(w, stream);
	char text[SW_TEXT_MAX];

	if (!t || t->is_closed)
		return;
	snprintf(text, sizeof(text), "%s", why);
	if (names_missing)
		add_missing(w, t, text);
	sw_tensor_kill(w, t, 1, SW_EABORTED, text);
}

static void close_one(struct sw_worker *w, struct sw_wtensor *t, uint32_t local)
{
	char text[SW_TEXT_MAX];

	t->closed |= t->stream->group.here & 1ULL << local;
	if (t->is_open) {
		snprintf(text, sizeof(text),
			"stream %.64s: rank %u closed the group with work open",
			t->name, w->first + local);
		sw_tensor_kill(w, t, 1, SW_EABORTED, text);
	}
	if (t->is_closed || t->closed != t->stream->group.here)
		return;
	t->is_closed = true;
	sw_tensor_tell(w, t);
	sw_lane_closed(w, t);
}

void sw_worker_close_group(struct sw_worker *w, uint32_t stream, uint32_t local)
{
	const struct sw_wtensor *t = stream_at(w, stream);

	for (uint32_t i = 0; t && i < w->n_tensors; i++)
		if (sw_wtensor_are_kin(&w->tensors[i], t))
			close_one(w, &w->tensors[i], local);
}
