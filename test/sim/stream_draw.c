/* stream_draw.c - groups and their collectives, drawn from a seed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/base/bytes.h"
#include "test/sim/job.h"

static uint16_t draw_member(uint64_t members, uint64_t *x)
{
	uint64_t at = sim_below(x, (uint64_t)__builtin_popcountll(members));

	while (at-- > 0)
		members &= members - 1;
	return (uint16_t)__builtin_ctzll(members);
}

/* Draw a dtype in which the sum of all members is exact. */
static uint32_t draw_dtype(const struct sim_job *job, uint64_t *x)
{
	static const uint32_t dtypes[] = {
		SW_I32, SW_F32, SW_I64, SW_F64, SW_F16, SW_U8, SW_I8, SW_BF16};
	uint32_t most = job->n_workers <= 3   ? 8
			: job->n_workers <= 4 ? 7
			: job->n_workers <= 5 ? 5
					      : 4;

	return sim_below(x, 3) ? dtypes[sim_below(x, most)] : SW_I32;
}

/* Draw one element to more than a window, sometimes four windows. */
static uint64_t draw_count(
	const struct sim_job *job, const struct sim_group *g, uint64_t *x)
{
	uint64_t windows = g->window_log2 > 5 || sim_below(x, 4) ? 2 : 4;
	uint64_t most = job->params.payload / 4 * windows << g->window_log2;

	switch (sim_below(x, 4)) {
	case 0:
		return 1;
	case 1:
		return 1 + sim_below(x, most);
	default:
		return 1 + sim_below(x, 2000);
	}
}

/* Draw an operation that is exact on members' digits, which do not overlap;
 * floats allow fewer. */
static enum sw_reduce_op draw_op(const struct sim_coll *c, uint64_t *x)
{
	static const enum sw_reduce_op ops[] = {
		SW_MIN, SW_MAX, SW_AVG, SW_PROD, SW_BAND, SW_BOR, SW_BXOR};
	bool is_float = c->dtype == SW_F32 || c->dtype == SW_F64 ||
			c->dtype == SW_F16 || c->dtype == SW_BF16;

	if (!sw_coll_is_sum(c->kind) || sim_below(x, 2))
		return SW_SUM;
	return ops[sim_below(x, is_float ? 2 : SW_ARRAY_SIZE(ops))];
}

static struct sim_coll draw_coll(
	const struct sim_job *job, const struct sim_group *g, uint64_t *x)
{
	struct sim_coll c = {.kind = (enum sw_coll_kind)(
				     1 + sim_below(x, SW_N_COLL_KINDS - 1)),
		.dtype = draw_dtype(job, x),
		.n_elems = draw_count(job, g, x),
		.root = g->ranks[sim_below(x, g->n_ranks)],
		.is_in_place = sim_below(x, 2)};

	/* Size all parts as if each member had one rank. */
	if (sim_coll_n_parts(g, &c) > 1)
		c.n_elems =
			1 + (c.n_elems - 1) *
				    (uint64_t)__builtin_popcountll(g->members) /
				    g->n_ranks;
	c.op = draw_op(&c, x);
	return c;
}

/* Draw the first chunk number: 1, or a number shortly before 16 or 32 bits of
 * it wrap, far enough to use each slot once. */
static uint32_t draw_start(const struct sim_group *g, uint64_t *x)
{
	uint32_t window = 1u << g->window_log2;
	uint32_t before = window + 1 + (uint32_t)sim_below(x, 2 * window);

	switch (sim_below(x, 4)) {
	case 0:
		return 0 - before;
	case 1:
		return 65536 - before;
	default:
		return 0;
	}
}

/* Draw the members; in most groups all local ranks of a member take part. */
static void draw_members(
	const struct sim_job *job, struct sim_group *g, uint64_t *x)
{
	uint64_t all = ~0ULL >> (64 - job->n_workers);

	g->members = sim_below(x, 2) ? all : test_random(x) & all;
	if (!g->members)
		g->members = all;
	if (sim_below(x, 3))
		return;
	for (uint32_t w = 0; w < job->n_workers; w++)
		g->here[w] = (uint8_t)sim_below(x, 1u << SIM_LOCAL);
}

static void draw_group(
	const struct sim_job *job, struct sim_group *g, uint64_t *x)
{
	g->window_log2 = (uint8_t)(4 + sim_below(x, 3));
	g->priority = (uint32_t)sim_below(x, 300);
	g->depth = 1 + (uint32_t)sim_below(x, 8);
	g->n_colls = 1 + (uint32_t)sim_below(x, SIM_COLLS);
	g->start = draw_start(g, x);
}

/* --- a member that calls a collective differently --- */

static bool are_alike(const struct sim_coll *a, const struct sim_coll *b)
{
	bool has_root = a->kind == SW_BCAST || a->kind == SW_REDUCE;

	return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype &&
	       a->n_elems == b->n_elems && (!has_root || a->root == b->root);
}

static struct sim_coll changed(const struct sim_group *g,
	enum sim_clash_how how, const struct sim_coll *c)
{
	struct sim_coll out = *c;

