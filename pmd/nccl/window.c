/* window.c - NCCL's all_gather and reduce_scatter of a window of all bytes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The window is cut where a rank's bytes end. In an all_gather, each piece is a
 * broadcast by its rank; in a reduce_scatter, a reduce to its rank.
 */
#include <stdlib.h>

#include "pmd/nccl/coll.h"

/* Return how many bytes of @rank are in the window, and set *@begin to the
 * offset of the first one among all bytes. */
static size_t piece_of(
	const struct sw_nccl_window *w, uint32_t rank, size_t *begin)
{
	size_t first = rank * w->bytes_per_rank;
	size_t end = first + w->bytes_per_rank;
	size_t window_end = w->offset + w->bytes;

	*begin = first > w->offset ? first : w->offset;
	end = end < window_end ? end : window_end;
	return end > *begin ? end - *begin : 0;
}

static bool is_good(const struct sw_nccl_coll *c,
	const struct sw_nccl_window *w, size_t elem)
{
	size_t all = c->n_ranks * w->bytes_per_rank, begin;
	size_t own = piece_of(w, c->rank, &begin);

	return w->bytes && w->bytes_per_rank <= SIZE_MAX / c->n_ranks / 2 &&
	       w->bytes <= all && w->offset <= all - w->bytes &&
	       w->all_bytes >= w->bytes && w->offset % elem == 0 &&
	       w->bytes % elem == 0 && w->bytes_per_rank % elem == 0 &&
	       sw_nccl_is_inside(w->all_mr, w->all, w->bytes) &&
	       (!own || sw_nccl_is_inside(w->own_mr, w->own, own));
}

static void fill(struct sw_coll_args *a, const struct sw_nccl_window *w,
	uint32_t rank, bool is_own)
{
	size_t begin, bytes = piece_of(w, rank, &begin);
	char *at = w->all + (begin - w->offset);

	a->kind = w->is_scatter ? SW_REDUCE : SW_BCAST;
	a->count = bytes / sw_dtype_bytes(a->dtype);
	a->root = rank;
	a->send = w->is_scatter ? at : is_own ? w->own : NULL;
	a->recv = !w->is_scatter ? at : is_own ? w->own : NULL;
}

int sw_nccl_window_start(
	void *comm, const struct sw_nccl_window *w, void **request)
{
	struct sw_coll_args like = SW_COLL_ARGS_INIT, *args;
	struct sw_nccl_coll *c = comm;
	uint32_t first, n;
	size_t begin;
	int err;

	*request = NULL;
	like.dtype = SW_U8;
	if (!c ||
		(w->is_scatter && !sw_nccl_find_type(w->dtype, w->op,
					  &like.dtype, &like.op)) ||
		!is_good(c, w, sw_dtype_bytes(like.dtype)))
		return sw_nccl_fail(NCCL_INTERNAL,
			"all_gather or reduce_scatter: %zu bytes at %zu of %zu "
			"each are invalid or outside registered memory",
			w->bytes, w->offset, w->bytes_per_rank);
	first = (uint32_t)(w->offset / w->bytes_per_rank);
	n = (uint32_t)((w->offset + w->bytes - 1) / w->bytes_per_rank) - first +
	    1;
	args = calloc(n, sizeof(*args));
	if (!args)
		return sw_nccl_fail(NCCL_SYSTEM, "no memory");
	for (uint32_t i = 0; i < n; i++) {
		args[i] = like;
		fill(&args[i], w, first + i, first + i == c->rank);
	}
	err = sw_nccl_put(c, args, n,
		w->is_scatter ? piece_of(w, c->rank, &begin) : w->bytes,
		request);
	if (n == 1 || !*request)
		free(args);
	return err;
}
