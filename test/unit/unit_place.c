/* unit_place.c - which server sums which chunk.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/place.h"
#include "engine/wire.h"
#include "test/support/env.h"

static const uint32_t chunk_counts[] = {
	1, 2, 63, 64, 65, 127, 128, 129, 640, 641, 1000, 4096, 4097};

static void owner__stripes_take_turns(void **state)
{
	for (uint32_t c = 0; c < 64; c++)
		assert_int_equal(sw_place_owner(0, c, 3), 0);
	assert_int_equal(sw_place_owner(0, 64, 3), 1);
	assert_int_equal(sw_place_owner(0, 128, 3), 2);
	assert_int_equal(sw_place_owner(0, 192, 3), 0);
}

/* Tensors of one chunk spread too. */
static void owner__depends_on_the_key(void **state)
{
	for (uint32_t key = 0; key < 12; key++)
		assert_int_equal(sw_place_owner(key, 0, 4), key % 4);
	assert_int_equal(sw_place_owner(UINT32_MAX, UINT32_MAX, 1), 0);
	assert_true(sw_place_owner(UINT32_MAX, UINT32_MAX, 32) < 32);
}

/* Every chunk lies on exactly one server, is counted there once, and both
 * numbers lead to each other. */
static void check_all(uint32_t key, uint32_t n_chunks, uint32_t n_servers)
{
	uint32_t next[SW_MAX_SERVERS] = {0}, sum = 0;
	struct sw_place p[SW_MAX_SERVERS];

	for (uint32_t s = 0; s < n_servers; s++) {
		p[s] = sw_place_init(key, n_chunks, s, n_servers);
		sum += p[s].n_local;
		assert_false(sw_place_has(&p[s], n_chunks));
		assert_false(sw_place_has(&p[s], UINT32_MAX));
	}
	assert_int_equal(sum, n_chunks);
	for (uint32_t c = 0; c < n_chunks; c++) {
		uint32_t owner = sw_place_owner(key, c, n_servers);

		for (uint32_t s = 0; s < n_servers; s++)
			assert_int_equal(
				sw_place_has(&p[s], c) != 0, s == owner);
		assert_int_equal(sw_place_local(&p[owner], c), next[owner]++);
		assert_int_equal(sw_place_global(&p[owner],
					 sw_place_local(&p[owner], c)),
			c);
	}
	for (uint32_t s = 0; s < n_servers; s++)
		assert_int_equal(next[s], p[s].n_local);
}

static void init__every_chunk_has_one_server(void **state)
{
	for (size_t i = 0; i < SW_ARRAY_SIZE(chunk_counts); i++)
		for (uint32_t n = 1; n <= 7; n++)
			for (uint32_t key = 0; key < n + 1; key++)
				check_all(key, chunk_counts[i], n);
	check_all(4095, 5000, SW_MAX_SERVERS);
	check_all(UINT32_MAX, 5000, SW_MAX_SERVERS);
}

static void init__server_without_a_chunk(void **state)
{
	struct sw_place p = sw_place_init(0, 64, 1, 2);

	assert_int_equal(p.n_local, 0);
	for (uint32_t c = 0; c < 128; c++)
		assert_false(sw_place_has(&p, c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner__stripes_take_turns),
		cmocka_unit_test(owner__depends_on_the_key),
		cmocka_unit_test(init__every_chunk_has_one_server),
		cmocka_unit_test(init__server_without_a_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
