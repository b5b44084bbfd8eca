/* suspects.h - sentences about the paths and processes that slow a job down.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_SUSPECTS_H
#define SW_APPS_CLI_SUSPECTS_H

#include <stdio.h>

#include "pmd/host/daemons.h"

enum { SW_WHO = 96, SW_DURATION = 32 };

/* sw_suspects_duration - write a duration: "0.085 ms", "1.5 s".  Returns @out.
 */
const char *sw_suspects_duration(double ns, char out[SW_DURATION]);

/* sw_suspects_who - write the name of member @m: "ranks 4-7 (node gpu1)", or
 * "agent 1" before it has joined. */
void sw_suspects_who(
	const struct sw_daemon_job *job, uint32_t m, char out[SW_WHO]);

/* sw_suspects_process - return the state of process @pid: "running", "stopped",
 * "in a debugger", "waiting for a disk", "dead"; "unknown" if /proc does not
 * tell. */
const char *sw_suspects_process(pid_t pid);

/* sw_suspects_print - print a line for each cause that slows the job down: slow
 * or lossy paths, a small payload, processes that cannot run.
 * sw_suspects_print_daemon - print a line for each port whose link has gone
 * down and up, and for each polling core that lacks a CPU. */
void sw_suspects_print(const struct sw_daemon_job *job, FILE *to);
void sw_suspects_print_daemon(const struct sw_found_daemon *d, FILE *to);

#endif
