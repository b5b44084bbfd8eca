/* watch.c - does a caller let its tensor alone while it is summed?
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pipeline.h"

/* What the device has of it now; false: nobody looks. */
static bool digest(const struct sw_pipeline *l,
	const struct sw_pipeline_piece *p, uint64_t *out)
{
	const struct sw_pipeline_call *c = &p->tensor->call;

	return l->p.ops->digest && c->from &&
	       l->p.ops->digest(
		       l->p.back, (const char *)c->from + p->at, p->bytes, out);
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
