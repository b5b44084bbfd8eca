/* unit_place.c - which server sums which chunk.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>
#include <string.h>

#include "engine/sched/place.h"
#include "engine/wire/wire.h"
#include "test/support/env.h"

enum { PAYLOAD = 8192 };

static const uint32_t chunk_counts[] = {
	1, 2, 63, 64, 65, 127, 128, 129, 640, 641, 1000, 4096, 4097};

/* @n workers and @k CPU machines; the workers' machines sum too. */
static struct sw_place_job unified(uint32_t n, uint32_t k)
{
	return (struct sw_place_job){.n_members = (uint16_t)n,
		.n_servers = (uint16_t)(n + k),
		.n_colocated = (uint16_t)n};
}

static struct sw_place_job apart(uint32_t n, uint32_t k)
{
	return (struct sw_place_job){
		.n_members = (uint16_t)n, .n_servers = (uint16_t)k};
}

static void map_open(struct sw_place_map *map, struct sw_place_job job)
{
	assert_true(sw_place_check(&job));
	sw_place_map_init(map, &job);
}

/* Each server's share of the bytes follows equations 1 and 2. */
static void weights__theorem_1(void **state)
{
	uint32_t w[SW_PLACE_SERVERS];

	for (uint32_t n = 2; n <= 64; n++)
		for (uint32_t k = 1; k <= n; k++) {
			struct sw_place_job job = unified(n, k);
			double sum = sw_place_weights(&job, w);
			double all = (double)n * n + (double)k * n - 2.0 * k;

			assert_true(sum <= SW_PLACE_PERIOD_MAX);
			assert_true(
				fabs(w[0] / sum - 2 * (n - 1) / all) < 1e-12);
			assert_true(fabs(w[n + k - 1] / sum - (n - k) / all) <
				    1e-12);
		}
}

static void weights__where_it_says_nothing(void **state)
{
	uint32_t w[SW_PLACE_SERVERS];
	struct sw_place_job one = unified(1, 3), many = unified(2, 3),
			    none = unified(4, 0), ps = apart(4, 3);

	assert_int_equal(sw_place_weights(&one, w), 3);
	assert_int_equal(w[0], 1);
	assert_int_equal(w[3], 0);
	assert_int_equal(sw_place_weights(&many, w), 3);
	assert_int_equal(w[3], 0);
	assert_int_equal(sw_place_weights(&none, w), 4);
	assert_int_equal(w[0], 1);
	assert_int_equal(sw_place_weights(&ps, w), 3);
	assert_int_equal(w[2], 1);
}

/* Return the server with the earliest deadline among eligible ones; of equals
 * the first. */
static uint32_t who_is_next(const struct sw_place_map *map, const uint32_t *w,
	const uint32_t *got, uint64_t at)
{
	uint64_t best = UINT64_MAX, period = map->period;
	uint32_t who = 0;

	for (uint32_t s = 0; s < map->n_servers; s++) {
		uint64_t end;

		if (!w[s] || got[s] * period > at * w[s])
			continue;
		end = ((got[s] + 1) * period + w[s] - 1) / w[s];
		if (end < best) {
			best = end;
			who = s;
		}
	}
	return who;
}

static void check_deadlines(struct sw_place_job job)
{
	uint32_t w[SW_PLACE_SERVERS], got[SW_PLACE_SERVERS] = {0};
	struct sw_place_map map;

	sw_place_weights(&job, w);
	map_open(&map, job);
	for (uint32_t at = 0; at < map.period; at++) {
		assert_int_equal(map.owner[at], who_is_next(&map, w, got, at));
		got[map.owner[at]]++;
	}
}

static void map__earliest_deadline_first(void **state)
{
	for (uint32_t n = 1; n <= 64; n += 1 + n / 8)
		for (uint32_t k = 0; k <= 64; k += 1 + k / 8) {
			check_deadlines(unified(n, k));
			if (k)
				check_deadlines(apart(n, k));
		}
}

/* At any point every server has its share, to within one stripe. */
static void check_balance(struct sw_place_job job)
{
	uint32_t w[SW_PLACE_SERVERS], got[SW_PLACE_SERVERS] = {0};
	struct sw_place_map map;
	double sum = sw_place_weights(&job, w);

	map_open(&map, job);
	assert_int_equal(map.period, sum);
	for (uint32_t at = 0; at < map.period; at++) {
		got[map.owner[at]]++;
		for (uint32_t s = 0; s < map.n_servers; s++)
			assert_true(fabs(got[s] - (at + 1) * (w[s] / sum)) < 1);
	}
	for (uint32_t s = 0; s < map.n_servers; s++)
		assert_int_equal(got[s], w[s]);
}

