/* plan_place.c - the server of each stripe by BytePS's hashes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/plan_place.h"

#include <stdio.h>
#include <string.h>

enum { MIXED_BOUND = 101 };

/* Hash the decimal text of a number. */

static uint64_t hash_naive(const char *text)
{
	uint64_t key = 0;

	for (; *text; text++)
		key = key * 10 + (uint64_t)(*text - '0');
	return ((key >> 16) + key % 65536) * 9973;
}

/* Compute std::hash of a string in libstdc++: MurmurHash64A, little endian. */
static uint64_t hash_built_in(const char *text)
{
	const uint64_t mul = 0xc6a4a7935bd1e995, len = strlen(text);
	uint64_t hash = 0xc70f6907 ^ len * mul, word;

	for (; strlen(text) >= 8; text += 8) {
		memcpy(&word, text, 8);
		word *= mul;
		hash = (hash ^ (word ^ word >> 47) * mul) * mul;
	}
	if (*text) {
		word = 0;
		memcpy(&word, text, strlen(text));
		hash = (hash ^ word) * mul;
	}
	hash = (hash ^ hash >> 47) * mul;
	return hash ^ hash >> 47;
}

static uint64_t hash_djb2(const char *text)
{
	uint64_t hash = 5381;

	for (; *text; text++)
		hash = hash * 33 + (uint64_t)*text;
	return hash;
}

static uint64_t hash_sdbm(const char *text)
{
	uint64_t hash = 0;

	for (; *text; text++)
		hash = (uint64_t)*text + (hash << 6) + (hash << 16) - hash;
	return hash;
}

static const struct {
	const char *name;
	uint64_t (*hash)(const char *text);
} places[SW_N_PLAN_PLACES] = {
	[SW_PLAN_BYTES] = {"bytes", NULL},
	[SW_PLAN_NAIVE] = {"naive", hash_naive},
	[SW_PLAN_BUILT_IN] = {"built_in", hash_built_in},
	[SW_PLAN_DJB2] = {"djb2", hash_djb2},
	[SW_PLAN_SDBM] = {"sdbm", hash_sdbm},
	[SW_PLAN_MIXED] = {"mixed", hash_djb2},
};

const char *sw_plan_place_name(enum sw_plan_place place)
{
	return places[place].name;
}

static uint32_t mixed_owner(const struct sw_place_job *job, uint64_t hash)
{
	uint32_t k = job->n_servers - job->n_colocated, of_cpus = 0;
	uint32_t weight[SW_PLACE_SERVERS], sum = sw_place_weights(job, weight);

	for (uint32_t s = 0; s < k; s++)
		of_cpus += weight[s];
	if (job->n_colocated == 0 ||
		hash % MIXED_BOUND * sum < (uint64_t)of_cpus * MIXED_BOUND)
		return (uint32_t)(hash % k);
	return k + (uint32_t)(hash % job->n_colocated);
}

uint32_t sw_plan_owner(enum sw_plan_place place, const struct sw_place_job *job,
	const struct sw_place_map *map, uint32_t stripe)
{
	char text[16];
	uint64_t hash;

	if (place == SW_PLAN_BYTES)
		return map->owner[stripe % map->period];
	snprintf(text, sizeof(text), "%u", stripe % SW_PLACE_PERIOD_MAX);
	hash = places[place].hash(text);
	return place == SW_PLAN_MIXED ? mixed_owner(job, hash)
				      : (uint32_t)(hash % job->n_servers);
}
