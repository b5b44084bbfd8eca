/* rank_env.c - the environment of the ranks of sumwire run.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/launch/rank_env.h"

static void set_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

/* Set the path of the library that came with this command, for programs that
 * load it, such as those in Python. */
static void library_env_set(void)
{
	static const char *const folders[] = {
		"../pmd/client", SW_LIBDIR, "../lib"};
	char exe[PATH_MAX] = "", path[2 * PATH_MAX];

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		bool is_absolute = folders[i][0] == '/';

		snprintf(path, sizeof(path), "%.*s%s/" SW_SONAME,
			is_absolute ? 0 : (int)(strrchr(exe, '/') + 1 - exe),
			exe, folders[i]);
		if (!access(path, R_OK))
			/* keeps a value that the user has set */
			setenv("SUMWIRE_LIBRARY", path, 0);
	}
}

/* Set sumwire's variables and torchrun's. All ranks run on this machine. */
void sw_rank_env_set(const struct sw_run *r, uint32_t rank, int port)
{
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{"SUMWIRE_RANK", rank},
		{"SUMWIRE_SIZE", r->n_ranks},
		{"SUMWIRE_LOCAL_RANK", rank},
		{"SUMWIRE_LOCAL_SIZE", r->n_ranks},
		{"RANK", rank},
		{"WORLD_SIZE", r->n_ranks},
		{"LOCAL_RANK", rank},
		{"LOCAL_WORLD_SIZE", r->n_ranks},
	};
	char agent[SW_NET_PATH_BYTES];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		set_number(numbers[i].name, numbers[i].value);
	sw_net_agent(&r->net, rank / r->net.n_local, agent);
	setenv("SUMWIRE_AGENT", agent, 1);
	/* overrides an outer launcher's value */
	setenv("SUMWIRE_LAUNCHER", "run", 1);
	library_env_set();
	if (getenv("MASTER_ADDR") || getenv("MASTER_PORT"))
		return; /* the user has chosen */
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	set_number("MASTER_PORT", (uint32_t)port);
}
