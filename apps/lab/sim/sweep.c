/* sweep.c - run the points of a sweep on all cores, and resume a sweep.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulation has no state outside its handle, so each thread runs its own.  A
 * thread writes the rows of a point to the file before it begins the next
 * point.
 */
#include "apps/lab/sim/sweep.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/lab/array.h"
#include "apps/lab/sim/sim.h"
#include "engine/base/error.h"

enum { THREADS = 256 };

struct work {
	struct sw_sim_sweep *sweep;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	FILE *f;
	bool *is_done; /* by point */
	uint32_t next, n_done, n_running, n_here;
	bool is_full; /* the file did not accept a row */
	char why[SW_SIM_TEXT];
	/* failed points of this run, and the first of them */
	uint32_t n_failed, failed;
	char failed_why[SW_SIM_TEXT];
};

static void run_point(const struct sw_sim_desc *d, struct sw_sim_result *r)
{
	struct sw_sim *s = malloc(sizeof(*s));

	if (!s)
		abort();
	if (sw_sim_open(s, d)) {
		memset(r, 0, sizeof(*r));
		memcpy(r->why, s->why, sizeof(r->why));
	} else
		sw_sim_go(s, r);
	sw_sim_end(s);
	free(s);
}

static bool is_wrong(const struct sw_sim_result *r)
{
	for (uint32_t i = 0; i < r->n_jobs; i++)
		if (r->jobs[i].n_wrong)
			return true;
	return false;
}

/* Keep the rows of a point that reached its end, or its time limit.  Called
 * with the lock. */
static void keep(struct work *w, uint32_t point, const struct sw_sim_result *r)
{
	struct sw_sim_table *t = &w->sweep->table;
	uint32_t from = t->n;

	if (r->why[0] && ((!r->n_jobs && !r->n_traffic) || is_wrong(r))) {
		memcpy(w->why, r->why, sizeof(w->why));
		return;
	}
	if (r->why[0] && !w->n_failed++) {
		w->failed = point;
		memcpy(w->failed_why, r->why, sizeof(w->failed_why));
	}
	sw_sim_table_add(t, point, r);
	sw_sim_table_write(t, from, w->sweep->file, w->f);
	w->is_full |= fflush(w->f) || ferror(w->f);
	w->n_done++;
	w->n_here++;
}

static void *work(void *ctx)
{
	struct work *w = ctx;
	struct sw_sim_file *file = w->sweep->file;
	struct sw_sim_result *r = sw_lab_array(1, sizeof(*r));

	pthread_mutex_lock(&w->lock);
	while (w->next < file->n_points && !w->is_full && !w->why[0]) {
		uint32_t point = w->next++;
		struct sw_sim_desc *d;

		if (w->is_done[point])
			continue;
		if (sw_sim_desc_read(file, point, &d))
			break;
		pthread_mutex_unlock(&w->lock);
		run_point(d, r);
		sw_sim_desc_free(d);
		pthread_mutex_lock(&w->lock);
		keep(w, point, r);
		pthread_cond_signal(&w->changed);
	}
	w->n_running--;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	free(r);
	return NULL;
}

static void show(const struct work *w, uint64_t ns, bool is_end)
{
	uint32_t n = w->sweep->file->n_points;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%s%u of %u points",
		w->sweep->label ? w->sweep->label : "", w->n_done, n);
	if (w->n_here && !is_end)
		fprintf(stderr, ", about %llu s left   ",
			(unsigned long long)(ns / 1000000000 / w->n_here *
					     (n - w->n_done)));
	fputs(is_end ? "                      \n" : "", stderr);
}

