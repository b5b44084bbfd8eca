/* cost_instructions.c - instructions by stage, as a table.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cost/cost_instructions.h"

#include <stdio.h>

#include "apps/cost/cost_count.h"
#include "apps/cli/json.h"

/* Instructions of one stage, or of several stages together. */
struct row {
	const char *side, *name, *text;
	uint64_t units, instructions[COST_PARTS];
};

#define ROW(number, function, words) \
	{.side = #number, .name = #function, .text = words},
static const struct row stages[] = {COST_STAGES(ROW)};
#undef ROW

static const char *const parts[COST_PARTS] = {
	"engine", "crc", "add", "copy", "port"};

/* Return whether a stage belongs to no job: strangers, a status reader. */
static bool is_stranger(uint32_t stage)
{
	return stage >= COST_WRONG_SESSION;
}

static bool is_server(uint32_t stage)
{
	return stage < COST_WORKER_SUBMIT || is_stranger(stage);
}

static void add(struct row *to, const uint64_t *instructions)
{
	for (uint32_t p = 0; p < COST_PARTS; p++)
		to->instructions[p] += instructions[p];
}

/* Add up all stages of one end.  The unit is a chunk of one member. */
static struct row total_of(const struct cost_counts *c, bool of_server)
{
	struct row row = {.name = of_server ? "server" : "worker",
		.text = of_server ? "a PUSH and its RESULT" : "a chunk",
		.units = c->steps.units[COST_SERVER_PUSH]};

	for (uint32_t i = 0; i < COST_N_STAGES; i++)
		if (is_server(i) == of_server && !is_stranger(i))
			add(&row, c->instructions[i]);
	return row;
}

static void print_row(const char *side, const struct row *row, uint64_t chunks)
{
	uint64_t all = 0;

	printf("%-7s %-22s %9.1f", side, row->text,
		(double)row->units / COST_STEP_ROUNDS);
	for (uint32_t p = 0; p < COST_PARTS; p++) {
		printf(" %9.1f",
			(double)row->instructions[p] / (double)row->units);
		all += p == COST_PORT ? 0 : row->instructions[p];
	}
	printf(" %10.1f\n", (double)all / (double)chunks);
}

static void print_table(const struct cost_shape *s, const struct cost_counts *c)
{
	uint64_t chunks = c->steps.units[COST_SERVER_PUSH];

	printf("%u members of %u local ranks, %u %s of %llu bytes%s; "
	       "instructions each, AVX2\n"
	       "%-7s %-22s %9s %9s %9s %9s %9s %9s %10s\n",
		s->n_members, s->n_local, s->n_tensors,
		s->is_gather       ? "all_gathers"
		: s->is_collective ? "all_reduces"
				   : "tensors",
		(unsigned long long)s->bytes,
		s->is_encrypted ? ", encrypted"
		: s->is_keyed   ? ", keyed"
				: "",
		"", "stage", "in round", parts[COST_ENGINE], parts[COST_CRC],
		parts[COST_ADD], parts[COST_COPY], parts[COST_PORT],
		"of a chunk");
	for (uint32_t i = 0; i < COST_N_STAGES; i++) {
		const char *side = is_server(i) ? "server" : "worker";
		struct row row;

		if (i == COST_WORKER_SUBMIT || i == COST_WRONG_SESSION) {
			row = total_of(c, i == COST_WORKER_SUBMIT);
			print_row(row.name, &row, chunks);
		}
		if (!c->steps.units[i])
			continue;
		row = stages[i];
		row.units = c->steps.units[i];
		add(&row, c->instructions[i]);
		print_row(side, &row, chunks);
	}
	printf("\n");
	fflush(stdout);
}

static void write_row(struct sw_json *j, const struct row *row)
{
	sw_json_object_open(j, NULL);
	sw_json_text(j, "name", row->name);
	sw_json_text(j, "text", row->text);
	sw_json_u64(j, "units", row->units);
	for (uint32_t p = 0; p < COST_PARTS; p++)
		sw_json_u64(j, parts[p], row->instructions[p]);
	sw_json_close(j);
}

static void write_shape(struct sw_json *j, const struct cost_shape *s,
	const struct cost_counts *c)
{
	struct row row;

	sw_json_object_open(j, NULL);
	sw_json_u64(j, "members", s->n_members);
	sw_json_u64(j, "local_ranks", s->n_local);
	sw_json_u64(j, "tensors", s->n_tensors);
	sw_json_u64(j, "size_bytes", s->bytes);
	sw_json_bool(j, "is_collective", s->is_collective);
	sw_json_bool(j, "is_gather", s->is_gather);
	sw_json_bool(j, "is_keyed", s->is_keyed);
	sw_json_bool(j, "is_encrypted", s->is_encrypted);
	sw_json_u64(j, "rounds", COST_STEP_ROUNDS);
	sw_json_u64(j, "chunks", c->steps.units[COST_SERVER_PUSH]);
	sw_json_array_open(j, "stages");
	for (uint32_t i = 0; i < COST_N_STAGES; i++) {
		row = stages[i];
		row.units = c->steps.units[i];
		add(&row, c->instructions[i]);
		write_row(j, &row);
	}
	for (uint32_t of_server = 0; of_server < 2; of_server++) {
		row = total_of(c, !of_server);
		write_row(j, &row);
	}
	sw_json_close(j);
	sw_json_close(j);
}

int sw_cost_instructions(
	const struct cost_shape *shapes, uint32_t n, bool is_json)
{
	struct sw_json json;
	int err = 0;

	if (is_json) {
		sw_json_init(&json, stdout);
		sw_json_object_open(&json, NULL);
		sw_json_text(&json, "compiler", __VERSION__);
		sw_json_array_open(&json, "results");
	}
	for (uint32_t i = 0; i < n && !err; i++) {
		struct cost_counts counts;

		err = sw_cost_count(&shapes[i], &counts);
		if (err)
			break;
		if (is_json)
			write_shape(&json, &shapes[i], &counts);
		else
			print_table(&shapes[i], &counts);
	}
	if (is_json) {
		sw_json_close(&json);
		sw_json_close(&json);
		err = err ? err : sw_json_fini(&json);
	}
	return err;
}

int sw_cost_stepped(const struct cost_shape *shape)
{
	struct cost_steps steps;
	int err = sw_cost_step(shape, &steps);

	for (uint32_t i = 0; i < COST_N_STAGES && !err; i++)
		printf("%s %llu\n", stages[i].name,
			(unsigned long long)steps.units[i]);
	return err;
}
