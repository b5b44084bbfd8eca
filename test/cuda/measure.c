/* measure.c - the pipeline of a device beside its bare copies.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   measure copies BACKEND [MIB]
 *   measure hold BACKEND
 *   sumwire run -np 2 measure sums BACKEND [MIB]
 *
 * BACKEND is "cuda", or "fake" with options (pmd/cuda/fake.h).
 */
#include "test/cuda/measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "pmd/client/edge.h"
#include "pmd/client/segment.h"
#include "pmd/cuda/pipeline.h"

enum {
	MIB = 1 << 20,
	ROUNDS = 7,
	WARM_UP = 4,
	SLICE_MIN = 128 << 10,
	SLICE_MAX = 2 * MIB,
};

void measure_must(bool is_so, const char *fmt, ...)
{
	va_list ap;

	if (is_so)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	exit(1);
}

void measure_open(struct measure_ground *g, const char *backend, uint64_t half)
{
	const char *options;
	char why[SW_BACK_WHY];
	uint64_t from_ns;
	double seconds;

	*g = (struct measure_ground){.half = half};
	g->ops = sw_back_find(backend, &options);
	measure_must(g->ops, "unknown back end %s", backend);
	measure_must(!g->ops->open(options, -1, &g->back, why), "%s", why);
	measure_must(!g->ops->enter(g->back, why), "%s", why);
	measure_must(!sw_segment_create(&g->pinned, "measure", 2 * half) &&
			     !sw_segment_reserve(&g->pinned, 0, 2 * half),
		"no memory");
	from_ns = sw_edge_now_ns();
	measure_must(
		!g->ops->pin(g->back, g->pinned.base, 2 * half, false, why),
		"%s", why);
	seconds = 1e-9 * (double)(sw_edge_now_ns() - from_ns);
	printf("pinned %llu MiB in %.1f ms\n",
		(unsigned long long)(2 * half / MIB), 1e3 * seconds);
	printf("{\"pinned_mib\": %llu, \"gib_s\": %.2f}\n",
		(unsigned long long)(2 * half / MIB),
		(double)(2 * half) / (1 << 30) / seconds);
	measure_must(
		!g->ops->alloc(g->back, 2 * half, (void **)&g->device, why),
		"%s", why);
	memset(g->pinned.base, 1, 2 * half);
	measure_must(!g->ops->move(
			     g->back, g->device, g->pinned.base, 2 * half, why),
		"%s", why);
}

void measure_close(struct measure_ground *g)
{
	g->ops->release(g->back, g->device);
	g->ops->unpin(g->back, g->pinned.base);
	g->ops->close(g->back);
	sw_segment_fini(&g->pinned);
}

/* --- bare copies --- */

/* All of one half out, all of the other in, @each at once; seconds. */
static double copy_bare(struct measure_ground *g, uint64_t each)
{
	char why[SW_BACK_WHY], *pinned = g->pinned.base;
	uint64_t from_ns;
	void *events[SW_BACK_WAYS];
	int err = 0;

	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		err |= g->ops->event_open(g->back, &events[i], why);
	from_ns = sw_edge_now_ns();
	for (uint64_t at = 0; at < g->half && !err; at += each) {
		struct sw_rows out = {.to = pinned + at,
			.from = g->device + at,
			.bytes = each,
			.n = 1};
		struct sw_rows in = {.to = g->device + g->half + at,
			.from = pinned + g->half + at,
			.bytes = each,
			.n = 1};

		err = g->ops->copy(
			g->back, SW_BACK_OUT, &out, events[SW_BACK_OUT], why);
		if (!err)
			err = g->ops->copy(g->back, SW_BACK_IN, &in,
				events[SW_BACK_IN], why);
	}
	for (uint32_t i = 0; i < SW_BACK_WAYS && !err; i++)
		while ((err = g->ops->poll(g->back, events[i], why)) ==
			SW_EAGAIN)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	measure_must(!err, "%s", why);
	for (uint32_t i = 0; i < SW_BACK_WAYS; i++)
		g->ops->event_close(g->back, events[i]);
	return 1e-9 * (double)(sw_edge_now_ns() - from_ns);
}

/* --- the pipeline, over a network that takes no time --- */

/* A tensor, and how much of it the net was told is there. */
struct item {
	struct sw_pipeline_tensor t;
	uint64_t there;
};

static void net_grow(void *ctx, void *tensor, uint64_t lacks)
{
	struct item *i = tensor;

	(void)ctx;
	i->there = i->t.bytes - lacks;
}

static int net_push(void *ctx, void *tensor, uint32_t root, uint32_t step,
	uint64_t lacks, uint64_t *handle)
{
	(void)root;
	(void)step;
	net_grow(ctx, tensor, lacks);
	*handle = (uintptr_t)tensor;
	return 0;
}

static bool net_is_summed(void *ctx, void *tensor, uint32_t granule)
{
	const struct item *i = tensor;

	(void)ctx;
	return i->there == i->t.bytes ||
	       (granule + 1ULL) * SW_GRANULE <= i->there;
}

static int net_poll(void *ctx, uint64_t handle)
{
	const struct item *i = (const void *)(uintptr_t)handle;

	(void)ctx;
	return i->there == i->t.bytes ? 0 : SW_EAGAIN;
}

static const char *net_why(void *ctx)
{
	(void)ctx;
	return "";
}

