/* bench_urgent.c - sumwire bench --urgent: latency behind a large tensor.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It measures a small tensor of top priority, alone and while a large tensor of
 * the lowest priority is in flight.  Both cases alternate after a few samples,
 * so that other load of the machine affects both.
 *
 * If server and agent poll on the only two cores, this process runs only when
 * the kernel preempts a poller, and pollers under load never sleep.  Therefore
 * it sleeps while it waits for its sum, as training processes do, and asks for
 * short slices.  The kernel then schedules it as soon as it wakes (EEVDF, Linux
 * 6.12), instead of a millisecond or more later, when a poller's slice ends.
 */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/clock.h"
#include "apps/cli/json.h"
#include "apps/cli/quartiles.h"
#include "engine/base/error.h"
#include <sumwire/sumwire.h>

enum {
	URGENT_BYTES = 64 << 10,
	LOAD_BYTES = 256 << 20,
	LEAST_URGENT = 1000000,
	BLOCK = 25, /* samples of one kind in a row */
	WARM_UP = 20,
	SAMPLES = 1000,      /* of each kind */
	SETTLE_NS = 5000000, /* from the load's push to the first sample */
	MISSED = 20,         /* loads without a sample that end the bench */
	SLICE_NS = 100000,   /* shortest slice that Linux grants */
};

struct urgent {
	const struct bench_options *o;
	struct sw_client *client;
	struct sw_tensor *small, *large;
	uint32_t n_samples, step, n_alone, n_loaded;
	uint32_t n_missed; /* loads in a row without a sample */
	double *alone_us, *loaded_us;
};

static int fail(const struct urgent *u, int err)
{
	fprintf(stderr, "sumwire bench: %s: %s\n", sw_error_text(err),
		sw_last_error(u->client));
	return err;
}

/* Ask for short slices.  A kernel without them ignores the request. */
static void ask_for_short_slices(void)
{
	struct sched_attr a = {.size = sizeof(a),
		.sched_policy = SCHED_NORMAL,
		.sched_runtime = SLICE_NS};

	(void)syscall(SYS_sched_setattr, 0, &a, 0);
}

static int sample(struct urgent *u, double *us)
{
	uint64_t handle, from = sw_now_ns();
	int err = sw_push_pull(u->client, u->small, u->step++, &handle);

	if (!err)
		err = u->o->is_polling ? sw_wait_polling(u->client, handle)
				       : sw_wait(u->client, handle);
	*us = (double)(sw_now_ns() - from) / 1e3;
	return err ? fail(u, err) : 0;
}

static int sample_alone(struct urgent *u)
{
	int err = 0;

	for (uint32_t i = 0; i < BLOCK && u->n_alone < u->n_samples && !err;
		i++)
		err = sample(u, &u->alone_us[u->n_alone++]);
	return err;
}

/* Return the time from the load's push until the intended load flows, in ns:
 * pushes, or only results. */
static uint64_t settle_ns(const struct urgent *u)
{
	return !u->o->is_results ? SETTLE_NS
				 : (uint64_t)(LOAD_BYTES * 8.8e9 /
					      (double)u->o->rate_bit_s) +
					   SETTLE_NS;
}

/* Take samples while the large tensor is in flight, and drop the one during
 * which it completes, unless it is the first: with fifo it waits for the large
 * tensor. */
static int sample_loaded(struct urgent *u)
{
	const struct timespec nap = {.tv_nsec = SETTLE_NS / 5};
	uint64_t handle, from = sw_now_ns();
	int err = sw_push_pull(u->client, u->large, u->step++, &handle);
	int open = SW_EAGAIN;

	if (err)
		return fail(u, err);
	while (sw_now_ns() - from < settle_ns(u) && open == SW_EAGAIN) {
		/* polling would occupy a poller's core */
		nanosleep(&nap, NULL);
		open = sw_poll(u->client, handle);
	}
	if (!open && ++u->n_missed == MISSED) {
		fprintf(stderr,
			"sumwire bench: %d loads in a row ended before a "
			"sample: lower --rate\n",
			MISSED);
		return SW_ETIMEDOUT;
	}
	for (uint32_t i = 0;
		open == SW_EAGAIN && i < BLOCK && u->n_loaded < u->n_samples;
		i++) {
		err = sample(u, &u->loaded_us[u->n_loaded]);
		if (err)
			return err;
		open = sw_poll(u->client, handle);
		u->n_loaded += open == SW_EAGAIN || i == 0;
		u->n_missed = 0;
	}
	err = open == SW_EAGAIN ? sw_wait(u->client, handle) : open;
	return err ? fail(u, err) : 0;
}