static void map__share_to_less_than_a_stripe(void **state)
{
	for (uint32_t n = 1; n <= 12; n++)
		for (uint32_t k = 0; k <= n + 1; k++)
			check_balance(unified(n, k));
	check_balance(unified(32, 16));
	check_balance(unified(64, 63));
	check_balance(apart(64, SW_MAX_SERVERS));
}

/* The lcores of a machine divide the machine's share by the theorem. */
static void weights__lcores_of_a_machine(void **state)
{
	for (uint32_t m = 2; m <= 4; m++)
		for (uint32_t n = 1; n <= 6; n++)
			for (uint32_t k = 0; k <= n; k++) {
				struct sw_place_job one = unified(n, k);
				struct sw_place_job job = one;
				uint32_t want[SW_PLACE_SERVERS];
				uint32_t got[SW_PLACE_SERVERS];

				job.n_servers = (uint16_t)(one.n_servers * m);
				job.n_colocated =
					(uint16_t)(one.n_colocated * m);
				job.n_lcores = (uint8_t)m;
				assert_true(sw_place_check(&job));
				assert_int_equal(sw_place_weights(&job, got),
					m * sw_place_weights(&one, want));
				for (uint32_t s = 0; s < job.n_servers; s++)
					assert_int_equal(got[s], want[s / m]);
				check_balance(job);
				job.n_servers--;
				assert_false(sw_place_check(&job));
			}
}

/* Place tensors of all sizes, as in a model, and count each byte at its server.
 * A boundary between tensors may move by one chunk. */
static void map__share_of_a_model(void **state)
{
	uint64_t bytes[SW_PLACE_SERVERS] = {0}, at = 0, rng = 7;
	uint32_t w[SW_PLACE_SERVERS], n_tensors = 200;
	struct sw_place_job job = unified(8, 5);
	double sum = sw_place_weights(&job, w), worst = 0;
	struct sw_place_map map;

	map_open(&map, job);
	for (uint32_t t = 0; t < n_tensors; t++) {
		uint32_t first = sw_place_first(&map, at, PAYLOAD);
		uint64_t size;

		rng = rng * 6364136223846793005u + 1442695040888963407u;
		size = (UINT64_C(4) << (rng >> 59)) % 20000000 +
		       (rng >> 50) % 999;
		for (uint64_t c = 0; c * PAYLOAD < size; c++)
			bytes[sw_place_owner(&map, first, (uint32_t)c)] +=
				size - c * PAYLOAD < PAYLOAD
					? size - c * PAYLOAD
					: PAYLOAD;
		at += size;
	}
	for (uint32_t s = 0; s < map.n_servers; s++) {
		double off = fabs((double)bytes[s] - (double)at * (w[s] / sum));

		if (off > worst) /* fmax() crashes GCC 12 for AArch64 */
			worst = off;
	}
	assert_true(worst <= SW_STRIPE_CHUNKS * PAYLOAD);
}

static void map__is_the_same_twice(void **state)
{
	struct sw_place_map a, b;

	map_open(&a, unified(6, 4));
	map_open(&b, unified(6, 4));
	assert_int_equal(a.period, b.period);
	assert_memory_equal(a.owner, b.owner, a.period * sizeof(*a.owner));
}

static void map__impossible_facts(void **state)
{
	struct sw_place_job bad[] = {apart(0, 1), apart(1, 0), apart(65, 1),
		apart(1, SW_PLACE_SERVERS + 1), unified(4, 2)};

	bad[4].n_colocated = 3;
	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++)
		assert_false(sw_place_check(&bad[i]));
}

/* Searching near the last result, in steps of all sizes, finds each chunk. */
static void check_near(
	const struct sw_place *p, uint32_t n_servers, uint32_t n_chunks)
{
	for (uint32_t s = 0; s < n_servers; s++) {
		struct sw_place_near near = {0};

		for (uint32_t i = 0; i < n_chunks; i++) {
			uint32_t c = i * (i % 7) % n_chunks;
			uint32_t l = sw_place_find(&p[s], c);

			assert_int_equal(
				sw_place_find_near(&near, &p[s], c), l);
			l = i * (i % 5) % (p[s].n_local + 1);
			if (l < p[s].n_local)
				assert_int_equal(
					sw_place_global_near(&near, &p[s], l),
					sw_place_global(&p[s], l));
		}
		assert_int_equal(sw_place_find_near(&near, &p[s], n_chunks),
			SW_PLACE_NONE);
	}
}

