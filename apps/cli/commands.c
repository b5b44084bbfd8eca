/* commands.c - find the command of a program and run it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "apps/cli/args.h"
#include "conf/value.h"
#include <sumwire/version.h>

static int help_print(const struct sw_program *p)
{
	printf("%s - %s\n\nusage: %s COMMAND [options]\n\n", p->name,
		p->summary, p->name);
	for (uint32_t i = 0; i < p->n_commands; i++)
		printf("  %-10s %s\n", p->commands[i].name,
			p->commands[i].help);
	printf("\n%s COMMAND --help shows the options of a command.\n",
		p->name);
	return 0;
}

static int unknown_command(const struct sw_program *p, const char *name)
{
	struct sw_nearest near;

	sw_nearest_init(&near, name);
	for (uint32_t i = 0; i < p->n_commands; i++)
		sw_nearest_add(&near, p->commands[i].name);
	fprintf(stderr, "%s: unknown command \"%s\"", p->name, name);
	if (near.best)
		fprintf(stderr, "; did you mean %s?", near.best);
	fprintf(stderr, " (%s --help shows all commands)\n", p->name);
	return 2;
}

/* Report a failed flush: on a full disk the command must not succeed. */
static int flushed(const struct sw_program *p, const char *command, int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	fprintf(stderr, "%s %s: cannot write to stdout\n", p->name, command);
	return code ? code : 1;
}

static int run(const struct sw_program *p, int argc, char **argv)
{
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		!strcmp(argv[1], "help"))
		return help_print(p);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("%s %s\n", p->name, SW_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], SW_ARGS_COMPLETE)) {
		for (uint32_t i = 0; i < p->n_commands; i++)
			printf("%s\n", p->commands[i].name);
		printf("-h\n--help\n-V\n--version\n");
		return 0;
	}
	for (uint32_t i = 0; i < p->n_commands; i++)
		if (!strcmp(argv[1], p->commands[i].name))
			return p->commands[i].run(argc - 1, argv + 1);
	return unknown_command(p, argv[1]);
}

int sw_program_run(const struct sw_program *p, int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr,
			"%s: a command is missing (%s --help shows all "
			"commands)\n",
			p->name, p->name);
		return 2;
	}
	return flushed(p, argv[1], run(p, argc, argv));
}
