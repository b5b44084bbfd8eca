/* measure_sums.c - push_pulls of a device's memory beside the host's.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sumwire/device.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"
#include "test/cuda/measure.h"

enum { ROUNDS = 7, SMALL = 64 << 10, ALONE = 200, UNDER = 20, EACH = 6 };

struct rank {
	struct sw_client *c;
	struct sw_device *d;
	struct sw_tensor *host;
	struct sw_device_tensor *big, *small;
	void *big_at, *small_at;
	uint64_t bytes;
	uint32_t step;
};

static void must(struct rank *r, int err)
{
	measure_must(!err, "%s: %s", sw_error_name(err), sw_last_error(r->c));
}

static double seconds_since(uint64_t from_ns)
{
	return 1e-9 * (double)(sw_edge_now_ns() - from_ns);
}

static void open_rank(struct rank *r, const char *backend, uint64_t bytes)
{
	struct sw_settings settings;
	struct sw_device_settings device = SW_DEVICE_SETTINGS_INIT;
	struct sw_tensor_desc host = SW_TENSOR_DESC_INIT;
	struct sw_tensor_desc on[2] = {
		SW_TENSOR_DESC_INIT, SW_TENSOR_DESC_INIT};
	struct sw_device_tensor *made[2];

	*r = (struct rank){.bytes = bytes};
	sw_settings_init(&settings);
	must(r, sw_open(&settings, &r->c));
	device.backend = backend;
	must(r, sw_device_open(r->c, &device, &r->d));
	host.name = "fake";
	on[0].name = "big";
	on[1].name = "small";
	host.dtype = on[0].dtype = on[1].dtype = SW_F32;
	host.n_elems = on[0].n_elems = bytes / 4;
	on[1].n_elems = SMALL / 4;
	host.priority = on[0].priority = 1;
	must(r, sw_declare(r->c, &host, 1, &r->host));
	must(r, sw_device_declare(r->d, on, 2, made));
	r->big = made[0];
	r->small = made[1];
	must(r, sw_device_alloc(r->d, bytes, &r->big_at));
	must(r, sw_device_alloc(r->d, SMALL, &r->small_at));
}

static void close_rank(struct rank *r)
{
	sw_device_free(r->d, r->big_at);
	sw_device_free(r->d, r->small_at);
	sw_device_close(&r->d);
	sw_close(&r->c);
}

static void push(struct rank *r, struct sw_device_tensor *t, void *at)
{
	struct sw_device_call call = SW_DEVICE_CALL_INIT;

	call.from = call.to = at;
	call.step = r->step++;
	must(r, sw_push_pull_device(t, &call));
}

static double sum_there(struct rank *r, struct sw_device_tensor *t, void *at)
{
	uint64_t from_ns = sw_edge_now_ns();

	push(r, t, at);
	must(r, sw_device_wait(t));
	return seconds_since(from_ns);
}

static double sum_here(struct rank *r)
{
	uint64_t from_ns = sw_edge_now_ns(), handle;

	must(r, sw_push_pull(r->c, r->host, r->step++, &handle));
	must(r, sw_wait(r->c, handle));
	return seconds_since(from_ns);
}

/* Ones: each rank's, then the sum. */
static void check_sum(struct rank *r)
{
	uint64_t n = r->bytes / 4;
	float *x = malloc(r->bytes);

	measure_must(x, "no memory");
	for (uint64_t i = 0; i < n; i++)
		x[i] = 1;
	must(r, sw_device_copy(r->d, r->big_at, x, r->bytes));
	(void)sum_there(r, r->big, r->big_at);
	must(r, sw_device_copy(r->d, x, r->big_at, r->bytes));
	for (uint64_t i = 0; i < n; i++)
		measure_must(x[i] == (float)sw_size(r->c), "element %llu is %f",
			(unsigned long long)i, (double)x[i]);
	for (uint64_t i = 0; i < n; i++)
		x[i] = 0; /* so that what follows stays finite */
	must(r, sw_device_copy(r->d, r->big_at, x, r->bytes));
	must(r, sw_device_copy(r->d, r->small_at, x, SMALL));
	free(x);
}

/* In turns. */
static void compare_places(struct rank *r)
{
	double ratios[ROUNDS], here[ROUNDS];
	struct sw_quartiles q;

	(void)sum_here(r);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		double there = sum_there(r, r->big, r->big_at);

		here[i] = sum_here(r);
		ratios[i] = here[i] / there;
	}
	q = sw_quartiles_of(ratios, ROUNDS);
	if (!sw_rank(r->c))
		printf("%llu MiB: from memory %.1f Gb/s; from the device %.2f "
		       "(%.2f-%.2f) of it\n",
			(unsigned long long)(r->bytes >> 20),
			8e-9 * (double)r->bytes /
				sw_quartiles_of(here, ROUNDS).middle,
			q.middle, q.low, q.high);
	if (!sw_rank(r->c))
		printf("{\"push_pull_mib\": %llu, \"device_over_host\": [%.3f, "
		       "%.3f, %.3f]}\n",
			(unsigned long long)(r->bytes >> 20), q.low, q.middle,
			q.high);
}

/* Small ones that were over before the big one was; all ranks call as many. */
static void compare_small(struct rank *r)
{
	double alone[ALONE], under[UNDER * EACH];
	uint32_t n = 0;

	for (uint32_t i = 0; i < ALONE; i++)
		alone[i] = sum_there(r, r->small, r->small_at);
	for (uint32_t i = 0; i < UNDER; i++) {
		push(r, r->big, r->big_at);
		for (uint32_t k = 0; k < EACH; k++) {
			double took = sum_there(r, r->small, r->small_at);

			if (sw_device_poll(r->big) == SW_EAGAIN)
				under[n++] = took;
		}
		must(r, sw_device_wait(r->big));
	}
	if (sw_rank(r->c))
		return;
	measure_must(n > 0, "nothing was small enough");
	printf("64 KiB: p50 %.0f us alone, %.0f us under %llu MiB (%u)\n",
		1e6 * sw_quartiles_of(alone, ALONE).middle,
		1e6 * sw_quartiles_of(under, n).middle,
		(unsigned long long)(r->bytes >> 20), n);
	printf("{\"small_us_alone\": %.1f, \"small_us_under_load\": %.1f}\n",
		1e6 * sw_quartiles_of(alone, ALONE).middle,
		1e6 * sw_quartiles_of(under, n).middle);
}

void measure_sums(const char *backend, uint32_t mib)
{
	struct rank r;

	open_rank(&r, backend, (uint64_t)mib << 20);
	check_sum(&r);
	compare_places(&r);
	compare_small(&r);
	close_rank(&r);
}
