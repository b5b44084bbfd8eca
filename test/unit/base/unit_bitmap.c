/* unit_bitmap.c - the set of small integers, against a plain array.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>

#include "engine/base/bitmap.h"
#include "test/support/env.h"

static const uint32_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097,
	64 * 64 * 64, 64 * 64 * 64 + 1};

/* A set between two guard words, which detect writes beyond it. */
struct set {
	struct sw_bitmap b;
	uint64_t *words;
	size_t n_words;
};

static void set_open(struct set *s, uint32_t n)
{
	s->n_words = sw_bitmap_words(n);
	s->words = calloc(s->n_words + 2, sizeof(uint64_t));
	s->words[0] = s->words[s->n_words + 1] = 0x6a6a;
	assert_ptr_equal(sw_bitmap_init(&s->b, n, s->words + 1),
		s->words + 1 + s->n_words);
}

static void set_close(struct set *s)
{
	assert_true(s->words[0] == 0x6a6a);
	assert_true(s->words[s->n_words + 1] == 0x6a6a);
	free(s->words);
}

static void words__per_level(void **state)
{
	assert_int_equal(sw_bitmap_words(1), 1);
	assert_int_equal(sw_bitmap_words(64), 1);
	assert_int_equal(sw_bitmap_words(65), 2 + 1);
	assert_int_equal(sw_bitmap_words(4096), 64 + 1);
	assert_int_equal(sw_bitmap_words(4097), 65 + 2 + 1);
}

/* A set of the maximum size uses all levels and no more. */
static void init__levels_suffice(void **state)
{
	struct set s;

	set_open(&s, 64u * 64 * 64 * 64);
	assert_int_equal(s.b.n_levels, SW_BITMAP_LEVELS);
	sw_bitmap_add(&s.b, 64u * 64 * 64 * 64 - 1);
	assert_int_equal(sw_bitmap_first(&s.b), 64u * 64 * 64 * 64 - 1);
	set_close(&s);
}

static void add__each_alone(void **state)
{
	for (size_t i = 0; i < SW_ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i], stride = n > 5000 ? 61 : 1;
		struct set s;

		set_open(&s, n);
		assert_true(sw_bitmap_is_empty(&s.b));
		assert_int_equal(sw_bitmap_first(&s.b), SW_BITMAP_NONE);
		for (uint32_t m = 0; m < n; m += stride) {
			sw_bitmap_add(&s.b, m);
			sw_bitmap_add(&s.b, m); /* adding twice is allowed */
			assert_true(sw_bitmap_has(&s.b, m));
			assert_int_equal(sw_bitmap_first(&s.b), m);
			sw_bitmap_remove(&s.b, m);
			sw_bitmap_remove(&s.b, m);
			assert_false(sw_bitmap_has(&s.b, m));
			assert_true(sw_bitmap_is_empty(&s.b));
		}
		set_close(&s);
	}
}

/* Return the lowest member at or after @from; byte i of @has is 1 if i is a
 * member. */
static uint32_t naive_next(const uint8_t *has, uint32_t n, uint32_t from)
{
	for (; from < n; from++)
		if (has[from])
			return from;
	return SW_BITMAP_NONE;
}

static void random_changes__as_an_array(void **state)
{
	uint64_t rng = 1;

	for (size_t i = 0; i < SW_ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i];
		uint8_t *has = calloc(n, 1);
		struct set s;

		set_open(&s, n);
		for (uint32_t k = 0; k < (n > 5000 ? 300 : 3000); k++) {
			uint64_t r = test_random(&rng);
			uint32_t m = (uint32_t)(r >> 8) % n;
			uint32_t from = (uint32_t)(r >> 40) % (n + 1);

			has[m] = r & 1;
			if (r & 1)
				sw_bitmap_add(&s.b, m);
			else
				sw_bitmap_remove(&s.b, m);
			assert_int_equal(
				sw_bitmap_first(&s.b), naive_next(has, n, 0));
			assert_int_equal(sw_bitmap_next(&s.b, from),
				naive_next(has, n, from));
			assert_int_equal(sw_bitmap_is_empty(&s.b),
				naive_next(has, n, 0) == SW_BITMAP_NONE);
		}
		free(has);
		set_close(&s);
	}
}

static void next__past_the_end(void **state)
{
	for (size_t i = 0; i < SW_ARRAY_SIZE(sizes); i++) {
		struct set s;

		set_open(&s, sizes[i]);
		assert_int_equal(sw_bitmap_next(&s.b, 0), SW_BITMAP_NONE);
		sw_bitmap_add(&s.b, sizes[i] - 1);
		assert_int_equal(
			sw_bitmap_next(&s.b, sizes[i] - 1), sizes[i] - 1);
		assert_int_equal(
			sw_bitmap_next(&s.b, sizes[i]), SW_BITMAP_NONE);
		assert_int_equal(
			sw_bitmap_next(&s.b, sizes[i] + 1), SW_BITMAP_NONE);
		set_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words__per_level),
		cmocka_unit_test(init__levels_suffice),
		cmocka_unit_test(add__each_alone),
		cmocka_unit_test(random_changes__as_an_array),
		cmocka_unit_test(next__past_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
