/* place.c - the sequence in which stripes go to servers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/place.h"

#include <string.h>

enum { MEMBERS_MAX = 64 };

static uint32_t n_lcores(const struct sw_place_job *job)
{
	return job->n_lcores ? job->n_lcores : 1;
}

static uint32_t n_cpu(const struct sw_place_job *job)
{
	return job->n_servers - job->n_colocated;
}

bool sw_place_check(const struct sw_place_job *job)
{
	return job->n_servers > 0 && job->n_servers <= SW_PLACE_SERVERS &&
	       job->n_servers % n_lcores(job) == 0 && job->n_members > 0 &&
	       job->n_members <= MEMBERS_MAX &&
	       (job->n_colocated == 0 ||
		       (job->n_colocated == job->n_members * n_lcores(job) &&
			       job->n_colocated <= job->n_servers));
}

/* Compute the weights of one SS_CPU and one SS_GPU: the numerators of equations
 * 1 and 2.  Without SS_GPUs, and where the theorem does not apply, all SS_CPUs
 * have equal weights. */
static void two_weights(
	const struct sw_place_job *job, uint32_t *cpu, uint32_t *gpu)
{
	uint32_t n = job->n_members, k = n_cpu(job) / n_lcores(job), d, r, rest;

	*cpu = 1;
	*gpu = k == 0;
	if (k == 0 || job->n_colocated == 0 || n < 2 || k > n)
		return;
	*cpu = 2 * (n - 1);
	*gpu = n - k;
	for (d = *cpu, r = *gpu; r; d = r, r = rest) /* Euclid's algorithm */
		rest = d % r;
	*cpu /= d;
	*gpu /= d;
}

uint32_t sw_place_weights(const struct sw_place_job *job, uint32_t *out)
{
	uint32_t cpu, gpu, sum = 0;

	two_weights(job, &cpu, &gpu);
	for (uint32_t s = 0; s < job->n_servers; s++)
		sum += out[s] = s < n_cpu(job) ? cpu : gpu;
	return sum;
}

/* Servers of one weight, which take turns; the next server, and how many
 * stripes each has. */
struct turn {
	uint32_t first, n, weight; /* the servers */
	uint32_t next, got;
};

/* Return the deadline of the next server's stripe; UINT64_MAX: not before a
 * later stripe. */
static uint64_t deadline(const struct turn *t, uint64_t period, uint64_t at)
{
	if (!t->n || !t->weight || t->got * period > at * t->weight)
		return UINT64_MAX;
	return ((t->got + 1) * period + t->weight - 1) / t->weight;
}

/* Place occurrence j of a server of weight w within [j W / w, (j + 1) W / w):
 * earliest deadline first meets all deadlines, so no prefix of the sequence
 * gives a server a whole stripe more or less than its share (Baruah et al.,
 * proportionate progress, 1996).  There are two weights; among servers of equal
 * weight, the first goes first. */
static void fill_exact(struct sw_place_map *map, const struct sw_place_job *job)
{
	uint32_t k = n_cpu(job);
	struct turn cpu = {.n = k}, gpu = {.first = k, .n = job->n_servers - k};

	two_weights(job, &cpu.weight, &gpu.weight);
	for (uint32_t at = 0; at < map->period; at++) {
		struct turn *t = deadline(&cpu, map->period, at) <=
						 deadline(&gpu, map->period, at)
					 ? &cpu
					 : &gpu;

		map->owner[at] = (uint16_t)(t->first + t->next++);
		if (t->next == t->n) {
			t->next = 0;
			t->got++;
		}
	}
}

/* --- the map --- */

/* Index the owners of stripes for the packet path. */
static void index_owners(struct sw_place_map *map)
{
	uint16_t next[SW_PLACE_SERVERS];

	memset(map->start, 0, sizeof(map->start));
	for (uint32_t at = 0; at < map->period; at++)
		map->start[map->owner[at] + 1]++;
	for (uint32_t s = 0; s < map->n_servers; s++) {
		map->start[s + 1] =
			(uint16_t)(map->start[s + 1] + map->start[s]);
		next[s] = map->start[s];
	}
	for (uint32_t at = 0; at < map->period; at++) {
		uint32_t s = map->owner[at];

		map->before[at] = (uint16_t)(next[s] - map->start[s]);
		map->stripes[next[s]++] = (uint16_t)at;
	}
}

static void lay(struct sw_place_map *map, uint32_t period, uint32_t n_servers)
{
	map->period = period;
	map->n_servers = n_servers;
	map->inverse = sw_place_inverse(period);
}

