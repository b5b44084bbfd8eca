/* table.c - the rows of a sweep: one for each point and job.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

static const char *const columns[SW_SIM_COLUMNS] = {"goodput_bit_s", "round_ns",
	"round_low_ns", "round_high_ns", "urgent_ns", "urgent_p99_ns",
	"retransmissions", "timeouts", "dropped", "lost", "marked",
	"longest_queue_bytes"};

static struct sw_sim_row *new_row(
	struct sw_sim_table *t, uint32_t point, const char *name)
{
	struct sw_sim_row *row;

	if (t->n == t->size) {
		t->size = 2 * t->size + 16;
		t->rows = realloc(t->rows, t->size * sizeof(*t->rows));
		if (!t->rows)
			abort();
	}
	row = &t->rows[t->n++];
	*row = (struct sw_sim_row){.point = point};
	snprintf(row->job, sizeof(row->job), "%s", name);
	return row;
}

static void add_net(struct sw_sim_row *row, const struct sw_sim_result *r)
{
	row->has_failed = r->why[0];
	row->values[SW_SIM_DROPPED] = r->n_dropped + r->n_full;
	row->values[SW_SIM_LOST] = r->n_lost;
	row->values[SW_SIM_MARKED] = r->n_marked;
	row->values[SW_SIM_QUEUE] = r->most_queued;
}

void sw_sim_table_add(
	struct sw_sim_table *t, uint32_t point, const struct sw_sim_result *r)
{
	for (uint32_t i = 0; i < r->n_jobs; i++) {
		const struct sw_sim_job_result *j = &r->jobs[i];
		struct sw_sim_row *row = new_row(t, point, j->name);

		row->values[SW_SIM_GOODPUT] = j->goodput_bit_s;
		row->values[SW_SIM_ROUND_LOW] = j->round_ns[0];
		row->values[SW_SIM_ROUND] = j->round_ns[1];
		row->values[SW_SIM_ROUND_HIGH] = j->round_ns[2];
		row->values[SW_SIM_URGENT] = j->urgent_ns[0];
		row->values[SW_SIM_URGENT_P99] = j->urgent_ns[1];
		row->values[SW_SIM_AGAIN] = j->n_again;
		row->values[SW_SIM_TIMEOUTS] = j->n_timeouts;
		add_net(row, r);
	}
	for (uint32_t i = 0; i < r->n_traffic; i++) {
		const struct sw_sim_traffic_result *x = &r->traffic[i];
		struct sw_sim_row *row = new_row(t, point, x->name);

		row->values[SW_SIM_GOODPUT] = x->goodput_bit_s;
		row->values[SW_SIM_AGAIN] = x->n_again;
		row->values[SW_SIM_TIMEOUTS] = x->n_timeouts;
		add_net(row, r);
	}
}

/* --- the file --- */

/* Return whether a section does not affect rows: a figure's titles, claims and
 * curves. */
static bool is_told(const char *section)
{
	return !strncmp(section, "figure", 6) ||
	       !strncmp(section, "claim", 5) || !strncmp(section, "curve", 5);
}

/* Hash a description.  Comments and blanks do not change the hash. */
static uint64_t hash_of(const struct sw_sim_file *file)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < file->scan.n_entries; i++) {
		const struct sw_scan_entry *e = &file->scan.entries[i];
		const char *parts[] = {e->section, e->key ? e->key : "",
			e->key ? e->value : ""};

		if (is_told(e->section))
			continue;
		for (uint32_t p = 0; p < 3; p++) {
			for (const char *s = parts[p]; *s; s++)
				hash = (hash ^ (uint8_t)*s) * 0x100000001b3;
			hash = (hash ^ 0xff) * 0x100000001b3;
		}
	}
	return hash;
}

static void write_head(const struct sw_sim_file *file, FILE *f)
{
	fprintf(f, "# sumwire-lab sim %016" PRIx64 "\npoint,name,failed",
		hash_of(file));
	for (uint32_t c = 0; c < SW_SIM_COLUMNS; c++)
		fprintf(f, ",%s", columns[c]);
	for (uint32_t a = 0; a < file->n_axes; a++)
		fprintf(f, ",%s", file->axes[a].key);
	fputc('\n', f);
}

