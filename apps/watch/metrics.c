/* metrics.c - sumwire metrics: the counters of all daemons, for Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/clock.h"
#include "apps/cli/cmd.h"
#include "apps/cli/find.h"
#include "apps/cli/signals.h"
#include "apps/watch/export.h"
#include "engine/base/error.h"
#include "pmd/host/http.h"

/* Readers within this time share one scan of the daemons. */
#define FRESH_NS UINT64_C(250000000)

enum { PATH = 4096 };

/* The text of each format, and its time. */
struct metrics {
	const char *name; /* name of the daemon; NULL: all daemons */
	struct {
		char *text;
		size_t len;
		uint64_t at_ns;
	} made[2];
};

/* Write the current metrics as a text that the caller frees. */
static int text_make(const char *name, bool is_open, char **text, size_t *len)
{
	struct sw_scan scan;
	FILE *to = open_memstream(text, len);
	int err = to ? sw_scan_daemons(name, &scan) : SW_ENOMEM;

	if (!to)
		return err;
	if (!err)
		err = sw_export(&scan, is_open, to);
	sw_scan_free(&scan);
	if (fclose(to))
		err = SW_ENOMEM;
	if (err)
		free(*text);
	return err;
}

/* --- a file --- */

static int complain(const char *path)
{
	fprintf(stderr, "sumwire metrics: %s: %s\n", path, strerror(errno));
	return 1;
}

/* Replace the file atomically: readers see the old file or the new one.  The
 * temporary file's name does not end in .prom, so node_exporter ignores it. */
static int file_write(const char *path, const char *text, size_t len)
{
	char unfinished[PATH];
	int fd = -1, n = snprintf(unfinished, PATH, "%s.XXXXXX", path);
	FILE *f;

	if (n >= PATH) {
		errno = ENAMETOOLONG;
		return complain(path);
	}
	fd = mkstemp(unfinished);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		complain(path);
		if (fd >= 0) {
			close(fd);
			unlink(unfinished);
		}
		return 1;
	}
	fwrite(text, 1, len, f);
	if (ferror(f) | fchmod(fd, 0644) | fclose(f) ||
		rename(unfinished, path)) {
		complain(path);
		unlink(unfinished);
		return 1;
	}
	return 0;
}

/* Return 0 if there is a daemon @name; otherwise say which daemons there are.
 */
static int check_name(const char *name)
{
	struct sw_found_daemons found = {0};
	uint32_t at;
	int err = sw_daemons_find(&found);

	if (!err && !sw_daemons_match(&found, name, &at))
		err = sw_find_unknown("sumwire metrics", name, &found);
	sw_daemons_free(&found);
	return err ? 1 : 0;
}

static int print_once(const char *name, bool is_open, const char *path)
{
	char *text;
	size_t len;
	int err = text_make(name, is_open, &text, &len);

	if (err) {
		fprintf(stderr, "sumwire metrics: no memory\n");
		return 1;
	}
	if (path) {
		err = file_write(path, text, len);
	} else {
		fwrite(text, 1, len, stdout);
		err = fflush(stdout) ? complain("stdout") : 0;
	}
	free(text);
	return name && !err ? check_name(name) : err;
}

/* --- HTTP --- */

static int page_make(void *ctx, const char *path, const char *accept,
	struct sw_http_page *out)
{
	static const char *const types[2] = {
		"text/plain; version=0.0.4; charset=utf-8",
		"application/openmetrics-text; version=1.0.0; charset=utf-8"};
	struct metrics *m = ctx;
	bool is_open = strstr(accept, "application/openmetrics-text");
	uint64_t now_ns = sw_now_ns();
	int err;

	if (strcmp(path, "/metrics"))
		return SW_ENOENT;
	if (!m->made[is_open].text ||
		now_ns - m->made[is_open].at_ns > FRESH_NS) {
		free(m->made[is_open].text);
		m->made[is_open].text = NULL;
		err = text_make(m->name, is_open, &m->made[is_open].text,
			&m->made[is_open].len);
		if (err) {
			m->made[is_open].text = NULL;
			return err;
		}
		m->made[is_open].at_ns = sw_now_ns();
	}
	out->len = m->made[is_open].len;
	out->type = types[is_open];
	out->text = malloc(out->len + 1);
	if (!out->text)
		return SW_ENOMEM;
	memcpy(out->text, m->made[is_open].text, out->len);
	return 0;
}

static int serve(const char *name, const char *address)
{
	struct metrics m = {.name = name};
	struct sw_http *http = NULL;
	char at[SW_HTTP_ADDRESS], why[SW_HTTP_WHY];
	sigset_t ends;
	int number, err;

	sw_signals_take_ends(&ends);
	err = sw_http_open(address, page_make, &m, at, why, &http);
	if (err) {
		fprintf(stderr, "sumwire metrics: --listen %s\n", why);
		return err == SW_EINVAL ? 2 : 1;
	}
	fprintf(stderr, "sumwire metrics: http://%s/metrics\n", at);
	sigwait(&ends, &number);
	sw_http_close(&http);
	free(m.made[0].text);
	free(m.made[1].text);
	return 0;
}

int sw_cmd_metrics(int argc, char **argv)
{
	struct sw_arg_list names = {0};
	bool is_open = false;
	const char *path = NULL, *address = NULL, *name;
	const struct sw_arg rows[] = {
		{"--listen", SW_ARG_STRING, {.string = &address}, 0, 0,
			"serve http://ADDRESS/metrics until SIGTERM, such as "
			"127.0.0.1:9410"},
		{"--textfile", SW_ARG_PATH, {.string = &path}, 0, 0,
			"write a file for node_exporter, atomically"},
		{"--openmetrics", SW_ARG_FLAG, {.flag = &is_open}, 0, 0,
			"use the OpenMetrics text format instead of "
			"Prometheus's"},
	};
	const struct sw_args args = {.name = "sumwire metrics",
		.summary = "print the counters of all daemons of this machine, "
			   "or of NAME, for Prometheus",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.positional = "NAME",
		.max_positionals = 1,
		.positionals = &names};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	name = names.n ? names.items[0] : NULL;
	if (address && path) {
		fprintf(stderr,
			"sumwire metrics: --listen and --textfile exclude "
			"each other\n");
		return 2;
	}
	return address ? serve(name, address) : print_once(name, is_open, path);
}
