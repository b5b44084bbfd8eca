/* tune_search.c - search for the partition and credit of fast iterations.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/tuner/tune_search.h"

#include <math.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/random.h"

enum { FIRST = 3, LATTICE = 33, STUCK = 2 };

/* The margin of an improvement, as a share of the spread of the observations.
 * The paper's own code has 0.1, which explores more than ten trials allow. */
#define MARGIN 0.01

/* The best of learning rates 0.02 … 0.3 and momenta 0.5 … 0.9. */
#define RATE     0.1
#define MOMENTUM 0.5
#define PROBE    0.0625

static double uniform(struct sw_tune *t)
{
	return (double)(sw_random_next(&t->rng) >> 11) / 9007199254740992.0;
}

static uint64_t between(uint64_t min, uint64_t max, double x)
{
	double v = (double)min * pow((double)max / (double)min, x);

	return (uint64_t)(v + 0.5);
}

static struct sw_tune_point point(
	const struct sw_tune_space *s, const double x[2])
{
	return (struct sw_tune_point){
		.partition_bytes = between(
			s->min.partition_bytes, s->max.partition_bytes, x[0]),
		.credit_bytes = between(
			s->min.credit_bytes, s->max.credit_bytes, x[1])};
}

static void grid(uint32_t i, double x[2])
{
	x[0] = (double)(i / SW_TUNE_GRID % SW_TUNE_GRID) / (SW_TUNE_GRID - 1);
	x[1] = (double)(i % SW_TUNE_GRID) / (SW_TUNE_GRID - 1);
}

struct sw_tune_point sw_tune_grid_point(
	const struct sw_tune_space *space, uint32_t i)
{
	double x[2];

	grid(i, x);
	return point(space, x);
}

/* --- the methods: write the next point to try to t->asked --- */

static void ask_random(struct sw_tune *t)
{
	t->asked[0] = uniform(t);
	t->asked[1] = uniform(t);
}

static void ask_grid(struct sw_tune *t)
{
	grid(t->n, t->asked);
}

/* Ask for the first points, spread out: one in each third of both dimensions.
 */
static void ask_first(struct sw_tune *t)
{
	static const double column[FIRST] = {1, 0, 2}, row[FIRST] = {1, 2, 0};

	t->asked[0] = (column[t->n] + 0.25 + 0.5 * uniform(t)) / FIRST;
	t->asked[1] = (row[t->n] + 0.25 + 0.5 * uniform(t)) / FIRST;
}

/* Ask for the point of a lattice with the largest expected improvement.  Shift
 * the lattice at random, so that each question sees different points. */
static void ask_bo(struct sw_tune *t)
{
	uint32_t n = t->n < SW_GP_MAX ? t->n : SW_GP_MAX;
	double dx = uniform(t), dy = uniform(t), most = -1, margin;

	if (t->n < FIRST) {
		ask_first(t);
		return;
	}
	if (sw_gp_fit(&t->gp, t->x, t->y, n)) {
		ask_random(t);
		return;
	}
	margin = MARGIN * t->gp.scale;
	for (uint32_t i = 0; i < LATTICE * LATTICE; i++) {
		double x[2] = {fmin((i / LATTICE + dx) / (LATTICE - 1), 1),
			fmin((i % LATTICE + dy) / (LATTICE - 1), 1)};
		double gain = sw_gp_improvement(&t->gp, x, t->best_y, margin);

		if (gain > most) {
			most = gain;
			memcpy(t->asked, x, sizeof(x));
		}
	}
	t->expected = most;
}

static void restart(struct sw_tune *t)
{
	t->at[0] = uniform(t);
	t->at[1] = uniform(t);
	t->velocity[0] = t->velocity[1] = 0;
	t->last_y = INFINITY;
	t->n_stuck = 0;
	t->probe = 0;
}

/* Ask for the point itself, or a step from it; near the border, step inwards.
 */
static void ask_sgd(struct sw_tune *t)
{
	if (t->n == 0)
		restart(t);
	memcpy(t->asked, t->at, sizeof(t->at));
	if (t->probe) {
		double *x = &t->asked[t->probe - 1];

		*x += *x > 1 - PROBE ? -PROBE : PROBE;
	}
}

/* Move the point, when the times of the point and of both steps are known. */
static void move(struct sw_tune *t)
{
	t->n_stuck = t->at_y < t->last_y ? 0 : t->n_stuck + 1;
	t->last_y = t->at_y;
	t->probe = 0;
	for (uint32_t d = 0; d < 2; d++) {
		double v = MOMENTUM * t->velocity[d] - RATE * t->slope[d];

		t->velocity[d] = fmax(-0.5, fmin(0.5, v));
		t->at[d] = fmax(0, fmin(1, t->at[d] + t->velocity[d]));
	}
	if (t->n_stuck == STUCK)
		restart(t);
}

static void observe_sgd(struct sw_tune *t, double y)
{
	uint32_t d = t->probe - 1;

	if (t->probe == 0)
		t->at_y = y;
	else
		t->slope[d] = (y - t->at_y) / (t->asked[d] - t->at[d]);
	if (++t->probe == 3)
		move(t);
}

static const struct {
	const char *name;
	void (*ask)(struct sw_tune *t);
	void (*observe)(
		struct sw_tune *t, double y); /* NULL: nothing to learn */
} methods[SW_N_TUNE_METHODS] = {
	[SW_TUNE_BO] = {"bo", ask_bo, NULL},
	[SW_TUNE_RANDOM] = {"random", ask_random, NULL},
	[SW_TUNE_GRID_SEARCH] = {"grid", ask_grid, NULL},
	[SW_TUNE_SGD] = {"sgd", ask_sgd, observe_sgd},
};

const char *sw_tune_method_name(uint32_t method)
{
	return method < SW_N_TUNE_METHODS ? methods[method].name : NULL;
}

void sw_tune_init(struct sw_tune *t, enum sw_tune_method method,
	const struct sw_tune_space *space, uint64_t seed)
{
	*t = (struct sw_tune){.method = method,
		.space = *space,
		.rng = seed,
		.best_y = INFINITY};
}

struct sw_tune_point sw_tune_ask(struct sw_tune *t)
{
	t->expected = 0;
	methods[t->method].ask(t);
	return point(&t->space, t->asked);
}

static double share(uint64_t min, uint64_t max, uint64_t value)
{
	return log((double)value / (double)min) /
	       log((double)max / (double)min);
}

void sw_tune_ask_at(struct sw_tune *t, struct sw_tune_point p)
{
	const struct sw_tune_space *s = &t->space;

	t->expected = 0;
	t->asked[0] = share(s->min.partition_bytes, s->max.partition_bytes,
		p.partition_bytes);
	t->asked[1] =
		share(s->min.credit_bytes, s->max.credit_bytes, p.credit_bytes);
}

int sw_tune_tell(struct sw_tune *t, double iteration_s)
{
	uint32_t i = t->n % SW_GP_MAX;
	double y = log(iteration_s);

	if (!(iteration_s > 0) || !isfinite(iteration_s))
		return SW_EINVAL;
	memcpy(t->x[i], t->asked, sizeof(t->asked));
	t->y[i] = y;
	t->n++;
	if (y < t->best_y) {
		t->best_y = y;
		memcpy(t->best_x, t->asked, sizeof(t->asked));
	}
	if (methods[t->method].observe)
		methods[t->method].observe(t, y);
	return 0;
}

struct sw_tune_point sw_tune_best(const struct sw_tune *t, double *iteration_s)
{
	*iteration_s = exp(t->best_y);
	return point(&t->space, t->best_x);
}
