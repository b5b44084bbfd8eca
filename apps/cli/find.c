/* find.c - find the daemon that a user names on a command line.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/find.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <sumwire/version.h>

#include "conf/value.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "pmd/client/folder.h"

enum { COLUMNS = 8, CELL = 128, RANKS = 48 };

static const char *const heads[COLUMNS] = {
	"NAME", "ROLE", "PID", "USER", "JOB", "STATE", "RANKS", "SINCE"};

const char *sw_find_state(
	const struct sw_found_daemon *d, const struct sw_daemon_job *job)
{
	static const char *const found[] = {[SW_FOUND_SILENT] = "no answer",
		[SW_FOUND_DENIED] = "no access",
		[SW_FOUND_OTHER] = "unknown version"};

	if (d->found)
		return found[d->found];
	if (d->state && strcmp(d->state, "up"))
		return d->state;
	return job ? job->state : "idle";
}

/* Describe the ranks of a job, as far as the daemon knows them; "-" without a
 * job. */
static const char *ranks_format(
	const struct sw_daemon_job *job, char out[RANKS])
{
	snprintf(out, RANKS, "-");
	if (!job)
		return out;
	if (job->is_served && job->size)
		snprintf(out, RANKS, "%u of %u", job->n_ranks, job->size);
	else if (job->is_served)
		snprintf(out, RANKS, "%u; %u of %u agents", job->n_ranks,
			job->n_here, job->n_all);
	else if (!job->size)
		snprintf(out, RANKS, "%u of %u local", job->n_here, job->n_all);
	else if (job->n_all == 1)
		snprintf(out, RANKS, "rank %u of %u", job->first, job->size);
	else
		snprintf(out, RANKS, "ranks %u-%u of %u", job->first,
			job->first + job->n_all - 1, job->size);
	return out;
}

/* Format an age as "12s", "3m 5s", "2h 10m" or "4d 3h". */
static void age_format(uint64_t s, char out[CELL])
{
	unsigned long long v = s;

	if (v < 60)
		snprintf(out, CELL, "%llus", v);
	else if (v < 3600)
		snprintf(out, CELL, "%llum %llus", v / 60, v % 60);
	else if (v < 86400)
		snprintf(out, CELL, "%lluh %llum", v / 3600, v / 60 % 60);
	else
		snprintf(out, CELL, "%llud %lluh", v / 86400, v / 3600 % 24);
}

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

static void cells_fill(char cells[COLUMNS][CELL],
	const struct sw_found_daemon *d, const struct sw_daemon_job *job)
{
	const struct passwd *user = getpwuid(d->uid);
	char ranks[RANKS], other[CELL] = "";
	uint64_t now_s = (uint64_t)time(NULL);

	if (d->version && strcmp(d->version, SW_VERSION))
		snprintf(other, sizeof(other), " (version %.40s)", d->version);
	snprintf(cells[0], CELL, "%s", or_dash(d->name));
	snprintf(cells[1], CELL, "%s", or_dash(d->role));
	snprintf(cells[2], CELL, "%ld", (long)d->pid);
	if (user)
		snprintf(cells[3], CELL, "%s", user->pw_name);
	else
		snprintf(cells[3], CELL, "%u", d->uid);
	snprintf(cells[4], CELL, "%s", job ? job->name : "-");
	snprintf(cells[5], CELL, "%s%s", sw_find_state(d, job), other);
	snprintf(cells[6], CELL, "%s", ranks_format(job, ranks));
	if (job)
		age_format(job->age_s, cells[7]);
	else if (d->since_s && d->since_s <= now_s)
		age_format(now_s - d->since_s, cells[7]);
	else
		snprintf(cells[7], CELL, "-");
}

/* Return whether an earlier row shows the same job: a daemon that takes part in
 * a job and also sums for it gets one row. */
static bool is_repeated(const struct sw_found_daemon *d, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (!strcmp(d->jobs[k].name, d->jobs[i].name))
			return true;
	return false;
}

/* Call @each for each row: once to measure the widths, once to print. */
static void rows_walk(const struct sw_found_daemons *found,
	void (*each)(void *ctx, char cells[COLUMNS][CELL]), void *ctx)
{
	char cells[COLUMNS][CELL];

	for (uint32_t i = 0; i < found->n; i++) {
		const struct sw_found_daemon *d = &found->all[i];

		if (!d->n_jobs) {
			cells_fill(cells, d, NULL);
			each(ctx, cells);
		}
		for (uint32_t k = 0; k < d->n_jobs; k++) {
			if (is_repeated(d, k))
				continue;
			cells_fill(cells, d, &d->jobs[k]);
			each(ctx, cells);
		}
	}
}

