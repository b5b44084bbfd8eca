/* unit_names.c - look up tensors' numbers by name.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pmd/host/names.h"

static char texts[SW_EDGE_TENSORS][16];

/* Return a table with @n names. */
static struct sw_names *table_of(uint32_t n)
{
	struct sw_names *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	for (uint32_t i = 0; i < SW_EDGE_TENSORS; i++)
		snprintf(texts[i], sizeof(texts[i]), "layer%u", i);
	while (t->n < n)
		sw_names_add(t, texts[t->n]);
	return t;
}

static void names__are_numbered_from_0_in_a_full_table(void **state)
{
	struct sw_names *t = table_of(SW_EDGE_TENSORS);

	(void)state;
	for (uint32_t i = 0; i < SW_EDGE_TENSORS; i++)
		assert_int_equal(sw_names_find(t, texts[i]), i + 1);
	assert_int_equal(sw_names_find(t, "layer"), 0);
	free(t);
}

static void names__that_are_cut_are_unknown_the_others_are_not(void **state)
{
	struct sw_names *t = table_of(3000);

	(void)state;
	sw_names_cut(t, 1000);
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(
			sw_names_find(t, texts[i]), i < 1000 ? i + 1 : 0);
	sw_names_add(t, texts[2000]);
	assert_int_equal(sw_names_find(t, texts[2000]), 1001);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names__are_numbered_from_0_in_a_full_table),
		cmocka_unit_test(
			names__that_are_cut_are_unknown_the_others_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
