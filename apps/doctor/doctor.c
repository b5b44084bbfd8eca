/* doctor.c - sumwire doctor: look for problems before a job meets them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/log.h"
#include "apps/doctor/checks.h"
#include "apps/doctor/listen.h"
#include "apps/doctor/path.h"
#include "apps/doctor/patience.h"
#include "engine/base/error.h"
#include "sum/sum.h"

enum {
	PORT = 5700,      /* [serve] udp_port */
	CHECK_MS = 20000, /* time limit of a check */
};

struct doctor {
	const char *config, *listen, *peer;
	bool is_json;
	uint64_t limit_ns;
	struct sw_arg_list peers;
};

static int parse(struct doctor *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"},
		{"-c, --config", SW_ARG_PATH, {.string = &o->config}, 0, 0,
			"also check the needs of this configuration"},
		{"--listen", SW_ARG_STRING, {.string = &o->listen}, 0, 0,
			"answer another machine's doctor at [ADDRESS:]PORT"},
		{"--for", SW_ARG_TIME, {.u64 = &o->limit_ns}, 1e9, 86400e9,
			"longest time to listen"},
	};
	const struct sw_args args = {.name = "sumwire doctor",
		.summary = "look for faults of this machine, and of the path "
			   "to PEER[:PORT]",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "PEER",
		.max_positionals = 1,
		.positionals = &o->peers};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err;
	o->peer = o->peers.n ? o->peers.items[0] : NULL;
	if (!o->listen || (!o->peer && !o->config && !o->is_json))
		return 0;
	fprintf(stderr, "sumwire doctor: --listen excludes PEER, --config and "
			"--json\n");
	return SW_EINVAL;
}

/* Try to make shared memory as an agent does.  Returns 0, or errno. */
static int memfd_try(void)
{
	int fd = memfd_create("sumwire-doctor", MFD_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (ftruncate(fd, 4096))
		err = errno;
	close(fd);
	return err;
}

/* Return whether the module of apps/torch/quick.c lies where the Python package
 * looks for it: in the build folder, or in the package of this command. */
static bool quick_exists(void)
{
	static const char *const places[] = {
		"quick.abi3.so", "../lib/quick.abi3.so"};
	char exe[PATH_MAX], path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	for (uint32_t i = 0; n > 0 && i < 2; i++) {
		exe[n] = '\0';
		snprintf(path, sizeof(path), "%.*s/%s",
			(int)(strrchr(exe, '/') - exe), exe, places[i]);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

static void eyes_open(struct sw_eyes *e, const struct sw_conf *conf)
{
	const struct sw_sum *best = sw_sum_best(SW_SUM_AVX512);

	*e = (struct sw_eyes){.root = "",
		.conf = conf,
		.level = best->name,
		.is_level_low =
			best->level == SW_SUM_SCALAR && sw_sum_row(1, NULL),
		.memfd_errno = memfd_try(),
		.has_quick = quick_exists()};
}

static int look(const struct doctor *o, const struct sw_conf *conf)
{
	static const struct sw_doctor_check *const tables[] = {
		sw_doctor_system, sw_doctor_cores, sw_doctor_links};
	struct sw_doctor_report r = {.n = 0};
	union sw_echo_address to;
	struct sw_eyes e;
	char why[400];

	memset(&to, 0, sizeof(to));
	if (o->peer &&
		!sw_echo_address(o->peer, conf ? conf->serve.udp_port : PORT,
			&to, why, sizeof(why))) {
		fprintf(stderr, "sumwire doctor: %s\n", why);
		return 2;
	}
	eyes_open(&e, conf);
	for (uint32_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (sw_doctor_run(tables[i], &e, &r, CHECK_MS)) {
			fprintf(stderr,
				"sumwire doctor: cannot start a process "
				"for the checks\n");
			return 2;
		}
	if (o->peer)
		sw_doctor_path(&r, o->peer, &to);
	return sw_doctor_print(&r, o->is_json, stdout) || r.n_wrong;
}

int sw_cmd_doctor(int argc, char **argv)
{
	struct doctor o = {.limit_ns = UINT64_C(600000000000)};
	struct sw_conf conf;
	struct sw_log log;
	int err = parse(&o, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (o.listen)
		return sw_doctor_listen(o.listen, o.limit_ns);
	sw_log_init(&log, NULL, SW_LOG_ERROR);
	if (o.config && sw_conf_load(o.config, &conf, &log))
		return 2;
	return look(&o, o.config ? &conf : NULL);
}
