/* replay_worker.c - one worker: a model's layers in time, its tensors for real.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The computation is a clock: a step starts when the one before has ended and
 * its pulls are there, and ends its time later.  Who oversleeps a little is not
 * late for the next step, as a device with a queue would not be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/replay.h"
#include "pmd/host/sumwire.h"

enum { PROBE_ROUNDS = 3, PROBE_PINGS = 200 };

struct worker {
	const struct sw_replay *r;
	const struct sw_model *m;
	struct sw_client *client;
	struct sw_tensor **tensors;
	uint64_t *handles; /* 0: not open */
	uint64_t clock_ns; /* the computation's */
	uint32_t step;
	uint64_t n_wrong;
	/* r->each has said that the job may end; all have seen that. */
	bool is_last, is_over;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int failed(const struct worker *w, int err)
{
	fprintf(stderr, "sumwire replay: %s\n", sw_last_error(w->client));
	return err;
}

/* --- tensors --- */

static int declare(struct worker *w)
{
	const struct sw_model *m = w->m;
	struct sw_tensor_desc *descs = calloc(m->n_tensors, sizeof(*descs));
	int err = descs ? 0 : SW_ENOMEM;

	w->tensors = calloc(m->n_tensors, sizeof(*w->tensors));
	w->handles = calloc(m->n_tensors, sizeof(*w->handles));
	if (!w->tensors || !w->handles)
		err = SW_ENOMEM;
	for (uint32_t t = 0; t < m->n_tensors && !err; t++)
		descs[t] = (struct sw_tensor_desc){.name = m->tensors[t].name,
			.n_elems = m->tensors[t].n_elems,
			.dtype = SW_F32,
			.priority = m->tensors[t].layer};
	if (!err) {
		err = sw_declare(w->client, descs, m->n_tensors, w->tensors);
		if (err)
			failed(w, err);
	}
	free(descs);
	return err;
}

/* The first element shows that it is this step's sum of all workers. */
static float mark(const struct worker *w, uint32_t rank)
{
	return (float)(w->step % 1024 * 64 + rank + 1);
}

static float sum_of_marks(const struct worker *w)
{
	float sum = 0;

	for (uint32_t rank = 0; rank < sw_size(w->client); rank++)
		sum += mark(w, rank);
	return sum;
}

static int push(struct worker *w, uint32_t t)
{
	float *data = sw_tensor_data(w->tensors[t]);
	int err;

	data[0] = mark(w, sw_rank(w->client));
	if (w->m->tensors[t].n_elems > 1)
		data[1] = w->is_last;
	err = sw_push_pull(w->client, w->tensors[t], w->step, &w->handles[t]);
	return err ? failed(w, err) : 0;
}

/* Wait for tensors @first … @end - 1, if they are under way. */
static int pull(struct worker *w, uint32_t first, uint32_t end)
{
	for (uint32_t t = first; t < end; t++) {
		const float *sum = sw_tensor_result(w->tensors[t]);
		int err;

		if (!w->handles[t])
			continue;
		err = sw_wait(w->client, w->handles[t]);
		w->handles[t] = 0;
		if (err)
			return failed(w, err);
		w->n_wrong += sum[0] != sum_of_marks(w);
		w->is_over |= w->m->tensors[t].n_elems > 1 && sum[1] > 0;
	}
	return 0;
}

/* --- iterations --- */

