/* commands.h - a program with several commands.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_COMMANDS_H
#define SW_APPS_CLI_COMMANDS_H

#include <stdint.h>

struct sw_command {
	const char *name; /* "bench" */
	/* Run the command; @argv begins with its name.  Returns the exit
	 * status: 0 success, 1 failure, 2 a wrong command line.  May run as
	 * long as the process lives. */
	int (*run)(int argc, char **argv);
	const char *help; /* a verb phrase of at most 60 characters */
};

struct sw_program {
	const char *name, *summary; /* "sumwire", one line */
	const struct sw_command *commands;
	uint32_t n_commands;
};

/* sw_program_run - run the command that @argv[1] names, or print the help or
 * the version.  Returns the exit status.  For an unknown command it returns 2,
 * and the error names the nearest command. */
int sw_program_run(const struct sw_program *p, int argc, char **argv);

#endif
