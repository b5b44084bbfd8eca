/* replay_outcome.c - reference times of a replay, and its outcome as JSON.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "apps/lab/replay.h"
#include "engine/sched/policy.h"

/* A paced rate may use this share of the machine's unpaced capacity.  Pacing
 * makes lcores sleep and wake, which takes CPU time from the other
 * processes. */
#define SHARE 0.35

static void add_copies(const struct sw_replay *r, struct sw_plan_link *link)
{
	link->copy_bytes_s = (double)r->copy_bit_s / 8;
	link->piece_bytes = (double)r->piece_bytes;
}

int sw_replay_predict(const struct sw_replay *r, struct sw_replay_outcome *o)
{
	struct sw_policy p = *sw_policy_find(r->policy);
	struct sw_plan_run run = {.model = &r->model,
		.link = {.rate_bytes_s = (double)r->rate_bit_s / 8,
			.latency_s = o->latency_s,
			.credit_s = o->credit_s,
			.is_sorted = true},
		.has_barrier = r->has_barrier,
		.time_scale = 1};
	int err;

	if (r->device)
		add_copies(r, &run.link);
	err = sw_plan_ideal(&run, &o->ideal_s);
	if (p.is_tunable && r->partition_bytes)
		p.part_bytes = r->partition_bytes;
	if (p.is_tunable && r->credit_bytes)
		p.credit_bytes = r->credit_bytes;
	if (!err)
		err = sw_plan_simulate(&run, &p, &o->simulated_s);
	if (err || !r->copy_bit_s || r->device)
		return err;
	add_copies(r, &run.link);
	return sw_plan_simulate(&run, &p, &o->copied_s);
}

int sw_replay_dilate(const struct sw_replay *r, struct sw_replay_outcome *o)
{
	double rate = (double)r->rate_bit_s / 8;
	struct sw_replay_result probe, p3;
	int err = sw_replay_loopback(r, true, "bytescheduler", 0, &probe);

	if (err)
		return err;
	o->dilation = r->dilation > 0 ? r->dilation
				      : fmax(1, rate / (SHARE * probe.bytes_s));
	o->latency_s = probe.latency_s / o->dilation;
	/* For each part, the time by which stop-and-wait exceeds the link's
	 * time. */
	err = sw_replay_loopback(r, true, "p3", o->dilation, &p3);
	if (err)
		return err;
	o->credit_s = fmax(0, p3.part_bytes / (p3.bytes_s * o->dilation) -
				      p3.part_bytes / rate);
	fprintf(stderr,
		"sumwire-lab replay: %u ranks carry %.2f Gb/s each way here, "
		"a result takes %.0f us, a credit %.0f us; time is dilated by "
		"%.3g\n",
		r->n_ranks, 8e-9 * probe.bytes_s, 1e6 * probe.latency_s,
		1e6 * o->credit_s * o->dilation, o->dilation);
	return 0;
}

void sw_replay_write(struct sw_json *j, const struct sw_replay *r,
	const struct sw_replay_outcome *o)
{
	const struct sw_replay_result *m = &o->measured;
	double speedup = o->fifo_s > 0 ? o->fifo_s / m->iteration_s : NAN;

	sw_json_object_open(j, NULL);
	sw_json_text(j, "model", r->model.name);
	sw_json_text(j, "policy", r->policy);
	sw_json_double(j, "rate_gbit_s", 1e-9 * (double)r->rate_bit_s);
	sw_json_double(j, "iteration_ms", 1e3 * m->iteration_s);
	sw_json_double(j, "ideal_ms", 1e3 * o->ideal_s);
	sw_json_double(j, "speedup_over_fifo", speedup);
	sw_json_double(j, "simulated_ms", 1e3 * o->simulated_s);
	sw_json_double(j, "simulated_with_copies_ms",
		o->copied_s > 0 ? 1e3 * o->copied_s : NAN);
	sw_json_double(j, "dilation", o->dilation);
	sw_json_double(j, "spread", m->spread);
	sw_json_double(j, "other_cores", r->is_loopback ? m->other_cores : NAN);
	sw_json_u64(j, "ranks", r->n_ranks);
	sw_json_u64(j, "iterations", r->n_iters);
	sw_json_text(j, "device", r->device);
	sw_json_bool(j, "barrier", r->has_barrier);
	sw_json_close(j);
}
