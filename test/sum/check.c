/* check.c - compare every kernel of every level with the reference; TAP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * check [--quick] [--level NAME | --leak NAME] [--best NAME] [--plant]
 *
 * --level checks one level only; --leak runs a level that this CPU lacks (the
 * program must die of an illegal instruction); --best requires that the best
 * level be NAME; --plant requires that the check find every planted fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/sum/crc.h"
#include "test/sum/aes.h"
#include "test/sum/polyval.h"
#include "test/sum/truth.h"
#include "test/sum/walk.h"

struct check {
	struct walk walk;
	const char *level, *leak, *best;
	bool is_quick, is_plant;
	int n_lines, n_failed;
};

static void line(struct check *c, bool is_ok, const char *level,
	const char *what, const char *op)
{
	c->n_failed += !is_ok;
	printf("%sok %d - %s %s %s\n", is_ok ? "" : "not ", ++c->n_lines, level,
		what, op);
}

static void check_kernels(struct check *c, const struct sw_sum *sum)
{
	struct sw_sum_shape shape;
	char why[WHY_BYTES];

	for (uint32_t d = 0; d < SW_N_DTYPES; d++) {
		for (uint32_t op = 0; op < SW_N_KERNELS; op++) {
			bool is_ok;

			if (!sw_kernel_shape(&sum->ops[d], op, &shape))
				continue;
			is_ok = walk_run(&c->walk, sum, d, op, why);
			if (!is_ok)
				printf("# %s\n", why);
			line(c, is_ok, sum->name, sw_dtype_name(d),
				sw_kernel_name(op));
		}
	}
}

/* Invert the verdict: the walk must find each planted fault. */
static void check_plants(struct check *c, const struct sw_sum *sum)
{
	static const char *const names[N_PLANTS] = {"nothing", "one bit",
		"one byte beyond", "one byte before", "a source"};
	struct sw_sum_shape shape;
	char why[WHY_BYTES];

	for (uint32_t d = 0; d < SW_N_DTYPES; d++) {
		for (uint32_t p = PLANT_NONE; p < N_PLANTS; p++) {
			bool is_ok = true;

			for (uint32_t op = 0; op < SW_N_KERNELS; op++) {
				if (!sw_kernel_shape(&sum->ops[d], op, &shape))
					continue;
				c->walk.plant = p;
				is_ok &= walk_run(&c->walk, sum, d, op, why) ==
					 (p == PLANT_NONE);
			}
			if (sum->ops[d].elem_bytes)
				line(c, is_ok, "planted:", names[p],
					sw_dtype_name(d));
		}
	}
}

static void check_truth(struct check *c, const struct sw_sum *sum)
{
	line(c, truth_cases(sum), sum->name, "known", "results");
	line(c, truth_fold(sum), sum->name, "verify", "and fold");
	if (c->is_quick)
		return;
	line(c, truth_f16(sum), sum->name, "f16", "all numbers and ties");
	line(c, truth_bf16(sum), sum->name, "bf16", "all numbers and ties");
}

static void check_levels(struct check *c)
{
	const struct sw_sum *sum;
	bool runs;

	for (uint32_t i = 0; (sum = sw_sum_row(i, &runs)); i++) {
		const char *only = c->leak ? c->leak : c->level;

		if (only && strcmp(only, sum->name))
			continue;
		if (!runs && !c->leak) {
			printf("ok %d - %s # SKIP not on this CPU\n",
				++c->n_lines, sum->name);
			continue;
		}
		if (c->is_plant) {
			check_plants(c, sum);
			continue;
		}
		check_truth(c, sum);
		check_kernels(c, sum);
	}
}

static void check_crc(struct check *c)
{
	const struct sw_crc *crc;
	bool runs;

	line(c, crc_in_parts(), "CRC-32C", "in", "parts");
	for (uint32_t i = 0; (crc = sw_crc_row(i, &runs)); i++)
		if (runs)
			line(c, crc_row_is_right(crc, c->is_quick), "CRC-32C",
				"by", crc->name);
		else
			printf("ok %d - CRC-32C by %s # SKIP not on this "
			       "CPU\n",
				++c->n_lines, crc->name);
}

static void check_polyval(struct check *c)
{
	const struct sw_polyval *k;
	bool runs;

	line(c, polyval_is_of_rfc(), "POLYVAL", "of", "RFC 8452");
	for (uint32_t i = 0; (k = sw_polyval_row(i, &runs)); i++)
		if (runs)
			line(c, polyval_row_is_right(k, c->is_quick), "POLYVAL",
				"by", k->name);
		else
			printf("ok %d - POLYVAL by %s # SKIP not on this "
			       "CPU\n",
				++c->n_lines, k->name);
}

static void check_aes(struct check *c)
{
	const struct sw_aes *k;
	bool runs;

	line(c, aes_is_of_nist(), "AES", "of", "SP 800-38A");
	for (uint32_t i = 0; (k = sw_aes_row(i, &runs)); i++)
		if (runs)
			line(c, aes_row_is_right(k), "AES", "by", k->name);
		else
			printf("ok %d - AES by %s # SKIP not on this CPU\n",
				++c->n_lines, k->name);
}

/* Check that a read beyond the page kills the process; otherwise the tests at
 * page ends prove nothing. */
static void check_guard(struct check *c)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		const uint8_t *end =
			arena_place(&c->walk.dst, AT_END, "x", 1) + 1;
		volatile uint8_t byte;

		fclose(stderr); /* suppress the sanitizer's report */
		byte = *(const volatile uint8_t *)end;

		_exit(byte & 0);
	}
	line(c, pid > 0 && waitpid(pid, &status, 0) == pid && status, "arena",
		"guard", "page");
}

static bool parse(struct check *c, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char **value = !strcmp(argv[i], "--level")  ? &c->level
				     : !strcmp(argv[i], "--leak") ? &c->leak
				     : !strcmp(argv[i], "--best") ? &c->best
								  : NULL;

		if (value && i + 1 < argc)
			*value = argv[++i];
		else if (!strcmp(argv[i], "--quick"))
			c->is_quick = true;
		else if (!strcmp(argv[i], "--plant"))
			c->is_plant = true;
		else
			return false;
	}
	return true;
}

static int run(struct check *c)
{
	const char *best = sw_sum_best(SW_SUM_AVX512)->name;

	if (walk_open(&c->walk)) {
		fprintf(stderr, "check: no memory for the guarded pages\n");
		return 1;
	}
	c->walk.is_quick = c->is_quick;
	printf("# best level here: %s\n", best);
	if (c->best)
		line(c, !strcmp(best, c->best), "best is", c->best, "");
	if (!c->leak && !c->is_plant) {
		line(c, truth_table(), "table", "of", "levels");
		check_crc(c);
		check_polyval(c);
		check_aes(c);
		check_guard(c);
	}
	check_levels(c);
	printf("1..%d\n", c->n_lines);
	walk_close(&c->walk);
	return c->n_failed || !c->n_lines;
}

int main(int argc, char **argv)
{
	struct check *c = calloc(1, sizeof(*c));
	int status;

	if (!c || !parse(c, argc, argv)) {
		fprintf(stderr, "usage: check [--quick] [--level NAME | "
				"--leak NAME] [--best NAME] [--plant]\n");
		free(c);
		return 2;
	}
	status = run(c);
	free(c);
	return status;
}