void sw_place_map_init(struct sw_place_map *map, const struct sw_place_job *job)
{
	uint32_t weight[SW_PLACE_SERVERS];

	lay(map, sw_place_weights(job, weight), job->n_servers);
	fill_exact(map, job);
	index_owners(map);
}

/* Give each server in turn to the lane with the least weight so far, among
 * equal lanes to the one with the fewest servers, so the lcores of a machine go
 * to different lanes.  Heavy servers (SS_CPUs) come first. */
void sw_place_lanes(
	const struct sw_place_job *job, uint32_t n_lanes, uint8_t *lane_of)
{
	uint32_t weight[SW_PLACE_SERVERS], sum[SW_PLACE_SERVERS] = {0};
	uint32_t n[SW_PLACE_SERVERS] = {0};

	sw_place_weights(job, weight);
	for (uint32_t s = 0; s < job->n_servers; s++) {
		uint32_t best = 0;

		for (uint32_t l = 1; l < n_lanes; l++)
			if (sum[l] < sum[best] ||
				(sum[l] == sum[best] && n[l] < n[best]))
				best = l;
		lane_of[s] = (uint8_t)best;
		sum[best] += weight[s];
		n[best]++;
	}
}

void sw_place_map_fold(struct sw_place_map *out, const struct sw_place_map *map,
	uint32_t n_lanes, const uint8_t *lane_of)
{
	lay(out, n_lanes == 1 ? 1 : map->period, n_lanes);
	for (uint32_t at = 0; at < out->period; at++)
		out->owner[at] = n_lanes == 1 ? 0 : lane_of[map->owner[at]];
	index_owners(out);
}

uint32_t sw_place_first(
	const struct sw_place_map *map, uint64_t at, uint32_t payload)
{
	return (uint32_t)(at / payload % sw_place_line(map));
}

/* Return the index of the first of the ascending stripes that is at least
 * @stripe. */
static uint32_t first_from(
	const uint16_t *stripes, uint32_t from, uint32_t end, uint32_t stripe)
{
	while (from < end) {
		uint32_t middle = from + (end - from) / 2;

		if (stripes[middle] < stripe)
			from = middle + 1;
		else
			end = middle;
	}
	return from;
}

/* Return how many chunks of the line before @at lie on a server. */
static uint64_t count(
	const struct sw_place_map *m, uint32_t server_i, uint64_t at)
{
	uint64_t stripe = at / SW_STRIPE_CHUNKS;
	uint32_t rest = (uint32_t)(stripe % m->period);
	uint32_t from = m->start[server_i], end = m->start[server_i + 1];
	uint64_t n = stripe / m->period * (end - from);

	n = (n + first_from(m->stripes, from, end, rest) - from) *
	    SW_STRIPE_CHUNKS;
	return m->owner[rest] == server_i ? n + at % SW_STRIPE_CHUNKS : n;
}

struct sw_place sw_place_init(const struct sw_place_map *map, uint32_t first,
	uint32_t n_chunks, uint32_t server_i)
{
	uint64_t end = (uint64_t)first + n_chunks;
	uint64_t skip = count(map, server_i, first);
	uint32_t n_mine =
		(uint32_t)(map->start[server_i + 1] - map->start[server_i]);

	return (struct sw_place){.map = map,
		.server_i = server_i,
		.first = first,
		.n_chunks = n_chunks,
		.n_local = (uint32_t)(count(map, server_i, end) - skip),
		.skip = (uint32_t)skip,
		.inverse = n_mine ? sw_place_inverse(n_mine) : 0};
}

uint32_t sw_place_below(const struct sw_place *p, uint32_t n)
{
	return (uint32_t)(count(p->map, p->server_i, (uint64_t)p->first + n) -
			  p->skip);
}

/* Cache the run of @p's chunks in one stripe that contains @chunk. */
static void move_near(struct sw_place_near *near, const struct sw_place *p,
	uint32_t chunk, uint32_t local)
{
	uint32_t before = (local + p->skip) % SW_STRIPE_CHUNKS;

	before = before < local ? before : local;
	*near = (struct sw_place_near){.chunk = chunk - before,
		.local = local - before,
		.n = before + sw_place_run(p, local)};
}

uint32_t sw_place_near_find(
	struct sw_place_near *near, const struct sw_place *p, uint32_t chunk)
{
	uint32_t local = sw_place_find(p, chunk);

	if (local != SW_PLACE_NONE)
		move_near(near, p, chunk, local);
	return local;
}

uint32_t sw_place_near_global(
	struct sw_place_near *near, const struct sw_place *p, uint32_t local)
{
	uint32_t chunk = sw_place_global(p, local);

	move_near(near, p, chunk, local);
	return chunk;
}
