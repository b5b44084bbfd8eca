/* args.c - parse a subcommand's options from a table of rows.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sumwire/version.h>

#include "conf/value.h"
#include "engine/base/error.h"

enum { WIDTH = 80, HELP_COLUMN = 27 }; /* columns of --help */

/* State of one walk over argv. */
struct walk {
	const struct sw_args *args;
	int argc;
	char **argv;
	int i;
	uint32_t n_positionals;
};

/* Each type's placeholder in --help, and the unit of its numbers. */
static const struct {
	const char *value;
	enum sw_unit unit;
} types[] = {
	[SW_ARG_FLAG] = {"", SW_UNIT_NONE},
	[SW_ARG_U32] = {"N", SW_UNIT_NONE},
	[SW_ARG_U64] = {"N", SW_UNIT_NONE},
	[SW_ARG_BYTES] = {"BYTES", SW_UNIT_BYTES},
	[SW_ARG_TIME] = {"TIME", SW_UNIT_TIME},
	[SW_ARG_RATE] = {"RATE", SW_UNIT_RATE},
	[SW_ARG_DOUBLE] = {"X", SW_UNIT_NONE},
	[SW_ARG_STRING] = {"TEXT", SW_UNIT_NONE},
	[SW_ARG_PATH] = {"PATH", SW_UNIT_NONE},
	[SW_ARG_DTYPE] = {"DTYPE", SW_UNIT_NONE},
	[SW_ARG_LIST] = {"TEXT", SW_UNIT_NONE},
};

static int fail(const struct sw_args *args, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(const struct sw_args *args, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", args->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s --help shows all options)\n", args->name);
	return SW_EINVAL;
}

/* Return the last name of an option, which is the long one. */
static const char *long_name(const struct sw_arg *row)
{
	const char *space = strrchr(row->name, ' ');

	return space ? space + 1 : row->name;
}

static bool has_bounds(const struct sw_arg *row)
{
	return row->min != 0 || row->max != 0;
}

static void number_format(
	const struct sw_arg *row, double value, char *buf, size_t len)
{
	if (row->type == SW_ARG_DOUBLE)
		snprintf(buf, len, "%.9g", value);
	else
		sw_value_format(
			(uint64_t)value, types[row->type].unit, buf, len);
}

static void range_format(const struct sw_arg *row, char *buf, size_t len)
{
	char min[32], max[32];

	number_format(row, row->min, min, sizeof(min));
	number_format(row, row->max, max, sizeof(max));
	snprintf(buf, len, "%s to %s", min, max);
}

static int bounds_check(const struct sw_args *args, const struct sw_arg *row,
	const char *text, double value)
{
	char range[80];

	if (!has_bounds(row) || (value >= row->min && value <= row->max))
		return 0;
	range_format(row, range, sizeof(range));
	return fail(args, "%s: \"%s\" is out of range: %s", long_name(row),
		text, range);
}

/* Read "128M" as 128 MiB, as nccl-tests and dd do. */
static const char *binary_unit(const char *text, char buf[64])
{
	size_t n = strlen(text);

	if (!n || n > 40 || !strchr("KMG", text[n - 1]))
		return text;
	snprintf(buf, 64, "%siB", text);
	return buf;
}

static int whole_set(
	const struct sw_args *args, const struct sw_arg *row, const char *text)
{
	uint64_t value;
	char why[256], buf[64];
	const char *number =
		row->type == SW_ARG_BYTES ? binary_unit(text, buf) : text;

	if (sw_value_parse(number, types[row->type].unit, &value, why,
		    sizeof(why)) < 0)
		return fail(args, "%s: %s", long_name(row), why);
	if (bounds_check(args, row, text, (double)value) < 0)
		return SW_EINVAL;
	if (row->type == SW_ARG_U32 && value > UINT32_MAX)
		return fail(
			args, "%s: \"%s\" is too large", long_name(row), text);
	if (row->type == SW_ARG_U32)
		*row->out.u32 = (uint32_t)value;
	else
		*row->out.u64 = value;
	return 0;
}

static int real_set(
	const struct sw_args *args, const struct sw_arg *row, const char *text)
{
	double value;
	char why[256];

	if (sw_value_real_parse(text, &value, why, sizeof(why)) < 0)
		return fail(args, "%s: %s", long_name(row), why);
	if (bounds_check(args, row, text, value) < 0)
		return SW_EINVAL;
	*row->out.real = value;
	return 0;
}

