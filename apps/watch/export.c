/* export.c - metrics in the text format of Prometheus.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/watch/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/watch/metric.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

struct row {
	char *family; /* the labels follow behind its NUL */
	const char *labels, *text, *unit;
	bool is_counter, is_known;
	/* Of a histogram: its buckets, then the sum and the count. */
	bool is_times;
	uint32_t part;
	double scale;
	uint64_t value;
};

enum { SUM = SW_HISTOGRAM_BUCKETS, COUNT };

struct rows {
	struct row *all;
	uint32_t n, room;
	uint64_t n_times; /* count so far, in the current histogram */
	bool has_failed;
};

/* --- the rows --- */

static void row_fill(struct row *row, const char *name, const char *labels)
{
	struct sw_metric m;
	size_t n, n_all;

	sw_metric_of(name, &m);
	n = strlen(m.family) + 1;
	n_all = n + strlen(labels) + strlen(m.labels) + 2;
	*row = (struct row){.family = malloc(n_all),
		.text = m.text,
		.unit = m.unit,
		.is_counter = m.is_counter,
		.is_known = m.is_known,
		.is_times = m.is_times,
		.part = m.is_sum ? (uint32_t)SUM : m.bucket,
		.scale = m.scale};
	if (!row->family)
		return;
	strcpy(row->family, m.family);
	snprintf(row->family + n, n_all - n, "%s%s%s", labels,
		m.labels[0] ? "," : "", m.labels);
	row->labels = row->family + n;
}

/* Return a new row; NULL: memory is short. */
static struct row *row_new(
	struct rows *r, const char *name, const char *labels, uint64_t value)
{
	struct row *row;

	if (r->n == r->room) {
		uint32_t room = r->room ? 2 * r->room : 1024;
		void *more = realloc(r->all, room * sizeof(*r->all));

		r->has_failed |= !more;
		if (!more)
			return NULL;
		r->all = more;
		r->room = room;
	}
	row = &r->all[r->n];
	row_fill(row, name, labels);
	row->value = value;
	r->has_failed |= !row->family;
	if (!row->family)
		return NULL;
	r->n++;
	return row;
}

/* Add a row.  Daemons count each bucket of a histogram by itself, and then give
 * the sum.  Prometheus needs cumulative buckets, and the total count. */
static void row_add(
	struct rows *r, const char *name, const char *labels, uint64_t value)
{
	struct row *row = row_new(r, name, labels, value);

	if (!row || !row->is_times)
		return;
	if (row->part == SUM) {
		row = row_new(r, name, labels, r->n_times);
		if (row)
			row->part = COUNT;
		return;
	}
	if (row->part > SUM) { /* a newer version has more buckets */
		free(row->family);
		r->n--;
		return;
	}
	r->n_times = row->part ? r->n_times + value : value;
	row->value = r->n_times;
}

/* Add a row with one more label. */
static void state_add(struct rows *r, const char *name, const char *labels,
	const char *label, const char *value)
{
	char more[SW_METRIC_LABELS];

	snprintf(more, sizeof(more), "%s", labels);
	sw_label_add(more, sizeof(more), label, value);
	row_add(r, name, more, 1);
}

static void late_add(
	struct rows *r, const struct sw_daemon_member *x, const char *labels)
{
	char name[SW_COUNTER_NAME];

	for (uint32_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++) {
		snprintf(name, sizeof(name), "job.J.member.M.late_ns.bucket%u",
			i);
		row_add(r, name, labels, x->late[i]);
	}
	row_add(r, "job.J.member.M.late_ns.sum", labels, x->late_ns);
}

/* Add the numbers of a path; @prefix begins their names. */
static void path_add(struct rows *r, const char *prefix,
	const struct sw_daemon_path *p, const char *labels)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {{"rtt_ns", p->srtt_ns}, {"tx_frames", p->sent},
		{"tx_lost", p->lost}, {"tx_lost_queued", p->queued},
		{"tx_timeouts", p->timeouts}, {"rx_frames", p->numbered},
		{"rx_missed", p->missed}, {"window_bytes", p->window_bytes},
		{"marked_part", p->marked_part},
		{"stalled_grant_ns", p->grant_ns},
		{"stalled_window_ns", p->window_ns},
		{"stalled_flight_ns", p->flight_ns}};
	char name[SW_COUNTER_NAME];

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		snprintf(name, sizeof(name), "%s.%s", prefix, rows[i].name);
		row_add(r, name, labels, rows[i].value);
	}
}

