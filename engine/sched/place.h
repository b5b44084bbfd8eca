/* place.h - the server that sums each chunk.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All tensors of a job lie on a line, one after the other, in the order of
 * their keys.  64 chunks of the line form a stripe, and each stripe belongs to
 * one server.  Stripes go to the servers in a repeating sequence.  In each
 * prefix of the sequence, every server has its share, to within one stripe.  So
 * bytes are divided according to BytePS's Theorem 1 (paper 002, equations 1 and
 * 2; equally where the theorem does not apply) for all tensor sizes, and a
 * large tensor is spread evenly.
 *
 * The coordinator assigns a tensor's position on the line together with its
 * key.  All nodes compute the sequence from the same facts.  A sender's
 * partitions and order of work do not affect the place of a byte.
 *
 * Thread: a map is written once, then read by any thread. */
#ifndef SW_ENGINE_SCHED_PLACE_H
#define SW_ENGINE_SCHED_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SW_STRIPE_CHUNKS = 64,
	SW_PLACE_SERVERS = 128,     /* most servers of a map */
	SW_PLACE_PERIOD_MAX = 8192, /* most stripes in a period */
};

/* The facts of a job that determine its map; the same on all nodes. */
struct sw_place_job {
	uint16_t n_members; /* n: GPU machines */
	uint16_t n_servers; /* polling cores: n_lcores of each machine */
	/* Colocated servers, on the GPU machines, last in the list: 0, or
	 * n_members * n_lcores. The other servers are on CPU machines. */
	uint16_t n_colocated;
	uint8_t n_lcores; /* 0 counts as 1 */
};

/* The sequence of one job: for each stripe of a period, its server (owner) and
 * the number of that server's earlier stripes in the period (before); then the
 * stripes sorted by server (stripes; a server's begin at start[server]). */
struct sw_place_map {
	uint32_t period;    /* stripes in a period */
	uint32_t n_servers; /* servers of the job */
	uint64_t inverse;   /* inverse of the period, for sw_place_divide */
	uint16_t start[SW_PLACE_SERVERS + 1];
	uint16_t owner[SW_PLACE_PERIOD_MAX], before[SW_PLACE_PERIOD_MAX];
	uint16_t stripes[SW_PLACE_PERIOD_MAX];
};

/* One tensor as one server sees it; the map is borrowed. */
struct sw_place {
	const struct sw_place_map *map;
	uint32_t server_i;
	uint32_t first;    /* chunk of the line at which the tensor starts */
	uint32_t n_chunks; /* chunks of the whole tensor */
	uint32_t n_local;  /* chunks on this server */
	uint32_t skip; /* chunks on this server that precede it on the line */
	uint64_t inverse; /* inverse of this server's stripes in a period */
};

#define SW_PLACE_NONE UINT32_MAX

/* sw_place_inverse - return the inverse of @d, 1…SW_PLACE_PERIOD_MAX.
 * sw_place_divide - divide @n by the number d with that inverse.  The result is
 * exact for every n: n times the rounding error stays below 2^64 / d. */
static inline uint64_t sw_place_inverse(uint32_t d)
{
	return UINT64_MAX / d;
}

static inline uint32_t sw_place_divide(uint32_t n, uint64_t inverse)
{
	return (uint32_t)((unsigned __int128)(n + 1ULL) * inverse >> 64);
}

/* sw_place_check - return whether these facts describe a possible job. */
bool sw_place_check(const struct sw_place_job *job);

/* sw_place_weights - compute each server's weight into @out[job->n_servers] and
 * return their sum, at most SW_PLACE_PERIOD_MAX. A server's share is its weight
 * over the sum. */
uint32_t sw_place_weights(const struct sw_place_job *job, uint32_t *out);

/* sw_place_map_init - build the sequence.  The caller has checked @job. */
void sw_place_map_init(
	struct sw_place_map *map, const struct sw_place_job *job);

/* sw_place_lanes - divide the servers among the @n_lanes lcores of one worker
 * so that each lane has about the same share of the line.  Fills
 * @lane_of[job->n_servers]; server 0 goes to lane 0.  @n_lanes must not exceed
 * n_servers. */
void sw_place_lanes(
	const struct sw_place_job *job, uint32_t n_lanes, uint8_t *lane_of);

/* sw_place_map_fold - build the sequence of @map with lanes in place of
 * servers. */
void sw_place_map_fold(struct sw_place_map *out, const struct sw_place_map *map,
	uint32_t n_lanes, const uint8_t *lane_of);