static int dtype_set(
	const struct sw_args *args, const struct sw_arg *row, const char *text)
{
	char names[96] = "";
	size_t len = 0;

	for (uint32_t d = 0; d < SW_N_DTYPES; d++) {
		if (!sw_dtype_bytes(d))
			continue;
		if (!strcmp(text, sw_dtype_name(d))) {
			*row->out.dtype = (enum sw_dtype)d;
			return 0;
		}
		len += (size_t)snprintf(names + len, sizeof(names) - len, " %s",
			sw_dtype_name(d));
	}
	return fail(args, "%s: unknown element type \"%s\", expected one of%s",
		long_name(row), text, names);
}

static int list_add(const struct sw_args *args, const char *name,
	struct sw_arg_list *list, const char *text)
{
	if (list->n == SW_ARG_LIST_MAX)
		return fail(args, "%s: given more than %d times", name,
			SW_ARG_LIST_MAX);
	list->items[list->n++] = text;
	return 0;
}

static int value_set(
	const struct sw_args *args, const struct sw_arg *row, const char *text)
{
	switch (row->type) {
	case SW_ARG_DOUBLE:
		return real_set(args, row, text);
	case SW_ARG_STRING:
	case SW_ARG_PATH:
		*row->out.string = text;
		return 0;
	case SW_ARG_DTYPE:
		return dtype_set(args, row, text);
	case SW_ARG_LIST:
		return list_add(args, long_name(row), row->out.list, text);
	default:
		return whole_set(args, row, text);
	}
}

static int unknown_option(
	const struct sw_args *args, const char *text, size_t len)
{
	struct sw_nearest near;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	sw_nearest_init(&near, name);
	sw_nearest_add(&near, "--help");
	for (uint32_t i = 0; i < args->n_rows; i++)
		sw_nearest_add(&near, long_name(&args->rows[i]));
	if (near.best)
		return fail(args, "unknown option %s; did you mean %s?", name,
			near.best);
	return fail(args, "unknown option %s", name);
}

/* Return whether @text, of @len bytes, is a name of @row. */
static bool is_name(const struct sw_arg *row, const char *text, size_t len)
{
	const char *name = row->name;

	while (*name) {
		size_t n = strcspn(name, ",");

		if (n == len && !memcmp(name, text, len))
			return true;
		name += n + strspn(name + n, ", ");
	}
	return false;
}

static int option_take(struct walk *w)
{
	const char *text = w->argv[w->i++];
	const char *value = strchr(text, '=');
	size_t len = value ? (size_t)(value - text) : strlen(text);
	const struct sw_arg *row = NULL;

	for (uint32_t i = 0; i < w->args->n_rows && !row; i++)
		if (is_name(&w->args->rows[i], text, len))
			row = &w->args->rows[i];
	if (!row)
		return unknown_option(w->args, text, len);
	if (row->type == SW_ARG_FLAG) {
		if (value)
			return fail(
				w->args, "%s takes no value", long_name(row));
		*row->out.flag = true;
		return 0;
	}
	if (!value && w->i == w->argc)
		return fail(w->args, "%s needs a value", long_name(row));
	return value_set(w->args, row, value ? value + 1 : w->argv[w->i++]);
}

static int positional_take(struct walk *w)
{
	const struct sw_args *args = w->args;
	const char *text = w->argv[w->i++];

	if (!args->positional)
		return fail(args, "\"%s\" is not an option", text);
	if (w->n_positionals++ == args->max_positionals)
		return fail(args, "\"%s\" is one %s too many: give at most %u",
			text, args->positional, args->max_positionals);
	return list_add(args, args->positional, args->positionals, text);
}

static double number_of(const struct sw_arg *row)
{
	return row->type == SW_ARG_U32      ? *row->out.u32
	       : row->type == SW_ARG_DOUBLE ? *row->out.real
					    : (double)*row->out.u64;
}

/* Format the default of a row for --help.  "": the row has no default, because
 * its value is below the bounds. */
static const char *default_format(
	const struct sw_arg *row, char *buf, size_t len)
{
	buf[0] = '\0';
	switch (row->type) {
	case SW_ARG_FLAG:
	case SW_ARG_LIST:
		break;
	case SW_ARG_STRING:
	case SW_ARG_PATH:
		snprintf(buf, len, "%s",
			*row->out.string ? *row->out.string : "");
		break;
	case SW_ARG_DTYPE:
		snprintf(buf, len, "%s", sw_dtype_name(*row->out.dtype));
		break;
	default:
		if (number_of(row) >= row->min)
			number_format(row, number_of(row), buf, len);
	}
	return buf;
}

/* Print @text, whose first line begins in column @at, in lines of WIDTH columns
 * that begin in column @indent. */
