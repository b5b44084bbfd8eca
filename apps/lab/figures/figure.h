/* figure.h - a figure: a swept description, formulas, a paper's numbers.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A figure is a description of sumwire-lab sim (apps/lab/sim/desc.h) with the
 * sections [figure], [curve NAME] and [claim NAME].
 */
#ifndef SW_APPS_LAB_FIGURES_FIGURE_H
#define SW_APPS_LAB_FIGURES_FIGURE_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/table.h"

enum { SW_FIGURE_NAME = 64, SW_FIGURE_PATH = 512 };

struct sw_figure {
	char name[SW_FIGURE_NAME]; /* name of the file, without its suffix */
	char path[SW_FIGURE_PATH];
	struct sw_sim_file file;
	struct sw_sim_desc *desc; /* description of point 0 */
	struct sw_sim_table table;
	/* by row, in base units; NAN: no value */
	double *curves[SW_SIM_CURVES];
};

/* The smallest and the largest number of a claim's rows. */
struct sw_figure_claim {
	double low, high;
	const char *unit; /* "" for a ratio */
};

/* sw_figure_open - read and check the description at @path.  Prints errors to
 * stderr.  The caller must close @f, even after an error. */
int sw_figure_open(
	struct sw_figure *f, const char *path, const struct sw_log *log);
void sw_figure_close(struct sw_figure *f);

/* sw_figure_run - run the points that the file @rows lacks, and compute the
 * curves.
 * @label      prefix of the progress line
 * @n_threads  0: one for each core */
int sw_figure_run(struct sw_figure *f, const char *rows, const char *label,
	uint32_t n_threads);

/* sw_figure_plot - write the plot as SVG. */
int sw_figure_plot(const struct sw_figure *f, const char *path);

/* --- claim.c --- */

/* sw_figure_claim_check - return whether claim @i names existing rows and
 * curves.  If not, @why gets the reason. */
bool sw_figure_claim_check(const struct sw_figure *f, uint32_t i, char *why);

/* sw_figure_claim - compute claim @i.  Returns 0, or SW_ENOENT if it has no
 * rows. */
int sw_figure_claim(
	const struct sw_figure *f, uint32_t i, struct sw_figure_claim *out);

/* sw_figure_here - write the numbers of a claim as text.
 * sw_figure_deviation - write how they differ from the paper's numbers. */
const char *sw_figure_here(const struct sw_figure_claim *c, char out[64]);
const char *sw_figure_deviation(
	const struct sw_figure_claim *c, const char *paper, char out[64]);

/* --- formula.c --- */

/* sw_figure_formula - compute the formula of curve @c for @point: nanoseconds
 * of a round, or with @is_rate bits per second.  NAN: the formula does not
 * apply. */
double sw_figure_formula(
	const struct sw_figure *f, uint32_t c, uint32_t point, bool is_rate);

/* --- trials.c --- */

/* Claims about the tuner's search.  They need a separate study, not a sweep. */
enum { SW_FIGURE_TRIALS = 2 };
struct sw_figure_trials {
	uint32_t n_landscapes; /* set by the caller */
	struct sw_figure_claim claims[SW_FIGURE_TRIALS];
};

extern const char *const sw_figure_trial_texts[SW_FIGURE_TRIALS][2];

/* sw_figure_trials - search out->n_landscapes random landscapes.  Prints
 * errors. */
int sw_figure_trials(struct sw_figure_trials *out);

/* --- wiring.c --- */

/* Plans of sumwire-lab topo for the two machines of BytePS's figure 14. */
enum { SW_FIGURE_WIRINGS = 2, SW_FIGURE_WIRING_CLAIMS = 3 };
struct sw_figure_wiring_claim {
	const char *text, *paper;
	struct sw_figure_claim here;
};

/* sw_figure_wiring_name, sw_figure_wiring_title - return the name, and the
 * title, of figure @i.
 * sw_figure_wiring_claims - compute its claims.
 * sw_figure_wiring_plot - write its plot as SVG.  Prints errors. */
const char *sw_figure_wiring_name(uint32_t i);
const char *sw_figure_wiring_title(uint32_t i);
void sw_figure_wiring_claims(
	uint32_t i, struct sw_figure_wiring_claim out[SW_FIGURE_WIRING_CLAIMS]);
int sw_figure_wiring_plot(uint32_t i, const char *path);

/* --- page.c --- */

/* sw_figures_page - write the page about all figures and @trials. */
int sw_figures_page(const struct sw_figure *figures, uint32_t n,
	const struct sw_figure_trials *trials, const char *commit, FILE *f);

/* sw_figure_print - print the claims of a figure to stdout. */
void sw_figure_print(const struct sw_figure *f);

#endif
