/* replay_rank.c - one rank: real tensors, and layers as timed waits.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A clock replaces the computation.  A step starts when the previous step has
 * ended and its pulls have completed, and ends after its time.  A rank that
 * oversleeps a little still starts its next step on time, like a device with a
 * queue.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/cli/clock.h"
#include "apps/cli/quartiles.h"
#include "apps/lab/replay.h"
#include <sumwire/device.h>

enum {
	PROBE_ROUNDS = 6, /* the first touches the memory and is discarded */
	PROBE_PINGS = 200,
	PROBE_PACED = 64 << 20, /* bytes of a round over a paced port */
	SEARCH = 400,           /* most iterations until a tuner settles */
};

struct rank {
	const struct sw_replay *r;
	const struct sw_model *m;
	struct sw_client *client;
	struct sw_tensor **tensors;
	uint64_t *handles; /* 0: no open request */
	/* With r->device: its tensors, and their addresses in its memory. */
	struct sw_device *device;
	struct sw_device_tensor **device_tensors;
	void **memory;
	uint64_t clock_ns; /* time of the computation */
	uint32_t step;
	uint64_t n_wrong;
	double *times; /* seconds of each counted iteration; r->n_iters */
	uint32_t n_times;
	/* is_last: r->each has ended the job. is_over: all ranks know it. */
	bool is_last, is_over;
};

static int failed(const struct rank *w, int err)
{
	fprintf(stderr, "sumwire-lab replay: %s\n", sw_last_error(w->client));
	return err;
}

/* --- tensors --- */

/* Allocate zeros: additions of other numbers differ in speed. */
static int alloc_on_device(struct rank *w, uint64_t bytes, void **out)
{
	void *zeros = calloc(1, bytes);
	int err = SW_ENOMEM;

	if (zeros)
		err = sw_device_alloc(w->device, bytes, out);
	if (!err)
		err = sw_device_copy(w->device, *out, zeros, bytes);
	free(zeros);
	return err;
}

static int declare_to_device(struct rank *w, const struct sw_tensor_desc *descs)
{
	const struct sw_model *m = w->m;
	struct sw_device_settings settings = SW_DEVICE_SETTINGS_INIT;
	int err;

	settings.backend = w->r->device;
	settings.piece_bytes = w->r->piece_bytes;
	w->device_tensors = calloc(m->n_tensors, sizeof(*w->device_tensors));
	w->memory = calloc(m->n_tensors, sizeof(*w->memory));
	if (!w->device_tensors || !w->memory)
		return SW_ENOMEM;
	err = sw_device_open(w->client, &settings, &w->device);
	for (uint32_t t = 0; t < m->n_tensors && !err; t++)
		err = alloc_on_device(w, m->tensors[t].n_elems * sizeof(float),
			&w->memory[t]);
	return err ? err
		   : sw_device_declare(
			     w->device, descs, m->n_tensors, w->device_tensors);
}

static void close_device(struct rank *w)
{
	for (uint32_t t = 0; w->device && t < w->m->n_tensors; t++)
		sw_device_free(w->device, w->memory[t]);
	sw_device_close(&w->device);
	free(w->memory);
	free(w->device_tensors);
}

static int declare(struct rank *w)
{
	const struct sw_model *m = w->m;
	struct sw_tensor_desc *descs = calloc(m->n_tensors, sizeof(*descs));
	int err = descs ? 0 : SW_ENOMEM;

	w->tensors = calloc(m->n_tensors, sizeof(*w->tensors));
	w->handles = calloc(m->n_tensors, sizeof(*w->handles));
	if (!w->tensors || !w->handles)
		err = SW_ENOMEM;
	for (uint32_t t = 0; t < m->n_tensors && !err; t++)
		descs[t] = (struct sw_tensor_desc){
			.size = sizeof(struct sw_tensor_desc),
			.name = m->tensors[t].name,
			.n_elems = m->tensors[t].n_elems,
			.dtype = SW_F32,
			.priority = m->tensors[t].layer};
	if (!err) {
		err = w->r->device ? declare_to_device(w, descs)
				   : sw_declare(w->client, descs, m->n_tensors,
					     w->tensors);
		if (err)
			failed(w, err);
	}
	free(descs);
	return err;
}

/* Return the first element of a rank's tensor, by which the sum of this step is
 * checked. */
static float mark(const struct rank *w, uint32_t rank)
{
	return (float)(w->step % 1024 * 64 + rank + 1);
}

static float sum_of_marks(const struct rank *w)
{
	float sum = 0;

	for (uint32_t rank = 0; rank < sw_size(w->client); rank++)
		sum += mark(w, rank);
	return sum;
}

