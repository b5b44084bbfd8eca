/* args.h - options of a subcommand from one table of rows.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_ARGS_H
#define SW_APPS_CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "sum/dtype.h"

enum sw_arg_type {
	SW_ARG_FLAG,   /* out.flag: no value; true when given */
	SW_ARG_U32,    /* out.u32: whole number */
	SW_ARG_U64,    /* out.u64: whole number */
	SW_ARG_BYTES,  /* out.u64: bytes; "8192", "4MiB", "4M" */
	SW_ARG_TIME,   /* out.u64: nanoseconds; "20us", "10s" */
	SW_ARG_RATE,   /* out.u64: bits per second; "10Gb/s" */
	SW_ARG_DOUBLE, /* out.real: finite, >= 0 */
	SW_ARG_STRING, /* out.string: borrowed from argv */
	SW_ARG_PATH,   /* the same */
	SW_ARG_DTYPE,  /* out.dtype: an element type by its name; "bf16" */
	SW_ARG_LIST,   /* out.list: one item each time the option is given */
};

enum { SW_ARG_LIST_MAX = 64 };

struct sw_arg_list {
	uint32_t n;
	const char *items[SW_ARG_LIST_MAX]; /* borrowed from argv */
};

/* One option.  Before parsing, the variable at @out holds the default; --help
 * prints the default if it is within the bounds.  @min and @max bound numbers,
 * in base units (bytes, ns, bits per second); both 0: no bounds. */
struct sw_arg {
	const char *name; /* "--size", "-b, --min": the last one is long */
	enum sw_arg_type type;
	union {
		bool *flag;
		uint32_t *u32;
		uint64_t *u64;
		double *real;
		const char **string;
		enum sw_dtype *dtype;
		struct sw_arg_list *list;
	} out;
	double min, max;
	const char *help; /* one line, lower case, no full stop */
};

/* A subcommand's command line; at most 64 rows. */
struct sw_args {
	const char *name;    /* as typed: "sumwire bench" */
	const char *summary; /* purpose, one line */
	const struct sw_arg *rows;
	uint32_t n_rows;
	/* Positional arguments: their name in the help ("FILE"; NULL: the
	 * command takes none), their number, and their destination. */
	const char *positional;
	uint32_t min_positionals, max_positionals;
	struct sw_arg_list *positionals;
	/* For a command that runs another one: the first word that is not an
	 * option ends the options, and its index goes here.  @positional names
	 * the word, which is required.  NULL: there is no such word. */
	int *command_at;
};

enum { SW_ARGS_HELP = 1 };

/* The only word of a command line that asks for the names of all options, or of
 * all commands (completion.bash). */
#define SW_ARGS_COMPLETE "--complete"

/* sw_args_parse - read @argv[1] on into the variables the rows point to.  Takes
 * "--name value" and "--name=value"; "--" ends the options.  If an option is
 * given twice, the last value counts; a list has all.  Every command has --help
 * and --version.  Returns 0: go on; SW_ARGS_HELP: one of them was printed to
 * stdout, exit 0; SW_EINVAL: the error was printed to stderr with the nearest
 * name, exit 2 (variables may have changed). Thread: any, one at a time. */
int sw_args_parse(const struct sw_args *args, int argc, char **argv);

#endif
