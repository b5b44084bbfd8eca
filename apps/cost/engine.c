/* engine.c - sumwire-lab engine: the costs of tensors and packets.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/cost/cost_timed.h"
#include "apps/cost/cost_instructions.h"
#include "apps/cli/args.h"
#include "apps/cli/cmd.h"
#include "apps/cli/json.h"
#include "engine/base/error.h"
#include "engine/worker/worker.h"

struct options {
	struct cost_shape shape; /* n_members: the most; zeros: default */
	bool is_json, is_instructions, is_stepped;
};

struct report {
	const struct options *o;
	struct sw_json json;
	double first_ns; /* ns per packet with the fewest members */
};

static void json_alone(
	struct sw_json *json, const char *name, const struct cost_alone *a)
{
	const struct {
		const char *end;
		double value;
	} rows[] = {{"gbit_s", a->gbit_s.middle}, {"ratio", a->ratio.middle},
		{"ratio_q1", a->ratio.low}, {"ratio_q3", a->ratio.high}};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char key[32];

		snprintf(key, sizeof(key), "%s_%s", name, rows[i].end);
		sw_json_double(json, key, rows[i].value);
	}
}

static void print_json(
	struct report *r, const struct cost_shape *s, const struct cost_time *c)
{
	sw_json_object_open(&r->json, NULL);
	sw_json_u64(&r->json, "members", s->n_members);
	sw_json_u64(&r->json, "tensors", s->n_tensors);
	sw_json_u64(&r->json, "size_bytes", s->bytes);
	sw_json_u64(&r->json, "rounds", c->n_rounds);
	sw_json_u64(&r->json, "packets", c->n_packets);
	sw_json_u64(&r->json, "frames", c->n_frames);
	sw_json_double(&r->json, "tensor_us", c->mean_us);
	sw_json_double(&r->json, "tensor_best_us", c->tensor_us.least);
	sw_json_double(&r->json, "server_packet_ns", c->server_ns.middle);
	sw_json_double(&r->json, "server_packet_best_ns", c->server_ns.least);
	sw_json_double(&r->json, "port_packet_ns", c->port_ns.middle);
	sw_json_double(&r->json, "worker_packet_ns", c->worker_ns.middle);
	sw_json_double(&r->json, "server_gbit_s", c->gbit_s.middle);
	json_alone(&r->json, "kernels", &c->alone[COST_KERNELS_OURS]);
	json_alone(&r->json, "fed", &c->alone[COST_KERNELS_FED]);
	if (c->has_isal)
		json_alone(&r->json, "isal", &c->alone[COST_KERNELS_ISAL]);
	sw_json_close(&r->json);
}

static void print_alone(const struct cost_alone *a)
{
	printf("  %6.2f %.3f (%.3f-%.3f)", a->gbit_s.middle, a->ratio.middle,
		a->ratio.low, a->ratio.high);
}

static void print_head(const struct cost_shape *s)
{
	printf("%u tensors of %llu bytes: CPU time.  Packets: PUSHes and "
	       "RESULTs of a round, frames: all.\n"
	       "us: of a tensor of a member, both ends; ns: of a packet, each "
	       "end, and the wire's copies in the server's\n"
	       "thread, which are in nothing else.  Gb/s: summed and returned "
	       "by the server's time, and by its kernels\n"
	       "alone, CRC and add, round by round in turn: ours; ours of "
	       "bytes "
	       "that another core has just written; our add\n"
	       "beside ISA-L's CRC.  The server's over each: median, and "
	       "quartiles\n"
	       "%7s %6s %8s %8s %9s %9s %8s %9s %9s %7s  %-26s %-26s %s\n",
		s->n_tensors, (unsigned long long)s->bytes, "members", "rounds",
		"packets", "frames", "us", "server ns", "over 1st", "port ns",
		"worker ns", "Gb/s", "kernels, ratio", "fed, ratio",
		"ISA-L, ratio");
}

static void print(
	struct report *r, const struct cost_shape *s, const struct cost_time *c)
{
	if (r->o->is_json) {
		print_json(r, s, c);
		return;
	}
	if (!r->first_ns)
		print_head(s);
	r->first_ns = r->first_ns ? r->first_ns : c->server_ns.middle;
	printf("%7u %6u %8llu %8llu %9.3f %9.1f %8.3f %9.1f %9.1f %7.2f",
		s->n_members, c->n_rounds, (unsigned long long)c->n_packets,
		(unsigned long long)c->n_frames, c->mean_us,
		c->server_ns.middle, c->server_ns.middle / r->first_ns,
		c->port_ns.middle, c->worker_ns.middle, c->gbit_s.middle);
	for (uint32_t k = 0; k < COST_N_KERNELS; k++)
		if (k != COST_KERNELS_ISAL || c->has_isal)
			print_alone(&c->alone[k]);
	printf("\n");
	fflush(stdout);
}

static int measure(struct report *r, uint32_t n_members)
{
	struct cost_shape shape = r->o->shape;
	struct cost_time cost;
	int err;

	shape.n_members = n_members;
	err = sw_cost_time(&shape, &cost);

	if (err)
		fprintf(stderr, "sumwire-lab engine: %u members: %s\n",
			n_members, sw_error_text(err));
	else
		print(r, &shape, &cost);
	return err;
}

/* Measure one member, or 2, 4, 8 and so on up to the requested number. */
static int measure_all(struct report *r)
{
	int err = 0;

	if (r->o->shape.n_members == 1)
		return measure(r, 1);
	for (uint32_t n = 2; n <= r->o->shape.n_members && !err; n *= 2)
		err = measure(r, n);
	return err;
}