static int start(struct rank *w, uint32_t t)
{
	struct sw_device_call call = SW_DEVICE_CALL_INIT;

	if (!w->device)
		return sw_push_pull(
			w->client, w->tensors[t], w->step, &w->handles[t]);
	call.from = call.to = w->memory[t];
	call.step = w->step;
	w->handles[t] = 1;
	return sw_push_pull_device(w->device_tensors[t], &call);
}

/* Return the bytes of the elements with a meaning: the mark, and whether this
 * iteration is the last. */
static uint64_t head_bytes(const struct rank *w, uint32_t t)
{
	return w->m->tensors[t].n_elems > 1 ? 2 * sizeof(float) : sizeof(float);
}

static int push_tensor(struct rank *w, uint32_t t)
{
	const float head[2] = {mark(w, sw_rank(w->client)), w->is_last};
	int err = 0;

	if (w->device)
		err = sw_device_copy(
			w->device, w->memory[t], head, head_bytes(w, t));
	else
		memcpy(sw_tensor_data(w->tensors[t]), head, head_bytes(w, t));
	if (!err)
		err = start(w, t);
	return err ? failed(w, err) : 0;
}

/* Wait for a sum, and copy its first elements. */
static int take_sum(struct rank *w, uint32_t t, float *head)
{
	int err = w->device ? sw_device_wait(w->device_tensors[t])
			    : sw_wait(w->client, w->handles[t]);

	w->handles[t] = 0;
	if (!err && w->device)
		err = sw_device_copy(
			w->device, head, w->memory[t], head_bytes(w, t));
	else if (!err)
		memcpy(head, sw_tensor_result(w->tensors[t]), head_bytes(w, t));
	return err;
}

/* Wait for tensors @first … @end - 1, as far as they are in flight. */
static int pull(struct rank *w, uint32_t first, uint32_t end)
{
	for (uint32_t t = first; t < end; t++) {
		float sum[2] = {0};
		int err;

		if (!w->handles[t])
			continue;
		err = take_sum(w, t, sum);
		if (err)
			return failed(w, err);
		w->n_wrong += sum[0] != sum_of_marks(w);
		w->is_over |= sum[1] > 0;
	}
	return 0;
}

/* --- iterations --- */

