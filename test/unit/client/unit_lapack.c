/* unit_lapack.c - a machine without LAPACK: the tuner says so.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "pmd/client/client.h"
#include "pmd/client/tuner/tune_live.h"

static bool has_library;

/* In place of the C library's. */
void *dlopen(const char *file, int mode)
{
	assert_string_equal(file, "liblapacke.so.3");
	return has_library ? &has_library : NULL;
}

char *dlerror(void)
{
	return "cannot open shared object file";
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	return strcmp(name, "LAPACKE_dtrtrs") ? handle : NULL;
}

int dlclose(void *handle)
{
	assert_ptr_equal(handle, &has_library);
	return 0;
}

static void open__missing(void **state)
{
	struct sw_lapack l;

	has_library = false;
	assert_string_equal(
		sw_lapack_open(&l), "cannot open shared object file");
	sw_lapack_close(&l);
}

static void open__lacks_a_function(void **state)
{
	struct sw_lapack l;

	has_library = true;
	assert_contains(sw_lapack_open(&l), "liblapacke.so.3 lacks");
	assert_null(l.library);
}

static void begin__says_what_to_install(void **state)
{
	struct sw_client *c = calloc(1, sizeof(*c));
	struct sw_tune_live live = {.n = 0};

	has_library = false;
	assert_non_null(c);
	assert_int_equal(sw_tune_live_begin(&live, c, 1, 0), SW_EREFUSED);
	assert_contains(sw_last_error(c),
		"the tuner needs LAPACK, which cannot be loaded: cannot open "
		"shared object file (install liblapacke, ");
	sw_tune_live_end(&live);
	free(c);
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