static int parse(struct options *o, int argc, char **argv)
{
	struct cost_shape *s = &o->shape;
	const struct sw_arg rows[] = {
		{"--size", SW_ARG_BYTES, {.u64 = &s->bytes}, 64, 1 << 20,
			"size of a tensor, a multiple of 64 [default 256]"},
		{"--tensors", SW_ARG_U32, {.u32 = &s->n_tensors}, 1, SW_TENSORS,
			"number of tensors pushed together [default 1000]"},
		{"--members", SW_ARG_U32, {.u32 = &s->n_members}, 1,
			SW_MAX_MEMBERS,
			"number of members; above 1, measure 2, 4, 8 … up to "
			"it [default 1]"},
		{"--local-ranks", SW_ARG_U32, {.u32 = &s->n_local}, 1,
			COST_LOCAL_MAX,
			"local ranks of each member [default 1]"},
		{"--collective", SW_ARG_FLAG, {.flag = &s->is_collective}, 0, 0,
			"measure all_reduces of one stream instead of tensors; "
			"at most 64 --tensors"},
		{"--all-gather", SW_ARG_FLAG, {.flag = &s->is_gather}, 0, 0,
			"with --collective: measure all_gathers"},
		{"--keyed", SW_ARG_FLAG, {.flag = &s->is_keyed}, 0, 0,
			"send frames with tags instead of CRCs"},
		{"--encrypted", SW_ARG_FLAG, {.flag = &s->is_encrypted}, 0, 0,
			"send frames with tags and encrypted payloads"},
		{"--instructions", SW_ARG_FLAG, {.flag = &o->is_instructions},
			0, 0,
			"count instructions by stage with valgrind instead of "
			"measuring time [default: several shapes]"},
		{"--stepped", SW_ARG_FLAG, {.flag = &o->is_stepped}, 0, 0,
			"only run the stages of --instructions, with both ends "
			"in one thread and a virtual clock"},
		{"--json", SW_ARG_FLAG, {.flag = &o->is_json}, 0, 0,
			"print one JSON object"}};
	const struct sw_args args = {.name = "sumwire-lab engine",
		.summary = "measure the engine's CPU time per tensor and "
			   "packet, without ports and processes",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err;
	s->is_keyed |= s->is_encrypted;
	if (s->bytes % 64)
		fprintf(stderr,
			"sumwire-lab engine: --size %llu is not a multiple "
			"of 64\n",
			(unsigned long long)s->bytes);
	else if (s->is_collective && (!s->n_tensors || s->n_tensors > 64))
		fprintf(stderr, "sumwire-lab engine: --collective needs "
				"--tensors of 1 to 64\n");
	else
		return 0;
	return SW_EINVAL;
}

/* Counted by default. */
static const struct cost_shape shapes[] = {
	{.n_members = 2, .n_tensors = 4, .bytes = 128 << 10, .n_local = 1},
	{.n_members = 8, .n_tensors = 4, .bytes = 128 << 10, .n_local = 1},
	{.n_members = 32, .n_tensors = 4, .bytes = 128 << 10, .n_local = 1},
	{.n_members = 2, .n_tensors = 256, .bytes = 64, .n_local = 1},
	{.n_members = 2,
		.n_tensors = 4,
		.bytes = 128 << 10,
		.n_local = 1,
		.is_collective = true},
	{.n_members = 2,
		.n_tensors = 4,
		.bytes = 128 << 10,
		.n_local = 1,
		.is_collective = true,
		.is_gather = true},
	{.n_members = 8,
		.n_tensors = 4,
		.bytes = 128 << 10,
		.n_local = 1,
		.is_keyed = true},
	{.n_members = 2,
		.n_tensors = 256,
		.bytes = 64,
		.n_local = 1,
		.is_keyed = true},
	{.n_members = 8,
		.n_tensors = 4,
		.bytes = 128 << 10,
		.n_local = 1,
		.is_keyed = true,
		.is_encrypted = true},
	{.n_members = 2, .n_tensors = 4, .bytes = 128 << 10, .n_local = 2},
	{.n_members = 2, .n_tensors = 4, .bytes = 128 << 10, .n_local = 4},
	{.n_members = 2, .n_tensors = 4, .bytes = 128 << 10, .n_local = 8},
	{.n_members = 2,
		.n_tensors = 4,
		.bytes = 128 << 10,
		.n_local = 8,
		.is_collective = true}};

/* Count the requested shape, or the default ones. */
static int count(struct options *o, bool has_shape)
{
	return has_shape ? sw_cost_instructions(&o->shape, 1, o->is_json)
			 : sw_cost_instructions(shapes,
				   sizeof(shapes) / sizeof(shapes[0]),
				   o->is_json);
}

static int cost(struct options *o)
{
	struct report r = {.o = o};
	int err;

	if (o->is_json) {
		sw_json_init(&r.json, stdout);
		sw_json_object_open(&r.json, NULL);
		sw_json_array_open(&r.json, "results");
	}
	err = measure_all(&r);
	if (o->is_json) {
		sw_json_close(&r.json);
		sw_json_close(&r.json);
		err = sw_json_fini(&r.json) || err;
	}
	return err;
}

int sw_cmd_engine(int argc, char **argv)
{
	struct options o = {0};
	struct cost_shape *s = &o.shape;
	bool has_shape;
	int err = parse(&o, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	has_shape = s->bytes || s->n_tensors || s->n_members || s->n_local;
	s->bytes = s->bytes ? s->bytes : 256;
	s->n_tensors = s->n_tensors ? s->n_tensors : 1000;
	s->n_members = s->n_members ? s->n_members : 1;
	s->n_local = s->n_local ? s->n_local : 1;
	if (o.is_stepped)
		err = sw_cost_stepped(s);
	else if (o.is_instructions)
		err = count(&o, has_shape);
	else
		err = cost(&o);
	return err ? 1 : 0;
}
