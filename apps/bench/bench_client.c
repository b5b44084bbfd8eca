/* bench_client.c - one process of the benchmark: push, pull, time, check.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/clock.h"
#include "apps/cli/quartiles.h"
#include "engine/base/error.h"
#include <sumwire/sumwire.h>

enum { WARM_UP = 2, ITERS_MAX = 2000, ITERS_MIN = 5, TURN_SIZES = 16 };

/* slices with --raw; longest wait between two of them */
enum { SLICES = 15, PAUSE_MS = 120000 };

/* pushed per size, in all iterations */
#define BYTES_PER_SIZE UINT64_C(2000000000)

/* The tensors or the collective of a round. */
struct work {
	struct sw_client *c;
	struct sw_tensor *t[BENCH_TENSORS];
	struct bench_coll coll;
	uint32_t step; /* of the turns */
};

static int complain(struct sw_client *c, int err)
{
	if (err)
		fprintf(stderr, "sumwire bench: %s: %s\n", sw_error_text(err),
			sw_last_error(c));
	return err;
}

/* Push and pull all @n tensors once. */
static int push_pull(const struct bench_options *o, const struct work *k,
	uint32_t n, uint32_t step)
{
	uint64_t handles[BENCH_TENSORS];
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++)
		err = sw_push_pull(k->c, k->t[i], step, &handles[i]);
	for (uint32_t i = 0; i < n && !err; i++)
		err = o->is_polling ? sw_wait_polling(k->c, handles[i])
				    : sw_wait(k->c, handles[i]);
	return err;
}

static int run_round(const struct bench_options *o, const struct work *k,
	uint32_t n, uint32_t step)
{
	int err = o->collective ? sw_bench_coll_run(o, k->c, &k->coll)
				: push_pull(o, k, n, step);

	return complain(k->c, err);
}

static void summarize(struct bench_row *row, double *us)
{
	uint32_t n = row->n_iters;

	sw_sort(us, n);
	row->p50_us = us[n / 2];
	row->p99_us = us[(uint64_t)n * 99 / 100];
	row->mean_us = 0;
	for (uint32_t i = 0; i < n; i++)
		row->mean_us += us[i] / n;
}

static uint32_t iterations(const struct bench_options *o, uint64_t bytes)
{
	uint64_t n = BYTES_PER_SIZE / bytes;

	if (o->n_iters)
		return o->n_iters;
	return (uint32_t)(n < ITERS_MIN   ? ITERS_MIN
			  : n > ITERS_MAX ? ITERS_MAX
					  : n);
}

static void fill(const struct bench_options *o, struct work *k,
	const struct bench_row *row)
{
	if (o->collective) {
		sw_bench_coll_fill(o, &k->coll);
		return;
	}
	for (uint32_t i = 0; i < row->n_tensors; i++)
		sw_bench_fill(o, sw_tensor_data(k->t[i]), 0, row->n_elems, 1);
}

static uint64_t count_wrong(const struct bench_options *o, const struct work *k,
	const struct bench_row *row)
{
	uint64_t wrong = 0;

	if (o->collective)
		return sw_bench_coll_wrong(o, &k->coll);
	for (uint32_t i = 0; i < row->n_tensors; i++)
		wrong += sw_bench_wrong(o, sw_tensor_result(k->t[i]), 0,
			row->n_elems, row->ranks);
	return wrong;
}

/* Run a round, and count wrong elements. */
static int check_round(const struct bench_options *o, struct work *k,
	uint32_t step, struct bench_row *row)
{
	int err;

	fill(o, k, row);
	err = run_round(o, k, row->n_tensors, step);
	if (!err)
		row->wrong += count_wrong(o, k, row);
	return err;
}

/* --- slices of rounds, and of the raw echo --- */

struct slices {
	struct bench_raw *raw; /* of rank 0 */
	double gbit_s[SLICES], ratio[SLICES];
	uint32_t n, rounds; /* n: slices taken; rounds: rounds of a slice */
};

/* Wait while rank 0 measures, with nothing open, so that the daemons sleep. */
static int pause_here(const struct bench_options *o, const struct work *k)
{
	struct pollfd p = {.fd = o->others[0], .events = POLLIN};
	char byte;

	if (o->agents.n != sw_size(k->c))
		return 0; /* some ranks run elsewhere, and do not pause */
	if (poll(&p, 1, PAUSE_MS) != 1)
		return SW_ETIMEDOUT;
	return read(p.fd, &byte, 1) == 1 ? 0 : SW_EIO;
}

static int resume_others(const struct bench_options *o)
{
	for (uint32_t i = 1; i < o->agents.n; i++)
		if (write(o->others[1], "", 1) != 1)
			return SW_EIO;
	return 0;
}

