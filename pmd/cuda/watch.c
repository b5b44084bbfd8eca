/* watch.c - does a caller let its tensor alone while it is summed?
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/cuda/pipeline.h"

bool sw_pipeline_digest(const struct sw_pipeline *l, const void *at,
	uint64_t bytes, uint64_t *out)
{
	return l->p.ops->digest && l->p.ops->digest(l->p.back, at, bytes, out);
}

/* What the device has of a granule, of those at @base; false: nobody looks. */
static bool digest(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const char *base, uint32_t granule,
	uint64_t *out)
{
	uint64_t at = granule * l->p.net.granule, left = t->bytes - at;

	return base &&
	       sw_pipeline_digest(l, base + at,
		       left < l->p.net.granule ? left : l->p.net.granule, out);
}

static bool is_other(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, const char *base, uint32_t granule)
{
	uint64_t now;

	return digest(l, t, base, granule, &now) && now != t->digests[granule];
}

void sw_pipeline_watch(
	const struct sw_pipeline *l, struct sw_pipeline_tensor *t)
{
	uint32_t n = 0;

	while (n < t->n_granules &&
		digest(l, t, t->call.from, n, &t->digests[n]))
		n++;
	t->has_digests = n == t->n_granules;
	t->n_results = 0;
}

bool sw_pipeline_is_edited(const struct sw_pipeline *l,
	const struct sw_pipeline_tensor *t, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end && t->has_digests; i++)
		if (is_other(l, t, t->call.from, i))
			return true;
	return false;
}

void sw_pipeline_watch_result(const struct sw_pipeline *l,
	struct sw_pipeline_tensor *t, uint64_t at, uint64_t bytes)
{
	uint32_t i = (uint32_t)(at / l->p.net.granule);

	for (; i * l->p.net.granule < at + bytes; i++)
		t->n_results += digest(l, t, t->call.to, i, &t->digests[i]);
}

bool sw_pipeline_is_result_edited(
	const struct sw_pipeline *l, const struct sw_pipeline_tensor *t)
{
	for (uint32_t i = 0; i < t->n_granules; i++)
		if (t->n_results == t->n_granules &&
			is_other(l, t, t->call.to, i))
			return true;
	return false;
}