static void compute(struct worker *w, uint64_t ns)
{
	struct timespec t;

	w->clock_ns += (uint64_t)(w->r->dilation * (double)ns);
	t = (struct timespec){.tv_sec = (time_t)(w->clock_ns / 1000000000),
		.tv_nsec = (long)(w->clock_ns % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* The pulls that layer @i needs; the computation goes on no earlier. */
static int wait_for_layer(struct worker *w, uint32_t i)
{
	const struct sw_model_layer *l = &w->m->layers[i];
	bool needs_all = w->r->has_barrier && i == 0;
	uint64_t before_ns = now_ns(), after_ns;
	int err = needs_all ? pull(w, 0, w->m->n_tensors)
			    : pull(w, l->first, l->first + l->n_tensors);

	after_ns = now_ns();
	/* Nothing to wait for takes some microseconds too. */
	if (after_ns - before_ns > 20000 && after_ns > w->clock_ns)
		w->clock_ns = after_ns;
	return err;
}

static int iterate(struct worker *w)
{
	const struct sw_model *m = w->m;
	int err = 0;

	for (uint32_t i = 0; i < m->n_layers && !err; i++) {
		err = wait_for_layer(w, i);
		compute(w, m->layers[i].forward_ns);
	}
	w->step++;
	for (uint32_t i = m->n_layers; i-- > 0 && !err;) {
		const struct sw_model_layer *l = &m->layers[i];

		compute(w, l->backward_ns);
		for (uint32_t t = l->first; t < l->first + l->n_tensors && !err;
			t++)
			err = push(w, t);
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
	qsort(values, n, sizeof(values[0]), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int tell(struct worker *w, double iteration_s)
{
	int err;

	if (!w->r->each || sw_rank(w->client) != 0)
		return 0;
	err = w->r->each(w->r->each_ctx, w->client, iteration_s);
	w->is_last |= err > 0;
	return err < 0 ? failed(w, err) : 0;
}

static int replay(struct worker *w, struct sw_replay_result *out)
{
	uint32_t n = w->r->n_iters;
	double *times = calloc(n, sizeof(*times));
	int err = times ? 0 : SW_ENOMEM;

	w->clock_ns = now_ns();
	for (uint32_t i = 0; i < SW_REPLAY_WARM_UP + n && !err && !w->is_over;
		i++) {
		uint64_t from_ns = w->clock_ns;
		double s;

		err = iterate(w);
		s = 1e-9 * (double)(w->clock_ns - from_ns) / w->r->dilation;
		if (i >= SW_REPLAY_WARM_UP)
			times[i - SW_REPLAY_WARM_UP] = s;
		if (!err)
			err = tell(w, s);
	}
	if (!err)
		out->iteration_s = median(times, n);
	free(times);
	return err ? err : pull(w, 0, w->m->n_tensors);
}

/* --- what the agents carry --- */

static uint32_t smallest(const struct sw_model *m)
{
	uint32_t best = 0;

	for (uint32_t t = 1; t < m->n_tensors; t++)
		if (m->tensors[t].n_elems < m->tensors[best].n_elems)
			best = t;
	return best;
}

static int probe(struct worker *w, struct sw_replay_result *out)
{
	double pings[PROBE_PINGS];
	uint32_t n = w->m->n_tensors, small = smallest(w->m);
	int err = 0;

	for (uint32_t i = 0; i < PROBE_ROUNDS && !err; i++) {
		uint64_t from_ns = now_ns();

		w->step++;
		for (uint32_t t = 0; t < n && !err; t++)
			err = push(w, t);
		if (!err)
			err = pull(w, 0, n);
		/* the first touches the memory */
		out->bytes_s = (double)w->m->bytes /
			       (1e-9 * (double)(now_ns() - from_ns));
	}
	for (uint32_t i = 0; i < PROBE_PINGS && !err; i++) {
		uint64_t from_ns = now_ns();

		w->step++;
		err = push(w, small);
		if (!err)
			err = pull(w, small, small + 1);
		pings[i] = 1e-9 * (double)(now_ns() - from_ns);
	}
	out->latency_s = median(pings, PROBE_PINGS);
	return err;
}

int sw_replay_worker(const struct sw_replay *r, struct sw_replay_result *out)
{
	struct worker w = {.r = r, .m = &r->model};
	struct sw_settings settings;
	FILE *f;
	int err;

	sw_settings_init(&settings);
	if (r->agent)
		settings.agent = r->agent;
	err = sw_open(&settings, &w.client);
	if (!err)
		err = declare(&w);
	else
		failed(&w, err);
	if (!err)
		err = r->is_probe ? probe(&w, out) : replay(&w, out);
	if (!err && w.n_wrong) {
		fprintf(stderr, "sumwire replay: %llu sums were wrong\n",
			(unsigned long long)w.n_wrong);
		err = SW_ECORRUPT;
	}
	if (!err && r->report && sw_rank(w.client) == 0) {
		f = fopen(r->report, "w");
		if (!f ||
			fprintf(f, "%.9g %.9g %.9g\n", out->iteration_s,
				out->bytes_s, out->latency_s) < 0 ||
			fclose(f)) {
			fprintf(stderr, "sumwire replay: %s: not written\n",
				r->report);
			err = SW_EIO;
		}
	}
	sw_close(&w.client);
	free(w.tensors);
	free(w.handles);
	return err;
}
