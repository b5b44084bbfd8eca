/* kernels.c - sumwire-lab kernels: compare the kernels with plain copies.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/json.h"
#include "sum/bench.h"

struct options {
	const char *level, *dtype, *op;
	bool is_json, is_quick;
};

/* Destination of the lines: a table or JSON. */
struct report {
	bool is_json;
	struct sw_json json;
};

static int parse(struct options *o, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--level", SW_ARG_STRING, {.string = &o->level}, 0, 0,
			"instruction set: scalar, avx2, avx512, all, or auto "
			"(the best of this CPU)"},
		{"--dtype", SW_ARG_STRING, {.string = &o->dtype}, 0, 0,
			"element type to measure, or all"},
		{"--op", SW_ARG_STRING, {.string = &o->op}, 0, 0,
			"operation to measure, crc32c, polyval, or all"},
		{"--quick", SW_ARG_FLAG, {.flag = &o->is_quick}, 0, 0,
			"measure 5 pairs instead of 15, without DRAM"},
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"},
	};
	const struct sw_args args = {.name = "sumwire-lab kernels",
		.summary =
			"measure the summation kernels in GB/s loaded and "
			"stored, and the ratio to a loop that only moves bytes",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};

	return sw_args_parse(&args, argc, argv);
}

/* Return whether @o measures a checksum, which has no dtype. */
static bool is_check(const struct options *o)
{
	return !strcmp(o->op, "crc32c") || !strcmp(o->op, "polyval");
}

static bool is_known(const struct options *o)
{
	bool has_dtype = !strcmp(o->dtype, "all"),
	     has_op = !strcmp(o->op, "all") || is_check(o);

	for (uint32_t d = 0; d < SW_N_DTYPES; d++)
		has_dtype |= sw_dtype_bytes(d) &&
			     !strcmp(o->dtype, sw_dtype_name(d));
	for (uint32_t op = 0; op < SW_N_KERNELS; op++)
		has_op |= !strcmp(o->op, sw_kernel_name(op));
	if (!has_dtype)
		fprintf(stderr,
			"sumwire-lab kernels: unknown dtype \"%s\": "
			"f32, f64, f16, bf16, u8, i8, i32, i64, bool "
			"or all\n",
			o->dtype);
	if (!has_op)
		fprintf(stderr,
			"sumwire-lab kernels: unknown operation "
			"\"%s\": copy, put, add, sum, scale, round, "
			"round_scale, min, max, mul, band, bor, bxor, "
			"divide, crc32c, polyval or all\n",
			o->op);
	return has_dtype && has_op;
}

/* Print why a level is missing: not in this build, or not on this CPU. */
static void no_level(const char *name)
{
	const struct sw_sum *sum;
	bool runs;

	fprintf(stderr,
		"sumwire-lab kernels: level \"%s\" is not available; this "
		"CPU runs auto, all",
		name);
	for (uint32_t i = 0; (sum = sw_sum_row(i, &runs)); i++)
		if (runs)
			fprintf(stderr, ", %s", sum->name);
	fprintf(stderr, "\n");
}

static void row_print(struct report *r, const struct sw_sum_bench_row *row)
{
	if (!r->is_json) {
		printf("%-5s %-11s %-7s %12llu %9.1f %9.2f\n",
			sw_dtype_name(row->dtype), sw_kernel_name(row->op),
			row->sum->name,
			(unsigned long long)row->working_set_bytes,
			row->gbyte_s, row->ratio_to_move);
		return;
	}
	sw_json_object_open(&r->json, NULL);
	sw_json_text(&r->json, "dtype", sw_dtype_name(row->dtype));
	sw_json_text(&r->json, "op", sw_kernel_name(row->op));
	sw_json_text(&r->json, "level", row->sum->name);
	sw_json_u64(&r->json, "working_set_bytes", row->working_set_bytes);
	sw_json_double(&r->json, "gbyte_s", row->gbyte_s);
	sw_json_double(&r->json, "ratio_to_move", row->ratio_to_move);
	sw_json_close(&r->json);
}

static void versus_print(struct report *r, const char *level,
	const struct sw_sum_bench_versus *v)
{
	if (v->ratio <= 0)
		return;
	if (!r->is_json) {
		printf("%-46s %-13s %10llu %6.2f  (%.2f to %.2f, %s %.2f)\n",
			v->name, level,
			(unsigned long long)v->working_set_bytes, v->ratio,
			v->low, v->high, v->is_upper ? "at most" : "at least",
			v->target);
		return;
	}
	sw_json_object_open(&r->json, NULL);
	sw_json_text(&r->json, "name", v->name);
	sw_json_text(&r->json, "level", level);
	sw_json_u64(&r->json, "working_set_bytes", v->working_set_bytes);
	sw_json_double(&r->json, "ratio", v->ratio);
	sw_json_double(&r->json, "lower_quartile", v->low);
	sw_json_double(&r->json, "upper_quartile", v->high);
	sw_json_double(&r->json, "target", v->target);
	sw_json_bool(&r->json, "is_upper", v->is_upper);
	sw_json_close(&r->json);
}

static void progress(const char *level, const char *what)
{
	if (isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO))
		fprintf(stderr, "measuring %s %s\n", level, what);
}

