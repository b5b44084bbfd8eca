/* place.h - which server sums which chunk.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor is cut into chunks (one frame each) and 64 chunks make a stripe.
 * Stripes go to the servers in turn, starting with a server that depends on
 * the key, so that small tensors spread too.  Nothing else has a say: how a
 * sender partitions or orders its work does not move a byte.
 */
#ifndef SW_PLACE_H
#define SW_PLACE_H

#include <stdint.h>

enum { SW_STRIPE_CHUNKS = 64 };

/* One tensor as one server sees it. */
struct sw_place {
	uint32_t n_chunks; /* of the whole tensor */
	uint32_t n_local;  /* of them on this server */
	uint32_t first;    /* its first stripe */
	uint32_t n_servers;
};

/* sw_place_owner - index of the server that sums @chunk of tensor @key. */
static inline uint32_t sw_place_owner(
	uint32_t key, uint32_t chunk, uint32_t n_servers)
{
	return (uint32_t)(((uint64_t)chunk / SW_STRIPE_CHUNKS + key) %
			  n_servers);
}

static inline struct sw_place sw_place_init(
	uint32_t key, uint32_t n_chunks, uint32_t server_i, uint32_t n_servers)
{
	struct sw_place p = {.n_chunks = n_chunks, .n_servers = n_servers};
	uint32_t n_stripes = n_chunks / SW_STRIPE_CHUNKS +
			     (n_chunks % SW_STRIPE_CHUNKS != 0);
	uint32_t mine;

	p.first = (server_i + n_servers - key % n_servers) % n_servers;
	if (p.first >= n_stripes)
		return p;
	mine = (n_stripes - p.first - 1) / n_servers + 1;
	p.n_local = mine * SW_STRIPE_CHUNKS;
	/* The tensor's last stripe may be short. */
	if ((n_stripes - 1) % n_servers == p.first % n_servers)
		p.n_local -= n_stripes * SW_STRIPE_CHUNKS - n_chunks;
	return p;
}

/* sw_place_has - does @chunk lie on this server? */
static inline int sw_place_has(const struct sw_place *p, uint32_t chunk)
{
	uint32_t stripe = chunk / SW_STRIPE_CHUNKS;

	return chunk < p->n_chunks && stripe % p->n_servers == p->first;
}

/* sw_place_local - a chunk that lies here, counted among those that do. */
static inline uint32_t sw_place_local(const struct sw_place *p, uint32_t chunk)
{
	return chunk / SW_STRIPE_CHUNKS / p->n_servers * SW_STRIPE_CHUNKS +
	       chunk % SW_STRIPE_CHUNKS;
}

/* sw_place_global - the inverse of sw_place_local. */
static inline uint32_t sw_place_global(const struct sw_place *p, uint32_t local)
{
	return (local / SW_STRIPE_CHUNKS * p->n_servers + p->first) *
		       SW_STRIPE_CHUNKS +
	       local % SW_STRIPE_CHUNKS;
}

#endif