struct table {
	int widths[COLUMNS];
	FILE *to;
};

static void row_measure(void *ctx, char cells[COLUMNS][CELL])
{
	struct table *t = ctx;

	for (int i = 0; i < COLUMNS; i++)
		if ((int)strlen(cells[i]) > t->widths[i])
			t->widths[i] = (int)strlen(cells[i]);
}

static void row_print(void *ctx, char cells[COLUMNS][CELL])
{
	const struct table *t = ctx;

	for (int i = 0; i < COLUMNS - 1; i++)
		fprintf(t->to, "%-*s  ", t->widths[i], cells[i]);
	fprintf(t->to, "%s\n", cells[COLUMNS - 1]);
}

void sw_find_print(FILE *to, const struct sw_found_daemons *found)
{
	struct table t = {.to = to};
	char cells[COLUMNS][CELL];

	for (int i = 0; i < COLUMNS; i++)
		snprintf(cells[i], CELL, "%s", heads[i]);
	row_measure(&t, cells);
	rows_walk(found, row_measure, &t);
	row_print(&t, cells);
	rows_walk(found, row_print, &t);
}

static int complain(const char *who, const char *name, const char *what,
	const struct sw_found_daemons *found)
{
	struct sw_nearest near;
	char shown[CELL];

	sw_nearest_init(&near, name ? name : "");
	for (uint32_t i = 0; i < found->n; i++)
		if (found->all[i].name)
			sw_nearest_add(&near, found->all[i].name);
	fprintf(stderr, "%s: ", who);
	if (name) {
		snprintf(shown, sizeof(shown), "%s", name);
		sw_text_clean(shown, sizeof(shown));
		fprintf(stderr, "%s: ", shown);
	}
	fprintf(stderr, "%s", what);
	if (name && near.best && strcmp(near.best, name))
		fprintf(stderr, "; did you mean %s?", near.best);
	if (!found->n) {
		fprintf(stderr, "; no daemon of sumwire runs here\n");
		return SW_EINVAL;
	}
	fprintf(stderr, "; there are:\n");
	sw_find_print(stderr, found);
	return SW_EINVAL;
}

int sw_find_unknown(
	const char *who, const char *name, const struct sw_found_daemons *found)
{
	return complain(
		who, name, "no daemon has this name, pid or job", found);
}

/* Find a socket @name in the folders for sockets, or in the working folder. */
static bool is_file(const char *name, char out[SW_FIND_BYTES])
{
	struct stat st;

	if (!*name || strlen(name) >= SW_FIND_BYTES)
		return false;
	if (sw_folder_seek(name, out) && !stat(out, &st) &&
		S_ISSOCK(st.st_mode))
		return true;
	strcpy(out, name);
	return !stat(out, &st) && S_ISSOCK(st.st_mode);
}

static int choose(const char *who, const char *name, enum sw_find kind,
	const struct sw_found_daemons *found, char out[SW_FIND_BYTES])
{
	uint32_t at = 0;
	uint32_t n = name ? sw_daemons_match(found, name, &at) : found->n;
	const char *path;

	if (!n && name && is_file(name, out))
		return 0;
	if (!n)
		return complain(who, name,
			name ? "no daemon has this name, pid or job"
			     : "name a daemon",
			found);
	if (n > 1)
		return complain(who, name,
			name ? "several daemons: give a pid"
			     : "name one of several daemons",
			found);
	path = kind == SW_FIND_STATS ? found->all[at].stats
				     : found->all[at].socket;
	if (!path || strlen(path) >= SW_FIND_BYTES)
		return complain(who, name,
			found->all[at].found == SW_FOUND_DENIED
				? "permission denied: only its user and root "
				  "may read it"
			: found->all[at].found  ? "does not answer"
			: kind == SW_FIND_STATS ? "has no counters"
						: "is no agent",
			found);
	strcpy(out, path);
	return 0;
}

int sw_find_socket(const char *who, const char *name, enum sw_find kind,
	char out[SW_FIND_BYTES])
{
	struct sw_found_daemons found;
	int err;

	if (name && strchr(name, '/')) {
		if (snprintf(out, SW_FIND_BYTES, "%s", name) < SW_FIND_BYTES)
			return 0;
		fprintf(stderr, "%s: the path has more than %d bytes: %s\n",
			who, SW_FIND_BYTES - 1, name);
		return SW_EINVAL;
	}
	if (sw_daemons_find(&found)) {
		fprintf(stderr, "%s: no memory\n", who);
		sw_daemons_free(&found);
		return SW_EINVAL;
	}
	err = choose(who, name, kind, &found, out);
	sw_daemons_free(&found);
	return err;
}
