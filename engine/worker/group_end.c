/* group_end.c - abort or close a group for a local rank.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An abort kills the group's streams, as if members had called them differently
 * (tensor_end.c), and so does a close with work open.  Closed streams are freed
 * (stream_gone.c).  The worker tells the servers, and they tell the other
 * members. */
#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"

enum { USES_BURST = 16 }; /* streams looked at in one call */

bool sw_worker_uses(const struct sw_worker *w, uint32_t local, const void *base,
	uint64_t bytes, uint32_t *at)
{
	for (uint32_t n = 0; n < USES_BURST; n++) {
		uint32_t i = sw_bitmap_next(&w->open, *at);
		const struct sw_wtensor *t;

		if (i == SW_BITMAP_NONE) {
			*at = SW_TENSORS;
			return false;
		}
		*at = i + 1;
		t = &w->tensors[i];
		if (t->kind->uses && t->kind->uses(t, local, base, bytes))
			return true;
	}
	return false;
}

/* Look up stream @id if the job runs and @local is in its group: a process may
 * declare streams of groups that it is not in. */
static struct sw_wtensor *stream_at(
	struct sw_worker *w, uint32_t id, uint32_t local)
{
	struct sw_wtensor *t = sw_worker_end_of(w) ? NULL : sw_stream_at(w, id);

	return t && sw_wgroup_has_local(&t->stream->group, local) ? t : NULL;
}

void sw_worker_abort(struct sw_worker *w, uint32_t stream, uint32_t local,
	int err, const char *why)
{
	struct sw_wtensor *t = stream_at(w, stream, local);
	struct sw_fault f = sw_fault_said(err, why);
	char who[SW_MISSING_TEXT];
	uint32_t most, used;

	if (!t)
		return;
	if (err != SW_EEXPIRED) {
		sw_tensor_kill(w, t, 1, &f);
		return;
	}
	/* If there is too little room, cut the list of ranks first, then the
	 * reason. */
	most = sizeof(f.text) - sizeof("; missing: ");
	used = (uint32_t)strnlen(why, most);
	sw_missing_text(w, t, true,
		(uint32_t)sw_max64(SW_MISSING_LEAST,
			sw_min64(most - used + 1, sizeof(who))),
		who);
	snprintf(f.text, sizeof(f.text), "%.*s; missing: %s",
		(int)(most - strlen(who)), why, who);
	sw_stream_propose(w, t, &f);
}

void sw_worker_close_group(struct sw_worker *w, uint32_t stream, uint32_t local)
{
	const struct sw_fault why = {.err = SW_EABORTED,
		.kind = SW_FAULT_UNDONE,
		.one.rank = (uint16_t)(w->first + local)};
	struct sw_wtensor *t = stream_at(w, stream, local), *u = NULL;

	if (!t)
		return;
	while ((u = sw_wtensor_next(t, u)))
		if (u->is_open)
			sw_tensor_kill(w, t, 1, &why);
	sw_life_close(w, t, local);
}