static void member_add(struct rows *r, const struct sw_daemon_job *job,
	uint32_t m, const char *labels)
{
	const struct sw_daemon_member *x = &job->members[m];
	char more[SW_METRIC_LABELS], text[32];
	uint64_t n = 0;

	snprintf(more, sizeof(more), "%s", labels);
	snprintf(text, sizeof(text), "%u", m);
	sw_label_add(more, sizeof(more), "agent", text);
	sw_label_add(more, sizeof(more), "node",
		strcmp(x->node, "-") ? x->node : "");
	if (x->n_ranks && x->first != UINT32_MAX) {
		snprintf(text, sizeof(text), x->n_ranks > 1 ? "%u-%u" : "%u",
			x->first, x->first + x->n_ranks - 1);
		sw_label_add(more, sizeof(more), "ranks", text);
	}
	for (uint32_t i = 0; i < job->n_waits; i++)
		if (job->waits[i].lacks >> m & 1)
			n += job->waits[i].n_chunks;
	row_add(r, "job.J.member.M.present", more, !strcmp(x->state, "here"));
	row_add(r, "job.J.member.M.waited_chunks", more, n);
	late_add(r, x, more);
	row_add(r, "job.J.member.M.push_bytes", more, x->path.push_bytes);
	row_add(r, "job.J.member.M.result_bytes", more, x->path.result_bytes);
	if (strcmp(x->state, "here"))
		return;
	path_add(r, "job.J.member.M", &x->path, more);
}

static void group_add(
	struct rows *r, const struct sw_daemon_group *g, const char *labels)
{
	char more[SW_METRIC_LABELS];

	snprintf(more, sizeof(more), "%s", labels);
	sw_label_add(more, sizeof(more), "group", g->name);
	row_add(r, "job.J.group.G.open", more, g->n_open);
	row_add(r, "job.J.group.G.collectives", more, g->n_done);
	row_add(r, "job.J.group.G.bytes", more, g->bytes);
	row_add(r, "job.J.group.G.collective_ns", more, g->ns);
}

static void session_add(
	struct rows *r, const struct sw_daemon_session *s, const char *labels)
{
	char more[SW_METRIC_LABELS], text[32];

	snprintf(more, sizeof(more), "%s", labels);
	snprintf(text, sizeof(text), "%u", s->lane);
	sw_label_add(more, sizeof(more), "server", s->server);
	sw_label_add(more, sizeof(more), "lane", text);
	row_add(r, "job.J.session.S.open", more, s->is_open);
	row_add(r, "job.J.session.S.push_bytes", more, s->path.push_bytes);
	row_add(r, "job.J.session.S.result_bytes", more, s->path.result_bytes);
	path_add(r, "job.J.session.S", &s->path, more);
}

/* Add the bytes that the server of a job has summed and returned. */
static void sums_add(
	struct rows *r, const struct sw_daemon_job *job, const char *labels)
{
	uint64_t push = 0, result = 0;

	for (uint32_t m = 0; m < job->n_members; m++) {
		push += job->members[m].path.push_bytes;
		result += job->members[m].path.result_bytes;
	}
	row_add(r, "job.J.push_bytes", labels, push);
	row_add(r, "job.J.result_bytes", labels, result);
	row_add(r, "job.J.open_chunks", labels, job->open_chunks);
	row_add(r, "job.J.open_slots", labels, job->open_slots);
	row_add(r, "job.J.done_chunks", labels, job->done_chunks);
}

/* Return the longest time that a tensor has been without progress. */
static uint64_t still_ms(const struct sw_daemon_job *job)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < job->n_waits; i++)
		most = sw_max64(most, job->waits[i].still_ms);
	return most;
}

static void job_add(struct rows *r, const struct sw_found_daemon *d,
	const struct sw_daemon_job *job, const char *labels)
{
	char more[SW_METRIC_LABELS];

	snprintf(more, sizeof(more), "%s", labels);
	sw_label_add(more, sizeof(more), "job_name", job->name);
	sw_label_add(more, sizeof(more), "part",
		job->is_served ? "server" : "agent");
	state_add(r, "job.J.state", more, "state", job->state);
	row_add(r, "job.J.ranks", more, job->n_ranks);
	if (job->size)
		row_add(r, "job.J.size", more, job->size);
	row_add(r, "job.J.age_s", more, job->age_s);
	for (uint32_t i = 0; i < job->n_groups; i++)
		group_add(r, &job->groups[i], more);
	for (uint32_t i = 0; !job->is_served && i < d->n_sessions; i++)
		session_add(r, &d->sessions[i], more);
	if (!job->is_served)
		return;
	if (job->has_idle)
		row_add(r, "job.J.idle_s", more, job->idle_s);
	sums_add(r, job, more);
	row_add(r, "job.J.waiting_tensors", more, job->n_waits + job->n_more);
	row_add(r, "job.J.longest_wait_ms", more, still_ms(job));
	for (uint32_t m = 0; m < job->n_members; m++)
		member_add(r, job, m, more);
}

/* Add a counter.  Its labels name the engine, because an agent that sums has
 * two. */
static void counter_add(struct rows *r, const struct sw_found_daemon *d,
	const struct sw_scan_value *v, const char *labels)
{
	bool is_second = !strncmp(v->name, "server.", 7);
	struct sw_counter c;
	char more[SW_METRIC_LABELS];

	snprintf(more, sizeof(more), "%s", labels);
	if (sw_counter_find(v->name, &c) && c.is_engine)
		sw_label_add(more, sizeof(more), "part",
			is_second || !strcmp(d->role, "server") ? "server"
								: "agent");
	row_add(r, v->name, more, v->value);
}

