/* back_way.c - what is summed of a tensor returns to the device.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pipeline.h"

/* Granules in a row. */
struct run {
	uint32_t first, end;
};

static bool is_back(const struct sw_pipeline_tensor *t, uint32_t granule)
{
	return t->are_back >> (granule - t->first) & 1;
}

/* Has its sum come, and is it not on its way back? */
static bool is_here(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, uint32_t granule)
{
	const struct sw_pipeline_net *n = &l->p.net;

	return !is_back(t, granule) &&
	       (t->is_summed ||
		       (t->is_pushed && n->is_summed(n->ctx, t->net, granule)));
}

static uint64_t bytes_of(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const struct run *r)
{
	uint64_t at = r->first * l->p.net.granule;
	uint64_t end = r->end * l->p.net.granule;

	return (end < t->bytes ? end : t->bytes) - at;
}

/* A run that more may join, which would be copied with it, waits for that. */
static bool is_ripe(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const struct run *r, uint32_t end)
{
	return r->end == t->n_granules ||
	       (r->first == t->first && r->end == end) ||
	       (r->end < end && is_back(t, r->end)) ||
	       bytes_of(l, t, r) >=
		       sw_pipeline_lane_slice(l, SW_BACK_IN, t->bytes);
}

static bool find(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, struct run *r)
{
	uint32_t end = t->n_granules - t->first < SW_PIPELINE_AHEAD
			       ? t->n_granules
			       : t->first + SW_PIPELINE_AHEAD;

	for (r->end = t->first; r->end < end;) {
		r->first = r->end;
		while (r->end < end && is_here(l, t, r->end))
			r->end++;
		if (r->end > r->first && is_ripe(l, t, r, end))
			return true;
		r->end += r->end == r->first;
	}
	return false;
}

static void note_back(struct sw_pipeline_tensor *t, const struct run *r)
{
	for (uint32_t i = r->first; i < r->end; i++)
		t->are_back |= UINT64_C(1) << (i - t->first);
	while (t->are_back & 1) {
		t->are_back >>= 1;
		t->first++;
	}
}

static void in_ended(struct sw_pipeline *l, struct sw_pipeline_copy *c, int err)
{
	if (err)
		return;
	sw_pipeline_watch_result(l, c->of, c->at, c->rows.bytes);
	sw_pipeline_done(l, c->of);
}

static void put(struct sw_pipeline *l, struct sw_pipeline_tensor *t,
	struct sw_pipeline_copy *c, const struct run *r)
{
	uint64_t at = r->first * l->p.net.granule;

	t->n_open++;
	*c = (struct sw_pipeline_copy){.rows = {.to = (char *)t->call.to + at,
					       .from = t->in + at,
					       .bytes = bytes_of(l, t, r),
					       .n = 1},
		.way = SW_BACK_IN,
		.priority = t->priority,
		.number = t->start.number,
		.at = at,
		.end = in_ended,
		.of = t};
	sw_pipeline_lane_put(l, c);
}

bool sw_pipeline_bring(struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	bool did = false;
	struct run r;

	for (uint32_t i = 0; i < SW_PIPELINE_BACK; i++) {
		struct sw_pipeline_copy *c = &t->copies_in[i];

		if (c->is_open || !find(l, t, &r))
			continue;
		did = true;
		if (sw_pipeline_is_edited(l, t, r.first, r.end))
			sw_pipeline_note_edited(l, t);
		else
			put(l, t, c, &r);
		note_back(t, &r);
	}
	return did;
}
