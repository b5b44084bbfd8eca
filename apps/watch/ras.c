/* ras.c - sumwire ras: the status in the format of NCCL's RAS.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It answers commands from stdin, one per line. ncclras and similar readers
 * send such lines to NCCL at TCP port 28028. systemd, or another super-server,
 * starts a process for each reader, so no reader waits for another one.
 *
 * A tensor or group that waits is a communicator: members whose contribution is
 * missing have made one collective less than the others. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <sumwire/version.h>

#include "apps/cli/args.h"
#include "apps/cli/clock.h"
#include "apps/cli/cmd.h"
#include "apps/cli/json.h"
#include "engine/base/bytes.h"
#include "engine/base/text.h"
#include "pmd/host/daemons.h"

enum { PROTOCOL = 2, LINE = 256, MONITOR_MS = 1000, STILL_MS = 1000 };

static void time_format(char out[32])
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm);
}

/* --- STATUS as JSON --- */

static const char *kind_of(const struct sw_daemon_wait *w)
{
	static const char *const names[][2] = {
		{"reduce_scatter", "ReduceScatter"},
		{"all_gather", "AllGather"}, {"broadcast", "Broadcast"},
		{"reduce", "Reduce"}};

	for (size_t i = 0; w && w->kind && i < 4; i++)
		if (!strcmp(w->kind, names[i][0]))
			return names[i][1];
	return "AllReduce";
}

static void counts_write(
	struct sw_json *j, const struct sw_daemon_wait *w, uint32_t m)
{
	static const char *const kinds[] = {"Broadcast", "Reduce", "AllGather",
		"ReduceScatter", "AllReduce"};
	bool lacks = w && w->lacks >> m & 1;
	uint64_t n = w ? w->number : 0;

	sw_json_object_open(j, "collective_counts");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sw_json_u64(j, kinds[i],
			strcmp(kinds[i], kind_of(w)) ? 0
			: n && lacks                 ? n - 1
						     : n);
	sw_json_close(j);
}

static void status_write(struct sw_json *j, const char *state)
{
	sw_json_object_open(j, "status");
	if (!strcmp(state, "here")) {
		sw_json_u64(j, "init_state", 0);
		sw_json_u64(j, "async_error", 0);
		sw_json_bool(j, "finalize_called", false);
		sw_json_bool(j, "destroy_flag", false);
		sw_json_bool(j, "abort_flag", false);
	} else {
		sw_json_bool(j, "unresponsive", true);
		sw_json_bool(j, "considered_dead", true);
	}
	sw_json_close(j);
}

/* Write the ranks that are here, or the missing ones.  Returns their number. */
static uint32_t ranks_write(struct sw_json *j, const struct sw_daemon_job *job,
	const struct sw_daemon_wait *w, bool are_here)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < job->n_members; m++) {
		const struct sw_daemon_member *x = &job->members[m];

		if (!strcmp(x->state, "here") != are_here ||
			x->first == UINT32_MAX)
			continue;
		n += x->n_ranks;
		for (uint32_t r = 0; j && r < x->n_ranks; r++) {
			sw_json_object_open(j, NULL);
			sw_json_u64(j, "rank", x->first + r);
			sw_json_text(j, "host", x->node);
			sw_json_u64(j, "pid", 0);
			sw_json_u64(j, "cuda_dev", r);
			sw_json_u64(j, "nvml_dev", r);
			status_write(j, x->state);
			if (are_here)
				counts_write(j, w, m);
			sw_json_close(j);
		}
	}
	return n;
}

/* Hash a name into @h by FNV-1a, and separate it from the next name. */
static uint64_t hash(uint64_t h, const char *name)
{
	for (; name && *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

static void comm_write(struct sw_json *j, const struct sw_found_daemon *d,
	const struct sw_daemon_job *job, const struct sw_daemon_wait *w)
{
	uint64_t h = hash(UINT64_C(0xcbf29ce484222325), job->name);
	char text[48];

	h = hash(h, w ? w->name : "");
	sw_json_object_open(j, NULL);
	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)h);
	sw_json_text(j, "hash", text);
	snprintf(text, sizeof(text), "0x%016llx:0x%016llx",
		(unsigned long long)hash(h, d->name),
		(unsigned long long)d->pid);
	sw_json_text(j, "secondary_hash", text);
	sw_json_text(j, "job", job->name);
	sw_json_text(j, "server", d->name);
	sw_json_text(j, "waits", w ? w->name : NULL);
	sw_json_u64(j, "size", job->size);
	sw_json_u64(j, "ranks_count", ranks_write(NULL, job, w, true));
	sw_json_u64(j, "missing_ranks_count", ranks_write(NULL, job, w, false));
	sw_json_array_open(j, "ranks");
	ranks_write(j, job, w, true);
	sw_json_close(j);
	sw_json_array_open(j, "missing_ranks");
	ranks_write(j, job, w, false);
	sw_json_close(j);
	sw_json_close(j);
}