	switch (how) {
	case SIM_ELSE_KIND:
		out.kind = (enum sw_coll_kind)(
			c->kind % (SW_N_COLL_KINDS - 1) + 1);
		out.op = SW_SUM;
		break;
	case SIM_ELSE_COUNT:
		out.n_elems++;
		break;
	case SIM_ELSE_DTYPE:
		out.dtype = c->dtype == SW_I32 ? SW_F32 : SW_I32;
		out.op = SW_SUM;
		break;
	case SIM_ELSE_OP:
		out.op = c->op == SW_MAX ? SW_MIN : SW_MAX;
		break;
	case SIM_ELSE_ROOT:
		out.root = g->ranks[c->root == g->ranks[0]];
		break;
	default:
		break;
	}
	return out;
}

bool sim_clash_is_of(const struct sim_worker *w, uint32_t seat)
{
	const struct sim_clash *k = &w->job->clash;

	return k->how && k->how < SIM_ABORTS && k->by == w->rank &&
	       k->group == seat % SIM_GROUPS &&
	       (k->local == SIM_LOCAL || k->local == seat / SIM_GROUPS);
}

struct sim_coll sim_coll_of(
	const struct sim_worker *w, uint32_t seat, uint32_t coll)
{
	const struct sim_clash *x = &w->job->clash;
	const struct sim_group *g = &w->job->groups[seat % SIM_GROUPS];

	if (!sim_clash_is_of(w, seat))
		return g->colls[coll];
	if (x->how == SIM_SWAPPED && (coll == x->coll || coll == x->coll + 1))
		return g->colls[2 * x->coll + 1 - coll];
	if (x->how != SIM_SWAPPED && coll == x->coll)
		return changed(g, x->how, &g->colls[coll]);
	return g->colls[coll];
}

bool sim_clash_is_in(const struct sim_job *job, uint32_t group, uint32_t coll)
{
	return job->clash.how && group == job->clash.group &&
	       coll >= job->clash.coll;
}

void sim_clash_draw(struct sim_job *job)
{
	uint64_t x = job->seed ^ 0x636c617368;
	struct sim_clash k = {
		.how = 1 + (enum sim_clash_how)sim_below(&x, SIM_N_CLASHES - 1),
		.group = (uint32_t)sim_below(&x, job->n_groups)};
	const struct sim_group *g = &job->groups[k.group];
	const struct sim_coll *c;

	if (!job->n_groups || job->doom || job->mismatch || sim_below(&x, 4))
		return;
	k.by = draw_member(g->members, &x);
	k.local = draw_member(g->here[k.by], &x);
	if (sim_below(&x, 2) || g->here[k.by] == 1u << k.local)
		k.local = SIM_LOCAL;
	k.coll = (uint32_t)sim_below(&x, g->n_colls);
	c = &g->colls[k.coll];
	if (k.how == SIM_SWAPPED && (k.coll + 1 == g->n_colls || g->depth < 2 ||
					    are_alike(c, c + 1)))
		k.how = SIM_ELSE_KIND;
	if (k.how == SIM_ELSE_OP && !sw_coll_is_sum(c->kind))
		k.how = SIM_ELSE_DTYPE;
	if (k.how == SIM_ELSE_ROOT && c->kind != SW_BCAST &&
		c->kind != SW_REDUCE)
		k.how = SIM_ELSE_DTYPE;
	if (g->members & (g->members - 1)) /* one member alone cannot differ */
		job->clash = k;
}

void sim_groups_draw(struct sim_job *job)
{
	uint64_t x = job->seed ^ 0x67726f7570;

	job->n_groups = 1 + (uint32_t)sim_below(&x, SIM_GROUPS);
	for (uint32_t i = 0; i < job->n_groups; i++) {
		draw_members(job, &job->groups[i], &x);
		draw_group(job, &job->groups[i], &x);
	}
	sim_groups_list(job);
	for (uint32_t i = 0; i < job->n_groups; i++)
		for (uint32_t c = 0; c < job->groups[i].n_colls; c++)
			job->groups[i].colls[c] =
				draw_coll(job, &job->groups[i], &x);
	job->params.is_by_rank = sim_below(&x, 2);
}

void sim_groups_describe(const struct sim_job *job)
{
	static const char *const hows[SIM_N_CLASHES] = {"", "another kind",
		"another count", "another dtype", "another operation",
		"another root", "another order", "abort", "close"};

	for (uint32_t i = 0; i < job->n_groups; i++) {
		const struct sim_group *g = &job->groups[i];

		printf("# group %u: members %llx, %u ranks, %u slots from %u, "
		       "priority "
		       "%u, %u collectives, %u at a time\n",
			i, (unsigned long long)g->members, g->n_ranks,
			1u << g->window_log2, g->start ? g->start : 1,
			g->priority, g->n_colls, g->depth);
	}
	if (job->clash.how)
		printf("# worker %u, local rank %u (%u: all), collective %u of "
		       "group %u: %s\n",
			job->clash.by, job->clash.local, SIM_LOCAL,
			job->clash.coll, job->clash.group,
			hows[job->clash.how]);
}