/* Check that every chunk is on exactly one server, is counted there once, and
 * that both numbers map to each other. */
static void check_all(
	const struct sw_place_map *map, uint32_t first, uint32_t n_chunks)
{
	uint32_t next[SW_PLACE_SERVERS] = {0}, sum = 0;
	struct sw_place p[SW_PLACE_SERVERS];

	for (uint32_t s = 0; s < map->n_servers; s++) {
		p[s] = sw_place_init(map, first, n_chunks, s);
		sum += p[s].n_local;
		assert_int_equal(sw_place_find(&p[s], n_chunks), SW_PLACE_NONE);
		assert_int_equal(
			sw_place_find(&p[s], UINT32_MAX), SW_PLACE_NONE);
	}
	assert_int_equal(sum, n_chunks);
	for (uint32_t c = 0; c < n_chunks; c++) {
		uint32_t owner = sw_place_owner(map, first, c);

		for (uint32_t s = 0; s < map->n_servers; s++) {
			assert_int_equal(
				sw_place_find(&p[s], c) != SW_PLACE_NONE,
				s == owner);
			assert_int_equal(sw_place_below(&p[s], c), next[s]);
		}
		assert_int_equal(sw_place_find(&p[owner], c), next[owner]++);
		assert_int_equal(
			sw_place_global(&p[owner], sw_place_find(&p[owner], c)),
			c);
	}
	for (uint32_t s = 0; s < map->n_servers; s++) {
		assert_int_equal(next[s], p[s].n_local);
		assert_int_equal(sw_place_below(&p[s], n_chunks), next[s]);
	}
	check_near(p, map->n_servers, n_chunks);
}

static void init__every_chunk_has_one_server(void **state)
{
	static const uint32_t firsts[] = {0, 1, 63, 64, 200, 5000};
	struct sw_place_job jobs[] = {
		apart(2, 1), apart(2, 3), unified(3, 2), unified(4, 0)};

	for (size_t j = 0; j < SW_ARRAY_SIZE(jobs); j++) {
		struct sw_place_map map;

		map_open(&map, jobs[j]);
		for (size_t i = 0; i < SW_ARRAY_SIZE(firsts); i++)
			for (size_t c = 0; c < SW_ARRAY_SIZE(chunk_counts); c++)
				check_all(&map, firsts[i] % sw_place_line(&map),
					chunk_counts[c]);
	}
}

static void divide__is_exact(void **state)
{
	for (uint32_t d = 1; d <= SW_PLACE_PERIOD_MAX; d++) {
		uint64_t inverse = sw_place_inverse(d);
		uint32_t last = UINT32_MAX - UINT32_MAX % d;

		for (uint32_t q = 0; q < 8; q++) {
			assert_int_equal(sw_place_divide(q * d, inverse), q);
			assert_int_equal(
				sw_place_divide(q * d + d - 1, inverse), q);
		}
		assert_int_equal(sw_place_divide(last, inverse), last / d);
		assert_int_equal(
			sw_place_divide(last - 1, inverse), (last - 1) / d);
		assert_int_equal(
			sw_place_divide(UINT32_MAX, inverse), UINT32_MAX / d);
	}
}

static void owner__stripes_follow_the_line(void **state)
{
	struct sw_place_map map;

	map_open(&map, apart(2, 3));
	for (uint32_t c = 0; c < 64; c++)
		assert_int_equal(sw_place_owner(&map, 0, c), 0);
	assert_int_equal(sw_place_owner(&map, 0, 64), 1);
	assert_int_equal(sw_place_owner(&map, 0, 128), 2);
	assert_int_equal(sw_place_owner(&map, 0, 192), 0);
	/* the next tensor continues where the last one ended */
	assert_int_equal(sw_place_owner(&map, 60, 3), 0);
	assert_int_equal(sw_place_owner(&map, 60, 4), 1);
	assert_true(
		sw_place_owner(&map, sw_place_line(&map) - 1, UINT32_MAX) < 3);
}