/* Write a daemon's name, with its pid if several daemons have that name. */
static void name_write(
	const struct sw_scan *scan, uint32_t i, char *out, size_t size)
{
	const struct sw_found_daemon *d = &scan->found.all[i];
	bool is_alone = d->name != NULL;

	for (uint32_t k = 0; k < scan->found.n && is_alone; k++)
		is_alone = k == i || !scan->found.all[k].name ||
			   strcmp(scan->found.all[k].name, d->name);
	snprintf(out, size, is_alone ? "%s" : "%s:%ld", d->name ? d->name : "",
		(long)d->pid);
}

static void daemon_add(struct rows *r, const struct sw_scan *scan, uint32_t at)
{
	const struct sw_scan_daemon *s = &scan->all[at];
	const struct sw_found_daemon *d = s->d;
	char labels[SW_METRIC_LABELS] = "", more[SW_METRIC_LABELS];
	char text[256];

	name_write(scan, at, text, sizeof(text));
	sw_label_add(labels, sizeof(labels), "daemon", text);
	row_add(r, "daemon.up", labels, d->found == SW_FOUND);
	if (d->found != SW_FOUND || !d->role)
		return;
	snprintf(more, sizeof(more), "%s", labels);
	snprintf(text, sizeof(text), "%ld", (long)d->pid);
	sw_label_add(more, sizeof(more), "role", d->role);
	sw_label_add(more, sizeof(more), "pid", text);
	state_add(r, "daemon.info", more, "version", d->version);
	if (d->state)
		state_add(r, "daemon.state", labels, "state", d->state);
	if (d->since_s)
		row_add(r, "daemon.start_time_s", labels, d->since_s);
	for (uint32_t i = 0; i < s->n; i++)
		counter_add(r, d, &s->values[i], labels);
	for (uint32_t i = 0; i < d->n_jobs; i++)
		job_add(r, d, &d->jobs[i], labels);
}

/* --- the text --- */

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->family, y->family);

	if (!order)
		order = strcmp(x->labels, y->labels);
	return order ? order : (x->part > y->part) - (x->part < y->part);
}

/* Write the head of a family.  Our texts have no quotes or backslashes to
 * escape. */
static void head_write(const struct row *m, bool is_open, FILE *to)
{
	const char *suffix = m->is_counter && !is_open ? "_total" : "";

	fprintf(to, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->family, suffix,
		m->text, m->family, suffix,
		m->is_times     ? "histogram"
		: m->is_counter ? "counter"
		: m->is_known   ? "gauge"
		: is_open       ? "unknown"
				: "untyped");
	if (is_open && m->unit)
		fprintf(to, "# UNIT %s %s\n", m->family, m->unit);
}

/* Write the name of a histogram's row, and its labels. */
static void part_write(const struct row *row, FILE *to)
{
	uint64_t bound;

	if (row->part >= SUM) {
		fprintf(to, "%s_%s{%s} ", row->family,
			row->part == SUM ? "sum" : "count", row->labels);
		return;
	}
	bound = sw_histogram_bound(row->part);
	fprintf(to, "%s_bucket{%s%sle=\"", row->family, row->labels,
		*row->labels ? "," : "");
	if (bound == UINT64_MAX)
		fprintf(to, "+Inf\"} ");
	else
		fprintf(to, "%.12g\"} ", (double)bound * row->scale);
}

static void row_write(const struct row *row, FILE *to)
{
	if (row->is_times) {
		part_write(row, to);
		if (row->part == SUM)
			fprintf(to, "%.12g\n", (double)row->value * row->scale);
		else
			fprintf(to, "%" PRIu64 "\n", row->value);
		return;
	}
	fprintf(to, "%s%s{%s} ", row->family, row->is_counter ? "_total" : "",
		row->labels);
	if (row->scale == 1)
		fprintf(to, "%" PRIu64 "\n", row->value);
	else
		fprintf(to, "%.12g\n", (double)row->value * row->scale);
}

int sw_export(const struct sw_scan *scan, bool is_open, FILE *to)
{
	struct rows r = {0};
	const struct row *last = NULL;

	for (uint32_t i = 0; i < scan->found.n; i++)
		daemon_add(&r, scan, i);
	if (r.n)
		qsort(r.all, r.n, sizeof(*r.all), compare);
	for (uint32_t i = 0; i < r.n && !r.has_failed; i++) {
		const struct row *row = &r.all[i];

		if (last && !compare(last, row))
			continue;
		if (!last || strcmp(last->family, row->family))
			head_write(row, is_open, to);
		row_write(row, to);
		last = row;
	}
	if (is_open)
		fprintf(to, "# EOF\n");
	for (uint32_t i = 0; i < r.n; i++)
		free(r.all[i].family);
	free(r.all);
	return r.has_failed ? SW_ENOMEM : 0;
}
