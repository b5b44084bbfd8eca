/* launch.h - rank, size, role and addresses from launchers.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * torchrun, mpirun, srun and others describe a process in its environment;
 * launch.def lists the variables.  The daemons take them as defaults of options
 * (environ.c). libsumwire compares them with the agent's values.
 */
#ifndef SW_CONF_LAUNCH_H
#define SW_CONF_LAUNCH_H

#include <stdint.h>

enum sw_launch_key {
	SW_LAUNCH_ROLE, /* "agent", "server", as [node] role */
	SW_LAUNCH_RANK, /* number of this process among all launched */
	SW_LAUNCH_SIZE,
	SW_LAUNCH_LOCAL_RANK, /* number among the processes on this machine */
	SW_LAUNCH_LOCAL_SIZE,
	SW_LAUNCH_NODE_RANK, /* number of this machine */
	SW_LAUNCH_NODES,
	SW_LAUNCH_SERVERS, /* number of servers */
	SW_LAUNCH_ROOT_IP, /* address of the first machine */
	SW_LAUNCH_ROOT_PORT,
	SW_LAUNCH_MODE, /* value of [job] mode */
	SW_LAUNCH_KEYS,
};

enum { SW_LAUNCH_TEXT_BYTES = 48, SW_LAUNCH_WHY_BYTES = 320 };

struct sw_launch_value {
	const char *variable;            /* NULL: unset */
	const char *launcher;            /* "OpenMPI" */
	char said[SW_LAUNCH_TEXT_BYTES]; /* original text, perhaps truncated */
	/* Text as in a configuration file.  A number has neither sign nor
	 * leading zero, and fits into 31 bits. */
	char text[SW_LAUNCH_TEXT_BYTES];
};

struct sw_launch {
	struct sw_launch_value values[SW_LAUNCH_KEYS];
};

/* sw_launch_read - read the variables that launchers have set for this process.
 * If one launcher has started another, the inner one counts, and it must be
 * consistent with the outer one.  SUMWIRE_LAUNCHER names the launcher that
 * counts, or "none".  Thread: any, while no thread changes the environment.
 * @get  getenv, or its replacement
 * @why  on error, the cause and the remedy (SW_LAUNCH_WHY_BYTES)
 * Errors: SW_ECONF a variable is malformed, or two launchers contradict each
 * other. */
int sw_launch_read(
	struct sw_launch *out, char *(*get)(const char *name), char *why);

/* sw_launch_number - return the number of @key; -1: unset. */
int64_t sw_launch_number(const struct sw_launch *l, enum sw_launch_key key);

#endif
