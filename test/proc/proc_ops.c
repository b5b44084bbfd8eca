/* proc_ops.c - a training process that calls every possible collective.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It calls each kind, with each operation, of each element type that has it:
 * all of them once; or some that a seed draws; or all with each of a list of
 * sizes. It uses a group of all ranks and others, in place or not, in memory of
 * sw_alloc or not. It compares every element (proc_element.h) and reports its
 * progress as proc_client does.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/proc/proc_element.h"
#include "test/proc/proc_groups.h"
#include "test/proc/proc_say.h"
#include "test/support/random.h"

enum { CELLS_MAX = 512, SMALL_MAX = 20000, PAYLOAD = 8192 };

struct cell {
	enum sw_coll_kind kind;
	enum sw_reduce_op op;
	enum sw_dtype dtype;
};

struct ops_client {
	struct sw_client *c;
	struct group groups[GROUPS];
	uint32_t n_groups, rank, size;
	struct cell cells[CELLS_MAX];
	uint32_t n_cells;
	char *shared[2],
		*own[2]; /* from sw_alloc, other memory; send, receive */
	uint64_t max_bytes;
	uint64_t seed, n_calls; /* drawn calls */
	uint32_t slice, slices; /* this run's share of each size; 0: off */
	uint64_t n_done, bits;  /* calls that ended; FNV-1a of all results */
	uint64_t odd;           /* the rank with another operation */
	struct proc_call call;
};

static void must(struct ops_client *k, int err, const char *where)
{
	proc_must(&k->c, err, where);
}

/* --- calls --- */

/* Choose this rank's buffers: in place, one is a part of the other. */
static void place(struct ops_client *k, uint64_t rng)
{
	struct proc_call *c = &k->call;
	uint64_t each = c->args.count * sw_dtype_bytes(c->args.dtype);
	bool is_in_place = rng % 3 == 0;
	char *send = ((rng + k->rank) % 2 ? k->own : k->shared)[0];
	char *recv = ((rng + k->rank) % 5 < 2 ? k->own : k->shared)[1];

	if (is_in_place && c->args.kind == SW_ALL_GATHER)
		send = recv + c->me * each;
	else if (is_in_place && c->args.kind == SW_REDUCE_SCATTER)
		recv = send + c->me * each;
	else if (is_in_place)
		recv = send;
	c->args.send = send;
	c->args.recv = recv;
}

static void fill(const struct proc_call *c)
{
	uint32_t each = sw_dtype_bytes(c->args.dtype);
	char *send = (char *)(uintptr_t)c->args.send;
	uint64_t element;

	memset(c->args.recv, 0x77, parts_out(c) * c->args.count * each);
	for (uint64_t i = 0; i < parts_in(c) * c->args.count; i++) {
		give(c, c->ranks[c->me], first_in(c) + i, &element);
		memcpy(send + i * each, &element, each);
	}
}

static void check(struct ops_client *k)
{
	const struct proc_call *c = &k->call;
	uint32_t each = sw_dtype_bytes(c->args.dtype);

	for (uint64_t i = 0; gets(c) && i < parts_out(c) * c->args.count; i++) {
		char got[8] = {0};

		memcpy(got, (const char *)c->args.recv + i * each, each);
		for (uint32_t b = 0; b < each; b++)
			k->bits =
				(k->bits ^ (uint8_t)got[b]) * 1099511628211ULL;
		if (is_right(c, first_out(c) + i, got))
			continue;
		printf("wrong: %s of %s %s by %u ranks, element %llu of %llu, "
		       "call %llu\n",
			sw_coll_name(c->args.kind),
			sw_reduce_op_name(c->args.op),
			sw_dtype_name(c->args.dtype), c->n,
			(unsigned long long)i,
			(unsigned long long)c->args.count,
			(unsigned long long)c->number);
		exit(EXIT_WRONG);
	}
}

static void run_one(struct ops_client *k, const struct cell *cell,
	const struct group *g, uint64_t count, uint64_t rng)
{
	struct proc_call *c = &k->call;
	uint64_t handle;

	c->number++;
	if (g->me == RANKS)
		return; /* this rank is not in the group */
	c->ranks = g->ranks;
	c->n = g->n;
	c->me = g->me;
	c->args = (struct sw_coll_args){.size = sizeof(c->args),
		.kind = cell->kind,
		.dtype = cell->dtype,
		.op = cell->op,
		.count = count,
		.root = g->ranks[rng % g->n]};
	c->args.scale = factor_of(c, k->rank); /* depends on the type */
	place(k, rng >> 8);
	fill(c);
	if (c->number == k->odd)
		c->args.op = c->args.op == SW_MAX ? SW_MIN : SW_MAX;
	must(k, sw_coll(g->g, &c->args, &handle), "coll");
	must(k, sw_wait(k->c, handle), "wait");
	check(k);
	k->n_done++;
}

/* --- choice of calls --- */

static void list_cells(struct ops_client *k)
{
	for (uint32_t kind = 1; kind < SW_BARRIER; kind++)
		for (uint32_t op = 0; op < SW_N_REDUCE_OPS; op++)
			for (uint32_t d = 0; d < SW_N_DTYPES; d++)
				if (has((enum sw_coll_kind)kind,
					    (enum sw_reduce_op)op,
					    (enum sw_dtype)d))
					k->cells[k->n_cells++] = (struct cell){
						(enum sw_coll_kind)kind,
						(enum sw_reduce_op)op,
						(enum sw_dtype)d};
}