static int declare(struct urgent *u)
{
	const struct sw_tensor_desc descs[] = {
		{.size = sizeof(struct sw_tensor_desc),
			.name = "urgent",
			.n_elems = URGENT_BYTES / 4,
			.dtype = SW_F32},
		{.size = sizeof(struct sw_tensor_desc),
			.name = "load",
			.n_elems = LOAD_BYTES / 4,
			.dtype = SW_F32,
			.priority = LEAST_URGENT},
	};
	struct sw_tensor *t[2];
	int err = sw_declare(u->client, descs, 2, t);

	u->small = t[0];
	u->large = t[1];
	return err ? fail(u, err) : 0;
}

static int measure(struct urgent *u)
{
	double us;
	int err = declare(u);

	for (uint32_t i = 0; i < WARM_UP && !err; i++)
		err = sample(u, &us);
	while (!err &&
		(u->n_alone < u->n_samples || u->n_loaded < u->n_samples)) {
		err = sample_alone(u);
		if (!err && u->n_loaded < u->n_samples)
			err = sample_loaded(u);
	}
	return err;
}

static double percentile(const double *us, uint32_t n, uint32_t percent)
{
	return us[(uint64_t)(n - 1) * percent / 100];
}

static void report(const struct urgent *u)
{
	const double *us[] = {u->alone_us, u->loaded_us};
	const char *const names[] = {"alone", "loaded"};
	double p99[2];
	struct sw_json j;

	if (u->o->is_json) {
		sw_json_init(&j, stdout);
		sw_json_object_open(&j, NULL);
		sw_json_text(&j, "policy", u->o->policy);
		sw_json_text(
			&j, "load", u->o->is_results ? "results" : "pushes");
		sw_json_double(
			&j, "rate_gbit_s", (double)u->o->rate_bit_s / 1e9);
		sw_json_u64(&j, "samples", u->n_samples);
	} else {
		printf("# %s, 64 KiB of top priority; load: 256 MiB of %s\n"
		       "#%7s %10s %10s %10s\n",
			u->o->policy, u->o->is_results ? "results" : "pushes",
			"", "p50 (us)", "p99 (us)", "max (us)");
	}
	for (uint32_t i = 0; i < 2; i++) {
		double p50 = percentile(us[i], u->n_samples, 50);
		double max = percentile(us[i], u->n_samples, 100);

		p99[i] = percentile(us[i], u->n_samples, 99);
		if (u->o->is_json) {
			sw_json_object_open(&j, names[i]);
			sw_json_double(&j, "p50_us", p50);
			sw_json_double(&j, "p99_us", p99[i]);
			sw_json_double(&j, "max_us", max);
			sw_json_close(&j);
		} else {
			printf("%8s %10.1f %10.1f %10.1f\n", names[i], p50,
				p99[i], max);
		}
	}
	if (!u->o->is_json) {
		printf("# p99 loaded / p99 alone: %.2f\n", p99[1] / p99[0]);
		return;
	}
	sw_json_double(&j, "p99_ratio", p99[1] / p99[0]);
	sw_json_close(&j);
	sw_json_fini(&j);
}

int sw_bench_urgent(const struct bench_options *o, const char *path)
{
	struct urgent u = {
		.o = o, .n_samples = o->n_iters ? o->n_iters : SAMPLES};
	struct sw_settings s;
	int err;

	u.alone_us = calloc(u.n_samples, sizeof(double));
	u.loaded_us = calloc(u.n_samples, sizeof(double));
	sw_settings_init(&s);
	s.agent = path;
	ask_for_short_slices();
	err = u.alone_us && u.loaded_us ? sw_open(&s, &u.client) : SW_ENOMEM;
	if (err)
		fprintf(stderr, "sumwire bench: %s: %s\n", sw_error_text(err),
			sw_last_error(NULL));
	else
		err = measure(&u);
	sw_close(&u.client);
	if (!err) {
		sw_sort(u.alone_us, u.n_samples);
		sw_sort(u.loaded_us, u.n_samples);
		report(&u);
	}
	free(u.alone_us);
	free(u.loaded_us);
	return err;
}
