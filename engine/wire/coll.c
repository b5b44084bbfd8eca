/* coll.c - choose the kernel that folds a collective's contributions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wire/coll.h"

#include <string.h>

sw_fold_fn *sw_coll_fold(const struct sw_sum_ops *ops, uint32_t op)
{
	switch (op) {
	case SW_SUM:
		return ops->add;
	case SW_AVG:
		return ops->divide ? ops->add : NULL;
	case SW_PREMUL_SUM:
		return ops->scale ? ops->add : NULL;
	case SW_MIN:
		return ops->min;
	case SW_MAX:
		return ops->max;
	case SW_PROD:
		return ops->mul;
	case SW_BAND:
		return ops->band;
	case SW_BOR:
		return ops->bor;
	case SW_BXOR:
		return ops->bxor;
	default:
		return NULL;
	}
}

bool sw_coll_has(
	const struct sw_sum *sum, uint32_t kind, uint32_t op, uint32_t dtype)
{
	if (kind <= SW_COLL_NONE || kind >= SW_N_COLL_KINDS ||
		dtype >= SW_N_DTYPES || !sum->ops[dtype].elem_bytes)
		return false;
	return sw_coll_is_sum((enum sw_coll_kind)kind)
		       ? sw_coll_fold(&sum->ops[dtype], op) != NULL
		       : op == SW_SUM;
}

size_t sw_coll_group_bytes(const char *name)
{
	size_t all = strlen(name), n = all;

	while (n && name[n] != '/')
		n--;
	return name[n] == '/' ? n : all;
}

const char *sw_coll_last(const char *name)
{
	size_t n = sw_coll_group_bytes(name);

	return name[n] ? name + n + 1 : name;
}
