/* toy_sum.h - the toy agent's sum: double the values, granule by granule.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_UNIT_HOST_TOY_SUM_H
#define SW_TEST_UNIT_HOST_TOY_SUM_H

#include "pmd/host/attach.h"
#include "sum/dtype.h"

static inline void rig_double(
	const struct sw_host_tensor *t, uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		if (t->dtype == SW_F32)
			((float *)t->base)[i] *= 2;
		else if (t->dtype == SW_I32)
			((int32_t *)t->base)[i] *= 2;
}

/* Note that bytes @from to @end of a growing tensor are summed: store @round
 * for each complete granule. */
static inline void rig_note_granules(const struct sw_host_tensor *t,
	uint64_t from, uint64_t end, uint32_t round)
{
	_Atomic uint32_t *granules =
		(void *)((char *)t->base + sw_edge_granules(t->bytes));

	for (uint64_t g = from / SW_GRANULE; g * SW_GRANULE < end; g++)
		if ((g + 1) * SW_GRANULE <= end || end == t->bytes)
			atomic_store(&granules[g], round);
}

#endif
