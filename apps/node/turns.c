/* turns.c - a histogram of the turns of a polling lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/turns.h"

#include <stdio.h>

#include "engine/base/bytes.h"

const struct sw_turn_limit sw_turn_limits[SW_TURN_LIMITS] = {
	{"100us", 100000},
	{"1ms", 1000000},
	{"10ms", 10000000},
};

/* Percentiles of `sumwire stats`, in thousandths. */
static const struct {
	const char *name;
	uint32_t of_1000;
} percentiles[] = {{"p50", 500}, {"p99", 990}, {"p999", 999}};

uint64_t sw_turns_look(
	struct sw_turns *t, uint64_t from_ns, uint64_t to_ns, uint64_t cpu_ns)
{
	uint64_t wall = to_ns - t->wall_ns, cpu = cpu_ns - t->cpu_ns;
	uint64_t without = wall - sw_min64(wall, cpu);
	uint64_t before = sw_min64(without, from_ns - t->wall_ns);
	uint64_t ns = to_ns - from_ns;

	t->wall_ns = to_ns;
	t->cpu_ns = cpu_ns;
	return ns - sw_min64(ns, without - before);
}

void sw_turns_note_long(struct sw_turns *t, uint64_t ns)
{
	sw_set_word(&t->max_ns, sw_max64(t->max_ns, ns));
	for (uint32_t i = 0; i < SW_TURN_LIMITS; i++)
		sw_count(&t->n_over[i], ns > sw_turn_limits[i].ns);
}

/* Return the end of a bucket in ns. */
static uint64_t end_ns(uint32_t bucket)
{
	uint32_t next = bucket + 1;

	return next < 16 ? next : (8 + next % 8ULL) << (next / 8 - 1);
}

/* Return the time that @of_1000 thousandths of the @n turns do not exceed. */
static uint64_t percentile(
	const uint64_t counts[SW_TURN_BUCKETS], uint64_t n, uint32_t of_1000)
{
	uint64_t below = 0, want = (n * of_1000 + 999) / 1000;

	for (uint32_t i = 0; i < SW_TURN_BUCKETS; i++) {
		below += counts[i];
		if (below >= want && n)
			return end_ns(i);
	}
	return 0;
}

void sw_turns_put(const struct sw_turns *t, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	uint64_t counts[SW_TURN_BUCKETS], n = 0;
	char name[64];

	for (uint32_t i = 0; i < SW_TURN_BUCKETS; i++)
		n += counts[i] = sw_word(&t->n[i]);
	snprintf(name, sizeof(name), "%sturns", prefix);
	put(out, name, n);
	snprintf(name, sizeof(name), "%sbusy_ns", prefix);
	put(out, name, sw_word(&t->busy_ns));
	snprintf(name, sizeof(name), "%sidle_ns", prefix);
	put(out, name, sw_word(&t->spare_ns));
	for (size_t i = 0; i < SW_ARRAY_SIZE(percentiles); i++) {
		snprintf(name, sizeof(name), "%sturn_%s_ns", prefix,
			percentiles[i].name);
		put(out, name, percentile(counts, n, percentiles[i].of_1000));
	}
	snprintf(name, sizeof(name), "%sturn_max_ns", prefix);
	put(out, name, sw_word(&t->max_ns));
	for (uint32_t i = 0; i < SW_TURN_LIMITS; i++) {
		snprintf(name, sizeof(name), "%sturns_over_%s", prefix,
			sw_turn_limits[i].name);
		put(out, name, sw_word(&t->n_over[i]));
	}
}