/* Write all communicators; with @j NULL, only count them. */
static uint32_t comms_write(
	struct sw_json *j, const struct sw_found_daemons *found)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < found->n; i++)
		for (uint32_t k = 0; k < found->all[i].n_jobs; k++) {
			const struct sw_found_daemon *d = &found->all[i];
			const struct sw_daemon_job *job = &d->jobs[k];
			uint32_t n_waits = job->n_waits ? job->n_waits : 1;

			if (!job->is_served)
				continue;
			n += n_waits;
			for (uint32_t w = 0; j && w < n_waits; w++)
				comm_write(j, d, job,
					job->n_waits ? &job->waits[w] : NULL);
		}
	return n;
}

static int json_status(void)
{
	struct sw_found_daemons found;
	uint64_t begin_ns = sw_now_ns(), n_silent = 0;
	struct sw_json j;
	char when[32];

	if (sw_daemons_find(&found)) {
		sw_daemons_free(&found);
		return 1;
	}
	for (uint32_t i = 0; i < found.n; i++)
		n_silent += found.all[i].found == SW_FOUND_SILENT;
	time_format(when);
	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_text(&j, "nccl_version", "sumwire " SW_VERSION);
	sw_json_u64(&j, "cuda_runtime_version", 0);
	sw_json_u64(&j, "cuda_driver_version", 0);
	sw_json_text(&j, "timestamp", when);
	sw_json_u64(&j, "communicators_count", comms_write(NULL, &found));
	sw_json_array_open(&j, "communicators");
	comms_write(&j, &found);
	sw_json_close(&j);
	sw_json_object_open(&j, "ras");
	sw_json_double(&j, "collection_time_sec",
		(double)(sw_now_ns() - begin_ns) / 1e9);
	sw_json_u64(&j, "timeouts_count", n_silent);
	sw_json_close(&j);
	sw_json_close(&j);
	sw_daemons_free(&found);
	return sw_json_fini(&j) ? 1 : 0;
}

/* --- MONITOR --- */

/* List each job in a line, and each of its waits of more than a second. */
static char *events_list(void)
{
	struct sw_found_daemons found;
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return NULL;
	if (sw_daemons_find(&found))
		found.n = 0;
	for (uint32_t i = 0; i < found.n; i++)
		for (uint32_t k = 0; k < found.all[i].n_jobs; k++) {
			const struct sw_daemon_job *job = &found.all[i].jobs[k];

			if (!job->is_served)
				continue;
			fprintf(to, "job %s is %s\n", job->name, job->state);
			for (uint32_t w = 0; w < job->n_waits; w++)
				if (job->waits[w].still_ms >= STILL_MS)
					fprintf(to,
						"job %s: %s waits for agents "
						"0x%llx\n",
						job->name, job->waits[w].name,
						(unsigned long long)job
							->waits[w]
							.lacks);
		}
	sw_daemons_free(&found);
	return fclose(to) ? NULL : text;
}

static bool has_line(const char *text, const char *line, size_t n)
{
	for (; *text; text = strchr(text, '\n') + 1)
		if (!strncmp(text, line, n) && text[n] == '\n')
			return true;
	return false;
}

static void event_print(
	const char *when, const char *word, char *details, bool is_json)
{
	struct sw_json j;

	if (!is_json) {
		printf("[%s] %s: %s\n", when, word, details);
		return;
	}
	sw_json_init(&j, stdout);
	sw_json_object_open(&j, NULL);
	sw_json_text(&j, "timestamp", when);
	sw_json_text(&j, "group", "LIFECYCLE");
	sw_json_text(&j, "event", word);
	sw_json_text(&j, "details", details);
	sw_json_close(&j);
}

