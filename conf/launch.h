/* launch.h - rank, size, role and addresses as launchers give them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * torchrun, mpirun, srun and others tell a process in its environment which one
 * it is; launch.def has the variables.  The daemons take them as defaults of
 * options (environ.c), libsumwire compares them with what its agent says.
 */
#ifndef SW_CONF_LAUNCH_H
#define SW_CONF_LAUNCH_H

#include <stdint.h>

enum sw_launch_key {
	SW_LAUNCH_ROLE, /* "agent", "server", as [node] role */
	SW_LAUNCH_RANK, /* number of this process among all launched */
	SW_LAUNCH_SIZE,
	SW_LAUNCH_LOCAL_RANK, /* among those on this machine */
	SW_LAUNCH_LOCAL_SIZE,
	SW_LAUNCH_NODE_RANK, /* of this machine */
	SW_LAUNCH_NODES,
	SW_LAUNCH_SERVERS, /* how many there are */
	SW_LAUNCH_ROOT_IP, /* address of the first machine */
	SW_LAUNCH_ROOT_PORT,
	SW_LAUNCH_MODE, /* as [job] mode */
	SW_LAUNCH_KEYS,
};

enum { SW_LAUNCH_TEXT_BYTES = 48, SW_LAUNCH_WHY_BYTES = 320 };

struct sw_launch_value {
	const char *variable;            /* NULL: not given */
	const char *launcher;            /* "OpenMPI" */
	char said[SW_LAUNCH_TEXT_BYTES]; /* as it stands there, maybe cut */
	/* As a configuration file has it; a number has neither sign nor leading
	 * zero and fits into 31 bits. */
	char text[SW_LAUNCH_TEXT_BYTES];
};

struct sw_launch {
	struct sw_launch_value values[SW_LAUNCH_KEYS];
};

/* sw_launch_read - read the variables that launchers have set for this process.
 * @get  getenv, or what stands in for it
 * @why  on error, what is wrong and what would be right (SW_LAUNCH_WHY_BYTES)
 * When one launcher has started another, the inner one counts, and it must fit
 * into the outer one.  SUMWIRE_LAUNCHER names the one that counts; "none":
 * none. Errors: SW_ECONF a variable is malformed, or two launchers contradict
 * each other.  Thread: any, while no other changes the environment. */
int sw_launch_read(
	struct sw_launch *out, char *(*get)(const char *name), char *why);

/* sw_launch_number - the number of @key, or -1 when it was not given. */
int64_t sw_launch_number(const struct sw_launch *l, enum sw_launch_key key);

#endif
