/* cmd.h - the commands of sumwire and of sumwire-lab.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each of them is the run of a struct sw_command (commands.h).
 */
#ifndef SW_APPS_CLI_CMD_H
#define SW_APPS_CLI_CMD_H

/* sumwire */
int sw_cmd_agent(int argc, char **argv);
int sw_cmd_bench(int argc, char **argv);
int sw_cmd_capture(int argc, char **argv);
int sw_cmd_conf(int argc, char **argv);
int sw_cmd_doctor(int argc, char **argv);
int sw_cmd_key(int argc, char **argv);
int sw_cmd_metrics(int argc, char **argv);
int sw_cmd_ps(int argc, char **argv);
int sw_cmd_ras(int argc, char **argv);
int sw_cmd_run(int argc, char **argv);
int sw_cmd_server(int argc, char **argv);
int sw_cmd_status(int argc, char **argv);
int sw_cmd_stats(int argc, char **argv);
int sw_cmd_top(int argc, char **argv);
int sw_cmd_trace(int argc, char **argv);

/* sumwire-lab */
int sw_cmd_engine(int argc, char **argv);
int sw_cmd_figures(int argc, char **argv);
int sw_cmd_kernels(int argc, char **argv);
int sw_cmd_plan(int argc, char **argv);
int sw_cmd_replay(int argc, char **argv);
int sw_cmd_sim(int argc, char **argv);
int sw_cmd_topo(int argc, char **argv);
int sw_cmd_tune(int argc, char **argv);

#endif
