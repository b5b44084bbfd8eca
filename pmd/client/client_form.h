/* client_form.h - libsumwire: the bytes of a collective and of its pieces.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_FORM_H
#define SW_PMD_CLIENT_CLIENT_FORM_H

#include "pmd/client/client_group.h"

enum {
	PIECE_BYTES = 1 << 20,
	PART_MIN_BYTES = 32 << 10, /* smallest part of a piece */
};

/* Return whether a device copies the buffers; a barrier's token is in host
 * memory. */
static inline bool is_on_device(const struct sw_call *k)
{
	return k->device && k->args.kind != SW_BARRIER;
}

static inline bool is_parted(const struct sw_call *k)
{
	return k->args.kind == SW_REDUCE_SCATTER ||
	       k->args.kind == SW_ALL_GATHER;
}

static inline uint64_t parts_in(const struct sw_call *k)
{
	return k->args.kind == SW_REDUCE_SCATTER ? k->group->n : 1;
}

static inline uint64_t parts_out(const struct sw_call *k)
{
	return k->args.kind == SW_ALL_GATHER ? k->group->n : 1;
}

static inline uint64_t elem_bytes(const struct sw_call *k)
{
	return sw_dtype_bytes(k->args.dtype);
}

static inline bool is_root(const struct sw_call *k)
{
	return k->args.root == k->group->client->rank;
}

static inline bool needs_send(const struct sw_call *k)
{
	return k->args.kind != SW_BCAST || is_root(k);
}

static inline bool needs_recv(const struct sw_call *k)
{
	return k->args.kind != SW_REDUCE || is_root(k);
}

static inline bool stages_in(const struct sw_call *k)
{
	return needs_send(k) && !k->has_from;
}

static inline bool stages_out(const struct sw_call *k)
{
	return needs_recv(k) && !k->has_to;
}

static inline bool is_staged(const struct sw_call *k)
{
	return stages_in(k) || stages_out(k);
}

static inline uint64_t piece_elems(const struct sw_call *k)
{
	uint64_t part = PIECE_BYTES / (is_parted(k) ? k->group->n : 1);

	return (part > PART_MIN_BYTES ? part : PART_MIN_BYTES) / elem_bytes(k);
}

/* Return the offset of the result in a stage: 0, over the sent data, if both
 * have the same form. */
static inline uint64_t out_offset(const struct sw_call *k, uint64_t n)
{
	if (!stages_in(k) || !is_parted(k))
		return 0;
	return (parts_in(k) * n * elem_bytes(k) + 63) / 64 * 64;
}

static inline uint64_t stage_bytes(const struct sw_call *k, uint64_t n)
{
	uint64_t in = stages_in(k) ? parts_in(k) * n * elem_bytes(k) : 0;
	uint64_t out = parts_out(k) * n * elem_bytes(k) + out_offset(k, n);

	return stages_out(k) && out > in ? out : in;
}

/* Return the size of the largest piece of the channel. */
static inline uint64_t largest_stage(const struct sw_call *k)
{
	uint64_t part = piece_elems(k) * elem_bytes(k);

	return is_parted(k) ? (k->group->n + 1) * part + 64 : part;
}

/* All pieces of a call go through stages of one size. */
static inline uint64_t first_stage(const struct sw_call *k)
{
	return stage_bytes(
		k, k->args.count < k->piece ? k->args.count : k->piece);
}

#endif
