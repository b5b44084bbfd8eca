/* watch.c - does a caller let its tensor alone while it is summed?
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pipeline.h"

bool sw_pipeline_digest(const struct sw_pipeline *l, const void *at,
	uint64_t bytes, uint64_t *out)
{
	return l->p.ops->digest && l->p.ops->digest(l->p.back, at, bytes, out);
}

/* What the device has of a granule now; false: nobody looks. */
static bool digest(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, uint32_t granule, uint64_t *out)
{
	uint64_t at = granule * l->p.net.granule, left = t->bytes - at;
	const char *from = t->call.from;

	return from &&
	       sw_pipeline_digest(l, from + at,
		       left < l->p.net.granule ? left : l->p.net.granule, out);
}

void sw_pipeline_watch(
	const struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	uint32_t n = 0;

	while (n < t->n_granules && digest(l, t, n, &t->digests[n]))
		n++;
	t->has_digests = n == t->n_granules;
}

bool sw_pipeline_is_edited(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, uint32_t first, uint32_t end)
{
	uint64_t now;

	for (uint32_t i = first; i < end && t->has_digests; i++)
		if (digest(l, t, i, &now) && now != t->digests[i])
			return true;
	return false;
}
