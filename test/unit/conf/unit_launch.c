/* unit_launch.c - which launcher started a process, and as which rank.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf/launch.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The environment of the current case, "A=1 B=2": getenv takes no context. */
static const char *environment;

static char *get(const char *name)
{
	/* the code uses at most two values at a time */
	static char values[2][256];
	static int turn;
	char *value = values[turn ^= 1];
	const char *s = environment;
	size_t n = strlen(name);

	while (*s) {
		size_t len = strcspn(s, " ");

		if (len > n && !strncmp(s, name, n) && s[n] == '=') {
			snprintf(value, sizeof(values[0]), "%.*s",
				(int)(len - n - 1), s + n + 1);
			return value;
		}
		s += len + (s[len] == ' ');
	}
	return NULL;
}

static int read_env(const char *text, struct sw_launch *l, char *why)
{
	environment = text;
	why[0] = '\0';
	return sw_launch_read(l, get, why);
}

#define TORCH "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 "
#define GROUP "GROUP_RANK=1 GROUP_WORLD_SIZE=2 "
#define OMPI                                             \
	"OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 " \
	"OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4 "
#define STEP                                                              \
	"SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 "          \
	"SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4(x2) SLURM_NODEID=1 " \
	"SLURM_STEP_NUM_NODES=2 "

