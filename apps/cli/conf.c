/* conf.c - sumwire conf: check, explain and print configurations.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/log.h"
#include "engine/base/error.h"

static int check(const char *path)
{
	struct sw_conf conf;
	struct sw_log log;

	sw_log_init(&log, NULL, SW_LOG_WARN);
	if (sw_conf_load(path, &conf, &log) < 0)
		return 1;
	printf("%s: OK\n", path);
	return 0;
}

static int print(const char *path)
{
	struct sw_conf_origins *origins = malloc(sizeof(*origins));
	struct sw_conf conf;
	struct sw_log log;
	int err = origins ? 0 : SW_ENOMEM;

	sw_log_init(&log, NULL, SW_LOG_WARN);
	if (!err)
		err = sw_conf_load_origins(path, &conf, origins, &log);
	if (!err)
		sw_conf_print(&conf, origins, stdout);
	free(origins);
	return err < 0;
}

static int explain(const char *key)
{
	const char *near;

	if (sw_conf_explain(key, stdout, &near) == 0)
		return 0;
	fprintf(stderr, "sumwire conf: unknown key %s", key);
	if (near)
		fprintf(stderr, "; did you mean %s?", near);
	fprintf(stderr, "\n");
	return 1;
}

int sw_cmd_conf(int argc, char **argv)
{
	const char *check_path = NULL, *print_path = NULL, *key = NULL;
	bool is_reference = false;
	const struct sw_arg rows[] = {
		{"--check", SW_ARG_PATH, {.string = &check_path}, 0, 0,
			"validate a file and list all its errors"},
		{"--explain", SW_ARG_STRING, {.string = &key}, 0, 0,
			"describe a key, such as ring or port.ring, or a "
			"section"},
		{"--print", SW_ARG_PATH, {.string = &print_path}, 0, 0,
			"print every option of a file and where its value "
			"comes from"},
		{"--reference", SW_ARG_FLAG, {.flag = &is_reference}, 0, 0,
			"print all options as a page"},
	};
	const struct sw_args args = {
		.name = "sumwire conf",
		.summary = "check, explain and print configurations",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
	};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (!!check_path + !!print_path + !!key + is_reference != 1) {
		fprintf(stderr, "sumwire conf: give one of --check, --explain, "
				"--print and --reference\n");
		return 2;
	}
	if (check_path)
		return check(check_path);
	if (print_path)
		return print(print_path);
	if (key)
		return explain(key);
	sw_conf_reference(stdout);
	return 0;
}