static void text_print(const char *text, size_t at, size_t indent)
{
	size_t start = at;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > start && at + 1 + len > WIDTH) {
			printf("\n%*s", (int)indent, "");
			at = start = indent;
		} else if (at > start) {
			putchar(' ');
			at++;
		}
		printf("%.*s", (int)len, text);
		at += len;
		text += len + strspn(text + len, " ");
	}
	putchar('\n');
}

/* Append @text to the notes of an option: range, default, repetition. */
static void note_add(
	char *notes, size_t len, const char *word, const char *text)
{
	size_t n = strlen(notes);

	snprintf(notes + n, len - n, "%s%s%s", n ? ", " : "", word, text);
}

/* Append the notes to the help in brackets, those of the help if it has some.
 */
static void notes_join(
	const char *help, const char *notes, char *buf, size_t len)
{
	size_t n = strlen(help);
	bool has_some = n && help[n - 1] == ']';

	if (*notes)
		snprintf(buf, len, "%.*s%s%s]", (int)(n - has_some), help,
			has_some ? ", " : " [", notes);
	else
		snprintf(buf, len, "%s", help);
}

static void row_print(const struct sw_arg *row)
{
	char left[64], text[128], range[80], notes[256] = "", all[640];
	int n;

	snprintf(
		left, sizeof(left), "%s %s", row->name, types[row->type].value);
	if (has_bounds(row)) {
		range_format(row, range, sizeof(range));
		note_add(notes, sizeof(notes), "", range);
	}
	default_format(row, text, sizeof(text));
	if (*text)
		note_add(notes, sizeof(notes), "default ", text);
	if (row->type == SW_ARG_LIST)
		note_add(notes, sizeof(notes), "may be repeated", "");
	notes_join(row->help, notes, all, sizeof(all));
	n = printf("  %s", left);
	if (n < HELP_COLUMN)
		printf("%*s", HELP_COLUMN - n, "");
	else
		printf("\n%*s", HELP_COLUMN, "");
	text_print(all, HELP_COLUMN, HELP_COLUMN);
}

static void help_print(const struct sw_args *args)
{
	int n = printf("%s - ", args->name);

	text_print(args->summary, (size_t)n, 2);
	printf("\nusage: %s [options]%s%s%s%s\n\n", args->name,
		!args->positional                           ? ""
		: args->min_positionals || args->command_at ? " "
							    : " [",
		args->positional ? args->positional : "",
		args->positional && args->max_positionals > 1 ? "..." : "",
		args->positional && !args->min_positionals && !args->command_at
			? "]"
			: "");
	for (uint32_t i = 0; i < args->n_rows; i++)
		row_print(&args->rows[i]);
	printf("  %-24s %s\n", "-h, --help", "print this text");
	printf("  %-24s %s\n", "-V, --version", "print the version");
}

/* Print every name of every option, one per line, for a shell's completion. */
static void names_print(const struct sw_args *args)
{
	for (uint32_t i = 0; i < args->n_rows; i++)
		for (const char *p = args->rows[i].name; *p;) {
			size_t n = strcspn(p, ",");

			printf("%.*s\n", (int)n, p);
			p += n + strspn(p + n, ", ");
		}
	printf("-h\n--help\n-V\n--version\n");
}

int sw_args_parse(const struct sw_args *args, int argc, char **argv)
{
	struct walk w = {.args = args, .argc = argc, .argv = argv, .i = 1};
	bool is_open = true; /* no "--" so far */

	if (argc == 2 && !strcmp(argv[1], SW_ARGS_COMPLETE)) {
		names_print(args);
		return SW_ARGS_HELP;
	}
	while (w.i < argc) {
		const char *text = argv[w.i];
		int err;

		if (is_open &&
			(!strcmp(text, "--help") || !strcmp(text, "-h"))) {
			help_print(args);
			return SW_ARGS_HELP;
		}
		if (is_open &&
			(!strcmp(text, "--version") || !strcmp(text, "-V"))) {
			printf("%.*s %s\n", (int)strcspn(args->name, " "),
				args->name, SW_VERSION);
			return SW_ARGS_HELP;
		}
		if (is_open && !strcmp(text, "--")) {
			is_open = false;
			w.i++;
			continue;
		}
		if (is_open && text[0] == '-' && text[1]) {
			err = option_take(&w);
		} else if (args->command_at) {
			*args->command_at = w.i;
			return 0;
		} else {
			err = positional_take(&w);
		}
		if (err < 0)
			return err;
	}
	if (w.n_positionals < args->min_positionals || args->command_at)
		return fail(args, "%s is missing", args->positional);
	return 0;
}
