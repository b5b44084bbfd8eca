/* unit_svg.c - a plot of lines.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/svg.h"

/* Return the plot as SVG; the caller frees it. */
static char *written(const struct sw_svg_plot *plot)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(sw_svg_write(plot, f), 0);
	fclose(f);
	return text;
}

static void write__lines_and_gaps(void **state)
{
	const double x[] = {0, 1, 2}, y[] = {NAN, 10, 20};
	struct sw_svg_line line = {"a<b", y, false};
	struct sw_svg_plot plot = {.title = "t",
		.x_name = "x",
		.y_name = "y",
		.x = x,
		.n = 3,
		.lines = &line,
		.n_lines = 1};
	char *text = written(&plot);

	assert_non_null(strstr(text, "<svg "));
	assert_non_null(strstr(text, "a&lt;b"));
	/* two points, because the first is left out; y 20 of 21 lies near the
	 * top */
	assert_non_null(strstr(text, "d=\"M300.0 204.8L520.0 69.5\""));
	assert_non_null(strstr(text, "</svg>"));
	assert_null(strstr(text, "nan"));
	free(text);
}

static void write__nothing_but_zero(void **state)
{
	const double x[] = {5}, y[] = {0};
	struct sw_svg_line line = {"l", y, false};
	struct sw_svg_plot plot = {.title = "t",
		.x_name = "x",
		.y_name = "y",
		.x = x,
		.n = 1,
		.lines = &line,
		.n_lines = 1};
	char *text = written(&plot);

	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
}

/* On a logarithmic axis 1, 10 and 100 are equally spaced. A formula is drawn as
 * a dashed line without marks. */
static void write__a_logarithmic_axis(void **state)
{
	const double x[] = {1, 10, 100}, y[] = {1, 1, 1};
	struct sw_svg_line line = {"l", y, true};
	struct sw_svg_plot plot = {.title = "t",
		.x_name = "x",
		.y_name = "y",
		.x = x,
		.is_log = true,
		.n = 3,
		.lines = &line,
		.n_lines = 1};
	char *text = written(&plot);

	assert_non_null(strstr(text, "d=\"M80.0 69.5L300.0 69.5L520.0 69.5\""));
	assert_non_null(strstr(text, ">100</text>"));
	assert_non_null(strstr(text, "stroke-dasharray"));
	assert_null(strstr(text, "<circle"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__lines_and_gaps),
		cmocka_unit_test(write__nothing_but_zero),
		cmocka_unit_test(write__a_logarithmic_axis),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
