/* watch.c - does a caller let its tensor alone while it is summed?
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pipeline.h"

bool sw_pipeline_digest(const struct sw_pipeline *l, const void *at,
	uint64_t bytes, uint64_t *out)
{
	return l->p.ops->digest && l->p.ops->digest(l->p.back, at, bytes, out);
}

/* What the device has of it now; false: nobody looks. */
static bool digest(const struct sw_pipeline *l,
	const struct sw_pipeline_piece *p, uint64_t *out)
{
	const char *from = p->tensor->call.from;

	return from && sw_pipeline_digest(l, from + p->at, p->bytes, out);
}

void sw_pipeline_watch(const struct sw_pipeline *l, struct sw_pipeline_piece *p)
{
	p->is_result = false;
	p->has_digest = digest(l, p, &p->digest);
}

bool sw_pipeline_is_edited(
	const struct sw_pipeline *l, const struct sw_pipeline_piece *p)
{
	uint64_t now;

	return p->has_digest && digest(l, p, &now) && now != p->digest;
}

static bool digest_result(const struct sw_pipeline *l,
	const struct sw_pipeline_piece *p, uint64_t *out)
{
	const char *to = p->tensor->call.to;

	return sw_pipeline_digest(l, to + p->at, p->bytes, out);
}

void sw_pipeline_watch_result(
	const struct sw_pipeline *l, struct sw_pipeline_piece *p)
{
	p->is_result = digest_result(l, p, &p->digest);
}

bool sw_pipeline_is_result_edited(
	const struct sw_pipeline *l, const struct sw_pipeline_tensor *t)
{
	bool is_edited = false;

	for (uint32_t i = 0; i < t->n_pieces && !is_edited; i++) {
		const struct sw_pipeline_piece *p = &t->pieces[i];
		uint64_t now;

		is_edited = p->is_result && digest_result(l, p, &now) &&
			    now != p->digest;
	}
	return is_edited;
}
