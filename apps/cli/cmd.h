/* cmd.h - the subcommands of sumwire.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_CMD_H
#define SW_APPS_CLI_CMD_H

/* Each takes what follows "sumwire", its own name first, and returns the exit
 * status: 0 all went right, 1 it went wrong, 2 the command line is wrong.
 * They may run for as long as the process lives. */
int sw_cmd_agent(int argc, char **argv);
int sw_cmd_bench(int argc, char **argv);
int sw_cmd_bench_engine(int argc, char **argv); /* "bench engine" */
int sw_cmd_bench_sum(int argc, char **argv);    /* "bench sum" */
int sw_cmd_conf(int argc, char **argv);
int sw_cmd_plan(int argc, char **argv);
int sw_cmd_replay(int argc, char **argv);
int sw_cmd_run(int argc, char **argv);
int sw_cmd_server(int argc, char **argv);
int sw_cmd_stats(int argc, char **argv);
int sw_cmd_topo(int argc, char **argv);
int sw_cmd_train(int argc, char **argv);
int sw_cmd_tune(int argc, char **argv);

#endif