/* Measure the raw echo's slice after a slice of rounds that took @us. */
static int raw_slice(const struct bench_options *o, const struct work *k,
	const struct bench_row *row, const double *us, struct slices *s)
{
	double all_us = 0, bits = 8.0 * (double)row->size_bytes *
				  row->n_tensors * s->rounds;
	double raw;

	if (sw_rank(k->c))
		return pause_here(o, k);
	raw = sw_bench_raw_slice(s->raw);
	if (resume_others(o) || raw <= 0)
		return SW_EIO;
	for (uint32_t i = 0; i < s->rounds; i++)
		all_us += us[i];
	s->gbit_s[s->n] = raw;
	s->ratio[s->n++] = bits / all_us / 1e3 / raw;
	return 0;
}

static int open_slices(const struct bench_options *o, const struct work *k,
	struct bench_row *row, struct slices *s)
{
	*s = (struct slices){.rounds = (row->n_iters + SLICES - 1) / SLICES};
	if (!o->is_raw)
		return 0;
	row->n_iters = SLICES * s->rounds;
	if (sw_rank(k->c))
		return pause_here(o, k);
	s->raw = sw_bench_raw_open(o, row->size_bytes * row->n_tensors);
	return resume_others(o) || !s->raw ? SW_EIO : 0;
}

static void close_slices(struct slices *s, struct bench_row *row)
{
	if (s->n == SLICES) {
		row->raw_ratio = sw_quartiles_of(s->ratio, s->n);
		row->raw_gbit_s = sw_quartiles_of(s->gbit_s, s->n).middle;
	}
	sw_bench_raw_close(&s->raw);
}

static int timed_rounds(const struct bench_options *o, const struct work *k,
	struct bench_row *row, uint32_t step, double *us)
{
	struct slices s;
	int err = open_slices(o, k, row, &s);

	for (uint32_t i = 0; i < row->n_iters && !err; i++) {
		uint64_t from = sw_now_ns();

		err = run_round(o, k, row->n_tensors, step + i);
		us[i] = (double)(sw_now_ns() - from) / 1e3;
		if (!err && o->is_raw && (i + 1) % s.rounds == 0)
			err = raw_slice(o, k, row, &us[i + 1 - s.rounds], &s);
	}
	close_slices(&s, row);
	return err;
}

/* Time rounds, with checked rounds before and after. */
static int measure(
	const struct bench_options *o, struct work *k, struct bench_row *row)
{
	uint32_t n = iterations(o, row->size_bytes * row->n_tensors), step = 0;
	double *us = calloc(n + SLICES, sizeof(*us));
	int err = us ? 0 : SW_ENOMEM;

	row->n_iters = n;
	row->ranks = sw_size(k->c);
	row->local_ranks = sw_agent_size(k->c);
	for (uint32_t i = 0; i < WARM_UP && !err; i++)
		err = check_round(o, k, step++, row);
	if (!err)
		err = timed_rounds(o, k, row, step, us);
	if (!err)
		err = check_round(o, k, step + row->n_iters, row);
	if (!err)
		summarize(row, us);
	free(us);
	return err;
}

static int declare(const struct bench_options *o, struct work *k,
	const struct bench_row *row)
{
	struct sw_tensor_desc descs[BENCH_TENSORS];
	char names[BENCH_TENSORS][32];

	for (uint32_t i = 0; i < o->n_tensors; i++) {
		snprintf(names[i], sizeof(names[i]), "bench.%llu.%u",
			(unsigned long long)row->size_bytes, i);
		descs[i] = (struct sw_tensor_desc){
			.size = sizeof(struct sw_tensor_desc),
			.name = names[i],
			.n_elems = row->n_elems,
			.dtype = o->dtype,
			.priority = i};
	}
	return complain(k->c, sw_declare(k->c, descs, o->n_tensors, k->t));
}

static int run_size(const struct bench_options *o, struct work *k,
	uint64_t bytes, struct bench_row *row)
{
	uint32_t elem = sw_dtype_bytes(o->dtype);
	int err = 0;

	*row = (struct bench_row){.n_elems = bytes / elem ? bytes / elem : 1,
		.n_tensors = o->n_tensors};
	row->size_bytes = row->n_elems * elem;
	if (o->collective)
		sw_bench_coll_shape(&k->coll, row);
	else
		err = declare(o, k, row);
	return err ? err : measure(o, k, row);
}

/* --- turns --- */

/* A size that earlier turns have measured. */
struct known {
	uint64_t bytes;
	struct sw_tensor *t;
	struct bench_row row;
};

/* Declare and check a size when it first occurs.  Then set its data to zeros,
 * whose sums stay zero. */
