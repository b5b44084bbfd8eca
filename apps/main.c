/* main.c - sumwire: the daemons and what users and operators run.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "apps/cli/cmd.h"
#include "apps/cli/commands.h"

static const struct sw_command commands[] = {
	{"server", sw_cmd_server, "run a summation server"},
	{"agent", sw_cmd_agent,
		"run the agent of this machine's training processes"},
	{"run", sw_cmd_run, "run a program in N processes on this machine"},
	{"bench", sw_cmd_bench, "measure push_pull and collectives"},
	{"ps", sw_cmd_ps, "list the daemons and jobs of this machine"},
	{"status", sw_cmd_status,
		"show the ranks of a job, and which ones it waits for"},
	{"stats", sw_cmd_stats, "print the counters of a running daemon"},
	{"top", sw_cmd_top, "show live rates of daemons and jobs"},
	{"trace", sw_cmd_trace, "record events of tensors and chunks"},
	{"capture", sw_cmd_capture,
		"write the frames of daemons for Wireshark"},
	{"ras", sw_cmd_ras, "answer queries in the form of NCCL's RAS"},
	{"metrics", sw_cmd_metrics, "export all counters to Prometheus"},
	{"doctor", sw_cmd_doctor,
		"find what is wrong with this machine or a path"},
	{"conf", sw_cmd_conf, "check, explain and print configurations"},
	{"key", sw_cmd_key, "create a job's secret"},
};

#ifdef __x86_64__
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
#endif

int main(int argc, char **argv)
{
	static const struct sw_program sumwire = {.name = "sumwire",
		.summary = "sum gradients over plain Ethernet",
		.commands = commands,
		.n_commands = sizeof(commands) / sizeof(commands[0])};

	return sw_program_run(&sumwire, argc, argv);
}