static void launch_read__each(void **state)
{
	static const struct {
		const char *env;
		/* -1: unknown */
		int rank, size, local_rank, local_size, node_rank, nodes;
		const char *variable; /* the variable that gave the rank */
	} rows[] = {
		{"", -1, -1, -1, -1, -1, -1, NULL},
		{TORCH, 5, 8, 1, 4, -1, -1, "RANK"},
		{TORCH GROUP, 5, 8, 1, 4, 1, 2, "RANK"},
		{OMPI, 5, 8, 1, 4, -1, -1, "OMPI_COMM_WORLD_RANK"},
		{STEP, 5, 8, 1, 4, 1, 2, "SLURM_PROCID"},
		{"PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", 5,
			8, 1, 4, -1, -1, "PMI_RANK"},
		{"SUMWIRE_RANK=5 SUMWIRE_SIZE=8 SUMWIRE_LOCAL_RANK=1", 5, 8, 1,
			-1, -1, -1, "SUMWIRE_RANK"},
		{"DMLC_ROLE=worker DMLC_WORKER_ID=1 DMLC_NUM_WORKER=2", -1, -1,
			-1, -1, 1, 2, NULL},
		/* a variable without its launcher's mark does not count */
		{"RANK=5", -1, -1, -1, -1, -1, -1, NULL},
		{"SLURM_PROCID=0 SLURM_NTASKS=8", -1, -1, -1, -1, -1, -1, NULL},
		{"DMLC_NUM_WORKER=2", -1, -1, -1, -1, -1, -1, NULL},
		{"RANK= WORLD_SIZE=", -1, -1, -1, -1, -1, -1, NULL},
		/* two launchers that agree */
		{OMPI TORCH, 5, 8, 1, 4, -1, -1, "RANK"},
		{OMPI STEP, 5, 8, 1, 4, 1, 2, "OMPI_COMM_WORLD_RANK"},
		{STEP "PMI_RANK=5 PMI_SIZE=8", 5, 8, 1, 4, 1, 2, "PMI_RANK"},
		/* one launcher inside the other */
		{TORCH GROUP "SLURM_STEP_ID=0 SLURM_PROCID=1 "
			     "SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0",
			5, 8, 1, 4, 1, 2, "RANK"},
		{OMPI "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
			5, 8, 1, 4, -1, -1, "OMPI_COMM_WORLD_RANK"},
		{OMPI "SLURM_PROCID=0 SLURM_NTASKS=8", 5, 8, 1, 4, -1, -1,
			"OMPI_COMM_WORLD_RANK"},
		/* the user's choice wins */
		{OMPI "RANK=0 WORLD_SIZE=8 SUMWIRE_LAUNCHER=openmpi", 5, 8, 1,
			4, -1, -1, "OMPI_COMM_WORLD_RANK"},
		{OMPI "SUMWIRE_LAUNCHER=none", -1, -1, -1, -1, -1, -1, NULL},
		{"RANK=5 WORLD_SIZE=8 SUMWIRE_LAUNCHER=torchrun", 5, 8, -1, -1,
			-1, -1, "RANK"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const int wanted[] = {rows[i].rank, rows[i].size,
			rows[i].local_rank, rows[i].local_size,
			rows[i].node_rank, rows[i].nodes};
		char why[SW_LAUNCH_WHY_BYTES];
		struct sw_launch l;
		const char *variable;

		if (read_env(rows[i].env, &l, why))
			fail_msg("%s: %s", rows[i].env, why);
		for (int k = 0; k < 6; k++)
			if (sw_launch_number(&l,
				    (enum sw_launch_key)(SW_LAUNCH_RANK + k)) !=
				wanted[k])
				fail_msg("%s: key %d", rows[i].env, k);
		variable = l.values[SW_LAUNCH_RANK].variable;
		if (rows[i].variable)
			assert_string_equal(variable, rows[i].variable);
		else
			assert_null(variable);
	}
	(void)state;
}

static void launch_read__refused(void **state)
{
	static const struct {
		const char *env, *why;
	} rows[] = {
		{"RANK=x WORLD_SIZE=8", "RANK=x is not a whole number"},
		{"RANK=-1 WORLD_SIZE=8", "RANK=-1 is not"},
		{"RANK=07 WORLD_SIZE=8", "RANK=07 is not"},
		{"RANK=2147483648 WORLD_SIZE=8", "RANK=2147483648 is not"},
		{"DMLC_ROLE=scheduler", "there is no scheduler"},
		{"DMLC_ROLE=boss", "not one of worker, server, joint"},
		{"SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=2(x2) "
		 "SLURM_NODEID=2",
			"has no number of tasks for SLURM_NODEID=2"},
		{"SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=(x2)",
			"has no number"},
		{"SUMWIRE_LAUNCHER=openmp",
			"openmp is not one of none, run, torchrun, openmpi"},
		{OMPI "RANK=0 WORLD_SIZE=8",
			"RANK=0 (torchrun) contradicts OMPI_COMM_WORLD_RANK=5 "
			"(OpenMPI)"},
		{OMPI "WORLD_SIZE=4", "WORLD_SIZE=4 (torchrun) contradicts "
				      "OMPI_COMM_WORLD_SIZE=8"},
		{OMPI STEP "RANK=5 WORLD_SIZE=9", "WORLD_SIZE=9"},
		/* a torchrun that does not match its Slurm task */
		{TORCH GROUP "SLURM_STEP_ID=0 SLURM_PROCID=0 "
			     "SLURM_STEP_NUM_TASKS=2",
			"RANK=5 (torchrun) contradicts SLURM_PROCID=0 "
			"(Slurm)"},
		/* four jobs of one process each */
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "
		 "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4",
			"SUMWIRE_LAUNCHER=openmpi or slurm"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char why[SW_LAUNCH_WHY_BYTES];
		struct sw_launch l;

		assert_int_equal(read_env(rows[i].env, &l, why), SW_ECONF);
		if (!strstr(why, rows[i].why))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].env,
				why, rows[i].why);
	}
	(void)state;
}

static void launch_read__tasks_per_node(void **state)
{
	static const struct {
		const char *list, *node;
		int tasks;
	} rows[] = {
		{"3", "0", 3},
		{"2(x3),1", "2", 2},
		{"2(x3),1", "3", 1},
		{"1,12(x2),7", "2", 12},
		{"1,12(x2),7", "3", 7},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char env[128], why[SW_LAUNCH_WHY_BYTES];
		struct sw_launch l;

		snprintf(env, sizeof(env),
			"SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=%s "
			"SLURM_NODEID=%s",
			rows[i].list, rows[i].node);
		assert_int_equal(read_env(env, &l, why), 0);
		assert_int_equal(sw_launch_number(&l, SW_LAUNCH_LOCAL_SIZE),
			rows[i].tasks);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launch_read__each),
		cmocka_unit_test(launch_read__refused),
		cmocka_unit_test(launch_read__tasks_per_node),
	};

	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