static void compute(struct rank *w, uint64_t ns)
{
	struct timespec t;

	w->clock_ns += (uint64_t)(w->r->dilation * (double)ns);
	t = (struct timespec){.tv_sec = (time_t)(w->clock_ns / 1000000000),
		.tv_nsec = (long)(w->clock_ns % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Wait for the pulls that layer @i needs.  The computation continues not before
 * they have completed. */
static int wait_for_layer(struct rank *w, uint32_t i)
{
	const struct sw_model_layer *l = &w->m->layers[i];
	bool needs_all = w->r->has_barrier && i == 0;
	uint64_t before_ns = sw_now_ns(), after_ns;
	int err = needs_all ? pull(w, 0, w->m->n_tensors)
			    : pull(w, l->first, l->first + l->n_tensors);

	after_ns = sw_now_ns();
	/* Even a wait for nothing takes some microseconds. */
	if (after_ns - before_ns > 20000 && after_ns > w->clock_ns)
		w->clock_ns = after_ns;
	return err;
}

static int iterate(struct rank *w)
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
			err = push_tensor(w, t);
	}
	return err;
}

/* Note that iteration @i took @s seconds. */
static int note(struct rank *w, uint32_t i, double s)
{
	int verdict = SW_REPLAY_COUNTS;

	if (w->r->each && sw_rank(w->client) == 0)
		verdict = w->r->each(w->r->each_ctx, w->client, s);
	if (verdict < 0)
		return failed(w, verdict);
	w->is_last |= verdict == SW_REPLAY_OVER;
	if (i < SW_REPLAY_WARM_UP || verdict == SW_REPLAY_FORGET)
		w->n_times = 0;
	else if (w->n_times < w->r->n_iters)
		w->times[w->n_times++] = s;
	return 0;
}

static int replay(struct rank *w, struct sw_replay_result *out)
{
	uint32_t most = SW_REPLAY_WARM_UP + w->r->n_iters +
			(w->r->is_tuned ? SEARCH : 0);
	int err = 0;

	w->times = calloc(w->r->n_iters, sizeof(*w->times));
	if (!w->times)
		return SW_ENOMEM;
	w->clock_ns = sw_now_ns();
	for (uint32_t i = 0; i < most && !err && !w->is_over; i++) {
		uint64_t from_ns = w->clock_ns;

		err = iterate(w);
		if (!err)
			err = note(w, i,
				1e-9 * (double)(w->clock_ns - from_ns) /
					w->r->dilation);
	}
	if (!err && w->n_times) {
		out->iteration_s = sw_quartiles_of(w->times, w->n_times).middle;
		out->spread = (w->times[w->n_times - 1] - w->times[0]) /
			      out->iteration_s;
	}
	return err ? err : pull(w, 0, w->m->n_tensors);
}

/* --- the capacity of the agents --- */

static uint32_t smallest(const struct sw_model *m)
{
	uint32_t best = 0;

	for (uint32_t t = 1; t < m->n_tensors; t++)
		if (m->tensors[t].n_elems < m->tensors[best].n_elems)
			best = t;
	return best;
}

/* Tensors of one simultaneous push. */
struct sample {
	uint32_t n, ids[SW_MODEL_TENSORS];
	double bytes, n_parts; /* n_parts: p3's parts */
};

/* Choose all tensors; over a paced port, only as many as take a moment. */
static void choose(const struct rank *w, struct sample *s)
{
	double part = (double)sw_policies[SW_POLICY_P3].part_bytes,
	       most = INFINITY;
	struct sw_tuning now;

	sw_get_tuning(w->client, &now);
	if (now.rate_bit_s)
		most = PROBE_PACED;
	s->n = 0;
	s->bytes = s->n_parts = 0;
	for (uint32_t t = 0; t < w->m->n_tensors; t++) {
		double bytes = 4.0 * (double)w->m->tensors[t].n_elems;

		if (s->bytes + bytes > most && t != smallest(w->m))
			continue;
		s->ids[s->n++] = t;
		s->bytes += bytes;
		s->n_parts += ceil(bytes / part);
	}
}

/* Measure the seconds from the first push to the last sum. */
static int push_and_pull(struct rank *w, const struct sample *s, double *took)
{
	uint64_t from_ns = sw_now_ns();
	int err = 0;

	w->step++;
	for (uint32_t i = 0; i < s->n && !err; i++)
		err = push_tensor(w, s->ids[i]);
	for (uint32_t i = 0; i < s->n && !err; i++)
		err = pull(w, s->ids[i], s->ids[i] + 1);
	*took = 1e-9 * (double)(sw_now_ns() - from_ns);
	return err;
}

static int probe(struct rank *w, struct sw_replay_result *out)
{
	double rounds[PROBE_ROUNDS], pings[PROBE_PINGS];
	struct sample *all = calloc(1, sizeof(*all));
	struct sample *small = calloc(1, sizeof(*small));
	int err = all && small ? 0 : SW_ENOMEM;

	if (!err) {
		choose(w, all);
		*small = (struct sample){.n = 1, .ids = {smallest(w->m)}};
	}
	for (uint32_t i = 0; i < PROBE_ROUNDS && !err; i++)
		err = push_and_pull(w, all, &rounds[i]);
	for (uint32_t i = 0; i < PROBE_PINGS && !err; i++)
		err = push_and_pull(w, small, &pings[i]);
	if (!err) {
		out->bytes_s =
			all->bytes /
			sw_quartiles_of(rounds + 1, PROBE_ROUNDS - 1).middle;
		out->part_bytes = all->bytes / all->n_parts;
		out->latency_s = sw_quartiles_of(pings, PROBE_PINGS).middle;
	}
	free(all);
	free(small);
	return err;
}

/* Write rank 0's measurements for its parent process. */
static int write_report(const char *path, const struct sw_replay_result *out)
{
	FILE *f = fopen(path, "w");
	bool is_bad = !f || fprintf(f, "%.9g %.9g %.9g %.9g %.9g\n",
				    out->iteration_s, out->spread, out->bytes_s,
				    out->part_bytes, out->latency_s) < 0;

	if (f && fclose(f))
		is_bad = true;
	if (is_bad)
		fprintf(stderr, "sumwire-lab replay: %s: not written\n", path);
	return is_bad ? SW_EIO : 0;
}

int sw_replay_rank(const struct sw_replay *r, struct sw_replay_result *out)
{
	struct rank w = {.r = r, .m = &r->model};
	struct sw_settings settings;
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
		fprintf(stderr, "sumwire-lab replay: %llu sums were wrong\n",
			(unsigned long long)w.n_wrong);
		err = SW_ECORRUPT;
	}
	if (!err && r->report && sw_rank(w.client) == 0)
		err = write_report(r->report, out);
	close_device(&w);
	sw_close(&w.client);
	free(w.tensors);
	free(w.handles);
	free(w.times);
	return err;
}
