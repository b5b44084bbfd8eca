/* cost_count.c - instructions by stage, as callgrind counts them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Callgrind separates functions by their callers.  It writes
 * "fn=f32_add'sw_sum_fold'…'server_push'…", innermost first, and below it lines
 * with a position and the number of instructions there.  The instructions
 * belong to the first stage in that chain.  If a kernel precedes the stage, its
 * kind is their purpose.
 */
#include "apps/cost/cost_count.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/scratch.h"
#include "engine/base/error.h"

enum {
	LINE_BYTES = 1 << 14,
	FILE_BYTES = SW_SCRATCH_BYTES + 16,
	NO_VALGRIND = 127,
};

#define CALLERS "24" /* longest chain from a kernel to its stage, and more */

/* Parts, by the beginning of a function's name. */
static const struct {
	const char *name;
	enum cost_part part;
} kernels[] = {
	{"sw_crc32c", COST_CRC},
	{"crc", COST_CRC},
	{"polyval", COST_CRC}, /* POLYVAL, which replaces the CRC */
	{"f32_", COST_ADD},
	{"copy_", COST_COPY},
	{"stream", COST_COPY},
	{"mem", COST_COPY},
	{"__mem", COST_COPY},
	{"wire_", COST_PORT},
};

#define STAGE_NAME(number, function, text) #function,
static const char *const stages[] = {COST_STAGES(STAGE_NAME)};
#undef STAGE_NAME

/* --- callgrind's output --- */

static enum cost_part part_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (!strncmp(name, kernels[i].name, strlen(kernels[i].name)))
			return kernels[i].part;
	return COST_ENGINE;
}

static uint32_t stage_of(const char *name)
{
	for (uint32_t i = 0; i < COST_N_STAGES; i++)
		if (!strcmp(name, stages[i]))
			return i;
	return COST_N_STAGES;
}

/* Return the counter for the instructions of a chain of callers; NULL: none. */
static uint64_t *place_of(char *chain, struct cost_counts *out)
{
	enum cost_part part = COST_ENGINE;
	char *rest = NULL;

	for (char *name = strtok_r(chain, "'\n", &rest); name;
		name = strtok_r(NULL, "'\n", &rest)) {
		uint32_t stage;

		name[strcspn(name, ".@")] = 0; /* .cold, @GLIBC_… */
		stage = stage_of(name);
		if (stage < COST_N_STAGES)
			return &out->instructions[stage][part];
		if (part_of(name))
			part = part_of(name);
	}
	return NULL;
}

/* Add up a function's own lines, without its callees'. */
static int read_profile(const char *path, struct cost_counts *out)
{
	FILE *f = fopen(path, "r");
	char *line = malloc(LINE_BYTES);
	uint64_t *place = NULL;
	bool is_call = false;

	while (f && line && fgets(line, LINE_BYTES, f)) {
		unsigned long long n;

		if (!strncmp(line, "fn=", 3))
			place = place_of(line + 3, out);
		else if (sscanf(line, "%*u %llu", &n) == 1 && !is_call && place)
			*place += n;
		is_call = !strncmp(line, "calls=", 6);
	}
	free(line);
	if (!f || !line)
		return SW_EIO;
	fclose(f);
	return 0;
}

static int read_units(const char *path, struct cost_counts *out)
{
	FILE *f = fopen(path, "r");
	unsigned long long n;
	char name[32];

	if (!f)
		return SW_EIO;
	while (fscanf(f, "%31s %llu", name, &n) == 2) {
		uint32_t stage = stage_of(name);

		if (stage < COST_N_STAGES)
			out->steps.units[stage] = n;
	}
	fclose(f);
	return out->steps.units[COST_SERVER_PUSH] ? 0 : SW_EIO;
}

/* --- running valgrind --- */

/* Execute valgrind. glibc must copy by vectors, since callgrind counts "rep
 * movsb" byte by byte. */
static void become_valgrind(const struct cost_shape *shape, const char *self,
	const char *profile, const char *units)
{
	char out[FILE_BYTES + 32], bytes[24], tensors[12], members[12],
		local[12];
	const char *flags[3] = {NULL};
	uint32_t n = 0;
	int fd = open(units, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	snprintf(out, sizeof(out), "--callgrind-out-file=%s", profile);
	snprintf(
		bytes, sizeof(bytes), "%llu", (unsigned long long)shape->bytes);
	snprintf(tensors, sizeof(tensors), "%u", shape->n_tensors);
	snprintf(members, sizeof(members), "%u", shape->n_members);
	snprintf(local, sizeof(local), "%u", shape->n_local);
	if (shape->is_encrypted)
		flags[n++] = "--encrypted";
	else if (shape->is_keyed)
		flags[n++] = "--keyed";
	if (shape->is_collective)
		flags[n++] = "--collective";
	if (shape->is_gather)
		flags[n++] = "--all-gather";
	setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-ERMS,-FSRM", 1);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(1);
	execlp("valgrind", "valgrind", "-q", "--tool=callgrind",
		"--separate-callers=" CALLERS, "--compress-strings=no",
		"--compress-pos=no", out, self, "engine", "--stepped", "--size",
		bytes, "--tensors", tensors, "--members", members,
		"--local-ranks", local, flags[0], flags[1], flags[2],
		(char *)NULL);
	_exit(errno == ENOENT ? NO_VALGRIND : 1);
}

static int run(
	const struct cost_shape *shape, const char *profile, const char *units)
{
	char self[4096] = "";
	int status = 0;
	pid_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return SW_EIO;
	fflush(NULL);
	pid = fork();
	if (!pid)
		become_valgrind(shape, self, profile, units);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return SW_EIO;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_VALGRIND) {
		fprintf(stderr, "sumwire-lab engine: --instructions needs "
				"valgrind, which is not installed\n");
		return SW_ENOENT;
	}
	return status ? SW_EIO : 0;
}

int sw_cost_count(const struct cost_shape *shape, struct cost_counts *out)
{
	char profile[FILE_BYTES], units[FILE_BYTES];
	struct sw_scratch scratch;
	int err;

	*out = (struct cost_counts){0};
	if (sw_scratch_open(&scratch, "/tmp", "sumwire-count"))
		return SW_EIO;
	snprintf(profile, sizeof(profile), "%s/profile", scratch.path);
	snprintf(units, sizeof(units), "%s/units", scratch.path);
	err = run(shape, profile, units);
	if (!err)
		err = read_units(units, out);
	if (!err)
		err = read_profile(profile, out);
	if (err == SW_EIO)
		fprintf(stderr, "sumwire-lab engine: counting by valgrind "
				"failed\n");
	sw_scratch_close(&scratch);
	return err;
}