/* Print the lines of @now that @before lacks. */
static void difference_print(
	char *now, const char *before, const char *word, bool is_json)
{
	char when[32];

	time_format(when);
	for (char *end; *now; now = end + 1) {
		end = strchr(now, '\n');
		*end = '\0';
		if (!has_line(before, now, (size_t)(end - now)))
			event_print(when, word, now, is_json);
		*end = '\n';
	}
}

/* Print events until the reader closes its end. */
static int monitor(bool is_json)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char *before = strdup(""), *now, rest[LINE];
	bool is_over = false;

	while (before && !is_over) {
		now = events_list();
		if (!now)
			break;
		difference_print(before, now, "END", is_json);
		difference_print(now, before, "BEGIN", is_json);
		free(before);
		before = now;
		is_over = fflush(stdout) ||
			  (poll(&in, 1, MONITOR_MS) > 0 &&
				  read(STDIN_FILENO, rest, sizeof(rest)) <= 0);
	}
	free(before);
	return is_over ? 0 : 1;
}

/* --- commands --- */

/* Return the text after @word and a space in @line, or NULL. */
static char *after(char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncasecmp(line, word, n) && line[n] == ' ' ? line + n + 1
							     : NULL;
}

/* Daemons have a second to answer, whatever the reader asks for. */
static void timeout_answer(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !isfinite(s) || s < 0)
		printf("ERROR: Invalid timeout value %s\n", text);
	else
		printf("OK\n");
}

static void format_answer(const char *text, bool *is_json)
{
	if (strcasecmp(text, "json") && strcasecmp(text, "text")) {
		printf("ERROR: Invalid format %s\n", text);
		return;
	}
	*is_json = !strcasecmp(text, "json");
	printf("OK\n");
}

/* Return whether @text lists event groups of NCCL.  Each group gets the same
 * events here. */
static bool are_groups(char *text)
{
	static const char *const groups[] = {"lifecycle", "trace", "all"};
	char *rest;

	for (char *s = strtok_r(text, ", ", &rest); s;
		s = strtok_r(NULL, ", ", &rest)) {
		bool is_known = false;

		for (size_t i = 0; i < SW_ARRAY_SIZE(groups); i++)
			is_known |= !strcasecmp(s, groups[i]);
		if (!is_known) {
			printf("ERROR: Invalid event group '%s'\n", s);
			return false;
		}
	}
	return true;
}

/* Answer one command.  Returns the exit code; -1: there may be more. */
static int answer(char *line, bool *is_json)
{
	char name[] = "status";
	char *argv[] = {name, NULL};
	char *rest = NULL;

	if (after(line, "CLIENT PROTOCOL")) {
		printf("SERVER PROTOCOL %d\n", PROTOCOL);
	} else if ((rest = after(line, "TIMEOUT"))) {
		timeout_answer(rest);
	} else if ((rest = after(line, "SET FORMAT"))) {
		format_answer(rest, is_json);
	} else if (!strcasecmp(line, "STATUS") ||
		   !strcasecmp(line, "VERBOSE STATUS")) {
		return *is_json ? json_status() : sw_cmd_status(1, argv);
	} else if (!strcasecmp(line, "MONITOR") ||
		   (rest = after(line, "MONITOR"))) {
		if (!rest || are_groups(rest)) {
			printf("OK\n");
			return monitor(*is_json);
		}
	} else {
		printf("ERROR: Unknown command %s\n", line);
	}
	return fflush(stdout) ? 1 : -1;
}

int sw_cmd_ras(int argc, char **argv)
{
	const struct sw_args args = {.name = "sumwire ras",
		.summary = "answer queries on stdin in the form of NCCL's RAS: "
			   "STATUS, VERBOSE STATUS, SET FORMAT json, MONITOR"};
	char line[LINE];
	bool is_json = false;
	int code = sw_args_parse(&args, argc, argv);

	if (code)
		return code == SW_ARGS_HELP ? 0 : 2;
	for (code = -1; code < 0 && fgets(line, sizeof(line), stdin);) {
		size_t n = strcspn(line, "\r\n");

		if (n == LINE - 1)
			break; /* as NCCL ends connections with such lines */
		line[n] = '\0';
		sw_text_clean(line, sizeof(line));
		code = answer(line, &is_json);
	}
	return code < 0 ? 0 : code;
}