static void rows_run(struct sw_sum_bench *b, const struct sw_sum *sum,
	const struct options *o, struct report *r)
{
	struct sw_sum_bench_row row;

	for (uint32_t d = 0; d < SW_N_DTYPES; d++) {
		if (strcmp(o->dtype, "all") &&
			strcmp(o->dtype, sw_dtype_name(d)))
			continue;
		progress(sum->name, sw_dtype_name(d));
		for (uint32_t op = 0; op < SW_N_KERNELS; op++) {
			if (strcmp(o->op, "all") &&
				strcmp(o->op, sw_kernel_name(op)))
				continue;
			for (uint32_t s = 0; s < SW_N_BENCH_SETS; s++)
				if (sw_sum_bench_measure(
					    b, sum, d, op, s, &row))
					row_print(r, &row);
		}
	}
}

static void versus_run(
	struct sw_sum_bench *b, const struct sw_sum *sum, struct report *r)
{
	struct sw_sum_bench_versus v;

	progress(sum->name, "comparisons");
	for (uint32_t i = 0; sw_sum_bench_compare(b, sum, i, &v); i++)
		versus_print(r, sum->name, &v);
}

/* Run each CRC-32C kernel that this CPU supports, regardless of the level. */
static void crcs_run(struct sw_sum_bench *b, struct report *r)
{
	struct sw_sum_bench_versus v = {0};
	const struct sw_crc *crc;
	bool runs;

	for (uint32_t row = 0; (crc = sw_crc_row(row, &runs)); row++) {
		if (!runs)
			continue;
		progress(crc->name, "CRC-32C");
		for (uint32_t i = 0; sw_sum_bench_compare_crc(b, crc, i, &v);
			i++)
			versus_print(r, crc->name, &v);
	}
	if (v.ratio <= 0)
		fprintf(stderr,
			"sumwire-lab kernels: no ISA-L (libisal.so.2) to "
			"put CRC-32C beside\n");
}

/* Run each POLYVAL kernel that this CPU supports, and compare it with
 * CRC-32C. */
static void polyvals_run(struct sw_sum_bench *b, struct report *r)
{
	struct sw_sum_bench_versus v;
	const struct sw_polyval *k;
	bool runs;

	for (uint32_t row = 0; (k = sw_polyval_row(row, &runs)); row++) {
		if (!runs)
			continue;
		progress(k->name, "POLYVAL");
		for (uint32_t i = 0; sw_sum_bench_compare_polyval(b, k, i, &v);
			i++)
			versus_print(r, k->name, &v);
	}
}

/* Run each requested level: first its rows, then its comparisons. */
static void levels_run(struct sw_sum_bench *b, const struct options *o,
	const struct sw_sum *only, struct report *r, bool is_versus)
{
	const struct sw_sum *sum;
	bool runs;

	for (uint32_t i = 0; (sum = sw_sum_row(i, &runs)); i++) {
		if (!runs || (only && sum != only))
			continue;
		if (is_versus)
			versus_run(b, sum, r);
		else
			rows_run(b, sum, o, r);
	}
}

static int report_all(struct sw_sum_bench *b, const struct options *o,
	const struct sw_sum *only)
{
	bool is_whole = !strcmp(o->dtype, "all") && !strcmp(o->op, "all");
	struct report r = {.is_json = o->is_json};

	if (r.is_json) {
		sw_json_init(&r.json, stdout);
		sw_json_object_open(&r.json, NULL);
		sw_json_array_open(&r.json, "results");
	} else if (!is_check(o)) {
		printf("%-5s %-11s %-7s %12s %9s %9s\n", "dtype", "op", "level",
			"bytes", "GB/s", "to move");
	}
	levels_run(b, o, only, &r, false);
	if (r.is_json) {
		sw_json_close(&r.json);
		sw_json_array_open(&r.json, "comparisons");
	}
	if (is_whole)
		levels_run(b, o, only, &r, true);
	if (is_whole || !strcmp(o->op, "crc32c"))
		crcs_run(b, &r);
	if (is_whole || !strcmp(o->op, "polyval"))
		polyvals_run(b, &r);
	if (!r.is_json)
		return fflush(stdout) ? 1 : 0;
	sw_json_close(&r.json);
	sw_json_close(&r.json);
	return sw_json_fini(&r.json) ? 1 : 0;
}

int sw_cmd_kernels(int argc, char **argv)
{
	struct options o = {.level = "auto", .dtype = "all", .op = "all"};
	const struct sw_sum *only = NULL;
	struct sw_sum_bench *b;
	int status = parse(&o, argc, argv);

	if (status)
		return status == SW_ARGS_HELP ? 0 : 2;
	if (!is_known(&o))
		return 2;
	if (strcmp(o.level, "all") && !(only = sw_sum_find(o.level))) {
		no_level(o.level);
		return 2;
	}
	if (!sw_sum_bench_open(o.is_quick, &b)) {
		fprintf(stderr,
			"sumwire-lab kernels: there is not enough memory "
			"(1.5 GiB; 96 MiB with --quick)\n");
		return 1;
	}
	status = report_all(b, &o, only);
	sw_sum_bench_close(&b);
	return status;
}