static void first__counts_bytes(void **state)
{
	struct sw_place_map map;

	map_open(&map, apart(2, 3));
	assert_int_equal(sw_place_line(&map), 192);
	assert_int_equal(sw_place_first(&map, 0, PAYLOAD), 0);
	assert_int_equal(sw_place_first(&map, PAYLOAD - 1, PAYLOAD), 0);
	assert_int_equal(sw_place_first(&map, 10 * PAYLOAD, PAYLOAD), 10);
	assert_int_equal(sw_place_first(&map, 193 * PAYLOAD, PAYLOAD), 1);
}

static void init__server_without_a_chunk(void **state)
{
	struct sw_place_map map;
	struct sw_place p;

	map_open(&map, apart(2, 2));
	p = sw_place_init(&map, 0, 64, 1);
	assert_int_equal(p.n_local, 0);
	for (uint32_t c = 0; c < 128; c++)
		assert_int_equal(sw_place_find(&p, c), SW_PLACE_NONE);
}

/* Lanes get shares as even as whole servers allow, and each lane has a server.
 * The lcores of a machine are dealt in turn. */
static void lanes__even(void **state)
{
	uint8_t lane_of[SW_PLACE_SERVERS];
	uint32_t weight[SW_PLACE_SERVERS];

	for (uint32_t n = 1; n <= 8; n++)
		for (uint32_t k = 0; k <= 4; k++)
			for (uint32_t lanes = 1; lanes <= n + k; lanes++) {
				struct sw_place_job job = unified(n, k);
				uint32_t sum[SW_PLACE_SERVERS] = {0};
				uint32_t all = sw_place_weights(&job, weight);
				uint32_t most = 0;

				sw_place_lanes(&job, lanes, lane_of);
				assert_int_equal(lane_of[0], 0);
				for (uint32_t s = 0; s < n + k; s++) {
					sum[lane_of[s]] += weight[s];
					if (weight[s] > most)
						most = weight[s];
				}
				for (uint32_t l = 0; l < lanes; l++)
					assert_true(
						sum[l] <= all / lanes + most);
			}
	struct sw_place_job two = {
		.n_members = 4, .n_servers = 8, .n_lcores = 4};

	sw_place_lanes(&two, 4, lane_of);
	for (uint32_t s = 0; s < 8; s++)
		assert_int_equal(lane_of[s], s % 4);
}

/* Every chunk is in the lane of its server, in order, and forms one run. */
static void fold__every_chunk_has_its_lane(void **state)
{
	struct sw_place_job job = unified(3, 2);
	struct sw_place_map map, lanes;
	uint8_t lane_of[SW_PLACE_SERVERS];

	map_open(&map, job);
	for (uint32_t n = 1; n <= 5; n++) {
		sw_place_lanes(&job, n, lane_of);
		sw_place_map_fold(&lanes, &map, n, lane_of);
		for (uint32_t i = 0; i < SW_ARRAY_SIZE(chunk_counts); i++) {
			uint32_t first = 37 * i, seen = 0;

			for (uint32_t l = 0; l < n; l++) {
				struct sw_place p = sw_place_init(
					&lanes, first, chunk_counts[i], l);
				uint32_t c = 0;

				for (uint32_t run; c < p.n_local; c += run) {
					uint32_t at = sw_place_global(&p, c);

					run = sw_place_run(&p, c);
					assert_true(run && run <= 64);
					for (uint32_t k = 0; k < run; k++)
						assert_int_equal(
							lane_of[sw_place_owner(
								&map, first,
								at + k)],
							l);
				}
				assert_int_equal(c, p.n_local);
				seen += c;
			}
			assert_int_equal(seen, chunk_counts[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights__theorem_1),
		cmocka_unit_test(weights__where_it_says_nothing),
		cmocka_unit_test(map__earliest_deadline_first),
		cmocka_unit_test(map__share_to_less_than_a_stripe),
		cmocka_unit_test(weights__lcores_of_a_machine),
		cmocka_unit_test(map__share_of_a_model),
		cmocka_unit_test(map__is_the_same_twice),
		cmocka_unit_test(map__impossible_facts),
		cmocka_unit_test(divide__is_exact),
		cmocka_unit_test(owner__stripes_follow_the_line),
		cmocka_unit_test(first__counts_bytes),
		cmocka_unit_test(init__every_chunk_has_one_server),
		cmocka_unit_test(init__server_without_a_chunk),
		cmocka_unit_test(lanes__even),
		cmocka_unit_test(fold__every_chunk_has_its_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
