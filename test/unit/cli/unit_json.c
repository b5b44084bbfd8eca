/* unit_json.c - the JSON writer.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "apps/cli/json.h"
#include "engine/base/error.h"

/* A JSON document in memory. */
struct doc {
	struct sw_json j;
	char *text;
	size_t len;
};

static void doc_open(struct doc *d)
{
	FILE *f = open_memstream(&d->text, &d->len);

	assert_non_null(f);
	sw_json_init(&d->j, f);
}

static void doc_close(struct doc *d, int err, const char *text)
{
	assert_int_equal(sw_json_fini(&d->j), err);
	fclose(d->j.file);
	if (text)
		assert_string_equal(d->text, text);
	free(d->text);
}

static void json_object__nested(void **state)
{
	struct doc d;

	doc_open(&d);
	sw_json_object_open(&d.j, NULL);
	sw_json_text(&d.j, "name", "a");
	sw_json_array_open(&d.j, "rows");
	sw_json_u64(&d.j, NULL, UINT64_MAX);
	sw_json_object_open(&d.j, NULL);
	sw_json_close(&d.j);
	sw_json_array_open(&d.j, NULL);
	sw_json_close(&d.j);
	sw_json_close(&d.j);
	sw_json_bool(&d.j, "ok", true);
	sw_json_text(&d.j, "none", NULL);
	sw_json_close(&d.j);
	doc_close(&d, 0,
		"{\"name\": \"a\", \"rows\": [18446744073709551615, "
		"{}, []], \"ok\": true, \"none\": null}\n");
}

static void json_double__finite_or_null(void **state)
{
	struct doc d;

	doc_open(&d);
	sw_json_array_open(&d.j, NULL);
	sw_json_double(&d.j, NULL, 0.5);
	sw_json_double(&d.j, NULL, NAN);
	sw_json_double(&d.j, NULL, -INFINITY);
	sw_json_double(&d.j, NULL, 1e300);
	sw_json_double(&d.j, NULL, 0.1);
	sw_json_double(&d.j, NULL, 0.1 + 0.2);
	sw_json_close(&d.j);
	doc_close(&d, 0,
		"[0.5, null, null, 1e+300, 0.1, "
		"0.30000000000000004]\n");
}

static void json_text__escaped(void **state)
{
	struct doc d;

	doc_open(&d);
	sw_json_text(&d.j, NULL, "q\" b\\ n\n t\x01 d\x7f \xc3\xa9");
	doc_close(&d, 0,
		"\"q\\\" b\\\\ n\\u000a t\\u0001 d\\u007f "
		"\xc3\xa9\"\n");
}

static void json_text__not_utf8(void **state)
{
	/* a lone byte, a truncated sequence, an overlong one, a surrogate, and
	 * a code point above U+10FFFF */
	static const char *const bad[] = {
		"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct doc d;

		doc_open(&d);
		sw_json_text(&d.j, NULL, bad[i]);
		fflush(d.j.file);
		assert_int_equal(strncmp(d.text, "\"\\ufffd", 7), 0);
		for (size_t k = 0; k < d.len; k++)
			assert_true((unsigned char)d.text[k] < 0x80);
		doc_close(&d, 0, NULL);
	}
}

static void json_close__too_many(void **state)
{
	struct doc d;

	doc_open(&d);
	sw_json_close(&d.j);
	doc_close(&d, SW_EINVAL, NULL);
}

static void json_fini__left_open(void **state)
{
	struct doc d;

	doc_open(&d);
	sw_json_array_open(&d.j, NULL);
	doc_close(&d, SW_EINVAL, NULL);
}

static void json_object__key_missing(void **state)
{
	struct doc d;

	doc_open(&d);
	sw_json_object_open(&d.j, NULL);
	sw_json_u64(&d.j, NULL, 1);
	sw_json_close(&d.j);
	doc_close(&d, SW_EINVAL, NULL);
}

static void json_array__too_deep(void **state)
{
	struct doc d;

	doc_open(&d);
	for (int i = 0; i <= SW_JSON_DEPTH_MAX; i++)
		sw_json_array_open(&d.j, NULL);
	for (int i = 0; i < SW_JSON_DEPTH_MAX; i++)
		sw_json_close(&d.j);
	doc_close(&d, SW_EINVAL, NULL);
}

static void json_fini__disk_full(void **state)
{
	struct sw_json j;
	FILE *f = fopen("/dev/full", "w");

	assert_non_null(f);
	sw_json_init(&j, f);
	sw_json_u64(&j, NULL, 1);
	assert_int_equal(sw_json_fini(&j), SW_EIO);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_object__nested),
		cmocka_unit_test(json_double__finite_or_null),
		cmocka_unit_test(json_text__escaped),
		cmocka_unit_test(json_text__not_utf8),
		cmocka_unit_test(json_close__too_many),
		cmocka_unit_test(json_fini__left_open),
		cmocka_unit_test(json_object__key_missing),
		cmocka_unit_test(json_array__too_deep),
		cmocka_unit_test(json_fini__disk_full),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
