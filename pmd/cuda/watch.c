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
	p->has_digest = digest(l, p, &p->digest);
}

bool sw_pipeline_is_edited(
	const struct sw_pipeline *l, const struct sw_pipeline_piece *p)
{
	uint64_t now;

	return p->has_digest && digest(l, p, &now) && now != p->digest;
}