static void net_rest(void *ctx, const _Atomic bool *has_mail, uint64_t until_ns)
{
	(void)ctx;
	(void)until_ns;
	if (!atomic_load(has_mail))
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void net_wake(void *ctx)
{
	(void)ctx;
}

static void net_give_up(void *ctx, const char *why)
{
	(void)ctx;
	measure_must(false, "%s", why);
}

static void say(void *ctx, const char *line)
{
	(void)ctx;
	printf("%s\n", line);
}

struct stage {
	struct sw_pipeline l;
	struct item *items;
	uint32_t n;
};

static void add_tensor(struct stage *s, struct measure_ground *g, uint64_t each)
{
	struct item *i = &s->items[s->n];
	char why[SW_BACK_WHY], *pinned = g->pinned.base;

	i->t.net = i;
	i->t.out = pinned + s->n * each;
	i->t.in = pinned + g->half + s->n++ * each;
	i->t.bytes = each;
	measure_must(!sw_pipeline_add(&s->l, &i->t, why), "%s", why);
}

static void open_stage(struct stage *s, struct measure_ground *g, uint64_t each)
{
	struct sw_pipeline_params p = {.ops = g->ops,
		.back = g->back,
		.net = {.push = net_push,
			.grow = net_grow,
			.is_summed = net_is_summed,
			.granule = SW_GRANULE,
			.poll = net_poll,
			.why = net_why,
			.rest = net_rest,
			.wake = net_wake,
			.give_up = net_give_up},
		.where = "measure",
		.log = say};
	char why[SW_BACK_WHY];

	s->n = 0;
	s->items = calloc(g->half / each, sizeof(s->items[0]));
	measure_must(s->items && !sw_pipeline_open(&s->l, &p, why), "%s", why);
	while (s->n < g->half / each)
		add_tensor(s, g, each);
}

static void close_stage(struct stage *s)
{
	sw_pipeline_close(&s->l);
	free(s->items);
}

/* All tensors out and in; seconds. */
static double copy_staged(
	struct stage *s, struct measure_ground *g, uint64_t each)
{
	uint64_t from_ns = sw_edge_now_ns();
	uint64_t until_ns = from_ns + UINT64_C(60000000000);
	char why[SW_PIPELINE_WHY];

	for (uint32_t i = 0; i < s->n; i++) {
		struct sw_pipeline_call call = {.from = g->device + i * each,
			.to = g->device + g->half + i * each};

		measure_must(!sw_pipeline_submit(
				     &s->l, &s->items[i].t, &call, NULL, why),
			"%s", why);
	}
	for (uint32_t i = 0; i < s->n; i++)
		measure_must(
			!sw_pipeline_wait(&s->l, &s->items[i].t, until_ns, why),
			"%s", why);
	return 1e-9 * (double)(sw_edge_now_ns() - from_ns);
}

/* In turns, when the pipeline knows how much to copy at once. */
static void compare(struct measure_ground *g, uint64_t each)
{
	double ratios[ROUNDS], bare[ROUNDS], gbit = 8e-9 * (double)g->half;
	struct sw_quartiles q;
	struct stage s;

	open_stage(&s, g, each);
	for (uint32_t i = 0; i < WARM_UP; i++)
		(void)copy_staged(&s, g, each);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		double staged = copy_staged(&s, g, each);

		bare[i] = copy_bare(g, each);
		ratios[i] = bare[i] / staged;
	}
	close_stage(&s);
	q = sw_quartiles_of(ratios, ROUNDS);
	printf("%4llu MiB: bare %.1f Gb/s each way; the pipeline %.2f "
	       "(%.2f-%.2f) of it\n",
		(unsigned long long)(each / MIB),
		gbit / sw_quartiles_of(bare, ROUNDS).middle, q.middle, q.low,
		q.high);
	printf("{\"tensors_mib\": %llu, \"bare_gbit_s\": %.1f, "
	       "\"pipeline_over_bare\": [%.3f, %.3f, %.3f]}\n",
		(unsigned long long)(each / MIB),
		gbit / sw_quartiles_of(bare, ROUNDS).middle, q.low, q.middle,
		q.high);
	fflush(stdout);
}

/* Bare copies of the sizes that the pipeline's slices have. */
static void copy_slices(struct measure_ground *g)
{
	for (uint64_t each = SLICE_MIN; each <= SLICE_MAX; each *= 2) {
		double rates[ROUNDS];
		struct sw_quartiles q;

		(void)copy_bare(g, each);
		for (uint32_t i = 0; i < ROUNDS; i++)
			rates[i] = 8e-9 * (double)g->half / copy_bare(g, each);
		q = sw_quartiles_of(rates, ROUNDS);
		printf("{\"slices_kib\": %llu, \"gbit_s_each_way\": [%.1f, "
		       "%.1f, %.1f]}\n",
			(unsigned long long)(each >> 10), q.low, q.middle,
			q.high);
	}
}

void measure_copies(const char *backend, uint32_t mib)
{
	struct measure_ground g;

	measure_open(&g, backend, 2 * (uint64_t)mib * MIB);
	copy_slices(&g);
	for (uint64_t each = MIB; each <= (uint64_t)mib * MIB; each *= 2)
		compare(&g, each);
	measure_close(&g);
}

int main(int argc, char **argv)
{
	uint32_t mib = argc > 3 ? (uint32_t)atoi(argv[3]) : 256;
	const char *what = argc > 1 ? argv[1] : "";

	if (argc < 3 || argc > 4 || !mib)
		what = "";
	if (!strcmp(what, "copies")) {
		measure_copies(argv[2], mib);
	} else if (!strcmp(what, "sums")) {
		measure_sums(argv[2], mib);
	} else if (!strcmp(what, "hold")) {
		measure_hold(argv[2]);
	} else {
		fprintf(stderr,
			"usage: measure copies|sums|hold BACKEND [MIB]\n");
		return 2;
	}
	printf("done\n");
	return 0;
}
