/* unit_lapack.c - a machine without LAPACK: the tuner says so.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/client/client.h"
#include "pmd/client/tuner/tune_live.h"
#include "test/support/dl.h"

#define MISSING "libnone.so.0"

static void open__missing(void **state)
{
	struct sw_lapack l;

	dl_instead = MISSING;
	assert_contains(sw_lapack_open(&l), "cannot open shared object file");
	sw_lapack_close(&l);
	dl_instead = NULL;
}

static void open__lacks_a_function(void **state)
{
	struct sw_lapack l;

	dl_instead = "libm.so.6";
	assert_contains(sw_lapack_open(&l), "liblapacke.so.3 lacks");
	assert_null(l.library);
	dl_instead = NULL;
}

static void begin__says_what_to_install(void **state)
{
	struct sw_client *c = calloc(1, sizeof(*c));
	struct sw_tune_live live = {.n = 0};

	assert_non_null(c);
	dl_instead = MISSING;
	assert_int_equal(sw_tune_live_begin(&live, c, 1, 0), SW_EREFUSED);
	assert_contains(sw_last_error(c),
		"the tuner needs LAPACK, which cannot be loaded: ");
	assert_contains(sw_last_error(c), "(install liblapacke, ");
	sw_tune_live_end(&live);
	free(c);
	dl_instead = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__missing),
		cmocka_unit_test(open__lacks_a_function),
		cmocka_unit_test(begin__says_what_to_install),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
