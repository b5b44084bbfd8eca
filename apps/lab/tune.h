/* tune.h - the parts of sumwire-lab tune that search a simulation.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The tuner works on the simulation of the layer DAG by events, with an
 * overhead for each partition (paper 000, section 4.1).
 */
#ifndef SW_APPS_LAB_TUNE_H
#define SW_APPS_LAB_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lab/plan_sim.h"
#include "pmd/client/tuner/tune_search.h"

enum { SW_TUNE_TRIALS = SW_TUNE_GRID * SW_TUNE_GRID };

/* A search has found the best point when its time is at most this many times
 * the grid's best. */
#define SW_LANDSCAPE_CLOSE 1.03

struct sw_tune_options {
	uint32_t n_seeds, seed, n_trials;
	uint64_t rate_bits_s, later_bits_s, overhead_ns, latency_ns;
	uint64_t copy_bits_s, piece_bytes;
	double noise; /* percent */
	const char *model_name;
	const char *partition_min, *partition_max, *credit_min, *credit_max;
	bool is_json, is_traced, is_engine, is_rank;
	struct sw_tune_space space;
};

/* The space of a search, and the results of its grid. */
struct sw_landscape {
	struct sw_model model;
	struct sw_plan_run run;
	double best_s, worst_s; /* of the grid */
	uint32_t n_close;
	uint64_t rng;
	double noise;
};

/* sw_landscape_open - open the model @name.  The caller sets the link, and
 * closes the model.  Prints errors. */
int sw_landscape_open(struct sw_landscape *l, const char *name);

/* sw_landscape_draw - draw a network, a rate and an overhead until partition
 * and credit matter, and walk its grid.
 * Errors: SW_ENOENT they never mattered, which it prints; as
 * sw_landscape_walk. */
int sw_landscape_draw(
	struct sw_landscape *l, const struct sw_tune_options *o, uint64_t seed);

/* sw_landscape_walk - compute all points of @space's grid.
 * sw_landscape_time - compute an iteration at @p.  Errors: SW_ENOMEM. */
int sw_landscape_walk(
	struct sw_landscape *l, const struct sw_tune_space *space);
int sw_landscape_time(const struct sw_landscape *l, struct sw_tune_point p,
	double *iteration_s);

/* sw_landscape_measured - return @true_s as a training measures it: with
 * noise. */
double sw_landscape_measured(struct sw_landscape *l, double true_s);

/* sw_landscape_search - search by @method.  Sets *@n_trials to the number of
 * trials until a point was close to the grid's best, or to o->n_trials + 1 if
 * none was. */
int sw_landscape_search(struct sw_landscape *l, const struct sw_tune_options *o,
	enum sw_tune_method method, uint64_t seed, struct sw_tune *t,
	uint32_t *n_trials);

/* sw_tune_bytes_text - format bytes like "3.5 MiB".  Returns @out. */
const char *sw_tune_bytes_text(uint64_t bytes, char out[32]);

/* Trials of a method, over several landscapes. */
struct sw_tune_cost {
	double sum, squares;
	uint32_t n_missed; /* runs that found no close point */
};

/* sw_tune_costs - search o->n_seeds random landscapes by each method.
 * @spread_min  set to the smallest spread between best and worst of a landscape
 * Errors, all printed: SW_ENOENT, SW_ENOMEM. */
int sw_tune_costs(const struct sw_tune_options *o,
	struct sw_tune_cost costs[SW_N_TUNE_METHODS], double *spread_min);

/* sw_tune_study - print the cost of each method on random landscapes to stdout.
 * Returns the exit code. */
int sw_tune_study(const struct sw_tune_options *o);

/* sw_tune_one - tune o->model_name over the link of @o.  Returns the exit
 * code. */
int sw_tune_one(struct sw_tune_options *o);

/* sw_tune_job - tune inside a running job, whose link changes in the middle.
 * Returns 0 or a negative error. */
int sw_tune_job(struct sw_landscape *l, const struct sw_tune_options *o);

#endif