static int begin_size(
	const struct bench_options *o, struct work *k, struct known *known)
{
	struct bench_row *row = &known->row;
	uint32_t elem = sw_dtype_bytes(o->dtype);
	int err = 0;

	*row = (struct bench_row){.n_elems = known->bytes / elem,
		.n_tensors = 1,
		.size_bytes = known->bytes,
		.ranks = sw_size(k->c)};
	if (o->collective)
		sw_bench_coll_shape(&k->coll, row);
	else
		err = declare(o, k, row);
	known->t = k->t[0];
	for (uint32_t i = 0; i < WARM_UP && !err; i++)
		err = check_round(o, k, k->step++, row);
	if (!err && (!o->collective || o->is_in_place))
		memset(o->collective ? k->coll.memory[0]
				     : sw_tensor_data(known->t),
			0, row->size_bytes);
	return err;
}

/* Run one round, then @n timed rounds. */
static int take_turn(const struct bench_options *o, struct work *k,
	struct known *known, uint32_t n)
{
	struct bench_row *row = &known->row;
	double us[ITERS_MAX];
	int err = row->n_elems ? 0 : begin_size(o, k, known);

	k->t[0] = known->t;
	row->n_iters = n;
	if (o->collective)
		sw_bench_coll_shape(&k->coll, row);
	if (!err)
		err = run_round(o, k, 1, k->step++);
	for (uint32_t i = 0; i < n && !err; i++) {
		uint64_t from = sw_now_ns();

		err = run_round(o, k, 1, k->step++);
		us[i] = (double)(sw_now_ns() - from) / 1e3;
	}
	if (err || sw_rank(k->c))
		return err;
	summarize(row, us);
	printf("%llu %.9f %llu\n", (unsigned long long)row->size_bytes,
		row->p50_us / 1e6, (unsigned long long)row->wrong);
	fflush(stdout);
	return 0;
}

/* Take turns until standard input ends. */
static int run_turns(const struct bench_options *o, struct work *k)
{
	struct known known[TURN_SIZES] = {0};
	unsigned long long bytes;
	uint32_t n;

	while (scanf("%llu %u", &bytes, &n) == 2) {
		uint32_t i = 0;
		int err;

		while (i < TURN_SIZES && known[i].bytes &&
			known[i].bytes != bytes)
			i++;
		if (i == TURN_SIZES || n == 0 || n > ITERS_MAX ||
			bytes < sw_dtype_bytes(o->dtype) ||
			bytes > o->max_bytes) {
			fprintf(stderr, "sumwire bench: a turn has up to --max "
					"bytes and 2000 rounds, and turns 16 "
					"sizes\n");
			return SW_EINVAL;
		}
		known[i].bytes = bytes;
		err = take_turn(o, k, &known[i], n);
		if (err)
			return err;
	}
	return 0;
}

/* Measure the collective of @row again, in place. */
static int run_in_place(const struct bench_options *o, struct work *k,
	uint64_t bytes, struct bench_row *row)
{
	struct bench_row again;
	int err;

	k->coll.is_in_place = true;
	err = run_size(o, k, bytes, &again);
	k->coll.is_in_place = false;
	row->has_in_place = true;
	row->in_place_us = again.mean_us;
	row->in_place_wrong = again.wrong;
	return err;
}

static int run_sizes(const struct bench_options *o, struct work *k,
	void (*each)(void *ctx, struct bench_row *row), void *ctx)
{
	struct bench_row row;
	int err = 0;

	for (uint64_t b = o->min_bytes; b <= o->max_bytes && !err;
		b *= o->factor) {
		err = run_size(o, k, b, &row);
		if (!err && o->is_both)
			err = run_in_place(o, k, b, &row);
		if (!err && sw_rank(k->c) == 0)
			each(ctx, &row);
	}
	return err;
}

int sw_bench_client(const struct bench_options *o, const char *path,
	uint32_t local_rank, void (*each)(void *ctx, struct bench_row *row),
	void *ctx)
{
	struct sw_settings s;
	struct work *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		fprintf(stderr, "sumwire bench: out of memory\n");
		return SW_ENOMEM;
	}
	sw_settings_init(&s);
	s.agent = path;
	s.local_rank = local_rank;
	err = sw_open(&s, &k->c);
	if (err)
		fprintf(stderr, "sumwire bench: %s: %s\n", sw_error_text(err),
			sw_last_error(NULL));
	else if (o->collective)
		err = complain(k->c, sw_bench_coll_open(o, k->c, &k->coll));
	if (!err)
		err = o->is_turns ? run_turns(o, k)
				  : run_sizes(o, k, each, ctx);
	sw_close(&k->c);
	free(k);
	return err;
}
