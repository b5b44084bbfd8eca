/* handle.c - the 128 bytes that nodes exchange through NCCL.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "pmd/nccl/plugin.h"

enum { MAGIC = 0x4e575753 /* "SWWN" */, VERSION = 1 };

_Static_assert(sizeof(struct sw_nccl_handle) == NCCL_HANDLE_BYTES, "");

static uint32_t sum_of(const struct sw_nccl_handle *from)
{
	struct sw_nccl_handle h = *from;
	const uint8_t *bytes = (const uint8_t *)&h;
	uint32_t sum = 2166136261u;

	h.sum = 0;
	for (size_t i = 0; i < sizeof(h); i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

void sw_nccl_handle_seal(
	struct sw_nccl_handle *h, enum sw_nccl_handle_kind kind)
{
	h->magic = MAGIC;
	h->version = VERSION;
	h->kind = kind;
	h->sum = sum_of(h);
}

int sw_nccl_handle_read(const void *from, enum sw_nccl_handle_kind kind,
	struct sw_nccl_handle *out)
{
	if (!from)
		return sw_nccl_fail(NCCL_INTERNAL, "no handle");
	memcpy(out, from, sizeof(*out));
	if (out->magic != MAGIC)
		return sw_nccl_fail(NCCL_REMOTE,
			"a handle is not of this plugin: all nodes need "
			"NCCL_NET_PLUGIN=sumwire");
	if (out->version != VERSION)
		return sw_nccl_fail(NCCL_REMOTE,
			"a handle is of version %u, this plugin speaks %u",
			out->version, VERSION);
	if (out->kind != kind || out->sum != sum_of(out) ||
		out->address_bytes > SW_NCCL_ADDRESS_BYTES)
		return sw_nccl_fail(NCCL_REMOTE, "a handle is damaged");
	return NCCL_OK;
}