static void run_threads(struct work *w, uint32_t n)
{
	uint64_t from = sw_now_ns();
	pthread_t threads[THREADS];
	uint32_t n_begun = 0;

	while (n_begun < n && !pthread_create(&threads[n_begun], NULL, work, w))
		n_begun++;
	pthread_mutex_lock(&w->lock);
	w->n_running -= n - n_begun;
	while (w->n_running) {
		show(w, sw_now_ns() - from, false);
		pthread_cond_wait(&w->changed, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	for (uint32_t i = 0; i < n_begun; i++)
		pthread_join(threads[i], NULL);
	show(w, 0, true);
}

/* --- begin and end --- */

/* Check the descriptions of all points.  Sets *n_rows to the rows of a
 * point. */
static int check_all(struct sw_sim_file *file, uint32_t *n_rows)
{
	for (uint32_t p = 0; p < file->n_points; p++) {
		struct sw_sim_desc *d;
		int err = sw_sim_desc_read(file, p, &d);

		if (!err && (*d->record.csv || *d->record.trace ||
				    *d->record.pcapng)) {
			fprintf(stderr, "sumwire-lab sim: a sweep writes no "
					"[record]: its points would share the "
					"files\n");
			err = SW_ECONF;
		}
		if (!err)
			*n_rows = d->n_jobs + d->n_traffic;
		sw_sim_desc_free(d);
		if (err)
			return err;
	}
	return 0;
}

/* Drop the rows of points that are incomplete, as after a full disk, so that
 * these points run again. */
static void take_whole(struct work *w, uint32_t n_rows)
{
	struct sw_sim_table *t = &w->sweep->table;
	uint32_t *n = sw_lab_array(w->sweep->file->n_points, sizeof(*n));
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < t->n; i++)
		w->n_done += ++n[t->rows[i].point] == n_rows;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t point = t->rows[i].point;

		w->is_done[point] = n[point] >= n_rows;
		if (w->is_done[point])
			t->rows[n_kept++] = t->rows[i];
	}
	t->n = n_kept;
	free(n);
}

static int resume(struct work *w, uint32_t n_rows)
{
	struct sw_sim_sweep *s = w->sweep;
	int err = sw_sim_table_read(&s->table, s->file, s->out);

	if (err == SW_ECONF && !s->drops_other) {
		fprintf(stderr,
			"sumwire-lab sim: %s has rows of another "
			"description: remove it, or choose another "
			"file by --out\n",
			s->out);
		return err;
	}
	take_whole(w, n_rows);
	if (w->n_done)
		fprintf(stderr, "sumwire-lab sim: %u of %u points are in %s\n",
			w->n_done, s->file->n_points, s->out);
	return 0;
}

/* Replace the file by the sorted rows.  After an error the old file stays.
 */
static int rewrite(const struct sw_sim_sweep *s)
{
	char path[4096];
	FILE *f = NULL;
	bool is_bad = true;

	if (snprintf(path, sizeof(path), "%s.new", s->out) < (int)sizeof(path))
		f = fopen(path, "w");
	if (f) {
		sw_sim_table_write(&s->table, 0, s->file, f);
		is_bad = ferror(f);
		is_bad |= fclose(f) != 0;
	}
	if (!is_bad && !rename(path, s->out))
		return 0;
	fprintf(stderr, "sumwire-lab sim: %s cannot be written: %s\n", s->out,
		strerror(errno));
	return SW_EIO;
}

static int finish(struct work *w)
{
	struct sw_sim_sweep *s = w->sweep;

	if (fclose(w->f))
		w->is_full = true;
	w->f = NULL;
	if (w->is_full) {
		fprintf(stderr,
			"sumwire-lab sim: %s is full; free space, and the "
			"same command continues the sweep\n",
			s->out);
		return SW_EIO;
	}
	if (w->why[0]) {
		sw_sim_file_refuse(s->file, w->why);
		return SW_ECONF;
	}
	if (w->n_failed)
		fprintf(stderr,
			"sumwire-lab sim: %u points are incomplete; point %u: "
			"%s\n",
			w->n_failed, w->failed, w->failed_why);
	sw_sim_table_sort(&s->table);
	return rewrite(s);
}

static uint32_t n_threads(const struct sw_sim_sweep *s, const struct work *w)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t n =
		s->n_threads ? s->n_threads : (uint32_t)(cores > 0 ? cores : 1);
	uint32_t left = s->file->n_points - w->n_done;

	n = n < left ? n : left;
	return n < THREADS ? n : THREADS;
}

int sw_sim_sweep_run(struct sw_sim_sweep *s)
{
	struct work w = {.sweep = s,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER};
	uint32_t n_rows = 0;
	int err = check_all(s->file, &n_rows);

	if (err)
		return err;
	w.is_done = calloc(s->file->n_points, sizeof(*w.is_done));
	if (!w.is_done)
		return SW_ENOMEM;
	err = resume(&w, n_rows);
	if (!err)
		err = rewrite(s);
	if (!err)
		w.f = fopen(s->out, "a");
	if (!err && w.f) {
		w.n_running = n_threads(s, &w);
		run_threads(&w, w.n_running);
		err = finish(&w);
	}
	if (w.f)
		fclose(w.f);
	free(w.is_done);
	return err;
}
