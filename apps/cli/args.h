/* args.h - parse a subcommand's options from a table of rows.
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
	SW_ARG_PATH,   /* as SW_ARG_STRING; a file */
	SW_ARG_DTYPE,  /* out.dtype: name of an element type; "bf16" */
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
	/* "--size", "-b, --min": the last name is the long one */
	const char *name;
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

/* The command line of a subcommand; at most 64 rows. */
struct sw_args {
	const char *name;    /* as typed: "sumwire bench" */
	const char *summary; /* purpose, one line */
	const struct sw_arg *rows;
	uint32_t n_rows;
	/* Positional arguments: their name in the help ("FILE"; NULL: the
	 * command takes none), their number, and the list that receives
	 * them. */
	const char *positional;
	uint32_t min_positionals, max_positionals;
	struct sw_arg_list *positionals;
	/* For a command that runs another command: options end at the first
	 * word that is not an option, and its index goes here.  @positional
	 * names the word, which is required.  NULL: no such word. */
	int *command_at;
};

enum { SW_ARGS_HELP = 1 };

/* As the only argument, it requests the names of all options or all commands
 * (completion.bash). */
#define SW_ARGS_COMPLETE "--complete"

/* sw_args_parse - parse the words from @argv[1] on into the variables of the
 * rows.  Accepts "--name value" and "--name=value"; "--" ends the options.  If
 * an option occurs twice, its last value counts; a list keeps all values.
 * Every command has --help and --version.  Thread: any, one at a time.
 * Returns 0: go on; SW_ARGS_HELP: it printed help or version to stdout, exit 0;
 * SW_EINVAL: it printed the error to stderr with the nearest name, exit 2
 * (variables may have changed). */
int sw_args_parse(const struct sw_args *args, int argc, char **argv);

#endif
