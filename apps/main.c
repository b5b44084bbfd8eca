/* main.c - find the subcommand and run it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cmd.h"
#include "conf/value.h"
#include <sumwire/version.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"server", sw_cmd_server, "sum what agents push (on a CPU machine)"},
	{"agent", sw_cmd_agent, "serve the training processes of a machine"},
	{"run", sw_cmd_run, "run a program in N processes on this machine"},
	{"train", sw_cmd_train, "run a small real training over sumwire"},
	{"bench", sw_cmd_bench, "measure push and pull bandwidth"},
	{"plan", sw_cmd_plan, "compute shares, times and gains of a cluster"},
	{"topo", sw_cmd_topo,
		"show a machine's GPUs and NICs, and how they sum"},
	{"tune", sw_cmd_tune, "search for the best partition and credit"},
	{"replay", sw_cmd_replay,
		"replay a model's iterations over the real "
		"engine"},
	{"stats", sw_cmd_stats, "print the counters of a running daemon"},
	{"conf", sw_cmd_conf, "check, explain and print configurations"},
};

static int help_print(void)
{
	printf("sumwire - sum gradients over plain Ethernet\n\n"
	       "usage: sumwire COMMAND [options]\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	printf("\nsumwire COMMAND --help shows the options of a command.\n");
	return 0;
}

static int unknown_command(const char *name)
{
	struct sw_nearest near;

	sw_nearest_init(&near, name);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		sw_nearest_add(&near, commands[i].name);
	fprintf(stderr, "sumwire: there is no command \"%s\"", name);
	if (near.best)
		fprintf(stderr, "; did you mean %s?", near.best);
	fprintf(stderr, " (sumwire --help shows all commands)\n");
	return 2;
}

/* DPDK's libraries use SSE4.2 before main(). */
static void need_sse42(void)
{
	static const char text[] =
		"sumwire: this CPU has no SSE4.2, which DPDK needs; on such a "
		"machine only libsumwire works\n";

	__builtin_cpu_init();
	if (__builtin_cpu_supports("sse4.2"))
		return;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(
	void) = need_sse42;

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "sumwire: a command is missing (sumwire --help "
				"shows all commands)\n");
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
		return help_print();
	if (!strcmp(argv[1], "--version")) {
		printf("sumwire %s\n", SW_VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return unknown_command(argv[1]);
}