/* Return how many elements fit into @bytes of all parts. */
static uint64_t count_of(
	const struct cell *cell, const struct group *g, uint64_t bytes)
{
	bool is_parted =
		cell->kind == SW_ALL_GATHER || cell->kind == SW_REDUCE_SCATTER;
	uint64_t n =
		bytes / sw_dtype_bytes(cell->dtype) / (is_parted ? g->n : 1);

	return n ? n : 1;
}

/* Make each call once at all ranks. */
static void run_each(struct ops_client *k)
{
	for (uint32_t i = 0; i < k->n_cells; i++) {
		uint64_t rng = i;

		run_one(k, &k->cells[i], &k->groups[0],
			1 + test_random(&rng) % SMALL_MAX, test_random(&rng));
	}
}

/* Draw sizes log-uniformly. */
static void run_drawn(struct ops_client *k)
{
	for (uint64_t i = 0; i < k->n_calls; i++) {
		const struct cell *cell =
			&k->cells[test_random(&k->seed) % k->n_cells];
		const struct group *g =
			&k->groups[test_random(&k->seed) % k->n_groups];
		uint64_t most = k->max_bytes;

		most >>= test_random(&k->seed) % 27;
		run_one(k, cell, g,
			count_of(cell, g,
				1 + test_random(&k->seed) % (most ? most : 1)),
			test_random(&k->seed));
	}
}

static void run_sizes(struct ops_client *k, const struct cell *cell)
{
	static const uint64_t bytes[] = {0, PAYLOAD, 1 << 20, 5 << 20};
	static const uint64_t elems[] = {1, 3, 63, 65, 1023, 100003};
	const struct group *g = &k->groups[test_random(&k->seed) % k->n_groups];
	uint64_t rng = test_random(&k->seed);

	for (uint32_t i = 0; i < 6; i++)
		run_one(k, cell, g, elems[i], rng >> i);
	for (uint32_t i = 1; i < 4; i++)
		for (uint64_t more = 0; more < 3; more++)
			run_one(k, cell, g,
				count_of(cell, g, bytes[i]) + more - 1,
				rng >> (8 + more));
	if (cell->op == SW_SUM)
		run_one(k, cell, g, count_of(cell, g, k->max_bytes), rng);
}

static void run_whole(struct ops_client *k)
{
	for (uint32_t i = 0; i < k->n_cells; i++)
		if (i % k->slices == k->slice)
			run_sizes(k, &k->cells[i]);
}

/* --- groups --- */

static void open_groups(struct ops_client *k)
{
	char name[16];

	k->n_groups = list_groups(k->groups, k->rank, k->size);
	for (uint32_t i = 0; i < k->n_groups; i++) {
		struct group *g = &k->groups[i];

		snprintf(name, sizeof(name), i ? "group%u" : "all", i);
		if (g->me != RANKS)
			must(k,
				sw_group_open(k->c, name, i ? g->ranks : NULL,
					g->n, &g->g),
				"group");
	}
}

static void open_all(struct ops_client *k, const struct sw_settings *s)
{
	uint64_t bytes;
	void *p;

	must(k, sw_open(s, &k->c), "open");
	k->rank = sw_rank(k->c);
	k->size = sw_size(k->c);
	printf("attached %u of %u\n", k->rank, k->size);
	fflush(stdout);
	/* Leave room for the largest small size at each rank. */
	bytes = 8ULL * 100003 * k->size;
	if (bytes < k->max_bytes)
		bytes = k->max_bytes;
	for (uint32_t i = 0; i < 2; i++) {
		must(k, sw_alloc(k->c, bytes + PAYLOAD, &p), "alloc");
		k->shared[i] = p;
		k->own[i] = malloc(bytes + PAYLOAD);
	}
	open_groups(k);
}

static void run(struct ops_client *k)
{
	list_cells(k);
	if (k->slices)
		run_whole(k);
	else if (k->n_calls)
		run_drawn(k);
	else
		run_each(k);
	printf("%llu calls\nbits %016llx\nexact\n",
		(unsigned long long)k->n_done, (unsigned long long)k->bits);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"agent", required_argument, NULL, 'a'},
		{"odd", required_argument, NULL, 'o'},
		{"seed", required_argument, NULL, 's'},
		{"calls", required_argument, NULL, 'n'},
		{"whole", required_argument, NULL, 'w'}, /* SLICE/SLICES */
		{"max", required_argument, NULL, 'm'}, {0}};
	static struct ops_client k = {.max_bytes = 16 << 20};
	struct sw_settings s;
	int o;

	sw_settings_init(&s);
	s.wait_timeout_s = 120;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (o == 'a')
			s.agent = optarg;
		else if (o == 'o')
			k.odd = strtoull(optarg, NULL, 10);
		else if (o == 's')
			k.seed = strtoull(optarg, NULL, 10);
		else if (o == 'n')
			k.n_calls = strtoull(optarg, NULL, 10);
		else if (o == 'm')
			k.max_bytes = strtoull(optarg, NULL, 10);
		else if (o != 'w' ||
			 sscanf(optarg, "%u/%u", &k.slice, &k.slices) != 2)
			return 2;
	open_all(&k, &s);
	run(&k);
	sw_close(&k.c);
	printf("ended\n");
	return 0;
}
