/* main_lab.c - sumwire-lab: studies of clusters, jobs and the engine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/cmd.h"
#include "apps/cli/commands.h"

static const struct sw_command commands[] = {
	{"plan", sw_cmd_plan, "estimate the speed-up from adding CPU servers"},
	{"topo", sw_cmd_topo,
		"show a machine's GPU topology and a plan for its sums"},
	{"tune", sw_cmd_tune, "search for the best partition and credit"},
	{"replay", sw_cmd_replay,
		"replay a model's iterations over real daemons"},
	{"sim", sw_cmd_sim, "run the engine in a simulated network"},
	{"figures", sw_cmd_figures, "compare our numbers with those of papers"},
	{"engine", sw_cmd_engine, "measure the engine's CPU time per packet"},
	{"kernels", sw_cmd_kernels, "measure the summation kernels alone"},
};

int main(int argc, char **argv)
{
	static const struct sw_program lab = {.name = "sumwire-lab",
		.summary = "study what sumwire does, without a cluster",
		.commands = commands,
		.n_commands = sizeof(commands) / sizeof(commands[0])};

	return sw_program_run(&lab, argc, argv);
}