/* sw_place_first - return the chunk of the line, modulo the period, for a
 * tensor declared after @at bytes of other tensors. */
uint32_t sw_place_first(
	const struct sw_place_map *map, uint64_t at, uint32_t payload);

/* sw_place_line - return the chunks of the line in one period. */
static inline uint32_t sw_place_line(const struct sw_place_map *map)
{
	return map->period * SW_STRIPE_CHUNKS;
}

/* sw_place_init - return the place of a tensor at a server. @first must be
 * below sw_place_line(map). */
struct sw_place sw_place_init(const struct sw_place_map *map, uint32_t first,
	uint32_t n_chunks, uint32_t server_i);

/* sw_place_below - return how many of the tensor's first @n chunks lie on the
 * server. O(log period). */
uint32_t sw_place_below(const struct sw_place *p, uint32_t n);

/* sw_place_owner - return the server that sums @chunk of the tensor that begins
 * at @first. */
static inline uint32_t sw_place_owner(
	const struct sw_place_map *map, uint32_t first, uint32_t chunk)
{
	uint32_t stripe =
		(uint32_t)(((uint64_t)first + chunk) / SW_STRIPE_CHUNKS);

	return map->owner[stripe -
			  sw_place_divide(stripe, map->inverse) * map->period];
}

/* sw_place_find - return a chunk's index among the tensor's chunks on this
 * server; SW_PLACE_NONE: it lies elsewhere or does not exist. */
static inline uint32_t sw_place_find(const struct sw_place *p, uint32_t chunk)
{
	const struct sw_place_map *m = p->map;
	uint32_t at = p->first + chunk, stripe = at / SW_STRIPE_CHUNKS;
	uint32_t n = sw_place_divide(stripe, m->inverse);
	uint32_t rest = stripe - n * m->period;
	uint32_t mine;

	if (chunk >= p->n_chunks || m->owner[rest] != p->server_i)
		return SW_PLACE_NONE;
	mine = (uint32_t)(m->start[p->server_i + 1] - m->start[p->server_i]);
	return (n * mine + m->before[rest]) * SW_STRIPE_CHUNKS +
	       at % SW_STRIPE_CHUNKS - p->skip;
}

/* sw_place_global - return the tensor's chunk for a local index, the inverse of
 * sw_place_find. */
static inline uint32_t sw_place_global(const struct sw_place *p, uint32_t local)
{
	const struct sw_place_map *m = p->map;
	uint32_t start = m->start[p->server_i];
	uint32_t n_mine = m->start[p->server_i + 1] - start;
	uint32_t at = local + p->skip, stripe = at / SW_STRIPE_CHUNKS;
	uint32_t n = sw_place_divide(stripe, p->inverse);

	stripe = n * m->period + m->stripes[start + stripe - n * n_mine];
	return stripe * SW_STRIPE_CHUNKS + at % SW_STRIPE_CHUNKS - p->first;
}

/* The last looked-up run of chunks of one stripe, a cache for the functions
 * below; zeros: empty. */
struct sw_place_near {
	uint32_t chunk, local, n;
};

/* sw_place_find_near, sw_place_global_near - like sw_place_find and
 * sw_place_global, but fast for chunks near the previous one.
 * sw_place_near_find, sw_place_near_global - their slow path, which replaces
 * the cached run. */
uint32_t sw_place_near_find(
	struct sw_place_near *near, const struct sw_place *p, uint32_t chunk);
uint32_t sw_place_near_global(
	struct sw_place_near *near, const struct sw_place *p, uint32_t local);

static inline uint32_t sw_place_find_near(
	struct sw_place_near *near, const struct sw_place *p, uint32_t chunk)
{
	uint32_t i = chunk - near->chunk;

	return i < near->n ? near->local + i
			   : sw_place_near_find(near, p, chunk);
}

static inline uint32_t sw_place_global_near(
	struct sw_place_near *near, const struct sw_place *p, uint32_t local)
{
	uint32_t i = local - near->local;

	return i < near->n ? near->chunk + i
			   : sw_place_near_global(near, p, local);
}

/* sw_place_run - return how many of the server's chunks from @local on are also
 * consecutive in the tensor. */
static inline uint32_t sw_place_run(const struct sw_place *p, uint32_t local)
{
	uint32_t left = SW_STRIPE_CHUNKS - (local + p->skip) % SW_STRIPE_CHUNKS;

	return left < p->n_local - local ? left : p->n_local - local;
}

#endif