void sw_sim_table_write(const struct sw_sim_table *t, uint32_t from,
	const struct sw_sim_file *file, FILE *f)
{
	char value[SW_SIM_TEXT];

	if (!from)
		write_head(file, f);
	for (uint32_t i = from; i < t->n; i++) {
		const struct sw_sim_row *r = &t->rows[i];

		fprintf(f, "%u,%s,%d", r->point, r->job, r->has_failed);
		for (uint32_t c = 0; c < SW_SIM_COLUMNS; c++)
			fprintf(f, ",%" PRIu64, r->values[c]);
		for (uint32_t a = 0; a < file->n_axes; a++) {
			sw_sim_axis_value(file, a, r->point, value);
			for (char *s = value; *s; s++)
				*s = *s == ',' ? ' ' : *s;
			fprintf(f, ",%s", value);
		}
		fputc('\n', f);
	}
}

/* Read a row.  Returns false for an incomplete line, which an interrupted run
 * left. */
static bool read_row(
	struct sw_sim_table *t, const struct sw_sim_file *file, char *line)
{
	struct sw_sim_row row = {0};
	uint32_t n_commas = 0;
	int failed, at = 0;

	for (const char *s = line; *s; s++)
		n_commas += *s == ',';
	if (n_commas != 2 + SW_SIM_COLUMNS + file->n_axes ||
		!strchr(line, '\n') ||
		sscanf(line, "%u,%31[^,],%d%n", &row.point, row.job, &failed,
			&at) != 3 ||
		row.point >= file->n_points)
		return false;
	row.has_failed = failed;
	line += at;
	for (uint32_t c = 0; c < SW_SIM_COLUMNS; c++)
		row.values[c] = strtoull(line + 1, &line, 10);
	*new_row(t, row.point, row.job) = row;
	return true;
}

int sw_sim_table_read(struct sw_sim_table *t, const struct sw_sim_file *file,
	const char *path)
{
	FILE *f = fopen(path, "r");
	char line[2048];
	uint64_t hash = 0;

	if (!f)
		return errno == ENOENT ? SW_ENOENT : SW_EIO;
	if (!fgets(line, sizeof(line), f) ||
		sscanf(line, "# sumwire-lab sim %" SCNx64, &hash) != 1 ||
		hash != hash_of(file)) {
		fclose(f);
		return SW_ECONF;
	}
	while (fgets(line, sizeof(line), f))
		read_row(t, file, line);
	fclose(f);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct sw_sim_row *x = a, *y = b;

	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	return strcmp(x->job, y->job);
}

void sw_sim_table_sort(struct sw_sim_table *t)
{
	if (t->n)
		qsort(t->rows, t->n, sizeof(*t->rows), compare);
}

void sw_sim_table_print(
	const struct sw_sim_table *t, const struct sw_sim_file *file)
{
	char value[SW_SIM_TEXT];

	for (uint32_t a = 0; a < file->n_axes; a++)
		printf("%-14.14s ", file->axes[a].key);
	printf("%-10s %9s %10s %10s %10s %8s %8s %8s %9s\n", "name", "Gb/s",
		"round ms", "urgent ms", "(p99)", "again", "dropped", "marked",
		"queue KiB");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct sw_sim_row *r = &t->rows[i];
		const uint64_t *v = r->values;

		for (uint32_t a = 0; a < file->n_axes; a++)
			printf("%-14.14s ",
				sw_sim_axis_value(file, a, r->point, value));
		printf("%-10.10s %5" PRIu64 ".%03" PRIu64, r->job,
			v[SW_SIM_GOODPUT] / 1000000000,
			v[SW_SIM_GOODPUT] / 1000000 % 1000);
		for (uint32_t c = 0; c < 3; c++) {
			static const enum sw_sim_column of[] = {
				SW_SIM_ROUND, SW_SIM_URGENT, SW_SIM_URGENT_P99};

			printf(" %6" PRIu64 ".%03" PRIu64, v[of[c]] / 1000000,
				v[of[c]] / 1000 % 1000);
		}
		printf(" %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %9" PRIu64
		       "%s\n",
			v[SW_SIM_AGAIN], v[SW_SIM_DROPPED], v[SW_SIM_MARKED],
			v[SW_SIM_QUEUE] / 1024,
			r->has_failed ? "  incomplete" : "");
	}
}

void sw_sim_table_free(struct sw_sim_table *t)
{
	free(t->rows);
	*t = (struct sw_sim_table){0};
}
